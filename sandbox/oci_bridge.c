/* sandbox/oci_bridge.c: see oci_bridge.h. */
#include "sandbox/oci_bridge.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ipc/err.h"
#include "ipc/fd.h"

enum { COME_MS = 60 * 1000, STRANGERS_MAX = 16 };

static int
write_stub(int dir, const void *p, size_t n)
{
	KN_OWN_FD int fd = openat(
	    dir, "stub", O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0555);

	return fd < 0 || kn_fd_write_all(fd, p, n) < 0 ? -1 : fchmod(fd, 0555);
}

int
kn_bridge_open(const char *dir, const void *stub, size_t stub_n, struct kn_err *e)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	KN_OWN_FD int dir_fd = -1;
	KN_OWN_FD int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	char old[64];

	if (fd < 0 || mkdir(dir, 0755) < 0 || chmod(dir, 0755) < 0)
		return kn_err_sys(e, KN_EK_HOST, "make %s", dir);
	dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (dir_fd < 0 || write_stub(dir_fd, stub, stub_n) < 0)
		return kn_err_sys(
		    e, KN_EK_HOST, "write the worker's program to %s", dir);
	/* By the descriptor: the path may be longer than an address holds. */
	snprintf(old, sizeof old, "/proc/self/fd/%d/socket", dir_fd);
	memcpy(at.sun_path, old, strlen(old) + 1);
	if (bind(fd, (const struct sockaddr *)&at, sizeof at) < 0 ||
	    fchmodat(dir_fd, "socket", 0666, 0) < 0 || listen(fd, STRANGERS_MAX) < 0)
		return kn_err_sys(e, KN_EK_HOST, "listen in %s", dir);
	return kn_fd_take(&fd);
}

static void __attribute__((noreturn))
wait_and_hand_over(int listen_fd, uint32_t uid, int sock_fd, int parent_pidfd)
{
	struct pollfd p[2] = { { .fd = listen_fd, .events = POLLIN },
		{ .fd = parent_pidfd, .events = POLLIN } };

	for (int i = 0; i < STRANGERS_MAX; i++) {
		struct ucred who = { 0 };
		socklen_t n = sizeof who;
		int fd;

		if (poll(p, 2, COME_MS) <= 0 || p[1].revents != 0)
			_exit(1);
		fd = accept4(listen_fd, NULL, NULL, SOCK_CLOEXEC);
		if (fd < 0)
			continue;
		if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &n) == 0 &&
		    who.uid == uid && kn_fd_send(fd, "", 1, &sock_fd, 1, 0) >= 0)
			_exit(0);
		close(fd);
	}
	_exit(1);
}

int
kn_bridge_start(int listen_fd, uint32_t uid, int sock_fd, int parent_pidfd)
{
	long pid = syscall(SYS_fork);

	if (pid < 0)
		return -1;
	if (pid == 0) {
		int to[3] = { listen_fd, sock_fd, parent_pidfd };

		/* A grandchild: the client, which knows nothing of it, is no parent. */
		if (syscall(SYS_fork) != 0)
			_exit(0);
		/* It holds no end of anybody's pipe. */
		for (int i = 0; i < 3; i++)
			if ((to[i] = fcntl(to[i], F_DUPFD_CLOEXEC, 3)) < 0)
				_exit(1);
		for (int i = 0; i < 3; i++)
			if (dup2(to[i], i) < 0)
				_exit(1);
		syscall(SYS_close_range, 3, ~0u, 0);
		wait_and_hand_over(0, uid, 1, 2);
	}
	return waitpid((pid_t)pid, NULL, 0) < 0 ? -1 : 0;
}
