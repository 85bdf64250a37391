/* sandbox/stub/cell.c: a cell's init, from its birth to the last process it reaps. */
#include "sandbox/stub/cell.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "ipc/shm.h"
#include "sandbox/stub/children.h"
#include "sandbox/stub/direct.h"
#include "sandbox/stub/sys.h"

enum { STACK_BYTES = 32 * 1024, KILL_SIGNAL = SIGUSR2, SWEEP_NS = 500 * 1000 };

/* Only one cell at a time; pages that nobody touches cost nothing. */
static _Alignas(64) unsigned char init_stack[STACK_BYTES];
static _Alignas(64) unsigned char task_stack[STACK_BYTES];

static _Noreturn void
init_fail(struct kn_cell *c, enum kn_exec_step step, int r, const char *detail)
{
	c->step = step;
	c->sys = -r;
	c->detail = detail;
	kn_sys_exit(1);
}

/* Nothing reaches all of the cell at once (direct.h). */
static bool
is_sweeping(const struct kn_cell *c)
{
	return c->direct && !c->direct->scoped;
}

/* It is asked for, or the stub is gone, which in a PID namespace would be our end. */
static bool
init_must_kill(const struct kn_cell *c)
{
	return kn_shm_load32_acquire(&c->kill_asked) /* Q2 */ ||
	       (c->direct && (int)KN_SYS0(SYS_getppid) != c->direct->stub_pid);
}

/* Kill all but us, if that was asked for: kill(-1) reaches every process of this PID
 * namespace in one pass, stopped and forking ones too, where ending init would take the
 * kernel 150 ms among 100 spinning processes. */
static void
init_obey(struct kn_cell *c)
{
	/* The task's process has our handlers until its execve. */
	if (c->direct && (int)KN_SYS0(SYS_getpid) != c->init_pid)
		return;
	if (!init_must_kill(c))
		return;
	if (is_sweeping(c)) /* init_reap() does it, again and again */
		return;
	(void)kn_sys_kill(-1, SIGKILL);
	kn_shm_store32_release(&c->kill_done, 1); /* D3 */
}

/* The present cell, for the handler; there is one at a time. */
static struct kn_cell *present;

/* The task can send this signal too: then nothing was asked for. */
static void
init_on_signal(int signo)
{
	(void)signo;
	init_obey(present);
}

/* The task's process, as far as execve; returns when the program runs or it failed. */
static int
init_spawn(struct kn_cell *c)
{
	struct clone_args a = {
		.flags = CLONE_VM | CLONE_VFORK,
		.exit_signal = SIGCHLD,
		.stack = (uintptr_t)task_stack,
		.stack_size = sizeof task_stack,
	};

	return (int)kn_sys_clone3_run(&a, kn_exec_task, c);
}

static uint64_t
us_of(const struct timeval *t)
{
	return (uint64_t)t->tv_sec * 1000000u + (uint64_t)t->tv_usec;
}

static struct kn_cell_usage
usage_of(const struct rusage *ru)
{
	return (struct kn_cell_usage){ us_of(&ru->ru_utime), us_of(&ru->ru_stime),
		(uint64_t)ru->ru_maxrss * 1024 };
}

/* All of the cell is reaped. */
static _Noreturn void
init_over(struct kn_cell *c)
{
	const uint64_t one = 1;
	struct rusage ru;

	if (c->told_fd >= 0 && KN_SYS2(SYS_getrusage, RUSAGE_CHILDREN, &ru) == 0) {
		c->usage = usage_of(&ru);
		kn_shm_store32_release(&c->over, 1); /* X1 */
		(void)kn_sys_write(c->told_fd, &one, sizeof one);
	}
	kn_sys_exit(0);
}

/* A child that was stopped runs again: who had left off looking is to look. */
static void
init_tell(const struct kn_cell *c)
{
	const uint64_t one = 1;

	if (c->told_fd >= 0)
		(void)kn_sys_write(c->told_fd, &one, sizeof one);
}

/* Children are killed until there are none. */
static int
sweep(struct kn_cell *c, int *status)
{
	struct timespec t = { 0, SWEEP_NS };
	int pid = kn_sys_wait4(-1, status, __WALL | WNOHANG, NULL);

	if (pid != 0)
		return pid;
	(void)kn_children_kill();
	kn_shm_store32_release(&c->kill_done, 1); /* D3 */
	(void)kn_sys_ppoll(NULL, 0, &t);
	return -EINTR;
}

/* Reap whatever ends. When the task does, nothing of what it left may go on. */
static _Noreturn void
init_reap(struct kn_cell *c, int task)
{
	for (;;) {
		int status = 0, pid;

		if (is_sweeping(c) && (c->ended || init_must_kill(c)))
			pid = sweep(c, &status);
		else
			pid = kn_sys_wait4(-1, &status, __WALL | WCONTINUED, NULL);
		if (pid == -EINTR)
			continue;
		if (pid < 0) /* -ECHILD: all gone */
			init_over(c);
		if (WIFCONTINUED(status)) {
			init_tell(c);
			continue;
		}
		if (pid != task)
			continue;
		c->ended_ns = kn_sys_clock_ns(CLOCK_MONOTONIC);
		c->wait_status = status;
		kn_shm_store32_release(&c->ended, 1); /* E1 */
		/* Who is left of the cell is a descendant of ours. Without a child of
		 * ours there is nobody, and no need to go through all processes of the
		 * machine, which is what killing all takes. */
		if (kn_sys_wait4(-1, &status, __WALL | WNOHANG, NULL) == -ECHILD)
			init_over(c);
		if (!is_sweeping(c))
			(void)kn_sys_kill(-1, SIGKILL);
	}
}

/* The pipes must end with the task, not with us. */
static void
init_close(const struct kn_cell *c)
{
	int a = c->told_fd, b = c->direct ? c->hold_fd : -1;
	int low = a < b ? a : b, high = a < b ? b : a;

	if (low > 0)
		(void)KN_SYS3(SYS_close_range, 0, low - 1, 0);
	if (high > low + 1)
		(void)KN_SYS3(SYS_close_range, low + 1, high - 1, 0);
	(void)KN_SYS3(SYS_close_range, high + 1, ~0u, 0);
}

/* Mounts of its own, or what stands in for namespaces. A signal to all is not for us.
 */
static int
init_house(struct kn_cell *c, const char **at)
{
	int r;

	if (!c->direct)
		return kn_mounts_cell(&c->mounts, c->land->run_only, at);
	*at = "without namespaces";
	r = kn_sys_catch(SIGTERM, init_on_signal);
	return r < 0 ? r : kn_direct_init(c->direct, KILL_SIGNAL);
}

static void
init_main(void *arg)
{
	struct kn_cell *c = arg;
	const char *at = NULL;
	int r, task;

	present = c;
	(void)kn_sys_short_turns();
	c->init_pid = (int)KN_SYS0(SYS_getpid);
	r = kn_sys_catch(KILL_SIGNAL, init_on_signal);
	if (r < 0)
		init_fail(c, KN_EXEC_CELL, r, "signal");
	r = init_house(c, &at);
	if (r < 0)
		init_fail(c, KN_EXEC_CELL, r, at);
	r = kn_wall_cell_caps();
	if (r < 0)
		init_fail(c, KN_EXEC_WALL, r, "capabilities");
	c->begun_ns = kn_sys_clock_ns(CLOCK_MONOTONIC);
	task = init_spawn(c);
	if (task < 0)
		init_fail(c, KN_EXEC_CELL, task, "start the task's process");
	c->init_cpu_ns = kn_sys_clock_ns(CLOCK_PROCESS_CPUTIME_ID);
	kn_shm_store32_release(&c->executed, 1); /* Z1 */
	init_close(c);
	init_obey(c); /* a signal may have come before there was a task */
	init_reap(c, task);
}

/* ---- the stub's side ---- */

int
kn_cell_start(struct kn_cell *c)
{
	struct clone_args a = {
		.flags = CLONE_VM | CLONE_PIDFD |
			 (c->direct ? 0 : CLONE_NEWPID | CLONE_NEWNS),
		.pidfd = (uintptr_t)&c->pidfd,
		.exit_signal = SIGCHLD,
		.stack = (uintptr_t)init_stack,
		.stack_size = sizeof init_stack,
	};

	c->step = KN_EXEC_STARTED;
	c->sys = 0;
	c->detail = NULL;
	c->begun_ns = c->ended_ns = c->init_cpu_ns = 0;
	c->wait_status = SIGKILL;
	c->ended = c->executed = c->over = c->kill_asked = c->kill_done = 0;
	c->pidfd = -1;
	c->pid = (int)kn_sys_clone3_run(&a, init_main, c);
	return c->pid < 0 ? c->pid : 0;
}

bool
kn_cell_is_executed(const struct kn_cell *c)
{
	return kn_shm_load32_acquire(&c->executed) != 0; /* Z2 */
}

bool
kn_cell_has_ended(const struct kn_cell *c)
{
	return kn_shm_load32_acquire(&c->ended) != 0; /* E2 */
}

bool
kn_cell_kill(struct kn_cell *c, bool force)
{
	bool done = kn_shm_load32_acquire(&c->kill_done) != 0; /* D4 */

	kn_shm_store32_release(&c->kill_asked, 1); /* Q1 */
	/* init is our child and not reaped: its number is still its own. */
	(void)kn_sys_kill(c->pid, KILL_SIGNAL);
	if (is_sweeping(c))
		return done;
	if (force && !done)
		(void)kn_sys_kill(-1, SIGKILL);
	return force || done;
}

static void
take_off(uint64_t *from, uint64_t *much)
{
	uint64_t n = *from < *much ? *from : *much;

	*from -= n;
	*much -= n;
}

/* Init's usage holds that of all it reaped. Its own work is taken off. */
static int
reap(struct kn_cell *c, struct kn_cell_usage *out)
{
	uint64_t own_us = c->init_cpu_ns / 1000;
	struct rusage ru;
	int status, r;

	memset(&ru, 0, sizeof ru);
	do
		r = kn_sys_wait4(c->pid, &status, __WALL, &ru);
	while (r == -EINTR);
	kn_sys_close_at(&c->pidfd);
	/* A task's process that was killed while it wrote to its /proc (exec.c). */
	(void)KN_SYS2(SYS_prctl, PR_SET_DUMPABLE, 0);
	if (r < 0)
		return r;
	*out = usage_of(&ru);
	take_off(&out->system_us, &own_us);
	take_off(&out->user_us, &own_us);
	return 0;
}

static bool
is_over(const struct kn_cell *c)
{
	return kn_shm_load32_acquire(&c->over) != 0; /* X2 */
}

bool
kn_cell_heard(struct kn_cell *c)
{
	uint64_t told;

	(void)kn_sys_read(c->told_fd, &told, sizeof told);
	return is_over(c);
}

int
kn_cell_usage(struct kn_cell *c, struct kn_cell_usage *out)
{
	if (!is_over(c))
		return reap(c, out);
	*out = c->usage;
	return 0;
}

int
kn_cell_reap(struct kn_cell *c)
{
	struct kn_cell_usage ignored;
	uint64_t told;

	if (c->told_fd >= 0)
		(void)kn_sys_read(c->told_fd, &told, sizeof told);
	return c->pidfd < 0 ? 0 : reap(c, &ignored);
}
