/* tests/unit/test_supervisor_stream.c: a task's pipes when the supervisor cannot use
 * them: the task is ended, and what it is answered is no "ok" with half of its output.
 */
#include <errno.h>

#include "tests/unit/supervisor_test.h"

/* What the supervisor says next about a task that it has handed out. */
static uint32_t
next_cause(const struct kn_entry *e)
{
	struct kn_msg m = { 0 };
	int fds[KN_MSG_FDS_MAX], n = 0;

	while (kn_fd_recv(theirs, &m, sizeof m, fds, KN_MSG_FDS_MAX, &n, 1) > 0) {
		for (int i = 0; i < n; i++)
			kn_fd_close(&fds[i]);
		if (m.type != KN_MSG_KILL)
			continue;
		assert_int_equal(m.task, e->index);
		assert_int_equal(m.gen, e->gen);
		return m.arg;
	}
	return KN_CAUSE_NONE;
}

/* A descriptor that can be opened and not read. */
static void
make_unreadable(int fd)
{
	KN_OWN_FD int dir = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	assert_true(dir >= 0);
	assert_int_equal(dup2(dir, fd), fd);
}

static void
output_that_cannot_be_read_breaks_the_task(void **state)
{
	struct kn_entry *e;

	(void)state;
	prepare();
	e = &s->entry[0];
	make_unreadable(e->io.out_fd);
	kn_stream_drain(e);
	assert_string_equal(e->broken, "stdout");
	assert_int_equal(e->broken_sys, EISDIR);
	assert_int_equal(next_cause(e), KN_CAUSE_CANCEL);
}

static void
input_that_cannot_be_read_breaks_the_task(void **state)
{
	struct kn_entry *e;

	(void)state;
	task.stdin_fd = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	e = hand_out(0, 5);
	assert_string_equal(e->broken, "stdin");
	assert_int_equal(next_cause(e), KN_CAUSE_CANCEL);
	assert_int_equal(e->io.in_fd, -1);
	kn_fd_close(&task.stdin_fd);
}

static void
a_task_that_does_not_read_its_input_is_not_broken(void **state)
{
	static char bytes[] = "input";
	struct kn_entry *e;

	(void)state;
	task.stdin_bytes = bytes;
	task.stdin_n = sizeof bytes;
	e = hand_out(0, 5);
	assert_null(e->broken);
	assert_int_equal(next_cause(e), KN_CAUSE_NONE); /* takes the pipes, closes */
	kn_stream_drain(e);
	assert_null(e->broken);
}

static void
the_next_attempt_starts_whole(void **state)
{
	struct kn_entry *e;

	(void)state;
	prepare();
	e = &s->entry[0];
	make_unreadable(e->io.err_fd);
	kn_stream_drain(e);
	assert_string_equal(e->broken, "stderr");
	e->state = KN_ENTRY_KNOWN;
	w->outstanding = 0;
	hand_out(0, 6);
	assert_null(e->broken);
}

static void
a_little_later(void)
{
	kn_stream_watch_late(s, s->late_first ? s->late_first->late_ns : 0);
}

/* A stub that does not read for a while. */
static void
the_end_of_a_task_is_asked_for_until_it_can_be_said(void **state)
{
	struct kn_entry *e;

	(void)state;
	policy.output_kill = true;
	prepare();
	e = &s->entry[0];
	kn_control_begin(w->slice.control, e->index, e->gen, kn_clock_now());
	while (kn_act_message(w, KN_MSG_WAKE, NULL, 0, NULL, 0) == 0)
		;
	kn_stream_over(e, "stdout");
	assert_int_equal(next_cause(e), KN_CAUSE_NONE); /* reads all there is */
	a_little_later();
	assert_int_equal(next_cause(e), KN_CAUSE_OUTPUT);
	assert_string_equal(e->over, "stdout");
	a_little_later();
	assert_int_equal(next_cause(e), KN_CAUSE_NONE); /* once it is said */
}

/* What is said before its worker is at it, the worker drops. */
static void
what_breaks_behind_another_task_is_ended_when_its_turn_has_come(void **state)
{
	struct kn_entry *e;

	(void)state;
	task.stdin_fd = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	e = hand_out(0, 5);
	assert_int_equal(next_cause(e), KN_CAUSE_CANCEL);
	a_little_later();
	kn_control_begin(w->slice.control, e->index, e->gen, kn_clock_now());
	assert_int_equal(next_cause(e), KN_CAUSE_CANCEL);
	a_little_later();
	assert_int_equal(next_cause(e), KN_CAUSE_CANCEL);
	a_little_later();
	assert_int_equal(next_cause(e), KN_CAUSE_NONE);
	kn_fd_close(&task.stdin_fd);
}

/* The task's end of its stdout. */
static int
stdout_of(const struct kn_entry *e)
{
	struct kn_msg m = { 0 };
	int fds[KN_MSG_FDS_MAX], n = 0, out;

	assert_true(kn_fd_recv(theirs, &m, sizeof m, fds, KN_MSG_FDS_MAX, &n, 1) > 0);
	assert_int_equal(m.type, KN_MSG_TASK);
	assert_int_equal(m.task, e->index);
	assert_int_equal(n, 3);
	out = kn_fd_take(&fds[1]);
	kn_fd_close(&fds[0]);
	kn_fd_close(&fds[2]);
	return out;
}

static void
what_a_pipe_made_large_holds_is_read_to_its_end(void **state)
{
	enum { MUCH = 3 << 20 };
	struct kn_entry *e;
	char *bytes;
	int out;

	(void)state;
	task.limits.stdout_bytes = 2 * MUCH;
	e = hand_out(0, 5);
	out = stdout_of(e);
	if (fcntl(out, F_SETPIPE_SZ, MUCH) < MUCH) {
		close(out);
		print_message("a pipe above pipe-max-size takes CAP_SYS_RESOURCE\n");
		skip();
	}
	bytes = calloc(1, MUCH);
	assert_int_equal(write(out, bytes, MUCH), MUCH);
	kn_stream_drain(e);
	assert_int_equal(e->io.cap_out.total, MUCH);
	close(out);
	free(bytes);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
		    output_that_cannot_be_read_breaks_the_task, start, stop),
		cmocka_unit_test_setup_teardown(
		    input_that_cannot_be_read_breaks_the_task, start, stop),
		cmocka_unit_test_setup_teardown(
		    a_task_that_does_not_read_its_input_is_not_broken, start, stop),
		cmocka_unit_test_setup_teardown(
		    the_next_attempt_starts_whole, start, stop),
		cmocka_unit_test_setup_teardown(
		    the_end_of_a_task_is_asked_for_until_it_can_be_said, start, stop),
		cmocka_unit_test_setup_teardown(
		    what_breaks_behind_another_task_is_ended_when_its_turn_has_come,
		    start, stop),
		cmocka_unit_test_setup_teardown(
		    what_a_pipe_made_large_holds_is_read_to_its_end, start, stop),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
