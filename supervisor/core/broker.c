/* supervisor/core/broker.c: brokered stealing; see broker.h. */
#include "supervisor/core/broker.h"
#include "supervisor/core/book.h"
#include "supervisor/core/worker.h"

static uint32_t
idle_n(const struct kn_pool *p)
{
	uint32_t n = 0;

	for (uint32_t w = 0; w < p->worker_n; w++) {
		const struct kn_core_worker *k = &p->worker[w];
		n += k->place && k->lane.n == 0 && k->blocked_ns == 0 &&
		     kn_worker_stays(p, w);
	}
	return n;
}

/* Somebody of w's bank has nothing to do: what lies in w's lane lies before him. */
static bool
is_served(const struct kn_pool *p, uint32_t w)
{
	uint32_t first = w / p->c.bank_size * p->c.bank_size;

	for (uint32_t i = first; i < p->worker_n && i < first + p->c.bank_size; i++) {
		const struct kn_core_worker *k = &p->worker[i];
		if (i != w && k->state == KN_WORKER_READY && k->lane.n == 0)
			return true;
	}
	return false;
}

/* The task of w's lane that has waited longest and may be taken, or KN_NIL. */
static uint32_t
takeable(const struct kn_pool *p, uint32_t w)
{
	const struct kn_core_worker *k = &p->worker[w];
	uint32_t t = k->lane.head;

	if (k->state == KN_WORKER_READY && t != KN_NIL &&
	    p->task[t].state != KN_TASK_CLAIMED)
		t = p->task[t].next;
	for (; t != KN_NIL; t = p->task[t].next) {
		/* One that fled from a worker is left where it is: the idle one may be
		 * the one it fled from. */
		if (p->task[t].state == KN_TASK_PUBLISHED &&
		    p->task[t].take == KN_TAKE_NONE && p->task[t].avoid == KN_NIL)
			return t;
	}
	return KN_NIL;
}

void
kn_broker_step(struct kn_pool *p)
{
	if (!p->c.broker || p->queue.n > 0 || p->lane_n == p->claimed_n)
		return;
	for (uint32_t idle = idle_n(p); p->steals < idle;) {
		uint32_t best = KN_NIL, most = 0;
		for (uint32_t w = 0; w < p->worker_n; w++) {
			const struct kn_core_worker *k = &p->worker[w];
			uint32_t n = k->lane.n - k->claimed_n;
			if (n <= most || (p->c.bank_size > 1 && is_served(p, w)))
				continue;
			uint32_t t = takeable(p, w);
			if (t != KN_NIL) {
				best = t;
				most = n;
			}
		}
		if (best == KN_NIL)
			return;
		kn_book_take(p, best, KN_TAKE_STEAL);
	}
}
