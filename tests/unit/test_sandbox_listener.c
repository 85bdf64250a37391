/* tests/unit/test_sandbox_listener.c: what is a listener and what only looks like one;
 * and the kernel's word on calls that wait, are answered, or whose caller is killed.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "ipc/err.h"
#include "ipc/fd.h"
#include "sandbox/listener.h"

/* A child whose getppid() and getpgrp() are asked about, after it has sent its
 * listener. It exits with `how` many of them came out as 42. */
static pid_t
start(int *out_listener)
{
	struct sock_filter code[] = {
		{ BPF_LD | BPF_W | BPF_ABS, 0, 0, offsetof(struct seccomp_data, nr) },
		{ BPF_JMP | BPF_JEQ | BPF_K, 1, 0, SYS_getppid },
		{ BPF_JMP | BPF_JEQ | BPF_K, 0, 1, SYS_getuid },
		{ BPF_RET | BPF_K, 0, 0, SECCOMP_RET_USER_NOTIF },
		{ BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW },
	};
	struct sock_fprog p = { sizeof code / sizeof *code, code };
	int ends[2], fds[1], n = 0;
	char byte;
	pid_t pid;

	assert_int_equal(
	    socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		int fd, right = 0;

		prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
		fd = (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
		    SECCOMP_FILTER_FLAG_NEW_LISTENER, &p);
		if (fd < 0 || kn_fd_send(ends[1], "x", 1, &fd, 1, 0) < 0)
			_exit(100);
		close(fd);
		errno = 0;
		right += syscall(SYS_getppid, 11, 22) == -1 && errno == 42;
		right += syscall(SYS_getuid, 33) >= 0;
		_exit(right);
	}
	close(ends[1]);
	assert_int_equal(kn_fd_recv(ends[0], &byte, 1, fds, 1, &n, 0), 1);
	assert_int_equal(n, 1);
	close(ends[0]);
	*out_listener = fds[0];
	return pid;
}

static int
end_of(pid_t pid)
{
	int status;

	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

static void
next(int fd, struct kn_listened *out)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	assert_int_equal(poll(&p, 1, 20000), 1);
	assert_int_equal(kn_listener_take(fd, out), 1);
}

static void
a_call_is_told_refused_or_let_through(void **state)
{
	struct kn_listened l;
	int fd;
	pid_t pid = start(&fd);

	(void)state;
	assert_true(kn_listener_is(fd));
	next(fd, &l);
	assert_int_equal(l.call.nr, SYS_getppid);
	assert_int_equal(l.call.args[0], 11);
	assert_int_equal(l.call.args[1], 22);
	assert_int_equal(l.pid, pid);
	assert_true(kn_listener_waits(fd, l.id));
	assert_int_equal(kn_listener_take(fd, &l), 0); /* at once: no more */
	kn_listener_refuse(fd, l.id, 42);
	next(fd, &l);
	assert_int_equal(l.call.nr, SYS_getuid);
	kn_listener_let(fd, l.id);
	assert_int_equal(end_of(pid), 2);
	assert_false(kn_listener_waits(fd, l.id));
	assert_int_equal(kn_listener_take(fd, &l), 0);
	close(fd);
}

static void
a_refusal_without_a_number_is_one(void **state)
{
	struct kn_listened l;
	int fd;
	pid_t pid = start(&fd);

	(void)state;
	next(fd, &l);
	kn_listener_refuse(fd, l.id, 0);
	next(fd, &l);
	kn_listener_let(fd, l.id);
	assert_int_equal(end_of(pid), 1); /* the first: not 42, and not let through */
	close(fd);
}

static void
a_caller_that_is_killed_waits_no_more(void **state)
{
	struct kn_listened l;
	struct pollfd p;
	int fd;
	pid_t pid = start(&fd);

	(void)state;
	next(fd, &l);
	kill(pid, SIGKILL);
	assert_int_equal(end_of(pid), -SIGKILL);
	assert_false(kn_listener_waits(fd, l.id));
	kn_listener_refuse(fd, l.id, 1);
	close(fd);
	/* And one that nobody has taken yet: taking does not wait for another. */
	pid = start(&fd);
	p = (struct pollfd){ .fd = fd, .events = POLLIN };
	assert_int_equal(poll(&p, 1, 20000), 1);
	kill(pid, SIGKILL);
	assert_int_equal(end_of(pid), -SIGKILL);
	assert_int_equal(kn_listener_take(fd, &l), 0);
	close(fd);
}

static void
without_a_listener_waiting_calls_fail(void **state)
{
	struct kn_listened l;
	int fd;
	pid_t pid = start(&fd);

	(void)state;
	next(fd, &l);
	close(fd);
	assert_int_equal(end_of(pid), 0);
}

static void
nothing_else_passes_for_one(void **state)
{
	static const char name[] = "anon_inode:seccomp notify";
	char dir[] = "/tmp/knit-listener-XXXXXX", path[80];
	int pipes[2], fd;

	(void)state;
	fd = eventfd(0, EFD_CLOEXEC);
	assert_false(kn_listener_is(fd));
	close(fd);
	assert_int_equal(pipe2(pipes, O_CLOEXEC), 0);
	assert_false(kn_listener_is(pipes[0]));
	close(pipes[0]);
	close(pipes[1]);
	fd = memfd_create(name, MFD_CLOEXEC);
	assert_false(kn_listener_is(fd));
	close(fd);
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof path, "%s/%s", dir, name);
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_false(kn_listener_is(fd));
	close(fd);
	unlink(path);
	rmdir(dir);
	assert_false(kn_listener_is(-1));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_call_is_told_refused_or_let_through),
		cmocka_unit_test(a_refusal_without_a_number_is_one),
		cmocka_unit_test(a_caller_that_is_killed_waits_no_more),
		cmocka_unit_test(without_a_listener_waiting_calls_fail),
		cmocka_unit_test(nothing_else_passes_for_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
