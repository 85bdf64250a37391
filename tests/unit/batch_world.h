/* tests/unit/batch_world.h: a batch and a pool made of cardboard, for the tests of
 * batches.
 */
#ifndef KN_TESTS_BATCH_WORLD_H
#define KN_TESTS_BATCH_WORLD_H

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

enum { RESULTS_MAX = 20000, WINDOW_MAX = 8192 };

/* ---- the cardboard pool ---- */

struct cardboard {
	struct kn_batch *batch;
	struct kn_task *running[WINDOW_MAX];
	struct kn_node *node[WINDOW_MAX];
	size_t n, window;
	size_t most;
};

static int
submit(void *ctx, struct kn_task *t, struct kn_node *n, enum kn_verdict *v,
    struct kn_err *e)
{
	struct cardboard *s = ctx;

	(void)v;
	(void)e;
	if (s->n == s->window)
		return 1;
	s->node[s->n] = n;
	s->running[s->n++] = t;
	if (s->n > s->most)
		s->most = s->n;
	return 0;
}

static void
take_away(struct cardboard *s, size_t i)
{
	memmove(
	    &s->running[i], &s->running[i + 1], (--s->n - i) * sizeof s->running[0]);
	memmove(&s->node[i], &s->node[i + 1], (s->n - i) * sizeof s->node[0]);
}

static void
answer(struct cardboard *s, size_t i, struct kn_outcome *o)
{
	struct kn_node *n = s->node[i];

	take_away(s, i);
	kn_batch_answer(s->batch, n, o);
	kn_outcome_fini(o);
}

static void
answer_with(struct cardboard *s, size_t i, enum kn_verdict v)
{
	struct kn_outcome o = { .verdict = v, .started = true };

	answer(s, i, &o);
}

static size_t
place_of(const struct cardboard *s, const struct kn_task *t)
{
	for (size_t i = 0; i < s->n; i++) {
		if (s->running[i] == t)
			return i;
	}
	fail_msg("a task that does not run");
	return 0;
}

static void
cancel(void *ctx, struct kn_task *t)
{
	answer_with(ctx, place_of(ctx, t), KN_V_CANCELLED);
}

static void
drop(void *ctx, struct kn_task *t)
{
	take_away(ctx, place_of(ctx, t));
	kn_task_free(t);
}

/* ---- the world of one test ---- */

struct result {
	char id[64];
	enum kn_verdict verdict;
	uint64_t line, seq;
	char error[320];
};

static struct {
	struct cardboard sup;
	struct kn_batch *batch;
	int in;
	bool fail_fast, stopped;
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
	if (w.fail_fast && to->verdict != KN_V_OK) { /* as who hears of it may do */
		w.stopped = true;
		kn_batch_stop(w.batch);
	}
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
	const struct kn_batch_ops ops = { .ctx = &w.sup,
		.result = on_result,
		.room = has_room,
		.submit = submit,
		.cancel = cancel,
		.drop = drop };
	const struct kn_batch_options o = { .policy = &w.policy, .keep_dir = keep };
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
	w.fail_fast = fail_fast;
	if (kn_batch_open(&o, &ops, &w.batch, &e) < 0)
		fail_msg("%s", e.msg);
	w.sup.batch = w.batch;
}

static void __attribute__((format(printf, 1, 2))) line(const char *fmt, ...)
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
	assert_int_equal(lseek(w.in, 0, SEEK_SET), 0);
}

static void
read_all_possible(void)
{
	while (kn_batch_wants(w.batch) && kn_batch_read(w.batch, w.in) > 0)
		;
}

static bool
is_over(void)
{
	struct kn_batch_counts c;

	kn_batch_count(w.batch, &c);
	return c.over;
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
	assert_true(is_over());
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

#endif
