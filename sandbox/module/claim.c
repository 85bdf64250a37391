/* sandbox/module/claim.c: calls from a submit bank that other workers claim from too.
 *
 * The PING comes in the lane of our own, and what is answered goes there always. From
 * then on calls are claimed from the bank (ipc/claim.h): short ones several at a time,
 * long ones singly, and never before all that was claimed has been run, so that what
 * waits here waits for nobody else's sake.
 */
#include <errno.h>
#include <unistd.h>

#include "ipc/clock.h"
#include "ipc/control.h"
#include "ipc/err.h"
#include "ipc/park.h"
#include "sandbox/module/module.h"

enum {
	BUSY_PAUSES = 64,     /* after a look that others were in the way of, */
	BUSY_LOOKS = 8,	      /* so often; */
	BUSY_NS = 500 * 1000, /* then that long asleep, longer each time, up to */
	BUSY_MOST = 4,	      /* so many times as long */
	SPIN_LOOKS = 16,      /* before the clock is looked at */
};

static struct kn_map bank_map;
static struct kn_claimant claimant;
static struct kn_claimed got[KN_SLOTS];

int
kn_mod_share(struct kn_mod *m, struct kn_err *e)
{
	const struct kn_resident *r = &m->record;
	const struct kn_layout *l = &r->layout;
	enum kn_claim_how how = kn_claim_how_of((enum kn_claim_how)r->claim);
	struct kn_bank bank;
	int sealed = 0;

	if (!l->claimant_n)
		return 0;
	if (kn_arena_map_bank(KN_RESIDENT_ARENA, KN_RESIDENT_REGION, l, r->pool_id,
		m->worker, how == KN_CLAIM_CAS_MASK, &bank_map, &sealed, e) < 0)
		return -1;
	if (!sealed && r->need_mseal)
		return kn_err_set(e, KN_EK_HOST,
		    "this kernel has no mseal, and the submit region has to be "
		    "sealed");
	kn_bank_at(bank_map.p, l, m->worker / l->bank_claimants, &bank);
	if (kn_claimant_init(&claimant, &bank, m->worker % l->bank_claimants, how,
		r->region_lanes) < 0)
		return kn_err_set(e, KN_EK_PROTOCOL,
		    "%u claimants cannot work with regions of %u", bank.claimant_n,
		    r->region_lanes);
	m->claimant = &claimant;
	return 0;
}

/* The bank is where arguments lie, and where we are told to give up. */
static void
move_in(struct kn_mod *m)
{
	m->area = claimant.bank.area;
	m->area_bytes = claimant.bank.area_bytes;
	m->abort_words = claimant.bank.head->abort;
}

static void
run(struct kn_mod *m, int n)
{
	uint64_t now = kn_clock_now();

	for (int i = 0; i < n; i++)
		now = kn_mod_serve_one(m, &got[i].as_slot, now);
	kn_control_end(m->slice.control);
}

/* Others were at it: look again, and then again after a while, since one of them may
 * have withdrawn for another that did not take it either. */
static void
wait_for_others(struct kn_mod *m, unsigned looks)
{
	struct kn_control *c = m->slice.control;
	unsigned times = looks - BUSY_LOOKS;
	uint32_t seen;

	if (looks < BUSY_LOOKS) {
		for (int i = 0; i < BUSY_PAUSES; i++)
			kn_mod_pause();
		return;
	}
	seen = kn_park_begin(c);
	if (kn_control_stopping(c))
		kn_park_end(c);
	else
		(void)kn_park_for(c, seen,
		    (uint64_t)BUSY_NS * (times < BUSY_MOST ? times + 1 : BUSY_MOST));
}

/* A claim, made again for a little while as long as there is nothing. */
static int
spin(struct kn_mod *m, int max)
{
	uint64_t until = kn_clock_now() + 1000ull * m->record.spin_us;
	int n;

	do {
		for (int i = 0; i < SPIN_LOOKS; i++) {
			n = kn_claim(&claimant, got, max);
			if (n != 0)
				return n;
			kn_mod_pause();
		}
	} while (kn_clock_now() < until && !kn_control_stopping(m->slice.control));
	return 0;
}

static int
look(struct kn_mod *m)
{
	int max = (int)kn_mod_batch_size(m);
	int n = kn_claim(&claimant, got, max);

	return n == 0 && m->record.spin_us && !m->cold ? spin(m, max) : n;
}

/* Nothing there: say so, look once more, sleep. What that look found, if anything. */
static int
sleep_unless_news(struct kn_mod *m)
{
	struct kn_control *c = m->slice.control;
	uint32_t seen = kn_park_begin(c);
	int n = kn_claim(&claimant, got, (int)kn_mod_batch_size(m));

	if (n != 0 || kn_control_stopping(c))
		kn_park_end(c);
	else
		kn_mod_park(m, seen);
	return n;
}

void
kn_mod_serve_shared(struct kn_mod *m)
{
	struct kn_control *c = m->slice.control;
	unsigned busy = 0;

	move_in(m);
	while (!kn_control_stopping(c)) {
		int n = look(m);

		if (n == 0)
			n = sleep_unless_news(m);
		if (n > 0)
			run(m, n);
		if (n == KN_CLAIM_BUSY)
			wait_for_others(m, busy++);
		else
			busy = 0;
	}
}
