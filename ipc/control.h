/* ipc/control.h: what supervisor and stub say to each other outside the lanes: the
 * boot record, the messages of the private socket, the stop words.
 *
 * The socket is SOCK_SEQPACKET, one per worker, made by the supervisor; the stub
 * finds its end as descriptor KN_STUB_SOCK_FD. Order of a worker's life:
 *
 *   supervisor -> stub  BOOT       once, first; fds in the order of enum kn_boot_fd
 *   stub -> supervisor  LISTENER   once, before it is ready, if KN_BOOT_TELL: the
 *                                  descriptor that tells of refused calls
 *   stub -> supervisor  BOOT_FAIL  instead of becoming ready; then the stub exits
 *   stub -> supervisor  EGRESS     once, before it is ready, if KN_BOOT_EGRESS: a
 * listening socket of the sandbox's own network
 *   supervisor -> stub  TASK       after the slot is published; wakes the stub; fds:
 *                                  the task's stdin, stdout, stderr (unless
 * KN_JOB_PTY), then one per file that comes by descriptor stub -> supervisor  PTY
 * KN_JOB_PTY: the master end, once the cell has a pty stub -> supervisor  FILES zero or
 * more, before the result is published supervisor -> stub  KILL       end the cell of
 * (task, gen); arg: enum kn_cause supervisor -> stub  SIGNAL     arg: signal for the
 * task of (task, gen) supervisor -> stub  WAKE       look at the stop word
 *
 * Words beside it, in the slice (ipc/layout.h): stop and stop_ack; begun, which task is
 * being run and since when; over, of which task nothing runs any more, so that the
 * supervisor, whose deadline for the result has passed, waits for what is still to be
 * taken down (timeouts.teardown_ms, once a task) instead of killing the worker.
 *
 * Anything else, in either direction, is a violation: the stub exits, the supervisor
 * kills the worker. End of file: the other side is gone; the stub ends its cell and
 * exits. Ready is not a message: it is the answer to a PING request in the lane.
 */
#ifndef KN_IPC_CONTROL_H
#define KN_IPC_CONTROL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ipc/layout.h"

struct kn_err;
struct kn_slice;

enum { KN_STUB_SOCK_FD = 3, KN_STUB_EXE_FD = 4 };
/* Where a container of docker's has what the stub begins with: this and a word that is
 * drawn for each pool, or an image could have links there. No task sees what is in it.
 */
#define KN_STUB_BRIDGE "/.knit-"

/* Of the socket of EGRESS, at 127.0.0.1: nobody else is in that network before tasks
 * are. */
enum { KN_EGRESS_PORT = 3128 };

/* A prctl() that no kernel knows: the cell's filter, and nothing else, answers it with
 * this error. By that a cell knows that the filter is in force. */
enum {
	KN_CELL_PROBE = 0x4b4e4350,
	KN_CELL_PROBE_ERRNO = 131 /* ENOTRECOVERABLE */
};

enum kn_msg_type {
	KN_MSG_BOOT = 1,
	KN_MSG_BOOT_FAIL,
	KN_MSG_TASK,
	KN_MSG_PTY,
	KN_MSG_FILES,
	KN_MSG_KILL,
	KN_MSG_SIGNAL,
	KN_MSG_WAKE,
	KN_MSG_EGRESS,
	KN_MSG_LISTENER,
	KN_MSG_N
};

/* Every datagram: this header, then `bytes` of body. */
struct kn_msg {
	uint32_t type;
	uint32_t task, gen; /* 0 where no task is meant */
	uint32_t arg;	/* TASK: slot; KILL: cause; SIGNAL: signal; BOOT_FAIL: step */
	uint32_t sys;	/* BOOT_FAIL: errno */
	uint32_t bytes; /* body length */
};
enum { KN_MSG_BODY_MAX = 64 * 1024 };
/* FILES body (ipc/blob.h): per descriptor: str name (relative to /task), u32 what
 * (KN_FILE_KEEP | KN_FILE_COLLECT, or KN_FILE_OUT: relative to the copy whose changes
 * are brought out), u32 refusal (enum kn_file_refusal; a refused one has no descriptor
 * and names why). */
enum { KN_FILE_KEEP = 1, KN_FILE_COLLECT = 2, KN_FILE_OUT = 4 };
enum kn_file_refusal {
	KN_FILE_OK,
	KN_FILE_MISSING,
	KN_FILE_NOT_REGULAR,
	KN_FILE_SYMLINK,
	KN_FILE_TOO_LARGE,
	KN_FILE_TOO_MANY,
	KN_FILE_BAD_NAME,
	KN_FILE_IO,
	KN_FILE_TOO_DEEP,
	KN_FILE_UNWRITTEN, /* found by the supervisor */
	KN_FILE_REFUSAL_N
};

/* Why a cell was ended, decided and recorded before the kill is sent, once: the first
 * cause stands. */
enum kn_cause {
	KN_CAUSE_NONE = 0, /* it ended by itself */
	KN_CAUSE_HARD,	   /* wall clock */
	KN_CAUSE_SOFT,	   /* task_ms */
	KN_CAUSE_CPU,
	KN_CAUSE_MEMORY, /* watched memory, where no cgroup holds the limit */
	KN_CAUSE_OUTPUT,
	KN_CAUSE_CANCEL,
	KN_CAUSE_STOP, /* the pool is stopping */
	KN_CAUSE_N
};

/* Steps of the stub's start, for BOOT_FAIL. The sentence is the supervisor's. */
enum kn_boot_step {
	KN_BSTEP_RECV = 1,
	KN_BSTEP_RECORD,
	KN_BSTEP_MAP,
	KN_BSTEP_SEAL,
	KN_BSTEP_BINDS,
	KN_BSTEP_UNSHARE,
	KN_BSTEP_PRIVATE,
	KN_BSTEP_TERMINALS,
	KN_BSTEP_OVERLAY,
	KN_BSTEP_CAPS,
	KN_BSTEP_CAPS_LEFT,
	KN_BSTEP_NNP,
	KN_BSTEP_LANDLOCK,
	KN_BSTEP_FILTER,
	KN_BSTEP_RLIMIT,
	KN_BSTEP_EGRESS,
	KN_BSTEP_RUN,
	KN_BSTEP_JOIN,
	KN_BSTEP_NEST,
	KN_BSTEP_WHO,
	KN_BSTEP_FETCH,
	KN_BSTEP_N
};
const char *kn_boot_step_name(enum kn_boot_step s);

/* Descriptors of BOOT, in this order; those after BELL only if their KN_BOOT_HAS bit
 * is set in the record. RECORD is a sealed memfd with the encoded record. */
enum kn_boot_fd {
	KN_BOOT_FD_RECORD,
	KN_BOOT_FD_ARENA,
	KN_BOOT_FD_BELL,
	KN_BOOT_FD_MEM_LIMIT, /* read-write: task's memory limit in bytes ("max" or -1:
				 none) */
	KN_BOOT_FD_MEM_SWAP,  /* read-write: v1 memsw limit; v2 memory.swap.max */
	KN_BOOT_FD_MEM_PEAK, /* read-write: v1 memory.max_usage_in_bytes (write resets);
				v2 memory.peak (a write resets it for this descriptor)
			      */
	KN_BOOT_FD_MEM_EVENTS, /* read: "oom_kill N" line (v2 also "oom N"): v1
				  memory.oom_control, v2 memory.events */
	KN_BOOT_FD_CPU_USAGE,  /* read: v1 cpuacct.usage (ns), v2 cpu.stat ("usage_usec
				  N") */
	KN_BOOT_FD_PIDS_MAX,   /* read-write */
	KN_BOOT_FD_PIDS_PEAK,  /* read-write: pids.peak */
	KN_BOOT_FD_MEM_STAT,   /* read: memory.stat ("shmem N", bytes) */
	KN_BOOT_FD_JOIN, /* write: a cgroup.procs of each hierarchy, where the launcher
			    could not go before */
	KN_BOOT_FD_JOIN_LAST = KN_BOOT_FD_JOIN + 4,
	KN_BOOT_FD_N
};

enum kn_boot_flag {
	KN_BOOT_CGROUP_V2_MEM = 1 << 0, /* format of the MEM descriptors */
	KN_BOOT_CGROUP_V2_CPU = 1 << 1,
	KN_BOOT_LANDLOCK =
	    1 << 2, /* apply it; absence in the kernel was checked before */
	KN_BOOT_NEW_IPC = 1 << 3, /* an IPC namespace per task (policy ipc: "task") */
	KN_BOOT_NEED_MSEAL = 1 << 4, /* refuse to start where mseal is missing */
	KN_BOOT_EGRESS = 1 << 5,     /* hand over a listening socket (EGRESS) */
	KN_BOOT_TELL = 1 << 6,	     /* the worker's filter has a listener */
	KN_BOOT_DIRECT = 1 << 7,  /* there are no namespaces: the stub was told where it
				     works by its argument */
	KN_BOOT_NO_TCP = 1 << 8,  /* with DIRECT: Landlock refuses TCP */
	KN_BOOT_OWN_UID = 1 << 9, /* with DIRECT: nobody else has the worker's uid */
	KN_BOOT_NEST = 1 << 10, /* in a container of a runtime (sandbox/stub/nest.h) */
	KN_BOOT_SWAP = 1 << 11, /* memory may be swapped, which no peak of v1 counts */
};

/* A bind that the supervisor resolved to a descriptor once: the stub checks that what
 * stands at `at` inside is that very file, and fails the launch if not. */
struct kn_boot_bind {
	const char *at; /* absolute path inside */
	uint64_t dev, ino;
	bool writable; /* Landlock: may be written below here */
	bool check;    /* dev and ino are meaningful */
	uint64_t overlay_bytes, overlay_inodes; /* bytes not 0: each task writes to a
						   layer of its own upon it */
	bool white; /* no bind: what an overlay does not show */
	bool link;  /* it is a link, to be mounted upon itself: then it stays */
	bool
	    mask; /* no bind: what stands there cannot be opened, and is not dev, ino */
	bool out; /* what a task changed in the layer is brought out */
};

struct kn_boot {
	uint32_t worker, incarnation;
	uint8_t pool_id[16];
	struct kn_layout layout; /* recomputed by the reader from worker_n and areas */
	uint32_t flags;		 /* enum kn_boot_flag */
	uint32_t has;		 /* bit per enum kn_boot_fd that is present */
	uint32_t worker_n;	 /* of the pool: who shares the caller's processes (the
				      layout counts slices) */
	uint32_t pids_overhead;	 /* processes in the cgroup that are not the task's */
	uint64_t mem_overhead; /* bytes added to a task's limit for launcher and stub */
	uint64_t worker_mem;   /* 0: none; bounds what a task may ask */
	uint64_t tmp_bytes, tmp_inodes, shm_bytes, shm_inodes, task_bytes, task_inodes;
	uint32_t landlock_abi; /* as probed by the supervisor, 0: none */
	uint64_t collect_file_max, collect_total_max, collect_count_max;
	/* permissions.run, if it has entries (else run_n is 0): texts with their NULs,
	 * first the PATH for those that are names */
	const char *run;
	size_t run_n;
	uint64_t exec_key; /* of the cell's filter (sandbox/filter.h), or 0 */
	struct kn_boot_bind *binds;
	uint32_t bind_n;
	/* classic BPF (struct sock_filter, 8 bytes each): loaded once in the stub, and
	 * per cell */
	const void *worker_bpf, *cell_bpf;
	uint32_t worker_bpf_n, cell_bpf_n;
};
/* Encode into a sealed read-only memfd. */
int kn_boot_seal(const struct kn_boot *b, int *out_fd, struct kn_err *e);
/* Decode a private copy of the record; pointers in *out point into buf, binds into
 * caller's array of bind_max. 0, or -1 (malformed). Stub side; no allocation. */
int kn_boot_decode(const void *buf, size_t n, struct kn_boot *out,
    struct kn_boot_bind *binds, uint32_t bind_max);

/* Check a received datagram of n bytes: header present, type in allowed (bit mask
 * 1 << type), bytes consistent. Returns the body or NULL. */
const uint8_t *kn_msg_check(
    const void *p, size_t n, uint32_t allowed, struct kn_msg *out);

/* Supervisor side. */
void kn_control_stop(struct kn_control *c);
bool kn_control_stop_acked(struct kn_control *c);
/* One consistent look at begun: false if idle. *out_begun_ns is the worker's claim. */
bool kn_control_begun(struct kn_control *c, uint32_t *out_task, uint32_t *out_gen,
    uint64_t *out_begun_ns);
/* Has the worker said that nothing of (task, gen) runs any more? */
bool kn_control_is_over(const struct kn_control *c, uint32_t task, uint32_t gen);
/* Worker side. */
bool kn_control_stopping(struct kn_control *c);
void kn_control_ack_stop(struct kn_control *c);
void kn_control_begin(
    struct kn_control *c, uint32_t task, uint32_t gen, uint64_t now_ns);
void kn_control_end(struct kn_control *c);
/* Nothing of (task, gen) runs any more; its result comes when all is taken down. */
void kn_control_over(struct kn_control *c, uint32_t task, uint32_t gen);

#endif
