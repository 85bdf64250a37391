/* tests/unit/test_batch.c: what a batch accepts, in which order it may run, and that
 * every line is answered exactly once.
 */
#include "tests/unit/batch_world.h"

static void
bad_lines_cost_themselves_only(void **state)
{
	(void)state;
	open_batch(4, false, NULL);
	line("{\"id\":\"a\",\"argv\":[\"true\"]}");
	line("{nonsense");
	line("%s", "  ");
	line("{\"id\":\"a\",\"argv\":[\"true\"]}");
	line("{\"id\":\"b\",\"argv\":[\"true\"],\"after\":[\"later\"]}");
	line("{\"argv\":[\"true\"]}");
	line("{\"cancel\":\"nobody\"}");
	line("{\"id\":\"c\",\"argv\":[]}");
	line("{\"id\":\"d\",\"argv\":[\"true\"],\"after\":[\"c\"]}");
	line("{\"id\":\"later\",\"argv\":[\"true\"]}");
	begin();
	run_to_end();
	expect("a", KN_V_OK, "");
	expect("line-2", KN_V_INVALID, "not JSON");
	assert_int_equal(result_of("line-2")->line, 2);
	expect("line-4", KN_V_INVALID, "/id: \"a\" was used");
	expect("b", KN_V_INVALID, "/after/0: no earlier line has the id \"later\"");
	expect("line-6", KN_V_OK, "");
	assert_int_equal(result_of("line-6")->line, 0);
	expect("line-7", KN_V_INVALID, "/cancel");
	expect("c", KN_V_INVALID, "/argv");
	expect("d", KN_V_SKIPPED, "comes after c, which ended: invalid");
	expect("later", KN_V_OK, "");
	assert_int_equal(w.n, 9);
	close_batch();
}

static void
an_over_long_line_is_discarded(void **state)
{
	char *big = malloc(1 << 20);

	(void)state;
	assert_non_null(big);
	memset(big, 'x', 1 << 20);
	open_batch(4, false, NULL);
	line("{\"id\":\"a\",\"argv\":[\"true\"]}");
	for (int i = 0; i < 17; i++)
		assert_int_equal(write(w.in, big, 1 << 20), 1 << 20);
	line("%s", "");
	line("{\"id\":\"b\",\"argv\":[\"true\"]}");
	for (int i = 0; i < 17; i++)
		assert_int_equal(write(w.in, big, 1 << 20), 1 << 20);
	begin();
	run_to_end();
	expect("a", KN_V_OK, "");
	expect("line-2", KN_V_INVALID, "longer than 16 MiB");
	expect("b", KN_V_OK, "");
	expect("line-4", KN_V_INVALID, "longer than 16 MiB");
	assert_int_equal(w.n, 4);
	free(big);
	close_batch();
}

static void
followers_wait_and_fall_with_their_predecessor(void **state)
{
	(void)state;
	open_batch(8, false, NULL);
	line("{\"id\":\"c1\",\"argv\":[\"cc\"]}");
	line("{\"id\":\"c2\",\"argv\":[\"cc\"]}");
	line("{\"id\":\"t1\",\"argv\":[\"t\"],\"after\":[\"c1\",\"c2\",\"c1\"]}");
	line("{\"id\":\"t2\",\"argv\":[\"t\"],\"after\":[\"t1\"]}");
	line("{\"id\":\"t3\",\"argv\":[\"t\"],\"after\":[\"t2\",\"c1\"]}");
	line("{\"id\":\"u\",\"argv\":[\"t\"],\"after\":[\"c1\"]}");
	begin();
	read_all_possible();
	assert_int_equal(w.sup.n, 2);
	answer_with(&w.sup, 0, KN_V_OK); /* c1: u may run, t1 waits for c2 */
	assert_int_equal(w.sup.n, 2);
	assert_string_equal(w.sup.running[1]->id, "u");
	answer_with(&w.sup, 0, KN_V_EXIT); /* c2 */
	expect("t1", KN_V_SKIPPED, "comes after c2, which ended: exit");
	expect("t2", KN_V_SKIPPED, "comes after t1, which ended: skipped");
	expect("t3", KN_V_SKIPPED, "t2");
	run_to_end();
	assert_int_equal(w.n, 6);
	close_batch();
}

static void
cancel_reaches_waiting_and_running_tasks(void **state)
{
	(void)state;
	open_batch(1, false, NULL);
	line("{\"id\":\"a\",\"argv\":[\"t\"]}");
	line("{\"id\":\"b\",\"argv\":[\"t\"],\"after\":[\"a\"]}");
	line("{\"id\":\"c\",\"argv\":[\"t\"],\"after\":[\"b\"]}");
	line("{\"cancel\":\"b\"}");
	line("{\"cancel\":\"a\"}");
	line("{\"cancel\":\"a\"}");
	line("{\"id\":\"d\",\"argv\":[\"t\"]}");
	begin();
	run_to_end();
	expect("a", KN_V_CANCELLED, "");
	expect("b", KN_V_CANCELLED, "before it began");
	expect("c", KN_V_SKIPPED, "cancelled");
	expect("d", KN_V_OK, "");
	assert_int_equal(w.n, 4);
	close_batch();
}

static void
a_long_batch_is_read_only_as_fast_as_it_runs(void **state)
{
	enum { N = 10000 };
	struct kn_batch_counts c;

	(void)state;
	open_batch(3, false, NULL);
	line("{\"id\":\"first\",\"argv\":[\"t\"]}");
	for (int i = 0; i < N; i++)
		line("{\"id\":\"t%d\",\"argv\":[\"t\"],\"after\":[\"first\"]}", i);
	begin();
	read_all_possible();
	kn_batch_count(w.batch, &c);
	assert_int_equal(c.waiting + c.running, KN_BATCH_LIVE_MAX);
	assert_false(c.eof);
	run_to_end();
	assert_int_equal(w.n, N + 1);
	assert_int_equal(w.sup.most, 3);
	for (int i = 0; i <= N; i++)
		assert_int_equal(w.results[i].verdict, KN_V_OK);
	close_batch();
}

static void
a_full_output_stops_the_reading(void **state)
{
	struct kn_batch_counts c;

	(void)state;
	open_batch(4, false, NULL);
	for (int i = 0; i < 100; i++)
		line("{\"argv\":[\"t\"]}");
	w.blocked = true;
	begin();
	read_all_possible();
	kn_batch_count(w.batch, &c);
	assert_int_equal(c.accepted, 0);
	assert_false(kn_batch_wants(w.batch));
	w.blocked = false;
	kn_batch_wake(w.batch);
	run_to_end();
	assert_int_equal(w.n, 100);
	close_batch();
}

static void
a_stop_answers_everything_accepted(void **state)
{
	(void)state;
	open_batch(2, false, NULL);
	for (int i = 0; i < 10; i++)
		line("{\"id\":\"t%d\",\"argv\":[\"t\"],\"after\":[%s]}", i,
		    i > 1 ? "\"t0\"" : "");
	begin();
	read_all_possible();
	assert_int_equal(w.sup.n, 2);
	answer_with(
	    &w.sup, 1, KN_V_CANCELLED); /* as a signal makes the supervisor do */
	assert_int_equal(w.n, 9);
	answer_with(&w.sup, 0, KN_V_OK);
	assert_int_equal(w.n, 10);
	assert_true(is_over());
	expect("t0", KN_V_OK, "");
	expect("t9", KN_V_CANCELLED, "");
	close_batch();
}

static void
fail_fast_stops_at_the_first_failure(void **state)
{
	(void)state;
	open_batch(2, true, NULL);
	for (int i = 0; i < 100; i++)
		line("{\"id\":\"t%d\",\"argv\":[\"t\"]}", i);
	begin();
	read_all_possible();
	answer_with(&w.sup, 0, KN_V_OK);
	assert_false(w.stopped);
	answer_with(&w.sup, 0, KN_V_TIMEOUT);
	assert_true(w.stopped);
	while (w.sup.n > 0)
		answer_with(&w.sup, 0, KN_V_CANCELLED);
	assert_true(is_over());
	assert_true(w.n < 10);
	close_batch();
}

/* What runs is dropped without an answer, what comes after it with it. */
static void
a_close_lets_go_of_what_runs(void **state)
{
	(void)state;
	open_batch(2, false, NULL);
	line("{\"id\":\"a\",\"argv\":[\"t\"]}");
	line("{\"id\":\"b\",\"argv\":[\"t\"],\"after\":[\"a\"]}");
	line("{\"id\":\"c\",\"argv\":[\"t\"]}");
	line("{\"id\":\"d\",\"argv\":[\"t\"],\"after\":[\"b\",\"c\"]}");
	begin();
	read_all_possible();
	assert_int_equal(w.sup.n, 2);
	close_batch();
	assert_int_equal(w.sup.n, 0);
	assert_int_equal(w.n, 2); /* b and d: they had not begun */
}

/* Wherever the bytes are cut. */
static void
lines_may_come_in_pieces(void **state)
{
	static const char text[] = "{\"id\":\"a\",\"argv\":[\"t\"]}\n"
				   "{\"id\":\"b\",\"argv\":[\"t\"],\"after\":[\"a\"]}";

	(void)state;
	for (size_t piece = 1; piece < sizeof text; piece += 7) {
		open_batch(4, false, NULL);
		for (size_t at = 0; at < sizeof text - 1; at += piece) {
			size_t n = sizeof text - 1 - at;

			assert_int_equal(
			    kn_batch_feed(w.batch, text + at, n < piece ? n : piece),
			    0);
		}
		assert_int_equal(w.sup.n, 1); /* the second has no end yet */
		kn_batch_no_more(w.batch);
		run_to_end();
		assert_int_equal(w.n, 2);
		expect("b", KN_V_OK, "");
		close_batch();
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bad_lines_cost_themselves_only),
		cmocka_unit_test(an_over_long_line_is_discarded),
		cmocka_unit_test(followers_wait_and_fall_with_their_predecessor),
		cmocka_unit_test(cancel_reaches_waiting_and_running_tasks),
		cmocka_unit_test(a_long_batch_is_read_only_as_fast_as_it_runs),
		cmocka_unit_test(a_full_output_stops_the_reading),
		cmocka_unit_test(a_stop_answers_everything_accepted),
		cmocka_unit_test(fail_fast_stops_at_the_first_failure),
		cmocka_unit_test(a_close_lets_go_of_what_runs),
		cmocka_unit_test(lines_may_come_in_pieces),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
