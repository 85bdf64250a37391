/* supervisor/core/duty.c: the deadlines of a worker and of the tasks in its lane; see
 * duty.h, and "HOW DEADLINES RUN" in event.h. */
#include "supervisor/core/duty.h"

static void
earlier(struct kn_duty *d, enum kn_duty_what what, uint32_t task, uint64_t due_ns)
{
	if (d->what != KN_DUTY_NONE && d->due_ns <= due_ns)
		return;
	*d = (struct kn_duty){ what, task, due_ns };
}

static uint64_t
later_of(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static uint64_t
earlier_of(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint64_t
allowed_ns(const struct kn_pool *p, const struct kn_core_task *k)
{
	return (k->hard_ms + (uint64_t)p->c.hard_slack_ms) * KN_CORE_MS;
}

/* How long a worker that could claim k may wait; 0: for ever. Without a claim_ms the
 * hard limit has to do: a task that is never claimed would never be late. */
static uint64_t
claim_ns(const struct kn_pool *p, const struct kn_core_task *k)
{
	if (p->c.claim_ms != 0)
		return p->c.claim_ms * KN_CORE_MS;
	return k->hard_ms != 0 ? allowed_ns(p, k) : 0;
}

/* When the hard clock of a claimed task starts. could_ns: since when the worker could
 * take it. What the worker says about it counts only between publication and the time
 * by which it had to claim. */
static uint64_t
start_ns(const struct kn_pool *p, const struct kn_core_task *k, uint64_t could_ns)
{
	/* What another worker took out of this lane waited for that one, not for us. */
	uint64_t latest_ns =
	    (k->moved ? later_of(could_ns, k->claimed_ns) : could_ns) + claim_ns(p, k);

	if (k->begun_ns != 0)
		return earlier_of(later_of(k->begun_ns, k->published_ns), latest_ns);
	return earlier_of(later_of(k->claimed_ns, could_ns), latest_ns);
}

/* Its worker is to be killed for task t, unless nothing of that runs any more and what
 * is left to do is the worker's own: then it has teardown_ms, whenever it said so. */
static void
last_duty(const struct kn_pool *p, const struct kn_core_worker *w, struct kn_duty *d,
    enum kn_duty_what what, uint32_t t, uint64_t due_ns)
{
	const struct kn_core_task *k = &p->task[t];

	if (w->looking)
		return; /* the answer comes first */
	if (k->over)
		due_ns += p->c.teardown_ms * KN_CORE_MS;
	else if (p->c.teardown_ms != 0 && !k->asked_over)
		what = KN_DUTY_LOOK_OVER;
	earlier(d, what, t, due_ns);
}

static void
head_duties(const struct kn_pool *p, const struct kn_core_worker *w, struct kn_duty *d)
{
	uint32_t t = w->lane.head;
	const struct kn_core_task *k = &p->task[t];
	uint64_t could_ns = later_of(k->published_ns, w->head_since_ns);

	if (k->state == KN_TASK_PUBLISHING)
		return; /* the shell's answer comes before time goes on */
	/* Whether it is claimed is settled first; then the hard clock matters. */
	if (k->state == KN_TASK_PUBLISHED && k->take == KN_TAKE_NONE &&
	    claim_ns(p, k) != 0)
		earlier(d, KN_DUTY_CLAIM, t, could_ns + claim_ns(p, k));
	if (k->hard_ms != 0 && k->begun_ns == 0 && !k->looked)
		earlier(d, KN_DUTY_LOOK, t, could_ns + allowed_ns(p, k));
	else if (k->hard_ms != 0 && k->state == KN_TASK_CLAIMED)
		last_duty(p, w, d, KN_DUTY_HARD, t,
		    start_ns(p, k, could_ns) + allowed_ns(p, k));
}

static void
lane_duties(const struct kn_pool *p, const struct kn_core_worker *w, struct kn_duty *d)
{
	if (w->lane.head == KN_NIL)
		return;
	head_duties(p, w, d);
	if (w->claimed_n == 0)
		return;
	/* Of calls only the first can be at fault: the others have not begun. */
	if (p->c.calls) {
		const struct kn_core_task *k = &p->task[w->lane.head];
		uint64_t turn_ns = w->head_since_ns + p->c.grace_ms * KN_CORE_MS;
		if (k->killed)
			last_duty(p, w, d, KN_DUTY_KILLED, w->lane.head,
			    later_of(k->kill_due_ns, turn_ns));
		return;
	}
	for (uint32_t t = w->lane.head; t != KN_NIL; t = p->task[t].next) {
		if (p->task[t].killed)
			last_duty(p, w, d, KN_DUTY_KILLED, t, p->task[t].kill_due_ns);
	}
}

static void
ready_duties(const struct kn_pool *p, const struct kn_core_worker *w, struct kn_duty *d)
{
	if (p->c.recycle_s != 0 && !w->retire)
		earlier(d, KN_DUTY_RETIRE, KN_NIL,
		    w->ready_ns + p->c.recycle_s * KN_CORE_S);
	if (w->blocked_ns != 0)
		earlier(d, KN_DUTY_UNBLOCK, KN_NIL, w->blocked_ns);
	lane_duties(p, w, d);
}

struct kn_duty
kn_duty_next(const struct kn_pool *p, uint32_t w)
{
	static const enum kn_duty_what what[KN_WORKER_N] = {
		[KN_WORKER_STARTING] = KN_DUTY_READY,
		[KN_WORKER_STOPPING] = KN_DUTY_STOP_ACK,
		[KN_WORKER_ENDING] = KN_DUTY_END,
		[KN_WORKER_DYING] = KN_DUTY_GONE,
	};
	const struct kn_core_worker *k = &p->worker[w];
	struct kn_duty d = { KN_DUTY_NONE, KN_NIL, 0 };

	/* What a stopped one has claimed it runs to the end. */
	if (k->state == KN_WORKER_READY ||
	    (k->state == KN_WORKER_STOPPING && k->lane.n > 0))
		ready_duties(p, k, &d);
	else if (what[k->state] != KN_DUTY_NONE)
		earlier(&d, what[k->state], KN_NIL, k->due_ns);
	/* One that acknowledges and has not: what it claimed keeps its limits. */
	if (k->state == KN_WORKER_ENDING)
		lane_duties(p, k, &d);
	return d;
}
