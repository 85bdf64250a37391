/* sandbox/bind.c: resolve bind sources, and refuse targets that would not hold.
 *
 * A read-only source may be named through symbolic links: the caller's own shell would
 * follow them too. A writable one may not be named through a link that a task could
 * have left (CVE-2024-42472 is that mistake): only links in a directory where neither
 * the caller nor a task of his can write are followed.
 */
#include "sandbox/bind.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "ipc/err.h"
#include "ipc/fd.h"
#include "sandbox/lack.h"
#include "sandbox/policy.h"

enum { PATH_CAP = 4096, LINKS_MAX = 40 };

static int
open_beneath(int dir_fd, const char *path, uint64_t resolve)
{
	struct open_how how = { .flags = O_PATH | O_CLOEXEC, .resolve = resolve };

	return (int)syscall(SYS_openat2, dir_fd, path, &how, sizeof(how));
}

/* Whether a link in this directory can only have been put there by the system. */
static bool
directory_is_settled(int fd, bool is_root_dir)
{
	struct stat st;

	if (is_root_dir)
		return true;
	return geteuid() != 0 && fstat(fd, &st) == 0 && st.st_uid != geteuid() &&
	       faccessat(fd, ".", W_OK, AT_EACCESS) < 0;
}

/* Replace the link `name` at the front of rest by its text. */
static int
expand_link(int dir_fd, const char *name, char *rest)
{
	char text[PATH_CAP], joined[2 * PATH_CAP];
	ssize_t n = readlinkat(dir_fd, name, text, sizeof(text) - 1);

	if (n < 0)
		return -1;
	text[n] = '\0';
	snprintf(joined, sizeof(joined), "%s/%s", text, rest);
	if (strlen(joined) >= PATH_CAP) {
		errno = ENAMETOOLONG;
		return -1;
	}
	memcpy(rest, joined, strlen(joined) + 1);
	return 0;
}

static int
refuse_link(const struct kn_mount *m, const char *walked, struct kn_err *e)
{
	char real[PATH_CAP];

	kn_err_set(e, KN_EK_CONFIG,
	    "%s: %s: %s is a symbolic link, which a writable bind does not follow",
	    m->origin, m->source, walked);
	if (realpath(m->source, real) != NULL)
		kn_err_hint(e, "if the link is yours, name what it means: %s", real);
	return -1;
}

/* Walk an absolute path by components, following settled links only. */
static int
open_settled(const struct kn_mount *m, struct kn_err *e)
{
	char rest[PATH_CAP], walked[PATH_CAP] = "", *name = rest;
	KN_OWN_FD int fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	bool at_root = true;
	int links = 0;

	snprintf(rest, sizeof(rest), "%s", m->source);
	while (fd >= 0 && *(name += strspn(name, "/")) != '\0') {
		size_t n = strcspn(name, "/"), used = strlen(walked);
		char *tail = name + n + (name[n] == '/');
		KN_OWN_FD int next = -1;
		struct stat st;

		name[n] = '\0';
		snprintf(walked + used, sizeof(walked) - used, "/%s", name);
		next = openat(fd, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
		if (next < 0 || fstat(next, &st) < 0)
			return kn_err_sys(
			    e, KN_EK_CONFIG, "%s: bind %s", m->origin, m->source);
		if (S_ISLNK(st.st_mode)) {
			char link[PATH_CAP];

			if (!directory_is_settled(fd, at_root) || ++links > LINKS_MAX)
				return refuse_link(m, walked, e);
			snprintf(link, sizeof(link), "%s", name);
			memmove(rest, tail, strlen(tail) + 1);
			if (expand_link(fd, link, rest) < 0)
				return kn_err_sys(e, KN_EK_CONFIG, "%s: bind %s",
				    m->origin, m->source);
			name = rest;
			walked[used] = '\0';
			if (rest[0] != '/')
				continue;
			next = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
			walked[0] = '\0';
			at_root = true;
		} else {
			name = tail;
			at_root = false;
		}
		kn_fd_close(&fd);
		fd = kn_fd_take(&next);
	}
	if (fd < 0)
		return kn_err_sys(e, KN_EK_CONFIG, "%s: bind %s", m->origin, m->source);
	return kn_fd_take(&fd);
}

int
kn_bind_open(const struct kn_mount *m, struct kn_err *e)
{
	int fd, no;

	if (!m->writable) {
		fd = open(m->source, O_PATH | O_CLOEXEC);
		if (fd < 0)
			return kn_err_sys(
			    e, KN_EK_CONFIG, "%s: bind %s", m->origin, m->source);
		return fd;
	}
	fd = open_beneath(AT_FDCWD, m->source, RESOLVE_NO_SYMLINKS);
	if (fd >= 0)
		return fd;
	if (errno == ELOOP)
		return open_settled(m, e);
	no = errno;
	kn_err_sys(e, KN_EK_CONFIG, "%s: bind %s", m->origin, m->source);
	if (e != NULL && kn_lack_openat2(no))
		kn_lack_hint(KN_LACK_OPENAT2, geteuid() == 0, e);
	return -1;
}

static char *
path_of(int fd)
{
	char link[64], text[PATH_CAP];
	ssize_t n;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, text, sizeof(text) - 1);
	if (n <= 0 || text[0] != '/')
		return NULL;
	text[n] = '\0';
	return strdup(text);
}

static int
resolve_one(struct kn_bind *b, struct kn_err *e)
{
	const struct kn_mount *m = b->mount;
	struct stat st;

	if (m->type != KN_MOUNT_BIND)
		return 0;
	if (!m->user) {
		/* Of the system root: root's own paths, followed as bwrap will. */
		if (stat(m->source, &st) < 0) {
			if (m->optional && (errno == ENOENT || errno == ENOTDIR)) {
				b->missing = true;
				return 0;
			}
			return kn_err_sys(
			    e, KN_EK_HOST, "%s: bind %s", m->origin, m->source);
		}
		b->is_dir = S_ISDIR(st.st_mode);
		b->path = strdup(m->source);
	} else {
		b->fd = kn_bind_open(m, e);
		if (b->fd < 0)
			return -1;
		if (fstat(b->fd, &st) < 0)
			return kn_err_sys(
			    e, KN_EK_CONFIG, "%s: bind %s", m->origin, m->source);
		if (S_ISBLK(st.st_mode) || S_ISCHR(st.st_mode) || S_ISLNK(st.st_mode))
			return kn_err_set(e, KN_EK_CONFIG,
			    "%s: bind %s: neither a directory nor a file", m->origin,
			    m->source);
		b->dev = st.st_dev;
		b->ino = st.st_ino;
		b->is_dir = S_ISDIR(st.st_mode);
		b->path = path_of(b->fd);
		if (m->overlay && !b->is_dir)
			return kn_err_set(e, KN_EK_CONFIG, "%s: %s: it is no directory",
			    m->origin, m->source);
	}
	if (b->path == NULL)
		return kn_err_sys(
		    e, KN_EK_HOST, "%s: find the path of %s", m->origin, m->source);
	return 0;
}

/* path is dir itself or below it; *out_rest the part after it. */
static bool
below(const char *path, const char *dir, const char **out_rest)
{
	size_t n = strcmp(dir, "/") == 0 ? 0 : strlen(dir);

	if (strncmp(path, dir, n) != 0 || (path[n] != '/' && path[n] != '\0'))
		return false;
	*out_rest = path + n + (path[n] == '/');
	return true;
}

/* Places that every task has for itself, or that are the sandbox's own. Below /tmp,
 * /dev/shm and /task a bind is put back on top of each cell's own. */
static int
check_reserved(const struct kn_mount *m, struct kn_err *e)
{
	static const struct {
		const char *at;
		bool below_is_fine;
	} reserved[] = {
		{ "/tmp", true },
		{ "/dev/shm", true },
		{ "/task", true },
		{ "/dev", false },
		{ "/proc", false },
	};
	const char *rest;

	if (!m->user || m->type == KN_MOUNT_TMPFS || kn_bind_is_denial(m))
		return 0;
	if (strcmp(m->at, "/") == 0)
		return kn_err_set(e, KN_EK_CONFIG,
		    "%s: the root itself cannot be a target", m->origin);
	for (size_t i = 0; i < sizeof(reserved) / sizeof(reserved[0]); i++) {
		if (!below(m->at, reserved[i].at, &rest))
			continue;
		if (reserved[i].below_is_fine && *rest != '\0' &&
		    m->type == KN_MOUNT_BIND)
			return 0;
		kn_err_set(e, KN_EK_CONFIG,
		    "%s: target %s: each task has a %s of its own, which would hide it",
		    m->origin, m->at, reserved[i].at);
		kn_err_hint(e, "give another target, for example /data");
		return -1;
	}
	return 0;
}

/* What one worker can hold; the stub's tables have these sizes. */
static int
check_counts(const struct kn_policy *p, struct kn_err *e)
{
	static const char *const covered[] = { "/tmp", "/dev/shm", "/task" };
	size_t n = 0, writable = 0, in_cells = 0, masks = 0, overlays = 0;
	const char *rest;

	for (size_t i = 0; i < p->fs.mount_n; i++) {
		const struct kn_mount *m = &p->fs.mounts[i];

		masks += kn_bind_is_denial(m);
		if (!m->user || m->type != KN_MOUNT_BIND)
			continue;
		n++;
		overlays += m->overlay;
		if (m->pin) /* its writable folder was counted */
			continue;
		writable += m->writable;
		for (size_t j = 0; j < sizeof(covered) / sizeof(covered[0]); j++)
			in_cells += below(m->at, covered[j], &rest);
	}
	if (n > KN_BIND_MAX) {
		kn_err_set(e, KN_EK_CONFIG,
		    "/filesystem/mounts: %zu binds, at most %d are possible", n,
		    KN_BIND_MAX);
		kn_err_hint(
		    e, "bind a directory that holds them in place of each file");
		return -1;
	}
	if (masks > KN_BIND_MASK_MAX) {
		kn_err_set(e, KN_EK_CONFIG,
		    "/filesystem/deny: %zu files and folders to hide, at most %d are "
		    "possible",
		    masks, KN_BIND_MASK_MAX);
		kn_err_hint(e, "deny the folder that holds them, or bind less");
		return -1;
	}
	if (overlays > KN_BIND_OVERLAY_MAX)
		return kn_err_set(e, KN_EK_CONFIG,
		    "/filesystem/mounts: %zu overlays, at most %d are possible",
		    overlays, KN_BIND_OVERLAY_MAX);
	if (writable > KN_BIND_WRITABLE_MAX)
		return kn_err_set(e, KN_EK_CONFIG,
		    "/filesystem/mounts: %zu writable binds, at most %d are possible",
		    writable, KN_BIND_WRITABLE_MAX);
	if (in_cells > KN_BIND_COVERED_MAX)
		return kn_err_set(e, KN_EK_CONFIG,
		    "/filesystem/mounts: %zu binds below /tmp, /dev/shm and /task, at "
		    "most %d are possible",
		    in_cells, KN_BIND_COVERED_MAX);
	return 0;
}

/* The target lies inside bind `in`, where bwrap would create it on the machine. */
static int
check_inside(const struct kn_bind *b, const struct kn_bind *in, const char *rest,
    struct kn_err *e)
{
	const struct kn_mount *m = b->mount;
	KN_OWN_FD int top = -1;
	KN_OWN_FD int fd = -1;
	struct stat st;

	top = in->fd >= 0 ? fcntl(in->fd, F_DUPFD_CLOEXEC, 3)
			  : open(in->path, O_PATH | O_CLOEXEC);
	if (top >= 0)
		fd = open_beneath(top, rest, RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS);
	if (fd < 0 && (errno == ELOOP || errno == EXDEV))
		return kn_err_set(e, KN_EK_CONFIG,
		    "%s: target %s: goes through a symbolic link in %s", m->origin,
		    m->at, in->path);
	if (fd < 0 || fstat(fd, &st) < 0) {
		kn_err_sys(e, KN_EK_CONFIG,
		    "%s: target %s is inside the bind of %s and does not exist there",
		    m->origin, m->at, in->path);
		kn_err_hint(e, "nothing is created on the machine for a mount: make it "
			       "first, or give a target outside");
		return -1;
	}
	if (m->type == KN_MOUNT_SYMLINK)
		return kn_err_set(e, KN_EK_CONFIG,
		    "%s: target %s exists already in the bind of %s", m->origin, m->at,
		    in->path);
	if (S_ISDIR(st.st_mode) != b->is_dir)
		return kn_err_set(e, KN_EK_CONFIG,
		    "%s: target %s: a directory and a file cannot stand on each other",
		    m->origin, m->at);
	return 0;
}

/* Against all mounts that bwrap makes before this one (system mounts come first). */
static int
check_target(struct kn_bind *all, size_t n, size_t i, struct kn_err *e)
{
	const struct kn_mount *m = all[i].mount;
	const struct kn_bind *in = NULL;
	const char *rest, *in_rest = NULL;

	for (size_t j = 0; j < n; j++) {
		const struct kn_mount *o = all[j].mount;
		bool earlier = o->user == m->user ? j < i : !o->user;

		if (!earlier || all[j].missing || o->type == KN_MOUNT_TMPFS)
			continue;
		if (below(o->at, m->at, &rest) && *rest != '\0' && o->user)
			return kn_err_set(e, KN_EK_CONFIG,
			    "%s: target %s would hide %s of %s", m->origin, m->at,
			    o->at, o->origin);
		if (!below(m->at, o->at, &rest))
			continue;
		if (o->overlay && *rest != '\0')
			return kn_err_set(e, KN_EK_CONFIG,
			    "%s: target %s: lies in the overlay at %s, which shows no "
			    "other mount; name a place beside it",
			    m->origin, m->at, o->at);
		if (o->type == KN_MOUNT_SYMLINK)
			return kn_err_set(e, KN_EK_CONFIG,
			    "%s: target %s: %s is a symbolic link to %s inside; name "
			    "the real path",
			    m->origin, m->at, o->at, o->source);
		if (*rest == '\0' && o->type == KN_MOUNT_BIND &&
		    m->type == KN_MOUNT_BIND) {
			if (all[j].is_dir != all[i].is_dir)
				return kn_err_set(e, KN_EK_CONFIG,
				    "%s: target %s: a directory and a file cannot "
				    "stand on each other",
				    m->origin, m->at);
			all[j].shadowed = true;
		}
		in = &all[j];
		in_rest = rest;
	}
	if (in == NULL || *in_rest == '\0')
		return 0;
	if (in->mount->type == KN_MOUNT_DATA)
		return kn_err_set(e, KN_EK_CONFIG, "%s: target %s: %s is a file",
		    m->origin, m->at, in->mount->at);
	if (in->mount->type != KN_MOUNT_BIND)
		return 0;
	if (m->type == KN_MOUNT_DIR) {
		kn_err_set(e, KN_EK_CONFIG,
		    "%s: target %s lies in the bind of %s, where no empty directory "
		    "can be "
		    "shown",
		    m->origin, m->at, in->path);
		kn_err_hint(e, "leave it out: what is there is seen through the bind");
		return -1;
	}
	all[i].in = in;
	all[i].in_rest = in_rest;
	return check_inside(&all[i], in, in_rest, e);
}

int
kn_bind_resolve(const struct kn_policy *p, struct kn_bind **out, struct kn_err *e)
{
	size_t n = p->fs.mount_n;
	struct kn_bind *b = calloc(n ? n : 1, sizeof(*b));

	if (b == NULL)
		return kn_err_sys(e, KN_EK_HOST, "allocate the table of mounts");
	for (size_t i = 0; i < n; i++) {
		b[i].mount = &p->fs.mounts[i];
		b[i].fd = b[i].out_fd = -1;
	}
	if (check_counts(p, e) < 0)
		goto fail;
	for (size_t i = 0; i < n; i++)
		if (check_reserved(b[i].mount, e) < 0 || resolve_one(&b[i], e) < 0)
			goto fail;
	for (size_t i = 0; i < n; i++) {
		bool mask = kn_bind_is_denial(b[i].mount);

		if (mask && kn_bind_find_masked(b, n, &b[i], e) < 0)
			goto fail;
		if (!mask && b[i].mount->user && check_target(b, n, i, e) < 0)
			goto fail;
	}
	if (kn_bind_check_out(b, n, e) < 0)
		goto fail;
	*out = b;
	return 0;
fail:
	kn_bind_free(b, n);
	return -1;
}

void
kn_bind_free(struct kn_bind *b, size_t n)
{
	for (size_t i = 0; b != NULL && i < n; i++) {
		kn_fd_close(&b[i].fd);
		kn_fd_close(&b[i].out_fd);
		free(b[i].path);
	}
	free(b);
}
