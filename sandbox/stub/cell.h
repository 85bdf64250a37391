/* sandbox/stub/cell.h: a task's own throw-away namespaces: our init and the task.
 *
 * Three processes share one memory until the program starts: the stub (PID 1 of the
 * sandbox), the cell's init (PID 1 of the cell, CLONE_VM, a stack of its own) and the
 * task's process (PID 2, CLONE_VM | CLONE_VFORK, gone from our memory at execve). So a
 * cell costs no copy of page tables, and what goes wrong on the way is simply written
 * into struct kn_cell. Init and task use raw calls only.
 *
 * The task is never PID 1, so its signals mean what they mean outside. Init waits for
 * it, then kills and reaps all it left, and exits: the pidfd is readable when nothing
 * of the cell runs any more. One cell at a time in a worker.
 */
#ifndef KN_STUB_CELL_H
#define KN_STUB_CELL_H

#include <linux/filter.h>
#include <stdbool.h>
#include <stdint.h>

#include "ipc/job.h"
#include "sandbox/stub/mounts.h"
#include "sandbox/stub/wall.h"

struct kn_direct;
enum { KN_CELL_RLIMITS_MAX = 6, KN_CELL_PATH_MAX = 4096 };

struct kn_cell_rlimit {
	int resource;
	uint64_t value; /* soft and hard */
};

struct kn_cell {
	/* The plan: written by the stub before the start, only read by init and task.
	 */
	const char *const *argv, *const *env;
	const char *cwd;
	int stdio[3];
	int kept[KN_JOB_KEPT_MAX]; /* become 3, 4, ...; the first one is executed */
	uint32_t kept_n;	   /* 0: an ordinary task, found by argv[0] */
	int proc_fd; /* /proc of the sandbox, where a cell's processes are seen too */
	int told_fd; /* an eventfd: init says there that the cell is over, or that a
			process of it that was stopped goes on; or -1 */
	/* Without namespaces (direct.h), else NULL: the program by its name here, or
	 * NULL; and what init holds until it ends. */
	const struct kn_direct *direct;
	const char *program;
	int hold_fd, init_pid;
	bool pty; /* stdio are one terminal: make it the controlling one */
	struct kn_cell_mounts mounts;
	struct kn_cell_rlimit rlimits[KN_CELL_RLIMITS_MAX];
	uint32_t rlimit_n;
	const struct kn_land *land;
	bool land_prepared; /* its rules are */
	const struct sock_filter *bpf;
	uint32_t bpf_n;

	/* What became of it: written by init or task, read by the stub after the reap.
	 */
	enum kn_exec_step step;
	int sys; /* errno */
	const char *detail;
	uint64_t begun_ns, ended_ns; /* CLOCK_MONOTONIC */
	uint64_t init_cpu_ns;	     /* what making the cell took */
	int wait_status;
	char path[KN_CELL_PATH_MAX]; /* the program, when looked up in PATH */
	/* ended: writer init, reader stub, while the cell still runs. 1 once the task
	 * itself has ended by its own doing.
	 * E1 init_reap store release <-> E2 kn_cell_has_ended load acquire, carries
	 * ended_ns and wait_status. If init dies before E1 the cell was killed. */
	uint32_t ended;
	/* executed: writer init, reader stub. 1: the task's process has its program, or
	 * failed on the way. Before that it has our signal handlers.
	 * Z1 init_main store release <-> Z2 kn_cell_is_executed load acquire, carries
	 * nothing. If init dies before Z1 there is nothing to send a signal to. */
	uint32_t executed;
	/* over: writer init, reader stub. 1: init has reaped all of the cell, and the
	 * usage below is theirs; all that is left is init's own end.
	 * X1 init_over store release <-> X2 is_over load acquire, carries
	 * usage. If init dies before X1, the stub takes the accounts from its reap. */
	uint32_t over;
	struct kn_cell_usage {
		uint64_t user_us, system_us, max_rss;
	} usage;
	/* kill_asked: writer stub, reader init. 1: end all of the cell.
	 * Q1 kn_cell_kill store release <-> Q2 init_obey load acquire. The signal that
	 * follows Q1 makes init look; before it waits for the task it looks itself. If
	 * the stub dies before Q1, the kernel ends its whole PID namespace. */
	uint32_t kill_asked;
	/* kill_done: writer init, reader stub. 1: SIGKILL is on its way to every
	 * process of the cell. D3 init_obey store release <-> D4 kn_cell_kill load
	 * acquire. If init dies before D3, or is too slow, the stub kills init too. */
	uint32_t kill_done;

	/* The stub's hold on it. */
	int pid, pidfd;
};

/* Start it. The plan must stay as it is until the reap. 0, or a negative errno: there
 * is no cell. */
int kn_cell_start(struct kn_cell *c);
/* Whether the task's own program runs by now, or has. */
bool kn_cell_is_executed(const struct kn_cell *c);
/* Whether the task ended by itself; true is final. */
bool kn_cell_has_ended(const struct kn_cell *c);
/* End all of it, as often as wanted until the pidfd is readable. Init does the killing,
 * so that it can reap and the accounts are whole; `force`: init too, if it has not done
 * so yet (it may be stuck in an execve that waits for a slow file system). True once
 * all of it has been sent SIGKILL: nothing of it will run any more. */
bool kn_cell_kill(struct kn_cell *c, bool force);
/* The told_fd is readable. True: init has reaped all of it; else something goes on. */
bool kn_cell_heard(struct kn_cell *c);
/* Once it is over or the pidfd is readable: what all processes of the cell took,
 * without init's own work. Where init has not said it, it is reaped here for it. */
int kn_cell_usage(struct kn_cell *c, struct kn_cell_usage *out);
/* Wait for init's end, if nobody has, and close the pidfd. The kernel takes some tenths
 * of a millisecond for what init was the last to hold, the mounts above all. */
int kn_cell_reap(struct kn_cell *c);

/* In the task's process: everything up to the program. Never returns. */
void kn_exec_task(void *cell);

#endif
