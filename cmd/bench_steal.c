/* cmd/bench_steal.c: M10, uneven tasks; M11, many of them. */
#include <stdio.h>
#include <string.h>

#include "cmd/bench.h"
#include "cmd/bench_call.h"
#include "ipc/clock.h"

/* ---- M10 ---- */

enum {
	WORKERS = 4, /* the tasks sleep: more of them than CPUs is no matter */
	TASKS = 64,
	SHORT_US = 20000, /* so long that it is the order that counts, not the cells */
	TIMES = 50,	  /* a long one is this much longer */
	ONE_IN = 16
};

struct mix {
	unsigned short_us;
	int n;
	char text[TASKS][12];
	unsigned us[TASKS];
};

/* One in sixteen is long, at a place that looks like chance and is always the same. */
static void
plan(struct mix *m, bool quick)
{
	uint32_t x = 12345;

	m->n = quick ? TASKS / 2 : TASKS;
	m->short_us = quick ? SHORT_US / 8 : SHORT_US;
	for (int i = 0; i < m->n; i++) {
		m->us[i] = m->short_us;
		snprintf(m->text[i], sizeof m->text[i], "%u", m->us[i]);
	}
	for (int i = 0; i + ONE_IN <= m->n; i += ONE_IN) {
		int at;

		x = x * 1664525u + 1013904223u;
		at = i + (int)(x >> 16) % ONE_IN;
		m->us[at] = m->short_us * TIMES;
		snprintf(m->text[at], sizeof m->text[at], "%u", m->us[at]);
	}
}

/* In the order given, each to whoever is free first; cells for nothing. */
static double
ideal_ms(const struct mix *m)
{
	uint64_t free_at[WORKERS] = { 0 }, end = 0;

	for (int i = 0; i < m->n; i++) {
		int w = 0;

		for (int k = 1; k < WORKERS; k++)
			if (free_at[k] < free_at[w])
				w = k;
		free_at[w] += m->us[i];
		if (free_at[w] > end)
			end = free_at[w];
	}
	return (double)end / 1000;
}

static uint32_t
mix_task(void *ctx, int i, const char *argv[4])
{
	const struct mix *m = ctx;

	argv[0] = KN_BENCH_TASK;
	argv[1] = "pause-us";
	argv[2] = i < 0 ? "2000" : m->text[i];
	return 0;
}

static void steal_calls(struct kn_bench *b, const struct mix *m);

void
kn_bench_steal(struct kn_bench *b)
{
	struct kn_bench_row *on = kn_bench_row(
	    b, "M10", "ms", "uneven tasks (1 in 16 is 50x), makespan, 4 workers");
	struct kn_bench_row *off =
	    kn_bench_row(b, "M10", "ms", "the same without stealing");
	static struct mix m;
	struct kn_bench_pool p = { .policy = b->policy,
		.workers = WORKERS,
		.warm = 2 * WORKERS,
		.task = mix_task,
		.ctx = &m };
	struct kn_series with = { 0 }, without = { 0 }, ideal = { 0 };
	uint64_t t0 = kn_clock_now(), stolen = 0;
	struct kn_err e = { 0 };
	int rc = 0;

	plan(&m, b->quick);
	p.n = m.n;
	for (unsigned i = 0; rc == 0 && kn_bench_another(b, i, t0, 25000); i++) {
		kn_series_add(&ideal, ideal_ms(&m));
		p.no_steal = false;
		if ((rc = kn_bench_pool(b, &p, &e)) < 0)
			break;
		kn_series_add(&with, p.ms);
		stolen += p.stolen;
		p.no_steal = true;
		if ((rc = kn_bench_pool(b, &p, &e)) == 0)
			kn_series_add(&without, p.ms);
	}
	if (rc < 0)
		kn_bench_note(on, "%s", e.msg);
	else
		kn_bench_note(on, "%d tasks of %.3g ms and up, %.1f taken back a round",
		    m.n, m.short_us / 1e3,
		    with.n ? (double)stolen / (double)with.n : 0);
	kn_bench_compare(on, &with, &ideal, "ideal list schedule");
	kn_bench_at_most(on, 1.1);
	kn_bench_compare(off, &without, &ideal, "ideal list schedule");
	kn_series_fini(&with);
	kn_series_fini(&without);
	kn_series_fini(&ideal);
	if (rc == 0 && !kn_bench_ending(b))
		steal_calls(b, &m);
}

/* The same by a module: its calls are handed over in microseconds, so all are at once.
 */
static int64_t
mix_call(void *ctx, unsigned i)
{
	const struct mix *m = ctx;

	return m->us[i];
}

static void
steal_calls(struct kn_bench *b, const struct mix *m)
{
	struct kn_bench_row *on = kn_bench_row(
	    b, "M10", "ms", "uneven calls of a module, makespan, 4 workers");
	struct kn_bench_row *shared =
	    kn_bench_row(b, "M10", "ms", "the same calls with shared submit");
	struct kn_bench_row *off =
	    kn_bench_row(b, "M10", "ms", "the same calls without stealing");
	struct kn_series with = { 0 }, without = { 0 }, ideal = { 0 }, from_one = { 0 };
	struct kn_bench_calls c = { .name = "pause",
		.workers = WORKERS,
		.depth = (uint32_t)m->n,
		.arg = mix_call,
		.ctx = (void *)(uintptr_t)m,
		.warm = 4 * WORKERS,
		.n = (unsigned)m->n };
	uint64_t t0 = kn_clock_now();
	struct kn_err e = { 0 };
	int rc = 0;

	for (unsigned i = 0; rc == 0 && kn_bench_another(b, i, t0, 25000); i++) {
		kn_series_add(&ideal, ideal_ms(m));
		c.no_steal = false;
		if ((rc = kn_bench_calls(b, &c, &e)) < 0)
			break;
		kn_series_add(&with, c.ms);
		c.shared = true;
		if ((rc = kn_bench_calls(b, &c, &e)) < 0)
			break;
		kn_series_add(&from_one, c.ms);
		c.shared = false;
		c.no_steal = true;
		if ((rc = kn_bench_calls(b, &c, &e)) == 0)
			kn_series_add(&without, c.ms);
	}
	if (rc < 0)
		kn_bench_note(on, "%s", e.msg);
	kn_bench_compare(on, &with, &ideal, "ideal list schedule");
	kn_bench_at_most(on, 1.1);
	kn_bench_compare(shared, &from_one, &ideal, "ideal list schedule");
	kn_bench_at_most(shared, 1.1);
	kn_bench_compare(off, &without, &ideal, "ideal list schedule");
	kn_series_fini(&from_one);
	kn_series_fini(&with);
	kn_series_fini(&without);
	kn_series_fini(&ideal);
}

/* ---- M11 ---- */

enum {
	MANY = 20000,
	MANY_CALLS = 1000000,
	FIRST = 1000,
	CHUNK = 1000,
	BUDGET_MS = 40000,
	ALONE_MS = 1200000 /* where nothing else is asked for */
};

/* Tasks from..to, as far as time allows; *out_n: how many there were in all. */
static int
feed(struct kn_bench *b, struct kn_bench_child *c, unsigned from, unsigned to,
    unsigned *out_n, struct kn_err *e)
{
	const char *argv = c->module ? "\"nothing\"" : "[\"" KN_BENCH_TASK "\"]";
	uint64_t budget_ms = b->only == 1u << 11 ? ALONE_MS : BUDGET_MS;
	uint64_t t0 = kn_clock_now();

	for (*out_n = from; *out_n < to;) {
		unsigned n = to - *out_n < CHUNK ? to - *out_n : CHUNK;

		if (kn_bench_child_tasks(c, argv, *out_n, n, NULL, e) < 0)
			return -1;
		*out_n += n;
		if (kn_bench_ending(b) || kn_clock_now() - t0 > budget_ms * KN_MS_NS)
			break;
	}
	return 0;
}

static int
peak(const struct kn_bench_child *c, struct kn_series *s, struct kn_err *e)
{
	long kib = kn_bench_proc_number(c->pid, "status", "VmHWM:");

	if (kib <= 0)
		return kn_err_set(e, KN_EK_HOST, "VmHWM cannot be read");
	kn_series_add(s, (double)kib / 1024);
	return 0;
}

static void
many(struct kn_bench *b, bool module)
{
	struct kn_bench_row *r = kn_bench_row(b, "M11", "MiB",
	    "supervisor's peak memory after many %s", module ? "calls" : "commands");
	unsigned most = module ? MANY_CALLS : MANY;
	unsigned first = b->quick ? FIRST / 5 : FIRST, all = b->quick ? FIRST : most;
	struct kn_series s = { 0 }, f = { 0 };
	static struct kn_bench_child c;
	unsigned done = 0, again;
	struct kn_err e = { 0 };
	int rc;

	c.module = module;
	rc = kn_bench_child_start(b, &c, 2, &e);
	if (rc == 0)
		rc = feed(b, &c, 0, first, &done, &e);
	if (rc == 0)
		rc = peak(&c, &f, &e);
	if (rc == 0 && (rc = feed(b, &c, first, all, &again, &e)) == 0)
		done = again;
	if (rc == 0)
		rc = peak(&c, &s, &e);
	if (kn_bench_child_end(&c, rc == 0 ? &e : NULL) < 0)
		rc = -1;
	if (rc < 0)
		kn_bench_note(r, "%s", e.msg);
	kn_bench_note(r, "run --tasks, after %u %s against after %u%s", done,
	    module ? "calls" : "exec tasks", first,
	    done < all ? "; no time for more" : "");
	if (s.n && f.n && s.v[0] < f.v[0])
		kn_bench_note(r, "VmHWM is the kernel's estimate: it can go down");
	kn_bench_compare(r, &s, &f, "after the first tasks");
	kn_bench_at_most(r, 1.05);
	kn_series_fini(&s);
	kn_series_fini(&f);
}

void
kn_bench_long(struct kn_bench *b)
{
	many(b, false);
	if (!kn_bench_ending(b))
		many(b, true);
}
