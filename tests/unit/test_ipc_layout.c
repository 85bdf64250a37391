/* tests/unit/test_ipc_layout.c: the geometry: aligned, without overlap, within range;
 * and the numbers of wire format 3, so that a change of them is a decision. */
#include "tests/unit/ipc_test.h"

#include "ipc/region.h"

static void
parts_are_page_aligned_and_do_not_overlap(void **state)
{
	static const uint64_t areas[] = { 0, 1, 4096, 5000, 1 << 20, 64 << 20 };

	(void)state;
	for (uint32_t n = 1; n <= KN_SLICES_MAX; n += 73)
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
	assert_int_equal(kn_layout_of(KN_SLICES_MAX + 1, 4096, 4096, &l), -1);
	assert_int_equal(kn_layout_of(UINT32_MAX, 4096, 4096, &l), -1);
	assert_int_equal(kn_layout_of(1, (1ull << 32) + 1, 4096, &l), -1);
	assert_int_equal(kn_layout_of(1, 4096, UINT64_MAX, &l), -1);
	assert_memory_equal(&l, &before, sizeof l);
	assert_int_equal(kn_layout_of(KN_SLICES_MAX, 1ull << 32, 1ull << 32, &l), 0);
}

/* Every worker has a bank and a place in it; banks are filled evenly. */
static void
a_submit_region_has_room_for_all_claimants(void **state)
{
	(void)state;
	for (uint32_t n = 1; n <= KN_WORKERS_MAX; n++) {
		struct kn_layout bare, l;
		uint32_t last;

		assert_int_equal(kn_layout_of(n, 4096, 4096, &bare), 0);
		l = bare;
		assert_int_equal(kn_layout_share(&l, n, 100000), 0);
		assert_int_equal(l.bank_n, (n + 30) / 31);
		assert_true(l.bank_n <= KN_BANKS_MAX);
		assert_true(l.bank_claimants <= KN_CLAIMANTS);
		assert_true(l.bank_n * l.bank_claimants >= n);
		last = n - (l.bank_n - 1) * l.bank_claimants;
		assert_true(last >= 1 && last + l.bank_n > l.bank_claimants);
		assert_int_equal(kn_layout_bank_off(&l, 0), KN_PAGE);
		assert_int_equal(
		    kn_layout_bank_off(&l, l.bank_n), kn_layout_slice_off(&l, 0));
		assert_int_equal(
		    l.bank_bytes, kn_layout_bank_area_off(&l) + l.bank_area_bytes);
		assert_int_equal((l.bank_bytes | l.bank_area_bytes) % KN_PAGE, 0);
		assert_true(l.bank_area_bytes >= 100000);
		/* inside a slice all is where it was */
		assert_int_equal(l.slice_bytes, bare.slice_bytes);
		assert_int_equal(l.return_area_off, bare.return_area_off);
		assert_int_equal(kn_layout_slice_off(&l, n), l.arena_bytes);
		assert_int_equal(l.arena_bytes, bare.arena_bytes + l.region_bytes);
	}
}

static void
a_region_out_of_range_is_refused(void **state)
{
	struct kn_layout l, before;

	(void)state;
	assert_int_equal(kn_layout_of(4, 4096, 4096, &l), 0);
	assert_int_equal(l.region_bytes, 0);
	assert_int_equal(l.bank_n, 0);
	before = l;
	assert_int_equal(kn_layout_share(&l, 0, 4096), -1);
	assert_int_equal(kn_layout_share(&l, 5, 4096), -1);
	assert_int_equal(kn_layout_share(&l, KN_WORKERS_MAX + 1, 4096), -1);
	assert_int_equal(kn_layout_share(&l, 4, (1ull << 32) + 1), -1);
	assert_memory_equal(&l, &before, sizeof l);
	assert_int_equal(kn_layout_share(&l, 2, 0), 0); /* inline payloads only */
	assert_int_equal(kn_layout_share(&l, 2, 0), -1);
}

static void
wire_format_4_is_as_it_was(void **state)
{
	struct kn_layout l;

	(void)state;
	assert_int_equal(KN_LAYOUT_VERSION, 4);
	assert_int_equal(sizeof(struct kn_arena_head), 72);
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
	assert_int_equal(offsetof(struct kn_slot_head, seq), 56);
	assert_int_equal(offsetof(struct kn_bank_head, live), 64);
	assert_int_equal(offsetof(struct kn_bank_head, own), 128);
	assert_int_equal(offsetof(struct kn_bank_head, abort), 192);
	assert_int_equal(offsetof(struct kn_own, taken), 64);
	assert_int_equal(offsetof(struct kn_own, freed), 320);
	assert_int_equal(KN_BANK_OWNERS_OFF, 4096);
	assert_int_equal(KN_BANK_SLOTS_OFF, 8192);
	assert_int_equal(KN_BANK_OWN_OFF, 8192 + 20480);
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
		cmocka_unit_test(a_submit_region_has_room_for_all_claimants),
		cmocka_unit_test(a_region_out_of_range_is_refused),
		cmocka_unit_test(wire_format_4_is_as_it_was),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
