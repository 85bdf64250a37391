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

enum {
	FEW_BINDS = 16,	  /* not worth a look at the limit */
	FDS_BESIDES = 512 /* what the rest of the program has open */
};

/* The static stub, embedded by the linker (Makefile). */
extern const char kn_stub_image[], kn_stub_image_end[];

static int
check_host(struct kn_launcher *l, struct kn_err *e)
{
	const struct kn_host *h = l->host;

	if (h->bwrap[0] != '\0')
		snprintf(l->bwrap, sizeof(l->bwrap), "%s", h->bwrap);
	else if (kn_host_find_bwrap(l->bwrap, sizeof(l->bwrap), e) < 0)
		return -1;
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

/* A directory to mount the private tmpfs over, in the child's own mount namespace:
 * one that hides neither bwrap nor any path that bwrap is told to bind. */
static const char *
choose_mount_dir(const struct kn_launcher *l)
{
	static const char *const candidates[] = { "/tmp", "/mnt", "/var/tmp", "/media",
		"/srv" };

	for (size_t i = 0; i < sizeof(candidates) / sizeof(candidates[0]); i++) {
		size_t n = strlen(candidates[i]);
		struct stat st;
		bool free_here = lstat(candidates[i], &st) == 0 &&
				 S_ISDIR(st.st_mode) &&
				 strncmp(l->bwrap, candidates[i], n) != 0;

		for (size_t j = 0; free_here && j < l->policy->fs.mount_n; j++) {
			const struct kn_bind *b = &l->binds[j];

			if (b->fd < 0 && b->path != NULL &&
			    strncmp(b->path, candidates[i], n) == 0)
				free_here = false;
		}
		if (free_here)
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

static int
plan_data(struct kn_launcher *l, struct kn_err *e)
{
	size_t n = l->policy->fs.mount_n;

	l->data = calloc(n + 1, sizeof(l->data[0]));
	if (l->data == NULL)
		return kn_err_sys(e, KN_EK_HOST, "allocate the table of files");
	for (size_t i = 0; i < n; i++) {
		const struct kn_mount *m = &l->policy->fs.mounts[i];

		if (m->type == KN_MOUNT_DATA)
			l->data[l->data_n++] =
			    (struct kn_child_data){ .path = m->data ? NULL : m->source,
				    .p = m->data,
				    .n = m->data_n };
		else if (m->type == KN_MOUNT_MASK && !m->dir)
			l->data[l->data_n++] = (struct kn_child_data){ .p = "" };
	}
	return 0;
}

/* What bwrap is told for each mount: a path, or the number that a file by content has
 * in the child. numbers: room for one text per mount. */
static void
fill_sources(const struct kn_launcher *l, const char **source, char (*numbers)[16])
{
	size_t child = 0;
	int data = KN_CHILD_DATA_FD;

	for (size_t i = 0; i < l->policy->fs.mount_n; i++) {
		const struct kn_bind *b = &l->binds[i];

		if (b->mount->type == KN_MOUNT_DATA ||
		    (b->mount->type == KN_MOUNT_MASK && !b->mount->dir)) {
			snprintf(numbers[i], sizeof(numbers[i]), "%d", data++);
			source[i] = numbers[i];
		} else if (b->mount->type == KN_MOUNT_BIND && !b->missing) {
			source[i] = l->child_binds != NULL && b->fd >= 0
					? l->child_paths[child++]
					: b->path;
		}
	}
}

/* launcher.prefix: what is executed in bwrap's place, and executes it. It has no
 * environment, PATH neither, so it is looked for here. */
static int
add_prefix(struct kn_launcher *l, struct kn_err *e)
{
	const struct kn_policy *p = l->policy;
	const char *path = getenv("PATH"), *name;

	if (p->prefix_n == 0) {
		snprintf(l->exec, sizeof(l->exec), "%s", l->bwrap);
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
	if (kn_argv_prepend(&l->argv, p->prefix, p->prefix_n, e) < 0)
		return -1;
	return kn_argv_prepend(&l->packed, p->prefix, p->prefix_n, e);
}

static int
build_argv(struct kn_launcher *l, struct kn_err *e)
{
	size_t n = l->policy->fs.mount_n, blob_n = 0;
	char(*numbers)[16] = calloc(n + 1, sizeof(*numbers));
	const char **source = calloc(n + 1, sizeof(*source));
	struct kn_bwrap_req r = { .bwrap = l->bwrap,
		.policy = l->policy,
		.source = source,
		.stub = "/proc/self/fd/4" };
	char *blob = NULL;
	int rc = -1;

	_Static_assert(KN_STUB_EXE_FD == 4, "the path above");
	if (source == NULL || numbers == NULL) {
		free(source);
		free(numbers);
		return kn_err_sys(e, KN_EK_HOST, "build bwrap's arguments");
	}
	fill_sources(l, source, numbers);
	if (kn_bwrap_argv(&r, &l->argv, e) == 0 &&
	    kn_bwrap_pack(&l->argv, KN_CHILD_ARGS_FD, &l->packed, &blob, &blob_n, e) ==
		0)
		rc = 0;
	free(source);
	free(numbers);
	if (blob != NULL) {
		l->args_fd = kn_fd_sealed("knit-args", blob, blob_n, 0, e);
		rc = l->args_fd >= 0 ? 0 : -1;
		free(blob);
	}
	return rc < 0 ? -1 : add_prefix(l, e);
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

static int
build(struct kn_launcher *l, struct kn_err *e)
{
	size_t user_n = 0;

	if (check_host(l, e) < 0 || raise_nofile(l, e) < 0 ||
	    kn_bind_resolve(l->policy, &l->binds, e) < 0)
		return -1;
	for (size_t i = 0; i < l->policy->fs.mount_n; i++)
		user_n += l->binds[i].fd >= 0;
	if (l->host->root && user_n > 0 && plan_child_binds(l, user_n, e) < 0)
		return -1;
	if (plan_data(l, e) < 0 || build_argv(l, e) < 0)
		return -1;
	if (kn_cgroup_open_from(l->host->no_cgroups ? NULL : l->pool_id, l->worker_n,
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
	if (l->host->embedded) {
		l->wardens = calloc(l->worker_n, sizeof(*l->wardens));
		if (l->wardens == NULL)
			return kn_err_sys(e, KN_EK_HOST, "allocate the launcher");
	}
	return kn_guard_open(&l->guard, l->worker_n, e);
}

int
kn_launcher_new(const struct kn_policy *p, const struct kn_host *h,
    const uint8_t pool_id[16], uint32_t worker_n, const struct kn_layout *layout,
    struct kn_launcher **out, struct kn_err *e)
{
	struct kn_launcher *l = calloc(1, sizeof(*l));

	if (l == NULL)
		return kn_err_sys(e, KN_EK_HOST, "allocate the launcher");
	l->policy = p;
	l->host = h;
	memcpy(l->pool_id, pool_id, sizeof(l->pool_id));
	l->worker_n = worker_n;
	l->layout = *layout;
	l->args_fd = l->stub_fd = l->null_fd = -1;
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
	kn_cgroup_close(l->cgroup);
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
