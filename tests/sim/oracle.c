/* tests/sim/oracle.c: what must hold. Keeps a book of its own from the events fed and
 * the actions given, beside the truth of the world; never looks into the core. */
#include <string.h>

#include "tests/sim/oracle.h"

static void
lane_remove(struct sim *s, uint32_t task)
{
	struct book_task *t = &s->t[task];

	if (t->worker < 0)
		return;
	struct book_worker *b = &s->b[t->worker];
	for (uint32_t i = 0; i < b->lane_n; i++) {
		if (b->lane[i] != task)
			continue;
		memmove(b->lane + i, b->lane + i + 1,
		    (b->lane_n - i - 1) * sizeof b->lane[0]);
		b->lane_n--;
		if (i == 0)
			b->head_since_ns = s->now_ns;
		if (b->lane_n == 0 && b->told == STOPPING)
			b->since_ns = s->now_ns; /* now it can acknowledge */
		break;
	}
	t->worker = -1;
	t->order = --s->front; /* if it is not answered, it is the next */
	t->taking = t->published = t->claimed = false;
}

void
oracle_decide(struct book_task *t, enum kn_how how)
{
	if (!t->decided)
		t->how = how;
	t->decided = true;
}

static void
mark_lied(struct sim *s, uint32_t w)
{
	struct book_worker *b = &s->b[w];

	b->lied = true;
	for (uint32_t i = 0; i < b->lane_n; i++) {
		if (s->t[b->lane[i]].claimed)
			oracle_decide(&s->t[b->lane[i]], KN_HOW_VIOLATION);
	}
}

/* Behind what w has claimed before it: the order in which it runs them. */
static void
put_claimed(struct sim *s, uint32_t w, uint32_t task)
{
	struct book_worker *b = &s->b[w];
	uint32_t at = 0, i = 0;

	while (i < b->lane_n && b->lane[i] != task)
		i++;
	if (i < b->lane_n) {
		memmove(b->lane + i, b->lane + i + 1,
		    (b->lane_n - i - 1) * sizeof b->lane[0]);
		b->lane_n--;
	}
	while (at < b->lane_n && s->t[b->lane[at]].claimed)
		at++;
	memmove(b->lane + at + 1, b->lane + at, (b->lane_n - at) * sizeof b->lane[0]);
	b->lane[at] = task;
	b->lane_n++;
}

/* From the lane of another of the bank. */
static void
move(struct sim *s, uint32_t w, uint32_t task)
{
	struct book_task *t = &s->t[task];
	bool published = t->published;
	int64_t order = t->order;

	lane_remove(s, task);
	s->front++;
	t->order = order;
	t->worker = (int)w;
	t->published = published;
}

static void
mark_claimed(struct sim *s, uint32_t w, struct book_task *t)
{
	if (t->claimed)
		return;
	if (s->c.bank_size > 1)
		put_claimed(s, w, (uint32_t)(t - s->t));
	if (s->b[w].lied)
		oracle_decide(t, KN_HOW_VIOLATION);
	else if (t->cancelled)
		oracle_decide(t, KN_HOW_CANCELLED);
	t->claimed = t->ever_claimed = true;
	t->refused = 0;
	t->claimed_ns = s->now_ns;
	t->runs++;
	s->b[w].given++;
	s->b[w].useful = true;
}

/* One that got ready, with no failure before it, and died idle: no reason to wait, and
 * with others of its kind one failure. */
static void
launch_failed(struct sim *s, bool was_ready, uint32_t before)
{
	if (oracle_ending(s))
		return;
	if (was_ready && before == 0) {
		if (s->fails == 0)
			s->fails = 1;
	} else {
		if (s->fails < before)
			s->fails = before;
		s->fails++;
		uint64_t wait = s->c.backoff_min_ms;
		for (uint32_t i = 1; i < s->fails && wait < s->c.backoff_max_ms; i++)
			wait *= 2;
		if (wait > s->c.backoff_max_ms)
			wait = s->c.backoff_max_ms;
		s->spawn_after_ns = s->now_ns + wait * MS;
		s->slow = true;
	}
	for (uint32_t w = 0; w < s->worker_n; w++) {
		if (s->b[w].told == READY)
			return; /* no reason to give up */
	}
	s->fail_step = s->steps;
}

static void
see_result(struct sim *s, uint32_t w, const struct kn_event *ev)
{
	struct book_worker *b = &s->b[w];

	struct book_task *t = ev->task < TASKS ? &s->t[ev->task] : NULL;
	if (t != NULL && ev->claimed && t->worker == (int)w && t->gen == ev->gen)
		mark_claimed(s, w, t);
	if (b->lied)
		return;
	if (t == NULL || !t->open || t->worker != (int)w || t->gen != ev->gen ||
	    !t->claimed) {
		mark_lied(s, w);
		return;
	}
	/* On a dying worker the end of the grace time decides without an action. */
	bool grace = s->stopping && s->now_ns >= s->stop_ns + s->c.grace_ms * MS;
	t->either = grace && ev->infra_fail && !t->decided;
	bool decided = t->decided || t->either;
	lane_remove(s, ev->task);
	b->answered = true;
	b->refused_ns = 0;
	b->infra_row = ev->infra_fail ? b->infra_row + 1 : 0;
	if (b->infra_row >= 3)
		b->retire = true;
	if (s->c.recycle_memory != 0 && ev->memory > s->c.recycle_memory)
		b->retire = true;
	if (ev->infra_fail && !decided && t->infra_n < 2) {
		t->infra_n++;
		t->runs--;
		return; /* queued again, or cancelled with the pool */
	}
	t->result_step = s->steps;
}

/* A call that was claimed and not begun, as far as anybody says: no attempt. Not for
 * ever: three workers that did nothing else may go with it, and 32 at all. */
static bool
goes_back(struct sim *s, const struct book_worker *b, struct book_task *t)
{
	if (!s->c.calls || t->decided || t->begun_ns != 0 || t->unrun_all == 32 ||
	    (!b->answered && t->unrun == 3))
		return false;
	t->unrun += !b->answered;
	t->unrun_all++;
	t->runs--;
	return true;
}

static bool
ended_as_asked(const struct sim *s, const struct book_worker *b)
{
	if (b->told == STOPPING || b->why == KN_WHY_STOP_NOW)
		return true;
	for (uint32_t i = 0; i < b->lane_n; i++)
		if (s->t[b->lane[i]].claimed)
			return false;
	return (b->stopped || b->why == KN_WHY_NO_STOP_ACK) && !b->lied;
}

static void
see_gone(struct sim *s, uint32_t w)
{
	struct book_worker *b = &s->b[w];
	bool asked = ended_as_asked(s, b);

	b->told = DEAD;
	if (!b->useful && !asked && !s->failed)
		launch_failed(s, b->was_ready, b->was_ready ? b->fails_before : 0);
	while (b->lane_n > 0) {
		uint32_t last = b->lane[b->lane_n - 1];
		struct book_task *t = &s->t[last];
		if (t->claimed && !goes_back(s, b, t))
			t->lost_step = s->steps;
		lane_remove(s, last);
	}
}

static void
see_task(struct sim *s, uint32_t w, const struct kn_event *ev)
{
	struct book_worker *b = &s->b[w];
	struct book_task *t = ev->task < TASKS ? &s->t[ev->task] : NULL;

	if (t != NULL && ev->moved && t->worker == (int)ev->from && t->gen == ev->gen) {
		move(s, w, ev->task);
		t->moved = true;
	}
	if (t == NULL || t->worker != (int)w || t->gen != ev->gen)
		return;
	switch ((int)ev->type) {
	case KN_EV_PUBLISHED:
		t->published = true;
		t->published_ns = s->now_ns;
		t->refused = 0;
		break;
	case KN_EV_PUBLISH_FAILED:
		if (b->lane_n == 1)
			t->refused++;
		b->refused_ns = s->now_ns;
		lane_remove(s, ev->task);
		break;
	case KN_EV_CLAIMED:
		mark_claimed(s, w, t);
		break;
	case KN_EV_BEGUN:
		if (t->claimed)
			t->begun_ns =
			    ev->begun_ns < s->now_ns ? ev->begun_ns : s->now_ns;
		if (t->claimed && t->begun_ns == 0)
			t->begun_ns = 1;
		break;
	case KN_EV_OVER:
		t->over = t->over || t->claimed;
		break;
	case KN_EV_TAKEN_BACK:
		if (t->may_probe && !ev->waited)
			b->may_step = s->steps;
		/* From a bank it may have claimed another instead. */
		bool other = false;
		for (uint32_t i = 0; s->c.bank_size > 1 && i < b->lane_n; i++)
			other = other || s->t[b->lane[i]].claimed;
		if (t->must_probe && !other && !ev->waited)
			b->must_step = s->steps;
		lane_remove(s, ev->task);
		break;
	case KN_EV_TAKE_FAILED:
		t->taking = false;
		mark_claimed(s, w, t);
		break;
	}
}

static void
see_worker(struct sim *s, uint32_t w, const struct kn_event *ev)
{
	struct book_worker *b = &s->b[w];

	switch ((int)ev->type) {
	case KN_EV_SPAWNED:
		b->told = STARTING;
		b->since_ns = s->now_ns;
		break;
	case KN_EV_SPAWN_FAILED:
		b->told = DEAD;
		if (!ev->fatal || s->ever_ready)
			launch_failed(s, false, 0);
		break;
	case KN_EV_READY:
		if (b->told != STARTING)
			break;
		b->told = READY;
		s->ever_ready = true;
		b->was_ready = true;
		b->ready_ns = s->now_ns;
		b->fails_before = s->fails;
		s->fails = 0;
		s->slow = false;
		break;
	case KN_EV_STOP_ACKED:
		if (b->told == STARTING || b->told == READY)
			mark_lied(s, w);
		if (b->told == STOPPING) {
			b->told = ENDING;
			b->stopped = true;
			b->since_ns = s->now_ns;
		}
		break;
	case KN_EV_VIOLATION:
		mark_lied(s, w);
		break;
	case KN_EV_RESULT:
		see_result(s, w, ev);
		break;
	case KN_EV_GONE:
		see_gone(s, w);
		break;
	default:
		see_task(s, w, ev);
	}
}

void
oracle_before(struct sim *s, const struct kn_event *ev)
{
	s->fed = ev;
	for (uint32_t w = 0; ev->type == KN_EV_TIMER && w < s->worker_n; w++) {
		struct book_worker *b = &s->b[w];
		if (b->told == READY && s->c.recycle_s != 0 &&
		    s->now_ns >= b->ready_ns + s->c.recycle_s * 1000 * MS)
			b->retire = true;
		if (s->now_ns >= b->refused_ns + 110 * MS)
			b->refused_ns = 0; /* waited out */
	}
	if (ev->type == KN_EV_SUBMIT) {
		struct book_task *t = &s->t[ev->task];
		uint64_t work_ns = t->work_ns;
		bool crashy = t->crashy;
		uint32_t gen = t->gen;
		*t = (struct book_task){ .open = true,
			.gen = gen,
			.worker = -1,
			.order = ++s->back,
			.work_ns = work_ns,
			.crashy = crashy,
			.submit_ns = s->now_ns,
			.queue_ms = ev->submit.queue_ms,
			.hard_ms = ev->submit.hard_ms,
			.retries = ev->submit.retries };
		s->open_n++;
	} else if (ev->type == KN_EV_CANCEL) {
		struct book_task *t = &s->t[ev->task];
		t->cancelled = t->open;
		if (t->open && t->claimed)
			oracle_decide(t, KN_HOW_CANCELLED);
	} else if (ev->type == KN_EV_DRAIN) {
		s->draining = true;
	} else if (ev->type == KN_EV_STOP || ev->type == KN_EV_STOP_NOW) {
		if (!s->stopping)
			s->stop_ns = s->now_ns;
		s->stopping = true;
		s->stop_now = s->stop_now || ev->type == KN_EV_STOP_NOW;
	} else if (ev->type != KN_EV_TIMER && ev->worker < s->worker_n &&
		   ev->incarnation == s->b[ev->worker].incarnation) {
		see_worker(s, ev->worker, ev);
	}
}

/* ---- the truth of the world ---- */

void
oracle_claims(struct sim *s, uint32_t w, uint32_t task, uint32_t gen)
{
	struct book_task *t = &s->t[task];

	if (!t->open || t->gen != gen || t->worker < 0 ||
	    !sim_same_bank(s, w, (uint32_t)t->worker))
		sim_fail(
		    s, "w%u claims t%u.%u, which is not its any more", w, task, gen);
	if (!s->c.calls && ++t->world_runs > t->retries + 1)
		sim_fail(s, "t%u is run %u times, %u allowed", task, t->world_runs,
		    t->retries + 1);
}

/* Nothing that is known to have begun is begun again unasked. What a worker hides it
 * can have run again, but not without end. */
void
oracle_begins(struct sim *s, uint32_t w, uint32_t task, uint32_t gen)
{
	struct book_task *t = &s->t[task];

	if (!t->open || t->gen != gen || t->worker < 0 ||
	    !sim_same_bank(s, w, (uint32_t)t->worker))
		return; /* a result was forged for it */
	if (s->w[w].amnesic)
		t->lied_runs++;
	else
		t->world_runs++;
	if (t->world_runs > t->retries + 1 || t->lied_runs > t->retries + 1 + 32)
		sim_fail(s, "t%u is begun %u times, %u allowed, and %u times in secret",
		    task, t->world_runs, t->retries + 1, t->lied_runs);
}

void
oracle_ran(struct sim *s, uint32_t w, uint32_t task, uint64_t ns)
{
	const struct book_task *t = &s->t[task];

	/* Stalls of the supervisor add to it: then the stub alone keeps the promise.
	 * Without claim_ms a worker may leave the first of its lane lie for ever. */
	if (s->stalled || s->c.claim_ms == 0 || !t->open || t->hard_ms == 0 ||
	    t->worker != (int)w || (s->c.calls && s->w[w].picky))
		return;
	uint64_t most = (t->hard_ms + (uint64_t)s->c.hard_slack_ms +
			    (t->over ? s->c.teardown_ms : 0)) *
			    MS +
			2 * oracle_claim_ns(s, t) +
			(uint64_t)s->w[w].kills * 1000 * MS + 40 * MS;
	if (ns > most)
		sim_fail(s, "t%u ran for %.1f ms on w%u, %.1f at most", task,
		    (double)ns / 1e6, w, (double)most / 1e6);
}
