/* lib/batch_jobs.c: the tasks of a batch as jobs of its pool. */
#include <stdlib.h>
#include <string.h>

#include "lib/batch.h"

enum {
	SPARES = 256,
	/* Of calls, that many are handed over for each worker, and for all: the more
	 * are under way, the colder is what their results are written to. */
	CALLS_EACH = 128,
	CALLS_MORE = 256,
};

void
kn_lib_batch_end_job(struct knit_job *job)
{
	struct knit_pool *p = job->pool;

	kn_lib_job_end(job);
	kn_lib_unref_of_batch(p);
}

/* By any thread. */
static void
on_done(struct knit_job *job, void *ctx)
{
	struct knit_batch *b = ctx;
	bool closed;

	pthread_mutex_lock(&b->lock);
	closed = b->closed;
	if (!closed) {
		kn_list_add(&b->done, job);
		if (b->o.wake) /* with the lock, or it could come after the close */
			b->o.wake(b->o.ctx);
	}
	pthread_mutex_unlock(&b->lock);
	if (closed)
		kn_lib_batch_end_job(job);
}

static struct knit_job *
wrap(struct knit_batch *b, struct kn_task *t, struct kn_node *n)
{
	struct knit_job *job = b->spare;

	if (job) {
		b->spare = job->next;
		b->spare_n--;
		job->next = NULL;
	} else {
		job = calloc(1, sizeof *job);
		if (job)
			job->outcome = kn_lib_outcome_new();
	}
	if (!job || !job->outcome) {
		free(job);
		return NULL;
	}
	job->task = t;
	job->lent = true;
	job->is_call = b->is_module;
	job->node = n;
	job->done = on_done;
	job->done_ctx = b;
	t->user = job;
	return job;
}

/* Its result was told. */
void
kn_lib_batch_put_by(struct knit_batch *b, struct knit_job *job)
{
	struct kn_lib_outcome *o = job->outcome;
	struct knit_pool *p = job->pool;

	if (b->spare_n >= SPARES) {
		kn_lib_batch_end_job(job);
		return;
	}
	kn_lib_outcome_wipe(o);
	memset(job, 0, sizeof *job);
	job->outcome = o;
	job->next = b->spare;
	b->spare = job;
	b->spare_n++;
	kn_lib_batch_unref(b);
	kn_lib_unref_of_batch(p);
}

static enum kn_verdict
verdict_of(const struct knit_error *e)
{
	if (e->kind == KNIT_E_CLOSED)
		return KN_V_CANCELLED;
	return e->kind == KNIT_E_LAUNCH || e->kind == KNIT_E_HOST ||
		       e->kind == KNIT_E_CONFIG
		   ? KN_V_LAUNCH_FAILED
		   : KN_V_INTERNAL;
}

/* With the pool's lock. More than the workers choose from is not handed over: a task's
 * files are open from then on. */
static bool
is_full(const struct knit_batch *b, const struct kn_batch_counts *c)
{
	const struct knit_pool *p = b->pool;

	if (c->running == 0)
		return false;
	if (b->is_module &&
	    c->running >= CALLS_MORE + (uint64_t)CALLS_EACH * p->counts.workers)
		return true;
	return p->unfinished >= p->window || p->unfinished >= p->jobs_max;
}

int
kn_lib_batch_submit(void *ctx, struct kn_task *t, struct kn_node *n, enum kn_verdict *v,
    struct kn_err *err)
{
	struct knit_batch *b = ctx;
	struct knit_pool *p = b->pool;
	struct knit_error e = KNIT_ERROR_NONE;
	struct kn_batch_counts c;
	struct kn_quiet q = { 0 };
	struct knit_job *job = NULL;
	int rc = 1;

	kn_batch_count(b->lines, &c);
	c.running--;		      /* this one is counted already */
	pthread_mutex_lock(&p->lock); /* whose process it is was looked at */
	if (!is_full(b, &c)) {
		job = wrap(b, t, n);
		rc = job ? kn_lib_accept(p, job, &e) : kn_lib_nomem(&e);
	}
	if (rc == 0) {
		job->batch = b;
		p->in_batches++;
		__atomic_add_fetch(&b->refs, 1, __ATOMIC_RELAXED);
		kn_lib_set_going(p, &q);
	}
	pthread_mutex_unlock(&p->lock);
	kn_quiet_end(&q);
	if (rc >= 0)
		return rc;
	if (job)
		kn_lib_job_end(job);
	*v = verdict_of(&e);
	return kn_err_set(err, KN_EK_HOST, "%s", e.text);
}

void
kn_lib_batch_cancel(void *ctx, struct kn_task *t)
{
	(void)ctx;
	(void)knit_job_cancel(t->user, NULL);
}

/* The job goes on without us, if it is not finished; see knit_batch_close(). */
void
kn_lib_batch_drop(void *ctx, struct kn_task *t)
{
	struct knit_batch *b = ctx;
	struct knit_job *job = t->user;
	struct knit_pool *p = b->pool;
	struct kn_quiet q = { 0 };
	bool ours = false;

	pthread_mutex_lock(&p->lock);
	__atomic_store_n(
	    &job->lent, false, __ATOMIC_RELEASE); /* the task ends with it */
	if (job->state != KN_JOB_DONE) {
		job->orphan = true;
		p->in_batches--;
		kn_lib_ask_cancel(p, job);
		kn_lib_set_going(p, &q);
	} else if (job->in == &p->calls) {
		kn_list_leave(job);
		ours = true;
	}
	pthread_mutex_unlock(&p->lock);
	kn_quiet_end(&q);
	if (ours)
		kn_lib_batch_end_job(job);
}
