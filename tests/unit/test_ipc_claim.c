/* tests/unit/test_ipc_claim.c: claimants of a shared bank, step by step: each task
 * once, whoever stops or dies at whatever step. The lists of widths are those of the
 * seeds' lock-steal and tx-steal tests.
 */
#include "tests/unit/claim_steps.h"

static const enum kn_claim_how hows[] = { KN_CLAIM_DEKKER, KN_CLAIM_CAS_MASK };
#define EACH_HOW(h) \
	size_t h = 0; \
	h < sizeof hows / sizeof *hows; \
	h++

/* ---- widths ---- */

static void
the_default_width_leaves_a_spare_region(void **state)
{
	(void)state;
	for (uint32_t n = 1; n <= KN_CLAIMANTS; n++) {
		uint32_t w = kn_claim_width(n, 0);

		assert_true(KN_SLOTS / w >= n + 1);
		assert_true(w == KN_SLOTS || KN_SLOTS / (2 * w) < n + 1);
		assert_int_equal(kn_claim_width(n, 32), w); /* clamped */
		assert_int_equal(kn_claim_width(n, 1), 1);  /* smaller is kept */
		assert_int_equal(kn_claim_width(n, 3), 0);
	}
	assert_int_equal(kn_claim_width(3, 0), 8);
	assert_int_equal(kn_claim_width(7, 0), 4);
	assert_int_equal(kn_claim_width(15, 0), 2);
	assert_int_equal(kn_claim_width(31, 0), 1);
}

static void
too_few_regions_are_refused(void **state)
{
	struct kn_claimant k;
	struct kn_offer o;

	(void)state;
	open_world(3, KN_CLAIM_DEKKER, 8, 1);
	assert_int_equal(kn_offer_init(&o, &W.bank, KN_CLAIM_DEKKER, 16), -1);
	assert_int_equal(kn_offer_init(&o, &W.bank, KN_CLAIM_DEKKER, 6), -1);
	assert_int_equal(kn_offer_init(&o, &W.bank, KN_CLAIM_DEKKER, 0), -1);
	assert_int_equal(kn_offer_init(&o, &W.bank, KN_CLAIM_DEKKER, 64), -1);
	assert_int_equal(kn_claimant_init(&k, &W.bank, 0, KN_CLAIM_DEKKER, 16), -1);
	assert_int_equal(kn_claimant_init(&k, &W.bank, 3, KN_CLAIM_DEKKER, 8), -1);
	/* losers of an exchange move on: no such need there */
	assert_int_equal(kn_claimant_init(&k, &W.bank, 0, KN_CLAIM_CAS_MASK, 16), 0);
	close_world();
}

static void
disciplines_have_names(void **state)
{
	(void)state;
	for (int i = 0; i < KN_CLAIM_HOW_N; i++)
		assert_int_equal(kn_claim_how_parse(kn_claim_how_name(i)), i);
	assert_int_equal(kn_claim_how_parse("cas"), -1);
	assert_int_not_equal(kn_claim_how_of(KN_CLAIM_AUTO), KN_CLAIM_AUTO);
}

/* ---- exactly once ---- */

static void
each_task_is_run_exactly_once(void **state)
{
	static const struct {
		uint32_t n, width;
	} list[] = { { 2, 8 }, { 3, 8 }, { 4, 4 }, { 2, 16 }, { 1, 16 }, { 1, 32 },
		{ 7, 4 }, { 8, 2 }, { 15, 2 }, { 16, 1 }, { 31, 1 } };

	(void)state;
	for (EACH_HOW(h))
		for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
			open_world(list[i].n, hows[h], list[i].width, 500);
			for (uint32_t c = 0; c < W.n; c++)
				W.who[c].max = c % 3 == 1 ? 1 : BATCH;
			run_to_the_end();
			nothing_is_left();
			assert_int_equal(W.lost, 0);
			close_world();
		}
}

static void
one_to_31_claimants_share_the_work(void **state)
{
	(void)state;
	for (EACH_HOW(h))
		for (uint32_t n = 1; n <= KN_CLAIMANTS; n++) {
			open_world(n, hows[h], kn_claim_width(n, 0), 20 * n);
			run_to_the_end();
			nothing_is_left();
			for (uint32_t c = 0; c < n; c++)
				assert_true(W.who[c].k.claims > 0);
			close_world();
		}
}

static void
a_claim_takes_no_more_than_it_asks_for_and_the_oldest_first(void **state)
{
	struct kn_claimed got[KN_SLOTS];
	struct kn_claimant *k = &W.who[0].k;
	uint32_t next = 0;

	(void)state;
	for (EACH_HOW(h)) {
		open_world(1, hows[h], 8, 64);
		offer(64);
		assert_int_equal(W.o.offered, UINT32_MAX);
		assert_int_equal(kn_claim(k, got, 0), 0);
		assert_int_equal(kn_claim(k, got, 1), 1);
		assert_int_equal(kn_claim(k, got, 3), 3);
		for (int round = 0; round < 4; round++)
			assert_true(kn_claim(k, got, KN_SLOTS) <= 8);
		while (kn_claim(k, got, KN_SLOTS) > 0)
			;
		assert_int_equal(poll_all(), 32);
		/* slots reused: within a region they come in the order they were put */
		offer(32);
		for (int n; (n = kn_claim(k, got, KN_SLOTS)) > 0;)
			for (int i = 1; i < n; i++)
				assert_true(got[i].head.task > got[i - 1].head.task);
		next = W.next;
		assert_int_equal(next, 64);
		close_world();
	}
}

static void
an_empty_bank_is_looked_at_once(void **state)
{
	struct kn_claimed got[KN_SLOTS];
	struct kn_claimant *k = &W.who[1].k;

	(void)state;
	open_world(3, KN_CLAIM_DEKKER, 8, 4);
	assert_int_equal(kn_claim(k, got, 8), 0);
	assert_true(k->empty && k->empty_at == 0);
	/* Nothing of the others is read again until something is published: */
	kn_bank_own(&W.bank, 0)->word = kn_word(0, 1);
	assert_int_equal(kn_claim(k, got, 8), 0);
	kn_bank_own(&W.bank, 0)->word = 0;
	offer(1);
	assert_int_equal(kn_claim(k, got, 8), 1);
	close_world();
}

/* Toggles all round, many times over, next to the wraps of all counts. */
static void
counts_wrap_without_a_trace(void **state)
{
	(void)state;
	for (EACH_HOW(h)) {
		open_world(3, hows[h], 8, 1500);
		W.o.published = W.bank.head->published = 0xfffffff0ull << 32;
		W.bank.owners->mask = 0xfffffff0ull << 32;
		W.o.seq = UINT32_MAX - 7u;
		run_to_the_end();
		nothing_is_left();
		assert_true(W.o.published >> 32 < 0xf0000000u);
		close_world();
	}
}

/* ---- one who stops ---- */

static void
stalled_claimants_do_not_wedge_the_rest(void **state)
{
	static const struct {
		uint32_t n, stalled;
	} list[] = { { 4, 1 }, { 4, 2 }, { 3, 2 }, { 31, 5 }, { 2, 1 } };

	(void)state;
	for (EACH_HOW(h))
		for (size_t i = 0; i < sizeof list / sizeof *list; i++)
			for (uint32_t at = 1; at < 60; at += 3) {
				uint32_t n = list[i].n, held = 0, left;

				open_world(n, hows[h], kn_claim_width(n, 0), 100);
				offer(KN_SLOTS);
				/* juniors stall as well as seniors */
				for (uint32_t c = 0; c < list[i].stalled; c++) {
					uint32_t id = at % 2 ? c : n - 1 - c;

					for (uint32_t k = 0; k < at; k++)
						step(id);
					W.who[id].health = STOPPED;
				}
				run_until_quiet();
				/* Nothing waits but what a stalled one has, or keeps.
				 */
				for (uint32_t c = 0; c < n; c++)
					if (W.who[c].health == STOPPED)
						held += W.o.held_n[c];
				left = W.task_n - W.settled;
				assert_true(left <= held + list[i].stalled * W.width);
				/* It goes on where it was. */
				for (uint32_t c = 0; c < n; c++)
					W.who[c].health = WELL;
				run_to_the_end();
				nothing_is_left();
				close_world();
			}
}

static void
who_keeps_a_region_is_named(void **state)
{
	(void)state;
	for (EACH_HOW(h)) {
		int slot;

		open_world(3, hows[h], 8, 1);
		slot = kn_offer_slot(&W.o);
		offer(1);
		assert_int_equal(kn_offer_stuck(&W.o, 1000, 500), 0);
		while (!W.who[2].at || strcmp(W.who[2].at, "wanted") != 0)
			step(2);
		assert_int_equal(kn_offer_blockers(&W.o, slot), 1u << 2);
		assert_int_equal(kn_offer_stuck(&W.o, 2000, 500), 0);
		assert_int_equal(kn_offer_stuck(&W.o, 2499, 500), 0);
		assert_int_equal(kn_offer_stuck(&W.o, 2500, 500), 1u << 2);
		assert_int_equal(kn_offer_take_back(&W.o, slot),
		    hows[h] == KN_CLAIM_DEKKER ? KN_BACK_BUSY : KN_BACK_OURS);
		while (W.who[2].idle == 0 && W.who[2].answer_n == 0)
			step(2);
		assert_int_equal(kn_offer_blockers(&W.o, slot), 0);
		close_world();
	}
}

static void
a_senior_waits_for_a_stopped_junior_only_so_long(void **state)
{
	uint32_t on = 9;

	(void)state;
	open_world(3, KN_CLAIM_DEKKER, 8, 1);
	offer(1);
	while (!W.who[2].at || strcmp(W.who[2].at, "wanted") != 0)
		step(2);
	while (W.who[1].idle == 0)
		step(1); /* comes to an end */
	assert_true(W.who[1].k.stalls > 0);
	assert_true(kn_offer_stalls(&W.o, 1, &on) > 0);
	assert_int_equal(on, 2);
	assert_int_equal(W.who[1].k.claims, 0);
	/* and the junior, woken up, takes it */
	while (W.who[2].answer_n == 0)
		step(2);
	close_world();
}

/* ---- death ---- */

/* One of three is killed after so many steps; others are at work as well. */
static void
die_at(enum kn_claim_how how, uint32_t n, uint32_t who, uint32_t at, bool mixed)
{
	uint32_t kept, left;

	open_world(n, how, kn_claim_width(n, 0), 48);
	offer(KN_SLOTS);
	for (uint32_t k = 0; k < at; k++) {
		step(who);
		if (mixed)
			step(rnd() % n);
	}
	kill_it(who);
	/* Nobody has noticed: the others go on at once. */
	run_until_quiet();
	kept = W.o.held_n[who] + W.width;
	left = W.task_n - W.settled;
	assert_true(left <= kept);
	/* Noticed: what it kept is to be had, without it. */
	bury(who);
	assert_int_equal(W.o.live & 1u << who, 0);
	run_to_the_end();
	nothing_is_left();
	assert_true(W.lost <= 1);
	close_world();
}

static void
death_at_every_step_loses_nothing_and_runs_nothing_twice(void **state)
{
	(void)state;
	for (EACH_HOW(h))
		for (uint32_t who = 0; who < 3; who++)
			for (uint32_t at = 0; at < 70; at++) {
				die_at(hows[h], 3, who, at, false);
				die_at(hows[h], 3, who, at, true);
			}
}

static void
a_replacement_goes_on_at_the_same_id(void **state)
{
	(void)state;
	for (EACH_HOW(h))
		for (uint32_t at = 0; at < 60; at++) {
			uint32_t claims = 0;

			open_world(3, hows[h], 8, 100);
			offer(KN_SLOTS);
			for (uint32_t k = 0; k < at; k++)
				step(1);
			kill_it(1);
			bury(1);
			spawn(1);
			assert_int_equal(
			    kn_word_want(kn_bank_own(&W.bank, 1)->word), 0);
			run_to_the_end();
			nothing_is_left();
			claims = (uint32_t)W.who[1].k.claims;
			assert_true(claims > 0);
			close_world();
		}
}

static void
a_dead_seniors_want_counts_until_its_burial(void **state)
{
	struct kn_claimed got[KN_SLOTS];
	uint64_t word;

	(void)state;
	open_world(3, KN_CLAIM_DEKKER, 8, 1);
	offer(1);
	while (!W.who[0].at || strcmp(W.who[0].at, "wanted") != 0)
		step(0);
	kill_it(0);
	assert_int_equal(kn_claim(&W.who[1].k, got, 8), KN_CLAIM_BUSY);
	word = kn_bank_own(&W.bank, 0)->word;
	assert_int_equal(bury(0), 0);
	assert_int_equal(kn_bank_own(&W.bank, 0)->word, word); /* left as it is */
	assert_int_equal(kn_claim(&W.who[1].k, got, 8), 1);
	close_world();
}

/* Killed and replaced all the time, at random steps, several of them. */
static void
a_storm_of_deaths(void **state)
{
	uint32_t deaths = 0;

	(void)state;
	for (EACH_HOW(h))
		for (uint32_t n = 2; n <= KN_CLAIMANTS; n += n < 4 ? 1 : 9) {
			open_world(n, hows[h], kn_claim_width(n, 0), 1500);
			while (W.settled < W.task_n) {
				uint32_t c = rnd() % n;

				run_turns(rnd() % 400, 400);
				if (W.who[c].health == WELL) {
					kill_it(c);
					deaths++;
				} else {
					bury(c);
					spawn(c);
				}
			}
			nothing_is_left();
			close_world();
		}
	assert_true(deaths > 200);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_default_width_leaves_a_spare_region),
		cmocka_unit_test(too_few_regions_are_refused),
		cmocka_unit_test(disciplines_have_names),
		cmocka_unit_test(each_task_is_run_exactly_once),
		cmocka_unit_test(one_to_31_claimants_share_the_work),
		cmocka_unit_test(
		    a_claim_takes_no_more_than_it_asks_for_and_the_oldest_first),
		cmocka_unit_test(an_empty_bank_is_looked_at_once),
		cmocka_unit_test(counts_wrap_without_a_trace),
		cmocka_unit_test(stalled_claimants_do_not_wedge_the_rest),
		cmocka_unit_test(who_keeps_a_region_is_named),
		cmocka_unit_test(a_senior_waits_for_a_stopped_junior_only_so_long),
		cmocka_unit_test(
		    death_at_every_step_loses_nothing_and_runs_nothing_twice),
		cmocka_unit_test(a_replacement_goes_on_at_the_same_id),
		cmocka_unit_test(a_dead_seniors_want_counts_until_its_burial),
		cmocka_unit_test(a_storm_of_deaths),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
