/* sandbox/stub/run_int.h: what run.c and settle.c share of the running task. */
#ifndef KN_STUB_RUN_INT_H
#define KN_STUB_RUN_INT_H

#include "sandbox/stub/stub.h"

struct run {
	struct kn_stub *s;
	const struct kn_slot_head *head;
	struct kn_job job;
	struct kn_cell cell;
	struct kn_job_result res;
	int *fds;
	int fd_n, stdio_n;
	void *room;
	size_t room_n;		 /* of a mapping; 0: the static one */
	uint8_t *area;		 /* the job's bytes in the submit area, or NULL */
	int task_fs;		 /* detached tmpfs of /task, or -1 */
	bool shared[KN_FRESH_N]; /* the template's file systems that the cell has */
	int slave;		 /* the task's end of its terminal, or -1 */
	/* absolute, 0: none */
	uint64_t hard_ns, soft_ns, grace_ns, kill_ns, force_ns;
	uint64_t signals;   /* to be sent to the task: bit n - 1 is signal n */
	uint64_t signal_ns; /* when they are tried again; 0: there are none */
	bool killing;
	bool unclean; /* something of the task is still there: the worker's last one */
};

/* Why it could not be started, or what of it failed. */
void kn_run_fail(
    struct run *r, enum kn_exec_step step, int neg_errno, const char *detail);
/* Nothing of it runs any more: what it took, how it ended, what it leaves. */
void kn_run_settle(struct run *r);
void kn_run_collect(struct run *r);
void kn_run_answer(struct run *r);

#endif
