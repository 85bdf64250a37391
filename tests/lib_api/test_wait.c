/* tests/lib_api/test_wait.c: who gets a job when several ask for it; who waits at the
 * end of a pool. */
#include "api.h"

#include <sys/syscall.h>

static struct knit_pool *pool;
static struct knit_job *wanted, *got;
static int answer, calls;

static void *
take_next(void *arg)
{
	(void)arg;
	answer = knit_pool_next(pool, 0, &got, NULL);
	return NULL;
}

static void *
wait_for_it(void *arg)
{
	(void)arg;
	answer = knit_job_wait(wanted, 0, NULL);
	return NULL;
}

/* While this thread's callback runs, another one is in the pool from begin to end. */
static void
have_another(void *(*what)(void *))
{
	pthread_t t;

	assert_int_equal(pthread_create(&t, NULL, what, NULL), 0);
	pthread_join(t, NULL);
}

static void
on_first(struct knit_job *job, void *ctx)
{
	(void)job;
	have_another(*(void *(**)(void *))ctx);
}

static void
on_wanted(struct knit_job *job, void *ctx)
{
	(void)job;
	(void)ctx;
	calls++;
}

/* Two that end in one turn, the first of them, or both, with a callback. */
static struct knit_job *
two_at_once(void *(**during)(void *), bool both)
{
	struct knit_job *first = sh("sleep 1000");

	pool = pool_of(1, KNIT_POOL_LAZY);
	wanted = sh("sleep 1000");
	got = NULL;
	answer = -1;
	calls = 0;
	knit_job_set_done(first, on_first, during);
	if (both)
		knit_job_set_done(wanted, on_wanted, NULL);
	submit(pool, first);
	submit(pool, wanted);
	OK(knit_job_cancel(first, &err));
	OK(knit_job_cancel(wanted, &err));
	return first;
}

/* Else that one may free it under the waiter's feet. The waiter is in no line here: it
 * does the pool's work itself. */
static void
a_job_that_is_waited_for_comes_to_no_other(void **state)
{
	void *(*during)(void *) = take_next;
	struct knit_job *first = two_at_once(&during, false);

	(void)state;
	is(finish(wanted), KNIT_CANCELLED);
	assert_int_equal(answer, 0);
	assert_null(got);
	knit_job_free(wanted);
	knit_job_free(first);
	assert_int_equal(knit_pool_close(pool), 0);
}

static void
a_wait_in_vain_leaves_the_job_to_others(void **state)
{
	struct knit_job *job;

	(void)state;
	pool = pool_of(1, 0);
	job = submit(pool, sh("sleep 1000"));
	assert_int_equal(knit_job_wait(job, 1, &err), 0);
	OK(knit_job_cancel(job, &err));
	assert_int_equal(knit_pool_next(pool, LONG_MS, &got, &err), 1);
	assert_ptr_equal(got, job);
	assert_int_equal(knit_job_wait(job, 0, &err), 1); /* again: it stays finished */
	knit_job_free(job);
	assert_int_equal(knit_pool_close(pool), 0);
}

static void
a_callback_is_called_also_of_a_job_that_is_waited_for(void **state)
{
	void *(*during)(void *) = wait_for_it;
	struct knit_job *first = two_at_once(&during, true);

	(void)state;
	while (answer < 0)
		OK(knit_pool_dispatch(pool, &err));
	assert_int_equal(answer, 1);
	assert_int_equal(calls, 1);
	knit_job_free(wanted);
	knit_job_free(first);
	assert_int_equal(knit_pool_close(pool), 0);
}

static struct knit_job *held[3];
static pid_t held_by[3];

static void *
hold_one(void *arg)
{
	long i = (long)(intptr_t)arg;

	__atomic_store_n(&held_by[i], (pid_t)syscall(SYS_gettid), __ATOMIC_RELEASE);
	return (void *)(intptr_t)knit_job_wait(held[i], LONG_MS, NULL);
}

/* Who has said who he is, and does not run, waits: in the pool, or for another one of
 * them, who runs. */
static bool
all_sleep(void *ctx)
{
	(void)ctx;
	for (int i = 0; i < 6; i++) { /* twice: one may have been let go since */
		pid_t tid = __atomic_load_n(&held_by[i % 3], __ATOMIC_ACQUIRE);
		char path[64], text[256] = "", *end;
		FILE *f;

		snprintf(path, sizeof path, "/proc/self/task/%d/stat", (int)tid);
		f = tid ? fopen(path, "re") : NULL;
		if (!f)
			return false;
		(void)!fread(text, 1, sizeof text - 1, f);
		fclose(f);
		end = strrchr(text, ')');
		if (!end || strncmp(end, ") S", 3) != 0)
			return false;
	}
	return true;
}

static void
close_lets_waiting_threads_go(void **state)
{
	pthread_t t[3];
	void *rc;

	(void)state;
	pool = pool_of(1, 0);
	for (long i = 0; i < 3; i++) {
		held[i] = submit(pool, sh("sleep 1000"));
		pthread_create(&t[i], NULL, hold_one, (void *)i);
	}
	assert_true(comes(all_sleep, NULL));
	assert_int_equal(knit_job_wait(held[0], 50, &err), 0);
	assert_int_equal(knit_pool_close(pool), 0);
	for (int i = 0; i < 3; i++) {
		pthread_join(t[i], &rc);
		assert_ptr_equal(rc, (void *)1);
		is(knit_job_outcome(held[i]), KNIT_CANCELLED);
		knit_job_free(held[i]);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_job_that_is_waited_for_comes_to_no_other),
		TEST(a_wait_in_vain_leaves_the_job_to_others),
		TEST(a_callback_is_called_also_of_a_job_that_is_waited_for),
		TEST(close_lets_waiting_threads_go),
	};

	return cmocka_run_group_tests_name("lib_api wait", tests, NULL, NULL);
}
