/* tests/sim/shell.c: the supervisor's shell, as the contract in supervisor/core/event.h
 * wants it: actions performed in order, their answers fed before anything else, claims
 * before results, all of a worker before its GONE, the world before the timer. */
#include <string.h>

#include "tests/sim/sim.h"

static void
push(struct sim *s, struct kn_event ev)
{
	if (s->queue_n == QUEUE)
		sim_fail(s, "more answers than a step can ask for");
	s->queue[(s->queue_head + s->queue_n++) % QUEUE] = ev;
}

static struct kn_event
about(const struct kn_action *a, enum kn_event_type type)
{
	return (struct kn_event){ .type = type,
		.worker = a->worker,
		.incarnation = a->incarnation,
		.task = a->task,
		.gen = a->gen };
}

static void
do_spawn(struct sim *s, const struct kn_action *a)
{
	struct kn_event ev = about(a, KN_EV_SPAWNED);

	if (!s->honest && chance(s, s->spawn_fail)) {
		ev.type = KN_EV_SPAWN_FAILED;
		ev.fatal = chance(s, s->spawn_fatal);
	} else {
		world_spawn(s, a->worker, a->incarnation);
	}
	push(s, ev);
}

static void
do_publish(struct sim *s, const struct kn_action *a)
{
	struct world_worker *k = &s->w[a->worker];

	if (k->slot_n == SLOTS || chance(s, s->refuse) ||
	    (!s->plain && !k->alive && chance(s, 500))) {
		push(s, about(a, KN_EV_PUBLISH_FAILED));
		return;
	}
	bool waits = chance(s, s->full);
	k->slot[k->slot_n++] = (struct slot){ .task = a->task,
		.gen = a->gen,
		.state = SLOT_PENDING,
		.waits = waits,
		.waited = waits };
	if (waits)
		sim_look_soon(s);
	else
		world_wake(s, a->worker);
	if (!s->c.calls) /* taken for granted */
		push(s, about(a, KN_EV_PUBLISHED));
}

static struct kn_event from(const struct sim *s, uint32_t w, enum kn_event_type type);

/* What is told of a claim, and that it was: the slot is free. */
static struct kn_event
claim_of(struct sim *s, uint32_t home, struct slot *slot)
{
	struct kn_event ev = from(s, slot->by, KN_EV_CLAIMED);

	ev.task = slot->task;
	ev.gen = slot->gen;
	ev.moved = slot->by != home;
	ev.from = ev.moved ? home : 0;
	if (slot->asked && !ev.moved)
		ev.type = KN_EV_TAKE_FAILED;
	world_drop(s, home, slot);
	return ev;
}

/* That another one has claimed it waits to be fed. */
static bool
is_told_moved(const struct sim *s, const struct kn_action *a)
{
	for (uint32_t i = 0; i < s->queue_n; i++) {
		const struct kn_event *ev = &s->queue[(s->queue_head + i) % QUEUE];
		if (ev->moved && ev->task == a->task && ev->gen == a->gen)
			return true;
	}
	return false;
}

/* The oldest claim that is not told, of w or (w NEVER) of anybody, in any lane. */
static struct slot *
oldest_claim(struct sim *s, uint32_t w, uint32_t *home)
{
	struct slot *found = NULL;

	for (uint32_t h = 0; h < s->worker_n; h++) {
		for (uint32_t i = 0; i < s->w[h].slot_n; i++) {
			struct slot *slot = &s->w[h].slot[i];
			if (slot->state != SLOT_CLAIMED || slot->by != w ||
			    (found != NULL && found->order < slot->order))
				continue;
			found = slot;
			*home = h;
		}
	}
	return found;
}

/* The task is claimed: told in its turn, after what that worker claimed before. */
static void
push_claims(struct sim *s, const struct kn_action *a)
{
	struct slot *slot;
	uint32_t home = 0;

	while ((slot = world_slot(s, a->worker, a->task, a->gen)) != NULL) {
		slot = oldest_claim(s, slot->by, &home);
		push(s, claim_of(s, home, slot));
	}
}

static void
do_take_back(struct sim *s, const struct kn_action *a)
{
	struct slot *slot = world_slot(s, a->worker, a->task, a->gen);

	if (s->c.bank_size > 1) {
		/* Moved, and that is told already or will be: or to be decided later.
		 */
		if (slot == NULL) {
			if (!is_told_moved(s, a))
				push(s, about(a, KN_EV_TAKE_FAILED));
			return;
		}
		slot->asked = true;
		if (slot->state == SLOT_CLAIMED && s->w[slot->by].told_ready)
			push_claims(s, a);
		else if (slot->state == SLOT_PENDING &&
			 (slot->waits || !chance(s, 150))) {
			struct kn_event ev = about(a, KN_EV_TAKEN_BACK);
			ev.waited = slot->waited;
			world_drop(s, a->worker, slot);
			push(s, ev);
		}
		return;
	}

	/* A worker may win the race by a hair. */
	if (slot != NULL && slot->state == SLOT_PENDING && !s->honest &&
	    chance(s, 100) && s->w[a->worker].alive &&
	    s->w[a->worker].phase == PHASE_IDLE)
		world_step(s, a->worker);
	slot = world_slot(s, a->worker, a->task, a->gen);
	if (slot != NULL && slot->state == SLOT_PENDING) {
		world_drop(s, a->worker, slot);
		push(s, about(a, KN_EV_TAKEN_BACK));
		return;
	}
	if (slot != NULL)
		world_drop(s, a->worker, slot);
	push(s, about(a, KN_EV_TAKE_FAILED));
}

static void
do_look(struct sim *s, const struct kn_action *a)
{
	struct world_worker *k = &s->w[a->worker];
	struct slot *slot = world_slot(s, a->worker, a->task, a->gen);

	if (slot != NULL && slot->state == SLOT_CLAIMED) {
		push(s, claim_of(s, a->worker, slot));
		if (s->queue[(s->queue_head + s->queue_n - 1) % QUEUE].moved)
			return;
	}
	if (k->begun_ns == 0 || k->word_task != a->task || k->word_gen != a->gen)
		return;
	struct kn_event ev = about(a, KN_EV_BEGUN);
	ev.begun_ns = k->begun_ns;
	push(s, ev);
}

/* The over word, if it names the task; whoever says so has claimed it. */
static void
do_look_over(struct sim *s, const struct kn_action *a)
{
	const struct world_worker *k = &s->w[a->worker];

	if (k->over_gen != 0 && k->over_task == a->task && k->over_gen == a->gen)
		push(s, about(a, KN_EV_OVER));
}

static void
perform(struct sim *s, const struct kn_action *a)
{
	switch (a->type) {
	case KN_ACT_SPAWN:
		do_spawn(s, a);
		break;
	case KN_ACT_PUBLISH:
		do_publish(s, a);
		break;
	case KN_ACT_TAKE_BACK:
		do_take_back(s, a);
		break;
	case KN_ACT_LOOK_BEGUN:
		do_look(s, a);
		break;
	case KN_ACT_LOOK_OVER:
		do_look_over(s, a);
		break;
	case KN_ACT_KILL_TASK:
		world_kill_task(s, a->worker, a->task, a->gen);
		break;
	case KN_ACT_STOP_WORKER:
		world_stop(s, a->worker);
		break;
	case KN_ACT_KILL_WORKER:
		world_kill(s, a->worker);
		break;
	case KN_ACT_ANSWER:
	case KN_ACT_POOL_FAILED:
	case KN_ACT_ENDED:
	case KN_ACT_N:
		break;
	}
}

static void
step(struct sim *s, struct kn_event ev)
{
	/* An earlier time counts as the last one. */
	ev.now_ns = s->now_ns;
	if (s->fed_ns == s->now_ns && chance(s, 10))
		ev.now_ns -= rnd_in(s, 1, 500) * MS;
	s->fed_ns = s->now_ns;
	trace_event(s, &ev);
	s->steps++;
	s->episode_steps++;
	oracle_before(s, &ev);
	s->out[s->out_max].type = KN_ACT_N; /* stands behind the last one allowed */
	size_t n = kn_pool_step(s->pool, &ev, s->out);
	if (n > s->out_max || s->out[s->out_max].type != KN_ACT_N)
		sim_fail(s, "%zu actions, %zu allowed", n, s->out_max);
	for (size_t i = 0; i < n; i++) {
		trace_action(s, &s->out[i]);
		oracle_action(s, &s->out[i]);
	}
	oracle_after(s);
	for (size_t i = 0; i < n; i++)
		perform(s, &s->out[i]);
}

void
shell_feed(struct sim *s, struct kn_event ev)
{
	step(s, ev);
	while (s->queue_n > 0) {
		struct kn_event next = s->queue[s->queue_head];
		s->queue_head = (s->queue_head + 1) % QUEUE;
		s->queue_n--;
		step(s, next);
	}
}

static struct kn_event
from(const struct sim *s, uint32_t w, enum kn_event_type type)
{
	return (struct kn_event){
		.type = type, .worker = w, .incarnation = s->w[w].incarnation
	};
}

/* In the order in which it claimed them; the lanes may change meanwhile. */
static void
report_claims(struct sim *s, uint32_t w)
{
	struct slot *slot;
	uint32_t home = 0;

	while (s->w[w].told_ready && (slot = oldest_claim(s, w, &home)) != NULL)
		shell_feed(s, claim_of(s, home, slot));
}

/* What was asked back and not decided then. */
static void
decide_takes(struct sim *s, uint32_t w)
{
	struct world_worker *k = &s->w[w];

	for (uint32_t i = 0; i < k->slot_n; i++) {
		struct kn_event ev;
		if (!k->slot[i].asked || k->slot[i].state != SLOT_PENDING)
			continue;
		ev = from(s, w, KN_EV_TAKEN_BACK);
		ev.task = k->slot[i].task;
		ev.gen = k->slot[i].gen;
		ev.waited = k->slot[i].waited;
		world_drop(s, w, &k->slot[i]);
		shell_feed(s, ev);
		i = UINT32_MAX; /* the lane may have changed */
	}
}

/* What waits for room gets it now and then, or will never have it. */
static void
make_room(struct sim *s, uint32_t w)
{
	struct world_worker *k = &s->w[w];

	for (uint32_t i = 0; i < k->slot_n; i++) {
		struct kn_event ev = from(s, w, KN_EV_PUBLISH_FAILED);
		if (!k->slot[i].waits)
			continue;
		sim_look_soon(s);
		if (!chance(s, 300))
			continue;
		k->slot[i].waits = false;
		if (!s->c.calls || !chance(s, s->refuse)) {
			world_wake(s, w);
			continue;
		}
		ev.task = k->slot[i].task;
		ev.gen = k->slot[i].gen;
		world_drop(s, w, &k->slot[i]);
		shell_feed(s, ev);
		i = UINT32_MAX; /* the lane may have changed */
	}
}

static void
report_results(struct sim *s, uint32_t w)
{
	struct world_worker *k = &s->w[w];

	while (k->ret_n > 0) {
		struct ret r = k->ret[0];
		k->ret_n--;
		memmove(k->ret, k->ret + 1, k->ret_n * sizeof r);
		struct kn_event ev = from(s, w, KN_EV_RESULT);
		struct slot *own = world_slot(s, w, r.task, r.gen);
		if (s->c.calls && own != NULL && own->state == SLOT_CLAIMED &&
		    own->by == w && !own->asked && chance(s, 700)) {
			ev.claimed = 1; /* the claim is seen with the result */
			world_drop(s, w, own);
		} else {
			report_claims(s, w);
		}
		ev.task = r.task;
		ev.gen = r.gen;
		ev.memory = r.memory;
		ev.infra_fail = r.infra;
		/* A shell may find the lie itself, or leave it to the core. */
		const struct slot *slot = world_slot(s, w, r.task, r.gen);
		if (slot != NULL && chance(s, 500))
			ev.type = KN_EV_VIOLATION;
		shell_feed(s, ev);
	}
}

/* Before GONE: what others have claimed of its lane is told; what is claimed by one
 * that is not ready yet has to wait. */
static bool
empty_lane(struct sim *s, uint32_t w)
{
	struct world_worker *k = &s->w[w];

	for (uint32_t v = 0; s->c.bank_size > 1 && v < s->worker_n; v++)
		if (v != w && sim_same_bank(s, v, w))
			report_claims(s, v);
	for (uint32_t i = 0; i < k->slot_n; i++)
		if (k->slot[i].state == SLOT_CLAIMED && k->slot[i].by != w)
			return false;
	return true;
}

/* What a module was at when it went, by its begun word: answered by how it ended, or,
 * where that is not known or was none of its doing, told. */
static void
report_last(struct sim *s, uint32_t w)
{
	const struct world_worker *k = &s->w[w];
	const struct book_task *t = &s->t[k->word_task % TASKS];
	enum kn_why why = s->b[w].why;
	struct kn_event ev = from(s, w, KN_EV_RESULT);

	if (k->begun_ns == 0 || k->word_task >= TASKS || !t->claimed ||
	    t->worker != (int)w || t->gen != k->word_gen || s->b[w].lied)
		return;
	ev.task = k->word_task;
	ev.gen = k->word_gen;
	ev.begun_ns = k->begun_ns;
	if (why == KN_WHY_NOT_CLAIMED || why == KN_WHY_NO_STOP_ACK ||
	    why == KN_WHY_STOP_NOW || chance(s, 200))
		ev.type = KN_EV_BEGUN;
	shell_feed(s, ev);
}

static void
observe(struct sim *s, uint32_t w)
{
	struct world_worker *k = &s->w[w];

	if (k->pong) {
		k->pong = false;
		k->told_ready = true;
		shell_feed(s, from(s, w, KN_EV_READY));
	}
	if (chance(s, 500))
		decide_takes(s, w);
	if (s->full)
		make_room(s, w);
	report_results(s, w);
	if (chance(s, 300))
		report_claims(s, w);
	if (k->bad) {
		k->bad = false;
		shell_feed(s, from(s, w, KN_EV_VIOLATION));
	}
	if (k->ack) {
		k->ack = false;
		if (s->c.bank_size > 1)
			report_results(s, w);
		if (s->c.bank_size > 1)
			report_claims(s, w);
		shell_feed(s, from(s, w, KN_EV_STOP_ACKED));
	}
	/* Unasked, now and then. */
	if (k->alive && k->begun_ns != 0 && chance(s, k->lie == LIE_BEGUN ? 500 : 50)) {
		struct kn_event ev = from(s, w, KN_EV_BEGUN);
		ev.task = k->word_task;
		ev.gen = k->word_gen;
		ev.begun_ns = k->begun_ns;
		report_claims(s, w);
		shell_feed(s, ev);
	}
	if (k->alive && k->over_gen != 0 && chance(s, 50)) {
		struct kn_event ev = from(s, w, KN_EV_OVER);
		ev.task = k->over_task;
		ev.gen = k->over_gen;
		shell_feed(s, ev);
	}
	if (!k->reap)
		return;
	k->reap = false;
	report_results(s, w);
	report_claims(s, w);
	if (!empty_lane(s, w)) {
		k->reap = true; /* not yet */
		if (s->wake_ns > s->now_ns + MS)
			s->wake_ns = s->now_ns + MS;
		return;
	}
	k->told_ready = false;
	if (s->c.calls)
		report_last(s, w);
	k->slot_n = 0;
	k->todo_n = 0;
	k->phase = PHASE_NONE;
	struct kn_event ev = from(s, w, KN_EV_GONE);
	shell_feed(s, ev);
}

/* Late news of a life that is over. */
static void
stale(struct sim *s)
{
	uint32_t w = (uint32_t)rnd_in(s, 0, s->worker_n - 1);
	struct kn_event ev =
	    from(s, w, (enum kn_event_type)rnd_in(s, KN_EV_SPAWNED, KN_EV_GONE));

	if (s->b[w].incarnation < 2)
		return;
	ev.incarnation = (uint32_t)rnd_in(s, 1, s->b[w].incarnation - 1);
	ev.task = (uint32_t)rnd_in(s, 0, s->c.task_max - 1);
	ev.gen = s->t[ev.task].gen;
	shell_feed(s, ev);
}

void
shell_wake(struct sim *s)
{
	s->wake_ns = NEVER;
	for (uint32_t w = 0; w < s->worker_n; w++)
		observe(s, w);
	if (chance(s, s->stale))
		stale(s);
	driver_act(s);
	/* From a bank the claims too. */
	for (uint32_t w = 0; s->c.bank_size > 1 && w < s->worker_n; w++)
		report_claims(s, w);
	uint64_t due = kn_pool_deadline(s->pool);
	if (due != 0 && due <= s->now_ns)
		shell_feed(s, (struct kn_event){ .type = KN_EV_TIMER });
}
