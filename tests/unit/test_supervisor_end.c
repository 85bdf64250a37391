/* tests/unit/test_supervisor_end.c: a real pool that is cancelled, killed, stopped,
 * unable to launch: each task is answered once, and nothing is left.
 */
#include "tests/unit/supervisor_pool.h"

static struct kn_task *victim;

static void
cancel_victim(struct kn_task *t, struct kn_outcome *o)
{
	(void)o;
	if (strcmp(t->id, "1") == 0)
		kn_sup_cancel(sup, victim);
}

static void
a_running_and_a_waiting_task_can_be_cancelled(void **state)
{
	struct kn_task *waiting;

	(void)state;
	open_pool(2, 0);
	submit(make(1, "sleep", "0.2", NULL));
	victim = make(2, "sleep", "60", NULL);
	submit(victim);
	for (unsigned i = 3; i < 12; i++)
		submit(make(i, "true", NULL));
	waiting = make(12, "true", NULL);
	submit(waiting);
	kn_sup_cancel(sup, waiting);
	kn_sup_cancel(sup, waiting);
	on_answer = cancel_victim;
	kn_sup_drain(sup);
	assert_int_equal(run_pool(), 0);
	assert_int_equal(answers[2].verdict, KN_V_CANCELLED);
	assert_int_equal(answers[12].verdict, KN_V_CANCELLED);
	for (unsigned i = 1; i <= 12; i++)
		assert_int_equal(answers[i].times, 1);
}

/* Our only children are launchers. */
static void
kill_a_launcher(struct kn_task *t, struct kn_outcome *o)
{
	char path[64];
	int pid = 0;
	FILE *f;

	(void)o;
	if (strcmp(t->id, "1") != 0)
		return;
	snprintf(path, sizeof path, "/proc/self/task/%d/children", (int)gettid());
	f = fopen(path, "re");
	assert_non_null(f);
	assert_int_equal(fscanf(f, "%d", &pid), 1);
	fclose(f);
	assert_true(pid > 1);
	kill(pid, SIGKILL);
}

static void
a_worker_that_dies_costs_the_task_it_ran(void **state)
{
	unsigned lost = 0;

	(void)state;
	open_pool(1, 0);
	submit(make(1, "true", NULL));
	for (unsigned i = 2; i < 10; i++)
		submit(make(i, "sh", "-c", "sleep 0.05; echo done", NULL));
	on_answer = kill_a_launcher;
	kn_sup_drain(sup);
	assert_int_equal(run_pool(), 0);
	assert_int_equal(answered, 9);
	for (unsigned i = 1; i < 10; i++) {
		assert_int_equal(answers[i].times, 1);
		lost += answers[i].verdict == KN_V_WORKER_LOST;
		assert_true(answers[i].verdict == KN_V_OK ||
			    answers[i].verdict == KN_V_WORKER_LOST);
	}
	assert_true(lost <= 1); /* those that it had not begun ran elsewhere */
}

static struct kn_task *too_late;

static void
stop_pool(struct kn_task *t, struct kn_outcome *o)
{
	(void)t;
	(void)o;
	kn_sup_stop(sup, false);
	assert_int_equal(kn_sup_submit(sup, too_late, &err), 1);
}

static void
a_stop_answers_all_and_takes_no_more(void **state)
{
	unsigned cancelled = 0;

	(void)state;
	too_late = make(50, "true", NULL);
	open_pool(2, 0);
	submit(make(0, "true", NULL));
	for (unsigned i = 1; i < 30; i++)
		submit(make(i, "sleep", "30", NULL));
	on_answer = stop_pool;
	assert_int_equal(run_pool(), 0); /* no drain: a stop ends it too */
	assert_int_equal(answered, 30);
	for (unsigned i = 1; i < 30; i++)
		cancelled += answers[i].verdict == KN_V_CANCELLED;
	assert_int_equal(cancelled, 29);
	kn_task_free(too_late);
}

static void
a_launcher_that_fails_is_explained_and_every_task_answered(void **state)
{
	(void)state;
	snprintf(host.bwrap, sizeof host.bwrap, "/bin/false");
	open_pool(1, 0);
	for (unsigned i = 0; i < 5; i++)
		submit(make(i, "true", NULL));
	kn_sup_drain(sup);
	assert_int_equal(run_pool(), -1);
	assert_int_equal(err.kind, KN_EK_LAUNCH);
	assert_non_null(strstr(err.msg, "bwrap"));
	assert_int_equal(answered, 5);
	for (unsigned i = 0; i < 5; i++) {
		assert_int_equal(answers[i].verdict, KN_V_LAUNCH_FAILED);
		assert_non_null(strstr(answers[i].error, "bwrap"));
	}
}

static void
closed_without_a_run_nothing_is_left(void **state)
{
	(void)state;
	open_pool(1, 0); /* has launched already; stop() looks for what is left */
	kn_sup_close(sup);
	sup = NULL;
}

static size_t heap_early, heap_late;

static void
weigh(struct kn_task *t, struct kn_outcome *o)
{
	(void)t;
	(void)o;
	if (answered == 200)
		heap_early = mallinfo2().uordblks;
	if (answered == 1000)
		heap_late = mallinfo2().uordblks;
	if (answered < 1000)
		submit(make(1 + answered % 900, "/bin/true", NULL));
	else
		kn_sup_drain(sup);
}

static void
memory_is_flat_over_many_tasks(void **state)
{
	(void)state;
	open_pool(2, 0);
	on_answer = weigh;
	submit(make(0, "/bin/true", NULL));
	assert_int_equal(run_pool(), 0);
	assert_int_equal(answered, 1000);
	/* answers keep a byte or two each of 900 ids; nothing else may grow */
	assert_true(heap_late < heap_early + 900 * 96);
}

int
main(void)
{
#define RUN(t) cmocka_unit_test_setup_teardown(t, start, stop)
	const struct CMUnitTest tests[] = {
		RUN(a_running_and_a_waiting_task_can_be_cancelled),
		RUN(a_worker_that_dies_costs_the_task_it_ran),
		RUN(a_stop_answers_all_and_takes_no_more),
		RUN(a_launcher_that_fails_is_explained_and_every_task_answered),
		RUN(closed_without_a_run_nothing_is_left),
		RUN(memory_is_flat_over_many_tasks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
