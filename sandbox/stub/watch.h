/* sandbox/stub/watch.h: limits that nobody else holds, kept by looking.
 *
 * Processor time is read from the cgroup where there is one, else counted process by
 * process (spent.h); memory is summed over them where no cgroup holds the limit.
 * The next look is set by how soon the limit could be reached at full speed, so a task
 * far from its limits is hardly looked at, but for processes that may come and go. What
 * the looks miss by their grain, the final accounts tell (sandbox/stub/run.c). A cell
 * whose only process is stopped is not looked at until its init tells that it goes on.
 *
 * What processes share can only be told by going through their page tables, which takes
 * as long as they like: that is done in slices, takes half of the time at most, and is
 * left alone where it would outlast what has to be done next.
 */
#ifndef KN_STUB_WATCH_H
#define KN_STUB_WATCH_H

#include <stdbool.h>
#include <stdint.h>

#include "ipc/job.h"
#include "sandbox/stub/spent.h"

struct kn_cg;

struct kn_watch {
	int proc_fd;   /* /proc of the sandbox: the stub is 1, the rest is the cell */
	bool below;    /* of the machine: the cell is what is below its init */
	bool singly;   /* and no signal reaches all of it at once */
	uint32_t cpus; /* that a cell may use at once */
	bool told;     /* the cell's init tells when what was stopped goes on */
	bool resident; /* it lives on while nobody calls, and is not to be woken */
	/* of the present task; 0: nothing to watch */
	uint64_t cpu_limit_ns, memory_limit;
	uint64_t next_ns;   /* when to look, CLOCK_MONOTONIC; 0: never */
	uint64_t memory_ns; /* and when at its memory */
	bool counts;	    /* processor time that nobody else counts */
	struct kn_spent spent;
	struct {
		bool on;	   /* begun, and not all processes are counted */
		bool sliced;	   /* they were not all counted in one look */
		int after;	   /* the last process that was */
		uint64_t bytes;	   /* of those counted */
		uint64_t read_ns;  /* the longest that one process took; a guess */
		bool known;	   /* until one is known */
		uint64_t spent_ns; /* this time */
		uint32_t over_row; /* sliced ones in a row that were over the limit */
	} exact;
};

void kn_watch_begin(struct kn_watch *w, const struct kn_cg *g,
    const struct kn_job_limits *l, uint64_t now_ns);
/* What is looked at: the cell's init, whose own work does not count; and when the
 * caller has to act next, which no look may outlast (0: never). */
struct kn_watched {
	int init_pid;
	uint64_t init_cpu_ns, until_ns;
};
/* Look if it is time. Returns the limit that is passed, or KN_CAUSE_NONE. */
enum kn_cause kn_watch_look(struct kn_watch *w, const struct kn_cg *g,
    const struct kn_watched *cell, uint64_t now_ns);
/* Processor time that is in no account: of children whose parent ignored their end. */
void kn_watch_add_unwaited(const struct kn_watch *w, struct kn_job_result *r);
/* It may run again, where it was stopped and not looked at any more. */
void kn_watch_again(struct kn_watch *w, uint64_t now_ns);
/* One process of one thread, and no other. */
bool kn_watch_is_single(struct kn_watch *w, int init_pid);
/* SIGKILL to every process of the cell but init, one by one. What forks meanwhile may
 * slip through: init's own kill(-1) does not. But once the crowd is gone, init gets a
 * processor at once. */
void kn_watch_kill_crowd(struct kn_watch *w, int init_pid);
/* A signal for a process that init started; and SIGTERM to all of the cell, where all
 * can be reached at once, or to that one. Init does not hear it. */
void kn_watch_signal(struct kn_watch *w, int init_pid, int pid, int signo);
void kn_watch_term_all(struct kn_watch *w, int init_pid);
/* The pid, as the stub sees it, of the process that init started first; 0: none. */
int kn_watch_task_pid(struct kn_watch *w, int init_pid);

#endif
