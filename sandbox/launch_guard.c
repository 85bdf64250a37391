/* sandbox/launch_guard.c: wait for the supervisor's end, then kill its launchers.
 *
 * It holds one descriptor, no directory, no terminal, and of root's powers only that of
 * killing processes of another uid.
 */
#include "sandbox/launch_guard.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/sched.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ipc/err.h"
#include "ipc/fd.h"
#include "sandbox/caps.h"

/* What the middle process tells of the guard; pidfd is a number of our own table. */
struct born {
	int32_t err, pid, pidfd;
};

static void __attribute__((noreturn)) guard_run(int supervisor)
{
	const uint64_t keep = 1ull << CAP_KILL;
	struct pollfd p = { .fd = 0, .events = POLLIN };
	sigset_t all;

	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	prctl(PR_SET_NAME, "knit-guard", 0, 0, 0);
	kn_caps_drop_bounding(keep);
	if (kn_caps_drop(keep) < 0 || kn_caps_verify(keep) < 0 || chdir("/") < 0 ||
	    setpgid(0, 0) < 0 || dup2(supervisor, 0) < 0 ||
	    syscall(SYS_close_range, 1, ~0u, 0) < 0)
		_exit(1);
	while (poll(&p, 1, -1) != 1)
		;
	kill(0, SIGKILL);
	_exit(0);
}

/* Forks the guard and ends, so that it becomes init's. Shares our descriptor table, so
 * that the guard's pidfd is ours. */
static void __attribute__((noreturn)) middle_run(int supervisor, int report)
{
	int pidfd = -1;
	struct clone_args ca = {
		.flags = CLONE_PIDFD,
		.pidfd = (uint64_t)(uintptr_t)&pidfd,
		.exit_signal = SIGCHLD,
	};
	struct born b = { 0, 0, -1 };
	long pid = syscall(SYS_clone3, &ca, sizeof(ca));

	if (pid == 0)
		guard_run(supervisor);
	/* Launchers join the group at once: it must exist when we have reported. */
	if (pid < 0 || setpgid((pid_t)pid, (pid_t)pid) < 0)
		b.err = errno;
	b.pid = (int32_t)pid;
	b.pidfd = pidfd;
	_exit(write(report, &b, sizeof(b)) == (ssize_t)sizeof(b) ? 0 : 1);
}

/* What the middle process reported. It is waited for here, without a signal: when it
 * has ended, what it wrote is there, or nothing comes. */
static struct born
hear(pid_t middle, int report)
{
	const struct born broken = { EPIPE, 0, -1 };
	struct born b;

	while (waitpid(middle, NULL, __WALL) < 0 && errno == EINTR)
		;
	if (fcntl(report, F_SETFL, O_NONBLOCK) < 0 ||
	    read(report, &b, sizeof(b)) != (ssize_t)sizeof(b))
		return broken;
	return b;
}

int
kn_guard_ensure(struct kn_proc *guard, int self_pidfd, struct kn_err *e)
{
	struct pollfd dead = { .fd = guard->pidfd, .events = POLLIN };
	struct clone_args ca = { .flags = CLONE_FILES };
	struct born b = { 0, 0, -1 };
	int report[2];
	long pid;

	if (guard->pidfd >= 0 && poll(&dead, 1, 0) == 0)
		return 0;
	kn_proc_close(guard);
	if (pipe2(report, O_CLOEXEC) < 0)
		return kn_err_sys(e, KN_EK_HOST, "make a pipe for the guard");
	pid = syscall(SYS_clone3, &ca, sizeof(ca));
	if (pid == 0)
		middle_run(self_pidfd, report[1]);
	if (pid < 0)
		b.err = errno;
	else
		b = hear((pid_t)pid, report[0]);
	close(report[0]);
	close(report[1]);
	guard->pidfd = b.pidfd;
	guard->pid = b.pid;
	if (b.err == 0)
		return 0;
	kn_proc_close(guard);
	errno = b.err;
	return kn_err_sys(e, KN_EK_HOST, "start the guard");
}
