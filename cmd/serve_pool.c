/* cmd/serve_pool.c: the pool of today's policy, and those of before a reload.
 *
 * A reload opens a second pool. A connection stays with the pool that it found: its
 * tasks may build on one another, and a policy does not change under them. A pool that
 * is not the current one ends with its last connection.
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

int
kn_serve_pool_open(struct kn_serve *s, struct kn_err *e)
{
	struct knit_error err = KNIT_ERROR_NONE;
	struct knit_pool_options how = s->how;
	struct kn_serve_pool *p = calloc(1, sizeof *p);

	if (!p)
		return kn_err_set(e, KN_EK_HOST, "out of memory");
	p->policy = kn_opt_policy(&s->opt.run, e);
	if (!p->policy || kn_opt_steal(p->policy, &how, e) < 0) {
		knit_policy_free(p->policy);
		free(p);
		return -1;
	}
	if (knit_pool_open(p->policy, &how, &p->pool, &err) < 0) {
		knit_policy_free(p->policy);
		free(p);
		return kn_say_take(e, &err);
	}
	if (knit_pool_remark(p->pool)[0] && !s->voice.quiet)
		kn_say(&s->voice, "%s", knit_pool_remark(p->pool));
	p->next = s->pools;
	s->pools = p;
	return 0;
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
	if (kn_serve_pool_open(s, &e) < 0) {
		s->totals.failed_reloads++;
		kn_err_wrap(&e, "reload: the policy stays as it was");
		kn_say_error(&s->voice, &e);
	} else {
		s->totals.reloads++;
		if (!s->voice.quiet)
			kn_say(&s->voice, "reloaded: new connections get policy %s",
			    knit_policy_hash(s->pools->policy));
	}
	kn_notify_state(s);
}

/* 1: it has ended. */
static int
work(struct kn_serve *s, struct kn_serve_pool *p, struct knit_error *err)
{
	struct knit_pool_counts c = { .size = sizeof c };
	int rc = knit_pool_wait_end(p->pool, 0, err);

	if (!p->ready && rc == 0 && knit_pool_count(p->pool, &c, NULL) == 0)
		p->ready = c.workers > 0;
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
	while (s->pools)
		retire(s, &s->pools);
}
