/* tests/unit/test_ipc_claim_misled.c: a claimant that a liar's acks mislead is no liar:
 * what it takes by mistake is not counted, and what it takes besides is its own.
 */
#include "tests/unit/claim_steps.h"

/* A liar's toggle makes a slot look pending between its being written and its
 * publication. Who takes it then is no liar, and owns it. */
static void
a_slot_that_is_taken_before_it_is_published(void **state)
{
	struct kn_slot_head head = { .kind = KN_REQ_CALL, .task = 5, .gen = 3 };
	struct kn_claimed got[KN_SLOTS];
	struct kn_taken taken[KN_SLOTS];
	int slot;

	(void)state;
	open_world(3, KN_CLAIM_DEKKER, 8, 4);
	W.liars = true;
	slot = kn_offer_slot(&W.o);
	head.area = KN_AREA_INLINE;
	kn_offer_put(&W.o, slot, &head, NULL);
	ack_by_hand(1, slot, 0);
	assert_int_equal(kn_claim(&W.who[2].k, got, 8), 1);
	assert_int_equal(got[0].head.task, 5);
	assert_int_equal(kn_offer_poll(&W.o, taken), 1);
	assert_int_equal(taken[0].claimant, 2);
	assert_int_equal(W.o.liars, 1u << 1);
	/* and it is not published again */
	kn_offer_publish(&W.o);
	assert_int_equal(kn_claim(&W.who[0].k, got, 8), 0);
	assert_int_equal(kn_offer_answer(&W.o, 2, 5, 3), KN_ANSWER_ACCEPT);
	close_world();
}

/* Misled twice over one slot between two looks: its word is as it was. */
static void
two_acks_that_hide_each_other(void **state)
{
	struct kn_slot_head b = { .kind = KN_REQ_CALL, .task = 5, .gen = 3 };
	struct kn_claimed got[KN_SLOTS];
	int slot;

	(void)state;
	open_world(3, KN_CLAIM_DEKKER, 8, 4);
	W.liars = true;
	slot = one_offer();
	assert_int_equal(kn_claim(&W.who[0].k, got, 8), 1);
	assert_int_equal(poll_all(), 1);
	ack_by_hand(2, slot, W.o.now[slot].seq);
	b.area = KN_AREA_INLINE;
	kn_offer_put(&W.o, slot, &b, NULL);
	kn_offer_publish(&W.o);
	ack_by_hand(2, slot, W.o.now[slot].seq);
	assert_int_equal(kn_offer_answer(&W.o, 2, 0, 1), KN_ANSWER_DROP);
	assert_int_equal(kn_offer_answer(&W.o, 2, 5, 3), KN_ANSWER_ACCEPT);
	assert_int_equal(kn_offer_answer(&W.o, 0, 0, 1), KN_ANSWER_ACCEPT);
	assert_int_equal(W.o.liars, 0);
	assert_int_equal(kn_claim(&W.who[1].k, got, 8), 0);
	close_world();
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_slot_that_is_taken_before_it_is_published),
		cmocka_unit_test(two_acks_that_hide_each_other),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
