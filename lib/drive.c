/* lib/drive.c: who does the pool's work, and who waits for it.
 *
 * Leader and followers: the first thread that waits or dispatches leads: it turns the
 * supervisor's loop, without the lock, and sleeps in it. The others sleep in line, and
 * are woken when what they wait for is there, or, the first of them, when the leader
 * leaves. A submission reaches a leader that sleeps through an eventfd, which is also
 * what makes the pool's descriptor readable for a caller's own loop.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "ipc/clock.h"
#include "lib/lib.h"

enum {
	PASSES = 64, /* turns of one dispatch: a caller's loop has other things to do */
};

void
kn_pool_ring(struct knit_pool *p)
{
	const uint64_t one = 1;

	if (p->woken || p->wake_fd < 0)
		return;
	/* cannot fail: the counter is 0 or 1. If it does, who waits may wait for ever.
	 */
	for (int tries = 0; tries < 3 && !p->woken; tries++)
		p->woken = write(p->wake_fd, &one, sizeof one) == (ssize_t)sizeof one;
}

/* ---- jobs in and out ---- */

/* A job that the supervisor never had, or has no more. */
static void
end_unasked(
    struct knit_pool *p, struct knit_job *job, enum kn_verdict v, const char *why)
{
	struct kn_outcome o = { .verdict = v, .exit_code = -1, .worker = -1 };

	memccpy(o.error, why, '\0', sizeof o.error - 1);
	kn_lib_job_answered(job);
	kn_lib_outcome_fill(job->outcome, &o);
	kn_list_add(&p->fresh, job);
}

static void
give_one(struct knit_pool *p, struct knit_job *job)
{
	struct kn_err err = { 0 };
	int rc;

	if (job->cancel || p->stop) {
		end_unasked(p, job, KN_V_CANCELLED, "cancelled before it began");
		return;
	}
	if (p->over) {
		end_unasked(p, job, KN_V_LAUNCH_FAILED, p->fail.msg);
		return;
	}
	rc = kn_sup_submit(p->sup, job->task, &err);
	if (rc != 0) {
		end_unasked(p, job, rc > 0 ? KN_V_CANCELLED : KN_V_INTERNAL,
		    rc > 0 ? "the pool was stopped" : err.msg);
		return;
	}
	job->state = KN_JOB_GIVEN;
	p->given++;
}

void
kn_lib_answer_asks(struct knit_pool *p)
{
	for (struct kn_lib_ask *a; (a = p->asks);) {
		p->asks = a->next;
		a->done = true;
		if (a->job->state == KN_JOB_GIVEN && a->job->task && !p->over) {
			a->sent = true;
			if (a->signo)
				a->sent = kn_sup_signal(p->sup, a->job->task, a->signo);
			else
				kn_sup_terminal(p->sup, a->term);
		}
		pthread_cond_signal(&a->cond);
	}
}

/* What callers asked for meanwhile. The lock is held, and we lead. */
static void
give(struct knit_pool *p)
{
	if (p->stop > p->stop_told && !p->over)
		kn_sup_stop(p->sup, p->stop > 1);
	p->stop_told = p->stop;
	kn_lib_answer_asks(p);
	for (struct knit_job *job; (job = p->cancels);) {
		p->cancels = job->cancel_next;
		if (job->task && !p->over)
			kn_sup_cancel(p->sup, job->task);
	}
	while (p->inbox.first && (p->given < p->window || p->stop || p->over))
		give_one(p, kn_list_pop(&p->inbox));
	if (p->drain && !p->drain_told && !p->inbox.first && !p->over) {
		kn_sup_drain(p->sup);
		p->drain_told = true;
	}
}

static bool
is_wanted(const struct knit_pool *p, const struct kn_waiter *w)
{
	switch (w->what) {
	case KN_WAIT_JOB:
		return w->job->state == KN_JOB_DONE;
	case KN_WAIT_NEXT:
		return p->finished.first || p->unfinished == 0;
	case KN_WAIT_ALL:
		return p->unfinished == 0;
	case KN_WAIT_END:
		break;
	}
	return p->over && p->unfinished == 0;
}

static void
forget_cancel(struct knit_pool *p, const struct knit_job *job)
{
	struct knit_job **at = &p->cancels;

	while (*at && *at != job)
		at = &(*at)->cancel_next;
	if (*at)
		*at = job->cancel_next;
}

static void
finish(struct knit_pool *p, struct knit_job *job)
{
	if (job->state == KN_JOB_GIVEN)
		p->given--;
	if (job->cancel)
		forget_cancel(p, job);
	if (p->streamer == job)
		p->streamer = NULL;
	job->state = KN_JOB_DONE;
	p->unfinished--;
	p->finished_n++;
	if (job->orphan) {
		p->refs--; /* not the last: somebody is in here */
		kn_lib_job_end(job);
	} else if (job->done) {
		kn_list_add(&p->calls, job);
	} else if (job->waiters == 0) {
		kn_list_add(&p->finished, job);
	}
}

static void
harvest(struct knit_pool *p)
{
	bool any = p->fresh.first != NULL;

	for (struct knit_job *job; (job = kn_list_pop(&p->fresh));)
		finish(p, job);
	if (!any && !p->over)
		return;
	for (struct kn_waiter *w = p->line; w; w = w->next) {
		if (is_wanted(p, w))
			pthread_cond_signal(&w->cond);
	}
}

/* ---- leading ---- */

enum kn_sup_news
kn_lib_lead(struct knit_pool *p, uint64_t until_ns)
{
	enum kn_sup_news news = KN_SUP_QUIET;
	struct kn_err err = { 0 };
	int rc = 0;

	p->leading = true;
	p->leader = pthread_self();
	give(p);
	/* What was answered in give() must not wait for a turn that sleeps. */
	if (p->fresh.first || p->calls.first)
		until_ns = 1;
	if (!p->over) {
		pthread_mutex_unlock(&p->lock);
		rc = kn_sup_turn(p->sup, until_ns, &news, &err);
		pthread_mutex_lock(&p->lock);
		kn_sup_count(p->sup, &p->counts);
	}
	if (rc < 0 || news == KN_SUP_ENDED) {
		p->over = true;
		if (rc < 0)
			p->fail = err;
		give(p); /* the inbox is answered too */
	}
	harvest(p);
	p->leading = false;
	if (p->inbox.first && (p->given < p->window || p->stop))
		news = KN_SUP_NEWS;
	else if (p->over)
		news = KN_SUP_ENDED;
	p->restless = news == KN_SUP_NEWS;
	return news;
}

void
kn_lib_work(struct knit_pool *p)
{
	enum kn_sup_news news = KN_SUP_NEWS;

	for (int i = 0; i < PASSES && news == KN_SUP_NEWS && !p->leading; i++)
		news = kn_lib_lead(p, 1);
	if (news == KN_SUP_NEWS && !p->leading)
		kn_pool_ring(p);
}

/* Callbacks, one thread at a time, without the lock and without leading. */
static void
run_calls(struct knit_pool *p, struct kn_quiet *q)
{
	if (p->calling || !p->calls.first)
		return;
	p->calling = true;
	p->caller = pthread_self();
	for (struct knit_job *job; (job = kn_list_pop(&p->calls));) {
		pthread_mutex_unlock(&p->lock);
		kn_quiet_end(q);
		job->done(job, job->done_ctx); /* it may be freed now */
		pthread_mutex_lock(&p->lock);
	}
	p->calling = false;
}

/* Nobody leads: the next in line does, or the caller's own loop is told to come. That
 * too if a wait ended with a turn that brought news: workers are only asked to ring
 * before a turn that could sleep. */
void
kn_lib_hand_over(struct knit_pool *p)
{
	if (p->leading)
		return;
	if (p->asks)
		pthread_cond_signal(&p->asks->cond);
	if (p->line)
		pthread_cond_signal(&p->line->cond);
	else if (!p->over && ((p->polled && p->restless) || p->calls.first ||
				 p->cancels || p->stop > p->stop_told ||
				 (p->inbox.first && p->given < p->window)))
		kn_pool_ring(p);
}

/* ---- waiting ---- */

static void
stand_in_line(struct knit_pool *p, struct kn_waiter *w, uint64_t until_ns)
{
	struct kn_waiter **at = &p->line;
	struct timespec ts = { .tv_sec = (time_t)(until_ns / KN_S_NS),
		.tv_nsec = (long)(until_ns % KN_S_NS) };

	while (*at)
		at = &(*at)->next;
	w->next = NULL;
	w->prev = at;
	*at = w;
	if (until_ns)
		pthread_cond_timedwait(&w->cond, &p->lock, &ts);
	else
		pthread_cond_wait(&w->cond, &p->lock);
	*w->prev = w->next;
	if (w->next)
		w->next->prev = w->prev;
	w->prev = NULL;
}

static int
wait_for(struct knit_pool *p, struct kn_waiter *w, int timeout_ms, struct kn_quiet *q)
{
	uint64_t until = timeout_ms > 0
			     ? kn_clock_after_ms(kn_clock_now(), (uint64_t)timeout_ms)
			     : 0;
	bool done = false;

	for (;;) {
		run_calls(p, q);
		if (is_wanted(p, w))
			return 1;
		if (done || (until && kn_clock_now() >= until))
			return 0;
		if (timeout_ms == 0) {
			kn_quiet_begin(q);
			kn_lib_work(p);
			done =
			    true; /* what another one's turn brings is not waited for */
		} else if (p->leading) {
			stand_in_line(p, w, until);
		} else {
			kn_quiet_begin(q);
			kn_lib_lead(p, until);
		}
	}
}

/* From now on it does not come out of knit_pool_next(), whatever its waiter does:
 * leads, stands in line, or is inside of a callback. */
static void
claim(struct knit_pool *p, struct knit_job *job)
{
	job->waiters++;
	/* Which list it is in is the leader's to say before, who has no lock then. */
	if (job->state == KN_JOB_DONE && job->in == &p->finished)
		kn_list_leave(job);
}

int
kn_lib_wait(struct knit_pool *p, enum kn_wait_for what, struct knit_job *job,
    int timeout_ms, struct knit_job **out, struct knit_error *e)
{
	struct kn_waiter w = { .what = what, .job = job };
	struct kn_quiet q = { 0 };
	pthread_condattr_t attr;
	int rc;

	if (kn_lib_enter(p, "wait", e) < 0)
		return -1;
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&w.cond, &attr);
	pthread_condattr_destroy(&attr);
	p->users++;
	if (what == KN_WAIT_JOB)
		claim(p, job);
	rc = wait_for(p, &w, timeout_ms, &q);
	if (what == KN_WAIT_JOB)
		job->waiters--;
	if (rc > 0 && what == KN_WAIT_NEXT) {
		*out = kn_list_pop(&p->finished);
		rc = *out != NULL;
	}
	kn_lib_hand_over(p);
	if (--p->users == 0)
		pthread_cond_broadcast(&p->left);
	pthread_cond_destroy(&w.cond);
	pthread_mutex_unlock(&p->lock);
	kn_quiet_end(&q);
	return rc;
}

int
knit_job_wait(struct knit_job *job, int timeout_ms, struct knit_error *e)
{
	if (!job || !job->pool)
		return kn_lib_fail(e, KNIT_E_USAGE, "wait: the job was not submitted");
	return kn_lib_wait(job->pool, KN_WAIT_JOB, job, timeout_ms, NULL, e);
}

int
knit_pool_next(
    struct knit_pool *p, int timeout_ms, struct knit_job **out, struct knit_error *e)
{
	if (!p || !out)
		return kn_lib_fail(e, KNIT_E_USAGE, "next: NULL");
	*out = NULL;
	return kn_lib_wait(p, KN_WAIT_NEXT, NULL, timeout_ms, out, e);
}

int
knit_pool_wait_all(struct knit_pool *p, int timeout_ms, struct knit_error *e)
{
	if (!p)
		return kn_lib_fail(e, KNIT_E_USAGE, "wait: NULL");
	return kn_lib_wait(p, KN_WAIT_ALL, NULL, timeout_ms, NULL, e);
}

int
knit_pool_wait_end(struct knit_pool *p, int timeout_ms, struct knit_error *e)
{
	int rc;

	if (!p)
		return kn_lib_fail(e, KNIT_E_USAGE, "wait: NULL");
	rc = kn_lib_wait(p, KN_WAIT_END, NULL, timeout_ms, NULL, e);
	if (rc == 1 && p->fail.kind != KN_EK_NONE) /* the last that was written */
		rc = kn_lib_pass(e, &p->fail);
	return rc;
}

int
knit_pool_dispatch(struct knit_pool *p, struct knit_error *e)
{
	struct kn_quiet q = { 0 };
	int rc;

	if (!p)
		return kn_lib_fail(e, KNIT_E_USAGE, "dispatch: NULL");
	if (kn_lib_enter(p, "dispatch", e) < 0)
		return -1;
	p->users++;
	kn_quiet_begin(&q);
	kn_lib_work(p);
	run_calls(p, &q);
	kn_lib_hand_over(p);
	rc = p->finished.n > INT32_MAX ? INT32_MAX : (int)p->finished.n;
	if (p->over && p->fail.kind != KN_EK_NONE && rc == 0)
		rc = kn_lib_pass(e, &p->fail);
	if (--p->users == 0)
		pthread_cond_broadcast(&p->left);
	pthread_mutex_unlock(&p->lock);
	kn_quiet_end(&q);
	return rc;
}
