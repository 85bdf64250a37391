/* supervisor/core/assign.c: places, who is next, and launches; see assign.h.
 */
#include "supervisor/core/assign.h"
#include "supervisor/core/book.h"
#include "supervisor/core/worker.h"

void
kn_assign_places(struct kn_pool *p)
{
	uint32_t held = 0;

	for (uint32_t w = 0; w < p->worker_n; w++)
		held += p->worker[w].place ? 1 : 0;
	for (uint32_t w = 0; w < p->worker_n && held < p->c.worker_n; w++) {
		if (p->worker[w].place || !kn_worker_stays(p, w))
			continue;
		p->worker[w].place = true;
		held++;
	}
}

/* xorshift: the core has no other source, and the same seed gives the same run. */
static uint32_t
random_below(struct kn_pool *p, uint32_t n)
{
	p->random ^= p->random << 13;
	p->random ^= p->random >> 17;
	p->random ^= p->random << 5;
	return p->random % n;
}

/* What the balancer weighs: idle or not, or how many are in the lane. */
static uint32_t
load(const struct kn_pool *p, const struct kn_core_worker *k)
{
	if (p->c.balance == KN_BALANCE_FIRST_IDLE)
		return k->lane.n;
	return k->lane.n > 0 ? 1 : 0;
}

/* w and best weigh the same, w is the n-th of them; the lower index was found first. */
static bool
is_before(struct kn_pool *p, uint32_t w, uint32_t best, uint32_t n)
{
	bool idle = p->worker[w].lane.n == 0;

	if (p->c.balance ==
	    KN_BALANCE_ROUND_ROBIN) /* else best < w <= last, or after */
		return best <= p->last_w && w > p->last_w;
	if (p->c.balance == KN_BALANCE_RANDOM ||
	    (p->c.balance == KN_BALANCE_FIRST_IDLE_OR_RANDOM && !idle))
		return random_below(p, n) == 0;
	return false;
}

/* The worker that the balancer wants next; one that could not build this task's cell
 * before only if there is no other. KN_NIL if none has room. */
static uint32_t
pick(struct kn_pool *p, uint32_t t)
{
	uint32_t best = KN_NIL;
	uint32_t best_cost = KN_NIL, equal = 0;

	for (uint32_t w = 0; w < p->worker_n; w++) {
		const struct kn_core_worker *k = &p->worker[w];
		if (!k->place || k->blocked_ns != 0 || k->lane.n >= p->c.lane_depth ||
		    k->lane.n - k->claimed_n >= p->c.offer_max ||
		    !kn_worker_stays(p, w))
			continue;
		uint32_t cost = load(p, k);
		if (p->task[t].avoid == w)
			cost += p->c.lane_depth;
		if (cost == best_cost && is_before(p, w, best, ++equal))
			best = w;
		if (cost < best_cost) {
			best = w;
			best_cost = cost;
			equal = 1;
		}
	}
	return best;
}

static void
give(struct kn_pool *p, uint32_t t, uint32_t w)
{
	p->last_w = w;
	kn_book_publish(p, t, w);
}

uint32_t
kn_assign_next(struct kn_pool *p)
{
	while (p->queue.head != KN_NIL && kn_book_is_late(p, p->queue.head))
		kn_book_late(p, p->queue.head);
	return p->queue.head;
}

void
kn_assign_idle(struct kn_pool *p)
{
	for (uint32_t t = kn_assign_next(p); t != KN_NIL; t = kn_assign_next(p)) {
		uint32_t w = pick(p, t);
		if (w == KN_NIL || p->worker[w].lane.n > 0)
			return;
		give(p, t, w);
	}
}

static uint32_t
launching(const struct kn_pool *p)
{
	uint32_t n = 0;

	for (uint32_t w = 0; w < p->worker_n; w++)
		n += p->worker[w].state == KN_WORKER_SPAWNING ||
		     p->worker[w].state == KN_WORKER_STARTING;
	return n;
}

void
kn_assign_deepen(struct kn_pool *p)
{
	/* What lies in a lane cannot be given to the worker that is coming, unless it
	 * can be taken back. */
	if (p->queue.head == KN_NIL || (!p->c.broker && launching(p) > 0))
		return;
	for (uint32_t t = kn_assign_next(p); t != KN_NIL; t = kn_assign_next(p)) {
		uint32_t w = pick(p, t);
		if (w == KN_NIL)
			return;
		give(p, t, w);
	}
}

/* Tasks that a worker of their own could run now or soon: what is queued, what lies in
 * lanes and can be taken back or will come back, and what keeps the others busy. */
static uint32_t
demand(const struct kn_pool *p)
{
	uint32_t n = p->queue.n;

	for (uint32_t w = 0; w < p->worker_n; w++) {
		const struct kn_core_worker *k = &p->worker[w];
		if (k->lane.n == 0)
			continue;
		if (kn_worker_stays(p, w))
			n += p->c.broker ? k->lane.n : 1;
		else if (p->c.broker || k->state == KN_WORKER_DYING)
			n += k->lane.n - k->claimed_n;
	}
	return n;
}

void
kn_assign_spawn(struct kn_pool *p)
{
	uint32_t have = launching(p), coming = have, want = p->worker_n;

	for (uint32_t w = 0; w < p->worker_n; w++)
		have += kn_worker_stays(p, w);
	if (!p->c.eager || p->mode != KN_MODE_RUN) {
		uint32_t n = demand(p);
		want = n < want ? n : want;
	}
	if (kn_pool_ending(p))
		want = 0;
	if (p->slow && want > have)
		want = coming > 0 ? have : have + 1;
	bool wait = want > have && p->now_ns < p->spawn_after_ns;
	kn_timers_set(&p->timers, kn_timer_spawn(p), wait ? p->spawn_after_ns : 0);
	if (wait)
		return;
	for (uint32_t w = 0; w < p->worker_n && have < want; w++) {
		if (p->worker[w].state != KN_WORKER_DEAD)
			continue;
		kn_worker_spawn(p, w);
		have++;
	}
}
