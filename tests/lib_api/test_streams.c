/* tests/lib_api/test_streams.c: a job whose streams are its caller's; signals to what a
 * job runs; and what a pool tells of itself.
 */
#include <sys/ioctl.h>

#include "api.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

static struct knit_pool *
one_worker(unsigned flags, int trace_fd, int debug_fd)
{
	struct knit_pool_options o;
	struct knit_pool *p = NULL;

	knit_pool_options_init(&o, sizeof o);
	assert_int_equal(o.trace_fd, -1);
	o.workers = 1;
	o.flags = flags;
	o.trace_fd = trace_fd;
	o.debug_fd = debug_fd;
	o.debug = debug_fd >= 0 ? "lifecycle,signals" : NULL;
	OK(knit_pool_open(policy, &o, &p, &err));
	return p;
}

static void
make_pipe(int p[2])
{
	assert_int_equal(pipe2(p, O_CLOEXEC), 0);
}

static size_t
read_all(int fd, char *to, size_t cap)
{
	size_t n = 0;
	ssize_t got;

	while (n + 1 < cap && (got = read(fd, to + n, cap - 1 - n)) > 0)
		n += (size_t)got;
	to[n] = '\0';
	close(fd);
	return n;
}

static void
streams_are_handed_on(void **state)
{
	struct knit_pool *pool = one_worker(KNIT_POOL_ONE_JOB, -1, -1);
	struct knit_job *job = sh("cat; echo oops >&2"), *other = sh("echo");
	int in[2], out[2], bad[2];
	char text[100];

	(void)state;
	make_pipe(in);
	make_pipe(out);
	make_pipe(bad);
	assert_int_equal(write(in[1], "some input\n", 11), 11);
	assert_int_equal(knit_job_set_streams(job, in[0], out[1], bad[1]), 0);
	assert_int_equal(knit_job_set_streams(other, -1, out[1], bad[1]), 0);
	submit(pool, job);
	REFUSED(knit_pool_submit(pool, other, &err), KNIT_E_USAGE, "one job at a time");
	close(in[1]); /* it runs until here, however slow we are */
	is(finish(job), KNIT_OK);
	/* the descriptors are as they were: open, and blocking */
	assert_int_equal(fcntl(out[1], F_GETFL) & O_NONBLOCK, 0);
	close(out[1]);
	close(bad[1]);
	close(in[0]);
	read_all(out[0], text, sizeof text);
	assert_string_equal(text, "some input\n");
	read_all(bad[0], text, sizeof text);
	assert_string_equal(text, "oops\n");
	assert_int_equal(knit_job_outcome(job)->out.total, 11);
	assert_int_equal(knit_job_outcome(job)->passed, 11);
	assert_int_equal(knit_job_outcome(job)->passed_err, 5);
	assert_int_equal(knit_job_outcome(job)->out.n, 0);
	knit_job_free(job);
	knit_job_free(other);
	knit_pool_close(pool);
}

/* Of one pool, one after the other: what became of the input of the first is nothing to
 * the next, whether that read it to its end, in part, or not at all. */
static void
each_job_has_its_own_input(void **state)
{
	const char *const how[] = { "cat", "cat", "true", "cat", "head -c 1", "cat" };
	struct knit_pool *pool = one_worker(0, -1, -1);
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	char text[100];

	(void)state;
	for (size_t i = 0; i < sizeof how / sizeof how[0]; i++) {
		struct knit_job *job = sh(how[i]);
		int in[2], out[2];

		make_pipe(in);
		make_pipe(out);
		assert_int_equal(write(in[1], "some input\n", 11), 11);
		close(in[1]);
		assert_int_equal(knit_job_set_streams(job, in[0], out[1], null), 0);
		is(finish(submit(pool, job)), KNIT_OK);
		close(out[1]);
		close(in[0]);
		read_all(out[0], text, sizeof text);
		if (how[i][0] == 'c')
			assert_string_equal(text, "some input\n");
		knit_job_free(job);
	}
	close(null);
	knit_pool_close(pool);
}

static void
a_cap_that_was_asked_for_cuts(void **state)
{
	struct knit_pool *pool = one_worker(0, -1, -1);
	struct knit_job *job = sh("echo 0123456789");
	int out[2], null = open("/dev/null", O_RDWR | O_CLOEXEC);
	char text[100];

	(void)state;
	make_pipe(out);
	knit_job_set_streams(job, -1, out[1], null);
	knit_job_set_limit(job, KNIT_LIMIT_STDOUT, 4);
	submit(pool, job);
	finish(job);
	close(out[1]);
	close(null);
	assert_int_equal(read_all(out[0], text, sizeof text), 4);
	assert_int_equal(knit_job_outcome(job)->passed, 4);
	assert_int_equal(knit_job_outcome(job)->out.total, 11);
	assert_true(knit_job_outcome(job)->out.truncated);
	knit_job_free(job);
	knit_pool_close(pool);
}

static struct knit_pool *watched;

static bool
is_full(void *ctx)
{
	int n = 0;

	return knit_pool_dispatch(watched, NULL) >= 0 &&
	       ioctl(*(int *)ctx, FIONREAD, &n) == 0 && n == 4096;
}

static void
what_nobody_took_is_not_counted_as_handed_on(void **state)
{
	struct knit_pool *pool = watched = one_worker(0, -1, -1);
	struct knit_job *job = sh("head -c 300000 /dev/zero");
	int out[2], null = open("/dev/null", O_RDWR | O_CLOEXEC);

	(void)state;
	make_pipe(out);
	assert_int_equal(fcntl(out[1], F_SETPIPE_SZ, 4096), 4096);
	knit_job_set_streams(job, -1, out[1], null);
	submit(pool, job);
	assert_true(comes(is_full, &out[0]));
	close(out[0]);
	finish(job);
	assert_int_equal(knit_job_outcome(job)->passed, 4096);
	assert_true(knit_job_outcome(job)->out.total > 4096);
	close(out[1]);
	close(null);
	knit_job_free(job);
	knit_pool_close(pool);
}

/* It learns it as from any pipe, and the pool goes on. */
static void
a_reader_that_goes_costs_its_job_only(void **state)
{
	struct knit_pool *pool = one_worker(0, -1, -1);
	struct knit_job *job = sh("exec yes"), *next = sh("echo on");
	int out[2], null = open("/dev/null", O_RDWR | O_CLOEXEC);

	(void)state;
	make_pipe(out);
	knit_job_set_streams(job, -1, out[1], null);
	close(out[0]);
	assert_int_equal(knit_job_lost(job), 0);
	submit(pool, job);
	is(finish(job), KNIT_SIGNAL);
	assert_int_equal(knit_job_outcome(job)->signal, SIGPIPE);
	assert_int_equal(knit_job_lost(job), EPIPE);
	is(finish(submit(pool, next)), KNIT_OK);
	close(out[1]);
	close(null);
	knit_job_free(job);
	knit_job_free(next);
	knit_pool_close(pool);
}

static void *
wait_for(void *job)
{
	finish(job);
	return NULL;
}

/* Also while another thread does the pool's work. */
static void
signals_reach_what_runs(void **state)
{
	struct knit_pool *pool = one_worker(0, -1, -1);
	const struct timespec nap = { 0, 10000000 };
	struct knit_job *job =
	    sh("trap 'echo got; exit 7' USR1; echo up; while :; do sleep 0.05; done");
	struct knit_job *quick = sh("echo");
	struct knit_pool_counts c = { .size = sizeof c };
	int sent = 0, out[2], null = open("/dev/null", O_RDWR | O_CLOEXEC);
	struct pollfd up = { .events = POLLIN };
	pthread_t t;

	(void)state;
	make_pipe(out);
	up.fd = out[0];
	assert_int_equal(knit_job_set_streams(job, -1, out[1], null), 0);
	REFUSED(knit_job_signal(job, SIGUSR1, &err), KNIT_E_USAGE, "not submitted");
	REFUSED(knit_job_signal(job, 0, &err), KNIT_E_USAGE, "no signal");
	submit(pool, job);
	assert_int_equal(pthread_create(&t, NULL, wait_for, job), 0);
	while (!knit_job_outcome(job)) {
		OK(knit_pool_count(pool, &c, &err));
		sent += c.running ? knit_job_signal(job, SIGCONT, &err) : 0;
		/* before it is up it has no trap, and dies of it */
		if (sent > 20 && poll(&up, 1, 0) == 1)
			knit_job_signal(job, SIGUSR1, &err);
		nanosleep(&nap, NULL);
	}
	pthread_join(t, NULL);
	assert_true(sent > 20);
	is(knit_job_outcome(job), KNIT_EXIT);
	assert_int_equal(knit_job_outcome(job)->exit_code, 7);
	assert_int_equal(knit_job_signal(job, SIGUSR1, &err), 0);
	is(finish(submit(pool, quick)), KNIT_OK);
	knit_job_free(job);
	knit_job_free(quick);
	knit_pool_close(pool);
	close(out[0]);
	close(out[1]);
	close(null);
}

static void
a_terminal_is_the_process_s_own(void **state)
{
	struct knit_pool *pool = one_worker(0, -1, -1);
	struct knit_job *job = sh("echo");
	int fd = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC);
	struct knit_job *plain = sh("echo");

	(void)state;
	assert_int_equal(knit_job_set_terminal(plain), -1);
	REFUSED(knit_pool_submit(pool, plain, &err), KNIT_E_USAGE, "terminal");
	if (fd >= 0) {
		knit_job_set_streams(job, fd, fd, fd);
		assert_int_equal(knit_job_set_terminal(job), 0);
		REFUSED(knit_pool_submit(pool, job, &err), KNIT_E_USAGE,
		    "KNIT_POOL_OWN_PROCESS");
		close(fd);
	}
	REFUSED(knit_job_terminal(plain, KNIT_TERMINAL_SIZE, &err), KNIT_E_USAGE,
	    "terminal");
	knit_job_free(job);
	knit_job_free(plain);
	knit_pool_close(pool);
}

/* ---- what a pool tells ---- */

static void
traces_and_debug_lines_go_where_they_are_sent(void **state)
{
	static char text[1 << 16];
	int trace = memfd_create("trace", MFD_CLOEXEC);
	int debug = memfd_create("debug", MFD_CLOEXEC);
	struct knit_pool *pool = one_worker(0, trace, debug);
	struct knit_job *job = sh("echo");

	(void)state;
	knit_job_set_id(job, "traced-one");
	is(finish(submit(pool, job)), KNIT_OK);
	knit_pool_note(pool, "signals", "a line of mine");
	knit_pool_note(pool, "policy", "not asked for");
	OK(knit_pool_drain(pool, &err));
	assert_int_equal(knit_pool_wait_end(pool, LONG_MS, &err), 1);
	knit_job_free(job);
	knit_pool_close(pool);
	lseek(trace, 0, SEEK_SET);
	read_all(trace, text, sizeof text);
	assert_int_equal(text[0], '[');
	assert_non_null(strstr(text, "traced-one"));
	assert_non_null(strstr(text, "\n]\n"));
	lseek(debug, 0, SEEK_SET);
	read_all(debug, text, sizeof text);
	assert_non_null(strstr(text, "lifecycle] answer traced-one ok"));
	assert_non_null(strstr(text, "signals] a line of mine"));
	assert_null(strstr(text, "not asked for"));
	OK(knit_debug_check("*", &err));
	REFUSED(knit_debug_check("lifecycle,nonsense", &err), KNIT_E_USAGE, "nonsense");
}

static void
a_trace_that_cannot_be_written_is_told(void **state)
{
	int full = open("/dev/full", O_WRONLY | O_CLOEXEC);
	struct knit_pool *pool = one_worker(0, full, -1);
	struct knit_job *job = sh("echo");

	(void)state;
	is(finish(submit(pool, job)), KNIT_OK);
	OK(knit_pool_drain(pool, &err));
	REFUSED(knit_pool_wait_end(pool, LONG_MS, &err), KNIT_E_HOST, "trace");
	assert_int_equal(err.sys, ENOSPC);
	knit_job_free(job);
	knit_pool_close(pool);
	close(full);
}

static void
a_pool_knows_its_facts(void **state)
{
	struct knit_pool *pool = pool_of(1, KNIT_POOL_NO_STEAL);
	struct knit_pool_counts c = { .size = sizeof c };
	struct knit_pool_options o;
	const char *name;
	size_t n = 0;

	(void)state;
	for (; (name = knit_layer_name(n)); n++)
		assert_non_null(knit_pool_layer(pool, name));
	assert_true(n > 5);
	assert_string_equal(knit_pool_layer(pool, "seccomp"), "enforced");
	assert_null(knit_pool_layer(pool, "none such"));
	assert_string_equal(knit_pool_fact(pool, "steal"), "off");
	assert_int_equal(knit_pool_fact(pool, "launcher")[0], '/');
	assert_string_equal(knit_pool_fact(pool, "policy"), knit_policy_hash(policy));
	assert_null(knit_pool_fact(pool, "none such"));
	OK(knit_pool_count(pool, &c, &err));
	assert_true(c.window >= 1);
	assert_non_null(knit_pool_fact(pool, "steal-why"));
	assert_string_equal(knit_pool_fact(pool, "lanes"), "private");
	knit_pool_close(pool);

	knit_pool_options_init(&o, sizeof o);
	o.workers = 2;
	o.steal = "brokered";
	OK(knit_pool_open(policy, &o, &pool, &err));
	assert_string_equal(knit_pool_fact(pool, "steal"), "brokered");
	knit_pool_close(pool);
	o.steal = "nonsense";
	REFUSED(knit_pool_open(policy, &o, &pool, &err), KNIT_E_USAGE, "nonsense");
	o.steal = NULL;
	o.debug = "nonsense";
	o.debug_fd = 2;
	REFUSED(knit_pool_open(policy, &o, &pool, &err), KNIT_E_USAGE, "nonsense");
}

static void
a_policy_can_be_read(void **state)
{
	struct knit_policy *p = knit_policy_new("");
	const char **argv;
	uint64_t n = 0;
	char *text;

	(void)state;
	REFUSED(knit_policy_label(p, "--x", &err), KNIT_E_USAGE, "no addition");
	OK(knit_policy_assign(p, "/limits/task/stdout=5M", &err));
	OK(knit_policy_set(p, "/timeouts/grace_ms", "250", &err));
	OK(knit_policy_check(p, &err));
	text = knit_policy_get(p, "/pool/kind");
	assert_string_equal(text, "\"exec\"");
	free(text);
	assert_null(knit_policy_get(p, "/none/such"));
	assert_int_equal(knit_policy_number(p, "/limits/task/stdout", &n), 1);
	assert_int_equal(n, 5 << 20);
	assert_int_equal(knit_policy_number(p, "/timeouts/grace_ms", &n), 1);
	assert_int_equal(n, 250);
	assert_int_equal(knit_policy_number(p, "/pool/kind", &n), 0);
	assert_int_equal(knit_policy_named(p, "/limits/task/stdout"), 1);
	assert_int_equal(knit_policy_named(p, "/limits/task/stderr"), 0);
	argv = knit_policy_command(p, &err);
	assert_non_null(argv);
	assert_non_null(strstr(argv[0], "bwrap"));
	assert_non_null(argv[1]);
	free(argv);
	knit_policy_free(p);

	p = knit_policy_new(NULL);
	OK(knit_policy_set(p, "/pool/workers", "many", &err));
	OK(knit_policy_label(p, "--my-option", &err));
	REFUSED(knit_policy_check(p, &err), KNIT_E_CONFIG, "--my-option");
	knit_policy_free(p);
}

/* ---- results ---- */

static void
a_job_is_a_line_of_json(void **state)
{
	struct knit_pool *pool = pool_of(1, 0);
	struct knit_job *job =
	    sh("printf '\\033hi'; mkdir d; echo x >d/f; ln -s f d/l");
	struct knit_job *never = sh("echo");
	char dir[] = "/tmp/knit-api-XXXXXX", path[80], text[20], *line;
	const struct knit_outcome *o;
	int at, fd;
	size_t n;

	(void)state;
	assert_null(knit_job_json(job, policy, 0, &n));
	knit_job_set_id(job, "j1");
	knit_job_collect(job, "d/*");
	o = finish(submit(pool, job));
	line = knit_job_json(
	    job, policy, KNIT_JSON_STREAMS | KNIT_JSON_FILES | KNIT_JSON_ASCII, &n);
	assert_non_null(line);
	assert_int_equal(line[n - 1], '\n');
	assert_non_null(strstr(line, "\"id\":\"j1\""));
	assert_non_null(strstr(line, "\\u001Bhi"));
	assert_non_null(strstr(line, "\"content_b64\":\"eAo=\""));
	assert_non_null(strstr(line, knit_policy_hash(policy)));
	free(line);
	line = knit_job_json(job, NULL, 0, NULL);
	assert_null(strstr(line, "sha256:"));
	assert_null(strstr(line, "content_b64"));
	free(line);

	assert_non_null(mkdtemp(dir));
	at = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	for (size_t i = 0; i < o->file_n; i++) {
		const struct knit_file *f = knit_outcome_file(o, i);

		if (f->refused) {
			REFUSED(knit_outcome_save(o, i, at, &err), KNIT_E_CONFIG,
			    f->refused);
			continue;
		}
		OK(knit_outcome_save(o, i, at, &err));
		assert_int_equal(knit_outcome_save(o, i, at, &err), -1);
		assert_int_equal(err.sys, EEXIST);
	}
	REFUSED(knit_outcome_save(o, 99, at, &err), KNIT_E_USAGE, "99");
	snprintf(path, sizeof path, "%s/d/f", dir);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(read_all(fd, text, sizeof text), 2);
	unlink(path);
	snprintf(path, sizeof path, "%s/d", dir);
	rmdir(path);
	assert_int_equal(rmdir(dir), 0);
	close(at);

	assert_int_equal(knit_job_give_up(never, KNIT_LAUNCH_FAILED, "no pool"), 0);
	assert_int_equal(knit_job_give_up(never, KNIT_LAUNCH_FAILED, "again"), -1);
	REFUSED(knit_pool_submit(pool, never, &err), KNIT_E_USAGE, "before");
	is(knit_job_outcome(never), KNIT_LAUNCH_FAILED);
	line = knit_job_json(never, policy, 0, &n);
	assert_non_null(strstr(line, "\"verdict\":\"launch-failed\""));
	assert_non_null(strstr(line, "no pool"));
	free(line);
	knit_job_free(never);
	knit_job_free(job);
	knit_pool_close(pool);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(streams_are_handed_on),
		TEST(each_job_has_its_own_input),
		TEST(a_cap_that_was_asked_for_cuts),
		TEST(what_nobody_took_is_not_counted_as_handed_on),
		TEST(a_reader_that_goes_costs_its_job_only),
		TEST(signals_reach_what_runs),
		TEST(a_terminal_is_the_process_s_own),
		TEST(traces_and_debug_lines_go_where_they_are_sent),
		TEST(a_trace_that_cannot_be_written_is_told),
		TEST(a_pool_knows_its_facts),
		TEST(a_policy_can_be_read),
		TEST(a_job_is_a_line_of_json),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
