/* sandbox/launch_warden.c: see launch_warden.h. */
#include "sandbox/launch_warden.h"

#include <errno.h>
#include <linux/sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ipc/err.h"
#include "ipc/fd.h"
#include "sandbox/cgroup_tree.h"
#include "sandbox/launch_child.h"
#include "sandbox/stub/children.h"
#include "sandbox/stub/sys.h"

/* A sanitizer's own memory cannot be shared by two processes that it takes for one. */
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define SHARED 0
#else
#define SHARED (CLONE_VM | CLONE_CHILD_SETTID | CLONE_CHILD_CLEARTID)
#endif

enum {
	STACK = 64 * 1024,
	HEAD = 4096,
	GUARD = 4096,
	FAILED = 125,
	AGAIN_NS = 1000 * 1000
};

struct room {
	/* Not 0 while a warden is on this stack; the kernel clears it at its end. */
	volatile int32_t tid;
	int clone_fd;
	bool gathers;
	struct kn_child child;
	int join[KN_CGROUP_TREES_MAX];
};
_Static_assert(sizeof(struct room) <= HEAD, "fits before the stack");

/* ---- the warden: system calls only, no word of the program's but its room ---- */

static void
keep_two(int a, int b)
{
	int low = a < b ? a : b, high = a < b ? b : a;

	if (low > 0)
		(void)KN_SYS3(SYS_close_range, 0, low - 1, 0);
	if (high > low + 1)
		(void)KN_SYS3(SYS_close_range, low + 1, high - 1, 0);
	(void)KN_SYS3(SYS_close_range, high + 1, ~0u, 0);
}

static long
start_launcher(struct room *r, int clone_fd, int *pidfd)
{
	struct clone_args ca = {
		.flags = CLONE_PIDFD | (clone_fd >= 0 ? CLONE_INTO_CGROUP : 0),
		.pidfd = (uint64_t)(uintptr_t)pidfd,
		.exit_signal = SIGCHLD,
		.cgroup = clone_fd >= 0 ? (uint64_t)clone_fd : 0,
	};
	size_t join_n = r->child.join_n;
	long pid;

	if (clone_fd >= 0)
		r->child.join_n--;
	pid = kn_sys_clone3_fork(&ca);
	if (pid == 0)
		kn_child_run(&r->child);
	r->child.join_n = join_n;
	return pid < 0 && clone_fd >= 0 ? start_launcher(r, -1, pidfd) : pid;
}

/* As the launcher ended, but for signals that dump core: the core would be the
 * program's, and the kernel ends all who share memory with it. */
static void
end_as(int status)
{
	if (WIFEXITED(status))
		kn_sys_exit(WEXITSTATUS(status));
	if (WTERMSIG(status) == SIGKILL)
		(void)kn_sys_kill((int)KN_SYS0(SYS_getpid), SIGKILL);
	kn_sys_exit(128 + WTERMSIG(status));
}

/* All that is left of the launcher, which has ended or is to. */
static void
end_gathered(void)
{
	const struct timespec again = { 0, AGAIN_NS };
	int status, r;

	while ((r = kn_sys_wait4(-1, &status, __WALL | WNOHANG, NULL)) >= 0) {
		if (r > 0)
			continue;
		if (kn_children_kill() < 0)
			return;
		(void)kn_sys_ppoll(NULL, 0, &again);
	}
}

static void
warden_run(void *arg)
{
	struct room *r = arg;
	int pidfd = -1, status = 0;
	struct pollfd p[2];
	long pid;

	(void)KN_SYS5(SYS_prctl, PR_SET_NAME, "knit-warden", 0, 0, 0);
	r->child.group = (int32_t)KN_SYS0(SYS_setsid);
	if (r->gathers)
		(void)KN_SYS5(SYS_prctl, PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
	pid = start_launcher(r, r->clone_fd, &pidfd);
	if (pid < 0) {
		struct kn_step_err no = { .sys = (int32_t)-pid };

		(void)kn_sys_write(r->child.report_fd, &no, sizeof(no));
		kn_sys_exit(FAILED);
	}
	p[0] = (struct pollfd){ .fd = r->child.parent_pidfd, .events = POLLIN };
	p[1] = (struct pollfd){ .fd = pidfd, .events = POLLIN };
	keep_two(p[0].fd, p[1].fd);
	while (kn_sys_ppoll(p, 2, NULL) < 1)
		;
	if (p[0].revents != 0 && r->gathers)
		end_gathered();
	if (p[0].revents != 0)
		(void)kn_sys_kill(0, SIGKILL); /* all of the group, and ourselves */
	if (kn_sys_wait4((int)pid, &status, 0, NULL) != pid)
		kn_sys_exit(FAILED);
	if (r->gathers)
		end_gathered();
	end_as(status);
}

/* ---- the program ---- */

static struct room *
make_room(struct kn_warden *w, struct kn_err *e)
{
	struct room *r = w->room;
	char *p;

	/* One that would not die is still on its stack: it keeps it. */
	if (r != NULL && r->tid == 0)
		return r;
	p = mmap(NULL, HEAD + GUARD + STACK, PROT_READ | PROT_WRITE,
	    MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
	if (p == MAP_FAILED || mprotect(p + HEAD, GUARD, PROT_NONE) < 0) {
		kn_err_sys(e, KN_EK_HOST, "memory for a warden's stack");
		return NULL;
	}
	w->room = p;
	return w->room;
}

int
kn_warden_start(struct kn_warden *w, const struct kn_child *c, int clone_fd,
    struct kn_proc *out, struct kn_err *e)
{
	struct room *r = make_room(w, e);
	int pidfd = -1;
	struct clone_args ca = {
		.flags = CLONE_PIDFD | SHARED,
		.pidfd = (uint64_t)(uintptr_t)&pidfd,
	};
	sigset_t all, old;
	long pid;

	if (r == NULL)
		return -1;
	r->clone_fd = clone_fd;
	r->gathers = w->gathers;
	r->child = *c;
	if (c->join_n > 0)
		memcpy(r->join, c->join_fds, c->join_n * sizeof(r->join[0]));
	r->child.join_fds = r->join;
	if (SHARED) { /* else it has a copy of ours */
		ca.stack = (uint64_t)(uintptr_t)((char *)r + HEAD + GUARD);
		ca.stack_size = STACK;
		ca.child_tid = (uint64_t)(uintptr_t)&r->tid;
		r->tid = 1;
	}
	/* No handler of the program's may ever run in the warden. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	pid = kn_sys_clone3_run(&ca, warden_run, r);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (pid < 0) {
		r->tid = 0;
		errno = (int)-pid;
		return kn_err_sys(e, KN_EK_HOST, "start a warden");
	}
	out->pidfd = pidfd;
	out->pid = (pid_t)pid;
	return 0;
}

void
kn_warden_free(struct kn_warden *w)
{
	struct room *r = w->room;

	if (r != NULL && r->tid == 0)
		munmap(r, HEAD + GUARD + STACK);
	w->room = NULL;
}
