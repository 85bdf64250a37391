/* tests/lib_api/test_module.c: calls of a module through libknit. */
#include "api.h"

static struct knit_policy *
policy_of(const char *module)
{
	struct knit_policy *own = knit_policy_new("default");
	const char *dir = getenv("KNIT_TEST_MODULES");
	char value[4096];

	snprintf(
	    value, sizeof value, "%s/%s", dir ? dir : KNIT_TEST_MODULE_DIR, module);
	OK(knit_policy_set(own, "/pool/kind", "module", &err));
	OK(knit_policy_set(own, "/pool/module", value, &err));
	OK(knit_policy_check(own, &err));
	return own;
}

static unsigned lines;

static void
count_line(void *ctx, unsigned worker, const char *line)
{
	(void)ctx;
	if (worker < 2 && strcmp(line, "said") == 0)
		lines++;
}

static struct knit_pool *
module_pool(struct knit_policy *own, unsigned workers)
{
	struct knit_pool_options o;
	struct knit_pool *p = NULL;

	knit_pool_options_init(&o, sizeof o);
	o.workers = workers;
	o.say = count_line;
	OK(knit_pool_open(own, &o, &p, &err));
	return p;
}

static struct knit_job *
call(const char *name, enum knit_type type, const void *bytes, size_t n)
{
	struct knit_job *job = knit_job_call(name);

	assert_int_equal(knit_job_set_arg(job, type, bytes, n), 0);
	return job;
}

static void
a_value_goes_in_and_comes_back(void **state)
{
	struct knit_policy *own = policy_of("basic.so");
	struct knit_pool *p = module_pool(own, 2);
	static const char text[] = "h\xc3\xa4llo";
	const int64_t numbers[] = { 1, -2, INT64_MAX };
	char *large = calloc(1, 1 << 20);
	struct knit_job *job;
	const struct knit_outcome *o;

	(void)state;
	memset(large, 7, 1 << 20);
	const struct {
		enum knit_type type;
		const void *bytes;
		size_t n;
	} v[] = {
		{ KNIT_NULL, NULL, 0 },
		{ KNIT_TEXT, text, sizeof text - 1 },
		{ KNIT_I64S, numbers, sizeof numbers },
		{ KNIT_BYTES, large, 1 << 20 },
	};
	for (size_t i = 0; i < sizeof v / sizeof v[0]; i++) {
		job = submit(p, call("echo", v[i].type, v[i].bytes, v[i].n));
		o = finish(job);
		is(o, KNIT_OK);
		assert_int_equal(o->value_type, v[i].type);
		assert_int_equal(o->value_n, v[i].n);
		if (v[i].n > 0)
			assert_memory_equal(o->value, v[i].bytes, v[i].n);
		knit_job_free(job);
	}
	free(large);
	assert_int_equal(knit_pool_close(p), 0);
	knit_policy_free(own);
}

static void
a_result_line_has_the_number_that_was_returned(void **state)
{
	struct knit_policy *own = policy_of("basic.so");
	struct knit_pool *p = module_pool(own, 1);
	const double d[] = { 1234567890123.25, 0.1 + 0.2, 5e-324, 0.1 };

	(void)state;
	for (size_t i = 0; i < sizeof d / sizeof d[0]; i++) {
		struct knit_job *job =
		    submit(p, call("echo", KNIT_F64, &d[i], sizeof d[i]));
		char *line, *at, *text;

		is(finish(job), KNIT_OK);
		line = knit_job_json(job, own, 0, NULL);
		text = knit_outcome_value_text(knit_job_outcome(job));
		at = strstr(line, "\"value\":");
		assert_non_null(at);
		assert_true(strtod(at + strlen("\"value\":"), NULL) == d[i]);
		assert_true(strtod(text, NULL) == d[i]);
		free(line);
		free(text);
		knit_job_free(job);
	}
	assert_int_equal(knit_pool_close(p), 0);
	knit_policy_free(own);
}

/* While one worker is at a long call the other one takes all that was submitted after.
 */
static void
calls_from_one_place_go_to_who_is_idle(void **state)
{
	struct knit_policy *own = policy_of("basic.so");
	struct knit_pool_options o;
	struct knit_pool *p = NULL;
	struct knit_job *job[64], *slow;
	int64_t ms = 600000; /* until it is cancelled */

	(void)state;
	knit_pool_options_init(&o, sizeof o);
	o.workers = 2;
	o.steal = "shared";
	OK(knit_pool_open(own, &o, &p, &err));
	slow = submit(p, call("sleep_ms", KNIT_I64, &ms, sizeof ms));
	for (int64_t i = 0; i < 64; i++)
		job[i] = submit(p, call("echo", KNIT_I64, &i, sizeof i));
	for (int64_t i = 0; i < 64; i++) {
		const struct knit_outcome *r = finish(job[i]);

		is(r, KNIT_OK);
		assert_memory_equal(r->value, &i, sizeof i);
		knit_job_free(job[i]);
	}
	assert_null(knit_job_outcome(slow));
	OK(knit_job_cancel(slow, &err));
	is(finish(slow), KNIT_CANCELLED);
	knit_job_free(slow);
	assert_int_equal(knit_pool_close(p), 0);
	knit_policy_free(own);
}

static void
an_error_comes_with_its_causes_and_a_crash_as_a_signal(void **state)
{
	struct knit_policy *own = policy_of("basic.so");
	struct knit_pool *p = module_pool(own, 1);
	struct knit_job *job = submit(p, knit_job_call("fail"));
	const struct knit_outcome *o = finish(job);

	(void)state;
	is(o, KNIT_EXIT);
	assert_true(o->cause_n >= 1);
	assert_non_null(knit_outcome_cause(o, 0)->name);
	assert_null(knit_outcome_cause(o, o->cause_n));
	assert_int_equal(o->value_type, 0);
	knit_job_free(job);
	job = submit(p, knit_job_call("segv"));
	is(finish(job), KNIT_SIGNAL);
	assert_int_equal(knit_job_outcome(job)->signal, SIGSEGV);
	knit_job_free(job);
	job = submit(p, knit_job_call("no_such_task"));
	is(finish(job), KNIT_NOT_FOUND);
	knit_job_free(job);
	job = submit(p, call("echo", KNIT_TEXT, "on", 2));
	is(finish(job), KNIT_OK);
	knit_job_free(job);
	assert_int_equal(knit_pool_close(p), 0);
	knit_policy_free(own);
}

static void
a_command_has_no_place_among_calls(void **state)
{
	struct knit_policy *own = policy_of("basic.so");
	struct knit_pool *p = module_pool(own, 1);
	struct knit_job *job = sh(":");

	(void)state;
	REFUSED(knit_pool_submit(p, job, &err), KNIT_E_USAGE, "module");
	knit_job_free(job);
	assert_int_equal(knit_pool_close(p), 0);
	knit_policy_free(own);
}

/* What would do nothing is no setting. */
static void
a_call_is_refused_what_only_a_command_has(void **state)
{
	struct knit_policy *own = policy_of("basic.so");
	struct knit_pool *p = module_pool(own, 1);

	(void)state;
	for (int i = 0; i < 6; i++) {
		struct knit_job *job = call("echo", KNIT_TEXT, "on", 2);
		const char *word;
		int rc;

		rc = i == 0   ? knit_job_set_env(job, "A", "b")
		     : i == 1 ? knit_job_set_cwd(job, "/tmp")
		     : i == 2 ? knit_job_set_stdin(job, "x", 1)
		     : i == 3 ? knit_job_add_file(job, "x", 0644, "x", 1)
		     : i == 4 ? knit_job_collect(job, "*")
			      : knit_job_set_limit(job, KNIT_LIMIT_MEMORY, 1 << 20);
		word = i == 0	? "environment"
		       : i == 1 ? "cwd"
		       : i == 2 ? "stdin"
		       : i == 3 ? "file"
		       : i == 4 ? "collect"
				: "memory";
		assert_int_equal(rc, -1);
		REFUSED(knit_pool_submit(p, job, &err), KNIT_E_USAGE, word);
		assert_non_null(strstr(err.text, "of a command only"));
		knit_job_free(job);
	}
	for (int i = KNIT_LIMIT_QUEUE_MS; i <= KNIT_LIMIT_GRACE_MS; i++) {
		struct knit_job *job = call("echo", KNIT_TEXT, "on", 2);

		assert_int_equal(knit_job_set_limit(job, (enum knit_limit)i, 1000), 0);
		assert_int_equal(knit_job_set_limit(job, KNIT_LIMIT_CPU_MS, 1000), 0);
		knit_job_free(job);
	}
	assert_int_equal(knit_pool_close(p), 0);
	knit_policy_free(own);
}

static bool
has_said(void *ctx)
{
	return knit_pool_dispatch(ctx, NULL) >= 0 && lines == 1;
}

static void
what_a_module_prints_is_handed_on(void **state)
{
	struct knit_policy *own = policy_of("says.so");
	struct knit_pool *p = module_pool(own, 1);
	struct knit_job *job = submit(p, knit_job_call("say"));

	(void)state;
	is(finish(job), KNIT_OK);
	assert_true(comes(has_said, p));
	knit_job_free(job);
	assert_int_equal(knit_pool_close(p), 0);
	knit_policy_free(own);
}

enum { CALLERS = 4, CALLS = 500 };
static struct knit_pool *shared;

static void *
many_calls(void *arg)
{
	long wrong = 0;

	for (int64_t i = 0; i < CALLS; i++) {
		int64_t n = i * 8 + (long)(intptr_t)arg;
		struct knit_job *job = knit_job_call("echo");

		knit_job_set_arg(job, KNIT_I64, &n, sizeof n);
		if (knit_pool_submit(shared, job, NULL) < 0 ||
		    knit_job_wait(job, LONG_MS, NULL) != 1 ||
		    knit_job_outcome(job)->verdict != KNIT_OK ||
		    memcmp(knit_job_outcome(job)->value, &n, sizeof n) != 0)
			wrong++;
		knit_job_free(job);
	}
	return (void *)(intptr_t)wrong;
}

static void
threads_call_at_one_time(void **state)
{
	struct knit_policy *own = policy_of("basic.so");
	pthread_t t[CALLERS];
	void *wrong;

	(void)state;
	shared = module_pool(own, 2);
	for (long i = 0; i < CALLERS; i++)
		assert_int_equal(pthread_create(&t[i], NULL, many_calls, (void *)i), 0);
	for (int i = 0; i < CALLERS; i++) {
		pthread_join(t[i], &wrong);
		assert_ptr_equal(wrong, NULL);
	}
	assert_int_equal(knit_pool_close(shared), 0);
	knit_policy_free(own);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_value_goes_in_and_comes_back),
		TEST(a_result_line_has_the_number_that_was_returned),
		TEST(calls_from_one_place_go_to_who_is_idle),
		TEST(an_error_comes_with_its_causes_and_a_crash_as_a_signal),
		TEST(a_command_has_no_place_among_calls),
		TEST(a_call_is_refused_what_only_a_command_has),
		TEST(what_a_module_prints_is_handed_on),
		TEST(threads_call_at_one_time),
	};

	return cmocka_run_group_tests_name("lib_api module", tests, NULL, NULL);
}
