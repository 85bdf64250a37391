/* supervisor/task.h: one task as accepted, and one outcome as answered.
 *
 * A task is built by cmd/ (single command) or supervisor/batch (a line), checked
 * against the policy, and owned by the supervisor from kn_sup_submit() to the answer,
 * when ownership goes back with the outcome. kn_task_free() ends all it owns.
 */
#ifndef KN_SUPERVISOR_TASK_H
#define KN_SUPERVISOR_TASK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ipc/call.h"
#include "ipc/job.h"
#include "sandbox/policy.h"
#include "supervisor/egress_tally.h"

struct kn_err;

struct kn_task_file {
	char *path; /* below /task */
	uint32_t mode;
	void *bytes; /* owned content, or NULL and */
	size_t byte_n;
	int fd; /* owned read-only descriptor of a regular file, or -1 */
};

/* A typed value of kind module (enum kn_type of ipc/call.h). */
struct kn_value {
	uint32_t type; /* 0: none */
	bool borrowed; /* bytes are somebody else's, and good for the moment only */
	void *bytes;   /* else owned, by malloc(); NULL if n is 0 */
	size_t n;
};
/* Make an owned value of one that may be borrowed. 0, or -1: out of memory. The source
 * is empty then. */
int kn_value_take(struct kn_value *from, struct kn_value *to);
void kn_value_fini(struct kn_value *v);

/* Kind module: a call instead of a command. */
struct kn_call {
	char *name;  /* owned: of the task in the module; NULL: a command */
	uint32_t fn; /* its number in this pool (kn_sup_function()), 0: look it up */
	struct kn_value arg;
	/* What a call that took longer than task_ms is answered with: the verdict is ok
	 * then. type 0: it is soft-timeout. */
	struct kn_value soft_default;
};

enum kn_stdio_mode {
	KN_STDIO_CAPTURE, /* batch: stdin from bytes, output collected up to the caps */
	KN_STDIO_RELAY,	  /* single: the caller's streams, as they come */
};

struct kn_task {
	char *id;
	uint64_t line; /* 1-based line of the batch, 0 for a single command */
	char **argv;
	size_t argv_n; /* NULL-terminated */
	char **env;
	size_t env_n; /* complete, "K=V", NULL-terminated */
	char *cwd;    /* NULL: /task */
	struct kn_task_file *files;
	size_t file_n;
	char **keep;
	size_t keep_n;
	char **collect;
	size_t collect_n;
	void *stdin_bytes;
	size_t stdin_n;
	int stdin_fd; /* CAPTURE: owned file to read stdin from, or -1 */
	enum kn_stdio_mode stdio;
	int streams[3]; /* RELAY: the caller's, borrowed; 0, 1, 2 unless changed */
	bool pty;	/* RELAY with a terminal as stdin */
	struct kn_call call;
	struct kn_task_limits limits;
	struct kn_timeouts timeouts;
	uint32_t retries;
	void *user; /* the submitter's */
};
struct kn_task *kn_task_new(void); /* descriptors -1; NULL when out of memory */
void kn_task_free(struct kn_task *t);

enum kn_verdict {
	KN_V_OK,
	KN_V_EXIT,
	KN_V_SIGNAL,
	KN_V_TIMEOUT,
	KN_V_SOFT_TIMEOUT,
	KN_V_CPU_TIMEOUT,
	KN_V_MEMORY,
	KN_V_OUTPUT_LIMIT,
	KN_V_DENIED,
	KN_V_TOO_LARGE,
	KN_V_QUEUE_TIMEOUT,
	KN_V_CANCELLED,
	KN_V_SKIPPED,
	KN_V_WORKER_LOST,
	KN_V_LAUNCH_FAILED,
	KN_V_INVALID,
	KN_V_NOT_FOUND,
	KN_V_NOT_EXECUTABLE,
	KN_V_PROTOCOL_VIOLATION,
	KN_V_INTERNAL,
	KN_V_N
};
const char *kn_verdict_name(enum kn_verdict v); /* "soft-timeout" */

/* A captured stream: head and tail kept when cut, the rest counted. */
struct kn_capture {
	char *bytes;
	size_t n;	 /* what is kept; NUL-terminated for convenience */
	size_t head_n;	 /* when cut: bytes[0..head_n) is the head, the rest the tail */
	uint64_t total;	 /* bytes the task wrote */
	uint64_t passed; /* KN_STDIO_RELAY: those that were handed on */
	bool truncated;
};
struct kn_outcome_file {
	char *name;
	uint32_t what; /* KN_FILE_KEEP | KN_FILE_COLLECT; KN_FILE_OUT: could not be
			  brought out of a copy, and its name is absolute */
	enum kn_file_refusal refusal;
	int fd; /* owned, read-only, a regular tmpfs file; -1 if refused */
	uint64_t bytes;
	uint32_t mode;	/* permission bits & 0777 */
	uint64_t print; /* of the name; the supervisor's own */
};
/* A kind of system call that was refused: the first of them. */
struct kn_refused {
	char name[48];
	unsigned arg_n;
	int64_t args[6];
	uint64_t count;
	unsigned errno_ret;
	bool let;    /* learning: it was made after all */
	char *allow; /* a rule as JSON; NULL: nothing would */
	char *by;
};
struct kn_outcome {
	enum kn_verdict verdict;
	bool started;  /* exit_code or signal is meaningful */
	int exit_code; /* -1: none */
	int signal;    /* 0: none */
	struct kn_capture out, err;
	struct kn_outcome_file *files;
	size_t file_n;
	char *out_dir; /* the folder that what it changed was brought to; or NULL */
	uint64_t out_files, out_bytes;
	struct kn_refused *refused;
	size_t refused_n;
	uint64_t refused_more; /* calls of yet other kinds */
	uint64_t wall_us, cpu_us, user_us, system_us, queue_us;
	uint64_t max_rss, memory_peak, pids_peak;
	/* Of a call: what it returned, or KN_TYPE_ERROR (kn_call_error_decode()).
	 * Borrowed: kn_value_take() before the callback returns, or it is gone. */
	struct kn_value value;
	bool soft;  /* the value is the task's soft_default */
	int worker; /* -1: none */
	uint32_t attempt;
	struct kn_layers layers;
	/* what goes without those that do not hold, or NULL */
	const char *lacks[KN_LAYER_N];
	bool has_net;		 /* mode allow: */
	struct kn_net_tally net; /* the connections it asked for */
	char error[320];	 /* one line for the user: why, or "" */
};
void kn_outcome_fini(struct kn_outcome *o);

#endif
