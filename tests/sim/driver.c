/* tests/sim/driver.c: what the users of a pool do: submit, cancel, drain, stop, stop
 * again, at any step. A seed is a chain of episodes, each with a pool and a temper of
 * its own. */
#include <stdlib.h>
#include <string.h>

#include "tests/sim/sim.h"

/* Kind module: nobody but the core keeps hard_ms, and lanes are deeper. */
static void
configure_calls(struct sim *s)
{
	static const uint32_t depths[] = { 2, 8, 16, 40 };
	struct kn_pool_config *c = &s->c;

	c->calls = true;
	c->hard_slack_ms = c->teardown_ms = 0;
	c->lane_depth = depths[rnd_in(s, 0, 3)];
}

static void
configure(struct sim *s)
{
	static const uint32_t depths[] = { 1, 2, 4, 8 };
	struct kn_pool_config *c = &s->c;

	memset(c, 0, sizeof *c);
	c->worker_n = (uint32_t)rnd_in(s, 1, 4);
	c->task_max = (uint32_t)rnd_in(s, 1, chance(s, 300) ? TASKS : 12);
	c->lane_depth = depths[rnd_in(s, 0, 3)];
	c->start_ms = (uint32_t)rnd_in(s, 50, 500);
	c->claim_ms = chance(s, 100) && !s->honest ? 0 : (uint32_t)rnd_in(s, 10, 200);
	c->hard_slack_ms = (uint32_t)rnd_in(s, 5, 50);
	c->teardown_ms = chance(s, 200) ? 0 : (uint32_t)rnd_in(s, 1, 500);
	c->grace_ms = (uint32_t)rnd_in(s, 10, 200);
	c->stop_ack_ms = (uint32_t)rnd_in(s, 5, 50);
	c->backoff_min_ms = (uint32_t)rnd_in(s, 1, 20);
	c->backoff_max_ms = (uint32_t)rnd_in(s, 20, 500);
	c->crash_loop = (uint32_t)rnd_in(s, 2, 8);
	c->crash_loop_later = chance(s, 500) ? (uint32_t)rnd_in(s, 2, 12) : 0;
	c->broker = chance(s, 700);
	c->eager = chance(s, 300);
	c->balance = (enum kn_balance)rnd_in(s, 0, KN_BALANCE_N - 1);
	c->seed = (uint32_t)rnd_in(s, 0, UINT32_MAX);
	if (chance(s, 350)) {
		c->bank_size = (uint32_t)rnd_in(s, 2, 4);
		c->offer_max = chance(s, 500) ? (uint32_t)rnd_in(s, 1, 8) : 0;
	}
	if (chance(s, 300))
		configure_calls(s);
	s->plain = s->honest || chance(s, 400);
	if (s->plain)
		return;
	if (c->bank_size == 0) /* a spare would claim as others do */
		c->spares = (uint32_t)rnd_in(s, 0, c->worker_n);
	if (chance(s, 400))
		c->recycle_tasks = (uint32_t)rnd_in(s, 1, 6);
	if (chance(s, 200))
		c->recycle_s = 1;
	if (chance(s, 200))
		c->recycle_memory = 1 << 20;
}

static void
temper(struct sim *s)
{
	static const uint32_t evils[] = { 5, 20, 60, 200 };

	s->evil = s->honest ? 0 : evils[rnd_in(s, 0, 3)];
	s->crashy = s->honest ? 0 : (uint32_t)rnd_in(s, 0, 1) * s->evil;
	s->spawn_fail = chance(s, 200) ? 400 : s->evil / 4;
	s->spawn_fatal = chance(s, 200) ? 500 : 0;
	s->refuse = s->honest ? 0 : chance(s, 100) ? 900 : chance(s, 300) ? 50 : 0;
	s->infra = s->plain || s->c.calls ? 0 : chance(s, 300) ? 150 : 0;
	s->full = s->c.bank_size > 1 && chance(s, 300) ? 200 : 0;
	s->tough = chance(s, 500) ? 200 : 0;
	s->secretive = s->c.calls && !s->honest && chance(s, 100);
	if (s->secretive) { /* until one call has gone with 32 workers */
		s->c.worker_n = 1;
		s->c.lane_depth = 40;
		s->c.bank_size = s->c.offer_max = 0;
		s->c.task_max = TASKS;
		s->c.spares = s->c.recycle_s = s->c.recycle_tasks = 0;
		s->c.recycle_memory = 0;
		s->gap_ns = MS / 10;
		s->refuse = s->spawn_fail = 0;
	}
	s->stale = 5;
	s->read_us = chance(s, 200) ? 20000 : 100;
	s->stall_left = s->honest ? 0 : chance(s, 200) ? 3 : 0;
	s->gap_ns = rnd_in(s, 1, 20) * (chance(s, 500) ? MS : 100000);
}

static void
start_episode(struct sim *s)
{
	s->honest = chance(s, 250);
	configure(s);
	temper(s);
	s->worker_n = kn_pool_workers(&s->c);
	size_t n = kn_pool_bytes(&s->c);
	if (n > s->storage_n) {
		free(s->storage);
		s->storage = malloc(n);
		s->storage_n = n;
	}
	s->out_max = kn_pool_actions_max(&s->c);
	free(s->out);
	s->out = calloc(s->out_max + 1, sizeof *s->out);
	if (s->storage == NULL || s->out == NULL)
		abort();
	s->pool = kn_pool_init(s->storage, &s->c);
	memset(s->w, 0, sizeof s->w);
	memset(s->t, 0, sizeof s->t);
	memset(s->b, 0, sizeof s->b);
	for (uint32_t w = 0; w < WORKERS; w++)
		s->w[w].next_ns = s->w[w].exit_ns = NEVER;
	s->queue_head = s->queue_n = 0;
	s->draining = s->stopping = s->stop_now = s->failed = s->ended = false;
	s->stalled = s->ever_ready = s->slow = false;
	s->open_n = s->fails = 0;
	s->spawn_after_ns = s->stop_ns = s->fail_step = 0;
	s->answered = s->fed_ns = 0;
	s->front = s->back = 0;
	s->episode++;
	s->episode_steps = 0;
	s->episode_len = rnd_in(s, 10, chance(s, 300) ? 3000 : 400);
	if (s->secretive)
		s->episode_len = 8000;
	s->wake_ns = s->driver_ns = s->now_ns;
	s->end_next_ns = NEVER;
	s->end_limit_ns = NEVER;
}

static void
submit(struct sim *s, uint32_t task)
{
	static const uint32_t queue_ms[] = { 0, 0, 0, 5, 50, 300 };
	static const uint32_t hard_ms[] = { 0, 20, 100, 400, 1000 };
	struct kn_event ev = { .type = KN_EV_SUBMIT, .task = task };
	struct book_task *t = &s->t[task];

	ev.submit.queue_ms = queue_ms[rnd_in(s, 0, 5)];
	ev.submit.hard_ms = hard_ms[rnd_in(s, s->honest ? 1 : 0, 4)];
	ev.submit.retries = chance(s, 300) ? (uint32_t)rnd_in(s, 1, 3) : 0;
	t->work_ns = rnd_in(s, 10, chance(s, 200) ? 800000 : 15000) * 1000;
	if (chance(s, 20) && !s->honest)
		t->work_ns = NEVER;
	t->crashy = chance(s, s->crashy);
	shell_feed(s, ev);
}

static void
end_event(struct sim *s)
{
	static const enum kn_event_type types[] = { [END_DRAIN] = KN_EV_DRAIN,
		[END_STOP] = KN_EV_STOP,
		[END_STOP_NOW] = KN_EV_STOP_NOW };
	enum kn_event_type type = types[rnd_in(s, 0, 2)];

	for (uint32_t t = 0; !s->draining && !s->stopping && t < s->c.task_max; t++) {
		if (!s->t[t].open && chance(s, 300))
			submit(s, t); /* the last ones, in a hurry */
	}
	if (s->draining && chance(s, 700))
		type = chance(s, 700) ? KN_EV_STOP : KN_EV_STOP_NOW;
	if (s->stopping)
		type = types[rnd_in(s, 0, 2)];
	shell_feed(s, (struct kn_event){ .type = type });
	s->end_next_ns =
	    s->now_ns +
	    rnd_in(s, 0, chance(s, type == KN_EV_DRAIN ? 200 : 500) ? 20 : 2000) * MS;
	if (!s->stopping)
		return;
	/* From here it must come to an end: grace, kills, acknowledgements, reaps. */
	uint64_t limit_ns =
	    (3ull * s->c.grace_ms + 2ull * s->c.hard_slack_ms + s->c.teardown_ms +
		s->c.stop_ack_ms + s->c.start_ms + 3000) *
	    MS;
	if (s->end_limit_ns == NEVER)
		s->end_limit_ns = s->now_ns + limit_ns;
	if (chance(s, 600))
		s->end_next_ns = NEVER;
}

void
driver_act(struct sim *s)
{
	if (s->now_ns >= s->end_next_ns)
		end_event(s);
	if (s->now_ns < s->driver_ns)
		return;
	s->driver_ns = s->now_ns + rnd_in(s, 0, 2 * s->gap_ns);
	if (chance(s, 20))
		s->driver_ns += rnd_in(s, 0, 400) * MS; /* an idle pool */
	uint64_t burst = chance(s, 100) ? rnd_in(s, 1, s->c.task_max) : 1;
	for (uint64_t i = 0; i < burst; i++) {
		uint32_t task = (uint32_t)rnd_in(s, 0, s->c.task_max - 1);
		if (!s->t[task].open)
			submit(s, task);
		else if (chance(s, 60))
			shell_feed(
			    s, (struct kn_event){ .type = KN_EV_CANCEL, .task = task });
	}
	if (s->episode_steps >= s->episode_len && s->end_next_ns == NEVER &&
	    s->end_limit_ns == NEVER)
		s->end_next_ns = s->now_ns;
	/* The supervisor itself is stopped for a while. */
	if (s->stall_left > 0 && chance(s, 10)) {
		s->stall_left--;
		s->stalled = true;
		s->awake_ns = s->now_ns + rnd_in(s, 1, 5000) * MS;
		if (s->end_limit_ns != NEVER)
			s->end_limit_ns += s->awake_ns - s->now_ns;
	}
}

static uint64_t
worker_due(const struct world_worker *k)
{
	return k->next_ns < k->exit_ns ? k->next_ns : k->exit_ns;
}

/* The next thing that happens anywhere. */
static void
advance(struct sim *s)
{
	uint64_t core_ns = kn_pool_deadline(s->pool);
	uint64_t shell_ns = s->wake_ns;
	uint32_t who = WORKERS;

	if (core_ns != 0) {
		uint64_t late_ns =
		    s->honest ? 0 : rnd_in(s, 0, 1000 + s->read_us) * 1000;
		core_ns = (core_ns > s->now_ns ? core_ns : s->now_ns) + late_ns;
		shell_ns = core_ns < shell_ns ? core_ns : shell_ns;
	}
	shell_ns = s->driver_ns < shell_ns ? s->driver_ns : shell_ns;
	shell_ns = s->end_next_ns < shell_ns ? s->end_next_ns : shell_ns;
	if (shell_ns < s->awake_ns)
		shell_ns = s->awake_ns;
	uint64_t next_ns = shell_ns;
	for (uint32_t w = 0; w < s->worker_n; w++) {
		if (worker_due(&s->w[w]) < next_ns) {
			next_ns = worker_due(&s->w[w]);
			who = w;
		}
	}
	if (next_ns > s->now_ns)
		s->now_ns = next_ns;
	if (s->now_ns > s->end_limit_ns)
		sim_fail(s, "stopped %.0f ms ago and not ended",
		    (double)(s->now_ns - s->stop_ns) / 1e6);
	if (who < WORKERS)
		world_step(s, who);
	else
		shell_wake(s);
}

/* After the end: late events change nothing, submissions are answered. */
static void
epilogue(struct sim *s)
{
	s->now_ns += rnd_in(s, 0, 100) * MS;
	shell_feed(s, (struct kn_event){ .type = KN_EV_TIMER });
	if (chance(s, 300))
		submit(s, (uint32_t)rnd_in(s, 0, s->c.task_max - 1));
	if (s->open_n != 0)
		sim_fail(s, "submitted after the end and not answered");
	shell_feed(s, (struct kn_event){ .type = KN_EV_STOP });
	s->now_ns += 1000 * MS;
}

void
driver_seed(struct sim *s, uint64_t seed, uint64_t steps)
{
	s->seed = seed;
	s->rng = seed * 0x2545f4914f6cdd1dull + 1;
	s->now_ns = s->epoch_ns = 1000 * MS;
	s->steps = s->episode = s->ring_n = 0;
	s->awake_ns = 0;
	while (s->steps < steps) {
		start_episode(s);
		while (!s->ended)
			advance(s);
		epilogue(s);
	}
}

void
driver_fini(struct sim *s)
{
	free(s->storage);
	free(s->out);
	s->storage = NULL;
	s->out = NULL;
}
