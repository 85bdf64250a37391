/* sandbox/stub/rmtree.h: all that is in a folder is removed, however deep it is.
 *
 * For folders in which nobody works any more, whoever filled them: no link is followed,
 * no path is put together, and two descriptors are enough, since folders that are found
 * deep down move to the top. Raw calls: the stub and the supervisor have it.
 */
#ifndef KN_STUB_RMTREE_H
#define KN_STUB_RMTREE_H

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>

#include "sandbox/stub/sys.h"

struct kn_rmtree {
	int top;
	uint64_t serial; /* of names at the top */
	bool moved;	 /* something went, or came up */
	_Alignas(16) char dents[2][4096];
};

static inline bool
kn_rmtree_is_dots(const char *name)
{
	return name[0] == '.' &&
	       (name[1] == '\0' || (name[1] == '.' && name[2] == '\0'));
}

/* To the top, by a name that nothing there has. */
static inline int
kn_rmtree_lift(struct kn_rmtree *t, int dir, const char *name)
{
	char to[24];
	int r = -EEXIST;

	while (r == -EEXIST || r == -ENOTEMPTY || r == -ENOTDIR) {
		uint64_t n = ++t->serial;
		char *p = to + sizeof to;

		*--p = '\0';
		for (; n > 0; n /= 10)
			*--p = (char)('0' + n % 10);
		*--p = '.';
		r = (int)KN_SYS4(SYS_renameat, dir, name, t->top, p);
	}
	return r;
}

/* Gone, or at the top. dir is not the top. */
static inline int
kn_rmtree_one(struct kn_rmtree *t, int dir, const char *name)
{
	int r = kn_sys_unlinkat(dir, name, 0);

	if (r == -EISDIR || r == -EPERM)
		r = kn_sys_unlinkat(dir, name, AT_REMOVEDIR);
	if (r == -ENOTEMPTY || r == -EEXIST) {
		r = kn_rmtree_lift(t, dir, name);
		/* Moving a folder writes to it: its parent is another then. */
		if (r == -EACCES) {
			(void)KN_SYS3(SYS_fchmodat, dir, name, 0700);
			r = kn_rmtree_lift(t, dir, name);
		}
	}
	if (r == -ENOENT)
		return 0;
	t->moved |= r == 0;
	return r;
}

/* A mode is only changed by who cannot do without, and then of what is its own: never
 * by root, whom a name could lead elsewhere. */
static inline int
kn_rmtree_open(int dir, const char *name)
{
	const int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
	int fd = kn_sys_openat(dir, name, flags, 0);

	if (fd != -EACCES)
		return fd;
	(void)KN_SYS3(SYS_fchmodat, dir, name, 0700);
	return kn_sys_openat(dir, name, flags, 0);
}

/* level 0: of the top itself, whose folders are gone through. */
static inline int
kn_rmtree_pass(struct kn_rmtree *t, int dir, int level, bool *out_any)
{
	int worst = 0;
	long n;

	if (KN_SYS3(SYS_lseek, dir, 0, 0) < 0)
		return -EIO;
	while ((n = kn_sys_getdents(dir, t->dents[level], sizeof t->dents[0])) > 0) {
		for (long at = 0; at < n;) {
			const struct kn_sys_dirent *d =
			    (const void *)(t->dents[level] + at);
			int r;

			at += d->reclen;
			if (kn_rmtree_is_dots(d->name))
				continue;
			*out_any = true;
			if (level == 1) {
				r = kn_rmtree_one(t, dir, d->name);
				worst = r < 0 ? r : worst;
				continue;
			}
			r = kn_sys_unlinkat(dir, d->name, 0);
			if (r == -EISDIR || r == -EPERM)
				r = kn_sys_unlinkat(dir, d->name, AT_REMOVEDIR);
			if (r == -ENOTEMPTY || r == -EEXIST) {
				bool any = false;
				int fd;

				fd = kn_rmtree_open(dir, d->name);
				r = fd < 0 ? fd : kn_rmtree_pass(t, fd, 1, &any);
				if (r == -EACCES && KN_SYS2(SYS_fchmod, fd, 0700) == 0)
					r = kn_rmtree_pass(t, fd, 1, &any);
				kn_sys_close(fd);
				if (r == 0)
					r = kn_sys_unlinkat(dir, d->name, AT_REMOVEDIR);
			}
			t->moved |= r == 0;
			worst = r < 0 && r != -ENOENT ? r : worst;
		}
	}
	return n < 0 ? (int)n : worst;
}

/* 0, or a negative errno: something is still there. */
static inline int
kn_rmtree_below(struct kn_rmtree *t, int top)
{
	int r = 0;

	t->top = top;
	t->serial = 0;
	(void)KN_SYS2(SYS_fchmod, top, 0700); /* who owns it may have taken that */
	for (bool any = true; any;) {
		any = t->moved = false;
		r = kn_rmtree_pass(t, top, 0, &any);
		if (any && !t->moved)
			return r < 0 ? r : -EIO;
	}
	return r;
}

#endif
