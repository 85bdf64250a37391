/* tests/lib_api/test_stuck.c: readers of a job's streams that read no more. */
#include "api.h"

#include <fcntl.h>

static struct knit_pool *shared;

static bool
is_full(void *ctx)
{
	struct pollfd p = { .fd = *(int *)ctx, .events = POLLOUT };

	return poll(&p, 1, 0) == 0;
}

static bool
fills_it(void *ctx)
{
	return knit_pool_dispatch(shared, NULL) >= 0 && is_full(ctx);
}

static bool
nothing_runs(void *ctx)
{
	(void)ctx;
	return !runs_now(shared);
}

/* Before it has ended, and when it has and only its output is waited for. */
static void
a_reader_that_is_stuck_does_not_keep_a_cancelled_job(void **state)
{
	const char *const ends[] = { "head -c 1000000 /dev/zero; sleep 1000",
		"head -c 70000 /dev/zero" /* more than a pipe holds */ };
	int null = open("/dev/null", O_RDWR | O_CLOEXEC), out[2];
	struct knit_job *job;

	(void)state;
	shared = pool_of(1, 0);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(pipe2(out, O_CLOEXEC), 0);
		job = sh(ends[i]);
		assert_int_equal(knit_job_set_streams(job, -1, out[1], null), 0);
		submit(shared, job);
		assert_true(comes(fills_it, &out[1]));
		assert_true(i == 0 || comes(nothing_runs, NULL));
		assert_int_equal(knit_job_wait(job, 0, &err), 0);
		OK(knit_job_cancel(job, &err));
		is(finish(job), i == 0 ? KNIT_CANCELLED : KNIT_OK);
		knit_job_free(job);
		close(out[0]);
		close(out[1]);
	}
	job = sh("true"); /* the streams are free again */
	assert_int_equal(knit_job_set_streams(job, -1, null, null), 0);
	is(finish(submit(shared, job)), KNIT_OK);
	knit_job_free(job);
	close(null);
	assert_int_equal(knit_pool_wait_all(shared, LONG_MS, &err), 1);
	knit_pool_close(shared);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_reader_that_is_stuck_does_not_keep_a_cancelled_job),
	};

	return cmocka_run_group_tests_name("lib_api stuck", tests, NULL, NULL);
}
