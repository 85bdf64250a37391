/* sandbox/launch.c: build a launcher once per pool: all that does not differ between
 * workers, and every refusal that needs no process.
 */
#include "sandbox/launch.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "ipc/err.h"
#include "sandbox/idmap.h"
#include "sandbox/lack.h"
#include "sandbox/launch_int.h"
#include "sandbox/oci_engine.h"
#include "sandbox/place.h"

enum {
	END_MS = 1000,
	END_ENGINE_MS = 10000,
	FEW_BINDS = 16,	  /* not worth a look at the limit */
	FDS_BESIDES = 512 /* what the rest of the program has open */
};

/* The static stub, embedded by the linker (Makefile). */
extern const char kn_stub_image[], kn_stub_image_end[];

/* As root each worker has a uid of its own; what starts it must not be uid 0. */
static int
check_ids(const struct kn_launcher *l, struct kn_err *e)
{
	const struct kn_host *h = l->host;

	if (l->ops->no_mounts) /* find() has looked: it takes less */
		return 0;
	if (h->uid == 0 && !h->root && h->host_root) {
		kn_err_set(e, KN_EK_HOST,
		    "workers would have to run as the machine's uid 0: no CAP_SETUID, "
		    "CAP_SETGID and CAP_SYS_ADMIN, or no unprivileged uid is mapped in "
		    "this user namespace");
		kn_lack_hint(KN_LACK_ROOT_POWERLESS, true, e);
		return -1;
	}
	if (h->root && h->worker_uid_n < l->worker_n) {
		kn_err_set(e, KN_EK_HOST,
		    "%u workers need a uid each, and this user namespace has %u "
		    "unprivileged ones",
		    l->worker_n, h->worker_uid_n);
		kn_err_hint(
		    e, h->worker_uid_n > 0
			   ? "use fewer workers, or map more ids into the namespace"
			   : "start it as an ordinary user, or map more ids into the "
			     "namespace (newuidmap, a container's subordinate ids)");
		return -1;
	}
	return 0;
}

static bool
is_below(const char *path, const char *dir)
{
	size_t n = strlen(dir);

	return path != NULL && strncmp(path, dir, n) == 0 &&
	       (path[n] == '/' || path[n] == '\0');
}

/* Whether an engine is told to work below dir (TMPDIR, HOME, ...). */
static bool
is_engine_told(const char *dir)
{
	for (char *const *v = kn_engine_env(); *v != NULL; v++) {
		const char *value = strchr(*v, '=');

		if (value != NULL && is_below(value + 1, dir))
			return true;
	}
	return false;
}

/* Whether the launcher would miss something with a mount over dir: its program or what
 * is before it, what it works in, or a path that it is told to show. */
static bool
is_needed(const struct kn_launcher *l, const char *dir)
{
	const struct kn_policy *p = l->policy;
	bool needed = is_below(l->program, dir) || is_below(l->exec, dir) ||
		      is_below(l->place, dir) || is_below(p->rootfs, dir) ||
		      is_engine_told(dir);

	for (size_t i = 0; i < p->prefix_n; i++)
		needed |= is_below(p->prefix[i], dir);
	for (size_t i = 0; i < p->fs.mount_n; i++)
		needed |= l->binds[i].fd < 0 && is_below(l->binds[i].path, dir);
	return needed;
}

/* A directory to mount the private tmpfs over, in the child's own mount namespace. */
static const char *
choose_mount_dir(const struct kn_launcher *l)
{
	static const char *const candidates[] = { "/tmp", "/mnt", "/var/tmp", "/media",
		"/srv" };

	for (size_t i = 0; i < sizeof(candidates) / sizeof(candidates[0]); i++) {
		struct stat st;

		if (lstat(candidates[i], &st) == 0 && S_ISDIR(st.st_mode) &&
		    !is_needed(l, candidates[i]))
			return candidates[i];
	}
	return NULL;
}

/* As root the caller's binds are brought by descriptor: where each one goes. */
static int
plan_child_binds(struct kn_launcher *l, size_t user_n, struct kn_err *e)
{
	size_t n = 0;

	l->child_binds = calloc(user_n, sizeof(l->child_binds[0]));
	l->child_paths = calloc(user_n, sizeof(l->child_paths[0]));
	l->child_trees = calloc(user_n, sizeof(l->child_trees[0]));
	l->userns = malloc(l->worker_n * sizeof(l->userns[0]));
	if (!l->child_binds || !l->child_paths || !l->child_trees || !l->userns)
		return kn_err_sys(e, KN_EK_HOST, "allocate the table of binds");
	for (uint32_t w = 0; w < l->worker_n; w++)
		l->userns[w] = -1;
	if (kn_idmap_open(l->host->uid, l->host->gid, l->host->worker_uid_base,
		l->host->maps_full, &l->userns[0], e) < 0) {
		kn_lack_hint_userns(e->sys, l->host->uid == 0, e);
		return -1;
	}
	if (kn_bind_plan_idmap(l->binds, l->policy->fs.mount_n, l->userns[0],
		l->host->worker_uid_base, e) < 0)
		return -1;
	l->mount_dir = choose_mount_dir(l);
	if (l->mount_dir == NULL)
		return kn_err_set(e, KN_EK_HOST,
		    "no directory for a private mount: none of /tmp, /mnt, /var/tmp, "
		    "/media, /srv can be used");
	for (size_t i = 0; i < l->policy->fs.mount_n; i++) {
		const struct kn_bind *b = &l->binds[i];

		if (b->fd < 0)
			continue;
		if (asprintf(&l->child_paths[n], "%s/%zu", l->mount_dir, n) < 0) {
			l->child_paths[n] = NULL;
			return kn_err_sys(e, KN_EK_HOST, "name a bind");
		}
		l->child_binds[n] = (struct kn_child_bind){ .fd = b->fd,
			.idmap = b->idmap,
			.is_dir = b->is_dir,
			.path = l->child_paths[n] };
		l->child_bind_n = ++n;
	}
	return 0;
}

/* What is executed: the launcher's program, or that of launcher.prefix in its place. It
 * has no environment, PATH neither, so it is looked for here. */
static int
find_exec(struct kn_launcher *l, struct kn_err *e)
{
	const struct kn_policy *p = l->policy;
	const char *path = getenv("PATH"), *name;

	if (p->prefix_n == 0) {
		snprintf(l->exec, sizeof(l->exec), "%s", l->program);
		return 0;
	}
	name = p->prefix[0];
	if (path == NULL)
		path = "/usr/local/bin:/usr/bin:/bin";
	if (*name == '/')
		snprintf(l->exec, sizeof(l->exec), "%s", name);
	for (const char *end; *name != '/' && l->exec[0] == '\0' && *path; path = end) {
		end = path + strcspn(path, ":");
		int n = snprintf(
		    l->exec, sizeof(l->exec), "%.*s/%s", (int)(end - path), path, name);

		if (*path != '/' || n >= (int)sizeof(l->exec) ||
		    access(l->exec, X_OK) < 0)
			l->exec[0] = '\0';
		end += *end == ':';
	}
	if (l->exec[0] == '\0' || access(l->exec, X_OK) < 0)
		return kn_err_set(
		    e, KN_EK_CONFIG, "/launcher/prefix: %.100s: no such program", name);
	return 0;
}

static int
prepend_prefix(struct kn_launcher *l, struct kn_err *e)
{
	const struct kn_policy *p = l->policy;

	if (kn_argv_prepend(&l->argv, p->prefix, p->prefix_n, e) < 0)
		return -1;
	return kn_argv_prepend(&l->packed, p->prefix, p->prefix_n, e);
}

/* Every bind holds a descriptor here, and another while it is brought along. The soft
 * limit is ours to raise; what we start gets the old one. */
static int
raise_nofile(struct kn_launcher *l, struct kn_err *e)
{
	struct rlimit now;
	rlim_t n = 0, masks = 0, need;

	if (getrlimit(RLIMIT_NOFILE, &l->nofile) < 0)
		return kn_err_sys(e, KN_EK_HOST, "read the limit of open files");
	for (size_t i = 0; i < l->policy->fs.mount_n; i++) {
		n += l->policy->fs.mounts[i].user;
		masks += l->policy->fs.mounts[i].type == KN_MOUNT_MASK;
	}
	need = 2 * n + FDS_BESIDES;
	/* bwrap is handed a file for each mask and needs some more. */
	if (l->nofile.rlim_cur < masks + FDS_BESIDES && masks > FEW_BINDS)
		l->nofile.rlim_cur = l->nofile.rlim_max < masks + FDS_BESIDES
					 ? l->nofile.rlim_max
					 : masks + FDS_BESIDES;
	if (n <= FEW_BINDS || need <= l->nofile.rlim_cur)
		return 0;
	now = l->nofile;
	now.rlim_cur = now.rlim_max;
	if (!l->host->embedded && need <= now.rlim_max &&
	    setrlimit(RLIMIT_NOFILE, &now) == 0)
		return 0;
	kn_err_set(e, KN_EK_CONFIG,
	    "/filesystem/mounts: %llu mounts need %llu open files, and the limit is "
	    "%llu",
	    (unsigned long long)n, (unsigned long long)need,
	    (unsigned long long)(l->host->embedded ? l->nofile.rlim_cur
						   : l->nofile.rlim_max));
	kn_err_hint(e, "bind a directory that holds them, or raise it: ulimit -n");
	return -1;
}

/* Process 1 waits for whatever the kernel hands to it: as in a program that is not
 * ours, that must not find our launchers. */
static int
make_wardens(struct kn_launcher *l, struct kn_err *e)
{
	bool gathers = l->ops->gathers != NULL && l->ops->gathers(l);

	if (!l->host->embedded && getpid() != 1 && !gathers)
		return 0;
	l->wardens = calloc(l->worker_n, sizeof(*l->wardens));
	if (l->wardens == NULL)
		return kn_err_sys(e, KN_EK_HOST, "allocate the launcher");
	for (uint32_t w = 0; w < l->worker_n; w++)
		l->wardens[w].gathers = gathers;
	return 0;
}

static int
build(struct kn_launcher *l, struct kn_err *e)
{
	size_t user_n = 0;
	/* A group that no worker can be in holds nothing: what stands in has to know.
	 */
	bool no_cgroups = l->host->no_cgroups ||
			  (l->ops->lacks != NULL &&
			      l->ops->lacks(l->policy, KN_LAYER_CG_MEMORY) != NULL);

	if (l->ops->needs_place &&
	    kn_place_open(l->pool_id, l->place, sizeof(l->place), e) < 0)
		return -1;
	if (l->ops->find(l, e) < 0 || find_exec(l, e) < 0 || check_ids(l, e) < 0 ||
	    raise_nofile(l, e) < 0 || kn_bind_resolve(l->policy, &l->binds, e) < 0)
		return -1;
	for (size_t i = 0; i < l->policy->fs.mount_n; i++)
		user_n += l->binds[i].fd >= 0;
	if (l->host->root && !l->ops->no_mounts && user_n > 0 &&
	    plan_child_binds(l, user_n, e) < 0)
		return -1;
	if (l->ops->prepare(l, e) < 0 || prepend_prefix(l, e) < 0)
		return -1;
	if (kn_cgroup_open_from(no_cgroups ? NULL : l->pool_id, l->worker_n,
		!l->host->stay, l->policy->task_cpus, &l->cgroup, e) < 0 ||
	    kn_launch_layers(l->policy, l->host, l->cgroup, &l->layers, e) < 0)
		return -1;
	l->stub_fd = kn_fd_sealed("knit-worker", kn_stub_image,
	    (size_t)(kn_stub_image_end - kn_stub_image), 1, e);
	if (l->stub_fd < 0)
		return -1;
	l->null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (l->null_fd < 0)
		return kn_err_sys(e, KN_EK_HOST, "open /dev/null");
	if (make_wardens(l, e) < 0)
		return -1;
	return kn_guard_open(&l->guard, l->worker_n, e);
}

int
kn_launcher_new(const struct kn_policy *p, const struct kn_host *h,
    const uint8_t pool_id[16], uint32_t worker_n, const struct kn_layout *layout,
    struct kn_launcher **out, struct kn_err *e)
{
	const struct kn_launch_ops *ops = kn_launch_kind(p->launcher, e);
	struct kn_launcher *l = ops ? calloc(1, sizeof(*l)) : NULL;

	if (ops == NULL)
		return -1;
	if (l == NULL)
		return kn_err_sys(e, KN_EK_HOST, "allocate the launcher");
	l->ops = ops;
	l->policy = p;
	l->host = h;
	memcpy(l->pool_id, pool_id, sizeof(l->pool_id));
	l->worker_n = worker_n;
	l->layout = *layout;
	l->args_fd = l->stub_fd = l->null_fd = l->place_fd = -1;
	l->guard.proc.pidfd = l->guard.self_pidfd = -1;
	if (build(l, e) < 0) {
		kn_launcher_free(l);
		return -1;
	}
	*out = l;
	return 0;
}

void
kn_launcher_free(struct kn_launcher *l)
{
	if (l == NULL)
		return;
	kn_guard_dismiss(&l->guard); /* it ends while we tidy up */
	if (l->ops->settle != NULL)
		l->ops->settle(l);
	kn_cgroup_close(l->cgroup);
	if (l->ops->close != NULL)
		l->ops->close(l);
	if (l->ops->needs_place) /* direct has its place, and removes it, itself */
		kn_place_close(l->place);
	kn_bind_free(l->binds, l->policy->fs.mount_n);
	for (size_t i = 0; i < l->child_bind_n; i++)
		free(l->child_paths[i]);
	for (uint32_t w = 0; l->userns != NULL && w < l->worker_n; w++)
		kn_fd_close(&l->userns[w]);
	for (uint32_t w = 0; l->wardens != NULL && w < l->worker_n; w++)
		kn_warden_free(&l->wardens[w]);
	free(l->wardens);
	free(l->data);
	free(l->child_binds);
	free(l->child_paths);
	free(l->child_trees);
	free(l->userns);
	kn_argv_fini(&l->argv);
	kn_argv_fini(&l->packed);
	kn_fd_close(&l->args_fd);
	kn_fd_close(&l->stub_fd);
	kn_fd_close(&l->null_fd);
	kn_guard_close(&l->guard);
	free(l);
}

const struct kn_layers *
kn_launcher_layers(const struct kn_launcher *l)
{
	return &l->layers;
}

const struct kn_mount *
kn_launcher_out(const struct kn_launcher *l, int *out_dir)
{
	for (size_t i = 0; l != NULL && i < l->policy->fs.mount_n; i++)
		if (l->binds[i].out_fd >= 0) {
			*out_dir = l->binds[i].out_fd;
			return l->binds[i].mount;
		}
	return NULL;
}

const char *
kn_launcher_program(const struct kn_launcher *l)
{
	return l->program;
}

unsigned
kn_launcher_end_ms(const struct kn_launcher *l)
{
	bool engine = l != NULL && l->policy->launcher == KN_LAUNCHER_OCI &&
		      (l->policy->runtime == KN_RUNTIME_PODMAN ||
			  l->policy->runtime == KN_RUNTIME_DOCKER);

	return engine ? END_ENGINE_MS : END_MS;
}

const char *const *
kn_launcher_argv(const struct kn_launcher *l)
{
	return (const char *const *)l->argv.v;
}

uint64_t
kn_launcher_idle_memory(struct kn_launcher *l, uint32_t w)
{
	return kn_cgroup_memory_now(l->cgroup, w);
}
