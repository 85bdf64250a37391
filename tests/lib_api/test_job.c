/* tests/lib_api/test_job.c: what goes into a job, and what comes out of it. */
#include "api.h"

static void
a_command_is_run_and_says_how_it_ended(void **state)
{
	struct knit_pool *p = pool_of(2, 0);
	struct knit_job *a = submit(p, sh("echo out; echo err >&2; exit 7"));
	struct knit_job *b = submit(p, sh("kill -9 $$"));
	const struct knit_outcome *o = finish(a);

	(void)state;
	is(o, KNIT_EXIT);
	assert_int_equal(o->exit_code, 7);
	assert_string_equal(o->out.bytes, "out\n");
	assert_string_equal(o->err.bytes, "err\n");
	assert_int_equal(o->out.total, 4);
	assert_true(o->wall_us > 0);
	assert_string_equal(knit_outcome_layer(o, "namespaces"), "enforced");
	assert_null(knit_outcome_layer(o, "moat"));
	o = finish(b);
	is(o, KNIT_SIGNAL);
	assert_int_equal(o->signal, 9);
	knit_job_free(a);
	knit_job_free(b);
	assert_int_equal(knit_pool_close(p), 0);
}

static void
stdin_environment_files_and_directory_reach_it(void **state)
{
	struct knit_pool *p = pool_of(1, 0);
	struct knit_job *job =
	    sh("cat; cat a/b; echo $ONE$PATHLESS; pwd; stat -c %a a/b");

	(void)state;
	knit_job_set_stdin(job, "in\n", 3);
	knit_job_add_file(job, "a/b", 0750, "file\n", 5);
	knit_job_set_env(job, "ONE", "1");
	knit_job_set_env(job, "PATHLESS", "no");
	knit_job_set_env(job, "PATHLESS", NULL);
	submit(p, job);
	is(finish(job), KNIT_OK);
	assert_string_equal(
	    knit_job_outcome(job)->out.bytes, "in\nfile\n1\n/task\n750\n");
	knit_job_free(job);
	job = sh("pwd");
	knit_job_set_cwd(job, "/tmp");
	submit(p, job);
	assert_string_equal(finish(job)->out.bytes, "/tmp\n");
	knit_job_free(job);
	assert_int_equal(knit_pool_close(p), 0);
}

static void
files_come_back_by_descriptor(void **state)
{
	struct knit_pool *p = pool_of(1, 0);
	struct knit_job *job =
	    sh("mkdir d; echo 12345 >d/x; chmod 640 d/x; ln -s /etc/passwd l");
	const struct knit_outcome *o;
	const struct knit_file *f;
	char buf[16] = "";

	(void)state;
	knit_job_collect(job, "d/*");
	knit_job_collect(job, "l");
	submit(p, job);
	o = finish(job);
	is(o, KNIT_OK);
	assert_int_equal(o->file_n, 2);
	f = knit_outcome_file(o, 0);
	assert_string_equal(f->name, "d/x");
	assert_int_equal(f->bytes, 6);
	assert_int_equal(f->mode, 0640);
	assert_int_equal(pread(f->fd, buf, sizeof buf, 0), 6);
	assert_string_equal(buf, "12345\n");
	f = knit_outcome_file(o, 1);
	assert_int_equal(f->fd, -1);
	assert_non_null(strstr(f->refused, "symbolic link"));
	assert_null(knit_outcome_file(o, 2));
	assert_int_equal(knit_pool_close(p), 0);
	knit_job_free(job); /* after its pool */
}

/* What is held open of the first one's files is charged where the second one runs. */
static void
the_next_job_does_not_pay_for_files_that_are_held(void **state)
{
	struct knit_job *first = sh("head -c 15728640 /dev/zero >f"), *next;
	struct knit_pool *p;

	(void)state;
	OK(knit_policy_set(policy, "/limits/task/memory", "\"40M\"", &err));
	OK(knit_policy_set(policy, "/timeouts/claim_ms", "60000", &err));
	/* without a memory cgroup it is nobody's charge */
	OK(knit_policy_set(policy, "/allow_degraded", "[\"cgroup.memory\"]", &err));
	p = pool_of(1, 0);
	knit_job_collect(first, "f");
	is(finish(submit(p, first)), KNIT_OK);
	assert_int_equal(
	    knit_outcome_file(knit_job_outcome(first), 0)->bytes, 15728640);
	next = submit(p, sh("head -c 31457280 /dev/zero >g"));
	is(finish(next), KNIT_OK);
	assert_int_equal(knit_job_outcome(next)->attempt, 1);
	knit_job_free(next);
	knit_job_free(first);
	assert_int_equal(knit_pool_close(p), 0);
}

static struct knit_pool *pool_of_it; /* of the job that a test is about */

static bool
signal_is_taken(void *job)
{
	struct knit_pool *p = pool_of_it;

	return knit_pool_dispatch(p, NULL) >= 0 &&
	       knit_job_signal(job, SIGUSR1, &err) == 1;
}

/* One is enough, however much there is to do before the command is started. */
static void
a_signal_waits_for_a_command_that_is_being_started(void **state)
{
	static char big[7 << 20];
	struct knit_pool *pool = pool_of_it = pool_of(1, 0);

	(void)state;
	for (int i = 0; i < 10; i++) {
		struct knit_job *job = sh("sleep 1000; exit 3");

		assert_int_equal(knit_job_add_file(job, "big", 0644, big,
				     i % 2 ? sizeof big : sizeof big / 64),
		    0);
		submit(pool, job);
		assert_true(comes(signal_is_taken, job));
		is(finish(job), KNIT_SIGNAL);
		assert_int_equal(knit_job_outcome(job)->signal, SIGUSR1);
		knit_job_free(job);
	}
	knit_pool_close(pool);
}

static void
what_waits_behind_another_job_takes_no_signal(void **state)
{
	struct knit_pool *pool = pool_of_it = pool_of(1, 0);
	struct knit_job *first = sh("sleep 1000"), *next = sh("exit 3");

	(void)state;
	submit(pool, first);
	submit(pool, next);
	assert_true(comes(runs_now, pool));
	assert_int_equal(knit_job_signal(next, SIGKILL, &err), 0);
	/* from here on the next one may begin at any time */
	assert_true(comes(signal_is_taken, first));
	is(finish(first), KNIT_SIGNAL);
	is(finish(next), KNIT_EXIT);
	assert_int_equal(knit_job_signal(next, SIGKILL, &err), 0);
	knit_job_free(first);
	knit_job_free(next);
	knit_pool_close(pool);
}

static void
calls_that_were_refused_are_told(void **state)
{
	struct knit_job *job = sh("unshare -m true; unshare -m true; exit 3");
	const struct knit_outcome *o;
	const struct knit_refused *r;
	struct knit_pool *p;

	(void)state;
	OK(knit_policy_set(policy, "/seccomp/explain", "true", &err));
	p = pool_of(1, 0);
	o = finish(submit(p, job));
	r = knit_outcome_refused(o, 0);
	is(o, KNIT_EXIT);
	assert_int_equal(o->refused_n, 1);
	assert_int_equal(o->refused_more, 0);
	assert_string_equal(r->call, "unshare");
	assert_int_equal(r->count, 2);
	assert_int_equal(r->arg_n, 1);
	assert_int_equal(r->args[0], 0x20000); /* CLONE_NEWNS */
	assert_int_equal(r->sys, EPERM);
	assert_true(strlen(r->by) > 0);
	assert_non_null(strstr(r->allow, "unshare"));
	assert_null(knit_outcome_refused(o, 1));
	knit_job_free(job);
	job = submit(p, sh(":"));
	assert_int_equal(finish(job)->refused_n, 0);
	assert_null(knit_outcome_refused(knit_job_outcome(job), 0));
	assert_null(knit_outcome_refused(NULL, 0));
	knit_job_free(job);
	assert_int_equal(knit_pool_close(p), 0);
}

static void
limits_hold_and_may_only_be_tighter(void **state)
{
	struct knit_pool *p = pool_of(1, 0);
	struct knit_job *job = sh("sleep 1000");

	(void)state;
	knit_job_set_limit(job, KNIT_LIMIT_HARD_MS, 100);
	submit(p, job);
	is(finish(job), KNIT_TIMEOUT);
	knit_job_free(job);
	job = sh("i=0; while [ $i -lt 5000 ]; do echo 0123456789; i=$((i+1)); done");
	knit_job_set_limit(job, KNIT_LIMIT_STDOUT, 1000);
	submit(p, job);
	assert_true(finish(job)->out.truncated);
	assert_true(knit_job_outcome(job)->out.n <= 1000);
	assert_int_equal(knit_job_outcome(job)->out.total, 55000);
	knit_job_free(job);
	job = sh(":");
	knit_job_set_limit(job, KNIT_LIMIT_PIDS, 1 << 22);
	REFUSED(knit_pool_submit(p, job, &err), KNIT_E_CONFIG, "/limits/task/pids");
	knit_job_free(job);
	assert_int_equal(knit_pool_close(p), 0);
}

static void
a_setter_refuses_by_name_and_the_submission_repeats_it(void **state)
{
	struct knit_pool *p = pool_of(1, 0);
	struct knit_job *job = sh(":");
	const char *none[] = { NULL };

	(void)state;
	assert_int_equal(knit_job_add_file(job, "../x", 0644, "", 0), -1);
	assert_int_equal(knit_job_set_env(job, "A=B", "c"), -1);
	REFUSED(knit_pool_submit(p, job, &err), KNIT_E_USAGE, "../x");
	knit_job_free(job);
	job = knit_job_command(none);
	REFUSED(knit_pool_submit(p, job, &err), KNIT_E_USAGE, "argv[0]");
	knit_job_free(job);
	job = sh(":");
	assert_int_equal(knit_job_set_limit(job, (enum knit_limit)99, 1), -1);
	REFUSED(knit_pool_submit(p, job, &err), KNIT_E_USAGE, "99");
	knit_job_free(job);
	job = sh(":");
	assert_int_equal(knit_job_set_limit(job, KNIT_LIMIT_MEMORY, 0), -1);
	REFUSED(knit_pool_submit(p, job, &err), KNIT_E_USAGE, "memory");
	knit_job_free(job);
	job = sh(":");
	assert_int_equal(knit_job_set_arg(job, KNIT_I64, "12345678", 8), -1);
	REFUSED(knit_pool_submit(p, job, &err), KNIT_E_USAGE, "argument");
	knit_job_free(job);
	job = knit_job_call("f");
	assert_int_equal(knit_job_set_arg(job, KNIT_I64, "1", 1), -1);
	REFUSED(knit_pool_submit(p, job, &err), KNIT_E_USAGE, "argument");
	knit_job_free(job);
	job = knit_job_call("f");
	REFUSED(knit_pool_submit(p, job, &err), KNIT_E_USAGE, "no module");
	knit_job_free(job);
	assert_int_equal(knit_pool_close(p), 0);
}

/* The same for what goes in and what comes back, as in a task line. */
static void
a_path_that_does_not_stay_below_the_task_s_directory_is_refused(void **state)
{
	static const char *const bad[] = { "", "/x", ".", "./x", "x/", "a//b", "a/./b",
		"..", "../x", "a/..", NULL };
	struct knit_pool *p = pool_of(1, 0);

	(void)state;
	for (size_t i = 0; bad[i]; i++) {
		struct knit_job *in = sh(":"), *out = sh(":");

		assert_int_equal(knit_job_add_file(in, bad[i], 0644, "x", 1), -1);
		assert_int_equal(knit_job_collect(out, bad[i]), -1);
		REFUSED(knit_pool_submit(p, in, &err), KNIT_E_USAGE, "relative");
		REFUSED(knit_pool_submit(p, out, &err), KNIT_E_USAGE, "relative");
		knit_job_free(in);
		knit_job_free(out);
	}
	assert_int_equal(knit_pool_close(p), 0);
}

static void
what_cannot_be_is_refused_by_name(void **state)
{
	struct knit_pool *p = pool_of(1, 0), *none;
	struct knit_job *job = sh(":"), *out;
	struct knit_pool_counts counts = { .size = sizeof counts };
	struct knit_pool_options o;
	struct knit_policy *wrong;

	(void)state;
	REFUSED(knit_job_wait(job, 0, &err), KNIT_E_USAGE, "not submitted");
	REFUSED(knit_job_cancel(job, &err), KNIT_E_USAGE, "not submitted");
	assert_null(knit_job_outcome(job));
	submit(p, job);
	REFUSED(knit_pool_submit(p, job, &err), KNIT_E_USAGE, "submitted before");
	finish(job);
	REFUSED(knit_pool_submit(p, job, &err), KNIT_E_USAGE, "submitted before");
	assert_int_equal(knit_job_set_cwd(job, "/"), -1);
	REFUSED(knit_pool_submit(NULL, job, &err), KNIT_E_USAGE, "NULL");
	REFUSED(knit_pool_next(p, 0, NULL, &err), KNIT_E_USAGE, "NULL");
	assert_int_equal(knit_pool_next(p, 0, &out, NULL), 0);
	OK(knit_pool_count(p, &counts, &err));
	assert_int_equal(counts.submitted, 1);
	assert_int_equal(counts.finished, 1);
	assert_int_equal(counts.workers, 1);
	counts.size = 0;
	REFUSED(knit_pool_count(p, &counts, &err), KNIT_E_USAGE, "size");
	REFUSED(knit_policy_set(policy, "/limits/task/pids", "3", &err), KNIT_E_USAGE,
	    "checked");
	wrong = knit_policy_new("default");
	knit_policy_set(wrong, "/limits/task/memroy", "3", &err);
	REFUSED(knit_policy_check(wrong, &err), KNIT_E_CONFIG, "/limits/task/memroy");
	assert_null(
	    strstr(strstr(err.text, "memroy") + 1, "memroy")); /* once is enough */
	knit_policy_free(wrong);
	knit_job_free(job);
	assert_int_equal(knit_pool_close(p), 0);

	knit_pool_options_init(&o, sizeof o);
	o.size = 3;
	REFUSED(knit_pool_open(policy, &o, &none, &err), KNIT_E_USAGE, "init");
	knit_pool_options_init(&o, sizeof o);
	o.flags = 1u << 30;
	REFUSED(knit_pool_open(policy, &o, &none, &err), KNIT_E_USAGE, "flags");
	REFUSED(knit_pool_open(NULL, NULL, &none, &err), KNIT_E_USAGE, "NULL");
}

static void
a_caller_of_a_smaller_and_of_a_larger_struct_is_served(void **state)
{
	struct {
		struct knit_pool_options o;
		char later[64];
	} wide;
	struct knit_pool *p;

	(void)state;
	knit_pool_options_init(&wide.o, sizeof wide);
	wide.o.workers = 1;
	OK(knit_pool_open(policy, &wide.o, &p, &err));
	assert_int_equal(knit_pool_close(p), 0);
	wide.later[5] = 1;
	REFUSED(knit_pool_open(policy, &wide.o, &p, &err), KNIT_E_USAGE, "newer");
	knit_pool_options_init(&wide.o, offsetof(struct knit_pool_options, window));
	wide.o.workers = 1;
	OK(knit_pool_open(policy, &wide.o, &p, &err));
	assert_int_equal(knit_pool_close(p), 0);
}

static void
a_policy_is_merged_checked_and_outlived_by_its_pools(void **state)
{
	struct knit_policy *own = knit_policy_new("strict");
	struct knit_pool *p;
	struct knit_job *job;
	char *text;

	(void)state;
	OK(knit_policy_add(own, "default", &err));
	/* an ordinary user may not have been granted any */
	OK(knit_policy_set(own, "/allow_degraded",
	    "[\"cgroup.memory\", \"cgroup.pids\", \"cgroup.cpu\"]", &err));
	OK(knit_policy_set(own, "/limits/task/stdout", "\"2K\"", &err));
	OK(knit_policy_bind(own, "/etc/hostname", "/seen", 0, &err));
	OK(knit_policy_set(own, "/pool/workers", "1", &err));
	text = knit_policy_text(own);
	assert_non_null(strstr(text, "/seen"));
	free(text);
	assert_memory_equal(knit_policy_hash(own), "sha256:", 7);
	OK(knit_pool_open(own, NULL, &p, &err));
	knit_policy_free(own);
	job = submit(p, sh("test -e /seen"));
	is(finish(job), KNIT_OK);
	knit_job_free(job);
	assert_int_equal(knit_pool_close(p), 0);

	own = knit_policy_new("no-such-preset");
	REFUSED(knit_policy_check(own, &err), KNIT_E_CONFIG, "no-such-preset");
	REFUSED(knit_pool_open(own, NULL, &p, &err), KNIT_E_CONFIG, "no-such-preset");
	assert_null(knit_policy_text(own));
	knit_policy_free(own);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_command_is_run_and_says_how_it_ended),
		TEST(stdin_environment_files_and_directory_reach_it),
		TEST(files_come_back_by_descriptor),
		TEST(the_next_job_does_not_pay_for_files_that_are_held),
		TEST(a_signal_waits_for_a_command_that_is_being_started),
		TEST(what_waits_behind_another_job_takes_no_signal),
		TEST(calls_that_were_refused_are_told),
		TEST(limits_hold_and_may_only_be_tighter),
		TEST(a_setter_refuses_by_name_and_the_submission_repeats_it),
		TEST(a_path_that_does_not_stay_below_the_task_s_directory_is_refused),
		TEST(what_cannot_be_is_refused_by_name),
		TEST(a_caller_of_a_smaller_and_of_a_larger_struct_is_served),
		TEST(a_policy_is_merged_checked_and_outlived_by_its_pools),
	};

	return cmocka_run_group_tests_name("lib_api job", tests, NULL, NULL);
}
