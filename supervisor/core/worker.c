/* supervisor/core/worker.c: state x event table of a worker; see worker.h. */
#include <stddef.h>

#include "supervisor/core/book.h"
#include "supervisor/core/worker.h"

typedef void handler(struct kn_pool *p, uint32_t w, const struct kn_event *ev);

static void
enter(struct kn_pool *p, uint32_t w, enum kn_worker_state s, uint64_t wait_ms)
{
	p->ready_n += (s == KN_WORKER_READY ? 1u : 0u) -
		      (p->worker[w].state == KN_WORKER_READY ? 1u : 0u);
	p->worker[w].state = s;
	p->worker[w].due_ns = p->now_ns + wait_ms * KN_CORE_MS;
	p->worker[w].dirty = true;
}

static void
act(struct kn_pool *p, uint32_t w, enum kn_action_type type)
{
	struct kn_action *a = kn_pool_act(p, type);

	a->worker = w;
	a->incarnation = p->worker[w].incarnation;
	a->why = p->worker[w].why;
}

bool
kn_worker_stays(const struct kn_pool *p, uint32_t w)
{
	const struct kn_core_worker *k = &p->worker[w];

	return k->state == KN_WORKER_READY && !k->retire &&
	       (p->c.recycle_tasks == 0 ||
		   k->given + (k->lane.n - k->claimed_n) < p->c.recycle_tasks);
}

void
kn_worker_spawn(struct kn_pool *p, uint32_t w)
{
	uint32_t incarnation = p->worker[w].incarnation + 1;

	p->worker[w] = (struct kn_core_worker){ .incarnation = incarnation,
		.lane = { KN_NIL, KN_NIL, 0 } };
	enter(p, w, KN_WORKER_SPAWNING, 0);
	p->spawned++;
	act(p, w, KN_ACT_SPAWN);
}

void
kn_worker_stop(struct kn_pool *p, uint32_t w)
{
	p->worker[w].place = false;
	enter(p, w, KN_WORKER_STOPPING, p->c.stop_ack_ms);
	act(p, w, KN_ACT_STOP_WORKER);
}

void
kn_worker_kill(struct kn_pool *p, uint32_t w, enum kn_why why)
{
	struct kn_core_worker *k = &p->worker[w];

	if (k->state == KN_WORKER_DEAD || k->state == KN_WORKER_DYING ||
	    k->state == KN_WORKER_SPAWNING)
		return;
	k->why = why;
	k->place = false;
	enter(p, w, KN_WORKER_DYING, KN_KILL_AGAIN_MS);
	act(p, w, KN_ACT_KILL_WORKER);
}

void
kn_worker_kill_again(struct kn_pool *p, uint32_t w)
{
	enter(p, w, KN_WORKER_DYING, KN_KILL_AGAIN_MS);
	act(p, w, KN_ACT_KILL_WORKER);
}

/* ---- launches ---- */

/* So many failures in a row end the pool. */
static uint32_t
crash_limit(const struct kn_pool *p)
{
	return p->ever_ready && p->c.crash_loop_later ? p->c.crash_loop_later
						      : p->c.crash_loop;
}

/* The next launch waits, longer each time; one at a time shows whether they go on
 * failing. */
static void
back_off(struct kn_pool *p)
{
	uint64_t wait_ms = p->c.backoff_min_ms;

	for (uint32_t i = 1; i < p->launch_fails && wait_ms < p->c.backoff_max_ms; i++)
		wait_ms *= 2;
	if (wait_ms > p->c.backoff_max_ms)
		wait_ms = p->c.backoff_max_ms;
	p->spawn_after_ns = p->now_ns + wait_ms * KN_CORE_MS;
	p->slow = true;
}

/* A launch came to nothing. was_ready: it got ready, and died without having claimed
 * anything; before: failures in a row that its getting ready wiped out. Whoever kills
 * workers that were ready kills many at once: that is one failure, and no reason to
 * wait, unless it befell a worker that was launched in place of one like that. */
static void
launch_failed(struct kn_pool *p, bool was_ready, uint32_t before)
{
	if (kn_pool_ending(p))
		return;
	if (was_ready && before == 0) {
		p->launch_fails = p->launch_fails > 1 ? p->launch_fails : 1;
	} else {
		if (p->launch_fails < before)
			p->launch_fails = before;
		p->launch_fails++;
		back_off(p);
	}
	if (p->c.crash_loop == 0 || p->launch_fails < crash_limit(p))
		return;
	for (uint32_t w = 0; w < p->worker_n; w++) {
		if (p->worker[w].state == KN_WORKER_READY)
			return; /* the pool goes on with those it has */
	}
	kn_pool_fail(p, KN_WHY_CRASH_LOOP);
}

static void
on_spawned(struct kn_pool *p, uint32_t w, const struct kn_event *ev)
{
	(void)ev;
	enter(p, w, KN_WORKER_STARTING, p->c.start_ms);
}

static void
on_spawn_failed(struct kn_pool *p, uint32_t w, const struct kn_event *ev)
{
	enter(p, w, KN_WORKER_DEAD, 0);
	p->failed_launches++;
	if (ev->fatal != 0 && !p->ever_ready && !kn_pool_ending(p))
		kn_pool_fail(p, KN_WHY_LAUNCH_FATAL);
	else
		launch_failed(p, false, 0);
}

static void
on_ready(struct kn_pool *p, uint32_t w, const struct kn_event *ev)
{
	struct kn_core_worker *k = &p->worker[w];

	(void)ev;
	enter(p, w, KN_WORKER_READY, 0);
	k->was_ready = true;
	k->ready_ns = p->now_ns;
	k->fails_before = p->launch_fails;
	p->launch_fails = 0;
	p->spawn_after_ns = 0;
	p->slow = false;
	p->ever_ready = true;
}

/* ---- tasks ---- */

static void
on_published(struct kn_pool *p, uint32_t w, const struct kn_event *ev)
{
	uint32_t t = kn_book_find(p, ev);

	p->worker[w].refused_row = 0;
	if (p->c.calls)
		return; /* taken for granted */
	if (t == KN_NIL || p->task[t].state != KN_TASK_PUBLISHING) {
		p->bugs++;
		return;
	}
	kn_book_published(p, t);
}

static void
on_publish_failed(struct kn_pool *p, uint32_t w, const struct kn_event *ev)
{
	struct kn_core_worker *k = &p->worker[w];
	uint32_t t = kn_book_find(p, ev);
	enum kn_task_state sent = p->c.calls ? KN_TASK_PUBLISHED : KN_TASK_PUBLISHING;

	if (t == KN_NIL || p->task[t].state != sent) {
		p->bugs++;
		return;
	}
	kn_book_refused(p, t);
	uint64_t wait_ms = KN_BLOCK_BUSY_MS;
	if (k->lane.n == 0)
		wait_ms = 1ull << (k->refused_row < 6 ? k->refused_row : 6);
	k->blocked_ns = p->now_ns + wait_ms * KN_CORE_MS;
	k->dirty = true;
	/* The room of a bank is nobody's own. */
	if (k->lane.n == 0 && ++k->refused_row >= KN_REFUSED_WORKER &&
	    p->c.bank_size == 1)
		kn_worker_kill(p, w, KN_WHY_NOT_CLAIMED);
}

/* The task of a claim; from the lane of another of its bank it comes into w's. */
static uint32_t
find_claimed(struct kn_pool *p, uint32_t w, const struct kn_event *ev)
{
	struct kn_event there = *ev;
	uint32_t t;

	if (!ev->moved)
		return kn_book_find(p, ev);
	if (ev->from >= p->worker_n || ev->from == w || !kn_same_bank(p, ev->from, w))
		return KN_NIL;
	there.worker = ev->from;
	t = kn_book_find(p, &there);
	if (t != KN_NIL && p->task[t].state != KN_TASK_PUBLISHING)
		kn_book_move(p, t, w);
	return t;
}

static void
on_claimed(struct kn_pool *p, uint32_t w, const struct kn_event *ev)
{
	uint32_t t = find_claimed(p, w, ev);

	if (t == KN_NIL || p->task[t].state == KN_TASK_PUBLISHING)
		p->bugs++;
	else if (p->task[t].state == KN_TASK_PUBLISHED)
		kn_book_claimed(p, t);
}

/* The worker's word, and only about what it has claimed. */
static void
on_begun(struct kn_pool *p, uint32_t w, const struct kn_event *ev)
{
	uint32_t t = kn_book_find(p, ev);

	if (t == KN_NIL || p->task[t].state != KN_TASK_CLAIMED)
		return;
	uint64_t begun_ns = ev->begun_ns < p->now_ns ? ev->begun_ns : p->now_ns;
	p->task[t].begun_ns = begun_ns != 0 ? begun_ns : 1;
	p->worker[w].dirty = true;
}

/* As above. What it buys is bounded, so that a lie delays nothing but its own end. */
static void
on_over(struct kn_pool *p, uint32_t w, const struct kn_event *ev)
{
	uint32_t t = kn_book_find(p, ev);

	if (t == KN_NIL || p->task[t].state != KN_TASK_CLAIMED)
		return;
	p->task[t].over = true;
	p->worker[w].dirty = true;
}

static void
on_taken_back(struct kn_pool *p, uint32_t w, const struct kn_event *ev)
{
	uint32_t t = kn_book_find(p, ev);

	if (t == KN_NIL || p->task[t].state != KN_TASK_PUBLISHED ||
	    p->task[t].take == KN_TAKE_NONE) {
		p->bugs++;
		return;
	}
	enum kn_take why = p->task[t].take;
	if (why == KN_TAKE_STEAL)
		p->stolen++;
	kn_book_back(p, t);
	/* In a bank it may have claimed another instead, and we learn it only now. */
	if (why == KN_TAKE_PROBE && !ev->waited &&
	    (p->c.bank_size == 1 || p->worker[w].claimed_n == 0))
		kn_worker_kill(p, w, KN_WHY_NOT_CLAIMED);
}

static void
on_take_failed(struct kn_pool *p, uint32_t w, const struct kn_event *ev)
{
	uint32_t t = kn_book_find(p, ev);

	(void)w;
	if (t == KN_NIL || p->task[t].take == KN_TAKE_NONE) {
		p->bugs++;
		return;
	}
	if (p->task[t].take == KN_TAKE_STEAL)
		p->steals--;
	p->task[t].take = KN_TAKE_NONE;
	if (p->task[t].state == KN_TASK_PUBLISHED)
		kn_book_claimed(p, t);
}

/* It lied: what it has claimed is answered VIOLATION, nothing it says counts any more.
 */
static void
on_violation(struct kn_pool *p, uint32_t w, const struct kn_event *ev)
{
	struct kn_core_worker *k = &p->worker[w];

	(void)ev;
	k->lied = true;
	for (uint32_t t = k->lane.head; t != KN_NIL; t = p->task[t].next) {
		if (p->task[t].state == KN_TASK_CLAIMED)
			kn_book_decide(p, t, KN_HOW_VIOLATION);
	}
	kn_worker_kill(p, w, KN_WHY_VIOLATION);
}

static void
on_result(struct kn_pool *p, uint32_t w, const struct kn_event *ev)
{
	struct kn_core_worker *k = &p->worker[w];

	uint32_t t = ev->claimed ? find_claimed(p, w, ev) : kn_book_find(p, ev);
	if (t != KN_NIL && ev->claimed && p->task[t].state == KN_TASK_PUBLISHED)
		kn_book_claimed(p, t); /* a liar's too */
	if (k->lied)
		return;
	if (t == KN_NIL || p->task[t].state != KN_TASK_CLAIMED) {
		on_violation(p, w, ev);
		return;
	}
	kn_book_result(p, t, ev->infra_fail != 0);
	k->blocked_ns = 0;
	k->refused_row = 0;
	k->answered = true;
	k->infra_row = ev->infra_fail != 0 ? k->infra_row + 1 : 0;
	if (k->infra_row >= KN_INFRA_ROW)
		k->retire = p->any_retire = true;
	if (p->c.recycle_memory != 0 && ev->memory > p->c.recycle_memory)
		k->retire = p->any_retire = true;
}

/* ---- ends ---- */

static void
on_stop_acked(struct kn_pool *p, uint32_t w, const struct kn_event *ev)
{
	uint64_t ms = p->c.grace_ms + (uint64_t)p->c.hard_slack_ms;

	(void)ev;
	p->worker[w].stopped = true;
	/* A module's process has memory to give back, and after it its sandbox. */
	if (p->c.calls)
		ms += KN_KILL_AGAIN_MS;
	enter(p, w, KN_WORKER_ENDING, ms);
}

/* It was told to stop and did, or it was too slow in that for its time: a machine's
 * matter, where it held nothing. */
static bool
ended_as_asked(const struct kn_core_worker *k)
{
	if (k->state == KN_WORKER_STOPPING || k->why == KN_WHY_STOP_NOW)
		return true;
	return (k->stopped || k->why == KN_WHY_NO_STOP_ACK) && k->claimed_n == 0 &&
	       !k->lied;
}

static void
on_gone(struct kn_pool *p, uint32_t w, const struct kn_event *ev)
{
	struct kn_core_worker *k = &p->worker[w];
	bool asked = ended_as_asked(k);
	bool useless = !k->served && !asked && k->why != KN_WHY_CRASH_LOOP &&
		       k->why != KN_WHY_LAUNCH_FATAL;

	(void)ev;
	k->place = false;
	enter(p, w, KN_WORKER_DEAD, 0);
	if (!asked && k->was_ready)
		p->lost++;
	else if (!asked)
		p->failed_launches++;
	if (useless)
		launch_failed(p, k->was_ready, k->was_ready ? k->fails_before : 0);
	/* From the last to the first: each goes to the front, so they keep their order.
	 */
	while (k->lane.tail != KN_NIL) {
		uint32_t t = k->lane.tail;
		if (p->task[t].state != KN_TASK_CLAIMED)
			kn_book_back(p, t);
		else if (p->c.calls && p->task[t].begun_ns == 0)
			kn_book_unrun(p, t, k->answered);
		else
			kn_book_lost(p, t);
	}
}

/* Possible, and without consequence: what was under way when it was killed. */
static void
ignore(struct kn_pool *p, uint32_t w, const struct kn_event *ev)
{
	(void)p;
	(void)w;
	(void)ev;
}

static handler *const table[KN_WORKER_N][KN_EV_N] = {
	[KN_WORKER_DEAD] = { NULL },
	[KN_WORKER_SPAWNING] = {
		[KN_EV_SPAWNED] = on_spawned,
		[KN_EV_SPAWN_FAILED] = on_spawn_failed,
	},
	[KN_WORKER_STARTING] = {
		[KN_EV_READY] = on_ready,
		[KN_EV_BEGUN] = ignore, /* its word, and nobody asked */
		[KN_EV_OVER] = ignore,
		[KN_EV_RESULT] = on_violation, /* nothing was given to it */
		[KN_EV_STOP_ACKED] = on_violation,
		[KN_EV_VIOLATION] = on_violation,
		[KN_EV_GONE] = on_gone,
	},
	[KN_WORKER_READY] = {
		[KN_EV_PUBLISHED] = on_published,
		[KN_EV_PUBLISH_FAILED] = on_publish_failed,
		[KN_EV_CLAIMED] = on_claimed,
		[KN_EV_BEGUN] = on_begun,
		[KN_EV_OVER] = on_over,
		[KN_EV_TAKEN_BACK] = on_taken_back,
		[KN_EV_TAKE_FAILED] = on_take_failed,
		[KN_EV_RESULT] = on_result,
		[KN_EV_STOP_ACKED] = on_violation, /* nobody asked */
		[KN_EV_VIOLATION] = on_violation,
		[KN_EV_GONE] = on_gone,
	},
	[KN_WORKER_STOPPING] = { /* its lane is empty, but for claims from a bank */
		[KN_EV_CLAIMED] = on_claimed,
		[KN_EV_TAKEN_BACK] = on_taken_back,
		[KN_EV_TAKE_FAILED] = on_take_failed,
		[KN_EV_BEGUN] = on_begun,
		[KN_EV_OVER] = on_over,
		[KN_EV_RESULT] = on_result,
		[KN_EV_STOP_ACKED] = on_stop_acked,
		[KN_EV_VIOLATION] = on_violation,
		[KN_EV_GONE] = on_gone,
	},
	[KN_WORKER_ENDING] = {
		[KN_EV_BEGUN] = on_begun, /* and is still at it */
		[KN_EV_OVER] = on_over,
		[KN_EV_RESULT] = on_result,
		[KN_EV_STOP_ACKED] = ignore, /* says it twice */
		[KN_EV_VIOLATION] = on_violation,
		[KN_EV_GONE] = on_gone,
	},
	[KN_WORKER_DYING] = {
		[KN_EV_READY] = ignore,
		[KN_EV_PUBLISHED] = on_published,
		[KN_EV_PUBLISH_FAILED] = on_publish_failed,
		[KN_EV_CLAIMED] = on_claimed,
		[KN_EV_BEGUN] = on_begun,
		[KN_EV_OVER] = on_over,
		[KN_EV_TAKEN_BACK] = on_taken_back,
		[KN_EV_TAKE_FAILED] = on_take_failed,
		[KN_EV_RESULT] = on_result,
		[KN_EV_STOP_ACKED] = ignore,
		[KN_EV_VIOLATION] = on_violation,
		[KN_EV_GONE] = on_gone,
	},
};

void
kn_worker_event(struct kn_pool *p, const struct kn_event *ev)
{
	if (ev->worker >= p->worker_n || (unsigned)ev->type >= KN_EV_N) {
		p->bugs++;
		return;
	}
	struct kn_core_worker *k = &p->worker[ev->worker];
	if (ev->incarnation < k->incarnation)
		return; /* of one that is gone */
	handler *h = table[k->state][ev->type];
	if (ev->incarnation != k->incarnation || h == NULL) {
		p->bugs++;
		return;
	}
	h(p, ev->worker, ev);
}
