/* tests/unit/test_module_loop.c: knit-worker-module without a sandbox: full lanes, a
 * supervisor that is behind, memory of long results, the stop. */
#include "tests/unit/module_resident.h"

#include <sys/stat.h>

static struct resident R;

static int
start(void **state)
{
	const struct resident_opts o = { .init = "some text" };

	(void)state;
	resident_start(&R, &o);
	assert_int_equal(resident_ping(&R).kind, KN_REQ_PING);
	assert_memory_equal(R.result, "hello", 5);
	return 0;
}

static int
stop(void **state)
{
	(void)state;
	assert_int_equal(R.slice.control->submit_freed ^ R.pay.live, R.pay.freed);
	resident_close(&R);
	return 0;
}

static void
a_full_lane_is_answered_in_full(void **state)
{
	uint64_t seen;

	(void)state;
	for (int round = 0; round < 50; round++) {
		uint32_t first = R.next;

		for (int i = 0; i < KN_SLOTS; i++) {
			int64_t v = i;
			struct kn_slot_head h = { .kind = KN_REQ_CALL,
				.task = R.next++,
				.fn = 1,
				.type = KN_TYPE_I64,
				.abort = KN_NO_ABORT };

			resident_publish(&R, h, round ? NULL : "typed", &v, sizeof v);
		}
		resident_wake(&R);
		seen = 0;
		for (int i = 0; i < KN_SLOTS; i++) {
			struct kn_slot_head h;
			bool violation = false;

			assert_true(resident_answer(&R, &h));
			assert_int_equal(
			    resident_i64(&R, &h), -(int64_t)(h.task - first));
			seen |= 1ull << (h.task - first);
			kn_submit_claimed(&R.tx, &R.slice, &violation);
			assert_false(violation);
		}
		assert_int_equal(seen, UINT32_MAX);
	}
}

static void
results_wait_for_a_supervisor_that_is_behind(void **state)
{
	const int64_t size = 3 << 20; /* the area holds 21 of them */
	uint64_t until = kn_clock_now() + 60 * KN_S_NS;
	bool violation = false;
	int owed = 0;

	(void)state;
	resident_call_i64(&R, 1, "make", 1);
	for (int i = 0; i < 300 || owed <= KN_SLOTS; i++) {
		struct kn_slot_head h = { .kind = KN_REQ_CALL,
			.task = R.next,
			.fn = 1,
			.type = KN_TYPE_I64,
			.abort = KN_NO_ABORT };

		assert_true(kn_clock_now() < until);
		kn_submit_claimed(&R.tx, &R.slice, &violation);
		if (kn_submit_free(&R.tx, &R.slice) < 0) {
			poll(NULL, 0, 1); /* it is busy, or waits for us */
			continue;
		}
		R.next++;
		resident_publish(&R, h, NULL, &size, sizeof size);
		resident_wake(&R);
		owed++;
	}
	for (; owed > 0; owed--) {
		struct kn_slot_head h;

		assert_true(resident_answer(&R, &h));
		assert_int_equal(h.payload_len, size);
	}
}

static long long
blocks(void)
{
	struct stat st;

	assert_int_equal(fstat(R.arena.fd, &st), 0);
	return (long long)st.st_blocks;
}

static void
pages_of_long_results_are_given_back(void **state)
{
	const long long before = blocks();
	struct kn_slot_head h = resident_call_i64(&R, 1, "make", 8 << 20);
	uint64_t until = kn_clock_now() + 60 * KN_S_NS;

	(void)state;
	assert_int_equal(h.payload_len, 8 << 20);
	/* 1 MiB is kept. We may be slow, and find them given back already. */
	while (blocks() > before + (2 << 20) / 512) {
		assert_true(kn_clock_now() < until);
		poll(NULL, 0, 10);
	}
	h = resident_call_i64(&R, 1, NULL, 8 << 20);
	for (uint32_t i = 0; i < h.payload_len; i += 4096)
		assert_int_equal(R.result[i], 'x');
}

static void
a_stop_is_acknowledged_and_obeyed(void **state)
{
	(void)state;
	assert_int_equal(resident_stop(&R), 0);
	assert_true(kn_control_stop_acked(R.slice.control));
}

static void
a_stop_is_obeyed_where_no_result_has_room(void **state)
{
	(void)state;
	for (int i = 0; i < 2 * KN_SLOTS; i++) {
		struct kn_slot_head h = { .kind = KN_REQ_CALL,
			.task = R.next++,
			.fn = 1,
			.type = KN_TYPE_NULL,
			.abort = KN_NO_ABORT };
		bool violation = false;

		while (kn_submit_free(&R.tx, &R.slice) < 0 && i < KN_SLOTS + 1) {
			poll(NULL, 0, 1);
			kn_submit_claimed(&R.tx, &R.slice, &violation);
		}
		if (kn_submit_free(&R.tx, &R.slice) < 0)
			break;
		resident_publish(&R, h, i ? NULL : "nothing", NULL, 0);
		resident_wake(&R);
	}
	assert_int_equal(resident_stop(&R), 0);
	assert_true(kn_control_stop_acked(R.slice.control));
}

static int
start_in_bank(void **state)
{
	const struct resident_opts o = { .shared = true };

	(void)state;
	resident_start(&R, &o);
	assert_int_equal(resident_ping(&R).kind, KN_REQ_PING);
	return 0;
}

/* As many calls as have room. */
static void
offer(void)
{
	int slot;

	while ((slot = kn_offer_slot(&R.offer)) >= 0) {
		const struct kn_slot_head h = { .kind = KN_REQ_CALL,
			.task = R.next++,
			.gen = 1,
			.area = KN_AREA_INLINE,
			.payload_len = 7,
			.name_n = 7,
			.fn = 1,
			.type = KN_TYPE_NULL,
			.abort = KN_NO_ABORT };

		kn_offer_put(&R.offer, slot, &h, "nothing");
	}
	kn_offer_publish(&R.offer);
	resident_wake(&R);
}

static int
taken(void)
{
	struct kn_taken out[KN_SLOTS];
	int n = kn_offer_poll(&R.offer, out);

	assert_int_equal(R.offer.liars, 0);
	return n;
}

/* Told while it waits for room: what it has claimed may not be lost, nor run again. */
static void
a_stop_in_a_bank_lets_each_claimed_call_be_answered(void **state)
{
	uint64_t until = kn_clock_now() + 60 * KN_S_NS;
	int claimed = 0, answered = 0;
	struct kn_slot_head h;

	(void)state;
	while (claimed <= KN_SLOTS) {
		offer();
		poll(NULL, 0, 1);
		claimed += taken();
		assert_true(kn_clock_now() < until);
	}
	kn_control_stop(R.slice.control);
	resident_wake(&R);
	poll(NULL, 0, 100); /* it may do something wrong in that time */
	assert_false(kn_control_stop_acked(R.slice.control));
	for (; resident_answer(&R, &h); answered++) {
		assert_int_equal(h.type, KN_TYPE_NULL);
		assert_int_equal(
		    kn_offer_answer(&R.offer, 0, h.task, 1), KN_ANSWER_ACCEPT);
	}
	assert_int_equal(resident_status(&R), 0);
	assert_int_equal(answered, claimed + taken());
	assert_true(kn_control_stop_acked(R.slice.control));
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, start, stop)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(a_full_lane_is_answered_in_full),
		CASE(results_wait_for_a_supervisor_that_is_behind),
		CASE(pages_of_long_results_are_given_back),
		CASE(a_stop_is_acknowledged_and_obeyed),
		CASE(a_stop_is_obeyed_where_no_result_has_room),
		cmocka_unit_test_setup_teardown(
		    a_stop_in_a_bank_lets_each_claimed_call_be_answered, start_in_bank,
		    stop),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
