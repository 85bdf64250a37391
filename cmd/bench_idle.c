/* cmd/bench_idle.c: M8, what an idle pool does, and M13, what it holds.
 *
 * Looked at from outside: a child of ours is the pool, and the kernel's accounts of it
 * and of all below it are read before and after the quiet time. Who was never switched
 * to another process in that time, and is not running at either end of it, has not run:
 * so it has made no system call either. Where something did run, its calls are not
 * counted here, and the row says so.
 */
#include <stdio.h>
#include <string.h>

#include "cmd/bench.h"

enum {
	WORKERS = 8,
	PROCESSES_MAX = 256,
	QUIET_MS = 10000,
	QUIET_QUICK_MS = 2000,
	SETTLE_MS = 2500, /* more than any timer that a task leaves armed */
	TRIES = 10
};
static const char busy_call[] = "\"pause\",\"value\":100000";
static const char busy[] = "[\"" KN_BENCH_TASK "\",\"pause-us\",\"100000\"]";

struct idle {
	struct kn_bench_child child;
	int pid[PROCESSES_MAX];
	size_t n;
};

/* Until each of the workers has run a task. */
static int
open_pool(struct kn_bench *b, struct idle *x, struct kn_err *e)
{
	uint32_t ran = 0, some;

	if (kn_bench_child_start(b, &x->child, WORKERS, e) < 0)
		return -1;
	for (unsigned i = 0; i < TRIES && ran != (1u << WORKERS) - 1; i++) {
		if (kn_bench_child_tasks(&x->child, x->child.module ? busy_call : busy,
			i * WORKERS, WORKERS, &some, e) < 0)
			return -1;
		ran |= some;
	}
	if (ran != (1u << WORKERS) - 1)
		return kn_err_set(e, KN_EK_HOST, "not all workers came to run a task");
	if (!kn_bench_wait(b, SETTLE_MS))
		return kn_err_set(e, KN_EK_HOST, "stopped by a signal");
	x->n = kn_bench_proc_tree(x->child.pid, x->pid, PROCESSES_MAX);
	return 0;
}

static int
sum(const struct idle *x, struct kn_bench_ran *out, struct kn_err *e)
{
	memset(out, 0, sizeof *out);
	for (size_t i = 0; i < x->n; i++) {
		struct kn_bench_ran one;

		if (!kn_bench_proc_ran(x->pid[i], &one))
			return kn_err_set(e, KN_EK_HOST,
			    "the accounts of process %d cannot be read", x->pid[i]);
		out->cpu_ms += one.cpu_ms;
		out->switches_voluntary += one.switches_voluntary;
		out->switches_other += one.switches_other;
	}
	return 0;
}

static void
row_of(
    struct kn_bench *b, const char *unit, const char *what, double v, const char *note)
{
	struct kn_bench_row *r = kn_bench_row(b, "M8", unit, "%s", what);
	struct kn_series s = { 0 };

	kn_series_add(&s, v);
	kn_bench_alone(r, &s);
	kn_bench_at_most(r, 0);
	if (note)
		kn_bench_note(r, "%s", note);
	kn_series_fini(&s);
}

static const char *
kind_calls(const struct idle *x)
{
	return x->child.module ? "idle module pool, system calls"
			       : "idle pool, system calls";
}

static int
quiet(struct kn_bench *b, const struct idle *x, struct kn_err *e)
{
	unsigned ms = b->quick ? QUIET_QUICK_MS : QUIET_MS;
	struct kn_bench_ran a, z;
	double switches;
	char note[96];

	if (sum(x, &a, e) < 0)
		return -1;
	if (!kn_bench_wait(b, ms))
		return kn_err_set(e, KN_EK_HOST, "stopped by a signal");
	if (sum(x, &z, e) < 0)
		return -1;
	switches = (double)(z.switches_voluntary - a.switches_voluntary +
			    z.switches_other - a.switches_other);
	snprintf(note, sizeof note, "over %u s, supervisor and %zu processes below it",
	    ms / 1000, x->n - 1);
	row_of(b, "ms",
	    x->child.module ? "idle module pool of 8, CPU"
			    : "idle pool of 8 workers, CPU",
	    z.cpu_ms - a.cpu_ms, note);
	row_of(b, "",
	    x->child.module ? "idle module pool, context switches of all kinds"
			    : "idle pool, context switches of all kinds",
	    switches, NULL);
	if (switches == 0) {
		row_of(b, "", kind_calls(x), 0, "none of them ran, so none called");
	} else {
		struct kn_bench_row *r = kn_bench_row(b, "M8", "", "%s", kind_calls(x));

		kn_bench_note(r, "something ran, and /proc does not count calls");
	}
	return 0;
}

static void
memory(struct kn_bench *b, const struct idle *x)
{
	struct kn_bench_row *r = kn_bench_row(b, "M13", "MiB",
	    "memory (PSS) per idle worker, stub and launcher%s",
	    x->child.module ? " and module" : "");
	struct kn_series s = { 0 };
	double kib = 0;
	bool resident = false;

	for (size_t i = 1; i < x->n; i++) {
		long one = kn_bench_proc_number(x->pid[i], "smaps_rollup", "Pss:");

		if (one < 0) { /* not ours to look into: what all may see */
			one = kn_bench_proc_number(x->pid[i], "status", "VmRSS:");
			resident = true;
		}
		if (one < 0) {
			kn_bench_note(r, "process %d cannot be looked at", x->pid[i]);
			return;
		}
		kib += (double)one;
	}
	kn_series_add(&s, kib / 1024 / WORKERS);
	kn_bench_alone(r, &s);
	kn_bench_at_most(r, 1);
	kn_bench_note(r, "all %zu processes below the supervisor, by 8%s", x->n - 1,
	    resident ? "; where PSS is not ours to read, RSS, which is more" : "");
	kn_series_fini(&s);
}

static void
idle(struct kn_bench *b, bool module)
{
	static struct idle x;
	struct kn_err e = { 0 };
	int rc;

	x.child.module = module;
	rc = open_pool(b, &x, &e);

	if (rc == 0 && kn_bench_wants(b, 8))
		rc = quiet(b, &x, &e);
	if (rc == 0 && kn_bench_wants(b, 13))
		memory(b, &x);
	if (kn_bench_child_end(&x.child, rc == 0 ? &e : NULL) < 0 && rc == 0)
		rc = -1;
	if (rc < 0)
		kn_bench_note(
		    kn_bench_row(b, kn_bench_wants(b, 8) ? "M8" : "M13", "",
			"idle %s of 8 workers", module ? "module pool" : "pool"),
		    "%s", e.msg);
}

void
kn_bench_idle(struct kn_bench *b)
{
	idle(b, false);
	if (!kn_bench_ending(b))
		idle(b, true);
}
