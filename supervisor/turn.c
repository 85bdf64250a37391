/* supervisor/turn.c: the core's turns and the loop around them.
 *
 * A turn: one event into the core, its actions done in order, then the answers to those
 * actions, then whatever else was queued meanwhile. It never recurses: what happens
 * inside a turn is queued. The loop looks at what the world shows before it lets time
 * pass, so that a task that ended in time is not taken for late because we were
 * stopped.
 */
#include <string.h>
#include <time.h>

#include "ipc/bell.h"
#include "ipc/clock.h"
#include "supervisor/inner.h"
#include "supervisor/share.h"

enum {
	STALL_NS = 20 * 1000 * 1000,
	BREATH_NS = 10 * 1000 * 1000, /* longer than a stub's look for its files' end */
	BREATH_MOST_NS = 500 * 1000 * 1000,
	SLOW_LOOKS = 8,
	KN_POLL_NS = 4 * 1000 * 1000,
};

/* ---- turns ---- */

static bool
push(struct kn_queue *q, const struct kn_event *ev)
{
	uint32_t to = q->at + q->n;

	if (q->n == q->cap)
		return false;
	q->v[to < q->cap ? to : to - q->cap] = *ev; /* no division: once an event */
	q->n++;
	return true;
}

static bool
pop(struct kn_queue *q, struct kn_event *out)
{
	if (q->n == 0)
		return false;
	*out = q->v[q->at];
	q->at = q->at + 1 < q->cap ? q->at + 1 : 0;
	/* An empty one begins anew: the same few lines all the time, and not in turn
	 * all of a table that is sized for the worst. */
	if (--q->n == 0)
		q->at = 0;
	return true;
}

/* The queues are sized for all that can be in them (sup.c); a full one is our bug, and
 * a lost event would be a task that is never answered: end the pool instead. */
static void
must_push(struct kn_sup *s, struct kn_queue *q, const struct kn_event *ev)
{
	struct kn_err e;

	if (push(q, ev))
		return;
	kn_err_set(&e, KN_EK_BUG, "event queue full at %s", kn_event_name(ev->type));
	kn_turn_fail(s, &e);
	s->broken = true;
}

void
kn_turn_reply(struct kn_sup *s, const struct kn_event *ev)
{
	must_push(s, &s->replies, ev);
}

void
kn_turn_queue(struct kn_sup *s, const struct kn_event *ev)
{
	must_push(s, &s->events, ev);
}

/* A cancellation that waited while its task was answered: the index may be another's.
 */
static bool
is_stale(const struct kn_sup *s, const struct kn_event *ev)
{
	return ev->type == KN_EV_CANCEL &&
	       (!s->entry[ev->task].task || !s->entry[ev->task].cancel_sent);
}

/* Whose READY this is, if it lives. What it claimed while that waited behind older
 * events the core can hear of only now: of a claim by a worker that starts it makes
 * nothing, and the task would be nobody's. */
static struct kn_wk *
who_is_ready(struct kn_sup *s, const struct kn_event *ev)
{
	struct kn_wk *w = ev->type == KN_EV_READY && ev->worker < s->worker_n
			      ? &s->wk[ev->worker]
			      : NULL;

	if (!w || w->incarnation != ev->incarnation)
		return NULL;
	w->ready_untold = false;
	return s->share && w->live && w->ready ? w : NULL;
}

static void
step(struct kn_sup *s, const struct kn_event *ev)
{
	struct kn_wk *ready = who_is_ready(s, ev);
	size_t n = is_stale(s, ev) ? 0 : kn_pool_step(s->pool, ev, s->actions);

	s->step_ns = ev->now_ns;
	s->steps++;
	for (size_t i = 0; i < n; i++)
		kn_act_do(s, &s->actions[i]);
	if (ready)
		kn_share_ready(ready);
}

void
kn_turn_pump(struct kn_sup *s)
{
	struct kn_event ev;

	if (s->pumping)
		return;
	s->pumping = true;
	while (pop(&s->replies, &ev) || pop(&s->events, &ev))
		step(s, &ev);
	s->pumping = false;
}

void
kn_turn_feed(struct kn_sup *s, const struct kn_event *ev)
{
	if (s->pumping) {
		kn_turn_queue(s, ev);
		return;
	}
	/* what waits is older */
	kn_turn_pump(s);
	s->pumping = true;
	step(s, ev);
	s->pumping = false;
	kn_turn_pump(s);
}

void
kn_turn_fail(struct kn_sup *s, const struct kn_err *e)
{
	s->fail = *e;
	s->has_fail = true;
}

void
kn_turn_stop(struct kn_sup *s, bool now, int signo)
{
	struct kn_event ev = { .type = now ? KN_EV_STOP_NOW : KN_EV_STOP,
		.now_ns = kn_clock_now() };
	int level = now ? 2 : 1;

	if (s->stop_level >= level)
		return;
	s->stop_level = level;
	if (signo && !s->stop_signal)
		s->stop_signal = signo;
	s->flush_by_ns =
	    now ? ev.now_ns
		: ev.now_ns + (uint64_t)s->policy->timeouts.grace_ms * KN_MS_NS;
	KN_LOG(&s->log, KN_NS_SIGNALS, KN_LOG_POOL, "stop%s", now ? " now" : "");
	kn_turn_queue(s, &ev);
}

/* ---- the loop ---- */

static unsigned
look_at_workers(struct kn_sup *s)
{
	unsigned n = 0;

	for (uint32_t i = 0; i < s->worker_n; i++) {
		struct kn_wk *w = &s->wk[i];

		if (!w->live)
			continue;
		n += kn_view_look(w);
		kn_view_tell_bad(w);
	}
	s->watchdog_hit = false;
	return n;
}

static void
look_for_gone(struct kn_sup *s, uint64_t now)
{
	if (s->share)
		s->share->again = false;
	for (uint32_t i = 0; i < s->worker_n; i++)
		kn_view_gone(&s->wk[i], now);
}

static void
answer_refused(struct kn_sup *s)
{
	while (s->refused_head != KN_NO_ENTRY) {
		struct kn_entry *e = &s->entry[s->refused_head];

		s->refused_head = e->next;
		kn_outcome_answer(e);
	}
}

static void
own_timers(struct kn_sup *s, uint64_t now)
{
	struct kn_event ev = { .type = KN_EV_TIMER, .now_ns = now };
	uint64_t core;

	if (s->share)
		kn_share_timer(s, now);
	core = kn_pool_deadline(s->pool);
	if (core && core <= now)
		kn_turn_feed(s, &ev);
	kn_stream_watch_late(s, now);
	if (s->egress)
		kn_egress_timer(s, now);
	for (uint32_t i = 0; s->module && i < s->worker_n; i++)
		kn_resident_timer(&s->wk[i], now);
	for (uint32_t i = 0; s->rests && i < s->worker_n; i++)
		kn_rest_timer(&s->wk[i], now);
	for (uint32_t i = 0; s->cpu_limits && i < s->worker_n; i++)
		kn_call_cpu_timer(&s->wk[i], now);
	for (uint32_t i = 0; s->listener_rests && i < s->worker_n; i++)
		kn_refused_timer(&s->wk[i], now);
	if (s->flush_by_ns && s->flush_by_ns <= now)
		kn_relay_abandon(s);
	if (s->tick_ns && s->tick_ns <= now) {
		s->tick_ns = now + s->tick_every_ns;
		s->tick(s->tick_ctx);
	}
}

static void
give_room(struct kn_sup *s)
{
	if (!s->want_room || s->used_n >= s->task_max || s->stop_level)
		return;
	s->want_room = false;
	if (s->cb.room)
		s->cb.room(s->cb.ctx);
}

/* An answer can take long to write (megabytes of files, as text), and while we write
 * nobody is heard: what workers did meanwhile was in time, and some could do nothing,
 * since the files of their last task are only closed with its answer. So time passes
 * for them only after a look that was quick, or claims at least were looked at again.
 */
static unsigned
look_until_quick(struct kn_sup *s, uint64_t *out_now)
{
	struct timespec breath = { 0, 0 };
	unsigned n = 0, found;
	uint64_t now, ns;

	if (!s->round_begun)
		s->round_ns = kn_clock_now();
	s->round_begun = false;
	for (int tries = 0; tries < SLOW_LOOKS; tries++) {
		found = look_at_workers(s);
		n += found;
		now = found ? kn_clock_now() : s->round_ns;
		*out_now = now;
		if (now - s->round_ns < STALL_NS)
			return n;
		/* Where writing took us long, waking takes them longer. */
		ns = BREATH_NS + (now - s->round_ns) / 32;
		breath.tv_nsec = (long)(ns < BREATH_MOST_NS ? ns : BREATH_MOST_NS);
		nanosleep(&breath, NULL);
		s->round_ns = kn_clock_now();
	}
	*out_now = kn_clock_now();
	for (uint32_t i = 0; i < s->worker_n; i++) {
		if (s->wk[i].live && !s->wk[i].bad)
			kn_view_look_claims(&s->wk[i]);
	}
	return n;
}

/* One round of everything that does not wait. */
static unsigned
round_of(struct kn_sup *s)
{
	unsigned n;
	uint64_t now;

	n = look_until_quick(s, &now);
	look_for_gone(s, now);
	own_timers(s, now);
	answer_refused(s);
	give_room(s);
	n += s->events.n;
	kn_turn_pump(s);
	if (s->module)
		kn_call_wake(s);
	return n;
}

static void
earliest(uint64_t *a, uint64_t b)
{
	if (b && (!*a || b < *a))
		*a = b;
}

static uint64_t
next_deadline(struct kn_sup *s, uint64_t now)
{
	uint64_t d = kn_pool_deadline(s->pool);
	bool waiting = false;

	for (uint32_t i = 0; i < s->worker_n; i++) {
		struct kn_wk *w = &s->wk[i];

		if (!w->live)
			continue;
		if (w->reaped || !w->exited)
			earliest(&d, w->gone_by_ns);
		if (s->module)
			earliest(&d, kn_resident_due(w));
		if (s->rests)
			earliest(&d, kn_rest_due(w, now));
		if (s->cpu_limits)
			earliest(&d, kn_call_cpu_due(w, now));
		earliest(&d, w->listener.rest_ns);
		waiting |= w->outstanding > 0;
	}
	s->watchdog_ns = waiting ? now + KN_DOORBELL_MS * KN_MS_NS : 0;
	earliest(&d, s->watchdog_ns);
	earliest(&d, s->late_first ? s->late_first->late_ns : 0);
	if (kn_relay_flushing(s))
		earliest(&d, s->flush_by_ns);
	earliest(&d, s->tick_ns);
	if (s->egress)
		earliest(&d, kn_egress_due(s));
	if (s->share)
		earliest(&d, kn_share_due(s, now));
	return d;
}

/* B1: armed before the second look; a worker that publishes after it sees the arm. */
static void
arm_bells(struct kn_sup *s)
{
	for (uint32_t i = 0; i < s->worker_n; i++) {
		struct kn_wk *w = &s->wk[i];

		if (!w->live || w->bad)
			continue;
		if (kn_wk_owes(w) || !w->ready || w->stopping)
			kn_bell_arm(w->slice.control);
		if (s->module) /* its end comes unasked */
			kn_bell_arm(w->res.slice.control);
	}
}

static void
disarm_bells(struct kn_sup *s)
{
	for (uint32_t i = 0; i < s->worker_n; i++) {
		if (s->wk[i].live && kn_wk_owes(&s->wk[i]))
			kn_bell_disarm(s->wk[i].slice.control);
	}
}

/* Nothing is at hand: wait for news, until until_ns at most (0: for ever). 1 if there
 * may be some, 0 if not, -1 with e. */
static int
await_news(struct kn_sup *s, uint64_t until_ns, struct kn_err *e)
{
	uint64_t now, deadline, steps;
	int events = 1, rc;
	unsigned n;

	arm_bells(s);
	steps = s->steps;
	s->full_look = true;
	n = round_of(s);
	s->full_look = false;
	/* A step may have given something to a worker whose bell had no need to be
	 * armed, or launched one: it would not be heard. */
	if (n || s->steps != steps) {
		disarm_bells(s);
		return 1;
	}
	now = kn_clock_now();
	deadline = next_deadline(s, now);
	if (until_ns && until_ns <= now) {
		rc = kn_loop_poll(&s->loop, deadline, &events, e);
	} else {
		earliest(&deadline, until_ns);
		rc = kn_loop_wait(&s->loop, now, deadline, e);
	}
	now = kn_clock_now();
	s->watchdog_hit = s->watchdog_ns && now >= s->watchdog_ns;
	s->polled_ns = now;
	return rc < 0 ? -1 : events > 0;
}

/* While calls come back without end nobody sleeps, and yet signals, ends of workers and
 * lines of a batch are to be seen. */
static int
look_at_descriptors(struct kn_sup *s, struct kn_err *e)
{
	int events = 0;

	s->polled_ns = s->round_ns;
	return kn_loop_poll(&s->loop, 0, &events, e) < 0 ? -1 : 1;
}

/* After news of a call the next is most often news of a call: what else a round looks
 * at can wait until then, and comes with it. */
static bool
spin_first(struct kn_sup *s)
{
	if (!s->module || !s->lively || s->events.n > 0 ||
	    s->refused_head != KN_NO_ENTRY || !kn_call_is_few(s))
		return false;
	s->round_begun = kn_call_spin(s);
	return true;
}

int
kn_turn_step(
    struct kn_sup *s, uint64_t until_ns, enum kn_sup_news *out, struct kn_err *e)
{
	bool tried;
	unsigned n;
	int rc = 1;

	if (s->broken)
		return -1;
	tried = spin_first(s);
	n = round_of(s);
	s->lively = n > 0;
	if (s->broken)
		return -1;
	if (s->ended && !s->used_n) {
		*out = KN_SUP_ENDED;
		return 0;
	}
	if (n > 0 && s->module)
		kn_call_gather(s);
	else if (s->module && !tried && kn_call_spin(s))
		n = 1;
	if (n == 0)
		rc = await_news(s, until_ns, e);
	else if (s->module && s->round_ns > s->polled_ns + KN_POLL_NS)
		rc = look_at_descriptors(s, e);
	*out = rc > 0 ? KN_SUP_NEWS : KN_SUP_QUIET;
	return rc < 0 ? -1 : 0;
}

int
kn_turn_run(struct kn_sup *s, struct kn_err *e)
{
	enum kn_sup_news news = KN_SUP_NEWS;

	while (news != KN_SUP_ENDED) {
		if (kn_turn_step(s, 0, &news, e) < 0)
			return -1;
	}
	return 0;
}
