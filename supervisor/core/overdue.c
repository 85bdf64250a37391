/* supervisor/core/overdue.c: what is done about a worker when its timer has fired; what
 * it owes by then is duty.c's. */
#include "supervisor/core/book.h"
#include "supervisor/core/duty.h"
#include "supervisor/core/worker.h"

void
kn_worker_rearm(struct kn_pool *p, uint32_t w)
{
	p->worker[w].dirty = p->worker[w].looking = false;
	kn_timers_set(&p->timers, kn_timer_of_worker(p, w), kn_duty_next(p, w).due_ns);
}

static void
look(struct kn_pool *p, uint32_t w, uint32_t t, enum kn_action_type which)
{
	struct kn_action *a = kn_pool_act(p, which);

	p->task[t].looked |= which == KN_ACT_LOOK_BEGUN;
	p->task[t].asked_over |= which == KN_ACT_LOOK_OVER;
	p->worker[w].looking = true;
	a->worker = w;
	a->incarnation = p->worker[w].incarnation;
	a->task = t;
	a->gen = p->task[t].gen;
}

static void
do_duty(struct kn_pool *p, uint32_t w, const struct kn_duty *d)
{
	switch (d->what) {
	case KN_DUTY_READY:
		kn_worker_kill(p, w, KN_WHY_NOT_READY);
		break;
	case KN_DUTY_STOP_ACK:
		kn_worker_kill(p, w, KN_WHY_NO_STOP_ACK);
		break;
	case KN_DUTY_END:
	case KN_DUTY_KILLED:
		kn_worker_kill(p, w, KN_WHY_NO_END);
		break;
	case KN_DUTY_GONE:
		kn_worker_kill_again(p, w);
		break;
	case KN_DUTY_RETIRE:
		p->worker[w].retire = p->any_retire = true;
		break;
	case KN_DUTY_UNBLOCK:
		p->worker[w].blocked_ns = 0;
		break;
	case KN_DUTY_CLAIM:
		kn_book_take(p, d->task, KN_TAKE_PROBE);
		break;
	case KN_DUTY_LOOK:
		look(p, w, d->task, KN_ACT_LOOK_BEGUN);
		break;
	case KN_DUTY_LOOK_OVER:
		look(p, w, d->task, KN_ACT_LOOK_OVER);
		break;
	case KN_DUTY_HARD:
		kn_book_decide(p, d->task, KN_HOW_HARD);
		kn_worker_kill(p, w, KN_WHY_HARD);
		break;
	case KN_DUTY_NONE:
		break;
	}
}

/* Each duty done changes what kn_duty_next() says, so this ends. */
void
kn_worker_timer(struct kn_pool *p, uint32_t w)
{
	p->worker[w].dirty = true;
	for (;;) {
		struct kn_duty d = kn_duty_next(p, w);
		if (d.what == KN_DUTY_NONE || d.due_ns > p->now_ns)
			return;
		do_duty(p, w, &d);
	}
}
