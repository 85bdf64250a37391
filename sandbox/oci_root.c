/* sandbox/oci_root.c: the skeleton of a root.
 *
 * Every name is walked from the root's own descriptor and no link is followed, not even
 * those that we made: an absolute one would lead to the machine's directories.
 */
#include "sandbox/oci_root.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ipc/err.h"
#include "ipc/fd.h"
#include "sandbox/bind.h"
#include "sandbox/policy.h"

enum { FILE_MAX = 16 << 20 };

/* The directory `path` names, made with those above it; or a descriptor of the one that
 * holds it, if last. Returns an owned descriptor. */
static int
walk(int root, const char *path, bool last, const char **out_name)
{
	int at = fcntl(root, F_DUPFD_CLOEXEC, 0);
	char name[256];

	while (at >= 0) {
		size_t n;
		int next;

		path += strspn(path, "/");
		n = strcspn(path, "/");
		if (n == 0)
			return at;
		if (last && path[n] == '\0') {
			*out_name = path;
			return at;
		}
		if (n >= sizeof name) {
			errno = ENAMETOOLONG;
			break;
		}
		memcpy(name, path, n);
		name[n] = '\0';
		if (mkdirat(at, name, 0755) < 0 && errno != EEXIST)
			break;
		next =
		    openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		close(at);
		at = next;
		path += n;
	}
	kn_fd_close(&at);
	return -1;
}

static int
make_dir(int root, const char *path)
{
	KN_OWN_FD int fd = walk(root, path, false, NULL);

	return fd < 0 ? -1 : 0;
}

static int
make_link(int root, const char *path, const char *text)
{
	const char *name = NULL;
	KN_OWN_FD int fd = walk(root, path, true, &name);

	if (fd < 0 || name == NULL)
		return -1;
	return symlinkat(text, fd, name);
}

/* The bytes, or those of the file behind fd. */
static int
make_file(int root, const char *path, mode_t mode, const void *p, size_t n, int from)
{
	const char *name = NULL;
	KN_OWN_FD int dir = walk(root, path, true, &name);
	KN_OWN_FD int fd = -1;
	char buf[8192];
	ssize_t got;

	if (dir < 0 || name == NULL)
		return -1;
	fd = openat(
	    dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0 && errno == EEXIST) /* a point for two mounts */
		return p == NULL && from < 0 ? 0 : -1;
	if (fd < 0 || (n > 0 && write(fd, p, n) != (ssize_t)n))
		return -1;
	for (size_t all = 0; from >= 0 && all < FILE_MAX; all += (size_t)got) {
		got = read(from, buf, sizeof buf);
		if (got < 0 || (got > 0 && write(fd, buf, (size_t)got) != got))
			return -1;
		if (got == 0)
			break;
	}
	return fchmod(fd, mode);
}

/* Content from a file of the machine: a device or a pipe would hold us up for ever. */
static int
copy_file(int root, const char *path, const char *source)
{
	KN_OWN_FD int from = open(source, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	struct stat st;

	if (from < 0 || fstat(from, &st) < 0)
		return -1;
	if (!S_ISREG(st.st_mode)) {
		errno = EINVAL;
		return -1;
	}
	return make_file(root, path, 0444, NULL, 0, from);
}

static bool
is_at_or_below(const char *path, const char *folder)
{
	size_t n = strlen(folder);

	return strncmp(path, folder, n) == 0 && (path[n] == '/' || path[n] == '\0');
}

/* Is the point of mount i in another mount? Then it is there, or the runtime makes it
 * in a file system of its own. */
static bool
is_in_mount(const struct kn_policy *p, const char *const *source, size_t i)
{
	const char *at = p->fs.mounts[i].at;

	if (is_at_or_below(at, "/dev") || is_at_or_below(at, "/proc"))
		return true;
	for (size_t k = 0; k < p->fs.mount_n; k++) {
		const struct kn_mount *m = &p->fs.mounts[k];

		/* What the system root has comes first, whatever its place in the list.
		 */
		if (k == i || source[k] == NULL || m->type != KN_MOUNT_BIND)
			continue;
		if (is_at_or_below(at, m->at) && strcmp(at, m->at) != 0 &&
		    (k < i || (!m->user && p->fs.mounts[i].user)))
			return true;
	}
	return false;
}

static int
make_point(int root, const struct kn_mount *m, const struct kn_bind *b)
{
	struct stat st;
	bool dir = m->type == KN_MOUNT_MASK ? m->dir : b->is_dir;

	if (m->type == KN_MOUNT_BIND && b->fd < 0) {
		if (stat(b->path, &st) < 0)
			return -1;
		dir = S_ISDIR(st.st_mode);
	}
	return dir ? make_dir(root, m->at) : make_file(root, m->at, 0444, NULL, 0, -1);
}

static int
make_mount(int root, const struct kn_policy *p, const struct kn_bind *binds,
    const char *const *source, size_t i)
{
	const struct kn_mount *m = &p->fs.mounts[i];

	if (is_in_mount(p, source, i))
		return 0;
	switch (m->type) {
	case KN_MOUNT_BIND:
	case KN_MOUNT_MASK:
		return source[i] != NULL ? make_point(root, m, &binds[i]) : 0;
	case KN_MOUNT_DIR:
		return make_dir(root, m->at);
	case KN_MOUNT_SYMLINK:
		return make_link(root, m->at, m->source);
	case KN_MOUNT_DATA:
		if (m->data == NULL)
			return copy_file(root, m->at, m->source);
		return make_file(root, m->at, 0444, m->data, m->data_n, -1);
	case KN_MOUNT_WHITE:
	case KN_MOUNT_LINK:
	case KN_MOUNT_TMPFS:
		return 0; /* the stub's */
	}
	return 0;
}

static int
fill(int root, const struct kn_policy *p, const struct kn_bind *binds,
    const char *const *source, struct kn_err *e)
{
	static const char *const own[] = { "/proc", "/dev", "/tmp", "/task" };

	for (size_t i = 0; i < sizeof own / sizeof *own; i++)
		if (make_dir(root, own[i]) < 0)
			return kn_err_sys(e, KN_EK_HOST, "make %s of the root", own[i]);
	/* As bwrap is told: the system's, then the caller's. */
	for (int user = 0; user < 2; user++)
		for (size_t i = 0; i < p->fs.mount_n; i++)
			if (p->fs.mounts[i].user == user &&
			    make_mount(root, p, binds, source, i) < 0)
				return kn_err_sys(e, KN_EK_LAUNCH,
				    "make a point for a mount in the root: %s",
				    p->fs.mounts[i].at);
	return 0;
}

int
kn_oci_root_make(const char *place, const struct kn_policy *p,
    const struct kn_bind *binds, const char *const *source, struct kn_err *e)
{
	KN_OWN_FD int at = open(place, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	KN_OWN_FD int root = -1;
	mode_t mask;
	int rc;

	if (at < 0)
		return kn_err_sys(e, KN_EK_HOST, "open %s", place);
	mask = umask(0);
	if (mkdirat(at, "root", 0755) < 0 || mkdirat(at, "mask-d", 0) < 0 ||
	    make_file(at, "mask-f", 0, NULL, 0, -1) < 0 ||
	    (root = openat(at, "root", O_RDONLY | O_DIRECTORY | O_CLOEXEC)) < 0)
		rc = kn_err_sys(e, KN_EK_HOST, "make the root in %s", place);
	else
		rc = fill(root, p, binds, source, e);
	umask(mask);
	return rc;
}
