/* lib/batch.c: task lines over a pool: supervisor/batch.h between lines and jobs.
 *
 * A finished job comes, by whichever thread does the pool's work, into the list of its
 * batch, and no further: all else happens in the calls of the batch's owner. The pool's
 * lock is not held while the batch's is taken.
 */
#include <stdlib.h>
#include <string.h>

#include "lib/batch.h"

/* After a fork it is the parent's. */
static int
check(const struct knit_batch *b, struct knit_error *e)
{
	if (!b)
		return kn_lib_fail(e, KNIT_E_USAGE, "batch: NULL");
	if (!kn_lib_is_ours(b->pool))
		return kn_lib_fail(e, KNIT_E_USAGE,
		    "the pool is another process's: that of before a fork");
	return 0;
}

void
kn_lib_batch_unref(struct knit_batch *b)
{
	if (__atomic_sub_fetch(&b->refs, 1, __ATOMIC_ACQ_REL) > 0)
		return;
	pthread_mutex_destroy(&b->lock);
	free(b->cwd);
	free(b->keep_dir);
	kn_lib_outcome_free(b->view);
	free(b);
}

static bool
has_room(void *ctx)
{
	const struct knit_batch *b = ctx;

	return !b->paused;
}

/* Who asks to be woken is only woken for tasks of his own. */
static bool
has_others(void *ctx)
{
	const struct knit_batch *b = ctx;
	bool yes;

	if (b->o.wake)
		return false;
	pthread_mutex_lock(&b->pool->lock);
	yes = b->pool->unfinished > 0 || b->pool->in_batches > 0;
	pthread_mutex_unlock(&b->pool->lock);
	return yes;
}

static void
on_result(void *ctx, const struct kn_batch_result *r)
{
	struct knit_batch *b = ctx;
	struct knit_batch_result out = { .id = r->id, .seq = r->seq, .line = r->line };
	struct kn_lib_outcome *view = NULL;

	if (b->silent || !b->o.result)
		return;
	if (b->current && kn_lib_outcome_own(b->current->outcome) == r->outcome) {
		out.outcome = kn_lib_outcome_of(b->current->outcome);
	} else {
		/* Who is told of one may stop the batch, and so be told of others. The
		 * first of them needs no memory. */
		view = b->view ? b->view : kn_lib_outcome_new();
		b->view = NULL;
		if (view)
			kn_lib_outcome_view(view, r->outcome);
		out.outcome = kn_lib_outcome_of(view);
	}
	if (out.outcome)
		b->o.result(b->o.ctx, &out);
	if (!view)
		return;
	kn_lib_outcome_view_end(view);
	if (b->view)
		kn_lib_outcome_free(view);
	else
		b->view = view;
}

/* ---- open, close ---- */

void
knit_batch_options_init(struct knit_batch_options *o, size_t size)
{
	if (!o || size < sizeof o->size)
		return;
	memset(o, 0, size);
	o->size = size;
}

static int
read_options(
    struct knit_batch *b, const struct knit_batch_options *o, struct knit_error *e)
{
	const char *bytes = (const char *)o;

	if (!o || o->size < sizeof o->size || o->size > 4096)
		return kn_lib_fail(e, KNIT_E_USAGE,
		    "options that knit_batch_options_init() has not filled");
	for (size_t i = sizeof b->o; i < o->size; i++) {
		if (bytes[i])
			return kn_lib_fail(e, KNIT_E_USAGE,
			    "an option of a newer libknit than this one");
	}
	memcpy(&b->o, o, o->size < sizeof b->o ? o->size : sizeof b->o);
	if (b->o.cwd && b->o.cwd[0] != '/')
		return kn_lib_fail(e, KNIT_E_USAGE, "cwd: must be absolute");
	if ((b->o.cwd && !(b->cwd = strdup(b->o.cwd))) ||
	    (b->o.keep_dir && !(b->keep_dir = strdup(b->o.keep_dir))))
		return kn_lib_nomem(e);
	return 0;
}

static int
open_lines(struct knit_batch *b, struct knit_error *e)
{
	const struct kn_batch_ops ops = { .ctx = b,
		.result = on_result,
		.room = has_room,
		.submit = kn_lib_batch_submit,
		.cancel = kn_lib_batch_cancel,
		.drop = kn_lib_batch_drop,
		.others = has_others };
	struct knit_pool *p = b->pool;
	const struct kn_policy *policy = kn_lib_policy(p->policy);
	struct kn_batch_options o = {
		.policy = policy,
		.env = (const char *const *)p->env.v,
		.env_n = p->env.n,
		.cwd = b->cwd,
		.keep_dir = b->keep_dir,
		.retries = policy->pool.retries,
	};
	struct kn_err err = { 0 };

	pthread_mutex_lock(&p->lock);
	o.swept = p->swept;
	p->swept |= !b->keep_dir;
	pthread_mutex_unlock(&p->lock);
	b->policy = knit_policy_hash(p->policy);
	b->is_module = policy->pool.kind == KN_KIND_MODULE;
	return kn_batch_open(&o, &ops, &b->lines, &err) < 0 ? kn_lib_pass(e, &err) : 0;
}

int
knit_batch_open(struct knit_pool *pool, const struct knit_batch_options *o,
    struct knit_batch **out, struct knit_error *e)
{
	struct knit_batch *b;

	if (!pool || !out)
		return kn_lib_fail(e, KNIT_E_USAGE, "batch: NULL");
	if (!kn_lib_is_ours(pool))
		return kn_lib_fail(e, KNIT_E_USAGE, "the pool is another process's");
	b = calloc(1, sizeof *b);
	if (!b)
		return kn_lib_nomem(e);
	pthread_mutex_init(&b->lock, NULL);
	b->refs = 1;
	b->pool = pool;
	b->view = kn_lib_outcome_new();
	if (!b->view || read_options(b, o, e) < 0 || open_lines(b, e) < 0) {
		if (!b->view)
			kn_lib_nomem(e);
		kn_lib_batch_unref(b);
		return -1;
	}
	*out = b;
	return 0;
}

/* Jobs that are not finished are let go in drop(), and those whose callback was due.
 * What was finished is in the list, or comes there now and sees that we are closed: so
 * each job has one who ends it. */
void
knit_batch_close(struct knit_batch *b)
{
	struct kn_job_list rest = { 0 };

	if (check(b, NULL) < 0)
		return;
	b->silent = true;
	kn_batch_close(b->lines);
	pthread_mutex_lock(&b->lock);
	b->closed = true;
	for (struct knit_job *job; (job = kn_list_pop(&b->done));)
		kn_list_add(&rest, job);
	pthread_mutex_unlock(&b->lock);
	for (struct knit_job *job; (job = kn_list_pop(&rest));)
		kn_lib_batch_end_job(job);
	for (struct knit_job *job; (job = b->spare);) {
		b->spare = job->next;
		kn_lib_job_end(job);
	}
	kn_lib_batch_unref(b);
}

/* ---- lines ---- */

static int
why(const struct knit_batch *b, struct knit_error *e)
{
	const struct kn_err *err = kn_batch_error(b->lines);

	if (err)
		return kn_lib_pass(e, err);
	if (e)
		*e = (struct knit_error)KNIT_ERROR_NONE;
	return -1;
}

int
knit_batch_wants(const struct knit_batch *b)
{
	return b && kn_batch_wants(b->lines);
}

int
knit_batch_feed(struct knit_batch *b, const void *bytes, size_t n, struct knit_error *e)
{
	if (check(b, e) < 0)
		return -1;
	if (!bytes && n > 0)
		return kn_lib_fail(e, KNIT_E_USAGE, "feed: NULL");
	return kn_batch_feed(b->lines, bytes, n) < 0 ? why(b, e) : 0;
}

int
knit_batch_read(struct knit_batch *b, int fd, struct knit_error *e)
{
	int rc;

	if (check(b, e) < 0)
		return -1;
	rc = kn_batch_read(b->lines, fd);
	return rc < 0 ? why(b, e) : rc;
}

void
knit_batch_no_more(struct knit_batch *b)
{
	if (check(b, NULL) == 0)
		kn_batch_no_more(b->lines);
}

void
knit_batch_pause(struct knit_batch *b, int on)
{
	if (b)
		b->paused = on != 0;
}

void
knit_batch_stop(struct knit_batch *b)
{
	if (check(b, NULL) == 0)
		kn_batch_stop(b->lines);
}

/* ---- results ---- */

static struct knit_job *
next_done(struct knit_batch *b)
{
	struct knit_job *job;

	pthread_mutex_lock(&b->lock);
	job = kn_list_pop(&b->done);
	pthread_mutex_unlock(&b->lock);
	return job;
}

/* The pool has ended: what it never had is answered by us. */
static int
end_with_pool(struct knit_batch *b, struct knit_error *e)
{
	struct knit_pool *p = b->pool;
	struct kn_err fail;
	bool over;

	pthread_mutex_lock(&p->lock);
	over = p->over;
	fail = p->fail;
	pthread_mutex_unlock(&p->lock);
	if (!over)
		return 0;
	if (fail.kind == KN_EK_NONE) {
		kn_batch_finish(b->lines, KN_V_CANCELLED, "stopped before it began");
		return 0;
	}
	kn_batch_finish(b->lines, KN_V_LAUNCH_FAILED, fail.msg);
	return kn_lib_pass(e, &fail);
}

int
knit_batch_work(struct knit_batch *b, struct knit_error *e)
{
	struct kn_batch_counts c;
	struct knit_job *job;

	if (check(b, e) < 0)
		return -1;
	while ((job = next_done(b))) {
		b->current = job;
		kn_batch_answer(b->lines, job->node, kn_lib_outcome_own(job->outcome));
		b->current = NULL;
		kn_lib_batch_put_by(b, job);
	}
	kn_batch_wake(b->lines);
	if (end_with_pool(b, e) < 0) {
		kn_batch_count(b->lines, &c);
		return c.running > 0 ? 0 : -1;
	}
	kn_batch_count(b->lines, &c);
	/* Most lines are taken in here, when something has ended: nobody may read
	 * again, and hear it by that. */
	if (c.over && kn_batch_error(b->lines))
		return why(b, e);
	return c.over;
}

char *
knit_batch_json(const struct knit_batch *b, const struct knit_batch_result *r,
    unsigned flags, size_t *out_n)
{
	if (!b || !r || !r->outcome)
		return NULL;
	return kn_lib_outcome_json(
	    r->outcome, r->id, r->line, b->policy, b->is_module, flags, out_n);
}

int
knit_batch_count(
    const struct knit_batch *b, struct knit_batch_counts *out, struct knit_error *e)
{
	struct kn_batch_counts from;
	struct knit_batch_counts c;
	size_t size = out ? out->size : 0;

	if (!b || size < sizeof out->size || size > 4096)
		return kn_lib_fail(e, KNIT_E_USAGE, "counts: their size is not set");
	kn_batch_count(b->lines, &from);
	c = (struct knit_batch_counts){ .size = size,
		.accepted = from.accepted,
		.answered = from.answered,
		.waiting = from.waiting,
		.running = from.running,
		.ended = from.eof,
		.held = from.held };
	memset(out, 0, size);
	memcpy(out, &c, size < sizeof c ? size : sizeof c);
	return 0;
}
