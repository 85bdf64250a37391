/* tests/lib_api/test_pool.c: many threads, many pools, a caller's own loop, the end. */
#include "api.h"

#include <sys/stat.h>

enum { THREADS = 6, EACH = 15 };

static struct knit_pool *shared;

/* Each submits its own and waits for them; any of them may be the one that leads. */
static void *
submit_and_wait(void *arg)
{
	long wrong = 0;

	for (int i = 0; i < EACH; i++) {
		char script[64], want[16];
		struct knit_error e = KNIT_ERROR_NONE;
		struct knit_job *job;

		snprintf(want, sizeof want, "%ld-%d", (long)(intptr_t)arg, i);
		snprintf(script, sizeof script, "printf %s", want);
		job = sh(script);
		if (knit_pool_submit(shared, job, &e) < 0 ||
		    knit_job_wait(job, LONG_MS, &e) != 1 ||
		    strcmp(knit_job_outcome(job)->out.bytes, want) != 0)
			wrong++;
		knit_job_free(job);
	}
	return (void *)(intptr_t)wrong;
}

static void
threads_share_a_pool(void **state)
{
	pthread_t t[THREADS];
	void *wrong;

	(void)state;
	shared = pool_of(2, 0);
	for (long i = 0; i < THREADS; i++)
		assert_int_equal(
		    pthread_create(&t[i], NULL, submit_and_wait, (void *)i), 0);
	for (int i = 0; i < THREADS; i++) {
		pthread_join(t[i], &wrong);
		assert_ptr_equal(wrong, NULL);
	}
	assert_int_equal(knit_pool_close(shared), 0);
}

static void *
one_job(void *arg)
{
	struct knit_job *job = submit(shared, sh("exit 3"));

	(void)arg;
	is(finish(job), KNIT_EXIT);
	knit_job_free(job);
	return NULL;
}

/* The kernel sends a thread's children their death signal when that thread ends. */
static void
the_thread_that_started_a_worker_may_end(void **state)
{
	struct knit_pool_counts c = { .size = sizeof c };
	struct knit_job *job;
	pthread_t t;

	(void)state;
	be_patient();
	shared = pool_of(1, KNIT_POOL_LAZY);
	for (int i = 0; i < 3; i++) {
		pthread_create(&t, NULL, one_job, NULL);
		pthread_join(t, NULL);
	}
	job = submit(shared, sh("exit 3"));
	is(finish(job), KNIT_EXIT);
	knit_job_free(job);
	OK(knit_pool_count(shared, &c, &err));
	assert_int_equal(c.workers_lost, 0);
	assert_int_equal(c.workers_started, 1);
	assert_int_equal(knit_pool_close(shared), 0);
}

static void *
open_it(void *arg)
{
	(void)arg;
	shared = pool_of(2, 0);
	return NULL;
}

static void
the_thread_that_opened_a_pool_may_end(void **state)
{
	pthread_t t;

	(void)state;
	pthread_create(&t, NULL, open_it, NULL);
	pthread_join(t, NULL);
	one_job(NULL);
	assert_int_equal(knit_pool_close(shared), 0);
}

static void
each_finished_job_comes_out_once(void **state)
{
	struct knit_pool *p = pool_of(2, 0);
	struct knit_job *out;
	int seen[20] = { 0 };

	(void)state;
	for (long i = 0; i < 20; i++) {
		struct knit_job *job = sh("exit 0");

		knit_job_set_user(job, (void *)i);
		submit(p, job);
	}
	for (int i = 0; i < 20; i++) {
		assert_int_equal(knit_pool_next(p, LONG_MS, &out, &err), 1);
		seen[(long)(intptr_t)knit_job_user(out)]++;
		is(knit_job_outcome(out), KNIT_OK);
		knit_job_free(out);
	}
	for (int i = 0; i < 20; i++)
		assert_int_equal(seen[i], 1);
	assert_int_equal(
	    knit_pool_next(p, -1, &out, &err), 0); /* none is left to come */
	assert_null(out);
	assert_int_equal(knit_pool_close(p), 0);
}

struct chain {
	struct knit_pool *pool;
	int left, wait_answer;
	struct knit_error refused;
};

static void
next_link(struct knit_job *job, void *ctx)
{
	struct chain *c = ctx;

	if (knit_job_outcome(job)->verdict != KNIT_OK)
		c->left = -1000;
	c->wait_answer = knit_job_wait(job, 0, &c->refused);
	knit_job_free(job);
	if (--c->left > 0) {
		job = sh(":");
		knit_job_set_done(job, next_link, c);
		if (knit_pool_submit(c->pool, job, NULL) < 0)
			c->left = -1000;
	}
}

static void
a_callback_may_submit_and_free_but_not_wait(void **state)
{
	struct chain c = { .left = 5 };
	struct knit_job *job = sh(":"), *out;

	(void)state;
	c.pool = pool_of(1, 0);
	knit_job_set_done(job, next_link, &c);
	submit(c.pool, job);
	while (c.left > 0)
		assert_true(knit_pool_next(c.pool, LONG_MS, &out, &err) >= 0);
	assert_int_equal(c.left, 0);
	assert_int_equal(c.wait_answer, -1);
	assert_non_null(strstr(c.refused.text, "callback"));
	assert_int_equal(knit_pool_close(c.pool), 0);
}

/* What a wait left undone when it had its answer, a loop has to hear of. */
static void
after_a_wait_a_loop_of_ones_own_is_told_to_come(void **state)
{
	struct knit_pool *p = pool_of(1, 0);
	struct pollfd fd = { .fd = knit_pool_poll_fd(p), .events = POLLIN };
	struct knit_job *slow, *quick = submit(p, sh(":"));

	(void)state;
	slow = submit(p, sh("sleep 1"));
	assert_int_equal(knit_job_wait(quick, LONG_MS, &err), 1);
	while (!knit_job_outcome(slow)) {
		assert_int_equal(poll(&fd, 1, LONG_MS), 1);
		OK(knit_pool_dispatch(p, &err));
	}
	knit_job_free(quick);
	knit_job_free(slow);
	assert_int_equal(knit_pool_close(p), 0);
}

/* The caller's own loop: nothing but poll() on the descriptor, and dispatch. */
static void
a_loop_of_ones_own_drives_a_pool(void **state)
{
	struct knit_pool *p = pool_of(2, KNIT_POOL_LAZY);
	struct pollfd fd = { .fd = knit_pool_poll_fd(p), .events = POLLIN };
	struct knit_job *jobs[10], *out;
	int taken = 0;

	(void)state;
	for (int i = 0; i < 10; i++)
		jobs[i] = submit(p, sh(i % 2 ? "sleep 0.05" : ":"));
	while (taken < 10) {
		assert_int_equal(poll(&fd, 1, LONG_MS), 1);
		OK(knit_pool_dispatch(p, &err));
		while (knit_pool_next(p, 0, &out, &err) == 1)
			taken++;
	}
	for (int i = 0; i < 10; i++) {
		is(knit_job_outcome(jobs[i]), KNIT_OK);
		knit_job_free(jobs[i]);
	}
	/* a deadline comes by the descriptor too */
	jobs[0] = sh("sleep 1000");
	knit_job_set_limit(jobs[0], KNIT_LIMIT_HARD_MS, 150);
	submit(p, jobs[0]);
	while (!knit_job_outcome(jobs[0])) {
		assert_int_equal(poll(&fd, 1, LONG_MS), 1);
		OK(knit_pool_dispatch(p, &err));
	}
	is(knit_job_outcome(jobs[0]), KNIT_TIMEOUT);
	knit_job_free(jobs[0]);
	assert_int_equal(knit_pool_close(p), 0);
}

static void *
submit_later(void *arg)
{
	const struct timespec nap = { 0, 50000000 };

	nanosleep(&nap, NULL);
	submit(shared, arg);
	return NULL;
}

static void
note(struct knit_job *job, void *ctx)
{
	*(int *)ctx = knit_job_outcome(job)->exit_code;
}

static void
a_submission_wakes_who_sleeps_in_the_pool(void **state)
{
	struct pollfd fd = { .events = POLLIN };
	struct knit_job *slow, *quick = sh("exit 4"), *polled = sh("exit 5");
	int code = 0;
	pthread_t t;

	(void)state;
	knit_job_set_done(quick, note, &code);
	knit_job_set_done(polled, note, &code);
	shared = pool_of(2, 0);
	slow = submit(shared, sh("sleep 1000"));
	pthread_create(&t, NULL, submit_later, quick);
	while (code != 4) /* nobody waits for it by name */
		assert_int_equal(knit_job_wait(slow, 100, &err), 0);
	pthread_join(t, NULL);
	/* and who polls */
	fd.fd = knit_pool_poll_fd(shared);
	OK(knit_pool_dispatch(shared, &err));
	pthread_create(&t, NULL, submit_later, polled);
	while (code != 5) {
		assert_int_equal(poll(&fd, 1, LONG_MS), 1);
		OK(knit_pool_dispatch(shared, &err));
	}
	pthread_join(t, NULL);
	knit_job_free(polled);
	knit_job_free(quick);
	knit_job_free(slow);
	assert_int_equal(knit_pool_close(shared), 0);
}

static uid_t
owner_of_file(const struct knit_outcome *o)
{
	struct stat st;

	is(o, KNIT_OK);
	assert_int_equal(fstat(knit_outcome_file(o, 0)->fd, &st), 0);
	return st.st_uid;
}

static void
two_pools_at_once(void **state)
{
	struct knit_policy *other = knit_policy_new("default");
	struct knit_pool *p = pool_of(1, 0), *q;
	struct knit_job *a = sh("echo >f; sleep 0.1"), *b = sh("echo >f; sleep 0.1");

	(void)state;
	OK(knit_policy_set(other, "/pool/workers", "1", &err));
	OK(knit_pool_open(other, NULL, &q, &err));
	knit_job_collect(a, "f");
	knit_job_collect(b, "f");
	submit(p, a);
	submit(q, b);
	finish(b);
	finish(a);
	/* as root, each worker has a uid of its own, whichever pool it is of */
	if (geteuid() == 0)
		assert_int_not_equal(owner_of_file(knit_job_outcome(a)),
		    owner_of_file(knit_job_outcome(b)));
	assert_int_equal(knit_pool_close(p), 0);
	knit_job_free(b);
	b = submit(q, sh("exit 2"));
	is(finish(b), KNIT_EXIT);
	assert_int_equal(knit_pool_close(q), 0);
	knit_job_free(a);
	knit_job_free(b);
	knit_policy_free(other);
}

static void
cancel_in_each_state(void **state)
{
	struct knit_pool *p = pool_of(1, KNIT_POOL_LAZY);
	struct knit_job *running = sh("sleep 1000"), *noted = sh(":"),
			*queued = sh(":"), *done = sh("exit 6");

	(void)state;
	submit(p, done);
	is(finish(done), KNIT_EXIT);
	OK(knit_job_cancel(done, &err));
	assert_int_equal(knit_job_outcome(done)->exit_code, 6);
	submit(p, running);
	assert_true(comes(runs_now, p));
	submit(p, queued);
	OK(knit_pool_dispatch(p, &err));
	submit(p, noted); /* lazy: not even given to the workers */
	OK(knit_job_cancel(noted, &err));
	OK(knit_job_cancel(queued, &err));
	is(finish(noted), KNIT_CANCELLED);
	is(finish(queued), KNIT_CANCELLED);
	assert_null(knit_job_outcome(running));
	OK(knit_job_cancel(running, &err));
	OK(knit_job_cancel(running, &err));
	is(finish(running), KNIT_CANCELLED);
	knit_job_free(done);
	knit_job_free(running);
	knit_job_free(queued);
	knit_job_free(noted);
	assert_int_equal(knit_pool_close(p), 0);
}

static void
close_answers_all_that_is_left(void **state)
{
	struct knit_pool *p = pool_of(2, 0);
	struct knit_job *jobs[200];
	unsigned cancelled = 0;

	(void)state;
	for (int i = 0; i < 200; i++) /* more than the workers are given at a time */
		jobs[i] = submit(p, sh("sleep 1000"));
	assert_true(comes(runs_now, p));
	knit_job_free(jobs[100]); /* dropped while it waits */
	assert_int_equal(knit_pool_close(p), 0);
	for (int i = 0; i < 200; i++) {
		if (i == 100)
			continue;
		cancelled += knit_job_outcome(jobs[i])->verdict == KNIT_CANCELLED;
		knit_job_free(jobs[i]);
	}
	assert_int_equal(cancelled, 199);
}

static void
drain_ends_what_was_taken_and_stop_cancels(void **state)
{
	struct knit_pool *p = pool_of(1, 0);
	struct knit_job *a = submit(p, sh("sleep 0.1; exit 8")), *b = sh(":");

	(void)state;
	OK(knit_pool_drain(p, &err));
	REFUSED(knit_pool_submit(p, b, &err), KNIT_E_CLOSED, "no more");
	assert_int_equal(knit_pool_wait_all(p, LONG_MS, &err), 1);
	assert_int_equal(knit_job_outcome(a)->exit_code, 8);
	knit_job_free(a);
	assert_int_equal(knit_pool_close(p), 0);

	p = pool_of(1, 0);
	a = submit(p, sh("sleep 1000"));
	OK(knit_pool_stop(p, &err));
	OK(knit_pool_stop(p, &err));
	is(finish(a), KNIT_CANCELLED);
	REFUSED(knit_pool_submit(p, b, &err), KNIT_E_CLOSED, "no more");
	knit_job_free(a);
	knit_job_free(b);
	assert_int_equal(knit_pool_close(p), 0);
}

static void
a_full_pool_says_so(void **state)
{
	struct knit_pool_options o;
	struct knit_pool *p;
	struct knit_job *a, *b;

	(void)state;
	knit_pool_options_init(&o, sizeof o);
	o.workers = 1;
	o.jobs_max = 1;
	OK(knit_pool_open(policy, &o, &p, &err));
	a = submit(p, sh(":"));
	b = sh(":");
	if (!knit_job_outcome(a))
		REFUSED(knit_pool_submit(p, b, &err), KNIT_E_FULL, "not finished");
	finish(a);
	submit(p, b); /* the same job, now */
	is(finish(b), KNIT_OK);
	knit_job_free(a);
	knit_job_free(b);
	assert_int_equal(knit_pool_close(p), 0);
}

static void
a_pool_that_cannot_launch_says_why(void **state)
{
	struct knit_policy *own = knit_policy_new("default");
	struct knit_pool *p;
	struct knit_job *job;

	(void)state;
	OK(knit_policy_bind(own, "/proc/self/no/such/file", "/x", 0, &err));
	REFUSED(knit_pool_open(own, NULL, &p, &err), KNIT_E_CONFIG, "no/such/file");
	knit_policy_free(own);

	setenv("KNIT_BWRAP", "/bin/false", 1);
	job = sh(":");
	memset(&err, 0, sizeof err);
	if (knit_pool_open(policy, NULL, &p, &err) == 0) {
		submit(p, job);
		is(finish(job), KNIT_LAUNCH_FAILED);
		assert_string_not_equal(knit_job_outcome(job)->error, "");
		knit_job_free(job);
		job = sh(":");
		assert_int_equal(knit_pool_submit(p, job, &err), -1);
		assert_int_equal(knit_pool_close(p), 0);
	}
	assert_string_not_equal(err.text, "");
	knit_job_free(job);
	unsetenv("KNIT_BWRAP");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(threads_share_a_pool),
		TEST(the_thread_that_started_a_worker_may_end),
		TEST(the_thread_that_opened_a_pool_may_end),
		TEST(each_finished_job_comes_out_once),
		TEST(a_callback_may_submit_and_free_but_not_wait),
		TEST(after_a_wait_a_loop_of_ones_own_is_told_to_come),
		TEST(a_loop_of_ones_own_drives_a_pool),
		TEST(a_submission_wakes_who_sleeps_in_the_pool),
		TEST(two_pools_at_once),
		TEST(cancel_in_each_state),
		TEST(close_answers_all_that_is_left),
		TEST(drain_ends_what_was_taken_and_stop_cancels),
		TEST(a_full_pool_says_so),
		TEST(a_pool_that_cannot_launch_says_why),
	};

	return cmocka_run_group_tests_name("lib_api pool", tests, NULL, NULL);
}
