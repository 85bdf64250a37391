/* sandbox/launch_direct.c: the kind `direct`: no namespaces. The launching child
 * becomes the stub itself, which works on the machine as it is, held by Landlock,
 * seccomp, resource limits and, as root, a uid of its own (sandbox/stub/direct.h).
 *
 * Files of a task are below a directory of the pool's (direct_place.h).
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ipc/err.h"
#include "sandbox/direct_place.h"
#include "sandbox/lack.h"
#include "sandbox/launch_int.h"
#include "sandbox/launch_tree.h"
#include "sandbox/uid.h"

enum { WORKER_MODE = 0700, ARG_PLACE = 1 };

/* Root without the means to be somebody else would give a task all of its files. */
static int
check_identity(const struct kn_launcher *l, struct kn_err *e)
{
	const struct kn_host *h = l->host;

	if (h->uid != 0 || (h->ids && h->worker_uid_n >= l->worker_n))
		return 0;
	kn_err_set(e, KN_EK_HOST,
	    "launcher direct: as uid 0 each of %u workers needs a uid of its own, and "
	    "%s",
	    l->worker_n,
	    h->ids
		? "fewer are mapped here"
		: "CAP_SETUID and CAP_SETGID, or unprivileged ids, are missing here");
	kn_err_hint(e, h->ids ? "use fewer workers" : "start it as an ordinary user");
	return -1;
}

static int
find(struct kn_launcher *l, struct kn_err *e)
{
	_Static_assert(KN_STUB_EXE_FD == 4, "the path below");
	snprintf(l->program, sizeof(l->program), "/proc/self/fd/4");
	if (check_identity(l, e) < 0)
		return -1;
	return kn_direct_place_make(l, e);
}

/* ---- what it shows ---- */

static int
refuse(const struct kn_mount *m, struct kn_err *e, const char *what)
{
	kn_err_set(e, KN_EK_CONFIG, "%s: %s: launcher direct has no mounts: %s",
	    m->origin, m->at, what);
	kn_err_hint(e, "show what is there by its own path, or use --launcher bwrap");
	return -1;
}

static bool
covers(const char *dir, const char *path)
{
	size_t n = strlen(dir);

	return strncmp(path, dir, n) == 0 && (path[n] == '/' || path[n] == '\0');
}

/* Rules of Landlock only ever add. */
static const struct kn_mount *
writable_around(const struct kn_launcher *l, const struct kn_mount *m)
{
	for (size_t i = 0; i < l->policy->fs.mount_n; i++) {
		const struct kn_mount *o = &l->policy->fs.mounts[i];

		if (o->type == KN_MOUNT_BIND && o->writable && covers(o->at, m->at))
			return o;
	}
	return NULL;
}

static int
check_bind(const struct kn_launcher *l, const struct kn_bind *b, struct kn_err *e)
{
	const struct kn_mount *m = b->mount;
	struct stat st;

	if (m->overlay)
		return refuse(m, e, "no overlay and no copy can be put there");
	if (m->pin)
		return refuse(m, e, "nothing in a folder that is shown can be denied");
	if (b->fd < 0)
		return 0;
	if (stat(m->at, &st) < 0 || st.st_dev != b->dev || st.st_ino != b->ino)
		return refuse(m, e, "files are seen where they are on the machine");
	if (!m->writable && writable_around(l, m) != NULL)
		return refuse(
		    m, e, "what lies in a writable folder cannot be read-only");
	return 0;
}

static int
check_mount(const struct kn_launcher *l, const struct kn_bind *b, struct kn_err *e)
{
	const struct kn_mount *m = b->mount;

	switch (m->type) {
	case KN_MOUNT_BIND:
		return check_bind(l, b, e);
	case KN_MOUNT_DIR:
	case KN_MOUNT_SYMLINK:
		return m->user && !m->implied
			   ? refuse(m, e, "nothing can be made at a place")
			   : 0;
	case KN_MOUNT_LINK:
	case KN_MOUNT_MASK:
	case KN_MOUNT_WHITE:
		return refuse(m, e, "nothing in a folder that is shown can be denied");
	case KN_MOUNT_DATA: /* of the root: the machine's own is shown */
	case KN_MOUNT_TMPFS:
		break;
	}
	return 0;
}

static int
prepare(struct kn_launcher *l, struct kn_err *e)
{
	for (size_t i = 0; i < l->policy->fs.mount_n; i++)
		if (check_mount(l, &l->binds[i], e) < 0)
			return -1;
	for (int i = 0; i < 2; i++) {
		struct kn_argv *a = i == 0 ? &l->argv : &l->packed;
		char *first = strdup(l->program), *place = NULL;

		a->v = calloc(3, sizeof(a->v[0]));
		if (a->v == NULL || first == NULL ||
		    asprintf(&place, "%s/w0", l->place) < 0) {
			free(first);
			return kn_err_sys(e, KN_EK_HOST, "build the stub's arguments");
		}
		a->v[0] = first;
		a->v[ARG_PLACE] = place;
		a->n = 2;
		a->cap = 3;
	}
	return 0;
}

static uint32_t
binds(const struct kn_launcher *l, struct kn_boot_bind *out)
{
	uint32_t n = 0;

	for (size_t i = 0; i < l->policy->fs.mount_n; i++) {
		const struct kn_bind *b = &l->binds[i];
		bool bind = b->mount->type == KN_MOUNT_BIND && !b->missing;

		if (bind || b->mount->type == KN_MOUNT_DATA)
			out[n++] = (struct kn_boot_bind){ .at = b->mount->at,
				.dev = b->dev,
				.ino = b->ino,
				.writable = bind && b->mount->writable,
				.check = bind && b->fd >= 0 };
	}
	return n;
}

/* ---- a worker ---- */

static int
plan(struct kn_launcher *l, uint32_t w, struct kn_child *c, struct kn_err *e)
{
	char **arg = &l->packed.v[l->packed.n - 1], *path = NULL, name[16];
	int fd;

	snprintf(name, sizeof(name), "w%u", w);
	if (asprintf(&path, "%s/%s", l->place, name) < 0)
		return kn_err_sys(e, KN_EK_HOST, "name a worker's directory");
	free(*arg);
	*arg = path;
	c->root = l->host->ids;
	c->nested = false;
	if (mkdirat(l->place_fd, name, WORKER_MODE) < 0 && errno != EEXIST)
		return kn_err_sys(e, KN_EK_HOST, "make %s", path);
	fd = openat(l->place_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || (c->root && fchown(fd, c->uid, c->uid) < 0)) {
		kn_err_sys(e, KN_EK_HOST, "prepare %s", path);
		kn_fd_close(&fd);
		return -1;
	}
	kn_fd_close(&fd);
	return 0;
}

static int
boot(struct kn_launcher *l, uint32_t w, struct kn_boot *b, int fds[KN_BOOT_FD_N],
    struct kn_err *e)
{
	(void)w;
	(void)fds;
	(void)e;
	b->flags &= ~(uint32_t)KN_BOOT_NEW_IPC; /* there is none: calls are refused */
	b->flags |= KN_BOOT_DIRECT;
	if (l->policy->network == KN_NET_NONE)
		b->flags |= KN_BOOT_NO_TCP;
	if (l->host->ids)
		b->flags |= KN_BOOT_OWN_UID;
	return 0;
}

static bool
has_uid_alone(const struct kn_launcher *l, uint32_t w)
{
	return l->host->ids && kn_uid_is_one_supervisors(l->host->worker_uid_base + w);
}

/* Where others may have the uid: what is below the worker, as long as it lives. */
static void
kill_worker(struct kn_launcher *l, uint32_t w, const struct kn_launched *lw)
{
	struct pollfd ended = { .fd = lw->proc.pidfd, .events = POLLIN };

	if (!has_uid_alone(l, w) && poll(&ended, 1, 0) == 0)
		kn_tree_kill(lw->proc.pid);
}

static void
release(struct kn_launcher *l, uint32_t w)
{
	if (l->place_fd >= 0 && has_uid_alone(l, w))
		kn_tree_kill_uid(l->host->worker_uid_base + w);
	kn_direct_place_drop(l, w);
}

/* Of each layer that does not hold. */
static const char *const without[KN_LAYER_N] = {
	[KN_LAYER_NAMESPACES] =
	    "a task is on the machine itself: it sees names, sizes and owners of all "
	    "files, and all processes with their command lines; what it fills in its "
	    "directories has no limit but the file system's; there is no /dev/shm, no "
	    "System V IPC, no socket with a path, and /tmp and /task have other names",
	[KN_LAYER_UID] =
	    "tasks have the caller's uid, so that calls that change modes, "
	    "times and attributes of files are refused to them, for their "
	    "own files too",
	[KN_LAYER_LANDLOCK] =
	    "files that a task's uid may read or write are open to it; with the "
	    "caller's uid it reaches his processes by signals, this one too",
	[KN_LAYER_CG_MEMORY] = "memory is added up by watching",
	[KN_LAYER_CG_PIDS] =
	    "processes are limited by uid: where that is the caller's, with all others "
	    "that he has",
	[KN_LAYER_CG_CPU] = "processor time is added up by watching",
};

static const char *
lacks(const struct kn_policy *p, enum kn_layer layer)
{
	(void)p;
	return layer == KN_LAYER_NAMESPACES ? "launcher direct has none" : NULL;
}

const char *
kn_launcher_lacks(const struct kn_launcher *l, enum kn_layer layer)
{
	bool holds = l->layers.state[layer] == KN_LAYER_ENFORCED;

	return l->ops == &kn_launch_direct && !holds ? without[layer] : NULL;
}

bool
kn_launcher_files(
    const struct kn_launcher *l, uint32_t w, uint64_t *out_dev, uint32_t *out_uid)
{
	struct stat st;

	if (l == NULL || l->ops != &kn_launch_direct || fstat(l->place_fd, &st) < 0)
		return false;
	*out_dev = st.st_dev;
	*out_uid = l->host->ids ? l->host->worker_uid_base + w : l->host->uid;
	return true;
}

const struct kn_launch_ops kn_launch_direct = {
	.name = "direct",
	.find = find,
	.prepare = prepare,
	.plan = plan,
	.boot = boot,
	.binds = binds,
	.kill = kill_worker,
	.release = release,
	.close = kn_direct_place_close,
	.sweep = kn_direct_place_sweep,
	.lacks = lacks,
	.lead = { "knit-worker: " },
	.no_mounts = true,
	/* the stub and the running cell's init */
	.pids_overhead = 2,
	.mem_overhead = 1ull << 20,
};
