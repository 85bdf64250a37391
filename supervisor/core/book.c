/* supervisor/core/book.c: moves of a task, and its answer; see book.h. */
#include "supervisor/core/book.h"

static void
list_remove(struct kn_pool *p, struct kn_core_list *l, uint32_t t)
{
	struct kn_core_task *k = &p->task[t];

	if (k->prev != KN_NIL)
		p->task[k->prev].next = k->next;
	else
		l->head = k->next;
	if (k->next != KN_NIL)
		p->task[k->next].prev = k->prev;
	else
		l->tail = k->prev;
	k->prev = k->next = KN_NIL;
	l->n--;
}

static void
list_append(struct kn_pool *p, struct kn_core_list *l, uint32_t t)
{
	struct kn_core_task *k = &p->task[t];

	k->prev = l->tail;
	k->next = KN_NIL;
	if (l->tail != KN_NIL)
		p->task[l->tail].next = t;
	else
		l->head = t;
	l->tail = t;
	l->n++;
}

static void
list_prepend(struct kn_pool *p, struct kn_core_list *l, uint32_t t)
{
	struct kn_core_task *k = &p->task[t];

	k->prev = KN_NIL;
	k->next = l->head;
	if (l->head != KN_NIL)
		p->task[l->head].prev = t;
	else
		l->tail = t;
	l->head = t;
	l->n++;
}

/* Before the first that is not claimed: claimed ones are run in that order. */
static void
list_add_claimed(struct kn_pool *p, struct kn_core_list *l, uint32_t t)
{
	struct kn_core_task *k = &p->task[t];
	uint32_t next = l->head;

	while (next != KN_NIL && p->task[next].state == KN_TASK_CLAIMED)
		next = p->task[next].next;
	if (next == KN_NIL) {
		list_append(p, l, t);
		return;
	}
	k->next = next;
	k->prev = p->task[next].prev;
	p->task[next].prev = t;
	if (k->prev != KN_NIL)
		p->task[k->prev].next = t;
	else
		l->head = t;
	l->n++;
}

void
kn_book_init(struct kn_pool *p)
{
	p->queue = (struct kn_core_list){ KN_NIL, KN_NIL, 0 };
	for (uint32_t t = 0; t < p->c.task_max; t++) {
		p->task[t].prev = p->task[t].next = KN_NIL;
		p->task[t].worker = p->task[t].avoid = KN_NIL;
	}
	for (uint32_t w = 0; w < p->worker_n; w++)
		p->worker[w].lane = (struct kn_core_list){ KN_NIL, KN_NIL, 0 };
}

/* Out of whatever list it is in. */
static void
leave(struct kn_pool *p, uint32_t t)
{
	struct kn_core_task *k = &p->task[t];

	if (k->state == KN_TASK_QUEUED) {
		list_remove(p, &p->queue, t);
		return;
	}
	struct kn_core_worker *w = &p->worker[k->worker];
	/* The next one's clock starts when this one is out of its way. */
	if (w->lane.head == t)
		w->head_since_ns = p->now_ns;
	list_remove(p, &w->lane, t);
	p->lane_n--;
	if (k->state == KN_TASK_CLAIMED) {
		w->claimed_n--;
		p->claimed_n--;
	}
	if (k->take == KN_TAKE_STEAL)
		p->steals--;
	k->take = KN_TAKE_NONE;
	k->worker = KN_NIL;
	w->dirty = true;
	/* Now it can acknowledge. */
	if (w->lane.n == 0 && w->state == KN_WORKER_STOPPING)
		w->due_ns = p->now_ns + p->c.stop_ack_ms * KN_CORE_MS;
}

static void
answer(struct kn_pool *p, uint32_t t, enum kn_how how)
{
	struct kn_core_task *k = &p->task[t];
	struct kn_action *a = kn_pool_act(p, KN_ACT_ANSWER);

	a->task = t;
	a->gen = k->tried ? k->gen : 0;
	a->how = how;
	a->attempt = k->state == KN_TASK_CLAIMED ? k->runs : k->runs + 1;
	if (k->worker != KN_NIL) {
		a->worker = k->worker;
		a->incarnation = p->worker[k->worker].incarnation;
	}
	leave(p, t);
	kn_timers_set(&p->timers, t, 0);
	k->state = KN_TASK_FREE;
	p->open--;
	p->answered++;
}

bool
kn_book_is_late(const struct kn_pool *p, uint32_t t)
{
	uint64_t due_ns = p->task[t].queue_due_ns;

	return due_ns != 0 && due_ns <= p->now_ns;
}

static void
requeue(struct kn_pool *p, uint32_t t)
{
	struct kn_core_task *k = &p->task[t];

	if (p->mode >= KN_MODE_STOP || k->cancelled) {
		answer(p, t, KN_HOW_CANCELLED);
	} else if (p->failed) {
		answer(p, t, KN_HOW_LAUNCH_FAILED);
	} else if (kn_book_is_late(p, t)) {
		answer(p, t, KN_HOW_QUEUE_TIMEOUT);
	} else {
		leave(p, t);
		k->state = KN_TASK_QUEUED;
		list_prepend(p, &p->queue, t);
	}
}

void
kn_book_submit(struct kn_pool *p, const struct kn_event *ev)
{
	uint32_t t = ev->task;
	struct kn_core_task *k = &p->task[t];

	if (k->state != KN_TASK_FREE) {
		p->bugs++;
		return;
	}
	uint32_t gen = k->gen;
	*k = (struct kn_core_task){ .state = KN_TASK_QUEUED,
		.gen = gen,
		.retries = ev->submit.retries,
		.infra_left = KN_INFRA_RETRIES,
		.worker = KN_NIL,
		.avoid = KN_NIL,
		.hard_ms = ev->submit.hard_ms };
	if (ev->submit.queue_ms != 0)
		k->queue_due_ns = p->now_ns + ev->submit.queue_ms * KN_CORE_MS;
	list_append(p, &p->queue, t);
	p->open++;
	if (p->mode != KN_MODE_RUN)
		answer(p, t, KN_HOW_CANCELLED);
	else if (p->failed)
		answer(p, t, KN_HOW_LAUNCH_FAILED);
	else
		kn_timers_set(&p->timers, t, k->queue_due_ns);
}

void
kn_book_cancel(struct kn_pool *p, uint32_t t)
{
	struct kn_core_task *k = &p->task[t];

	if (k->state == KN_TASK_FREE || k->cancelled)
		return; /* answered meanwhile, or asked twice */
	k->cancelled = true;
	if (k->state == KN_TASK_QUEUED)
		answer(p, t, KN_HOW_CANCELLED);
	else if (k->state == KN_TASK_PUBLISHED)
		kn_book_take(p, t, KN_TAKE_DROP);
	else if (k->state == KN_TASK_CLAIMED)
		kn_book_kill(p, t, KN_CORE_CAUSE_CANCEL);
	/* PUBLISHING: when the shell has answered */
}

void
kn_book_late(struct kn_pool *p, uint32_t t)
{
	if (p->task[t].state == KN_TASK_QUEUED)
		answer(p, t, KN_HOW_QUEUE_TIMEOUT);
	else if (p->task[t].state == KN_TASK_PUBLISHED)
		kn_book_take(p, t, KN_TAKE_LATE);
}

void
kn_book_flush(struct kn_pool *p, enum kn_how how)
{
	while (p->queue.head != KN_NIL)
		answer(p, p->queue.head, how);
}

uint32_t
kn_book_find(const struct kn_pool *p, const struct kn_event *ev)
{
	if (ev->task >= p->c.task_max)
		return KN_NIL;
	const struct kn_core_task *k = &p->task[ev->task];
	if (k->state < KN_TASK_PUBLISHING || k->worker != ev->worker ||
	    k->gen != ev->gen)
		return KN_NIL;
	return ev->task;
}

void
kn_book_publish(struct kn_pool *p, uint32_t t, uint32_t w)
{
	struct kn_core_task *k = &p->task[t];

	leave(p, t);
	if (++k->gen == 0)
		k->gen = 1;
	k->state = KN_TASK_PUBLISHING;
	k->worker = w;
	k->tried = true;
	k->moved = k->asked_over = k->over = false;
	k->looked = false; /* killed or decided it would have been answered */
	k->published_ns = k->claimed_ns = k->begun_ns = 0;
	list_append(p, &p->worker[w].lane, t);
	p->lane_n++;
	p->worker[w].dirty = true;

	struct kn_action *a = kn_pool_act(p, KN_ACT_PUBLISH);
	a->worker = w;
	a->incarnation = p->worker[w].incarnation;
	a->task = t;
	a->gen = k->gen;
	a->attempt = k->runs + 1;
	if (p->c.calls) {
		k->state = KN_TASK_PUBLISHED;
		k->published_ns = p->now_ns;
	}
}

void
kn_book_published(struct kn_pool *p, uint32_t t)
{
	struct kn_core_task *k = &p->task[t];

	k->state = KN_TASK_PUBLISHED;
	k->published_ns = p->now_ns;
	k->refused = 0;
	p->worker[k->worker].dirty = true;
	if (k->cancelled || p->mode >= KN_MODE_STOP)
		kn_book_take(p, t, KN_TAKE_DROP);
	else if (kn_book_is_late(p, t))
		kn_book_take(p, t, KN_TAKE_LATE);
}

void
kn_book_refused(struct kn_pool *p, uint32_t t)
{
	struct kn_core_task *k = &p->task[t];

	/* Only an empty lane's refusal says something about the task. */
	if (p->worker[k->worker].lane.n == 1 && ++k->refused >= KN_REFUSED_TASK)
		answer(p, t, KN_HOW_LAUNCH_FAILED);
	else
		requeue(p, t);
}

void
kn_book_claimed(struct kn_pool *p, uint32_t t)
{
	struct kn_core_task *k = &p->task[t];
	struct kn_core_worker *w = &p->worker[k->worker];

	if (p->c.bank_size > 1 && w->lane.head != t) {
		list_remove(p, &w->lane, t);
		list_add_claimed(p, &w->lane, t);
	}
	k->state = KN_TASK_CLAIMED;
	k->claimed_ns = p->now_ns;
	k->queue_due_ns = 0;
	k->refused = 0; /* of calls nobody says PUBLISHED */
	kn_timers_set(&p->timers, t, 0);
	k->runs++;
	w->claimed_n++;
	p->claimed_n++;
	w->given++;
	w->served = true;
	w->dirty = true;
	if (w->lied)
		kn_book_decide(p, t, KN_HOW_VIOLATION);
	else if (k->cancelled)
		kn_book_kill(p, t, KN_CORE_CAUSE_CANCEL);
	else if (p->mode == KN_MODE_STOP && p->now_ns >= p->grace_ns)
		kn_book_kill(p, t, KN_CORE_CAUSE_STOP);
}

void
kn_book_move(struct kn_pool *p, uint32_t t, uint32_t w)
{
	struct kn_core_task *k = &p->task[t];
	bool claimed = k->state == KN_TASK_CLAIMED;

	leave(p, t);
	k->moved = true;
	k->worker = w;
	list_add_claimed(p, &p->worker[w].lane, t);
	p->lane_n++;
	p->stolen++;
	p->worker[w].dirty = true;
	if (claimed) {
		p->worker[w].claimed_n++;
		p->claimed_n++;
	}
}

void
kn_book_take(struct kn_pool *p, uint32_t t, enum kn_take why)
{
	struct kn_core_task *k = &p->task[t];

	if (k->take != KN_TAKE_NONE)
		return;
	k->take = why;
	if (why == KN_TAKE_STEAL)
		p->steals++;
	p->worker[k->worker].dirty = true;
	struct kn_action *a = kn_pool_act(p, KN_ACT_TAKE_BACK);
	a->worker = k->worker;
	a->incarnation = p->worker[k->worker].incarnation;
	a->task = t;
	a->gen = k->gen;
}

void
kn_book_back(struct kn_pool *p, uint32_t t)
{
	requeue(p, t);
}

void
kn_book_lost(struct kn_pool *p, uint32_t t)
{
	struct kn_core_task *k = &p->task[t];

	if (k->decided) {
		answer(p, t, k->how);
	} else if (p->mode == KN_MODE_STOP_NOW) {
		answer(p, t, KN_HOW_CANCELLED);
	} else if (k->runs > k->retries || kn_pool_ending(p)) {
		answer(p, t, KN_HOW_WORKER_LOST);
	} else {
		requeue(p, t);
	}
}

/* It never ran: this was no attempt, nor, in truth, claimed. */
static void
unclaim(struct kn_pool *p, uint32_t t)
{
	struct kn_core_task *k = &p->task[t];

	k->runs--;
	k->state = KN_TASK_PUBLISHED;
	p->worker[k->worker].claimed_n--;
	p->claimed_n--;
}

void
kn_book_unrun(struct kn_pool *p, uint32_t t, bool progress)
{
	struct kn_core_task *k = &p->task[t];

	/* That it had not begun is its worker's word. A worker that dies with it, says
	 * of none that it had begun, and has done nothing else would go on for ever;
	 * one that does something else each time, nearly so. */
	if (k->decided || (!progress && k->unrun >= KN_UNRUN) ||
	    k->unrun_all >= KN_UNRUN_ALL) {
		kn_book_lost(p, t);
		return;
	}
	if (!progress)
		k->unrun++;
	k->unrun_all++;
	unclaim(p, t);
	requeue(p, t);
}

void
kn_book_result(struct kn_pool *p, uint32_t t, bool infra_fail)
{
	struct kn_core_task *k = &p->task[t];

	if (!infra_fail || k->decided || k->infra_left == 0) {
		answer(p, t, KN_HOW_RESULT);
		return;
	}
	k->infra_left--;
	unclaim(p, t);
	k->avoid = k->worker;
	requeue(p, t);
}

void
kn_book_kill(struct kn_pool *p, uint32_t t, enum kn_core_cause cause)
{
	struct kn_core_task *k = &p->task[t];
	struct kn_core_worker *w = &p->worker[k->worker];

	kn_book_decide(p, t, KN_HOW_CANCELLED);
	if (k->killed || w->state == KN_WORKER_DYING)
		return;
	k->killed = true;
	k->kill_due_ns =
	    p->now_ns + (p->c.grace_ms + (uint64_t)p->c.hard_slack_ms) * KN_CORE_MS;
	w->dirty = true;
	struct kn_action *a = kn_pool_act(p, KN_ACT_KILL_TASK);
	a->worker = k->worker;
	a->incarnation = w->incarnation;
	a->task = t;
	a->gen = k->gen;
	a->arg = (uint32_t)cause;
}

void
kn_book_decide(struct kn_pool *p, uint32_t t, enum kn_how how)
{
	struct kn_core_task *k = &p->task[t];

	if (k->decided)
		return;
	k->decided = true;
	k->how = how;
}
