/* ipc/fdmsg.c: datagrams with descriptors over a SOCK_SEQPACKET socket (ipc/fd.h).
 *
 * The peer may be hostile: it can send more descriptors than asked for, none, or an
 * empty datagram that carries some. None of them may stay open here by accident.
 */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "ipc/fd.h"

union control {
	struct cmsghdr align;
	char bytes[CMSG_SPACE(sizeof(int) * KN_MSG_FDS_MAX)];
};

int
kn_fd_send(int sock, const void *p, size_t n, const int *fds, int fd_n, int dontwait)
{
	char *bytes;
	struct iovec iov;
	union control control;
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };

	memcpy(&bytes, &p, sizeof bytes); /* iovec is not const; sendmsg only reads */
	iov = (struct iovec){ .iov_base = bytes, .iov_len = n };
	if (fd_n < 0 || fd_n > KN_MSG_FDS_MAX) {
		errno = EINVAL;
		return -1;
	}
	if (fd_n > 0) {
		size_t data = sizeof(int) * (size_t)fd_n;
		struct cmsghdr *c = &control.align;

		memset(&control, 0, sizeof control);
		msg.msg_control = &control;
		msg.msg_controllen = CMSG_SPACE(data);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(data);
		memcpy(CMSG_DATA(c), fds, data);
	}
	for (;;) {
		ssize_t sent =
		    sendmsg(sock, &msg, MSG_NOSIGNAL | (dontwait ? MSG_DONTWAIT : 0));

		if (sent >= 0)
			return 0; /* a datagram goes whole or not at all */
		if (errno != EINTR)
			return -1;
	}
}

/* Take all descriptors out of msg: the first `max` to fds, the rest closed. Returns how
 * many there were. */
static int
collect(struct msghdr *msg, int *fds, int max)
{
	int found = 0;

	for (struct cmsghdr *c = CMSG_FIRSTHDR(msg); c; c = CMSG_NXTHDR(msg, c)) {
		size_t n;

		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		for (size_t i = 0; i < n; i++, found++) {
			int fd;

			memcpy(&fd, CMSG_DATA(c) + i * sizeof fd, sizeof fd);
			if (found < max)
				fds[found] = fd;
			else
				close(fd);
		}
	}
	return found;
}

static ssize_t
receive(int sock, void *p, size_t n, int *fds, int fd_max, int *out_fd_n, int flags,
    int *out_short)
{
	struct iovec iov = { .iov_base = p, .iov_len = n };
	union control control;
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	ssize_t got;
	int found, cut;

	do {
		msg.msg_control = &control;
		msg.msg_controllen = sizeof control;
		got = recvmsg(sock, &msg, MSG_CMSG_CLOEXEC | flags);
	} while (got < 0 && errno == EINTR);
	if (got < 0)
		return -1;
	found = collect(&msg, fds, fd_max);
	cut = (msg.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) || found > fd_max;
	/* There was room for more: it is us who cannot have them. */
	if (out_short)
		*out_short = msg.msg_flags & MSG_CTRUNC && found < KN_MSG_FDS_MAX;
	if (out_short && *out_short && !(msg.msg_flags & MSG_TRUNC) && found <= fd_max)
		cut = 0;
	if (got == 0 || cut) {
		for (int i = 0; i < found && i < fd_max; i++)
			kn_fd_close(&fds[i]);
		found = 0;
	}
	if (cut) {
		errno = EMSGSIZE;
		return -1;
	}
	if (out_fd_n)
		*out_fd_n = found;
	return got;
}

ssize_t
kn_fd_recv(
    int sock, void *p, size_t n, int *fds, int fd_max, int *out_fd_n, int dontwait)
{
	return receive(
	    sock, p, n, fds, fd_max, out_fd_n, dontwait ? MSG_DONTWAIT : 0, NULL);
}

ssize_t
kn_fd_recv_some(
    int sock, void *p, size_t n, int *fds, int fd_max, int *out_fd_n, int *out_short)
{
	return receive(sock, p, n, fds, fd_max, out_fd_n, MSG_DONTWAIT, out_short);
}
