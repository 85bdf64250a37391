/* cmd/serve_pool.c: the pool of today's policy, and those of before a reload.
 *
 * A reload opens a second pool, which becomes the current one when a worker of it is
 * ready. A connection stays with the pool that it found: its tasks may build on one
 * another, and a policy does not change under them. A pool that is not the current one
 * ends with its last connection.
 */
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "cmd/serve_int.h"
#include "ipc/clock.h"
#include "ipc/fd.h"

/* ---- what its workers did, as a document for each pool: FILE, FILE.1, FILE.2 ---- */

static int
trace_name(const struct kn_serve *s, unsigned number, char *out, size_t n)
{
	int len = number ? snprintf(out, n, "%s.%u", s->opt.run.trace, number)
			 : snprintf(out, n, "%s", s->opt.run.trace);

	return len < 0 || (size_t)len >= n ? -1 : 0;
}

static int
open_trace(struct kn_serve *s, struct kn_serve_pool *p, struct kn_err *e)
{
	char name[PATH_MAX];

	if (!s->opt.run.trace)
		return 0;
	if (trace_name(s, s->traces, name, sizeof name) < 0)
		return kn_err_set(e, KN_EK_USAGE, "--trace: the path is too long");
	p->trace_fd =
	    open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOCTTY, 0666);
	if (p->trace_fd < 0)
		return kn_err_sys(e, KN_EK_USAGE, "--trace: open %s", name);
	s->traces++;
	return 0;
}

/* Of the one that was opened last. FILE itself is the caller's, whatever it is. */
static void
take_trace_back(struct kn_serve *s, const struct kn_serve_pool *p)
{
	char name[PATH_MAX];

	if (p->trace_fd >= 0 && --s->traces > 0 &&
	    trace_name(s, s->traces, name, sizeof name) == 0)
		(void)unlink(name);
}

/* ---- open and close ---- */

static void
free_pool(struct kn_serve_pool *p)
{
	(void)knit_pool_close(p->pool);
	knit_policy_free(p->policy);
	kn_fd_close(&p->trace_fd);
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
	p->trace_fd = -1;
	p->policy = kn_opt_policy(&s->opt.run, e);
	if (!p->policy || kn_opt_steal(p->policy, &how, e) < 0 ||
	    open_trace(s, p, e) < 0) {
		free_pool(p);
		return NULL;
	}
	kn_serve_room_policy(s, p->policy);
	how.descriptors = kn_serve_fds_least(s);
	how.trace_fd = p->trace_fd;
	if (knit_pool_open(p->policy, &how, &p->pool, &err) < 0) {
		take_trace_back(s, p);
		free_pool(p);
		kn_say_take(e, &err);
		kn_opt_hint_sources(&s->opt.run, e);
		return NULL;
	}
	if (knit_pool_remark(p->pool)[0] && !s->voice.quiet)
		kn_say(&s->voice, "%s", knit_pool_remark(p->pool));
	kn_say_layers(&s->voice, p->pool);
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
drop_coming(struct kn_serve *s)
{
	take_trace_back(s, s->coming);
	retire(s, &s->coming);
}

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
		drop_coming(s);
	} else if (ended != 0) {
		if (ended > 0)
			kn_err_set(&e, KN_EK_LAUNCH, "its pool ended");
		else
			kn_say_take(&e, &err);
		drop_coming(s);
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
		drop_coming(s);
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
	if (!p->draining && p->clients == 0 &&
	    (p != s->pools || s->state >= KN_SERVE_DRAINING)) {
		p->draining = true;
		(void)knit_pool_drain(p->pool, NULL);
		rc = knit_pool_wait_end(p->pool, 0, err);
	}
	p->ended = rc != 0;
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
		drop_coming(s);
	while (s->pools)
		retire(s, &s->pools);
}
