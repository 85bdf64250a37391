/* tests/lib_api/api.h: what the tests of libknit share. They see the public header and
 * the shared library, and the kernel. After each test no descriptor and no child is
 * left.
 */
#ifndef KN_TESTS_LIB_API_H
#define KN_TESTS_LIB_API_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <knit/pool.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { LONG_MS = 120000 }; /* an upper bound of what must come; it ends a hang */

static struct knit_error err;
static struct knit_policy *policy;
static int fds_before;

static int
open_fds(void)
{
	DIR *d = opendir("/proc/self/fd");
	int n = 0;

	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

#define OK(call) \
	do { \
		memset(&err, 0, sizeof err); \
		if ((call) < 0) \
			fail_msg("%s: %s", #call, err.text); \
	} while (0)
#define REFUSED(call, want, word) \
	do { \
		memset(&err, 0, sizeof err); \
		assert_int_equal((call), -1); \
		assert_string_equal( \
		    knit_error_kind_name(err.kind), knit_error_kind_name(want)); \
		if (!strstr(err.text, word)) \
			fail_msg("no \"%s\" in: %s", word, err.text); \
	} while (0)

/* Before the pool is opened: a worker that is not let run for a second is not lost. */
static void
be_patient(void)
{
	OK(knit_policy_set(policy, "/timeouts/claim_ms", "60000", &err));
}

static struct knit_pool *
pool_of(unsigned workers, unsigned flags)
{
	struct knit_pool_options o;
	struct knit_pool *p = NULL;

	knit_pool_options_init(&o, sizeof o);
	o.workers = workers;
	o.flags = flags;
	OK(knit_pool_open(policy, &o, &p, &err));
	return p;
}

static struct knit_job *
sh(const char *script)
{
	const char *argv[] = { "/bin/sh", "-c", script, NULL };

	return knit_job_command(argv);
}

static struct knit_job *
submit(struct knit_pool *p, struct knit_job *job)
{
	OK(knit_pool_submit(p, job, &err));
	return job;
}

static const struct knit_outcome *
finish(struct knit_job *job)
{
	memset(&err, 0, sizeof err);
	assert_int_equal(knit_job_wait(job, LONG_MS, &err), 1);
	return knit_job_outcome(job);
}

static void
is(const struct knit_outcome *o, enum knit_verdict want)
{
	if (o->verdict != want)
		fail_msg("%s, not %s: %s", knit_verdict_name(o->verdict),
		    knit_verdict_name(want), o->error);
}

/* Poll the world, not a clock, for a state that must come. */
static bool
comes(bool (*true_now)(void *), void *ctx)
{
	const struct timespec nap = { 0, 5000000 };

	for (int i = 0; i < LONG_MS / 5; i++) {
		if (true_now(ctx))
			return true;
		nanosleep(&nap, NULL);
	}
	return false;
}

static bool
runs_now(void *ctx)
{
	struct knit_pool_counts c = { .size = sizeof c };

	if (knit_pool_dispatch(ctx, NULL) < 0 || knit_pool_count(ctx, &c, NULL) < 0)
		return false;
	return c.running > 0;
}

static int
setup(void **state)
{
	(void)state;
	policy = knit_policy_new(getenv("KNIT_TEST_POLICY"));
	fds_before = open_fds();
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	knit_policy_free(policy);
	policy = NULL;
	assert_int_equal(open_fds(), fds_before);
	/* neither a child of the usual kind nor of the kind that workers are */
	assert_int_equal(waitpid(-1, NULL, WNOHANG | __WALL), -1);
	assert_int_equal(errno, ECHILD);
	return 0;
}
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

#endif
