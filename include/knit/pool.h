/* knit/pool.h: run untrusted commands, or tasks of a module, in a pool of sandboxed
 * workers, from your own program. Link with -lknit (pkg-config libknit). libknit(3).
 *
 *   struct knit_policy *policy = knit_policy_new("default");
 *   struct knit_error e = KNIT_ERROR_NONE;
 *   struct knit_pool *pool;
 *
 *   if (knit_pool_open(policy, NULL, &pool, &e) < 0)
 *           errx(1, "%s", e.text);
 *
 *   const char *argv[] = { "python3", "-c", "print(6*7)", NULL };
 *   struct knit_job *job = knit_job_command(argv);
 *
 *   if (knit_pool_submit(pool, job, &e) < 0 || knit_job_wait(job, -1, &e) < 0)
 *           errx(1, "%s", e.text);
 *   fputs(knit_job_outcome(job)->out.bytes, stdout);
 *   knit_job_free(job);
 *   knit_pool_close(pool);
 *   knit_policy_free(policy);
 *
 * Threads: a pool may be used by any of them at one time, and a program may have
 * several pools. There is no thread inside: who waits or dispatches does the pool's
 * work for all. Nothing of the process is changed: no signal's handler, disposition or
 * SIGCHLD, no limit (unless asked for), no directory, no environment, no stream of it.
 *
 * Functions of type int return 0 or what is said, and -1 with *e filled; e may be NULL.
 */
#ifndef KNIT_POOL_H
#define KNIT_POOL_H

#include <knit/value.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

#define KNIT_POOL_API 1 /* rises when something is added; nothing is taken away */

/* ---- errors ---- */

/* Whose fault it is. */
enum knit_error_kind {
	KNIT_E_NONE,
	KNIT_E_USAGE,  /* a call that makes no sense: argument, state, thread */
	KNIT_E_CONFIG, /* the policy, or what a job asks for against it */
	KNIT_E_HOST,   /* this machine cannot: kernel, limits, memory */
	KNIT_E_LAUNCH, /* no worker could be started */
	KNIT_E_FULL,   /* as many jobs as the pool takes are not finished yet */
	KNIT_E_CLOSED, /* stopped, drained or closed: takes no more jobs */
	KNIT_E_BUG     /* ours */
};
struct knit_error {
	enum knit_error_kind kind;
	int sys;	/* errno at the call that failed, or 0 */
	char text[256]; /* one line */
	char hint[256]; /* what to try next, or "" */
};
#define KNIT_ERROR_NONE \
	{ \
		KNIT_E_NONE, 0, "", "" \
	}
const char *knit_error_kind_name(enum knit_error_kind kind); /* "usage" */

/* ---- policies: knit-policy(5) ---- */

struct knit_policy;

/* Start with a preset's name or a policy file (NULL: "default"). Later wins. What is
 * wrong is told by knit_policy_check() or knit_pool_open(), with file and position.
 * NULL: no memory. */
struct knit_policy *knit_policy_new(const char *name);
/* Merge another preset or file. */
int knit_policy_add(struct knit_policy *policy, const char *name, struct knit_error *e);
/* Set the value at a JSON pointer: ("/limits/task/memory", "256M"). */
int knit_policy_set(struct knit_policy *policy, const char *pointer, const char *value,
    struct knit_error *e);
/* Show a file or directory of the host at a path inside (NULL: the same). */
int knit_policy_bind(struct knit_policy *policy, const char *source, const char *at,
    int writable, struct knit_error *e);
/* Merge and check. After that, and after it was given to a pool, a policy cannot be
 * changed any more. */
int knit_policy_check(struct knit_policy *policy, struct knit_error *e);
/* The merged document as JSON (free() it), and "sha256:..." of it; NULL if the check
 * fails. */
char *knit_policy_text(struct knit_policy *policy);
const char *knit_policy_hash(struct knit_policy *policy);
/* At any time: a pool keeps what it needs. NULL is allowed. */
void knit_policy_free(struct knit_policy *policy);

/* ---- jobs: one command or call each ---- */

/* A job belongs to one thread until it is submitted. */
struct knit_job;

enum knit_limit { /* may only be tighter than the policy's */
	KNIT_LIMIT_MEMORY,
	KNIT_LIMIT_PIDS,
	KNIT_LIMIT_CPU_MS,
	KNIT_LIMIT_NOFILE,
	KNIT_LIMIT_FSIZE,
	KNIT_LIMIT_STACK,
	KNIT_LIMIT_CORE,
	KNIT_LIMIT_STDOUT, /* bytes of it that are kept */
	KNIT_LIMIT_STDERR,
	KNIT_LIMIT_QUEUE_MS, /* to be begun within */
	KNIT_LIMIT_TASK_MS,  /* asked to end then */
	KNIT_LIMIT_HARD_MS,  /* killed then */
	KNIT_LIMIT_GRACE_MS  /* between the two */
};

/* All that is given to a job is copied. What a setter refuses (-1) it also remembers,
 * and knit_pool_submit() says it: the results of setters may be ignored. */
struct knit_job *knit_job_command(const char *const *argv); /* NULL-terminated */
/* A task of the policy's module (/pool/kind "module"); its argument is null unless set.
 */
struct knit_job *knit_job_call(const char *name);
int knit_job_set_id(struct knit_job *job, const char *id); /* for messages and traces */
/* Besides what the policy gives. value NULL: not there. */
int knit_job_set_env(struct knit_job *job, const char *name, const char *value);
int knit_job_set_cwd(struct knit_job *job, const char *path); /* inside; else /task */
int knit_job_set_stdin(struct knit_job *job, const void *bytes, size_t n);
/* A file below /task, there when the command starts. */
int knit_job_add_file(
    struct knit_job *job, const char *path, unsigned mode, const void *bytes, size_t n);
/* Files below /task to hand back: a glob pattern. knit_outcome_file(). */
int knit_job_collect(struct knit_job *job, const char *pattern);
int knit_job_set_limit(struct knit_job *job, enum knit_limit which, uint64_t value);
/* Times that it is run again when its worker was lost; else as the policy says. */
int knit_job_set_retries(struct knit_job *job, unsigned n);
int knit_job_set_arg(
    struct knit_job *job, enum knit_type type, const void *bytes, size_t n);
/* What a call that took longer than KNIT_LIMIT_TASK_MS is answered with, as "ok". */
int knit_job_set_default(
    struct knit_job *job, enum knit_type type, const void *bytes, size_t n);
void knit_job_set_user(struct knit_job *job, void *user);
void *knit_job_user(const struct knit_job *job);
/* Called once, by a thread that waits or dispatches, when the job is finished; the job
 * does not come out of knit_pool_next() then. It may call anything but waits,
 * dispatches and closes, and may free the job. */
void knit_job_set_done(
    struct knit_job *job, void (*done)(struct knit_job *job, void *ctx), void *ctx);
/* Also of one that is not finished: it goes on, and its outcome is dropped. */
void knit_job_free(struct knit_job *job);

/* ---- outcomes ---- */

enum knit_verdict {
	KNIT_OK,
	KNIT_EXIT,
	KNIT_SIGNAL,
	KNIT_TIMEOUT,
	KNIT_SOFT_TIMEOUT,
	KNIT_CPU_TIMEOUT,
	KNIT_MEMORY,
	KNIT_OUTPUT_LIMIT,
	KNIT_DENIED,
	KNIT_TOO_LARGE,
	KNIT_QUEUE_TIMEOUT,
	KNIT_CANCELLED,
	KNIT_SKIPPED,
	KNIT_WORKER_LOST,
	KNIT_LAUNCH_FAILED,
	KNIT_INVALID,
	KNIT_NOT_FOUND,
	KNIT_NOT_EXECUTABLE,
	KNIT_PROTOCOL_VIOLATION,
	KNIT_INTERNAL
};
const char *knit_verdict_name(enum knit_verdict verdict); /* "soft-timeout" */

struct knit_stream {
	const char *bytes; /* never NULL, and a NUL follows */
	size_t n, head_n;  /* when cut: head_n bytes of the head, then the tail */
	uint64_t total;	   /* that were written */
	int truncated;
};
/* Made by the library only; fields are added at the end. */
struct knit_outcome {
	enum knit_verdict verdict;
	int exit_code;	   /* -1: none */
	int signal;	   /* 0: none */
	const char *error; /* one line: why; "" if there is nothing to say */
	struct knit_stream out, err;
	size_t file_n;
	enum knit_type value_type; /* of a call: what it returned; 0: nothing */
	const void *value;
	size_t value_n;
	size_t cause_n; /* of a call that failed: its error and what was beneath it */
	uint64_t wall_us, cpu_us, user_us, system_us, queue_us;
	uint64_t max_rss, memory_peak, pids_peak; /* 0: not known */
	int worker;				  /* -1: none */
	unsigned attempt;
};
struct knit_file {
	const char *name;    /* relative, clean */
	const char *refused; /* NULL, or why there is no descriptor */
	int fd;		     /* read-only, a regular file; the job's, -1: none */
	unsigned mode;	     /* permission bits */
	uint64_t bytes;
};
struct knit_cause {
	const char *name, *message, *detail; /* detail "" if none */
};
/* NULL as long as it is not finished. Valid until the job is freed. */
const struct knit_outcome *knit_job_outcome(const struct knit_job *job);
/* at < file_n, at < cause_n; else NULL. */
const struct knit_file *knit_outcome_file(const struct knit_outcome *o, size_t at);
const struct knit_cause *knit_outcome_cause(const struct knit_outcome *o, size_t at);
/* How a wall stood for this job: "enforced", "degraded" or "absent"; NULL if there is
 * no layer of that name. Names: at = 0, 1, ... until NULL. */
const char *knit_outcome_layer(const struct knit_outcome *o, const char *layer);
const char *knit_layer_name(size_t at);

/* ---- pools ---- */

struct knit_pool;

enum knit_pool_flag {
	/* Raise the process's soft limit of open files to the hard one, for good. */
	KNIT_POOL_RAISE_NOFILE = 1 << 0,
	/* Submitting only notes the job: the next wait or dispatch begins it. */
	KNIT_POOL_LAZY = 1 << 1,
	KNIT_POOL_NO_STEAL = 1 << 2, /* jobs stay with the worker they were given to */
	/* Without root, a cgroup of one's own hands out memory limits only when no
	 * process is in it: the process may be moved into a group below, until the
	 * close. For one pool at a time. Else be in such a group from the start. */
	KNIT_POOL_MOVE_CGROUP = 1 << 3
};
struct knit_pool_options { /* filled by knit_pool_options_init(), then changed */
	size_t size;
	unsigned workers; /* 0: the policy's, else what the machine has room for */
	unsigned window; /* jobs that the workers are given to choose from; 0: enough */
	size_t jobs_max; /* accepted and not finished; more are refused (full) */
	unsigned flags;	 /* enum knit_pool_flag */
	/* "K=V", NULL-terminated: what a policy may inherit from. NULL: environ. */
	const char *const *env;
	/* What a module prints, line by line, every control character made visible; by
	 * a thread that waits or dispatches, from within: it may submit and cancel, not
	 * wait. NULL: dropped. */
	void (*say)(void *ctx, unsigned worker, const char *line);
	void *say_ctx;
};
void knit_pool_options_init(struct knit_pool_options *o, size_t size);

/* Starts the first workers. o NULL: as initialized. */
int knit_pool_open(struct knit_policy *policy, const struct knit_pool_options *o,
    struct knit_pool **out, struct knit_error *e);
/* The job stays the caller's to free; it can be submitted once. */
int knit_pool_submit(
    struct knit_pool *pool, struct knit_job *job, struct knit_error *e);
/* Have it end: one that has begun is killed. Its outcome (cancelled, unless it was
 * quicker) comes as any other. Of a finished one nothing changes. */
int knit_job_cancel(struct knit_job *job, struct knit_error *e);

/* timeout_ms: -1 for ever, 0 not at all. */
/* 1: finished. 0: not within that time. */
int knit_job_wait(struct knit_job *job, int timeout_ms, struct knit_error *e);
/* 1: *out is the next finished job, each comes once; not those with a callback or
 * waited for. 0: none within that time, or none is left to come. */
int knit_pool_next(struct knit_pool *pool, int timeout_ms, struct knit_job **out,
    struct knit_error *e);
/* Until every job is finished. 1, or 0: not within that time. */
int knit_pool_wait_all(struct knit_pool *pool, int timeout_ms, struct knit_error *e);

/* For an event loop: readable when there is something to do, then dispatch. Never read,
 * close or share it with another process. */
int knit_pool_poll_fd(const struct knit_pool *pool);
/* Do what there is to do, without waiting. Jobs that are finished now and not taken, by
 * knit_pool_next(), as a count; or -1: the pool cannot go on, all jobs were answered.
 */
int knit_pool_dispatch(struct knit_pool *pool, struct knit_error *e);

struct knit_pool_counts {
	size_t size; /* set by the caller */
	uint64_t submitted, finished;
	unsigned workers; /* the most that were ready at one time */
	unsigned running, queued;
	uint64_t workers_started, workers_lost, failed_launches, stolen;
};
int knit_pool_count(
    struct knit_pool *pool, struct knit_pool_counts *out, struct knit_error *e);
/* Why the pool is smaller than asked for; "" if it is not. */
const char *knit_pool_remark(const struct knit_pool *pool);

/* Take no more jobs; those that were taken end as they would. */
int knit_pool_drain(struct knit_pool *pool, struct knit_error *e);
/* As drain, but what has not begun is cancelled, and what runs has the policy's
 * /timeouts/grace_ms left. */
int knit_pool_stop(struct knit_pool *pool, struct knit_error *e);
/* Cancel all, kill and reap all workers, free the pool. Jobs are the caller's still,
 * and finished; callbacks of the last ones are called from here. Threads that wait in
 * the pool are let go first; no other call may begin. NULL is allowed. */
int knit_pool_close(struct knit_pool *pool);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
