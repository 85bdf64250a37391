/* lib/lib.h: what the files of libknit share.
 *
 *   error.c    our errors, and those of the floors below, as the caller sees them
 *   quiet.c    SIGPIPE and SIGXFSZ kept from the thread that does the pool's work
 *   ids.c      pools of one process do not share the uids of their workers
 *   policy.c   what a policy is merged from, and the merged one
 *   list.c     lists of jobs
 *   job.c      a job as the caller describes it
 *   task.c     the same as a task, and its end
 *   streams.c  one whose streams are the caller's; signals to what it runs
 *   outcome.c  an outcome as answered -> as the caller reads it
 *   pool.c     open, submit, cancel, drain, stop
 *   look.c     what can be asked of a pool and of this machine
 *   batch.c    task lines over a pool; batch_jobs.c: their tasks as jobs
 *   drive.c    who does the pool's work, and who waits for it
 *   close.c    the end
 *
 * Locks: a pool's lock guards all of it and the fields of its jobs marked so, but for
 * the supervisor, which belongs to the leader: the one thread that has set p->leading.
 * No lock is held while the caller's code runs.
 */
#ifndef KN_LIB_LIB_H
#define KN_LIB_LIB_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "include/knit/pool.h"
#include "ipc/err.h"
#include "sandbox/host.h"
#include "sandbox/policy.h"
#include "supervisor/sup.h"
#include "supervisor/task.h"
#include "supervisor/task_env.h"

/* ---- error.c ---- */

/* All return -1. e may be NULL. */
int kn_lib_fail(struct knit_error *e, enum knit_error_kind kind, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
int kn_lib_pass(struct knit_error *e, const struct kn_err *from);
int kn_lib_nomem(struct knit_error *e);

/* ---- quiet.c ---- */

struct kn_quiet {
	bool on, was_pending[2];
	sigset_t old;
};
void kn_quiet_begin(struct kn_quiet *q); /* again: nothing */
void kn_quiet_end(struct kn_quiet *q);

/* ---- ids.c ---- */

struct kn_ids {
	uint32_t at, n;
};
/* Leave of h's range the part that no other pool has. 0, or -1: none is left. */
int kn_ids_take(
    struct kn_host *h, uint32_t n, struct kn_ids *out, struct knit_error *e);
void kn_ids_give_back(struct kn_ids *ids);

/* ---- policy.c ---- */

/* A reference to the checked policy. */
struct knit_policy *kn_lib_policy_hold(struct knit_policy *p, struct knit_error *e);
const struct kn_policy *kn_lib_policy(const struct knit_policy *p);

/* ---- job.c ---- */

enum kn_job_state {
	KN_JOB_NEW,
	KN_JOB_WAITING, /* in the pool's inbox */
	KN_JOB_GIVEN,	/* the supervisor's */
	KN_JOB_DONE
};
struct kn_job_env {
	char *name, *value; /* value NULL: remove */
};
struct kn_lib_outcome;
struct kn_node;

struct knit_job {
	struct kn_task *task; /* till it is answered */
	bool is_call, has_retries, has_streams;
	/* The task is the batch's, which ends it. Set before the job is handed over;
	 * cleared by the batch with release, after its last look at the task, read with
	 * acquire by who leads, without the lock, and by who ends the job. */
	bool lent;
	int lost;		  /* atomic: knit_job_lost() */
	char *id;		  /* the task's, kept */
	struct kn_node *node;	  /* a batch's name for it, and */
	struct knit_batch *batch; /* a reference to that */
	struct kn_task_ask ask;
	struct kn_job_env *env;
	size_t env_n, file_room, collect_room;
	struct kn_err *bad; /* what a setter refused first, or NULL */
	void *user, *done_ctx;
	void (*done)(struct knit_job *job, void *ctx);
	/* under the pool's lock: */
	struct knit_pool *pool; /* a reference, once submitted */
	enum kn_job_state state;
	unsigned waiters; /* threads in knit_job_wait(): it is theirs, and no other's */
	bool orphan, cancel;
	struct kn_job_list *in; /* the list it is in, or NULL */
	struct knit_job *next, *prev, *cancel_next;
	struct kn_lib_outcome *outcome; /* the leader's until DONE */
};
extern struct kn_err kn_lib_no_room; /* what bad is without memory; never written to */
/* Remember the first thing that a setter refused. Always -1. */
int kn_lib_job_refuse(struct knit_job *job, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* The rest of the task, as the policy has it. */
int kn_lib_job_ready(struct knit_job *job, const struct kn_policy *p,
    const struct kn_env *env, struct knit_error *e);
void kn_lib_job_end(struct knit_job *job); /* frees it; it is in no list */
/* Its task is needed no more. */
void kn_lib_job_answered(struct knit_job *job);

struct kn_job_list {
	struct knit_job *first, *last;
	size_t n;
};
void kn_list_add(struct kn_job_list *l, struct knit_job *job);
void kn_list_leave(struct knit_job *job);	     /* in none: nothing */
struct knit_job *kn_list_pop(struct kn_job_list *l); /* NULL: empty */

/* ---- outcome.c ---- */

struct kn_lib_outcome *kn_lib_outcome_new(void); /* NULL: no memory */
/* Moves what from owns. Cannot fail: an outcome that is not whole says so. */
void kn_lib_outcome_fill(struct kn_lib_outcome *l, struct kn_outcome *from);
const struct knit_outcome *kn_lib_outcome_of(const struct kn_lib_outcome *o);
void kn_lib_outcome_wipe(struct kn_lib_outcome *l); /* to be filled again */
void kn_lib_outcome_free(struct kn_lib_outcome *o);
void kn_lib_outcome_passed(struct kn_lib_outcome *l, const struct kn_task *t);
struct kn_outcome *kn_lib_outcome_own(struct kn_lib_outcome *l);
/* A view, in l, of an outcome that is not moved. */
void kn_lib_outcome_view(struct kn_lib_outcome *l, struct kn_outcome *o);
void kn_lib_outcome_view_end(struct kn_lib_outcome *l); /* l can be used again */
char *kn_lib_outcome_json(const struct knit_outcome *o, const char *id, uint64_t line,
    const char *policy, bool is_call, unsigned flags, size_t *out_n);

/* ---- pool.c, drive.c, close.c ---- */

enum kn_wait_for { KN_WAIT_JOB, KN_WAIT_NEXT, KN_WAIT_ALL, KN_WAIT_END };
struct kn_waiter {
	pthread_cond_t cond;
	enum kn_wait_for what;
	struct knit_job *job;
	struct kn_waiter *next, **prev; /* in line, if prev */
};

/* What a thread asks of the leader and waits for; on its stack. */
struct kn_lib_ask {
	struct knit_job *job;
	int signo; /* 0: the terminal */
	enum kn_sup_term term;
	bool done, sent;
	pthread_cond_t cond;
	struct kn_lib_ask *next;
};

struct knit_pool {
	pthread_mutex_t lock;
	pthread_cond_t left; /* users has become 0 */
	pid_t pid;
	unsigned refs; /* the caller's, and one for each submitted job */
	struct kn_sup *sup;
	struct knit_policy *policy;
	struct kn_host host;
	struct kn_ids ids;
	struct kn_env env;
	size_t jobs_max, window;
	bool lazy, leading, calling, woken, over, closed, own_process;
	bool polled;   /* some loop of the caller's watches the descriptor */
	bool swept;    /* by a batch, of kept files that killed ones left */
	bool restless; /* the last turn brought news: the next one is to come soon */
	bool drain, drain_told;
	int stop, stop_told; /* 0, 1 asked to end, 2 kill */
	pthread_t leader, caller;
	int wake_fd;
	void (*say)(void *ctx, unsigned worker, const char *line);
	void *say_ctx;
	unsigned users; /* threads inside of a wait or a dispatch */
	struct kn_err fail;
	struct kn_job_list inbox, finished, calls;
	struct kn_job_list fresh;  /* the leader's: answered in this turn */
	struct knit_job *cancels;  /* GIVEN ones whose cancellation is to be told */
	struct knit_job *streamer; /* the one that has streams of the caller's */
	struct kn_lib_ask *asks;
	char *cwd;
	size_t given, unfinished;
	size_t in_batches; /* jobs that a batch has not taken back */
	uint64_t submitted_n, finished_n;
	struct kn_sup_counts counts; /* as of the last turn */
	struct kn_waiter *line;
};
/* With the lock held. */
void kn_pool_ring(struct knit_pool *p);
/* One turn as the leader; nobody else is. Waits until until_ns at most; 1: never. */
enum kn_sup_news kn_lib_lead(struct knit_pool *p, uint64_t until_ns);
/* Whatever there is to do without waiting, callbacks apart. */
void kn_lib_work(struct knit_pool *p);
void kn_lib_hand_over(struct knit_pool *p);
/* 1, 0: not in time. Takes and leaves the lock itself. */
int kn_lib_wait(struct knit_pool *p, enum kn_wait_for what, struct knit_job *job,
    int timeout_ms, struct knit_job **out, struct knit_error *e);
int kn_lib_debug_mask(const char *list, uint32_t *out, struct knit_error *e);
void kn_lib_answer_asks(struct knit_pool *p); /* nobody else leads */
/* The job is the pool's from here on, or refused. */
int kn_lib_accept(struct knit_pool *p, struct knit_job *job, struct knit_error *e);
/* What was changed is done by who leads, or now by us but for callbacks. */
void kn_lib_set_going(struct knit_pool *p, struct kn_quiet *q);
void kn_lib_ask_cancel(struct knit_pool *p, struct knit_job *job);
bool kn_lib_is_ours(const struct knit_pool *p); /* else it is that of before a fork */
/* Takes the lock; -1, without it, if this is not the process or thread that may. */
int kn_lib_enter(struct knit_pool *p, const char *what, struct knit_error *e);
void kn_lib_unref(struct knit_pool *p);		 /* takes the lock */
void kn_lib_unref_of_batch(struct knit_pool *p); /* the one of a batch's job */
/* Close and free all but the struct itself; also of a pool that is half made. */
void kn_lib_dismantle(struct knit_pool *p);

/* ---- batch.c ---- */

void kn_lib_batch_unref(struct knit_batch *b);

#endif
