/* tests/unit/test_supervisor_refused.c: a worker's listener that rests, because a task
 * makes refused calls without end: what comes meanwhile is taken, and answered later.
 */
#include "tests/unit/supervisor_test.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "sandbox/filter_told.h"

#ifndef SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV
#define SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV (1UL << 5)
#endif

enum { REFUSED_WITH = EPERM, NO_KILLABLE = 200 };

static volatile sig_atomic_t heard;

static void
on_signal(int signo)
{
	(void)signo;
	heard = 1;
}

/* Calls, one after the other, until a signal has come; the error that was not ours. */
static _Noreturn void
call_without_end(int sock)
{
	struct sock_filter code[] = {
		{ BPF_LD | BPF_W | BPF_ABS, 0, 0, offsetof(struct seccomp_data, nr) },
		{ BPF_JMP | BPF_JEQ | BPF_K, 0, 1, SYS_keyctl },
		{ BPF_RET | BPF_K, 0, 0, SECCOMP_RET_USER_NOTIF },
		{ BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW },
	};
	const struct sock_fprog p = { sizeof code / sizeof *code, code };
	struct sigaction a = { .sa_handler = on_signal };
	int fd;

	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	sigaction(SIGUSR1, &a, NULL);
	fd = (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
	    SECCOMP_FILTER_FLAG_NEW_LISTENER | SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV,
	    &p);
	if (fd < 0)
		_exit(errno == EINVAL ? NO_KILLABLE : errno);
	if (kn_fd_send(sock, "x", 1, &fd, 1, 0) < 0)
		_exit(errno);
	close(fd);
	while (!heard)
		if (syscall(SYS_keyctl, 0, 0, 0, 0, 0) != -1 || errno != REFUSED_WITH)
			_exit(errno);
	_exit(0);
}

static int
end_of(pid_t pid)
{
	int status;

	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

/* Turn the loop until so many calls wait for the end of the rest. */
static void
until_held(unsigned n)
{
	uint64_t until = kn_clock_after_ms(kn_clock_now(), 20000);
	struct kn_err e;

	while (w->listener.held_n < n) {
		if (kn_clock_now() > until)
			fail_msg("%u calls are held, not %u", w->listener.held_n, n);
		assert_int_equal(kn_loop_wait(&s->loop, kn_clock_now(),
				     kn_clock_after_ms(kn_clock_now(), 10), &e),
		    0);
	}
}

static void
a_signal_does_not_cut_short_a_call_that_waits_for_the_end_of_a_rest(void **state)
{
	struct kn_err e;
	int sv[2], fds[1], n = 0;
	char byte;
	pid_t pid;

	(void)state;
	w->listener.fd = s->wk[0].listener.fd = -1;
	s->tell = true;
	policy.seccomp.unlisted = KN_SC_ERRNO;
	policy.seccomp.unlisted_errno = REFUSED_WITH;
	assert_int_equal(kn_told_open(&policy, false, &s->told, &e), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sv), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0)
		call_without_end(sv[1]);
	close(sv[1]);
	if (kn_fd_recv(sv[0], &byte, 1, fds, 1, &n, 0) == 1) {
		assert_int_equal(n, 1);
		assert_null(kn_refused_take(w, fds[0]));
		until_held(1);
		assert_int_equal(s->listener_rests, 1);
		assert_int_equal(kill(pid, SIGUSR1), 0);
		assert_int_equal(waitpid(pid, NULL, WNOHANG), 0);
		kn_refused_timer(w, UINT64_MAX);
		assert_int_equal(s->listener_rests + w->listener.held_n, 0);
		assert_int_equal(end_of(pid), 0);
		kn_refused_end(w);
	} else {
		assert_int_equal(end_of(pid), NO_KILLABLE);
	}
	close(sv[0]);
	kn_told_close(s->told);
}

int
main(void)
{
#define WITH(t) cmocka_unit_test_setup_teardown(t, start, stop)
	const struct CMUnitTest tests[] = {
		WITH(
		    a_signal_does_not_cut_short_a_call_that_waits_for_the_end_of_a_rest),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
