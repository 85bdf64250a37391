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
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "ipc/err.h"
#include "sandbox/caps.h"
#include "sandbox/stub/sys.h"

int
kn_guard_open(struct kn_guard *g, uint32_t group_n, struct kn_err *e)
{
	void *p = mmap(NULL, group_n * sizeof(g->groups[0]), PROT_READ | PROT_WRITE,
	    MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		return kn_err_sys(e, KN_EK_HOST, "map the guard's table");
	g->groups = p;
	g->group_n = group_n;
	g->self_pidfd = (int)syscall(SYS_pidfd_open, getpid(), 0);
	if (g->self_pidfd < 0)
		return kn_err_sys(e, KN_EK_HOST, "open a pidfd (Linux 5.3 or later)");
	return 0;
}

void
kn_guard_dismiss(const struct kn_guard *g)
{
	if (g->proc.pidfd >= 0)
		kn_proc_signal(&g->proc, SIGKILL);
}

void
kn_guard_close(struct kn_guard *g)
{
	kn_proc_close(&g->proc);
	kn_fd_close(&g->self_pidfd);
	if (g->groups != NULL)
		munmap((void *)(uintptr_t)g->groups, g->group_n * sizeof(g->groups[0]));
	g->groups = NULL;
}

static void __attribute__((noreturn)) guard_run(const struct kn_guard *g)
{
	const uint64_t keep = 1ull << CAP_KILL;
	struct pollfd p = { .fd = 0, .events = POLLIN };
	sigset_t all;

	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	prctl(PR_SET_NAME, "knit-guard", 0, 0, 0);
	kn_caps_drop_bounding(keep);
	if (kn_caps_drop(keep) < 0 || kn_caps_verify(keep) < 0 || chdir("/") < 0 ||
	    setsid() < 0 || dup2(g->self_pidfd, 0) < 0 ||
	    syscall(SYS_close_range, 1, ~0u, 0) < 0)
		_exit(1);
	while (poll(&p, 1, -1) != 1)
		;
	for (uint32_t i = 0; i < g->group_n; i++) {
		pid_t group = g->groups[i];

		if (group > 1)
			kill(-group, SIGKILL);
	}
	_exit(0);
}

bool
kn_guard_alive(const struct kn_guard *g)
{
	struct pollfd dead = { .fd = g->proc.pidfd, .events = POLLIN };

	return g->proc.pidfd >= 0 && poll(&dead, 1, 0) == 0;
}

int
kn_guard_ensure(struct kn_guard *g, struct kn_err *e)
{
	int pidfd = -1;
	struct clone_args ca = {
		.flags = CLONE_PIDFD,
		.pidfd = (uint64_t)(uintptr_t)&pidfd,
		.exit_signal = SIGCHLD,
	};
	long pid;

	if (kn_guard_alive(g))
		return 0;
	kn_proc_close(&g->proc);
	pid = kn_sys_clone3_fork(&ca);
	if (pid == 0)
		guard_run(g);
	if (pid < 0) {
		errno = (int)-pid;
		return kn_err_sys(e, KN_EK_HOST, "start the guard");
	}
	g->proc = (struct kn_proc){ .pidfd = pidfd, .pid = (pid_t)pid };
	return 0;
}
