/* cmd/bench_kill.c: M9: how long after hard_ms a task is gone.
 *
 * Measured from outside the sandbox, and too long rather than too short: from the
 * submission to an idle worker, before the worker's own clock starts, to the answer,
 * which comes after the cell's init has been reaped. The kernel reaps that one only
 * when nothing is left in its PID namespace. A task that was not yet in the state that
 * it is named for when it was killed does not count.
 *
 * Beside it, how late a bare timer, SIGKILL and waitpid are here: on a busy machine
 * nobody can be in time.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>

#include "cmd/bench.h"
#include "ipc/clock.h"
#include "sandbox/policy.h"
#include "supervisor/task.h"

enum { PER_ROUND = 8, MEMORY_PER_ROUND = 2 };

static const struct shape {
	const char *name, *word, *arg;
	uint32_t hard_ms;
} shapes[] = {
	{ "spinning", "spin", NULL, 50 },
	{ "sleeping", "sleep", NULL, 50 },
	{ "forking all the time", "fork", NULL, 50 },
	{ "ignoring all signals", "ignore", NULL, 50 },
	{ "100 spinning processes", "spinners", NULL, 300 },
};
static const struct shape memory = { "400 MiB of touched memory", "touch", "400",
	1000 };
enum { SHAPES = sizeof shapes / sizeof *shapes };

struct kills {
	const struct shape *shapes;
	int n;
	struct kn_series late_ms[SHAPES];
	unsigned early; /* killed before they were in their state */
	unsigned odd;	/* not a timeout */
	char why[128];
};

static uint32_t
kill_task(void *ctx, int i, const char *argv[4])
{
	const struct kills *k = ctx;
	const struct shape *s;

	argv[0] = KN_BENCH_TASK;
	if (i < 0)
		return 0;
	s = &k->shapes[i % k->n];
	argv[1] = s->word;
	argv[2] = s->arg;
	return s->hard_ms;
}

static void
kill_answer(void *ctx, int i, const struct kn_outcome *o, double us)
{
	struct kills *k = ctx;
	int shape = i % k->n;

	if (o->verdict != KN_V_TIMEOUT) {
		if (k->odd++ == 0)
			snprintf(k->why, sizeof k->why, "%s: %s %.80s",
			    k->shapes[shape].name, kn_verdict_name(o->verdict),
			    o->error);
	} else if (!o->out.bytes || strncmp(o->out.bytes, "ready", 5) != 0) {
		k->early++;
	} else {
		kn_series_add(&k->late_ms[shape], us / 1000 - k->shapes[shape].hard_ms);
	}
}

static void
notes(struct kn_bench_row *r, const struct kills *k)
{
	if (k->early)
		kn_bench_note(r, "%u killed too early to count", k->early);
	if (k->odd)
		kn_bench_note(r, "%u ended otherwise (%s)", k->odd, k->why);
}

static struct kn_bench_row *
percentile_row(
    struct kn_bench *b, const struct kn_series *all, double p, const char *name)
{
	struct kn_bench_row *r = kn_bench_row(
	    b, "M9", "ms", "kill latency past hard_ms, %s of all shapes", name);
	struct kn_series s = { 0 };

	if (all->n > 0)
		kn_series_add(&s, kn_series_percentile(all, p));
	kn_bench_alone(r, &s);
	r->n = all->n;
	kn_bench_note(r, "of %zu kills", all->n);
	kn_series_fini(&s);
	return r;
}

/* One row for each shape: its median, and its spread up to the worst. */
static void
shape_rows(struct kn_bench *b, const struct kills *k)
{
	for (int i = 0; i < k->n; i++) {
		struct kn_bench_row *r =
		    kn_bench_row(b, "M9", "ms", "%s, median", k->shapes[i].name);

		kn_bench_alone(r, &k->late_ms[i]);
		if (r->has_ours)
			kn_bench_note(
			    r, "p99 %.2f ms", kn_series_percentile(&k->late_ms[i], 99));
		else
			kn_bench_note(
			    r, "none of them got there in %u ms", k->shapes[i].hard_ms);
	}
}

/* n spinning processes, one after the other, killed by us at a timer. */
static int
bare(struct kn_bench *b, int n, struct kn_series *late_ms, struct kn_err *e)
{
	char word[] = "spin", *argv[] = { b->task, word, NULL };
	posix_spawn_file_actions_t fa;

	posix_spawn_file_actions_init(&fa);
	posix_spawn_file_actions_addopen(&fa, 1, "/dev/null", O_WRONLY, 0);
	for (int i = 0; i < n; i++) {
		uint64_t end = kn_clock_now() + shapes[0].hard_ms * KN_MS_NS;
		const struct timespec t = { (time_t)(end / KN_S_NS),
			(long)(end % KN_S_NS) };
		pid_t pid;

		errno = posix_spawn(&pid, b->task, &fa, NULL, argv, NULL);
		if (errno) {
			posix_spawn_file_actions_destroy(&fa);
			return kn_err_sys(e, KN_EK_HOST, "start %s", b->task);
		}
		while (
		    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) == EINTR)
			;
		kill(pid, SIGKILL);
		while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
			;
		kn_series_add(late_ms, (double)(kn_clock_now() - end) / 1e6);
	}
	posix_spawn_file_actions_destroy(&fa);
	return 0;
}

static void
bare_row(struct kn_bench *b, const struct kn_series *late_ms)
{
	struct kn_bench_row *r = kn_bench_row(
	    b, "M9", "ms", "for comparison: a bare timer and SIGKILL, median");

	kn_bench_alone(r, late_ms);
	if (r->has_ours)
		kn_bench_note(r, "p99 %.2f ms", kn_series_percentile(late_ms, 99));
	else
		kn_bench_note(r, "not measured");
}

static void
run(struct kn_bench *b, struct kills *k, int n, struct kn_err *e, int *rc)
{
	struct kn_bench_pool p = { .policy = b->policy,
		.workers = 1,
		.warm = 2,
		.n = n,
		.one_by_one = true,
		.task = kill_task,
		.answer = kill_answer,
		.ctx = k };

	if (*rc == 0)
		*rc = kn_bench_pool(b, &p, e);
}

void
kn_bench_kill(struct kn_bench *b)
{
	struct kills k = { .shapes = shapes, .n = SHAPES };
	struct kills m = { .shapes = &memory, .n = 1 };
	struct kn_series all = { 0 }, plain = { 0 };
	uint64_t t0 = kn_clock_now();
	struct kn_err e = { 0 };
	struct kn_bench_row *r;
	int rc = 0;

	for (unsigned i = 0; rc == 0 && kn_bench_another(b, i, t0, 45000); i++) {
		run(b, &k, SHAPES * (b->quick ? 1 : PER_ROUND), &e, &rc);
		if (rc == 0)
			rc = bare(b, b->quick ? 1 : PER_ROUND, &plain, &e);
		run(b, &m, b->quick ? 1 : MEMORY_PER_ROUND, &e, &rc);
	}
	for (int i = 0; i < SHAPES; i++)
		for (size_t j = 0; j < k.late_ms[i].n; j++)
			kn_series_add(&all, k.late_ms[i].v[j]);
	r = percentile_row(b, &all, 99, "p99");
	kn_bench_at_most(r, 10);
	notes(r, &k);
	if (rc < 0)
		kn_bench_note(r, "%s", e.msg);
	percentile_row(b, &all, 50, "p50");
	percentile_row(b, &all, 100, "max");
	shape_rows(b, &k);
	shape_rows(b, &m);
	notes(&b->rows[b->row_n - 1], &m);
	bare_row(b, &plain);
	for (int i = 0; i < SHAPES; i++)
		kn_series_fini(&k.late_ms[i]);
	kn_series_fini(&m.late_ms[0]);
	kn_series_fini(&all);
	kn_series_fini(&plain);
}
