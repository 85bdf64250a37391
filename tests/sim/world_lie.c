/* tests/sim/world_lie.c: what workers of the simulated world say that is not so. */
#include "tests/sim/sim.h"

void
world_lie(struct sim *s, uint32_t w)
{
	struct world_worker *k = &s->w[w];
	uint32_t t = (uint32_t)rnd_in(s, 0, s->c.task_max - 1);
	const struct slot *slot;

	switch (k->lie) {
	case LIE_UNKNOWN:
		world_give(s, k, chance(s, 500) ? t : (uint32_t)rnd(s),
		    (uint32_t)rnd(s), false);
		break;
	case LIE_STALE:
		world_give(s, k, t, s->t[t].gen - 1, chance(s, 500));
		break;
	case LIE_TWICE:
		if (k->phase >= PHASE_CLAIMED) {
			world_give(s, k, k->run_task, k->run_gen, false);
			world_give(s, k, k->run_task, k->run_gen, chance(s, 500));
		}
		break;
	case LIE_UNCLAIMED:
		for (uint32_t i = 0; i < k->slot_n; i++) {
			if (k->slot[i].state == SLOT_PENDING)
				world_give(
				    s, k, k->slot[i].task, k->slot[i].gen, false);
		}
		break;
	case LIE_FOREIGN:
		if (s->t[t].worker != (int)w)
			world_give(s, k, t, s->t[t].gen, false);
		break;
	case LIE_FIELD:
		k->bad = true;
		world_ring(s);
		break;
	case LIE_ACK:
		k->ack = true;
		world_ring(s);
		break;
	case LIE_BEGUN:
		if (k->phase >= PHASE_CLAIMED) {
			k->amnesic = s->c.calls; /* from now on */
			break;
		}
		slot = world_pending(k);
		k->word_task = slot != NULL ? slot->task : t;
		k->word_gen = slot != NULL ? slot->gen : s->t[t].gen;
		k->begun_ns = rnd_in(s, 0, s->now_ns * 2);
		world_ring(s);
		break;
	case LIE_OVER:
		k->over_task = k->phase == PHASE_RUN ? k->run_task : t;
		k->over_gen = k->phase == PHASE_RUN ? k->run_gen : s->t[t].gen;
		if (k->phase == PHASE_RUN && chance(s, 700))
			k->next_ns = NEVER;
		world_ring(s);
		break;
	case LIES:
		break;
	}
}
