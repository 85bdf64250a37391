/* tests/sim/world.c: workers as they may be. Each has one next moment at which it does
 * the next thing; what it does is up to what it is like (chosen at launch) and its step
 * count. Nothing here calls the core. */
#include <string.h>

#include "tests/sim/sim.h"

static uint64_t
at_step(struct sim *s, uint32_t in_1000)
{
	return chance(s, in_1000) ? rnd_in(s, 1, 30) : NEVER;
}

static void
character(struct sim *s, struct world_worker *k)
{
	uint32_t e = s->evil;

	k->claim_ns = rnd_in(s, 1, 200) * 1000;
	k->kills_needed = 1;
	k->crash_at = k->freeze_at = k->lie_at = NEVER;
	if (s->honest)
		return;
	if (chance(s, e))
		k->boot = (enum boot)rnd_in(s, 1, 3);
	if (chance(s, e))
		k->stop_way = (enum stop_way)rnd_in(s, 1, STOP_WAYS - 1);
	if (chance(s, e))
		k->claim_ns = rnd_in(s, 1, 3 * (uint64_t)s->c.claim_ms) * MS;
	k->crash_at = at_step(s, e);
	k->freeze_at = at_step(s, e / 2);
	k->lie_at = at_step(s, e / 2);
	k->lie = (enum lie)rnd_in(s, 0, LIES - 1);
	k->lax = chance(s, e);
	k->deaf = chance(s, e);
	k->greedy = chance(s, e);
	k->hoarder = chance(s, e / 4);
	/* Not both: one that claims all and runs the last first can hide behind a first
	 * task without a limit. Each one's clock starts when the one before is
	 * answered. */
	k->picky = !k->greedy && chance(s, e / 2);
	k->lazy = chance(s, e / 4);
	k->mute = chance(s, e);
	k->amnesic = s->c.calls && chance(s, e);
	if (chance(s, e))
		k->kills_needed = 2;
	if (s->secretive) {
		k->amnesic = k->greedy = k->picky = true;
		k->lazy = k->hoarder = false;
		k->crash_at = rnd_in(s, 4, 7);
	}
}

void
world_spawn(struct sim *s, uint32_t w, uint32_t incarnation)
{
	struct world_worker *k = &s->w[w];

	memset(k, 0, sizeof *k);
	k->alive = true;
	k->incarnation = incarnation;
	k->phase = PHASE_BOOT;
	k->exit_ns = NEVER;
	k->pong_ns = NEVER;
	character(s, k);
	uint64_t start = s->c.start_ms * MS;
	if (k->boot == BOOT_OK)
		k->next_ns = s->now_ns + rnd_in(s, start / 100, start / 2);
	else if (k->boot == BOOT_LATE)
		k->next_ns = s->now_ns + rnd_in(s, start, start * 2);
	else if (k->boot == BOOT_DIES)
		k->next_ns = s->now_ns + rnd_in(s, 1, start);
	else
		k->next_ns = NEVER;
}

/* Something for the shell to see; it looks a little later. */
void
world_ring(struct sim *s)
{
	uint64_t at = s->now_ns + rnd_in(s, 0, s->read_us) * 1000;

	if (at < s->wake_ns)
		s->wake_ns = at;
}

void
world_die(struct sim *s, uint32_t w)
{
	struct world_worker *k = &s->w[w];

	if (!k->alive)
		return;
	if (k->phase == PHASE_RUN)
		oracle_ran(s, w, k->run_task, s->now_ns - k->true_begun_ns);
	k->alive = false;
	k->reap = true;
	k->frozen = false;
	k->next_ns = NEVER;
	k->exit_ns = NEVER;
	world_ring(s);
}

void
world_kill(struct sim *s, uint32_t w)
{
	struct world_worker *k = &s->w[w];

	if (!k->alive)
		return;
	if (k->kills_needed > 1) {
		k->kills_needed--;
		return;
	}
	uint64_t at = s->now_ns + rnd_in(s, 0, 5000) * 1000;
	if (at < k->exit_ns)
		k->exit_ns = at;
}

void
world_stop(struct sim *s, uint32_t w)
{
	s->w[w].stop_asked = true;
	world_wake(s, w);
}

void
world_wake(struct sim *s, uint32_t w)
{
	struct world_worker *k = &s->w[w];

	for (uint32_t v = 0; s->c.bank_size > 1 && v < s->worker_n; v++) {
		struct world_worker *o = &s->w[v];
		if (v != w && sim_same_bank(s, v, w) && o->alive && !o->frozen &&
		    o->phase == PHASE_IDLE && o->next_ns == NEVER && !o->obeyed &&
		    chance(s, 500))
			o->next_ns = s->now_ns + o->claim_ns;
	}
	if (k->alive && !k->frozen && k->phase == PHASE_IDLE && k->next_ns == NEVER)
		k->next_ns = s->now_ns + k->claim_ns;
}

struct slot *
world_slot(struct sim *s, uint32_t w, uint32_t task, uint32_t gen)
{
	struct world_worker *k = &s->w[w];

	for (uint32_t i = 0; i < k->slot_n; i++) {
		if (k->slot[i].task == task && k->slot[i].gen == gen)
			return &k->slot[i];
	}
	return NULL;
}

void
world_drop(struct sim *s, uint32_t w, struct slot *slot)
{
	struct world_worker *k = &s->w[w];
	uint32_t i = (uint32_t)(slot - k->slot);

	memmove(slot, slot + 1, (k->slot_n - i - 1) * sizeof *slot);
	k->slot_n--;
}

void
world_kill_task(struct sim *s, uint32_t w, uint32_t task, uint32_t gen)
{
	struct world_worker *k = &s->w[w];

	for (uint32_t i = 0; s->c.calls && !k->deaf && i < k->todo_n; i++) {
		if (k->todo[i].task == task && k->todo[i].gen == gen)
			k->todo[i].aborted = true;
	}

	if (!k->alive || k->frozen || k->deaf || k->phase < PHASE_CLAIMED ||
	    k->phase == PHASE_TEARDOWN || k->run_task != task || k->run_gen != gen)
		return;
	k->kill_asked = true;
	uint64_t at = s->now_ns + rnd_in(s, 100, 3000) * 1000;
	if (at < k->next_ns)
		k->next_ns = at;
}

void
world_give(
    struct sim *s, struct world_worker *k, uint32_t task, uint32_t gen, bool infra)
{
	if (k->ret_n == RETURNS)
		return;
	uint64_t memory =
	    s->c.recycle_memory == 0 ? 0 : rnd_in(s, 0, s->c.recycle_memory * 5 / 4);
	k->ret[k->ret_n++] =
	    (struct ret){ .task = task, .gen = gen, .memory = memory, .infra = infra };
	world_ring(s);
}

struct slot *
world_pending(struct world_worker *k)
{
	struct slot *found = NULL;

	for (uint32_t i = 0; i < k->slot_n; i++) {
		if (k->slot[i].state != SLOT_PENDING || k->slot[i].waits)
			continue;
		found = &k->slot[i];
		if (!k->picky)
			break;
	}
	return found;
}

static void
obey_stop(struct sim *s, struct world_worker *k)
{
	uint64_t exit_ns = s->now_ns + rnd_in(s, 10, s->c.grace_ms * 500ull) * 1000;

	k->stop_asked = false;
	k->obeyed = true;
	k->next_ns = NEVER;
	/* It may go on, and talk. */
	if (k->stop_way == STOP_NO_ACK || k->stop_way == STOP_ACK_STAYS)
		k->next_ns = s->now_ns + rnd_in(s, 1, 40) * MS;
	if (k->stop_way == STOP_NO_ACK)
		return;
	if (k->stop_way != STOP_EXITS)
		k->ack = true;
	if (k->stop_way != STOP_ACK_STAYS)
		k->exit_ns = exit_ns;
	world_ring(s);
}

/* After it was told to stop. */
static void
talk(struct sim *s, struct world_worker *k)
{
	k->next_ns = s->now_ns + rnd_in(s, 1, 40) * MS;
	switch (rnd_in(s, 0, 4)) {
	case 0:
		k->ack = true;
		break;
	case 1:
		k->bad = true;
		break;
	case 2:
		world_give(s, k, (uint32_t)rnd_in(s, 0, s->c.task_max - 1),
		    (uint32_t)rnd(s), false);
		break;
	default:
		return;
	}
	world_ring(s);
}

/* Of its own lane, or of another's of its bank. */
static struct slot *
in_bank(struct sim *s, uint32_t w, struct slot *own)
{
	uint32_t first, n = s->c.bank_size;

	if (n < 2 || s->w[w].lazy || (own != NULL && chance(s, 600)))
		return own;
	first = w / n * n;
	for (uint32_t i = 0; i < n; i++) {
		uint32_t v = first + (w - first + 1 + i) % n;
		struct slot *slot = v < s->worker_n ? world_pending(&s->w[v]) : NULL;
		if (slot != NULL)
			return slot;
	}
	return own;
}

static void
claim(struct sim *s, uint32_t w, struct slot *slot)
{
	struct world_worker *k = &s->w[w];

	slot->state = SLOT_CLAIMED;
	slot->by = w;
	slot->order = ++s->claims;
	if (k->todo_n < SLOTS)
		k->todo[k->todo_n++] = *slot;
	oracle_claims(s, w, slot->task, slot->gen);
}

/* Several at once: a bad habit, but not where tasks are calls. */
static void
claim_more(struct sim *s, uint32_t w)
{
	struct world_worker *k = &s->w[w];
	uint64_t most = k->greedy ? SLOTS : s->c.calls ? rnd_in(s, 0, 8) : 0;

	for (uint32_t i = 0; i < k->slot_n && most > 0; i++) {
		if (k->slot[i].state != SLOT_PENDING || k->slot[i].waits)
			continue;
		claim(s, w, &k->slot[i]);
		most--;
	}
}

static void
idle_step(struct sim *s, uint32_t w)
{
	struct world_worker *k = &s->w[w];
	struct slot *slot = world_pending(k);

	k->next_ns = NEVER;
	if (k->obeyed) {
		talk(s, k);
		return;
	}
	if (k->todo_n == 0) {
		if (k->stop_asked) {
			obey_stop(s, k);
			return;
		}
		slot = in_bank(s, w, slot);
		if (slot == NULL || k->lazy)
			return;
		claim(s, w, slot);
		claim_more(s, w);
	}
	/* Whoever runs calls out of turn says so, or not. */
	uint32_t at =
	    s->c.calls && k->picky ? (uint32_t)rnd_in(s, 0, k->todo_n - 1) : 0;
	k->run_task = k->todo[at].task;
	k->run_gen = k->todo[at].gen;
	k->kill_asked = k->todo[at].aborted;
	k->todo_n--;
	memmove(k->todo + at, k->todo + at + 1, (k->todo_n - at) * sizeof k->todo[0]);
	k->phase = PHASE_CLAIMED;
	k->next_ns = k->hoarder ? NEVER : s->now_ns + rnd_in(s, 50, 500) * 1000;
}

/* Nothing of the task runs any more, and what it left takes its time. */
static bool
take_down(struct sim *s, uint32_t w)
{
	struct world_worker *k = &s->w[w];
	uint64_t most_ns = s->c.teardown_ms * MS;

	if (most_ns == 0)
		most_ns = s->c.hard_slack_ms * MS / 2; /* nobody waits longer */
	if (!chance(s, s->tough))
		return false;
	if (!s->honest)
		most_ns *= 2;
	oracle_ran(s, w, k->run_task, s->now_ns - k->true_begun_ns);
	k->phase = PHASE_TEARDOWN;
	if (!k->mute) {
		k->over_task = k->run_task;
		k->over_gen = k->run_gen;
	}
	k->next_ns = s->now_ns + rnd_in(s, 0, most_ns);
	if (chance(s, s->evil) && k->exit_ns == NEVER)
		k->exit_ns = s->now_ns + rnd_in(s, 0, 2 * most_ns);
	return true;
}

static void
end_cell(struct sim *s, uint32_t w, bool infra)
{
	struct world_worker *k = &s->w[w];

	if (k->phase == PHASE_RUN && !s->c.calls && take_down(s, w))
		return;
	if (k->phase == PHASE_RUN)
		oracle_ran(s, w, k->run_task, s->now_ns - k->true_begun_ns);
	k->phase = PHASE_IDLE;
	/* The word of a call that is answered stands until the next one begins. */
	if (!s->c.calls || k->todo_n == 0)
		k->begun_ns = 0;
	struct book_task *t = &s->t[k->run_task];
	if (infra && t->open && t->gen == k->run_gen && t->worker >= 0 &&
	    sim_same_bank(s, w, (uint32_t)t->worker))
		t->world_runs--; /* it never ran */
	world_give(s, k, k->run_task, k->run_gen, infra);
	k->next_ns = s->now_ns + k->claim_ns;
}

static void
begin_step(struct sim *s, uint32_t w)
{
	struct world_worker *k = &s->w[w];
	const struct book_task *t = &s->t[k->run_task];

	if (chance(s, s->infra)) {
		end_cell(s, w, true);
		return;
	}
	k->phase = PHASE_RUN;
	k->true_begun_ns = s->now_ns;
	k->begun_ns = s->now_ns;
	k->word_task = k->run_task;
	k->word_gen = k->run_gen;
	if (s->c.calls)
		oracle_begins(s, w, k->run_task, k->run_gen);
	if (k->amnesic)
		k->begun_ns = 0;
	if (k->lax && chance(s, 500))
		k->begun_ns = rnd_in(s, 1, 2 * s->now_ns);
	uint64_t work_ns = k->kill_asked ? 1000 : t->work_ns;
	uint64_t hard_ns = t->hard_ms * MS;
	if (s->c.calls) /* it knows no hard limit; honest ones keep within it */
		hard_ns = s->honest ? hard_ns * 3 / 4 : 0;
	if (!k->lax && hard_ns != 0 && work_ns > hard_ns)
		work_ns = hard_ns;
	k->next_ns = work_ns == NEVER ? NEVER : s->now_ns + work_ns;
	if (t->crashy && !s->honest)
		k->exit_ns = s->now_ns + rnd_in(s, 0, work_ns == NEVER ? MS : work_ns);
}

void
world_step(struct sim *s, uint32_t w)
{
	struct world_worker *k = &s->w[w];

	if (k->exit_ns <= s->now_ns) {
		world_die(s, w);
		return;
	}
	k->steps++;
	if (k->steps == k->crash_at) {
		world_die(s, w);
		return;
	}
	if (k->steps == k->freeze_at) {
		k->frozen = true;
		k->next_ns =
		    chance(s, 500) ? NEVER : s->now_ns + rnd_in(s, 1, 9000) * MS;
		return;
	}
	k->frozen = false;
	if (k->steps == k->lie_at) {
		world_lie(s, w);
		if (k->phase == PHASE_IDLE && k->begun_ns != 0) {
			k->next_ns = s->now_ns + rnd_in(s, 1, 300) * MS;
			return; /* a task is begun, it says, and claims none */
		}
	}
	switch (k->phase) {
	case PHASE_NONE:
		k->next_ns = NEVER;
		break;
	case PHASE_BOOT:
		if (k->boot == BOOT_DIES) {
			world_die(s, w);
			break;
		}
		if (k->steps == k->lie_at) { /* lied first, is ready later */
			k->next_ns = s->now_ns + rnd_in(s, 1, 10) * MS;
			break;
		}
		k->phase = PHASE_IDLE;
		k->pong = true;
		k->next_ns = NEVER;
		world_wake(s, w);
		world_ring(s);
		break;
	case PHASE_IDLE:
		idle_step(s, w);
		break;
	case PHASE_CLAIMED:
		begin_step(s, w);
		break;
	case PHASE_RUN:
	case PHASE_TEARDOWN:
		end_cell(s, w, false);
		break;
	}
}
