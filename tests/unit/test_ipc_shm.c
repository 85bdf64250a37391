/* tests/unit/test_ipc_shm.c: the typed accesses do what their names say. (That they are
 * ordered is shown by tests/stress/lane.c under a thread sanitizer.) */
#include "tests/unit/ipc_test.h"

#include "ipc/shm.h"

static void
words_are_exchanged_flipped_and_compared(void **state)
{
	uint32_t w = 5;
	uint64_t q = 1ull << 40, expected;

	(void)state;
	assert_int_equal(kn_shm_swap32_seqcst(&w, 9), 5);
	assert_int_equal(kn_shm_xor32_release(&w, 3), 9);
	assert_int_equal(kn_shm_load32_acquire(&w), 10);
	kn_shm_store32_release(&w, 1);
	assert_int_equal(w, 1);
	expected = 7;
	assert_false(kn_shm_cas64_acqrel(&q, &expected, 8));
	assert_true(expected == 1ull << 40);
	assert_true(kn_shm_cas64_acqrel(&q, &expected, 8));
	assert_true(kn_shm_load64_acquire(&q) == 8);
	kn_shm_store64_release(&q, UINT64_MAX);
	assert_true(q == UINT64_MAX);
}

static void
copies_of_any_length_touch_nothing_past_it(void **state)
{
	_Alignas(8) uint8_t shared[64];
	uint8_t from[64], to[64];

	(void)state;
	for (size_t i = 0; i < sizeof from; i++)
		from[i] = (uint8_t)(i + 1);
	for (size_t n = 0; n <= sizeof from; n++) {
		size_t room = (n + 7) & ~(size_t)7;

		memset(shared, 0xee, sizeof shared);
		memset(to, 0xdd, sizeof to);
		kn_shm_words_store_release(shared, from, n);
		assert_memory_equal(shared, from, n);
		for (size_t i = n; i < room; i++)
			assert_int_equal(shared[i], 0); /* nothing old left behind */
		for (size_t i = room; i < sizeof shared; i++)
			assert_int_equal(shared[i], 0xee);
		kn_shm_words_load_acquire(to, shared, n);
		assert_memory_equal(to, from, n);
		for (size_t i = n; i < sizeof to; i++)
			assert_int_equal(to[i], 0xdd);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(words_are_exchanged_flipped_and_compared),
		cmocka_unit_test(copies_of_any_length_touch_nothing_past_it),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
