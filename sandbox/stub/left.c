/* sandbox/stub/left.c: sockets that hold each other (sandbox/stub/left.h). */
#include "sandbox/stub/left.h"

#include <fcntl.h>
#include <sys/socket.h>

#include "sandbox/stub/sys.h"

enum { WAIT_FIRST_US = 50, WAIT_MOST_US = 4000, HEAD_BYTES = 256 };

/* Bytes of the list's beginning: its head line, and more if there are sockets. */
static long
look(int fd)
{
	char buf[HEAD_BYTES];

	return kn_sys_pread(fd, buf, sizeof buf, 0);
}

void
kn_left_init(struct kn_left *l)
{
	char buf[HEAD_BYTES];
	long n = 0, line = 0;

	l->none = 0;
	l->list_fd =
	    kn_sys_openat(AT_FDCWD, "/proc/self/net/unix", O_RDONLY | O_CLOEXEC, 0);
	if (l->list_fd < 0)
		return;
	n = kn_sys_pread(l->list_fd, buf, sizeof buf, 0);
	while (line < n && buf[line++] != '\n')
		;
	/* In the host's network others have sockets, and theirs are no business of
	 * ours.
	 */
	if (n > 0 && line == n)
		l->none = n;
}

/* The kernel looks for sockets that only hold each other when one is closed. */
static void
close_one(void)
{
	int pair[2];

	if (KN_SYS4(SYS_socketpair, AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return;
	kn_sys_close(pair[0]);
	kn_sys_close(pair[1]);
}

bool
kn_left_clear(const struct kn_left *l)
{
	long us = WAIT_FIRST_US, waited_us = 0;

	if (l->none == 0) {
		close_one();
		return true;
	}
	while (look(l->list_fd) != l->none) {
		struct timespec t = { 0, us * 1000 };

		if (waited_us >= KN_LEFT_MS * 1000)
			return false;
		close_one();
		(void)kn_sys_ppoll(NULL, 0, &t);
		waited_us += us;
		us = 2 * us < WAIT_MOST_US ? 2 * us : WAIT_MOST_US;
	}
	return true;
}
