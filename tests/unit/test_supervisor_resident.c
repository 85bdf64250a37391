/* tests/unit/test_supervisor_resident.c: a module's process has ended: what that means
 * for the call that it was at. Each call has its own end, and no other one's.
 */
#include "tests/unit/supervisor_test.h"

enum { GEN = 5 };

static struct kn_module module;
static uint64_t now;

/* A worker at call 0 for so long, its process ended; it has answered others before. */
static struct kn_entry *
at_call(uint64_t ms, enum kn_cause cause, int status)
{
	struct kn_entry *e = &s->entry[0];
	struct kn_resident_wk *r = &w->res;

	now = kn_clock_now();
	s->module = &module;
	task.timeouts = (struct kn_timeouts){ 0 };
	w->ready = true;
	w->results = 3;
	w->outstanding = 1;
	e->task = &task;
	e->state = KN_ENTRY_PLACED;
	e->worker = (int)w->index;
	e->incarnation = w->incarnation;
	e->gen = GEN;
	e->abort = KN_NO_ABORT;
	e->claimed = true;
	e->published_ns = now - ms * KN_MS_NS - 1;
	kn_control_begin(w->slice.control, 0, GEN, now - ms * KN_MS_NS);
	r->ended = true;
	r->killed = cause;
	r->killed_ns = now;
	r->end = (struct kn_job_result){ .cause = cause,
		.step = KN_EXEC_STARTED,
		.wait_status = status,
		.ended_ns = now };
	return e;
}

/* What the core is told of it. */
static enum kn_event_type
told(void)
{
	kn_resident_answer(w);
	assert_int_equal(s->events.n, 1);
	assert_int_equal(s->events.v[0].task, 0);
	assert_int_equal(s->events.v[0].gen, GEN);
	return s->events.v[0].type;
}

static void
its_own_end(const struct kn_entry *e)
{
	assert_int_equal(told(), KN_EV_RESULT);
	assert_true(e->died);
	assert_int_equal(e->result.cause, w->res.end.cause);
}

/* It is lost, as when its worker goes. */
static void
no_end_of_its_own(const struct kn_entry *e)
{
	assert_int_equal(told(), KN_EV_BEGUN);
	assert_false(e->died);
	assert_non_null(strstr(e->why, "another reason"));
}

static void
who_overran_the_hard_limit_has_its_verdict(void **state)
{
	struct kn_entry *e = at_call(50, KN_CAUSE_HARD, SIGKILL);

	(void)state;
	task.timeouts.hard_ms = 50;
	its_own_end(e);
}

static void
who_began_just_before_the_hard_kill_of_another_has_not_overrun(void **state)
{
	struct kn_entry *e = at_call(1, KN_CAUSE_HARD, SIGKILL);

	(void)state;
	task.timeouts.hard_ms = 50;
	no_end_of_its_own(e);
}

static void
who_has_no_hard_limit_did_not_overrun_it(void **state)
{
	(void)state;
	no_end_of_its_own(at_call(100, KN_CAUSE_HARD, SIGKILL));
}

static void
who_was_told_to_give_up_and_did_not_is_cancelled(void **state)
{
	struct kn_entry *e = at_call(100, KN_CAUSE_CANCEL, SIGKILL);

	(void)state;
	e->aborted = true;
	its_own_end(e);
}

static void
who_was_not_told_to_give_up_is_not_cancelled(void **state)
{
	(void)state;
	no_end_of_its_own(at_call(100, KN_CAUSE_CANCEL, SIGKILL));
}

static void
too_much_output_is_whose_call_it_was(void **state)
{
	(void)state;
	its_own_end(at_call(1, KN_CAUSE_OUTPUT, SIGKILL));
}

static void
who_began_after_the_kill_did_not_write_too_much(void **state)
{
	struct kn_entry *e = at_call(1, KN_CAUSE_OUTPUT, SIGKILL);

	(void)state;
	w->res.killed_ns = now - 2 * KN_MS_NS;
	no_end_of_its_own(e);
}

/* ---- memory ---- */

static uint32_t
oom_kills_of(struct kn_entry *e)
{
	w->res.end.oom_kills = 1;
	its_own_end(e);
	return e->result.oom_kills;
}

static void
a_process_killed_for_memory_is_its_calls_end(void **state)
{
	(void)state;
	assert_int_equal(oom_kills_of(at_call(1, KN_CAUSE_NONE, SIGKILL)), 1);
}

static void
an_old_kill_for_memory_does_not_explain_a_crash(void **state)
{
	(void)state;
	assert_int_equal(oom_kills_of(at_call(1, KN_CAUSE_NONE, SIGSEGV)), 0);
}

static void
an_old_kill_for_memory_does_not_explain_an_exit(void **state)
{
	(void)state;
	assert_int_equal(oom_kills_of(at_call(1, KN_CAUSE_NONE, 3 << 8)), 0);
}

static void
an_old_kill_for_memory_does_not_hide_a_hard_limit(void **state)
{
	struct kn_entry *e = at_call(50, KN_CAUSE_HARD, SIGKILL);

	(void)state;
	task.timeouts.hard_ms = 50;
	assert_int_equal(oom_kills_of(e), 0);
}

static void
of_the_first_call_there_is_no_older_kill(void **state)
{
	struct kn_entry *e = at_call(1, KN_CAUSE_NONE, SIGABRT);

	(void)state;
	w->results = 0;
	assert_int_equal(oom_kills_of(e), 1);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, start, stop)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(who_overran_the_hard_limit_has_its_verdict),
		CASE(who_began_just_before_the_hard_kill_of_another_has_not_overrun),
		CASE(who_has_no_hard_limit_did_not_overrun_it),
		CASE(who_was_told_to_give_up_and_did_not_is_cancelled),
		CASE(who_was_not_told_to_give_up_is_not_cancelled),
		CASE(too_much_output_is_whose_call_it_was),
		CASE(who_began_after_the_kill_did_not_write_too_much),
		CASE(a_process_killed_for_memory_is_its_calls_end),
		CASE(an_old_kill_for_memory_does_not_explain_a_crash),
		CASE(an_old_kill_for_memory_does_not_explain_an_exit),
		CASE(an_old_kill_for_memory_does_not_hide_a_hard_limit),
		CASE(of_the_first_call_there_is_no_older_kill),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
