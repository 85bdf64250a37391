/* tests/unit/test_ipc_lane.c: the lanes step by step: what an honest worker sees, and
 * that the supervisor's own record decides against a lying one. With two processes at
 * full speed: test_ipc_lane_race.c. */
#include "tests/unit/ipc_lane.h"

/* ---- submit lane, honest worker ---- */

static void
a_task_arrives_with_its_bytes_and_is_seen_claimed_once(void **state)
{
	struct kn_slot_head h;
	uint8_t in[KN_INLINE_MAX];
	int slot = offer(41, "hello");

	(void)state;
	assert_true(slot >= 0);
	assert_int_equal(claimed(), 0);
	assert_true(kn_submit_claim(&sl, slot, &h, in));
	assert_int_equal(h.kind, KN_REQ_EXEC);
	assert_int_equal(h.task, 41);
	assert_int_equal(h.gen, 42);
	assert_int_equal(h.payload_len, 5);
	assert_memory_equal(in, "hello", 5);
	assert_false(kn_submit_claim(&sl, slot, &h, in));
	assert_false(kn_submit_take_back(&tx, &sl, slot));
	assert_int_equal(claimed(), 1u << slot);
	assert_int_equal(claimed(), 0);
}

static void
a_lane_holds_32_and_frees_what_was_claimed_or_taken_back(void **state)
{
	struct kn_slot_head h;
	uint8_t in[KN_INLINE_MAX];

	(void)state;
	for (int round = 0; round < 5; round++) {
		uint32_t used = 0;

		for (uint32_t i = 0; i < KN_SLOTS; i++) {
			int slot = offer(i, "x");
			assert_true(slot >= 0 && !(used >> slot & 1));
			used |= 1u << slot;
		}
		assert_int_equal(offer(99, "x"), -1);
		assert_true(kn_submit_claim(&sl, 7, &h, in));
		assert_int_equal(offer(99, "x"), -1); /* not seen claimed yet */
		assert_int_equal(claimed(), 1u << 7);
		assert_int_equal(offer(99, "x"), 7);
		for (int slot = 0; slot < KN_SLOTS; slot++)
			assert_true(kn_submit_take_back(&tx, &sl, slot));
		assert_int_equal(claimed(), 0);
		for (int slot = 0; slot < KN_SLOTS; slot++)
			assert_false(kn_submit_claim(&sl, slot, &h, in));
	}
}

static void
what_was_taken_back_cannot_be_claimed_nor_taken_again(void **state)
{
	struct kn_slot_head h;
	uint8_t in[KN_INLINE_MAX];
	int slot = offer(1, "x");

	(void)state;
	assert_true(kn_submit_take_back(&tx, &sl, slot));
	assert_false(kn_submit_take_back(&tx, &sl, slot));
	assert_false(kn_submit_claim(&sl, slot, &h, in));
	assert_int_equal(claimed(), 0);
}

static int
stage(uint32_t task)
{
	struct kn_slot_head h = { .kind = KN_REQ_CALL,
		.task = task,
		.gen = task + 1,
		.area = KN_AREA_INLINE,
		.payload_len = 1 };
	int slot = kn_submit_next(&tx);

	if (slot >= 0)
		kn_submit_stage(&tx, &sl, slot, &h, "s");
	return slot;
}

static void
what_is_staged_is_offered_by_the_flush_and_not_before(void **state)
{
	struct kn_slot out[KN_SLOTS];
	unsigned cursor = 0;

	(void)state;
	for (uint32_t i = 0; i < KN_SLOTS; i++)
		assert_true(stage(i) >= 0);
	assert_int_equal(stage(99), -1); /* ours, though nobody sees it */
	assert_int_equal(kn_submit_pending(&sl), 0);
	assert_int_equal(kn_submit_claim_many(&sl, &cursor, KN_SLOTS, out), 0);
	assert_int_equal(claimed(), 0);
	kn_submit_flush(&tx, &sl);
	assert_int_equal(kn_submit_pending(&sl), UINT32_MAX);
	assert_int_equal(kn_submit_claim_many(&sl, &cursor, KN_SLOTS, out), KN_SLOTS);
	assert_int_equal(out[5].head.task, 5);
	assert_int_equal(claimed(), UINT32_MAX);
	kn_submit_flush(&tx, &sl); /* of nothing: nothing */
	assert_int_equal(kn_submit_pending(&sl), 0);
}

static void
what_is_staged_can_be_taken_back_and_is_never_seen(void **state)
{
	struct kn_slot_head h;
	uint8_t in[KN_INLINE_MAX];
	int first = stage(1), second = stage(2);

	(void)state;
	assert_true(kn_submit_take_back(&tx, &sl, first));
	assert_false(kn_submit_claim(&sl, first, &h, in));
	kn_submit_flush(&tx, &sl);
	assert_false(kn_submit_claim(&sl, first, &h, in));
	assert_int_equal(kn_submit_pending(&sl), 1u << second);
	assert_true(kn_submit_claim(&sl, second, &h, in));
	assert_int_equal(h.task, 2);
	assert_int_equal(claimed(), 1u << second);
}

static void
an_old_message_does_not_claim_the_slots_next_task(void **state)
{
	struct kn_slot_head h;
	uint8_t in[KN_INLINE_MAX];
	int slot = offer(1, "old"), next;

	(void)state;
	assert_true(kn_submit_take_back(&tx, &sl, slot));
	next = offer(2, "new");
	assert_int_equal(next, slot);
	/* the worker acts on the message of task 1 */
	assert_false(kn_submit_claim_task(&sl, slot, 1, 2, &h, in));
	assert_int_equal(claimed(), 0);
	/* and then on that of task 2 */
	assert_false(kn_submit_claim_task(&sl, slot, 2, 9, &h, in));
	assert_true(kn_submit_claim_task(&sl, slot, 2, 3, &h, in));
	assert_memory_equal(in, "new", 3);
	assert_int_equal(claimed(), 1u << slot);
}

static void
a_look_tells_which_messages_are_of_tasks_taken_back(void **state)
{
	struct kn_slot_head h;
	uint8_t in[KN_INLINE_MAX];
	int slot = offer(1, "old");

	(void)state;
	assert_true(kn_submit_is_offered(&sl, slot, 1, 2));
	assert_false(kn_submit_is_offered(&sl, slot, 1, 3));
	assert_false(kn_submit_is_offered(&sl, slot, 2, 2));
	assert_false(kn_submit_is_offered(&sl, slot + 1, 1, 2));
	assert_true(kn_submit_take_back(&tx, &sl, slot));
	assert_false(kn_submit_is_offered(&sl, slot, 1, 2));
	assert_int_equal(offer(2, "new"), slot);
	assert_false(kn_submit_is_offered(&sl, slot, 1, 2));
	assert_true(kn_submit_is_offered(&sl, slot, 2, 3));
	assert_int_equal(claimed(), 0); /* a look claims nothing */
	assert_true(kn_submit_claim_task(&sl, slot, 2, 3, &h, in));
	assert_false(kn_submit_is_offered(&sl, slot, 2, 3));
}

static void
a_slot_carries_nothing_of_the_task_before(void **state)
{
	struct kn_slot_head h;
	uint8_t in[KN_INLINE_MAX];
	int slot = offer(1, "a long secret of the task before");

	(void)state;
	assert_true(kn_submit_claim(&sl, slot, &h, in));
	claimed();
	assert_int_equal(offer(2, "b"), slot);
	memset(in, 0xcc, sizeof in);
	assert_true(kn_submit_claim(&sl, slot, &h, in));
	assert_int_equal(in[0], 'b');
	for (size_t i = 1; i < sizeof in; i++)
		assert_int_equal(in[i], 0xcc);
}

/* ---- the count of the claim word ---- */

static void
the_count_wraps_without_touching_the_bits(void **state)
{
	struct kn_slot_head h;
	uint8_t in[KN_INLINE_MAX];

	(void)state;
	/* Three exchanges below the wrap. */
	sl.control->submit_claimed = 0xfffffffdull << 32;
	for (uint32_t i = 0; i < 100; i++) {
		int slot = offer(i, "x");

		if (i % 3 == 0) {
			assert_true(kn_submit_take_back(&tx, &sl, slot));
			assert_int_equal(claimed(), 0);
		} else {
			assert_true(kn_submit_claim(&sl, slot, &h, in));
			assert_int_equal(h.task, i);
			assert_int_equal(claimed(), 1u << slot);
		}
		assert_int_equal(
		    (uint32_t)(sl.control->submit_claimed >> 32), 0xfffffffdu + i + 1);
	}
}

static void
a_claim_begun_before_two_reuses_of_the_slot_fails_also_at_the_wrap(void **state)
{
	static const uint32_t counts[] = { 0, 7, 0xfffffffe, 0xffffffff };

	(void)state;
	for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
		uint64_t seen, fresh;
		int slot;

		sl.control->submit_claimed =
		    (uint64_t)counts[i] << 32 | (uint32_t)sl.control->submit_claimed;
		slot = offer(1, "first");
		/* The worker reads the word and copies; then it is held up. */
		seen = kn_shm_load64_acquire(&sl.control->submit_claimed);
		assert_true(kn_submit_take_back(&tx, &sl, slot));
		assert_int_equal(offer(2, "second"), slot);
		assert_true(kn_submit_take_back(&tx, &sl, slot));
		assert_int_equal(offer(3, "third"), slot);
		fresh = kn_shm_load64_acquire(&sl.control->submit_claimed);
		/* All bits are as the worker saw them: only the count tells. */
		assert_int_equal((uint32_t)seen, (uint32_t)fresh);
		assert_false(kn_shm_cas64_acqrel(
		    &sl.control->submit_claimed, &seen, seen ^ (1u << slot)));
		assert_true(kn_submit_take_back(&tx, &sl, slot));
	}
}

/* ---- submit lane, lying worker ---- */

static void
bits_that_were_never_offered_are_a_violation(void **state)
{
	bool violation = false;
	int slot = offer(1, "x");

	(void)state;
	sl.control->submit_claimed ^= 1u << 20;
	assert_int_equal(kn_submit_claimed(&tx, &sl, &violation), 0);
	assert_true(violation);
	assert_int_equal(tx.offered, 1u << slot); /* the honest one is still offered */
}

static void
taking_a_claim_back_is_a_violation(void **state)
{
	struct kn_slot_head h;
	uint8_t in[KN_INLINE_MAX];
	bool violation = false;
	int slot = offer(1, "x");

	(void)state;
	assert_true(kn_submit_claim(&sl, slot, &h, in));
	assert_int_equal(claimed(), 1u << slot);
	sl.control->submit_claimed ^= 1u << slot;
	assert_int_equal(kn_submit_claimed(&tx, &sl, &violation), 0);
	assert_true(violation);
	/* The slot is only busy for longer. */
	for (int i = 0; i < KN_SLOTS - 1; i++)
		assert_int_not_equal(offer(7, "y"), slot);
	assert_int_equal(offer(7, "y"), -1);
}

static void
reviving_what_was_taken_back_is_a_violation(void **state)
{
	bool violation = false;
	int slot = offer(1, "x");

	(void)state;
	assert_true(kn_submit_take_back(&tx, &sl, slot));
	sl.control->submit_claimed ^= 1u << slot;
	kn_submit_claimed(&tx, &sl, &violation);
	assert_true(violation);
}

/* ---- return lane ---- */

static bool
answer(struct kn_return_tx *r, uint32_t task, const char *text)
{
	struct kn_slot_head h = { .task = task,
		.gen = 1,
		.area = KN_AREA_INLINE,
		.payload_len = (uint32_t)strlen(text) };

	return kn_return_publish(r, &sl, &h, text);
}

static void
answers_come_in_order_and_a_full_lane_refuses(void **state)
{
	struct kn_return_tx w = { 0 };
	struct kn_return_rx r = { 0 };
	struct kn_slot_head h;
	uint8_t in[KN_INLINE_MAX];
	uint32_t in_n = 0, out_n = 0;

	(void)state;
	for (uint32_t round = 1; round <= KN_SLOTS; round++) {
		for (uint32_t i = 0; i < round; i++)
			assert_true(answer(&w, in_n++, "r"));
		for (uint32_t i = 0; i < round; i++) {
			int slot = kn_return_peek(&r, &sl, &h, in);

			assert_true(slot >= 0);
			assert_int_equal(kn_return_peek(&r, &sl, &h, in), slot);
			assert_int_equal(h.task, out_n++);
			kn_return_retire(&r, &sl, slot);
		}
		assert_int_equal(kn_return_peek(&r, &sl, &h, in), -1);
	}
	for (uint32_t i = 0; i < KN_SLOTS; i++)
		assert_true(answer(&w, in_n++, "r"));
	assert_false(answer(&w, in_n, "r"));
	kn_return_retire(&r, &sl, kn_return_peek(&r, &sl, &h, in));
	assert_true(answer(&w, in_n++, "r"));
	assert_false(answer(&w, in_n, "r"));
}

static void
a_length_that_lies_writes_nothing_past_the_buffer(void **state)
{
	struct {
		uint8_t in[KN_INLINE_MAX];
		uint8_t canary[64];
	} b;
	struct kn_return_rx r = { 0 };
	struct kn_slot_head h;

	(void)state;
	memset(&b, 0x77, sizeof b);
	memset(&sl.return_slots[0], 0xff, sizeof sl.return_slots[0]);
	sl.control->return_published = 1;
	assert_int_equal(kn_return_peek(&r, &sl, &h, b.in), 0);
	assert_int_equal(h.payload_len, 0xffffffff); /* for the caller to refuse */
	for (size_t i = 0; i < sizeof b.canary; i++)
		assert_int_equal(b.canary[i], 0x77);
}

/* ---- several by one exchange ---- */

static void
several_are_claimed_at_once_and_no_more_than_asked(void **state)
{
	struct kn_slot out[KN_SLOTS];
	unsigned cursor = 0;
	char text[16];

	(void)state;
	assert_int_equal(kn_submit_claim_many(&sl, &cursor, KN_SLOTS, out), 0);
	for (uint32_t i = 0; i < KN_SLOTS; i++) {
		snprintf(text, sizeof text, "task %u", i);
		assert_int_equal(offer(i, text), (int)i);
	}
	assert_int_equal(kn_submit_pending(&sl), UINT32_MAX);
	for (uint32_t from = 0; from < KN_SLOTS; from += 5) {
		uint32_t want = from + 5 <= KN_SLOTS ? 5 : KN_SLOTS - from;

		assert_int_equal(kn_submit_claim_many(&sl, &cursor, 5, out), want);
		for (uint32_t i = 0; i < want; i++) {
			assert_int_equal(out[i].head.task, from + i);
			snprintf(text, sizeof text, "task %u", from + i);
			assert_memory_equal(out[i].inline_bytes, text, strlen(text));
		}
		assert_int_equal(claimed(), ((1ull << want) - 1) << from);
	}
	assert_int_equal(kn_submit_claim_many(&sl, &cursor, 5, out), 0);
	assert_int_equal(kn_submit_pending(&sl), 0);
}

static void
the_cursor_goes_round_so_that_no_slot_waits_for_ever(void **state)
{
	struct kn_slot out[KN_SLOTS];
	unsigned cursor = 30;

	(void)state;
	for (uint32_t i = 0; i < KN_SLOTS; i++)
		offer(i, "x");
	assert_int_equal(kn_submit_claim_many(&sl, &cursor, 4, out), 4);
	for (uint32_t i = 0; i < 4; i++)
		assert_int_equal(out[i].head.task, (30 + i) % KN_SLOTS);
	/* Slots 0 and 1 are offered again, and come last. */
	claimed();
	offer(100, "y");
	offer(101, "y");
	assert_int_equal(kn_submit_claim_many(&sl, &cursor, KN_SLOTS, out), 30);
	assert_int_equal(out[0].head.task, 2);
	assert_int_equal(out[28].head.task, 100);
	assert_int_equal(out[29].head.task, 101);
}

static void
what_was_taken_back_is_in_no_batch(void **state)
{
	struct kn_slot out[KN_SLOTS];
	unsigned cursor = 0;

	(void)state;
	for (uint32_t i = 0; i < 8; i++)
		offer(i, "x");
	for (int slot = 1; slot < 8; slot += 2)
		assert_true(kn_submit_take_back(&tx, &sl, slot));
	assert_int_equal(kn_submit_claim_many(&sl, &cursor, KN_SLOTS, out), 4);
	for (uint32_t i = 0; i < 4; i++)
		assert_int_equal(out[i].head.task, 2 * i);
	assert_false(kn_submit_take_back(&tx, &sl, 0));
	assert_int_equal(claimed(), 0x55);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		LANE(a_task_arrives_with_its_bytes_and_is_seen_claimed_once),
		LANE(a_lane_holds_32_and_frees_what_was_claimed_or_taken_back),
		LANE(what_was_taken_back_cannot_be_claimed_nor_taken_again),
		LANE(what_is_staged_is_offered_by_the_flush_and_not_before),
		LANE(what_is_staged_can_be_taken_back_and_is_never_seen),
		LANE(an_old_message_does_not_claim_the_slots_next_task),
		LANE(a_look_tells_which_messages_are_of_tasks_taken_back),
		LANE(a_slot_carries_nothing_of_the_task_before),
		LANE(the_count_wraps_without_touching_the_bits),
		LANE(
		    a_claim_begun_before_two_reuses_of_the_slot_fails_also_at_the_wrap),
		LANE(bits_that_were_never_offered_are_a_violation),
		LANE(taking_a_claim_back_is_a_violation),
		LANE(reviving_what_was_taken_back_is_a_violation),
		LANE(answers_come_in_order_and_a_full_lane_refuses),
		LANE(several_are_claimed_at_once_and_no_more_than_asked),
		LANE(the_cursor_goes_round_so_that_no_slot_waits_for_ever),
		LANE(what_was_taken_back_is_in_no_batch),
		LANE(a_length_that_lies_writes_nothing_past_the_buffer),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
