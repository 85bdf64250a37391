/* tests/unit/test_ipc_claim_lies.c: a claimant that stores anything in all it may
 * write. The others lose nothing and are not blamed, and it is named. Step by step, as
 * in test_ipc_claim.c.
 */
#include "tests/unit/claim_steps.h"

/* ---- one lie at a time ---- */

static void
an_ack_of_a_slot_that_was_never_offered(void **state)
{
	struct kn_held left[KN_HELD_MAX];

	(void)state;
	open_world(3, KN_CLAIM_DEKKER, 8, 4);
	ack_by_hand(1, 9, 1);
	poll_all();
	assert_int_equal(W.o.liars, 1u << 1);
	assert_int_equal(W.o.lie[1], KN_LIE_ACK);
	assert_non_null(strstr(kn_lie_name(W.o.lie[1]), "ack"));
	ack_by_hand(1, 9, 2); /* its last word; who follows it is no liar */
	assert_int_equal(kn_offer_bury(&W.o, 1, left), 0);
	assert_int_equal(W.o.liars, 0);
	close_world();
}

static void
an_ack_that_names_another_publication(void **state)
{
	struct kn_claimed got[KN_SLOTS];
	int slot;

	(void)state;
	open_world(3, KN_CLAIM_DEKKER, 8, 4);
	slot = one_offer();
	ack_by_hand(1, slot, 77);
	poll_all();
	assert_int_equal(W.o.liars, 1u << 1);
	assert_int_equal(W.o.lie[1], KN_LIE_TAKEN);
	/* The toggle is made up for: the task is pending, and another takes it. */
	assert_int_equal(kn_claim(&W.who[2].k, got, 8), 1);
	assert_int_equal(poll_all(), 1);
	assert_int_equal(W.o.liars, 1u << 1);
	close_world();
}

/* It hides from the others what it acks; not beyond the next look at it. */
static void
an_ack_of_what_another_has_taken(void **state)
{
	struct kn_claimed got[KN_SLOTS];
	int slot;

	(void)state;
	open_world(3, KN_CLAIM_DEKKER, 8, 1);
	W.liars = true;
	slot = one_offer();
	assert_int_equal(kn_claim(&W.who[2].k, got, 8), 1);
	assert_int_equal(poll_all(), 1);
	ack_by_hand(1, slot, got[0].head.seq);
	/* to the others it looks pending now; who had it is not fooled */
	assert_int_equal(kn_claim(&W.who[2].k, got, 8), KN_CLAIM_BUSY);
	assert_int_equal(W.who[2].k.stale, 1);
	poll_all();
	assert_int_equal(W.o.again, 1);
	assert_int_equal(kn_claim(&W.who[0].k, got, 8), 0);
	/* the answer is the first one's to give */
	assert_int_equal(kn_offer_answer(&W.o, 1, 0, 1), KN_ANSWER_DROP);
	assert_int_equal(kn_offer_answer(&W.o, 2, 0, 1), KN_ANSWER_ACCEPT);
	assert_int_equal(kn_offer_answer(&W.o, 2, 0, 1), KN_ANSWER_LIE);
	assert_int_equal(W.o.liars, 0);
	/* a second time is a lie */
	own(1)->word ^= 1u << slot;
	poll_all();
	assert_int_equal(W.o.liars, 1u << 1);
	close_world();
}

/* Acked by a liar in the middle of another's claim; then the liar dies. */
static void
a_task_that_was_taken_twice_is_answered_once(void **state)
{
	(void)state;
	for (int liar_dies = 0; liar_dies < 2; liar_dies++) {
		int slot;

		open_world(3, KN_CLAIM_DEKKER, 8, 1);
		W.liars = true;
		slot = one_offer();
		while (!W.who[2].at || strcmp(W.who[2].at, "noted") != 0)
			step(2);
		ack_by_hand(1, slot, W.o.now[slot].seq);
		poll_all();
		while (W.who[2].answer_n == 0)
			step(2);
		poll_all();
		assert_int_equal(W.o.liars, 0);
		assert_int_equal(W.o.again, 1);
		if (liar_dies) {
			/* the other one's answer is to come, and counts */
			kill_it(1);
			assert_int_equal(bury(1), 0);
			drain(2);
			assert_int_equal(W.settled, 1);
		} else {
			drain(2);
			assert_int_equal(W.dropped, 1);
			assert_int_equal(
			    kn_offer_answer(&W.o, 1, 0, 1), KN_ANSWER_ACCEPT);
		}
		close_world();
	}
}

/* An ack of what another is copying this moment: the slot is retired, by the looks of
 * it, and filled again. (The supervisor waits until nobody is in the region; here it
 * has not seen that.) */
static void
a_slot_that_is_filled_under_a_copy_is_not_mixed_up(void **state)
{
	static const char *const during[] = { "looked again", "copied" };

	(void)state;
	for (int i = 0; i < 2; i++) {
		int slot;

		open_world(3, KN_CLAIM_DEKKER, 8, 2);
		W.liars = true;
		slot = one_offer();
		while (!W.who[2].at || strcmp(W.who[2].at, during[i]) != 0)
			step(2);
		ack_by_hand(1, slot, W.o.now[slot].seq);
		poll_all();
		assert_int_equal(W.o.offered, 0);
		assert_int_not_equal(kn_offer_slot(&W.o), slot);
		W.o.wanted = 0;
		W.o.cursor = (unsigned)slot;
		assert_int_equal(one_offer(), slot);
		/* Before the copy began: the new one is what it copies, and takes. */
		while (W.who[2].idle + W.who[2].k.claims == 0)
			step(2);
		assert_int_equal(W.who[2].k.stale, i);
		assert_int_equal(W.who[2].k.claims, !i);
		W.who[1].health = STOPPED;
		run_turns(2000, 2000);
		assert_int_equal(W.o.liars, 0);
		assert_int_equal(W.task[1].settled, 1);
		assert_int_equal(W.task[1].runs, 1);
		close_world();
	}
}

static void
answers_that_are_not_owed(void **state)
{
	struct kn_claimed got[KN_SLOTS];

	(void)state;
	open_world(3, KN_CLAIM_DEKKER, 8, 2);
	one_offer();
	/* offered, and not taken by it */
	assert_int_equal(kn_offer_answer(&W.o, 0, 0, 1), KN_ANSWER_LIE);
	assert_int_equal(kn_claim(&W.who[1].k, got, 8), 1);
	/* no poll in between: the ack is there before the answer */
	assert_int_equal(kn_offer_answer(&W.o, 0, 0, 1), KN_ANSWER_LIE);
	assert_int_equal(kn_offer_answer(&W.o, 1, 0, 2), KN_ANSWER_LIE);
	assert_int_equal(kn_offer_answer(&W.o, 1, 1, 1), KN_ANSWER_LIE);
	assert_int_equal(kn_offer_answer(&W.o, 1, 0, 1), KN_ANSWER_ACCEPT);
	assert_int_equal(kn_offer_answer(&W.o, 31, 0, 1), KN_ANSWER_LIE);
	close_world();
}

static void
areas_are_freed_by_their_owner_only(void **state)
{
	struct kn_claimed got[KN_SLOTS];
	uint64_t off;
	int areas = 0;

	(void)state;
	open_world(3, KN_CLAIM_DEKKER, 8, 16);
	W.next = 4; /* task 4 is big */
	one_offer();
	assert_int_equal(kn_claim(&W.who[1].k, got, 8), 1);
	assert_int_equal(got[0].head.area, 0);
	kn_claim_free(&W.who[2].k, 0); /* not its own */
	poll_all();
	assert_int_equal(W.o.liars, 1u << 2);
	assert_int_equal(W.o.lie[2], KN_LIE_FREED);
	assert_int_equal(kn_offer_area(&W.o, 64, &off), 1); /* 0 is in use */
	kn_payload_undo(&W.o.pay, 1);
	kn_claim_free(&W.who[1].k, 0);
	poll_all();
	assert_int_equal(kn_offer_area(&W.o, 64, &off), 0);
	kn_payload_undo(&W.o.pay, 0);
	/* and once more: it frees nothing */
	kn_claim_free(&W.who[1].k, 0);
	poll_all();
	assert_int_equal(W.o.liars, 1u << 1 | 1u << 2);
	assert_int_equal(kn_offer_answer(&W.o, 1, 4, 1), KN_ANSWER_ACCEPT);
	while (kn_offer_area(&W.o, 64, &off) >= 0)
		areas++;
	assert_int_equal(areas, KN_AREAS);
	close_world();
}

/* Areas of those who never free, who die, or from whom the task was taken back. */
static void
areas_come_back_however_a_task_ends(void **state)
{
	struct kn_claimed got[KN_SLOTS];
	uint64_t off;

	(void)state;
	open_world(2, KN_CLAIM_DEKKER, 8, TASKS_MAX);
	for (int round = 0; round < 200; round++) {
		int slot;

		W.next = 4;
		W.task[4].gen = (uint32_t)round;
		slot = one_offer();
		if (round % 3 == 0) {
			assert_int_equal(kn_offer_take_back(&W.o, slot), KN_BACK_OURS);
		} else {
			assert_int_equal(kn_claim(&W.who[1].k, got, 8), 1);
			if (round % 2)
				kn_claim_free(&W.who[1].k, got[0].head.area);
			if (round % 3 == 1) {
				assert_int_equal(
				    kn_offer_answer(&W.o, 1, 4, (uint32_t)round + 1),
				    KN_ANSWER_ACCEPT);
			} else {
				kill_it(1);
				assert_int_equal(bury(1), 1);
				W.again_n = 0;
				spawn(1);
			}
		}
		poll_all();
		assert_int_equal(kn_offer_area(&W.o, AREA_BYTES, &off), 0);
		kn_payload_undo(&W.o.pay, 0);
	}
	assert_int_equal(W.o.liars, 0);
	close_world();
}

static void
hoarding(void **state)
{
	struct kn_claimed got[KN_SLOTS];
	uint32_t took = 0;

	(void)state;
	open_world(2, KN_CLAIM_DEKKER, 8, 200);
	for (int i = 0; i < 40 && !W.o.liars; i++) {
		int n;

		offer(8);
		while ((n = kn_claim(&W.who[0].k, got, 8)) > 0)
			took += (uint32_t)n;
		poll_all();
	}
	assert_int_equal(W.o.liars, 1);
	assert_int_equal(W.o.lie[0], KN_LIE_HOARD);
	assert_int_equal(W.o.held_n[0], KN_HELD_MAX);
	assert_true(took > KN_HELD_MAX);
	/* what it took beyond is others' to take */
	assert_true(kn_claim(&W.who[1].k, got, 8) > 0);
	close_world();
}

/* All regions at once count for none; one at a time keeps one. */
static void
wanting_everything_keeps_nothing(void **state)
{
	struct kn_claimed got[KN_SLOTS];
	int n = 0;

	(void)state;
	open_world(4, KN_CLAIM_DEKKER, 4, 32);
	offer(32);
	own(0)->word = kn_word(UINT32_MAX, 0);
	own(1)->word = kn_word(3, 0);
	for (int i = 0, k; (k = kn_claim(&W.who[2].k, got, 32)) > 0 && i < 99; i++)
		n += k;
	assert_int_equal(n, 32);
	poll_all();
	own(0)->word = kn_word(1u << 2, 0);
	W.next = 0;
	offer(32);
	n = 0;
	for (int i = 0, k; (k = kn_claim(&W.who[2].k, got, 32)) > 0 && i < 99; i++)
		n += k;
	assert_true(n >= 28);
	close_world();
}

/* ---- taking back ---- */

static void
the_supervisor_takes_back_what_nobody_took(void **state)
{
	struct kn_claimed got[KN_SLOTS];

	(void)state;
	for (int how = KN_CLAIM_DEKKER; how <= KN_CLAIM_CAS_MASK; how++) {
		int slot, other;

		open_world(3, (enum kn_claim_how)how, 8, 8);
		slot = one_offer();
		other = one_offer();
		assert_int_equal(kn_offer_take_back(&W.o, slot), KN_BACK_OURS);
		assert_int_equal(kn_offer_take_back(&W.o, slot), KN_BACK_GONE);
		for (uint32_t c = 0; c < 3; c++) {
			int n = kn_claim(&W.who[c].k, got, 8);

			assert_int_equal(n, c == 0);
			if (n)
				assert_int_equal(got[0].slot, other);
		}
		assert_int_equal(kn_offer_take_back(&W.o, other), KN_BACK_GONE);
		assert_int_equal(poll_all(), 1);
		/* a lie about it does not count, and fools nobody for long */
		W.liars = true;
		ack_by_hand(2, slot, W.o.now[slot].seq);
		poll_all();
		assert_int_equal(kn_offer_answer(&W.o, 2, 0, 1), KN_ANSWER_DROP);
		assert_int_equal(kn_claim(&W.who[1].k, got, 8), 0);
		close_world();
	}
}

/* In the middle of a take-back, as a claimant on another CPU may see it. */
static void
claimants_keep_out_while_the_supervisor_takes_back(void **state)
{
	struct kn_claimed got[KN_SLOTS];
	int slot;

	(void)state;
	open_world(3, KN_CLAIM_DEKKER, 8, 1);
	slot = one_offer();
	W.bank.head->own = kn_word(1u << slot / 8, 0);
	for (uint32_t c = 0; c < 3; c++)
		assert_int_equal(kn_claim(&W.who[c].k, got, 8), KN_CLAIM_BUSY);
	W.bank.head->own = 0;
	assert_int_equal(kn_claim(&W.who[0].k, got, 8), 1);
	close_world();
}

static void
taking_back_among_claims_runs_nothing_twice(void **state)
{
	uint32_t back = 0, tries = 0;

	(void)state;
	for (int how = KN_CLAIM_DEKKER; how <= KN_CLAIM_CAS_MASK; how++) {
		open_world(4, (enum kn_claim_how)how, 4, 2000);
		while (W.settled < W.task_n) {
			run_turns(20, 20);
			for (uint32_t m = W.o.offered; m; m &= m - 1) {
				int slot = __builtin_ctz(m);

				if (rnd() % 4)
					continue;
				tries++;
				if (kn_offer_take_back(&W.o, slot) != KN_BACK_OURS)
					continue;
				back++;
				W.again[W.again_n++] = W.o.now[slot].task;
			}
		}
		nothing_is_left();
		close_world();
	}
	assert_true(back > 100 && back < tries);
}

/* ---- all of it, at random ---- */

static void
a_scribbler_harms_nobody_but_itself(void **state)
{
	uint32_t caught = 0, blamed = 0, dropped = 0;

	(void)state;
	for (uint32_t round = 0; round < 100; round++) {
		uint32_t n = 2 + round % 5, liar = round % n;

		open_world(n, KN_CLAIM_DEKKER, kn_claim_width(n, 0), 400);
		W.liars = true;
		W.who[liar].lies = true;
		for (uint32_t turns = 0; W.settled < W.task_n; turns++) {
			run_turns(1 + rnd() % 60, 60);
			/* killed when it is caught, or keeps a region */
			for (uint32_t c = 0; c < n; c++) {
				bool caught_now = W.o.liars >> c & 1;

				if (!caught_now && (c != liar || turns % 50))
					continue;
				if (W.who[c].lies)
					caught += caught_now;
				else if (caught_now)
					blamed++;
				kill_it(c);
				bury(c);
				spawn(c);
				W.who[c].lies = c == liar && rnd() % 8;
			}
		}
		nothing_is_left();
		dropped += W.dropped;
		close_world();
	}
	print_message("caught %u, answers dropped %u\n", caught, dropped);
	assert_true(caught > 500 && dropped > 0);
	assert_int_equal(blamed, 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_ack_of_a_slot_that_was_never_offered),
		cmocka_unit_test(an_ack_that_names_another_publication),
		cmocka_unit_test(an_ack_of_what_another_has_taken),
		cmocka_unit_test(a_task_that_was_taken_twice_is_answered_once),
		cmocka_unit_test(a_slot_that_is_filled_under_a_copy_is_not_mixed_up),
		cmocka_unit_test(answers_that_are_not_owed),
		cmocka_unit_test(areas_are_freed_by_their_owner_only),
		cmocka_unit_test(areas_come_back_however_a_task_ends),
		cmocka_unit_test(hoarding),
		cmocka_unit_test(wanting_everything_keeps_nothing),
		cmocka_unit_test(the_supervisor_takes_back_what_nobody_took),
		cmocka_unit_test(claimants_keep_out_while_the_supervisor_takes_back),
		cmocka_unit_test(taking_back_among_claims_runs_nothing_twice),
		cmocka_unit_test(a_scribbler_harms_nobody_but_itself),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
