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
 * Functions of type int return 0 or what is said, or -1 with *e filled; e may be NULL.
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

#define KNIT_POOL_API 5 /* rises when something is added; nothing is taken away */

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

/* Start with a preset's name or a policy file (NULL: "default"; "": none yet, which
 * becomes the default too unless one is added). Later wins. What is wrong is told by
 * knit_policy_check() or knit_pool_open(), with file and position. NULL: no memory. */
struct knit_policy *knit_policy_new(const char *name);
/* Merge another preset or file. */
int knit_policy_add(struct knit_policy *policy, const char *name, struct knit_error *e);
/* Set the value at a JSON pointer: ("/limits/task/memory", "256M"). */
int knit_policy_set(struct knit_policy *policy, const char *pointer, const char *value,
    struct knit_error *e);
/* Show a file or directory of the host at a path inside (NULL: the same). */
int knit_policy_bind(struct knit_policy *policy, const char *source, const char *at,
    int writable, struct knit_error *e);
/* The same from one text, "/limits/task/memory=256M". */
int knit_policy_assign(
    struct knit_policy *policy, const char *assignment, struct knit_error *e);
/* What messages call what was added last: "--memory". */
int knit_policy_label(
    struct knit_policy *policy, const char *label, struct knit_error *e);
/* Merge and check. After that, and after it was given to a pool, a policy cannot be
 * changed any more. */
int knit_policy_check(struct knit_policy *policy, struct knit_error *e);
/* The merged document as JSON (free() it), and "sha256:..." of it; NULL if the check
 * fails. */
char *knit_policy_text(struct knit_policy *policy);
const char *knit_policy_hash(struct knit_policy *policy);
/* The JSON of one value of it (free() it), NULL: none there. */
char *knit_policy_get(struct knit_policy *policy, const char *pointer);
/* The text of one that is a text (free() it); NULL: none there. */
char *knit_policy_word(struct knit_policy *policy, const char *pointer);
/* A number, size ("64M") or duration of it. 1; 0: none there. */
int knit_policy_number(struct knit_policy *policy, const char *pointer, uint64_t *out);
/* 1: somebody but a shipped preset has set that value. */
int knit_policy_named(struct knit_policy *policy, const char *pointer);
/* The command that a worker would be started with, NULL-terminated (free() it: one
 * piece), and nothing is started. NULL with *e. */
const char **knit_policy_command(struct knit_policy *policy, struct knit_error *e);
/* At any time: a pool keeps what it needs. NULL is allowed. */
void knit_policy_free(struct knit_policy *policy);

/* ---- jobs: one command or call each ---- */

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
enum { KNIT_VERDICT_N = KNIT_INTERNAL + 1 };

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
/* A task of the policy's module (/pool/kind "module"); argument: null unless set. */
struct knit_job *knit_job_call(const char *name);
int knit_job_set_id(struct knit_job *job, const char *id); /* for messages and traces */
/* Of commands only, as are limits but times and CPU_MS: down to knit_job_collect().
 * A variable besides those of the policy; value NULL: it is not there. */
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
/* As a user types it: JSON where it parses as such, else the text itself. */
int knit_job_set_arg_text(struct knit_job *job, const char *text);
/* What a call that took longer than KNIT_LIMIT_TASK_MS is answered with, as "ok". */
int knit_job_set_default(
    struct knit_job *job, enum knit_type type, const void *bytes, size_t n);
/* Its standard streams are handed on as they come, to and from these descriptors,
 * which must stay open until it is finished and whose flags stay as they are; nothing
 * is captured, nothing cut but where somebody asked for it, and it is run once at most.
 * in -1: empty. One such job at a time in a pool. */
int knit_job_set_streams(struct knit_job *job, int in, int out, int err);
/* Its streams are a terminal's, and the caller's at `in` is raw meanwhile (while we are
 * in the foreground). Only with KNIT_POOL_OWN_PROCESS: it takes a signal. */
int knit_job_set_terminal(struct knit_job *job);
/* The first thing that a setter refused, in one line; "" if nothing. */
const char *knit_job_refusal(const struct knit_job *job);
void knit_job_set_user(struct knit_job *job, void *user);
void *knit_job_user(const struct knit_job *job);
/* Called once, by a thread that waits or dispatches, when the job is finished; the job
 * does not come out of knit_pool_next() then. It may call anything but waits,
 * dispatches and closes, and may free the job, unless that is waited for. */
void knit_job_set_done(
    struct knit_job *job, void (*done)(struct knit_job *job, void *ctx), void *ctx);
/* Finish a job that was not submitted: "launch-failed", say, where no pool could be
 * opened for it. */
int knit_job_give_up(
    struct knit_job *job, enum knit_verdict verdict, const char *error);
/* Also of one that is not finished: it goes on, and its outcome is dropped. */
void knit_job_free(struct knit_job *job);

/* ---- outcomes ---- */

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
	int started; /* it was begun, and exit_code or signal says how it ended */
	int soft;    /* the value is the one of knit_job_set_default() */
	uint64_t passed, passed_err; /* bytes handed on, of streams that were given */
	size_t refused_n;	     /* kinds of system calls that were refused */
	uint64_t refused_more;	     /* calls of yet other kinds */
	const char *out_dir; /* where what it changed in a copy was brought, or NULL */
	uint64_t out_files, out_bytes;
};
struct knit_file {
	const char *name;    /* relative, clean; absolute: of a copy, not brought out */
	const char *refused; /* NULL, or why there is no descriptor */
	int fd;		     /* read-only, a regular file; the job's, -1: none */
	unsigned mode;	     /* permission bits */
	uint64_t bytes;
};
struct knit_cause {
	const char *name, *message, *detail; /* detail "" if none */
};
/* A kind of system call that was refused: the first of them, and how many came. They
 * are told if the policy itself (no preset) sets /seccomp/explain, or with
 * KNIT_POOL_OWN_PROCESS. All text is the policy's or the library's; of the task there
 * are numbers only. */
struct knit_refused {
	const char *call; /* "socket" */
	size_t arg_n;
	int64_t args[6];
	uint64_t count;
	int sys;	   /* errno that it got */
	const char *by;	   /* what refused it */
	const char *allow; /* the rule that would allow it, as JSON; NULL: none would */
};
/* NULL as long as it is not finished. Valid until the job is freed. */
const struct knit_outcome *knit_job_outcome(const struct knit_job *job);
/* at < file_n, at < cause_n, at < refused_n; else NULL. */
const struct knit_file *knit_outcome_file(const struct knit_outcome *o, size_t at);
const struct knit_cause *knit_outcome_cause(const struct knit_outcome *o, size_t at);
const struct knit_refused *knit_outcome_refused(
    const struct knit_outcome *o, size_t at);
/* How a wall stood for this job: "enforced", "degraded" or "absent"; NULL if there is
 * no layer of that name. Names: at = 0, 1, ... until NULL. */
const char *knit_outcome_layer(const struct knit_outcome *o, const char *layer);
const char *knit_layer_name(size_t at);
/* The value as JSON (free() it); NULL: bytes, none, or no memory. */
char *knit_outcome_value_text(const struct knit_outcome *o);
/* Write a file that came back below an open directory, by its name; directories are
 * made, no link is followed, nothing is overwritten (e->sys EEXIST). */
int knit_outcome_save(
    const struct knit_outcome *o, size_t at, int dir_fd, struct knit_error *e);

enum knit_json_flag {
	KNIT_JSON_ASCII = 1 << 0,   /* for a terminal: nothing in it can be an escape */
	KNIT_JSON_STREAMS = 1 << 1, /* with what was captured of stdout and stderr */
	KNIT_JSON_FILES = 1 << 2    /* with the content of files that came back */
};
/* The result line of a finished job, knit-tasks(5), with its newline (free() it).
 * policy: named in it by its hash; NULL: it is not. NULL: not finished, no memory. */
char *knit_job_json(const struct knit_job *job, struct knit_policy *policy,
    unsigned flags, size_t *out_n);

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
	KNIT_POOL_MOVE_CGROUP = 1 << 3,
	/* The process is there for this pool: one thread, no children of its own. So
	 * workers are its children like others, and start sooner. */
	KNIT_POOL_OWN_PROCESS = 1 << 4,
	/* For one job: no spares, and its worker is ended with it. */
	KNIT_POOL_ONE_JOB = 1 << 5,
	KNIT_POOL_DEBUG_JSON = 1 << 6, /* debug lines as JSON objects */
	/* All workers from the start, not as jobs come. (API 3) */
	KNIT_POOL_WARM = 1 << 7
};
struct knit_pool_options { /* filled by knit_pool_options_init(), then changed */
	size_t size;
	unsigned workers; /* 0: the policy's, else what the machine has room for */
	unsigned window; /* jobs that the workers are given to choose from; 0: enough */
	size_t jobs_max; /* not finished; more are refused (full), a batch's wait */
	unsigned flags;	 /* enum knit_pool_flag */
	/* "K=V", NULL-terminated: what a policy may inherit from. NULL: environ. */
	const char *const *env;
	/* What a module prints, line by line, every control character made visible; by
	 * a thread that waits or dispatches, from within: it may submit and cancel, not
	 * wait. NULL: dropped. */
	void (*say)(void *ctx, unsigned worker, const char *line);
	void *say_ctx;
	const char *cwd; /* of a module, inside; NULL: /task */
	/* What to note: "lifecycle,policy", "*" (knit_debug_check()); to debug_fd. */
	const char *debug;
	/* In place of /pool/steal and /pool/claim. NULL: as the policy says. */
	const char *steal, *claim;
	int debug_fd, trace_fd; /* borrowed; -1: no such lines, no trace events */
	/* That the caller will open beside those of the pool, which gets fewer workers
	 * if else the limit of open files would not do. (API 5) */
	unsigned descriptors;
};
void knit_pool_options_init(struct knit_pool_options *o, size_t size);
/* Whether `debug` is a list of namespaces. */
int knit_debug_check(const char *list, struct knit_error *e);
/* Whether the process's cgroup was handed over to its user, to make others in. */
int knit_host_delegated(struct knit_error *e);

/* Starts the first workers. o NULL: as initialized. */
int knit_pool_open(struct knit_policy *policy, const struct knit_pool_options *o,
    struct knit_pool **out, struct knit_error *e);
/* The job stays the caller's to free; it can be submitted once. */
int knit_pool_submit(
    struct knit_pool *pool, struct knit_job *job, struct knit_error *e);
/* Have it end: one that has begun is killed, and streams it was given are not waited
 * for. Its outcome (cancelled, unless it was quicker) comes as any other. */
int knit_job_cancel(struct knit_job *job, struct knit_error *e);
/* Send a signal to what a job runs, or begins to. 1: sent. 0: it runs nothing (now). */
int knit_job_signal(struct knit_job *job, int signo, struct knit_error *e);
/* Of one with knit_job_set_terminal(): the caller's terminal has another size; is to be
 * as it was before (the caller stops itself); and raw again. */
enum knit_terminal { KNIT_TERMINAL_SIZE, KNIT_TERMINAL_YIELD, KNIT_TERMINAL_TAKE };
int knit_job_terminal(
    struct knit_job *job, enum knit_terminal what, struct knit_error *e);
/* The errno with which the stdout it was given takes no more, 0: it does. The job has
 * learned it as from a closed pipe; to end it as well is the caller's to say. */
int knit_job_lost(const struct knit_job *job);

/* timeout_ms: -1 for ever, 0 not at all. */
/* 1: finished. 0: not within that time. */
int knit_job_wait(struct knit_job *job, int timeout_ms, struct knit_error *e);
/* 1: *out is the next finished job, each comes once; not those with a callback or
 * waited for. 0: none within that time, or none is left to come. */
int knit_pool_next(struct knit_pool *pool, int timeout_ms, struct knit_job **out,
    struct knit_error *e);
/* Until every job is finished. 1, or 0: not within that time. */
int knit_pool_wait_all(struct knit_pool *pool, int timeout_ms, struct knit_error *e);

/* Until a pool that was drained or stopped has ended: all workers gone, traces written.
 * 1; 0: not within that time; -1: why it could not go on (all jobs were answered). With
 * 0 as a timeout it does what knit_pool_dispatch() does, too. */
int knit_pool_wait_end(struct knit_pool *pool, int timeout_ms, struct knit_error *e);

/* For an event loop: readable when there is something to do, then dispatch. Never read,
 * close or share it with another process. */
int knit_pool_poll_fd(const struct knit_pool *pool);
/* Do what there is to do, without waiting. Jobs that are finished now and not taken, by
 * knit_pool_next(), as a count; or -1: the pool cannot go on, all were answered. */
int knit_pool_dispatch(struct knit_pool *pool, struct knit_error *e);

struct knit_pool_counts {
	size_t size; /* set by the caller */
	uint64_t submitted, finished;
	unsigned workers; /* the most that were ready at one time */
	unsigned running, queued;
	uint64_t workers_started, workers_lost, failed_launches, stolen;
	unsigned window; /* jobs that the workers choose from */
	/* Times that something had come and nobody had rung; should stay 0. */
	uint64_t doorbell_missed;
	/* That the pool may need at one time, but for files that tasks are given or
	 * hand back: who opens others leaves as many. (API 5) */
	uint64_t descriptors;
};
int knit_pool_count(
    struct knit_pool *pool, struct knit_pool_counts *out, struct knit_error *e);
/* Why the pool is smaller than asked for; "" if it is not. */
const char *knit_pool_remark(const struct knit_pool *pool);
/* A line of the caller's own among the debug lines, if that namespace is asked for. */
void knit_pool_note(struct knit_pool *pool, const char *ns, const char *text);
/* How a wall stands in this pool, as knit_outcome_layer(). */
const char *knit_pool_layer(const struct knit_pool *pool, const char *layer);
/* "launcher": the path of what starts workers; "steal": "shared", "brokered" or "off",
 * "steal-why" the reason, "lanes" "shared" or "private"; where shared, "claim":
 * "dekker" or "cas-mask", "claim-why", "region-lanes": "8"; "policy": its hash. NULL:
 * no such fact.
 */
const char *knit_pool_fact(const struct knit_pool *pool, const char *name);

/* With /network/mode "allow": the connections that all jobs asked for, as JSON (free()
 * it), knit-tasks(5). NULL: another mode, another thread does the pool's work right
 * now, or no memory. */
char *knit_pool_network(struct knit_pool *pool);

/* The workers, one object each, as JSON (free() it): knit-serve(8). NULL: another
 * thread does the pool's work right now, or no memory. (API 5) */
char *knit_pool_workers(struct knit_pool *pool);

/* Take no more jobs; those that were taken end as they would. */
int knit_pool_drain(struct knit_pool *pool, struct knit_error *e);
/* As drain, but what has not begun is cancelled, and what runs has the policy's
 * /timeouts/grace_ms left. */
int knit_pool_stop(struct knit_pool *pool, struct knit_error *e);
/* As stop, and what runs is killed now. */
int knit_pool_kill(struct knit_pool *pool, struct knit_error *e);
/* Cancel all, kill and reap all workers, free the pool. Jobs are the caller's still,
 * and finished; callbacks of the last ones are called from here. Threads that wait in
 * the pool are let go first; no other call may begin. NULL is allowed. */
int knit_pool_close(struct knit_pool *pool);

/* ---- batches: task lines in, results out; knit-tasks(5) ---- */

/* Lines are JSON objects: tasks, which may come after others and use what those kept,
 * and cancellations. A pool may have several batches and jobs beside them; names of
 * tasks are each batch's own. A batch belongs to one thread at a time, which need not
 * be one that waits or dispatches; callbacks (but wake) come from inside of its calls.
 * Lines of any number are worked off in constant memory, if they are given only when
 * the batch wants some, and it is paused while results cannot be handed on. */
struct knit_batch;

struct knit_batch_result { /* made by the library only; fields are added at the end */
	const char *id;
	uint64_t seq;  /* 0, 1, 2...: the order of the lines; each comes once */
	uint64_t line; /* its number, from 1, of one that is no task; else 0 */
	const struct knit_outcome *outcome; /* good until the callback returns */
};
struct knit_batch_options { /* filled by knit_batch_options_init(), then changed */
	size_t size;
	const char *cwd;      /* of each task, inside; NULL: /task */
	const char *keep_dir; /* where kept files go; NULL: gone with the batch */
	void (*result)(void *ctx, const struct knit_batch_result *r);
	/* knit_batch_work() has something to do: by any thread that does the pool's
	 * work. It may not call the batch. NULL: not told. */
	void (*wake)(void *ctx);
	void *ctx;
};
void knit_batch_options_init(struct knit_batch_options *o, size_t size);
/* The pool must outlive it. */
int knit_batch_open(struct knit_pool *pool, const struct knit_batch_options *o,
    struct knit_batch **out, struct knit_error *e);
/* 1: more lines are welcome. */
int knit_batch_wants(const struct knit_batch *batch);
enum { KNIT_LINE_BYTES_MAX = 16 << 20 }; /* a longer one is answered as invalid */
/* n bytes of lines, wherever they are cut. */
int knit_batch_feed(
    struct knit_batch *batch, const void *bytes, size_t n, struct knit_error *e);
/* Or by one read() of a descriptor. 1: some came. 0: none now. -1: the end, if e->kind
 * is KNIT_E_NONE, or why there will be no more; what was taken goes on. */
int knit_batch_read(struct knit_batch *batch, int fd, struct knit_error *e);
void knit_batch_no_more(struct knit_batch *batch); /* the input has ended */
/* While on: no line is taken and nothing begun. Results of what runs still come. */
void knit_batch_pause(struct knit_batch *batch, int on);
/* After the pool's work was done: hand out results, begin what can be begun. 0: there
 * will be more. 1: all is answered, and the input has ended. -1: why the pool cannot go
 * on, or no more lines can be taken; what was taken is answered. */
int knit_batch_work(struct knit_batch *batch, struct knit_error *e);
/* Take no more lines, cancel what lies beyond the pool's window; the rest goes on. */
void knit_batch_stop(struct knit_batch *batch);
/* The result line, as knit_job_json(); from inside of the callback. */
char *knit_batch_json(const struct knit_batch *batch, const struct knit_batch_result *r,
    unsigned flags, size_t *out_n);

struct knit_batch_counts {
	size_t size; /* set by the caller */
	uint64_t accepted, answered, waiting, running;
	int ended;     /* the input, and each line of it was taken */
	uint64_t held; /* bytes of lines that it keeps (API 5) */
};
int knit_batch_count(const struct knit_batch *batch, struct knit_batch_counts *out,
    struct knit_error *e);
/* What runs is cancelled, and nobody hears of it. NULL is allowed. */
void knit_batch_close(struct knit_batch *batch);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
