/* supervisor/core/pool.c: one event in, a bounded list of actions out; see pool.h. */
#include <string.h>

#include "supervisor/core/assign.h"
#include "supervisor/core/book.h"
#include "supervisor/core/broker.h"
#include "supervisor/core/worker.h"

enum { ALIGN = 16, WORKERS_MAX = 256, TASKS_MAX = 65536, LANE_MAX = 64 };

static uint32_t
within(uint32_t v, uint32_t min, uint32_t max)
{
	return v < min ? min : v > max ? max : v;
}

static struct kn_pool_config
sane(const struct kn_pool_config *c)
{
	struct kn_pool_config s = *c;

	s.worker_n = within(s.worker_n, 1, WORKERS_MAX);
	s.task_max = within(s.task_max, 1, TASKS_MAX);
	s.lane_depth = within(s.lane_depth, 1, LANE_MAX);
	s.bank_size = within(s.bank_size, 1, WORKERS_MAX);
	s.offer_max =
	    s.offer_max ? within(s.offer_max, 1, KN_LANE_SLOTS) : KN_LANE_SLOTS;
	s.spares = within(s.spares, 0, s.worker_n);
	s.spares = within(s.spares, 0, WORKERS_MAX - s.worker_n);
	s.backoff_min_ms = within(s.backoff_min_ms, 1, UINT32_MAX);
	s.backoff_max_ms = within(s.backoff_max_ms, s.backoff_min_ms, UINT32_MAX);
	return s;
}

/* Where the parts of the block are. */
struct plan {
	size_t task, worker, due, at, heap, bytes;
};

static size_t
carve(size_t *at, size_t n, size_t each)
{
	size_t off = *at;

	*at = (off + n * each + ALIGN - 1) / ALIGN * ALIGN;
	return off;
}

static struct plan
plan_of(const struct kn_pool_config *c)
{
	size_t workers = (size_t)c->worker_n + c->spares;
	size_t timers = c->task_max + workers + 2;
	size_t at = 0;
	struct plan l;

	(void)carve(&at, 1, sizeof(struct kn_pool));
	l.task = carve(&at, c->task_max, sizeof(struct kn_core_task));
	l.worker = carve(&at, workers, sizeof(struct kn_core_worker));
	l.due = carve(&at, timers, sizeof(uint64_t));
	l.at = carve(&at, timers, sizeof(uint32_t));
	l.heap = carve(&at, timers, sizeof(uint32_t));
	l.bytes = at;
	return l;
}

uint32_t
kn_pool_workers(const struct kn_pool_config *c)
{
	struct kn_pool_config s = sane(c);

	return s.worker_n + s.spares;
}

size_t
kn_pool_bytes(const struct kn_pool_config *c)
{
	struct kn_pool_config s = sane(c);

	return plan_of(&s).bytes;
}

/* A task is answered once in a step, or something is done about it in its lane, three
 * times at most (TAKE_BACK or KILL_TASK beside LOOK_BEGUN and LOOK_OVER). A worker is
 * launched, stopped or killed, twice at most. POOL_FAILED and ENDED. */
size_t
kn_pool_actions_max(const struct kn_pool_config *c)
{
	struct kn_pool_config s = sane(c);
	size_t workers = (size_t)s.worker_n + s.spares;
	size_t laned = workers * s.lane_depth;

	/* In a bank one worker may claim what was given to many. */
	if (laned > s.task_max || s.bank_size > 1)
		laned = s.task_max;
	return s.task_max + 3 * laned + 2 * workers + 2;
}

struct kn_pool *
kn_pool_init(void *storage, const struct kn_pool_config *c)
{
	struct kn_pool_config s = sane(c);
	struct plan l = plan_of(&s);
	char *base = storage;
	struct kn_pool *p = storage;

	memset(storage, 0, l.bytes);
	p->c = s;
	p->worker_n = s.worker_n + s.spares;
	p->last_w = p->worker_n - 1; /* so that the first comes first */
	p->random = s.seed ? s.seed : 1;
	p->out_max = kn_pool_actions_max(&s);
	p->task = (struct kn_core_task *)(void *)(base + l.task);
	p->worker = (struct kn_core_worker *)(void *)(base + l.worker);
	p->timers.due_ns = (uint64_t *)(void *)(base + l.due);
	p->timers.at = (uint32_t *)(void *)(base + l.at);
	p->timers.heap = (uint32_t *)(void *)(base + l.heap);
	kn_timers_init(&p->timers, s.task_max + p->worker_n + 2);
	kn_book_init(p);
	return p;
}

struct kn_action *
kn_pool_act(struct kn_pool *p, enum kn_action_type type)
{
	struct kn_action *a = &p->scrap;

	if (p->out_n < p->out_max)
		a = &p->out[p->out_n++];
	else
		p->bugs++;
	memset(a, 0, sizeof *a);
	a->type = type;
	return a;
}

/* ---- the end ---- */

static void
kill_launching(struct kn_pool *p, enum kn_why why)
{
	for (uint32_t w = 0; w < p->worker_n; w++) {
		if (p->worker[w].state == KN_WORKER_SPAWNING ||
		    p->worker[w].state == KN_WORKER_STARTING)
			kn_worker_kill(p, w, why);
	}
}

void
kn_pool_fail(struct kn_pool *p, enum kn_why why)
{
	if (kn_pool_ending(p))
		return;
	p->failed = true;
	kn_pool_act(p, KN_ACT_POOL_FAILED)->why = why;
	kn_book_flush(p, KN_HOW_LAUNCH_FAILED);
	kill_launching(p, why);
}

static void
stop(struct kn_pool *p)
{
	if (p->mode >= KN_MODE_STOP || p->ended)
		return;
	p->mode = KN_MODE_STOP;
	p->grace_ns = p->now_ns + p->c.grace_ms * KN_CORE_MS;
	kn_timers_set(&p->timers, kn_timer_grace(p), p->grace_ns);
	kn_book_flush(p, KN_HOW_CANCELLED);
	kill_launching(p, KN_WHY_STOP_NOW);
	for (uint32_t t = 0; t < p->c.task_max; t++) {
		if (p->task[t].state == KN_TASK_PUBLISHED)
			kn_book_take(p, t, KN_TAKE_DROP);
	}
}

static void
grace_over(struct kn_pool *p)
{
	for (uint32_t t = 0; t < p->c.task_max; t++) {
		if (p->task[t].state == KN_TASK_CLAIMED)
			kn_book_kill(p, t, KN_CORE_CAUSE_STOP);
	}
}

static void
stop_now(struct kn_pool *p)
{
	if (p->mode == KN_MODE_STOP_NOW)
		return;
	p->mode = KN_MODE_STOP_NOW;
	kn_book_flush(p, KN_HOW_CANCELLED);
	for (uint32_t w = 0; w < p->worker_n; w++)
		kn_worker_kill(p, w, KN_WHY_STOP_NOW);
}

/* ---- one step ---- */

static void
dispatch(struct kn_pool *p, const struct kn_event *ev)
{
	if ((ev->type == KN_EV_SUBMIT || ev->type == KN_EV_CANCEL) &&
	    ev->task >= p->c.task_max) {
		p->bugs++;
		return;
	}
	/* All that is not the pool's or a task's own is a worker's. */
	if (ev->type == KN_EV_SUBMIT)
		kn_book_submit(p, ev);
	else if (ev->type == KN_EV_CANCEL)
		kn_book_cancel(p, ev->task);
	else if (ev->type == KN_EV_TIMER)
		return;
	else if (ev->type == KN_EV_DRAIN)
		p->mode = p->mode < KN_MODE_DRAIN ? KN_MODE_DRAIN : p->mode;
	else if (ev->type == KN_EV_STOP)
		stop(p);
	else if (ev->type == KN_EV_STOP_NOW)
		stop_now(p);
	else
		kn_worker_event(p, ev);
}

static void
fire(struct kn_pool *p)
{
	uint32_t id;

	while (kn_timers_pop(&p->timers, p->now_ns, &id)) {
		if (id < p->c.task_max)
			kn_book_late(p, id);
		else if (id < kn_timer_spawn(p))
			kn_worker_timer(p, id - p->c.task_max);
		else if (id == kn_timer_grace(p))
			grace_over(p);
		/* the launch timer: settle() launches */
	}
}

/* Workers that have nothing to do and nothing to wait for, but what they have claimed.
 */
static void
stop_idle(struct kn_pool *p)
{
	bool all = kn_pool_ending(p) || (p->mode == KN_MODE_DRAIN && p->open == 0);

	if (all)
		kill_launching(p, KN_WHY_STOP_NOW); /* once SPAWNED, too */
	for (uint32_t w = 0; w < p->worker_n; w++) {
		const struct kn_core_worker *k = &p->worker[w];
		bool leaves = !kn_worker_stays(p, w);
		/* From a bank it would go on claiming. */
		uint32_t own = leaves && p->c.bank_size > 1 ? k->claimed_n : 0;
		if (k->state == KN_WORKER_READY && k->lane.n == own && (all || leaves))
			kn_worker_stop(p, w);
	}
}

static void
end(struct kn_pool *p)
{
	if (p->ended || p->open > 0 || (p->mode == KN_MODE_RUN && !p->failed))
		return;
	for (uint32_t w = 0; w < p->worker_n; w++) {
		if (p->worker[w].state != KN_WORKER_DEAD)
			return;
	}
	kn_timers_set(&p->timers, kn_timer_grace(p), 0);
	p->ended = true;
	kn_pool_act(p, KN_ACT_ENDED);
}

/* What happens to tasks while all workers are there and nothing ends: millions of times
 * where tasks are calls. Then nobody comes or goes, and places stay as they are. */
static bool
is_plain(const struct kn_pool *p, enum kn_event_type t)
{
	return (t == KN_EV_SUBMIT || t == KN_EV_PUBLISHED || t == KN_EV_CLAIMED ||
		   t == KN_EV_BEGUN || t == KN_EV_OVER || t == KN_EV_TAKEN_BACK ||
		   t == KN_EV_TAKE_FAILED || t == KN_EV_RESULT) &&
	       p->mode == KN_MODE_RUN && !p->failed && p->ready_n == p->worker_n &&
	       !p->any_retire && p->c.recycle_tasks == 0;
}

/* All that follows from the state, whatever the event was. */
static void
settle(struct kn_pool *p, enum kn_event_type t)
{
	if (is_plain(p, t)) {
		kn_assign_deepen(p);
		kn_broker_step(p);
		return;
	}
	(void)kn_assign_next(p); /* may have been the last one */
	stop_idle(p);
	kn_assign_places(p);
	kn_assign_idle(p);
	kn_assign_spawn(p);
	kn_assign_deepen(p);
	kn_broker_step(p);
	end(p);
}

static void
rearm(struct kn_pool *p)
{
	for (uint32_t w = 0; w < p->worker_n; w++) {
		if (p->worker[w].dirty)
			kn_worker_rearm(p, w);
	}
}

size_t
kn_pool_step(struct kn_pool *p, const struct kn_event *ev, struct kn_action *out)
{
	p->out = out;
	p->out_n = 0;
	if (ev->now_ns > p->now_ns)
		p->now_ns = ev->now_ns;
	dispatch(p, ev);
	/* Not on other events: what another worker has done in time may not be fed yet.
	 */
	if (ev->type == KN_EV_TIMER)
		fire(p);
	settle(p, ev->type);
	rearm(p);
	return p->out_n;
}

uint64_t
kn_pool_deadline(const struct kn_pool *p)
{
	return kn_timers_next(&p->timers);
}

void
kn_pool_count(const struct kn_pool *p, struct kn_pool_counts *out)
{
	struct kn_pool_counts c = { .queued = p->queue.n,
		.published = p->lane_n - p->claimed_n,
		.running = p->claimed_n,
		.answered = p->answered,
		.spawned = p->spawned,
		.lost = p->lost,
		.failed_launches = p->failed_launches,
		.stolen = p->stolen };

	for (uint32_t w = 0; w < p->worker_n; w++) {
		enum kn_worker_state s = p->worker[w].state;
		c.ready += s == KN_WORKER_READY;
		c.launching += s == KN_WORKER_SPAWNING || s == KN_WORKER_STARTING;
		c.dead += s == KN_WORKER_DEAD;
	}
	*out = c;
}

uint64_t
kn_pool_bugs(const struct kn_pool *p)
{
	return p->bugs;
}
