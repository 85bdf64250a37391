/* supervisor/beneath.c: see beneath.h. */
#include "supervisor/beneath.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "ipc/err.h"
#include "ipc/fd.h"
#include "sandbox/lack.h"

enum { DEPTH_MAX = 100, TEMPS_MAX = 65536 /* names tried for one file */ };

static int
open_as(int root, const char *rel, uint64_t flags, uint64_t mode, uint64_t resolve)
{
	struct open_how how = {
		.flags = flags | O_CLOEXEC | O_NOFOLLOW,
		.mode = mode,
		.resolve = resolve | RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS |
			   RESOLVE_NO_MAGICLINKS,
	};
	int fd = -1;

	/* EAGAIN: a rename somewhere raced with the walk; the kernel asks to repeat. */
	for (int tries = 0; tries < 100; tries++) {
		fd = (int)syscall(SYS_openat2, root, rel, &how, sizeof how);
		if (fd >= 0 || (errno != EAGAIN && errno != EINTR))
			break;
	}
	return fd;
}

static int
open_below(int root, const char *rel, uint64_t flags, uint64_t mode)
{
	return open_as(root, rel, flags, mode, 0);
}

static const char *
shown(const char *rel, char *buf, int n)
{
	kn_err_printable(buf, n, rel, (int)strlen(rel));
	return buf;
}

/* As kn_err_sys(), with what is behind it if openat2 is not to be had. */
static int
fail_sys(struct kn_err *e, enum kn_ek kind, const char *verb, const char *rel)
{
	int no = errno;
	char name[128];

	kn_err_set(e, kind, "%s%s: %s%s", verb, shown(rel, name, sizeof name),
	    strerror(no), kn_lack_openat2_text(no));
	if (e)
		e->sys = no;
	return -1;
}

int
kn_beneath_open(
    int root, const char *rel, int *out_fd, struct stat *out_st, struct kn_err *e)
{
	KN_OWN_FD int fd = open_below(root, rel, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0);
	char name[128];

	if (fd < 0 && errno == ELOOP)
		return kn_err_set(e, KN_EK_TASK,
		    "%s: a symbolic link on the way, which is not followed",
		    shown(rel, name, sizeof name));
	if (fd < 0 || fstat(fd, out_st) < 0)
		return fail_sys(e, KN_EK_TASK, "", rel);
	if (!S_ISREG(out_st->st_mode))
		return kn_err_set(e, KN_EK_TASK, "%s: not a regular file",
		    shown(rel, name, sizeof name));
	*out_fd = kn_fd_take(&fd);
	return 0;
}

/* The directory that rel's last component stands in; made if make. */
static int
parent_of(int root, const char *rel, bool make, const char **out_last)
{
	char *copy = strdup(rel);
	int at = open_below(root, ".", O_PATH | O_DIRECTORY, 0);
	char *name = copy;

	while (copy && at >= 0) {
		char *slash = strchr(name, '/');
		int next;

		if (!slash)
			break;
		*slash = '\0';
		if (make && mkdirat(at, name, 0777) < 0 && errno != EEXIST)
			next = -1;
		else
			next = open_below(at, name, O_PATH | O_DIRECTORY, 0);
		kn_fd_close(&at);
		at = next;
		name = slash + 1;
	}
	if (!copy)
		kn_fd_close(&at);
	else
		*out_last = rel + (name - copy);
	free(copy);
	return at;
}

static int
copy_all(int from, int to, uint64_t max)
{
	char buf[65536];
	uint64_t at = 0;

	for (;;) {
		ssize_t r = pread(from, buf, sizeof buf, (off_t)at);

		if (r < 0 && errno == EINTR)
			continue;
		if (r <= 0)
			return (int)r;
		at += (uint64_t)r;
		if (at > max) {
			errno = EFBIG;
			return -1;
		}
		if (kn_fd_write_all(to, buf, (size_t)r) < 0)
			return -1;
	}
}

/* A process that was killed over a copy leaves its file behind, and in a container the
 * next one has the same number: a name that exists is passed over, not an error. */
static int
make_temp(int dir, char *name, size_t n)
{
	static unsigned serial;
	int fd = -1;

	for (int tries = 0; tries < TEMPS_MAX; tries++) {
		snprintf(name, n, ".knit-%ld-%u.tmp", (long)getpid(), serial++);
		fd = open_below(dir, name, O_WRONLY | O_CREAT | O_EXCL, 0600);
		if (fd >= 0 || errno != EEXIST)
			break;
	}
	return fd;
}

static int
write_in(int dir, const char *last, int from, uint64_t max, uint32_t mode, bool replace)
{
	char temp[64];
	const char *name = replace ? temp : last;
	KN_OWN_FD int fd =
	    replace ? make_temp(dir, temp, sizeof temp)
		    : open_below(dir, name, O_WRONLY | O_CREAT | O_EXCL, 0600);
	int no;

	if (fd < 0)
		return -1;
	if (copy_all(from, fd, max) == 0 && fchmod(fd, mode & 0777) == 0 &&
	    (!replace || renameat(dir, name, dir, last) == 0))
		return 0;
	no = errno;
	unlinkat(dir, name, 0);
	errno = no;
	return -1;
}

int
kn_beneath_write(int root, const char *rel, int from, uint64_t max, uint32_t mode,
    bool replace, struct kn_err *e)
{
	const char *last = NULL;
	KN_OWN_FD int dir = parent_of(root, rel, true, &last);

	if (dir < 0 || write_in(dir, last, from, max, mode, replace) < 0)
		return fail_sys(e, KN_EK_HOST, "write ", rel);
	return 0;
}

void
kn_beneath_unlink(int root, const char *rel)
{
	const char *last = NULL;
	KN_OWN_FD int dir = parent_of(root, rel, false, &last);

	if (dir >= 0)
		unlinkat(dir, last, 0);
}

int
kn_beneath_dir(int dir, const char *name)
{
	return open_as(dir, name, O_RDONLY | O_DIRECTORY, 0, RESOLVE_NO_XDEV);
}

static void
empty_dir(int dir, int depth)
{
	int copy = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = copy >= 0 ? fdopendir(copy) : NULL;
	struct dirent *de;

	if (!d) {
		kn_fd_close(&copy);
		return;
	}
	while ((de = readdir(d))) {
		KN_OWN_FD int sub = -1;

		if (strcmp(de->d_name, ".") == 0 || strcmp(de->d_name, "..") == 0)
			continue;
		if (unlinkat(dir, de->d_name, 0) == 0 || errno != EISDIR)
			continue;
		sub = depth > 0 ? kn_beneath_dir(dir, de->d_name) : -1;
		if (sub < 0)
			continue;
		empty_dir(sub, depth - 1);
		unlinkat(dir, de->d_name, AT_REMOVEDIR);
	}
	closedir(d);
}

void
kn_beneath_empty(int dir)
{
	empty_dir(dir, DEPTH_MAX);
}
