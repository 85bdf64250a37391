/* supervisor/caller.c: see caller.h. O_NONBLOCK is never set on what the caller lent
 * us. Where the kernel offers no single-call way (terminals, old kernels) we ask poll
 * first and move no more than a pipe is sure to take. */
#include "supervisor/caller.h"

#include <errno.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

enum { SURE_BYTES = 4096 };

void
kn_caller_init(struct kn_caller *c, int fd)
{
	struct stat st;

	c->fd = fd;
	c->plain = c->nowait = false;
	if (fstat(fd, &st) < 0)
		return;
	c->plain = S_ISREG(st.st_mode) || S_ISBLK(st.st_mode);
	c->nowait = S_ISFIFO(st.st_mode) || S_ISSOCK(st.st_mode);
}

static bool
refused(struct kn_caller *c)
{
	if (errno != EOPNOTSUPP && errno != EINVAL && errno != ENOSYS)
		return false;
	c->nowait = false;
	return true;
}

static bool
ready(int fd, short events)
{
	struct pollfd p = { .fd = fd, .events = events };

	return poll(&p, 1, 0) == 1;
}

ssize_t
kn_caller_read(struct kn_caller *c, void *p, size_t n)
{
	struct iovec v = { .iov_base = p, .iov_len = n };
	ssize_t got;

	if (c->nowait) {
		got = preadv2(c->fd, &v, 1, -1, RWF_NOWAIT);
		if (got >= 0 || !refused(c))
			return got;
	}
	if (!c->plain && !ready(c->fd, POLLIN)) {
		errno = EAGAIN;
		return -1;
	}
	return read(c->fd, p, n);
}

ssize_t
kn_caller_write(struct kn_caller *c, const void *p, size_t n)
{
	struct iovec v = { .iov_len = n };
	ssize_t put;

	__builtin_memcpy(&v.iov_base, &p, sizeof p); /* only read from */
	if (c->nowait) {
		put = pwritev2(c->fd, &v, 1, -1, RWF_NOWAIT);
		if (put >= 0 || !refused(c))
			return put;
	}
	if (!c->plain && !ready(c->fd, POLLOUT)) {
		errno = EAGAIN;
		return -1;
	}
	return write(c->fd, p, c->plain || n < SURE_BYTES ? n : SURE_BYTES);
}

static bool
foreground(int fd)
{
	return tcgetpgrp(fd) == getpgrp();
}

void
kn_term_raw(struct kn_term *t, int fd)
{
	struct termios raw;

	if (t->raw || !foreground(fd) || tcgetattr(fd, &t->saved) < 0)
		return;
	raw = t->saved;
	cfmakeraw(&raw);
	if (tcsetattr(fd, TCSANOW, &raw) < 0)
		return;
	t->fd = fd;
	t->raw = true;
}

void
kn_term_restore(struct kn_term *t)
{
	/* in the background the terminal is somebody else's by now */
	if (t->raw && foreground(t->fd))
		(void)tcsetattr(t->fd, TCSANOW, &t->saved);
	t->raw = false;
}
