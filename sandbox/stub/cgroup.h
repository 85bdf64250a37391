/* sandbox/stub/cgroup.h: a task's share of the worker's cgroup, through the descriptors
 * of the boot message: limits before a task, peak and events after it.
 *
 * Launcher, stub and a cell's init live in the same cgroup, so their part is added to
 * each limit and taken off each figure. Values are written only when they change.
 */
#ifndef KN_STUB_CGROUP_H
#define KN_STUB_CGROUP_H

#include <stdbool.h>
#include <stdint.h>

#include "ipc/job.h"

struct kn_cg {
	int fd[KN_BOOT_FD_N]; /* owned for good; -1: this machine has none */
	bool v2_mem, v2_cpu, may_swap;
	uint64_t mem_overhead, worker_mem;
	uint32_t pids_overhead;
	/* what stands in the files now; 0: not written yet */
	uint64_t limit, swap, pids;
	/* at the start of the task */
	bool peak_reset;
	uint64_t peak0, pids_peak0, cpu0_ns, own0_ns;
	uint32_t oom0, met0; /* kills; v2: limits that were met */
	/* after it */
	uint64_t grew;	      /* bytes by which the charge rose */
	uint64_t shmem_rest;  /* shared memory that is charged between tasks */
	uint64_t shmem_slack; /* how far the kernel's statistics may be behind */
};

void kn_cg_init(struct kn_cg *g, const struct kn_boot *b, const int fd[KN_BOOT_FD_N]);
/* What is charged now is what every worker has: while no task runs. */
void kn_cg_rest_is_now(struct kn_cg *g, uint32_t cpus);
bool kn_cg_holds_memory(const struct kn_cg *g);
bool kn_cg_holds_pids(const struct kn_cg *g);
bool kn_cg_counts_cpu(const struct kn_cg *g);

/* Set the limits of one task and note where the counters stand. 0, or a negative errno
 * with *out_what naming the file. */
int kn_cg_begin(struct kn_cg *g, const struct kn_job_limits *l, const char **out_what);
/* Processor time of the worker since kn_cg_begin() without the stub's own; 0 if this
 * machine does not count it. */
uint64_t kn_cg_cpu_ns(const struct kn_cg *g);
/* Between tasks, when nothing of the last one runs: whether the shared memory that it
 * left is gone. IPC namespaces end some time after the last process that used them, and
 * files that were handed over when they have been read; until then the next task would
 * pay for them. */
bool kn_cg_at_rest(const struct kn_cg *g);
/* Children whose parent ignores SIGCHLD leave no account to a waiter; the cgroup has
 * counted them. Adds to r->user_us what is missing. init_cpu_ns: what making the cell
 * took. */
void kn_cg_add_unwaited(
    const struct kn_cg *g, struct kn_job_result *r, uint64_t init_cpu_ns);
/* After the cell is gone: memory_peak, pids_peak, oom_kills, oom_outside of *r. */
void kn_cg_end(struct kn_cg *g, struct kn_job_result *r);

#endif
