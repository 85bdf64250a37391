/* tests/unit/test_core_timers.c: the deadline heap against a plain array. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "supervisor/core/timers.h"

enum { IDS = 37 };

struct fixture {
	uint64_t due[IDS];
	uint32_t at[IDS], heap[IDS];
	struct kn_timers t;
};

static void
make(struct fixture *f)
{
	f->t.due_ns = f->due;
	f->t.at = f->at;
	f->t.heap = f->heap;
	kn_timers_init(&f->t, IDS);
}

static void
an_empty_heap_has_no_deadline(void **state)
{
	struct fixture f;
	uint32_t id = 99;

	(void)state;
	make(&f);
	assert_int_equal(kn_timers_next(&f.t), 0);
	assert_false(kn_timers_pop(&f.t, UINT64_MAX, &id));
	assert_int_equal(id, 99);
}

static void
the_earliest_comes_first_and_ties_by_id(void **state)
{
	struct fixture f;
	uint32_t id;

	(void)state;
	make(&f);
	kn_timers_set(&f.t, 5, 200);
	kn_timers_set(&f.t, 9, 100);
	kn_timers_set(&f.t, 3, 100);
	assert_int_equal(kn_timers_next(&f.t), 100);
	assert_false(kn_timers_pop(&f.t, 99, &id));
	assert_true(kn_timers_pop(&f.t, 300, &id));
	assert_int_equal(id, 3);
	assert_true(kn_timers_pop(&f.t, 300, &id));
	assert_int_equal(id, 9);
	assert_true(kn_timers_pop(&f.t, 300, &id));
	assert_int_equal(id, 5);
	assert_false(kn_timers_pop(&f.t, 300, &id));
}

static void
a_deadline_moves_and_goes(void **state)
{
	struct fixture f;
	uint32_t id;

	(void)state;
	make(&f);
	kn_timers_set(&f.t, 1, 100);
	kn_timers_set(&f.t, 2, 150);
	kn_timers_set(&f.t, 1, 200);
	assert_int_equal(kn_timers_next(&f.t), 150);
	kn_timers_set(&f.t, 2, 0);
	kn_timers_set(&f.t, 2, 0);
	assert_int_equal(kn_timers_next(&f.t), 200);
	assert_true(kn_timers_pop(&f.t, 200, &id));
	assert_int_equal(id, 1);
	assert_int_equal(kn_timers_next(&f.t), 0);
}

/* Random sets, clears and pops, against the minimum of a plain array. */
static void
it_agrees_with_a_plain_array(void **state)
{
	struct fixture f;
	uint64_t plain[IDS] = { 0 }, now = 1;
	uint32_t seed = 12345;

	(void)state;
	make(&f);
	for (int round = 0; round < 200000; round++) {
		seed = seed * 1664525 + 1013904223;
		uint32_t id = (seed >> 8) % IDS, got;
		uint64_t due = (seed >> 28) == 0 ? 0 : now + (seed >> 16) % 50;
		kn_timers_set(&f.t, id, due);
		plain[id] = due;
		uint64_t min = 0;
		uint32_t who = 0;
		for (uint32_t i = 0; i < IDS; i++) {
			if (plain[i] != 0 && (min == 0 || plain[i] < min)) {
				min = plain[i];
				who = i;
			}
		}
		assert_int_equal(kn_timers_next(&f.t), min);
		now += seed % 3;
		if (kn_timers_pop(&f.t, now, &got)) {
			assert_true(min <= now);
			assert_int_equal(got, who);
			plain[got] = 0;
		} else {
			assert_true(min == 0 || min > now);
		}
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_empty_heap_has_no_deadline),
		cmocka_unit_test(the_earliest_comes_first_and_ties_by_id),
		cmocka_unit_test(a_deadline_moves_and_goes),
		cmocka_unit_test(it_agrees_with_a_plain_array),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
