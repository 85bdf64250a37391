/* sandbox/stub/stub.h: everything one worker's stub holds, from boot to exit. */
#ifndef KN_STUB_STUB_H
#define KN_STUB_STUB_H

#include <linux/filter.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>

#include "ipc/arena.h"
#include "ipc/control.h"
#include "ipc/lane.h"
#include "sandbox/stub/cell.h"
#include "sandbox/stub/cgroup.h"
#include "sandbox/stub/direct.h"
#include "sandbox/stub/files.h"
#include "sandbox/stub/fresh.h"
#include "sandbox/stub/ipcns.h"
#include "sandbox/stub/left.h"
#include "sandbox/stub/overlay.h"
#include "sandbox/stub/watch.h"

/* A TASK message that waits for its turn, with its descriptors. */
struct kn_waiting {
	uint32_t slot, task, gen;
	int fds[KN_MSG_FDS_MAX];
	int fd_n;
};

struct kn_stub {
	int sock, bell;
	int told_fd;	 /* an eventfd that a cell's init rings (cell.h) */
	int refs_fd;	 /* own clear_refs (a "5" resets the peak of memory), or -1 */
	uint64_t nofile; /* the limit we were started with: a task's default */
	uint64_t hard[RLIM_NLIMITS]; /* what no task can have more of */

	struct kn_map slice_map;
	struct kn_slice slice;
	struct kn_return_tx tx;

	/* from the boot record */
	uint32_t flags, worker, worker_n;
	uint64_t tmp_bytes, tmp_inodes, task_bytes, task_inodes;
	char tmp_opts[KN_MOUNT_OPTS], shm_opts[KN_MOUNT_OPTS], task_opts[KN_MOUNT_OPTS];
	struct kn_fresh fresh[KN_FRESH_N];
	bool may_share; /* file systems that no task has touched, see fresh.h */
	struct kn_ipcns ipcns;
	struct kn_collect_limits collect;
	struct kn_direct direct; /* its place is NULL where there are namespaces */
	struct kn_covered covered;
	struct kn_overlays overlays;
	struct kn_land land;
	struct sock_filter cell_bpf[BPF_MAXINSNS];
	uint32_t cell_bpf_n;
	struct kn_cg cg;
	struct kn_watch watch;
	struct kn_left left;

	/* tasks told of and not looked at yet: a ring, oldest first */
	struct kn_waiting waiting[KN_SLOTS];
	uint32_t waiting_at, waiting_n;
	bool stopping; /* the stop word was seen and acknowledged */
};

/* What we were started with; the last one is NULL. */
extern const char *const *kn_bare_args;

/* Start: receive the boot record, build the walls, verify them. 0; or -1 after the
 * failed step was reported: exit. */
int kn_boot_stub(struct kn_stub *s);
/* BOOT_FAIL, or where there is no socket yet a line to stderr, which a launcher's
 * client passes on; always -1. */
int kn_boot_fail(int sock, enum kn_boot_step step, int err, const char *what);

/* Serve until told to stop or until the supervisor is gone. */
void kn_serve(struct kn_stub *s);

/* A large job was read once, page by page; its pages must not count as memory of the
 * task, which starts from ours (exec keeps the peak of the memory it leaves). Only our
 * view of shared memory goes: what it holds stays. */
void kn_shed_job(const struct kn_stub *s, const uint8_t *area, size_t n);

/* ---- serve.c, for a running task ---- */

/* What a message asked of the running cell. */
struct kn_order {
	enum kn_cause kill; /* KN_CAUSE_NONE: do not */
	int signo;	    /* 0: none */
};
/* Take one message if there is one (or wait for it), and look at the stop word. Orders
 * for (task, gen) go to *out. Ends the stub if the supervisor is gone or speaks out of
 * turn. */
void kn_serve_message(
    struct kn_stub *s, bool wait, uint32_t task, uint32_t gen, struct kn_order *out);
/* Notice a stop request: acknowledge, let go of all that waits. */
bool kn_serve_stopping(struct kn_stub *s);
/* Publish to the return lane, waiting for a free slot, and ring. */
void kn_serve_answer(
    struct kn_stub *s, const struct kn_slot_head *head, const void *bytes);
/* Before the next task: wait until the memory of the last one is not charged any more.
 * The kernel needs some milliseconds for what it left. Files that were handed over stay
 * charged while anybody has them open: if that goes on after the answer was taken, the
 * stub ends, since the next task would be killed for them. */
void kn_serve_rest(struct kn_stub *s, bool gave_files);
/* Kill everything and exit: nobody is left to answer to. */
_Noreturn void kn_serve_abandon(struct kn_stub *s);

/* ---- run.c ---- */

/* Run one claimed exec task and answer it. fds are consumed. */
void kn_run(struct kn_stub *s, const struct kn_slot_head *head,
    const uint8_t inline_bytes[KN_INLINE_MAX], int *fds, int fd_n);

/* ---- rlimits.c ---- */

void kn_rlimits_plan(
    struct kn_cell *c, struct kn_stub *s, const struct kn_job_limits *l);

/* ---- pty.c ---- */

/* A terminal of the sandbox's own devpts for a task: the master goes to the supervisor.
 * 0, or a negative errno. */
int kn_pty_give(struct kn_stub *s, const struct kn_slot_head *head, uint16_t rows,
    uint16_t cols, int *out_slave);

#endif
