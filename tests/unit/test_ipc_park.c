/* tests/unit/test_ipc_park.c: who is about to sleep is woken, who is awake is left
 * alone, and abort bits are each one's own. */
#include "tests/unit/ipc_test.h"

#include <pthread.h>

#include "ipc/clock.h"
#include "ipc/park.h"

static struct kn_control c;

static int
start(void **state)
{
	(void)state;
	memset(&c, 0, sizeof c);
	return 0;
}

static void
who_is_awake_costs_no_wake(void **state)
{
	uint32_t seen;

	(void)state;
	assert_false(kn_park_wake(&c));
	seen = kn_park_begin(&c);
	kn_park_end(&c); /* the last look found something */
	assert_false(kn_park_wake(&c));
	assert_int_equal(seen, kn_park_begin(&c));
}

static void
a_wake_between_the_last_look_and_the_sleep_is_not_lost(void **state)
{
	uint32_t seen = kn_park_begin(&c);

	(void)state;
	assert_true(kn_park_wake(&c));
	kn_park(&c, seen); /* would hang */
	assert_false(kn_park_wake(&c));
	/* And also where the word has gone all the way round. */
	c.wake = UINT32_MAX;
	seen = kn_park_begin(&c);
	assert_true(kn_park_wake(&c));
	assert_int_equal(c.wake, 0);
	kn_park(&c, seen);
}

static void
where_each_side_runs_is_its_own_word(void **state)
{
	(void)state;
	assert_int_equal(kn_park_host_cpu(&c), 0); /* not known */
	assert_int_equal(kn_park_worker_cpu(&c), 0);
	kn_park_host_is_on(&c, 1);
	kn_park_worker_is_on(&c, 3);
	assert_int_equal(kn_park_host_cpu(&c), 1);
	assert_int_equal(kn_park_worker_cpu(&c), 3);
	assert_false(kn_park_wake(&c));
}

static void
a_sleep_can_have_an_end(void **state)
{
	uint64_t begun = kn_clock_now();
	uint32_t seen = kn_park_begin(&c);

	(void)state;
	assert_false(kn_park_for(&c, seen, 20 * KN_MS_NS));
	assert_true(kn_clock_now() - begun >= 20 * KN_MS_NS);
	assert_false(kn_park_wake(&c)); /* it is not parked any more */
	seen = kn_park_begin(&c);
	assert_true(kn_park_wake(&c));
	assert_true(kn_park_for(&c, seen, 60 * KN_S_NS));
}

enum { ROUNDS = 20000 };
static uint32_t published;

static void *
sleeper(void *arg)
{
	uint32_t got = 0;

	(void)arg;
	while (got < ROUNDS) {
		uint32_t seen = kn_park_begin(&c);
		uint32_t now = __atomic_load_n(&published, __ATOMIC_ACQUIRE);

		if (now != got) {
			got = now;
			kn_park_end(&c);
		} else {
			kn_park(&c, seen);
		}
	}
	return NULL;
}

/* One who publishes and one who sleeps, as fast as they can; a lost wake hangs. */
static void
no_publication_is_slept_over(void **state)
{
	pthread_t t;

	(void)state;
	published = 0;
	assert_int_equal(pthread_create(&t, NULL, sleeper, NULL), 0);
	for (uint32_t i = 1; i <= ROUNDS; i++) {
		__atomic_store_n(&published, i, __ATOMIC_RELEASE);
		kn_park_wake(&c);
		if (i % 64 == 0)
			sched_yield();
	}
	pthread_join(t, NULL);
}

static void
an_abort_bit_is_one_calls_own(void **state)
{
	(void)state;
	for (uint32_t id = 0; id < KN_ABORT_BITS; id++) {
		kn_abort_set(c.abort, id);
		for (uint32_t other = 0; other < KN_ABORT_BITS; other++)
			assert_int_equal(kn_abort_test(c.abort, other), other == id);
		kn_abort_clear(c.abort, id);
		assert_false(kn_abort_test(c.abort, id));
	}
	/* Ids that do not exist touch nothing. */
	kn_abort_set(c.abort, KN_ABORT_BITS);
	kn_abort_set(c.abort, KN_NO_ABORT);
	assert_false(kn_abort_test(c.abort, KN_ABORT_BITS));
	assert_false(kn_abort_test(c.abort, KN_NO_ABORT));
	for (uint32_t i = 0; i < KN_ABORT_WORDS; i++)
		assert_int_equal(c.abort[i], 0);
}

int
main(void)
{
#define FRESH(t) cmocka_unit_test_setup(t, start)
	const struct CMUnitTest tests[] = {
		FRESH(who_is_awake_costs_no_wake),
		FRESH(a_wake_between_the_last_look_and_the_sleep_is_not_lost),
		FRESH(where_each_side_runs_is_its_own_word),
		FRESH(a_sleep_can_have_an_end),
		FRESH(no_publication_is_slept_over),
		FRESH(an_abort_bit_is_one_calls_own),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
