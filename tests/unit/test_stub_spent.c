/* tests/unit/test_stub_spent.c: processor time that is in no account, and time that is
 * counted once only. The tables are filled here, as a look would.
 */
#include "sandbox_test.h"

#include "ipc/clock.h"
#include "sandbox/stub/look.c"
#include "sandbox/stub/spent.c"

enum { INIT = 2, TASK = 7, CHILD = 8 };

static const struct kn_spent_init init = { INIT, 0 };
static uint64_t now_ms;

static void
begin(struct kn_spent *s)
{
	memset(s, 0, sizeof *s);
	now_ms = 1000;
	kn_spent_begin(s, now_ms * KN_MS_NS);
}

static void
is_there(struct kn_spent *s, int pid, bool runs, uint64_t own_ms, uint64_t waited_ms)
{
	seen[s->now][s->n++] = (struct seen){ .pid = pid,
		.runs = runs,
		.own_ns = own_ms * KN_MS_NS,
		.waited_ns = waited_ms * KN_MS_NS };
}

static uint64_t
used_ms(struct kn_spent *s, uint64_t after_ms)
{
	now_ms += after_ms;
	return settle(s, &init, 2, now_ms * KN_MS_NS) / KN_MS_NS;
}

static void
a_child_that_is_gone_is_still_counted(void **state)
{
	struct kn_spent s;

	(void)state;
	begin(&s);
	for (int i = 0; i < 10; i++) {
		kn_spent_look(&s);
		is_there(&s, INIT, false, 0, 0);
		is_there(&s, TASK, false, 1, 0);
		is_there(&s, CHILD + i, true, 90, 0);
		assert_int_equal(used_ms(&s, 100), 1 + 90 * (i + 1));
	}
	kn_spent_look(&s);
	is_there(&s, INIT, false, 0, 0);
	assert_int_equal(used_ms(&s, 100), 901);
}

static void
what_was_waited_for_counts_once(void **state)
{
	struct kn_spent s;

	(void)state;
	begin(&s);
	for (int i = 0; i < 10; i++) {
		kn_spent_look(&s);
		is_there(&s, INIT, false, 0, 0);
		is_there(&s, TASK, false, 1, 100 * (uint64_t)i);
		is_there(&s, CHILD + i, true, 90, 0);
		assert_int_equal(used_ms(&s, 100), 1 + 100 * i + 90);
	}
	kn_spent_look(&s);
	is_there(&s, INIT, false, 0, 1001);
	assert_int_equal(used_ms(&s, 100), 1001);
}

static void
a_number_that_is_used_again_is_another_process(void **state)
{
	struct kn_spent s;

	(void)state;
	begin(&s);
	kn_spent_look(&s);
	is_there(&s, TASK, false, 50, 0);
	assert_int_equal(used_ms(&s, 100), 50);
	kn_spent_look(&s);
	is_there(&s, TASK, false, 20, 0);
	assert_int_equal(used_ms(&s, 100), 70);
}

/* Each look meets one that has run for 1 ms of its 8; 10 ms lie between two looks. */
static uint64_t
short_children(struct kn_spent *s, uint64_t waited_ms_each)
{
	uint64_t ms = 0;

	begin(s);
	for (int i = 0; i < 200; i++) {
		kn_spent_look(s);
		is_there(s, TASK, false, 1, waited_ms_each * (uint64_t)i);
		is_there(s, CHILD + i, true, 1, 0);
		ms = used_ms(s, 10);
	}
	return ms;
}

static void
samples_count_where_time_is_in_no_account(void **state)
{
	struct kn_spent s;
	uint64_t ms = short_children(&s, 0);

	(void)state;
	assert_true(ms > 1900);
	assert_true(ms <= 2001);
}

static void
samples_count_for_nothing_where_children_are_waited_for(void **state)
{
	struct kn_spent s;

	(void)state;
	/* Two of the ten were used, and the rest was waiting for a processor. */
	assert_int_equal(short_children(&s, 2), 1 + 2 * 199 + 1);
}

static void
no_more_is_sampled_than_processors_can_do(void **state)
{
	struct kn_spent s;

	(void)state;
	begin(&s);
	for (int i = 0; i < 100; i++) {
		kn_spent_look(&s);
		for (int j = 0; j < 50; j++)
			is_there(&s, CHILD + i * 50 + j, true, 1, 0);
		(void)used_ms(&s, 30);
	}
	assert_true(s.told_ns / KN_MS_NS <= 100 * 30 * 2);
}

static void
looks_come_close_while_processes_come_and_go(void **state)
{
	struct kn_spent s;
	uint64_t now_ns;

	(void)state;
	begin(&s);
	for (int i = 0; i < 10; i++) {
		kn_spent_look(&s);
		is_there(&s, TASK, false, 1, 0);
		(void)used_ms(&s, 50);
	}
	assert_int_equal(s.gap_ns, GAP_IDLE_NS);
	kn_spent_look(&s);
	is_there(&s, TASK, false, 1, 0);
	is_there(&s, CHILD, true, 1, 0);
	(void)used_ms(&s, 50);
	now_ns = now_ms * KN_MS_NS;
	for (int i = 0; i < 100; i++) {
		uint64_t in_ns = kn_spent_next(&s, now_ns) - now_ns;

		assert_true(in_ns >= GAP_MIN_NS / 2 && in_ns < GAP_MIN_NS * 3 / 2);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_child_that_is_gone_is_still_counted),
		cmocka_unit_test(what_was_waited_for_counts_once),
		cmocka_unit_test(a_number_that_is_used_again_is_another_process),
		cmocka_unit_test(samples_count_where_time_is_in_no_account),
		cmocka_unit_test(
		    samples_count_for_nothing_where_children_are_waited_for),
		cmocka_unit_test(no_more_is_sampled_than_processors_can_do),
		cmocka_unit_test(looks_come_close_while_processes_come_and_go),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
