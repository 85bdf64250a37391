/* tests/unit/test_supervisor_run.c: tasks of a real pool: streams both ways, caps, what
 * is refused before a worker sees it.
 */
#include "tests/unit/supervisor_pool.h"

static void
streams_are_captured_apart_and_stdin_arrives(void **state)
{
	struct kn_task *t = make(1, "sh", "-c", "cat; echo e >&2; exit 3", NULL);

	(void)state;
	t->stdin_bytes = strdup("in\n");
	t->stdin_n = 3;
	open_pool(1, 0);
	submit(t);
	kn_sup_drain(sup);
	assert_int_equal(run_pool(), 0);
	assert_int_equal(answers[1].times, 1);
	assert_int_equal(answers[1].verdict, KN_V_EXIT);
	assert_int_equal(answers[1].exit_code, 3);
	assert_string_equal(answers[1].out.bytes, "in\n");
	assert_string_equal(answers[1].err.bytes, "e\n");
}

/* More than a pipe holds, both ways, at once; and from a file. */
static void
megabytes_go_through_both_ways(void **state)
{
	size_t n = 900000;
	struct kn_task *a = make(1, "cat", NULL), *b = make(2, "cat", NULL);
	char *bytes = malloc(n);

	(void)state;
	for (size_t i = 0; i < n; i++)
		bytes[i] = (char)(i * 7 + i / 1000);
	a->stdin_bytes = malloc(n);
	memcpy(a->stdin_bytes, bytes, n);
	a->stdin_n = n;
	b->stdin_fd = memfd_create("stdin", MFD_CLOEXEC);
	assert_int_equal(kn_fd_write_all(b->stdin_fd, bytes, n), 0);
	open_pool(1, 0);
	submit(a);
	submit(b);
	kn_sup_drain(sup);
	assert_int_equal(run_pool(), 0);
	for (int i = 1; i <= 2; i++) {
		assert_int_equal(answers[i].verdict, KN_V_OK);
		assert_int_equal(answers[i].out.n, n);
		assert_memory_equal(answers[i].out.bytes, bytes, n);
	}
	free(bytes);
}

static void
a_task_that_does_not_read_its_input_is_not_held_up(void **state)
{
	struct kn_task *t = make(1, "true", NULL);

	(void)state;
	t->stdin_bytes = calloc(1, 8 << 20);
	t->stdin_n = 8 << 20;
	open_pool(1, 0);
	submit(t);
	kn_sup_drain(sup);
	assert_int_equal(run_pool(), 0);
	assert_int_equal(answers[1].verdict, KN_V_OK);
}

static void
a_flood_is_cut_in_the_middle_and_counted(void **state)
{
	(void)state;
	load("/limits/task/stdout=64K");
	open_pool(1, 0);
	submit(make(1, "sh", "-c",
	    "echo first; head -c 5000000 /dev/zero | tr '\\0' x; echo last", NULL));
	kn_sup_drain(sup);
	assert_int_equal(run_pool(), 0);
	assert_int_equal(answers[1].verdict, KN_V_OK);
	assert_int_equal(answers[1].out.total, 5000000 + 6 + 5);
	assert_int_equal(answers[1].out.n, 65536);
	assert_true(answers[1].out.truncated);
	assert_memory_equal(answers[1].out.bytes, "first\nxx", 8);
	assert_memory_equal(answers[1].out.bytes + 65536 - 7, "xxlast\n", 7);
}

static void
a_flood_ends_the_task_where_the_policy_says_so(void **state)
{
	struct kn_policy_src src[] = {
		{ .type = KN_SRC_SET, .text = "/limits/task/stdout=64K", .label = "a" },
		{ .type = KN_SRC_SET, .text = "/on_output_limit=kill", .label = "b" },
	};

	(void)state;
	kn_policy_free(policy);
	if (kn_policy_load(src, 2, &policy, &err) < 0)
		fail_msg("policy: %s", err.msg);
	open_pool(1, 0);
	submit(make(1, "yes", NULL));
	kn_sup_drain(sup);
	assert_int_equal(run_pool(), 0);
	assert_int_equal(answers[1].verdict, KN_V_OUTPUT_LIMIT);
}

static void
too_large_is_said_before_a_worker_sees_it(void **state)
{
	struct kn_task *t = make(1, "true", NULL);

	(void)state;
	t->files = calloc(1, sizeof *t->files);
	t->file_n = 1;
	t->files[0] = (struct kn_task_file){ .path = strdup("big"),
		.mode = 0644,
		.bytes = calloc(1, 9 << 20),
		.byte_n = 9 << 20,
		.fd = -1 };
	open_pool(1, 0);
	submit(t);
	submit(make(2, "true", NULL));
	kn_sup_drain(sup);
	assert_int_equal(run_pool(), 0);
	assert_int_equal(answers[1].verdict, KN_V_TOO_LARGE);
	assert_int_equal(answers[1].worker, -1);
	assert_non_null(strstr(answers[1].error, "KNT_ERROR_3"));
	assert_int_equal(answers[2].verdict, KN_V_OK);
}

static void
a_full_window_says_no_and_then_that_there_is_room(void **state)
{
	struct kn_task *t;

	(void)state;
	open_pool(1, 2);
	submit(make(1, "true", NULL));
	submit(make(2, "true", NULL));
	t = make(3, "true", NULL);
	assert_int_equal(kn_sup_submit(sup, t, &err), 1);
	kn_task_free(t); /* still ours */
	kn_sup_drain(sup);
	assert_int_equal(run_pool(), 0);
	assert_true(room_calls > 0);
	assert_int_equal(answered, 2);
}

int
main(void)
{
#define RUN(t) cmocka_unit_test_setup_teardown(t, start, stop)
	const struct CMUnitTest tests[] = {
		RUN(streams_are_captured_apart_and_stdin_arrives),
		RUN(megabytes_go_through_both_ways),
		RUN(a_task_that_does_not_read_its_input_is_not_held_up),
		RUN(a_flood_is_cut_in_the_middle_and_counted),
		RUN(a_flood_ends_the_task_where_the_policy_says_so),
		RUN(too_large_is_said_before_a_worker_sees_it),
		RUN(a_full_window_says_no_and_then_that_there_is_room),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
