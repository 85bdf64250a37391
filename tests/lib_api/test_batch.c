/* tests/lib_api/test_batch.c: task lines into a pool, results out of it. */
#include "api.h"

enum { RESULTS_MAX = 2000 };

struct seen {
	char id[64];
	enum knit_verdict verdict;
	uint64_t seq, line;
	char *json;
};
static struct world {
	struct knit_pool *pool;
	struct knit_batch *batch;
	struct seen seen[RESULTS_MAX];
	size_t n;
	int wakes;
} w;

static void
on_result(void *ctx, const struct knit_batch_result *r)
{
	struct world *to = ctx;
	struct seen *s = &to->seen[to->n++];
	size_t n = 0;

	assert_true(to->n <= RESULTS_MAX);
	snprintf(s->id, sizeof s->id, "%s", r->id);
	s->verdict = r->outcome->verdict;
	s->seq = r->seq;
	s->line = r->line;
	s->json =
	    knit_batch_json(to->batch, r, KNIT_JSON_STREAMS | KNIT_JSON_FILES, &n);
	assert_non_null(s->json);
	assert_int_equal(strlen(s->json), n);
	assert_int_equal(s->json[n - 1], '\n');
}

static void
on_wake(void *ctx)
{
	struct world *to = ctx;

	__atomic_add_fetch(&to->wakes, 1, __ATOMIC_RELAXED);
}

static struct knit_batch *
batch_of(struct knit_pool *pool, struct world *to)
{
	struct knit_batch_options o;
	struct knit_batch *b = NULL;

	knit_batch_options_init(&o, sizeof o);
	o.result = on_result;
	o.wake = on_wake;
	o.ctx = to;
	OK(knit_batch_open(pool, &o, &b, &err));
	to->pool = pool;
	to->batch = b;
	return b;
}

static void
forget(struct world *of)
{
	for (size_t i = 0; i < of->n; i++)
		free(of->seen[i].json);
	memset(of, 0, sizeof *of);
}

static void
feed(const char *text)
{
	OK(knit_batch_feed(w.batch, text, strlen(text), &err));
}

/* As a caller's loop does. */
static void
run_to_end(void)
{
	struct pollfd p = { .fd = knit_pool_poll_fd(w.pool), .events = POLLIN };
	int rc;

	for (;;) {
		OK(knit_pool_dispatch(w.pool, &err));
		rc = knit_batch_work(w.batch, &err);
		if (rc < 0)
			fail_msg("%s", err.text);
		if (rc > 0)
			return;
		assert_true(poll(&p, 1, LONG_MS) > 0);
	}
}

static const struct seen *
of(const char *id)
{
	const struct seen *found = NULL;

	for (size_t i = 0; i < w.n; i++) {
		if (strcmp(w.seen[i].id, id) != 0)
			continue;
		assert_null(found);
		found = &w.seen[i];
	}
	if (!found)
		fail_msg("no result of %s", id);
	return found;
}

static void
expect(const char *id, enum knit_verdict want, const char *in_json)
{
	const struct seen *s = of(id);

	if (s->verdict != want || !strstr(s->json, in_json))
		fail_msg("%s: %s", id, s->json);
}

static void
lines_become_results(void **state)
{
	(void)state;
	batch_of(pool_of(2, 0), &w);
	feed("{\"id\":\"a\",\"argv\":[\"sh\",\"-c\",\"echo hi; echo kept >k\"],"
	     "\"keep\":[\"k\"]}\n"
	     "{\"id\":\"b\",\"after\":[\"a\"],\"argv\":[\"cat\",\"x\"],"
	     "\"files\":{\"x\":{\"from\":\"a/k\"}},\"collect\":[\"x\"]}\n"
	     "\n"
	     "{\"id\":\"bad\",\"argv\":[\"exi");
	feed("t\"],\"nonsense\":1}\n"
	     "{\"id\":\"c\",\"argv\":[\"sh\",\"-c\",\"exit 3\"]}\n"
	     "{\"id\":\"d\",\"after\":[\"c\"],\"argv\":[\"echo\"]}\n"
	     "{\"id\":\"e\",\"argv\":[\"sleep\",\"1000\"]}\n"
	     "{\"id\":\"f\",\"after\":[\"e\"],\"argv\":[\"echo\"]}\n"
	     "{\"cancel\":\"f\"}\n{\"cancel\":\"e\"}\n"
	     "{\"id\":\"last\",\"argv\":[\"echo\",\"end\"]}");
	knit_batch_no_more(w.batch);
	run_to_end();
	expect("a", KNIT_OK, "\"stdout\":\"hi\\n\"");
	expect("b", KNIT_OK, "\"stdout\":\"kept\\n\"");
	expect("b", KNIT_OK, "\"content_b64\":\"a2VwdAo=\"");
	expect("bad", KNIT_INVALID, "/nonsense");
	assert_int_equal(of("bad")->line, 4);
	expect("c", KNIT_EXIT, "\"exit_code\":3");
	expect("d", KNIT_SKIPPED, "comes after c");
	expect("e", KNIT_CANCELLED, "\"policy\":\"sha256:");
	expect("f", KNIT_CANCELLED, "cancelled before it began");
	expect("last", KNIT_OK, "end");
	assert_int_equal(w.n, 8);
	assert_true(w.wakes > 0);
	for (uint64_t seq = 0, found = 0; seq < w.n; seq++, found = 0) {
		for (size_t i = 0; i < w.n; i++)
			found += w.seen[i].seq == seq;
		assert_int_equal(found, 1);
	}
	knit_batch_close(w.batch);
	knit_pool_close(w.pool);
	forget(&w);
}

/* An id is the batch's own; and beside them jobs come and go. */
static void
batches_share_a_pool(void **state)
{
	static struct world other;
	struct knit_pool *pool = pool_of(2, KNIT_POOL_LAZY);
	struct knit_job *job = submit(pool, sh("echo beside"));
	static const char text[] = "{\"id\":\"same\",\"argv\":[\"echo\",\"x\"]}\n";

	(void)state;
	batch_of(pool, &w);
	batch_of(pool, &other);
	OK(knit_batch_feed(other.batch, text, strlen(text), &err));
	knit_batch_no_more(other.batch);
	feed(text);
	feed(text);
	knit_batch_no_more(w.batch);
	run_to_end();
	assert_int_equal(w.n, 2);
	expect("same", KNIT_OK, "x");
	expect("line-2", KNIT_INVALID, "used by an earlier line");
	while (knit_batch_work(other.batch, &err) == 0)
		assert_true(knit_pool_wait_all(pool, LONG_MS, &err) == 1);
	assert_int_equal(other.n, 1);
	is(finish(job), KNIT_OK);
	knit_job_free(job);
	knit_batch_close(w.batch);
	knit_batch_close(other.batch);
	forget(&w);
	forget(&other);
	knit_pool_close(pool);
}

static void
a_paused_batch_begins_nothing(void **state)
{
	struct knit_batch_counts c = { .size = sizeof c };

	(void)state;
	batch_of(pool_of(1, 0), &w);
	knit_batch_pause(w.batch, 1);
	assert_false(knit_batch_wants(w.batch));
	feed("{\"id\":\"a\",\"argv\":[\"echo\"]}\n");
	assert_int_equal(knit_batch_work(w.batch, &err), 0);
	OK(knit_batch_count(w.batch, &c, &err));
	assert_int_equal(c.accepted, 0);
	knit_batch_pause(w.batch, 0);
	knit_batch_no_more(w.batch);
	run_to_end();
	expect("a", KNIT_OK, "");
	OK(knit_batch_count(w.batch, &c, &err));
	assert_true(c.ended && c.accepted == 1 && c.answered == 1 && c.running == 0);
	assert_false(knit_batch_wants(w.batch));
	knit_batch_close(w.batch);
	knit_pool_close(w.pool);
	forget(&w);
}

/* A line that was taken cannot be refused as a job can: it waits for its turn. */
static void
tasks_wait_while_a_pool_is_full(void **state)
{
	struct knit_pool_options o;
	struct knit_pool *pool;
	struct knit_job *job;

	(void)state;
	knit_pool_options_init(&o, sizeof o);
	o.workers = 1;
	o.jobs_max = 1;
	OK(knit_pool_open(policy, &o, &pool, &err));
	job = submit(pool, sh("sleep 1000"));
	batch_of(pool, &w);
	feed("{\"id\":\"a\",\"argv\":[\"true\"]}\n"
	     "{\"id\":\"b\",\"argv\":[\"true\"]}\n");
	assert_int_equal(knit_batch_work(w.batch, &err), 0);
	assert_int_equal(w.n, 0);
	OK(knit_job_cancel(job, &err));
	knit_batch_no_more(w.batch);
	run_to_end();
	expect("a", KNIT_OK, "");
	expect("b", KNIT_OK, "");
	is(finish(job), KNIT_CANCELLED);
	knit_job_free(job);
	knit_batch_close(w.batch);
	knit_pool_close(pool);
	forget(&w);
}

/* A client that goes away: nothing of it runs on, and others do. */
static void
a_close_ends_what_runs(void **state)
{
	struct knit_pool *pool = pool_of(2, 0);

	(void)state;
	batch_of(pool, &w);
	for (int i = 0; i < 40; i++)
		feed("{\"argv\":[\"sh\",\"-c\",\"sleep 1000\"]}\n");
	feed("{\"argv\":[\"sleep\",\"1000\"],\"after\":[\"line-1\"]}\n");
	assert_true(comes(runs_now, pool));
	knit_batch_close(w.batch);
	assert_int_equal(w.n, 0);
	OK(knit_pool_drain(pool, &err));
	assert_int_equal(knit_pool_wait_end(pool, LONG_MS, &err), 1);
	knit_pool_close(pool);
	forget(&w);
}

struct dispatcher {
	struct knit_pool *pool;
	int end;
};

static void *
dispatch_for_all(void *ctx)
{
	struct dispatcher *d = ctx;
	struct pollfd p = { .fd = knit_pool_poll_fd(d->pool), .events = POLLIN };

	while (!__atomic_load_n(&d->end, __ATOMIC_ACQUIRE)) {
		if (knit_pool_dispatch(d->pool, NULL) < 0)
			break;
		poll(&p, 1, 20);
	}
	return NULL;
}

/* Its owner need not be the thread that does the pool's work; and may close it in the
 * middle of that. */
static void
another_thread_does_the_work(void **state)
{
	const struct timespec nap = { 0, 1000000 };
	struct dispatcher d = { .pool = pool_of(2, KNIT_POOL_LAZY) };
	pthread_t t;
	char line[80];

	(void)state;
	assert_int_equal(pthread_create(&t, NULL, dispatch_for_all, &d), 0);
	for (int round = 0; round < 6; round++) {
		batch_of(d.pool, &w);
		for (int i = 0; i < 60; i++) {
			snprintf(line, sizeof line,
			    "{\"id\":\"t%d\",\"argv\":[\"true\"]}\n", i);
			feed(line);
		}
		knit_batch_no_more(w.batch);
		if (round % 2 == 0) {
			while (knit_batch_work(w.batch, &err) == 0)
				nanosleep(&nap, NULL);
			assert_int_equal(w.n, 60);
		} else {
			while (w.n < 3 && knit_batch_work(w.batch, &err) == 0)
				nanosleep(&nap, NULL);
		}
		knit_batch_close(w.batch);
		forget(&w);
	}
	__atomic_store_n(&d.end, 1, __ATOMIC_RELEASE);
	pthread_join(t, NULL);
	knit_pool_close(d.pool);
}

static void
a_stopped_pool_answers_what_was_taken(void **state)
{
	struct knit_batch_counts c = { .size = sizeof c };

	(void)state;
	batch_of(pool_of(1, 0), &w);
	for (int i = 0; i < 200; i++)
		feed("{\"argv\":[\"sh\",\"-c\",\"sleep 1000\"]}\n");
	assert_true(comes(runs_now, w.pool));
	OK(knit_pool_kill(w.pool, &err));
	run_to_end();
	OK(knit_batch_count(w.batch, &c, &err));
	assert_true(c.accepted > 1 && !c.ended && c.running == 0);
	assert_int_equal(w.n, c.accepted);
	for (size_t i = 0; i < w.n; i++)
		assert_int_equal(w.seen[i].verdict, KNIT_CANCELLED);
	knit_batch_close(w.batch);
	knit_pool_close(w.pool);
	forget(&w);
}

static void
count_only(void *ctx, const struct knit_batch_result *r)
{
	(void)r;
	++*(size_t *)ctx;
}

/* Lines are taken when there is room, which is seldom while somebody reads: so whoever
 * works hears that no more can be, and why. */
static void
ids_that_cannot_be_written_end_the_input(void **state)
{
	enum { LINES = 50000 };
	const struct sigaction ignore = { .sa_handler = SIG_IGN };
	struct sigaction was_then;
	struct knit_batch_counts c = { .size = sizeof c };
	struct knit_pool *pool = pool_of(1, KNIT_POOL_LAZY);
	struct knit_batch_options o;
	struct knit_batch *b;
	struct rlimit was, none;
	size_t told = 0;

	(void)state;
	knit_batch_options_init(&o, sizeof o);
	o.result = count_only;
	o.ctx = &told;
	OK(knit_batch_open(pool, &o, &b, &err));
	knit_batch_pause(b, 1);
	for (int i = 0; i < LINES; i++)
		OK(knit_batch_feed(b, "?\n", 2, &err));
	knit_batch_no_more(b);
	knit_batch_pause(b, 0);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &was), 0);
	none = was;
	none.rlim_cur = 0;
	assert_int_equal(sigaction(SIGXFSZ, &ignore, &was_then), 0);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &none), 0);
	memset(&err, 0, sizeof err);
	assert_int_equal(knit_batch_work(b, &err), -1);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &was), 0);
	assert_int_equal(sigaction(SIGXFSZ, &was_then, NULL), 0);
	if (err.kind != KNIT_E_HOST || !strstr(err.text, "ids"))
		fail_msg("%s", err.text);
	OK(knit_batch_count(b, &c, &err));
	assert_true(!c.ended && c.accepted < LINES && c.running == 0);
	assert_int_equal(told, c.accepted);
	knit_batch_close(b);
	knit_pool_close(pool);
}

/* However many come after one, and are ready when that has ended. */
static void
a_paused_batch_begins_no_followers(void **state)
{
	struct knit_batch_counts c = { .size = sizeof c };
	struct pollfd p = { .events = POLLIN };

	(void)state;
	batch_of(pool_of(1, 0), &w);
	feed("{\"id\":\"first\",\"argv\":[\"true\"]}\n");
	for (int i = 0; i < 5; i++)
		feed("{\"argv\":[\"true\"],\"after\":[\"first\"]}\n");
	knit_batch_no_more(w.batch);
	knit_batch_pause(w.batch, 1);
	p.fd = knit_pool_poll_fd(w.pool);
	while (w.n == 0) {
		OK(knit_pool_dispatch(w.pool, &err));
		assert_int_equal(knit_batch_work(w.batch, &err), 0);
		assert_true(w.n > 0 || poll(&p, 1, LONG_MS) > 0);
	}
	OK(knit_batch_count(w.batch, &c, &err));
	assert_int_equal(c.running, 0);
	assert_int_equal(c.waiting, 5);
	knit_batch_pause(w.batch, 0);
	run_to_end();
	assert_int_equal(w.n, 6);
	knit_batch_close(w.batch);
	knit_pool_close(w.pool);
	forget(&w);
}

static void
what_cannot_be_is_refused(void **state)
{
	struct knit_batch_options o;
	struct knit_batch *b = NULL;
	struct knit_pool *pool = pool_of(1, 0);

	(void)state;
	REFUSED(knit_batch_open(pool, NULL, &b, &err), KNIT_E_USAGE, "options");
	knit_batch_options_init(&o, sizeof o);
	o.cwd = "relative";
	REFUSED(knit_batch_open(pool, &o, &b, &err), KNIT_E_USAGE, "absolute");
	knit_batch_options_init(&o, sizeof o);
	o.keep_dir = "/proc/none/such";
	REFUSED(knit_batch_open(pool, &o, &b, &err), KNIT_E_HOST, "/proc/none");
	batch_of(pool, &w);
	memset(&err, 1, sizeof err);
	assert_int_equal(knit_batch_read(w.batch, open_fds() + 100, &err), -1);
	assert_int_equal(err.kind, KNIT_E_USAGE);
	REFUSED(knit_batch_work(w.batch, &err), KNIT_E_USAGE, "read tasks");
	knit_batch_close(w.batch);
	knit_batch_close(NULL);
	knit_pool_close(pool);
	forget(&w);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(lines_become_results),
		TEST(batches_share_a_pool),
		TEST(a_paused_batch_begins_nothing),
		TEST(tasks_wait_while_a_pool_is_full),
		TEST(a_close_ends_what_runs),
		TEST(another_thread_does_the_work),
		TEST(a_stopped_pool_answers_what_was_taken),
		TEST(ids_that_cannot_be_written_end_the_input),
		TEST(a_paused_batch_begins_no_followers),
		TEST(what_cannot_be_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
