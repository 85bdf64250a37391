/* tests/unit/test_batch.c: a batch against a supervisor made of cardboard: what is
 * accepted, in which order it may run, and that every line is answered exactly once.
 * kn_sup_*() as used by the batch are defined here.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "ipc/err.h"
#include "ipc/fd.h"
#include "sandbox/policy.h"
#include "supervisor/batch.h"
#include "supervisor/sup.h"

enum { RESULTS_MAX = 20000, WINDOW_MAX = 8192 };

/* ---- the cardboard supervisor ---- */

struct kn_sup {
	struct kn_task *running[WINDOW_MAX];
	size_t n, window;
	bool drained, stopped;
	short events;
	void (*ready)(void *ctx, int fd, short revents);
	void *ready_ctx;
	struct kn_sup_callbacks cb;
	size_t most;
};

int
kn_sup_submit(struct kn_sup *s, struct kn_task *t, struct kn_err *e)
{
	(void)e;
	assert_false(s->drained);
	if (s->n == s->window)
		return 1;
	s->running[s->n++] = t;
	if (s->n > s->most)
		s->most = s->n;
	return 0;
}

static void
answer(struct kn_sup *s, size_t i, struct kn_outcome *o)
{
	struct kn_task *t = s->running[i];

	memmove(
	    &s->running[i], &s->running[i + 1], (--s->n - i) * sizeof s->running[0]);
	s->cb.answer(s->cb.ctx, t, o);
	kn_outcome_fini(o);
}

static void
answer_with(struct kn_sup *s, size_t i, enum kn_verdict v)
{
	struct kn_outcome o = { .verdict = v, .started = true };

	answer(s, i, &o);
}

void
kn_sup_cancel(struct kn_sup *s, struct kn_task *t)
{
	for (size_t i = 0; i < s->n; i++) {
		if (s->running[i] == t) {
			answer_with(s, i, KN_V_CANCELLED);
			return;
		}
	}
	fail_msg("cancel of a task that does not run");
}

void
kn_sup_drain(struct kn_sup *s)
{
	assert_false(s->drained);
	s->drained = true;
}

void
kn_sup_stop(struct kn_sup *s, bool now)
{
	(void)now;
	s->stopped = true;
}

int
kn_sup_watch(struct kn_sup *s, int fd, short events,
    void (*ready)(void *ctx, int fd, short revents), void *ctx, struct kn_err *e)
{
	(void)fd;
	(void)e;
	s->events = events;
	s->ready = ready;
	s->ready_ctx = ctx;
	return 0;
}

/* ---- the world of one test ---- */

struct result {
	char id[64];
	enum kn_verdict verdict;
	uint64_t line, seq;
	char error[320];
};

static struct {
	struct kn_sup sup;
	struct kn_batch *batch;
	int in;
	struct result results[RESULTS_MAX];
	size_t n;
	bool blocked;
	char root[64];
	const char *roots[1];
	struct kn_policy policy;
} w;

static void
on_result(void *ctx, const struct kn_batch_result *r)
{
	struct result *to = &w.results[w.n++];

	(void)ctx;
	assert_true(w.n < RESULTS_MAX);
	snprintf(to->id, sizeof to->id, "%s", r->id);
	snprintf(to->error, sizeof to->error, "%s", r->outcome->error);
	to->verdict = r->outcome->verdict;
	to->line = r->line;
	to->seq = r->seq;
}

static bool
has_room(void *ctx)
{
	(void)ctx;
	return !w.blocked;
}

static void
open_batch(size_t window, bool fail_fast, const char *keep)
{
	const struct kn_batch_ops ops = { .result = on_result, .room = has_room };
	struct kn_batch_options o = {
		.policy = &w.policy, .fail_fast = fail_fast, .keep_dir = keep
	};
	struct kn_err e = { 0 };

	memset(&w, 0, sizeof w);
	snprintf(w.root, sizeof w.root, "/tmp/test-batch-XXXXXX");
	assert_non_null(mkdtemp(w.root));
	w.roots[0] = w.root;
	w.policy.fs.task_paths = w.roots;
	w.policy.fs.task_path_n = 1;
	w.policy.timeouts.hard_ms = 1000;
	w.sup.window = window;
	w.in = memfd_create("lines", MFD_CLOEXEC);
	assert_true(w.in >= 0);
	o.fd = w.in;
	if (kn_batch_open(&o, &ops, &w.batch, &e) < 0)
		fail_msg("%s", e.msg);
	kn_batch_callbacks(w.batch, &w.sup.cb);
}

static void
line(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	assert_true(vdprintf(w.in, fmt, ap) >= 0);
	va_end(ap);
	assert_int_equal(write(w.in, "\n", 1), 1);
}

static void
begin(void)
{
	struct kn_err e = { 0 };

	assert_int_equal(lseek(w.in, 0, SEEK_SET), 0);
	if (kn_batch_start(w.batch, &w.sup, &e) < 0)
		fail_msg("%s", e.msg);
}

static void
read_all_possible(void)
{
	while (w.sup.events & POLLIN)
		w.sup.ready(w.sup.ready_ctx, w.in, POLLIN);
}

/* Everything that runs ends ok, oldest first. */
static void
run_to_end(void)
{
	for (;;) {
		read_all_possible();
		if (w.sup.n == 0)
			break;
		answer_with(&w.sup, 0, KN_V_OK);
	}
	assert_true(w.sup.drained);
}

static void
close_batch(void)
{
	char cmd[160];

	kn_batch_close(w.batch);
	close(w.in);
	snprintf(cmd, sizeof cmd, "%s/x", w.root);
	unlink(cmd);
	snprintf(cmd, sizeof cmd, "%s/link", w.root);
	unlink(cmd);
	rmdir(w.root);
}

static const struct result *
result_of(const char *id)
{
	const struct result *found = NULL;

	for (size_t i = 0; i < w.n; i++) {
		if (strcmp(w.results[i].id, id) != 0)
			continue;
		if (found)
			fail_msg("%s was answered twice", id);
		found = &w.results[i];
	}
	if (!found)
		fail_msg("%s was not answered", id);
	return found;
}

static void
expect(const char *id, enum kn_verdict v, const char *error)
{
	const struct result *r = result_of(id);

	if (r->verdict != v || !strstr(r->error, error))
		fail_msg("%s: %s (%s)", id, kn_verdict_name(r->verdict), r->error);
}

/* ---- tests ---- */

static void
bad_lines_cost_themselves_only(void **state)
{
	(void)state;
	open_batch(4, false, NULL);
	line("{\"id\":\"a\",\"argv\":[\"true\"]}");
	line("{nonsense");
	line("%s", "  ");
	line("{\"id\":\"a\",\"argv\":[\"true\"]}");
	line("{\"id\":\"b\",\"argv\":[\"true\"],\"after\":[\"later\"]}");
	line("{\"argv\":[\"true\"]}");
	line("{\"cancel\":\"nobody\"}");
	line("{\"id\":\"c\",\"argv\":[]}");
	line("{\"id\":\"d\",\"argv\":[\"true\"],\"after\":[\"c\"]}");
	line("{\"id\":\"later\",\"argv\":[\"true\"]}");
	begin();
	run_to_end();
	expect("a", KN_V_OK, "");
	expect("line-2", KN_V_INVALID, "not JSON");
	assert_int_equal(result_of("line-2")->line, 2);
	expect("line-4", KN_V_INVALID, "/id: \"a\" was used");
	expect("b", KN_V_INVALID, "/after/0: no earlier line has the id \"later\"");
	expect("line-6", KN_V_OK, "");
	assert_int_equal(result_of("line-6")->line, 0);
	expect("line-7", KN_V_INVALID, "/cancel");
	expect("c", KN_V_INVALID, "/argv");
	expect("d", KN_V_SKIPPED, "comes after c, which ended: invalid");
	expect("later", KN_V_OK, "");
	assert_int_equal(w.n, 9);
	close_batch();
}

static void
an_over_long_line_is_discarded(void **state)
{
	char *big = malloc(1 << 20);

	(void)state;
	assert_non_null(big);
	memset(big, 'x', 1 << 20);
	open_batch(4, false, NULL);
	line("{\"id\":\"a\",\"argv\":[\"true\"]}");
	for (int i = 0; i < 17; i++)
		assert_int_equal(write(w.in, big, 1 << 20), 1 << 20);
	line("%s", "");
	line("{\"id\":\"b\",\"argv\":[\"true\"]}");
	for (int i = 0; i < 17; i++)
		assert_int_equal(write(w.in, big, 1 << 20), 1 << 20);
	begin();
	run_to_end();
	expect("a", KN_V_OK, "");
	expect("line-2", KN_V_INVALID, "longer than 16 MiB");
	expect("b", KN_V_OK, "");
	expect("line-4", KN_V_INVALID, "longer than 16 MiB");
	assert_int_equal(w.n, 4);
	free(big);
	close_batch();
}

static void
followers_wait_and_fall_with_their_predecessor(void **state)
{
	(void)state;
	open_batch(8, false, NULL);
	line("{\"id\":\"c1\",\"argv\":[\"cc\"]}");
	line("{\"id\":\"c2\",\"argv\":[\"cc\"]}");
	line("{\"id\":\"t1\",\"argv\":[\"t\"],\"after\":[\"c1\",\"c2\",\"c1\"]}");
	line("{\"id\":\"t2\",\"argv\":[\"t\"],\"after\":[\"t1\"]}");
	line("{\"id\":\"t3\",\"argv\":[\"t\"],\"after\":[\"t2\",\"c1\"]}");
	line("{\"id\":\"u\",\"argv\":[\"t\"],\"after\":[\"c1\"]}");
	begin();
	read_all_possible();
	assert_int_equal(w.sup.n, 2);
	answer_with(&w.sup, 0, KN_V_OK); /* c1: u may run, t1 waits for c2 */
	assert_int_equal(w.sup.n, 2);
	assert_string_equal(w.sup.running[1]->id, "u");
	answer_with(&w.sup, 0, KN_V_EXIT); /* c2 */
	expect("t1", KN_V_SKIPPED, "comes after c2, which ended: exit");
	expect("t2", KN_V_SKIPPED, "comes after t1, which ended: skipped");
	expect("t3", KN_V_SKIPPED, "t2");
	run_to_end();
	assert_int_equal(w.n, 6);
	close_batch();
}

static void
cancel_reaches_waiting_and_running_tasks(void **state)
{
	(void)state;
	open_batch(1, false, NULL);
	line("{\"id\":\"a\",\"argv\":[\"t\"]}");
	line("{\"id\":\"b\",\"argv\":[\"t\"],\"after\":[\"a\"]}");
	line("{\"id\":\"c\",\"argv\":[\"t\"],\"after\":[\"b\"]}");
	line("{\"cancel\":\"b\"}");
	line("{\"cancel\":\"a\"}");
	line("{\"cancel\":\"a\"}");
	line("{\"id\":\"d\",\"argv\":[\"t\"]}");
	begin();
	run_to_end();
	expect("a", KN_V_CANCELLED, "");
	expect("b", KN_V_CANCELLED, "before it began");
	expect("c", KN_V_SKIPPED, "cancelled");
	expect("d", KN_V_OK, "");
	assert_int_equal(w.n, 4);
	close_batch();
}

static void
a_long_batch_is_read_only_as_fast_as_it_runs(void **state)
{
	enum { N = 10000 };
	struct kn_batch_counts c;

	(void)state;
	open_batch(3, false, NULL);
	line("{\"id\":\"first\",\"argv\":[\"t\"]}");
	for (int i = 0; i < N; i++)
		line("{\"id\":\"t%d\",\"argv\":[\"t\"],\"after\":[\"first\"]}", i);
	begin();
	read_all_possible();
	kn_batch_count(w.batch, &c);
	assert_int_equal(c.waiting + c.running, KN_BATCH_LIVE_MAX);
	assert_false(c.eof);
	run_to_end();
	assert_int_equal(w.n, N + 1);
	assert_int_equal(w.sup.most, 3);
	for (int i = 0; i <= N; i++)
		assert_int_equal(w.results[i].verdict, KN_V_OK);
	close_batch();
}

static void
a_full_output_stops_the_reading(void **state)
{
	struct kn_batch_counts c;

	(void)state;
	open_batch(4, false, NULL);
	for (int i = 0; i < 100; i++)
		line("{\"argv\":[\"t\"]}");
	w.blocked = true;
	begin();
	read_all_possible();
	kn_batch_count(w.batch, &c);
	assert_int_equal(c.accepted, 0);
	assert_int_equal(w.sup.events, 0);
	w.blocked = false;
	kn_batch_wake(w.batch);
	run_to_end();
	assert_int_equal(w.n, 100);
	close_batch();
}

static void
a_stop_answers_everything_accepted(void **state)
{
	(void)state;
	open_batch(2, false, NULL);
	for (int i = 0; i < 10; i++)
		line("{\"id\":\"t%d\",\"argv\":[\"t\"],\"after\":[%s]}", i,
		    i > 1 ? "\"t0\"" : "");
	begin();
	read_all_possible();
	assert_int_equal(w.sup.n, 2);
	answer_with(
	    &w.sup, 1, KN_V_CANCELLED); /* as a signal makes the supervisor do */
	assert_int_equal(w.n, 9);
	answer_with(&w.sup, 0, KN_V_OK);
	assert_int_equal(w.n, 10);
	assert_true(w.sup.drained);
	expect("t0", KN_V_OK, "");
	expect("t9", KN_V_CANCELLED, "");
	close_batch();
}

static void
fail_fast_stops_at_the_first_failure(void **state)
{
	(void)state;
	open_batch(2, true, NULL);
	for (int i = 0; i < 100; i++)
		line("{\"id\":\"t%d\",\"argv\":[\"t\"]}", i);
	begin();
	read_all_possible();
	answer_with(&w.sup, 0, KN_V_OK);
	assert_false(w.sup.stopped);
	answer_with(&w.sup, 0, KN_V_TIMEOUT);
	assert_true(w.sup.stopped);
	while (w.sup.n > 0)
		answer_with(&w.sup, 0, KN_V_CANCELLED);
	assert_true(w.sup.drained);
	assert_true(w.n < 10);
	close_batch();
}

static int
memfd_with(const char *text)
{
	struct kn_err e;
	int fd = kn_fd_sealed("x", text, strlen(text), 0, &e);

	assert_true(fd >= 0);
	return fd;
}

static void
answer_keeping(size_t i, const char *name, const char *text, uint32_t mode)
{
	struct kn_outcome o = { .verdict = KN_V_OK, .started = true, .file_n = 1 };

	o.files = calloc(1, sizeof *o.files);
	o.files[0] = (struct kn_outcome_file){ .name = strdup(name),
		.what = KN_FILE_KEEP,
		.fd = memfd_with(text),
		.bytes = strlen(text),
		.mode = mode };
	answer(&w.sup, i, &o);
}

static void
kept_files_reach_the_followers_only_as_asked(void **state)
{
	char got[16] = { 0 };

	(void)state;
	open_batch(8, false, NULL);
	line("{\"id\":\"../c\",\"argv\":[\"cc\"],\"keep\":[\"bin/main\",\"gone\"]}");
	line("{\"id\":\"t1\",\"argv\":[\"t\"],\"after\":[\"../c\"],"
	     "\"files\":{\"m\":{\"from\":\"../c/bin/main\"}}}");
	line("{\"id\":\"t2\",\"argv\":[\"t\"],\"after\":[\"../c\"],"
	     "\"files\":{\"m\":{\"from\":\"../c/gone\"}}}");
	line("{\"id\":\"evil\",\"argv\":[\"t\"],\"keep\":[\"ok\"]}");
	line("{\"id\":\"t3\",\"argv\":[\"t\"],\"after\":[\"evil\"],"
	     "\"files\":{\"m\":{\"from\":\"evil/other\"}}}");
	begin();
	read_all_possible();
	assert_int_equal(w.sup.n, 2);
	answer_keeping(0, "bin/main", "program", 0755);
	assert_int_equal(w.sup.n, 2);
	assert_string_equal(w.sup.running[1]->id, "t1");
	assert_int_equal(w.sup.running[1]->files[0].mode, 0755);
	assert_int_equal(pread(w.sup.running[1]->files[0].fd, got, 15, 0), 7);
	assert_string_equal(got, "program");
	expect("t2", KN_V_SKIPPED, "not kept");
	answer_keeping(0, "other", "not asked for", 0644);
	expect("t3", KN_V_SKIPPED, "not kept");
	run_to_end();
	close_batch();
}

static void
paths_stay_below_the_roots_and_follow_no_link(void **state)
{
	char name[128];
	int fd;

	(void)state;
	open_batch(8, false, NULL);
	snprintf(name, sizeof name, "%s/x", w.root);
	fd = open(name, O_CREAT | O_WRONLY | O_CLOEXEC, 0640);
	assert_int_equal(write(fd, "data", 4), 4);
	close(fd);
	snprintf(name, sizeof name, "%s/link", w.root);
	assert_int_equal(symlink("/etc/passwd", name), 0);
#define PATH_TASK(id, p) \
	"{\"id\":\"" id "\",\"argv\":[\"t\"],\"files\":{\"f\":{\"path\":\"" p "\"}}}"
	line(PATH_TASK("good", "%s/./x"), w.root);
	line(PATH_TASK("link", "%s/link"), w.root);
	line(PATH_TASK("out", "%s/../../etc/passwd"), w.root);
	line(PATH_TASK("near", "%s-other/x"), w.root);
	line(PATH_TASK("none", "%s/none"), w.root);
	line(PATH_TASK("dir", "%s/"), w.root);
	begin();
	read_all_possible();
	assert_int_equal(w.sup.n, 1);
	assert_string_equal(w.sup.running[0]->id, "good");
	assert_int_equal(w.sup.running[0]->files[0].mode, 0640);
	expect("link", KN_V_INVALID, "/files/f/path: link: a symbolic link");
	expect("out", KN_V_INVALID, "not below");
	expect("near", KN_V_INVALID, "not below");
	expect("none", KN_V_INVALID, "No such file");
	expect("dir", KN_V_INVALID, "not below");
	run_to_end();
	close_batch();
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bad_lines_cost_themselves_only),
		cmocka_unit_test(an_over_long_line_is_discarded),
		cmocka_unit_test(followers_wait_and_fall_with_their_predecessor),
		cmocka_unit_test(cancel_reaches_waiting_and_running_tasks),
		cmocka_unit_test(a_long_batch_is_read_only_as_fast_as_it_runs),
		cmocka_unit_test(a_full_output_stops_the_reading),
		cmocka_unit_test(a_stop_answers_everything_accepted),
		cmocka_unit_test(fail_fast_stops_at_the_first_failure),
		cmocka_unit_test(kept_files_reach_the_followers_only_as_asked),
		cmocka_unit_test(paths_stay_below_the_roots_and_follow_no_link),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
