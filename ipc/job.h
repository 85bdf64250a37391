/* ipc/job.h: the wire form of one exec task and of its result.
 *
 * A job is encoded by the supervisor (trusted) into a submit payload and decoded by the
 * stub from a private copy; a result is encoded by the stub and is hostile input for
 * the supervisor: copied once, then decoded with every field range-checked.
 */
#ifndef KN_IPC_JOB_H
#define KN_IPC_JOB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ipc/control.h"
#include "ipc/fd.h"

enum kn_job_flag {
	KN_JOB_PTY =
	    1 << 0, /* stdin, stdout, stderr are a pty made inside; no stdio fds */
	/* The program is our own image, and stays: the descriptors after the stdio ones
	 * become its 3, 4, ... (enum kn_resident_fd of ipc/call.h), it is started from
	 * the first of them, and argv[0] is only its name. Nothing of the job's files,
	 * keep or collect. A stub has at most one, and takes no other task beside it.
	 */
	KN_JOB_RESIDENT = 1 << 1,
};

/* Descriptors of a resident job after the stdio ones: at least its image. */
enum { KN_JOB_KEPT_MAX = 8 };

/* Files that may come by descriptor: one datagram's worth, after the stdio ones. */
enum { KN_JOB_FILES_BY_FD_MAX = KN_MSG_FDS_MAX - 3 };

/* One file to put below /task before the start. */
struct kn_job_file {
	const char *path;  /* relative, no "..", no empty component */
	uint32_t mode;	   /* permission bits, 0777 at most */
	const void *bytes; /* content, or */
	size_t byte_n;
	int fd_index; /* >= 0: content is the task's descriptor of that index,
			 counted after the three stdio ones */
};

struct kn_job_limits {	 /* 0: none, unless said otherwise */
	uint64_t memory; /* bytes for the whole cell */
	uint64_t cpu_ms; /* user + system over the whole cell */
	uint64_t pids;	 /* processes and threads of the cell */
	uint64_t nofile, fsize, stack;
	uint64_t core; /* 0 means zero */
	uint64_t tmp;  /* unused 0: the worker's tmp_bytes */
	uint32_t task_ms, hard_ms, grace_ms;
};

struct kn_job {
	uint32_t flags;
	const char *const *argv; /* argv_n >= 1 */
	uint32_t argv_n;
	const char *const *env; /* "K=V", the complete environment */
	uint32_t env_n;
	const char *cwd; /* absolute path inside; "/task" by default */
	const struct kn_job_file *files;
	uint32_t file_n;
	const char *const *keep; /* paths relative to /task */
	uint32_t keep_n;
	const char *const *collect; /* globs relative to /task */
	uint32_t collect_n;
	uint16_t rows, cols; /* KN_JOB_PTY: initial window size */
	struct kn_job_limits limits;
};
/* Size needed; writes at most cap bytes. */
size_t kn_job_encode(const struct kn_job *j, void *buf, size_t cap);
/* Decode buf in place. Arrays are carved from `room` (room_n bytes, 16-aligned); the
 * pointers stay valid as long as buf and room do. argv and env end with a NULL that
 * their counts leave out. 0 or -1. No allocation. KN_JOB_ROOM(n) bytes are always
 * enough for a job of n bytes. */
#define KN_JOB_ROOM(n) (3 * (size_t)(n) + 256)
int kn_job_decode(
    const void *buf, size_t n, struct kn_job *out, void *room, size_t room_n);

/* Where an exec attempt failed, if it did not reach the program. */
enum kn_exec_step {
	KN_EXEC_STARTED = 0,
	KN_EXEC_CELL,	/* namespaces, mounts: ours */
	KN_EXEC_FILES,	/* putting files in place */
	KN_EXEC_LIMITS, /* rlimits, cgroup writes */
	KN_EXEC_WALL,	/* capabilities, Landlock, filter */
	KN_EXEC_CWD,
	KN_EXEC_LOOKUP, /* the program was not found: sys ENOENT */
	KN_EXEC_EXEC,	/* found, and execve failed with sys */
	KN_EXEC_STEP_N
};
const char *kn_exec_step_name(enum kn_exec_step s);

struct kn_job_result {
	enum kn_cause cause;
	enum kn_exec_step step;
	uint32_t sys;		     /* errno of step */
	char detail[128];	     /* a path or a name for the message; printable */
	int32_t wait_status;	     /* of the task, if it started */
	uint64_t begun_ns, ended_ns; /* CLOCK_MONOTONIC: exec to reaped */
	uint64_t user_us, system_us; /* whole cell */
	uint64_t max_rss;	     /* bytes, of the largest process */
	uint64_t memory_peak;	     /* bytes of the cell's cgroup; 0: not known */
	uint64_t pids_peak;	     /* 0: not known */
	uint32_t oom_kills;	     /* during this task */
	uint32_t oom_outside;	     /* 1: and no limit of its own was met */
	uint32_t file_n; /* descriptors and refusals sent in FILES messages */
};
enum { KN_JOB_RESULT_MAX = KN_INLINE_MAX }; /* a result always fits inline */
size_t kn_job_result_encode(const struct kn_job_result *r, void *buf, size_t cap);
/* 0, or -1 with *out_field naming the bad one. Checks enums, wait status form, times
 * (begun <= ended), detail printable. */
int kn_job_result_decode(
    const void *buf, size_t n, struct kn_job_result *out, const char **out_field);

#endif
