/* cmd/serve_pool.c: the pool of today's policy, and those of before a reload.
 *
 * A reload opens a second pool, which becomes the current one when a worker of it is
 * ready. A connection stays with the pool that it found: its tasks may build on one
 * another, and a policy does not change under them. A pool that is not the current one
 * ends with its last connection.
 */
#include <stdio.h>
#include <stdlib.h>

#include "cmd/serve_int.h"
#include "ipc/clock.h"

static void
free_pool(struct kn_serve_pool *p)
{
	(void)knit_pool_close(p->pool);
	knit_policy_free(p->policy);
	free(p);
}

static void
retire(struct kn_serve *s, struct kn_serve_pool **at)
{
	struct kn_serve_pool *p = *at;
	struct knit_pool_counts c = { .size = sizeof c };

	if (knit_pool_count(p->pool, &c, NULL) == 0) {
		s->totals.stolen += c.stolen;
		s->totals.workers_started += c.workers_started;
		s->totals.workers_lost += c.workers_lost;
		s->totals.failed_launches += c.failed_launches;
	}
	*at = p->next;
	free_pool(p);
}

static struct kn_serve_pool *
open_pool(struct kn_serve *s, struct kn_err *e)
{
	struct knit_error err = KNIT_ERROR_NONE;
	struct knit_pool_options how = s->how;
	struct kn_serve_pool *p = calloc(1, sizeof *p);

	if (!p) {
		kn_err_set(e, KN_EK_HOST, "out of memory");
		return NULL;
	}
	p->policy = kn_opt_policy(&s->opt.run, e);
	if (!p->policy || kn_opt_steal(p->policy, &how, e) < 0) {
		knit_policy_free(p->policy);
		free(p);
		return NULL;
	}
	if (knit_pool_open(p->policy, &how, &p->pool, &err) < 0) {
		knit_policy_free(p->policy);
		free(p);
		kn_say_take(e, &err);
		kn_opt_hint_sources(&s->opt.run, e);
		return NULL;
	}
	if (knit_pool_remark(p->pool)[0] && !s->voice.quiet)
		kn_say(&s->voice, "%s", knit_pool_remark(p->pool));
	return p;
}

int
kn_serve_pool_open(struct kn_serve *s, struct kn_err *e)
{
	s->pools = open_pool(s, e);
	return s->pools ? 0 : -1;
}

/* ---- reload ---- */

static void
reload_failed(struct kn_serve *s, struct kn_err *e)
{
	s->totals.failed_reloads++;
	kn_err_wrap(e, "reload: the policy stays as it was");
	kn_say_error(&s->voice, e);
	kn_notify_state(s);
}

static bool
has_worker(const struct kn_serve_pool *p)
{
	struct knit_pool_counts c = { .size = sizeof c };

	return knit_pool_count(p->pool, &c, NULL) == 0 && c.workers > 0;
}

/* That a policy can be read does not say that a worker can be started with it. */
static void
work_coming(struct kn_serve *s)
{
	struct knit_error err = KNIT_ERROR_NONE;
	struct kn_serve_pool *p = s->coming;
	struct kn_err e = { 0 };
	int ended = knit_pool_wait_end(p->pool, 0, &err);

	if (s->state >= KN_SERVE_DRAINING) {
		retire(s, &s->coming);
	} else if (ended != 0) {
		if (ended > 0)
			kn_err_set(&e, KN_EK_LAUNCH, "its pool ended");
		else
			kn_say_take(&e, &err);
		retire(s, &s->coming);
		reload_failed(s, &e);
	} else if (has_worker(p)) {
		p->next = s->pools;
		s->pools = p;
		s->coming = NULL;
		s->totals.reloads++;
		if (!s->voice.quiet)
			kn_say(&s->voice, "reloaded: new connections get policy %s",
			    knit_policy_hash(p->policy));
		kn_notify_state(s);
	}
}

void
kn_serve_reload(struct kn_serve *s)
{
	struct kn_err e = { 0 };
	char text[80];

	if (s->state > KN_SERVE_SERVING)
		return;
	snprintf(text, sizeof text, "RELOADING=1\nMONOTONIC_USEC=%llu",
	    (unsigned long long)(kn_clock_now() / 1000));
	kn_notify(text);
	/* Told twice before it was done: what was read last counts. */
	if (s->coming)
		retire(s, &s->coming);
	s->coming = open_pool(s, &e);
	if (!s->coming)
		reload_failed(s, &e);
}

/* 1: it has ended. */
static int
work(struct kn_serve *s, struct kn_serve_pool *p, struct knit_error *err)
{
	int rc = knit_pool_wait_end(p->pool, 0, err);

	if (!p->ready && rc == 0)
		p->ready = has_worker(p);
	if (p->draining || p->clients > 0)
		return rc;
	if (p != s->pools || s->state >= KN_SERVE_DRAINING) {
		p->draining = true;
		(void)knit_pool_drain(p->pool, NULL);
		rc = knit_pool_wait_end(p->pool, 0, err);
	}
	return rc;
}

int
kn_serve_pools_work(struct kn_serve *s, struct kn_err *e)
{
	struct kn_serve_pool **at = &s->pools;
	int rc = 0;

	if (s->coming)
		work_coming(s);
	while (*at) {
		struct knit_error err = KNIT_ERROR_NONE;
		struct kn_serve_pool *p = *at;
		int ended = work(s, p, &err);

		if (ended < 0 && p == s->pools && rc == 0)
			rc = kn_say_take(e, &err);
		/* An older one that cannot go on has answered all of its clients. */
		if (ended != 0 && p->clients == 0 && (p != s->pools || p->draining))
			retire(s, at);
		else
			at = &p->next;
	}
	return rc;
}

void
kn_serve_pools_kill(struct kn_serve *s)
{
	for (struct kn_serve_pool *p = s->pools; p; p = p->next)
		(void)knit_pool_kill(p->pool, NULL);
}

void
kn_serve_pools_close(struct kn_serve *s)
{
	if (s->coming)
		retire(s, &s->coming);
	while (s->pools)
		retire(s, &s->pools);
}
