/* tests/unit/test_ipc_layout.c: the geometry: aligned, without overlap, within range;
 * and the numbers of wire format 1, so that a change of them is a decision. */
#include "tests/unit/ipc_test.h"

#include "ipc/layout.h"

static void
parts_are_page_aligned_and_do_not_overlap(void **state)
{
	static const uint64_t areas[] = { 0, 1, 4096, 5000, 1 << 20, 64 << 20 };

	(void)state;
	for (uint32_t n = 1; n <= KN_WORKERS_MAX; n += 51)
		for (size_t i = 0; i < sizeof areas / sizeof areas[0]; i++) {
			struct kn_layout l;
			uint64_t lane = KN_SLOTS * KN_SLOT_BYTES;

			assert_int_equal(
			    kn_layout_of(n, areas[i], areas[i] / 2, &l), 0);
			assert_true(l.submit_area_bytes >= areas[i]);
			assert_true(l.submit_slots_off >= sizeof(struct kn_control));
			assert_true(l.return_slots_off >= l.submit_slots_off + lane);
			assert_true(l.submit_area_off >= l.return_slots_off + lane);
			assert_true(l.return_area_off ==
				    l.submit_area_off + l.submit_area_bytes);
			assert_true(
			    l.slice_bytes == l.return_area_off + l.return_area_bytes);
			assert_int_equal((l.submit_slots_off | l.return_slots_off |
					     l.submit_area_off | l.return_area_off |
					     l.slice_bytes | l.arena_bytes) %
					     KN_PAGE,
			    0);
			assert_true(
			    kn_layout_slice_off(&l, 0) >= sizeof(struct kn_arena_head));
			assert_true(kn_layout_slice_off(&l, n) == l.arena_bytes);
		}
}

static void
the_reader_computes_the_same_from_what_is_sent(void **state)
{
	struct kn_layout a, b;

	(void)state;
	assert_int_equal(kn_layout_of(7, 70001, 123, &a), 0);
	assert_int_equal(
	    kn_layout_of(a.worker_n, a.submit_area_bytes, a.return_area_bytes, &b), 0);
	assert_int_equal(a.worker_n, b.worker_n);
	assert_int_equal(a.submit_area_bytes, b.submit_area_bytes);
	assert_int_equal(a.return_area_bytes, b.return_area_bytes);
	assert_int_equal(a.return_area_off, b.return_area_off);
	assert_int_equal(a.slice_bytes, b.slice_bytes);
	assert_int_equal(a.arena_bytes, b.arena_bytes);
}

static void
numbers_out_of_range_are_refused_and_leave_the_output(void **state)
{
	struct kn_layout l, before;

	(void)state;
	memset(&l, 0x5a, sizeof l);
	memcpy(&before, &l, sizeof l);
	assert_int_equal(kn_layout_of(0, 4096, 4096, &l), -1);
	assert_int_equal(kn_layout_of(KN_WORKERS_MAX + 1, 4096, 4096, &l), -1);
	assert_int_equal(kn_layout_of(UINT32_MAX, 4096, 4096, &l), -1);
	assert_int_equal(kn_layout_of(1, (1ull << 32) + 1, 4096, &l), -1);
	assert_int_equal(kn_layout_of(1, 4096, UINT64_MAX, &l), -1);
	assert_memory_equal(&l, &before, sizeof l);
	assert_int_equal(kn_layout_of(KN_WORKERS_MAX, 1ull << 32, 1ull << 32, &l), 0);
}

static void
wire_format_1_is_as_it_was(void **state)
{
	struct kn_layout l;

	(void)state;
	assert_int_equal(KN_LAYOUT_VERSION, 1);
	assert_int_equal(sizeof(struct kn_arena_head), 64);
	assert_int_equal(offsetof(struct kn_control, stop), 0);
	assert_int_equal(offsetof(struct kn_control, stop_ack), 64);
	assert_int_equal(offsetof(struct kn_control, armed), 128);
	assert_int_equal(offsetof(struct kn_control, begun), 192);
	assert_int_equal(offsetof(struct kn_control, begun_ns), 256);
	assert_int_equal(offsetof(struct kn_control, submit_published), 320);
	assert_int_equal(offsetof(struct kn_control, submit_claimed), 384);
	assert_int_equal(offsetof(struct kn_control, return_published), 448);
	assert_int_equal(offsetof(struct kn_control, return_retired), 512);
	assert_int_equal(offsetof(struct kn_control, submit_freed), 576);
	assert_int_equal(offsetof(struct kn_control, return_freed), 640);
	assert_int_equal(offsetof(struct kn_slot, head), 512);
	assert_int_equal(offsetof(struct kn_slot_head, payload_off), 16);
	assert_int_equal(kn_layout_of(2, 4096, 8192, &l), 0);
	assert_int_equal(l.submit_slots_off, 4096);
	assert_int_equal(l.return_slots_off, 4096 + 20480);
	assert_int_equal(l.submit_area_off, 4096 + 2 * 20480);
	assert_int_equal(l.slice_bytes, 4096 + 2 * 20480 + 4096 + 8192);
	assert_int_equal(kn_layout_slice_off(&l, 1), 4096 + l.slice_bytes);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(parts_are_page_aligned_and_do_not_overlap),
		cmocka_unit_test(the_reader_computes_the_same_from_what_is_sent),
		cmocka_unit_test(numbers_out_of_range_are_refused_and_leave_the_output),
		cmocka_unit_test(wire_format_1_is_as_it_was),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
