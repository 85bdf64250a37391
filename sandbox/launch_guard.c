/* sandbox/launch_guard.c: wait for the supervisor's end, then kill its launchers.
 *
 * It holds one descriptor, no directory, no terminal, and of root's powers only that of
 * killing processes of another uid.
 */
#include "sandbox/launch_guard.h"

#include <errno.h>
#include <linux/capability.h>
#include <linux/sched.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "ipc/err.h"
#include "ipc/fd.h"
#include "sandbox/caps.h"

static void __attribute__((noreturn)) guard_run(int supervisor)
{
	const uint64_t keep = 1ull << CAP_KILL;
	struct pollfd p = { .fd = 0, .events = POLLIN };
	sigset_t all;

	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	setpgid(0, 0); /* the parent does it too: whoever comes first */
	prctl(PR_SET_NAME, "knit-guard", 0, 0, 0);
	kn_caps_drop_bounding(keep);
	if (kn_caps_drop(keep) < 0 || kn_caps_verify(keep) < 0 || chdir("/") < 0 ||
	    dup2(supervisor, 0) < 0 || syscall(SYS_close_range, 1, ~0u, 0) < 0)
		_exit(1);
	while (poll(&p, 1, -1) != 1)
		;
	kill(0, SIGKILL);
	_exit(0);
}

int
kn_guard_ensure(struct kn_proc *guard, int self_pidfd, struct kn_err *e)
{
	struct pollfd dead = { .fd = guard->pidfd, .events = POLLIN };
	int pidfd = -1;
	struct clone_args ca = {
		.flags = CLONE_PIDFD,
		.pidfd = (uint64_t)(uintptr_t)&pidfd,
		.exit_signal = SIGCHLD,
	};
	long pid;

	if (guard->pidfd >= 0 && poll(&dead, 1, 0) == 0)
		return 0;
	kn_proc_close(guard);
	pid = syscall(SYS_clone3, &ca, sizeof(ca));
	if (pid == 0)
		guard_run(self_pidfd);
	if (pid < 0)
		return kn_err_sys(e, KN_EK_HOST, "fork the guard");
	guard->pidfd = pidfd;
	guard->pid = (pid_t)pid;
	/* Launchers join the group right after this. */
	if (setpgid(guard->pid, guard->pid) < 0) {
		kn_err_sys(e, KN_EK_HOST, "make the guard's process group");
		kn_proc_close(guard);
		return -1;
	}
	return 0;
}
