/* tests/unit/test_ipc_clock.c: deadlines neither wrap nor spin. */
#include "tests/unit/ipc_test.h"

#include <limits.h>
#include <time.h>

#include "ipc/clock.h"

static void
now_is_the_kernels_monotonic_clock(void **state)
{
	struct timespec a, b;
	uint64_t now;

	(void)state;
	clock_gettime(CLOCK_MONOTONIC, &a);
	now = kn_clock_now();
	clock_gettime(CLOCK_MONOTONIC, &b);
	assert_true(now >= (uint64_t)a.tv_sec * KN_S_NS + (uint64_t)a.tv_nsec);
	assert_true(now <= (uint64_t)b.tv_sec * KN_S_NS + (uint64_t)b.tv_nsec);
}

static void
a_deadline_saturates_and_zero_is_none(void **state)
{
	(void)state;
	assert_int_equal(kn_clock_after_ms(5, 0), 0);
	assert_int_equal(kn_clock_after_ms(5, 2), 2000005);
	assert_true(kn_clock_after_ms(5, UINT64_MAX) == UINT64_MAX);
	assert_true(kn_clock_after_ms(UINT64_MAX - 1, 1) == UINT64_MAX);
	assert_true(kn_clock_after_ms(UINT64_MAX - KN_MS_NS, 1) == UINT64_MAX);
}

static void
poll_never_wakes_before_the_deadline(void **state)
{
	(void)state;
	assert_int_equal(kn_clock_poll_ms(100, 0), -1);
	assert_int_equal(kn_clock_poll_ms(100, 100), 0);
	assert_int_equal(kn_clock_poll_ms(101, 100), 0);
	assert_int_equal(kn_clock_poll_ms(100, 101), 1);
	assert_int_equal(kn_clock_poll_ms(0, KN_MS_NS), 1);
	assert_int_equal(kn_clock_poll_ms(0, KN_MS_NS + 1), 2);
	assert_int_equal(kn_clock_poll_ms(0, UINT64_MAX), INT_MAX);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(now_is_the_kernels_monotonic_clock),
		cmocka_unit_test(a_deadline_saturates_and_zero_is_none),
		cmocka_unit_test(poll_never_wakes_before_the_deadline),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
