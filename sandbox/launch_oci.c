/* sandbox/launch_oci.c: the kind `oci`: each worker is a container, under runc or crun
 * by what is here; of podman or docker by launch_engine.c.
 *
 *   <place>/root, mask-d, mask-f   once per pool (oci_root.h)
 *   <place>/w<N>/config.json       once per worker: its uid differs (oci_config.h)
 *   <place>/w<N>/state             the runtime's own, emptied after each reap
 *
 * The runtime runs as the worker's user and without capabilities, as bwrap does, so its
 * container has one user namespace that maps one id. It stays as the container's parent
 * (in a cgroup of ours, not the worker's: its threads and memory are not the task's)
 * and dies by the means that bwrap dies by. What it started dies with it, since the
 * stub asks for that; until then, and if it did not, by kill(), by its warden
 * (launch_warden.h) and by the end of its socket.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ipc/err.h"
#include "ipc/fd.h"
#include "sandbox/lack.h"
#include "sandbox/launch_oci_int.h"
#include "sandbox/launch_tree.h"
#include "sandbox/oci_config.h"
#include "sandbox/oci_left.h"
#include "sandbox/oci_root.h"
#include "sandbox/place.h"

/* The first that is there is "auto", of the first two. */
static const enum kn_runtime known[] = { KN_RUNTIME_RUNC, KN_RUNTIME_CRUN,
	KN_RUNTIME_PODMAN, KN_RUNTIME_DOCKER };

static int
find(struct kn_launcher *l, struct kn_err *e)
{
	enum kn_runtime want = l->policy->runtime;
	struct kn_oci *o = l->own = calloc(1, sizeof(*o));

	if (o == NULL)
		return kn_err_sys(e, KN_EK_HOST, "allocate the launcher");
	if (l->host->uid == 0 && !l->host->root) {
		kn_err_set(e, KN_EK_HOST,
		    "oci: uid 0 of a user namespace without other ids: a runtime takes "
		    "that for root, and fails");
		kn_err_hint(e, "start it as the user outside, or: --launcher bwrap");
		return -1;
	}
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		bool engine = known[i] > KN_RUNTIME_CRUN;

		if (want != known[i] && (want != KN_RUNTIME_AUTO || engine))
			continue;
		o->runtime = known[i];
		o->engine = engine;
		if (kn_host_find_program(
			kn_runtime_name(known[i]), l->program, sizeof(l->program)))
			return 0;
	}
	kn_err_set(e, KN_EK_HOST, "oci: no %s in /usr/bin, /usr/sbin, /usr/local/bin",
	    want == KN_RUNTIME_AUTO ? "runc or crun" : kn_runtime_name(want));
	if (want != KN_RUNTIME_AUTO)
		kn_err_hint(e, "install the package of that name, or: --launcher oci");
	kn_lack_hint(KN_LACK_RUNTIME_MISSING, l->host->uid == 0, e);
	return -1;
}

/* What is bound for each mount: as root the caller's are where the child brings them.
 */
static void
fill_sources(const struct kn_launcher *l, struct kn_oci *o)
{
	size_t child = 0;

	for (size_t i = 0; i < l->policy->fs.mount_n; i++) {
		const struct kn_bind *b = &l->binds[i];

		if (b->mount->type == KN_MOUNT_MASK)
			o->source[i] = o->masks[b->mount->dir];
		else if (b->mount->type == KN_MOUNT_BIND && !b->missing)
			/* (a daemon does not see what the child mounts) */
			o->source[i] = l->child_binds != NULL && b->fd >= 0 &&
					       o->runtime != KN_RUNTIME_DOCKER
					   ? l->child_paths[child++]
					   : b->path;
	}
}

/* Where two are at one place only the last is bound: an engine refuses the second. */
static void
drop_covered(const struct kn_launcher *l, struct kn_oci *o)
{
	const struct kn_mount *m = l->policy->fs.mounts;
	size_t n = l->policy->fs.mount_n;

	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < n && o->source[i] != NULL; k++) {
			bool after = m[k].user == m[i].user ? k > i : m[k].user;

			if (after && o->source[k] != NULL &&
			    strcmp(m[k].at, m[i].at) == 0)
				o->source[i] = NULL;
		}
}

static int
make_argv(struct kn_launcher *l, struct kn_oci *o, uint32_t w, struct kn_err *e)
{
	struct kn_oci_worker *x = &o->w[w];
	bool crun = o->runtime == KN_RUNTIME_CRUN;
	char state[340], id[64];
	const char *words[12];
	size_t n = 0;

	x->bridge = -1;
	snprintf(x->dir, sizeof(x->dir), "%s/w%u", l->place, w);
	snprintf(state, sizeof(state), "%s/state", x->dir);
	snprintf(id, sizeof(id), "knit-%s-w%u", o->pool, w);
	if (o->engine)
		return kn_engine_command(l, w, e);
	words[n++] = l->program;
	words[n++] = "--root";
	words[n++] = state;
	if (crun) /* the stub joins the cgroups that there are */
		words[n++] = "--cgroup-manager=disabled";
	words[n++] = "run";
	words[n++] = "--preserve-fds=2";
	words[n++] = "--bundle";
	words[n++] = x->dir;
	words[n++] = id;
	_Static_assert(
	    KN_STUB_SOCK_FD == 3 && KN_STUB_EXE_FD == 4, "the two preserved");
	if (kn_argv_prepend(&x->argv, words, n, e) < 0)
		return -1;
	return kn_argv_prepend(&x->argv, l->policy->prefix, l->policy->prefix_n, e);
}

/* runc copies itself into memory that counts as a file before it enters a container. */
static int
check_limits(const struct kn_launcher *l, const struct kn_oci *o, struct kn_err *e)
{
	struct rlimit fsize;
	struct stat st;

	if (o->runtime != KN_RUNTIME_RUNC || stat(l->program, &st) < 0 ||
	    getrlimit(RLIMIT_FSIZE, &fsize) < 0 || fsize.rlim_cur > (rlim_t)st.st_size)
		return 0;
	kn_err_set(e, KN_EK_HOST,
	    "oci: runc copies itself (%lld bytes), and the limit of file sizes is %llu",
	    (long long)st.st_size, (unsigned long long)fsize.rlim_cur);
	kn_lack_hint(KN_LACK_FILE_SIZE, l->host->uid == 0, e);
	return -1;
}

static int
prepare(struct kn_launcher *l, struct kn_err *e)
{
	struct kn_oci *o = l->own;

	if (o->engine ? kn_engine_check(l, e) < 0 : check_limits(l, o, e) < 0)
		return -1;
	for (size_t i = 0; i < sizeof(l->pool_id); i++)
		snprintf(o->pool + 2 * i, 3, "%02x", l->pool_id[i]);
	o->source = calloc(l->policy->fs.mount_n + 1, sizeof(o->source[0]));
	o->w = calloc(l->worker_n, sizeof(o->w[0]));
	if (o->source == NULL || o->w == NULL)
		return kn_err_sys(e, KN_EK_HOST, "allocate the launcher");
	snprintf(o->masks[0], sizeof(o->masks[0]), "%s/mask-f", l->place);
	snprintf(o->masks[1], sizeof(o->masks[1]), "%s/mask-d", l->place);
	fill_sources(l, o);
	drop_covered(l, o);
	for (uint32_t w = 0; w < l->worker_n; w++)
		if (make_argv(l, o, w, e) < 0)
			return -1;
	if (kn_oci_root_make(l->place, l->policy, l->binds, o->source, e) < 0)
		return -1;
	/* For --dry-run: of the first worker. */
	return kn_argv_prepend(&l->argv,
	    (const char *const *)o->w[0].argv.v + l->policy->prefix_n,
	    o->w[0].argv.n - l->policy->prefix_n, e);
}

/* Read by the worker's user. */
static int
write_config(const char *dir, const char *text)
{
	char path[340];
	KN_OWN_FD int fd = -1;
	size_t n = strlen(text);

	snprintf(path, sizeof(path), "%s/config.json", dir);
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0444);
	return fd >= 0 && kn_fd_write_all(fd, text, n) == 0 && fchmod(fd, 0444) == 0
		   ? 0
		   : -1;
}

int
kn_oci_make_dir(const char *dir)
{
	if (mkdir(dir, 0700) == 0)
		return chmod(dir, 0700); /* whatever the caller's umask is */
	return errno == EEXIST ? kn_place_empty(dir) : -1;
}

static int
make_bundle(
    struct kn_launcher *l, uint32_t w, const struct kn_child *c, struct kn_err *e)
{
	struct kn_oci *o = l->own;
	struct kn_oci_worker *x = &o->w[w];
	char name[16], state[340], root[340], *text;
	const struct kn_oci_req r = { .policy = l->policy,
		.source = o->source,
		.rootfs = root,
		.uid = c->root ? c->uid : l->host->uid,
		.gid = c->root ? c->uid : l->host->gid,
		.nofile = l->nofile,
		.flat = o->runtime == KN_RUNTIME_CRUN,
		.pool = o->pool,
		.worker = name };
	int rc;

	snprintf(name, sizeof(name), "w%u", w);
	snprintf(root, sizeof(root), "%s/root", l->place);
	snprintf(state, sizeof(state), "%s/state", x->dir);
	text = kn_oci_config(&r, e);
	if (text == NULL)
		return -1;
	rc = kn_oci_make_dir(x->dir) < 0 || kn_oci_make_dir(state) < 0 ||
	     write_config(x->dir, text) < 0;
	/* The runtime writes to its state only: what is next to it is believed. */
	if (rc == 0 && c->root)
		rc = chown(state, c->uid, c->uid) < 0 ||
		     chown(x->dir, (uid_t)-1, c->uid) < 0 || chmod(x->dir, 0710) < 0;
	if (rc != 0)
		kn_err_sys(e, KN_EK_HOST, "make the bundle %s", x->dir);
	free(text);
	x->made = rc == 0;
	return rc == 0 ? 0 : -1;
}

static int
plan(struct kn_launcher *l, uint32_t w, struct kn_child *c, struct kn_err *e)
{
	struct kn_oci *o = l->own;

	if (o->engine)
		return kn_engine_plan(l, w, c, e);
	if (!o->w[w].made && make_bundle(l, w, c, e) < 0)
		return -1;
	c->argv = o->w[w].argv.v;
	return 0;
}

static int
boot(struct kn_launcher *l, uint32_t w, struct kn_boot *b, int fds[KN_BOOT_FD_N],
    struct kn_err *e)
{
	int join[KN_BOOT_FD_JOIN_LAST - KN_BOOT_FD_JOIN + 1];
	const struct kn_oci *o = l->own;
	size_t n = 0;

	/* Out of docker's groups only root may take anything. */
	if (o->runtime != KN_RUNTIME_DOCKER || l->host->root)
		n = kn_cgroup_join_fds(
		    l->cgroup, w, join, sizeof(join) / sizeof(join[0]));
	for (size_t i = 0; i < n; i++) {
		int fd = fcntl(join[i], F_DUPFD_CLOEXEC, 0);

		if (fd < 0)
			return kn_err_sys(e, KN_EK_HOST, "copy a descriptor");
		fds[KN_BOOT_FD_JOIN + i] = fd;
		b->has |= 1u << (KN_BOOT_FD_JOIN + i);
	}
	b->flags |= KN_BOOT_NEST;
	return 0;
}

/* The container is below the runtime's process, in a session of its own. */
static void
kill_worker(struct kn_launcher *l, uint32_t w, const struct kn_launched *lw)
{
	struct pollfd ended = { .fd = lw->proc.pidfd, .events = POLLIN };

	if (((const struct kn_oci *)l->own)->engine)
		kn_engine_kill(l, w, lw);
	if (poll(&ended, 1, 0) == 0) /* else its number may be another's */
		kn_tree_kill(lw->proc.pid);
}

/* runc's first process in a container waits for runc in a session of its own, and for
 * ever, if that dies. Of an engine none is below us. */
static bool
gathers(const struct kn_launcher *l)
{
	return !((const struct kn_oci *)l->own)->engine;
}

static void
release(struct kn_launcher *l, uint32_t w)
{
	struct kn_oci *o = l->own;
	char state[340];

	if (o->engine)
		kn_engine_release(l, w);
	if (o->engine || !o->w[w].made)
		return;
	snprintf(state, sizeof(state), "%s/state", o->w[w].dir);
	kn_place_empty(state);
}

static void
close_own(struct kn_launcher *l)
{
	struct kn_oci *o = l->own;

	for (uint32_t w = 0; o != NULL && o->w != NULL && w < l->worker_n; w++) {
		kn_argv_fini(&o->w[w].argv);
		if (o->w[w].made && o->w[w].bridge > 0)
			kn_fd_close(&o->w[w].bridge);
	}
	if (o != NULL) {
		free(o->source);
		free(o->w);
	}
	free(o);
	l->own = NULL;
}

static void
leave(const char *place)
{
	kn_oci_left_kill(place);
	kn_engine_left(place);
}

static void
sweep(const struct kn_launcher *l)
{
	kn_place_sweep(l->place, leave);
}

/* An ordinary user may not take a container out of the groups of docker's. */
static const char *
lacks(const struct kn_policy *p, enum kn_layer layer)
{
	bool cgroup = layer == KN_LAYER_CG_MEMORY || layer == KN_LAYER_CG_PIDS ||
		      layer == KN_LAYER_CG_CPU;

	return cgroup && p->runtime == KN_RUNTIME_DOCKER && geteuid() != 0
		   ? "docker keeps its containers in groups of its own"
		   : NULL;
}

/* What runc and crun print, the engines after a word of theirs. */
static const struct kn_launch_sign signs[] = {
	{ "esource temporarily unavailable", true, false, KN_LACK_PROCESSES },
	{ "o space left on device", true, false, KN_LACK_NS_LIMIT },
	{ "unshare", true, true, KN_LACK_USERNS_OTHER },
	{ "clone: ", true, true, KN_LACK_USERNS_OTHER },
	{ "create keyring", true, true, KN_LACK_USERNS_OTHER },
	{ "session key", true, true, KN_LACK_USERNS_OTHER },
	{ "final child's PID", true, true, KN_LACK_USERNS_OTHER }, /* clone refused */
	{ "sethostname", true, true, KN_LACK_USERNS_OTHER },
	{ "uid_map", true, true, KN_LACK_USERNS_OTHER },
	{ "gid_map", true, true, KN_LACK_USERNS_OTHER },
	{ "userns", true, true, KN_LACK_USERNS_OTHER },
	{ "user namespace", true, true, KN_LACK_USERNS_OTHER },
	{ "mounting \"proc\"", true, false, KN_LACK_PROC_MASKED },
	{ "mount `proc`", true, false, KN_LACK_PROC_MASKED },
	{ "set propagation", true, false, KN_LACK_MOUNT },
	{ "pivot_root", true, false, KN_LACK_PIVOT_ROOT },
	{ "/proc/self/fd/4", true, false, KN_LACK_MEMFD },
	{ "no such file or directory", false, false, KN_LACK_NONE },
	{ "No such file or directory", false, false, KN_LACK_NONE },
	{ "source path does not exist", false, false, KN_LACK_NONE }, /* docker */
};

static void
hint(const struct kn_launcher *l, struct kn_err *e)
{
	kn_err_hint(e,
	    "what it runs is printed by --dry-run; %s --version shows whether "
	    "it runs at all",
	    l->program);
}

const struct kn_launch_ops kn_launch_oci = {
	.name = "oci",
	.needs_place = true,
	.joins_inside = true,
	.gathers = gathers,
	.find = find,
	.prepare = prepare,
	.plan = plan,
	.boot = boot,
	.kill = kill_worker,
	.release = release,
	.close = close_own,
	.settle = kn_engine_settle,
	.sweep = sweep,
	.lacks = lacks,
	/* runc, podman, docker; crun has none, and what maps ids for it complains first
	 */
	.lead = { "level=error msg=\"", "Error: ", "docker: " },
	.lead_skipped = true,
	.says_last = true,
	.signs = signs,
	.sign_n = sizeof(signs) / sizeof(signs[0]),
	.hint = hint,
	/* the stub, and the running cell's init */
	.pids_overhead = 2,
	.mem_overhead = 2ull << 20,
};
