/* cmd/bench_exec.c: M2 and M3: tasks a second with a fresh cell each, two workers.
 *
 * M2 asks what a cell costs beside the bare start of the same ordinary program; M3 what
 * it costs to build a sandbox for each task instead, with a program that does nothing,
 * so that nothing of the difference is the program's.
 */
#include <stdio.h>
#include <string.h>

#include "cmd/bench.h"
#include "cmd/bench_peer.h"
#include "ipc/clock.h"

enum { WORKERS = 2, TASKS = 400, TASKS_QUICK = 20, BUDGET_MS = 25000 };

static uint32_t
true_task(void *ctx, int i, const char *argv[4])
{
	(void)ctx;
	(void)i;
	argv[0] = "/bin/true";
	return 0;
}

static uint32_t
nothing_task(void *ctx, int i, const char *argv[4])
{
	(void)ctx;
	(void)i;
	argv[0] = KN_BENCH_TASK;
	return 0;
}

/* Tasks a second. */
static int
ours(struct kn_bench *b, struct kn_bench_pool *p, struct kn_series *s, struct kn_err *e)
{
	if (kn_bench_pool(b, p, e) < 0)
		return -1;
	kn_series_add(s, p->n / p->ms * 1000);
	return 0;
}

static int
bare(struct kn_bench *b, const struct kn_bench_cmd *c, struct kn_series *s,
    struct kn_err *e)
{
	double ms;

	if (kn_bench_spawn(b, c, &ms, e) < 0)
		return -1;
	kn_series_add(s, c->n / ms * 1000);
	return 0;
}

/* ---- M2 ---- */

void
kn_bench_exec(struct kn_bench *b)
{
	static const char *const argv[] = { "true", NULL };
	struct kn_bench_row *r = kn_bench_row(
	    b, "M2", "/s", "exec /bin/true, a cell each, %d workers", WORKERS);
	struct kn_bench_row *r2 =
	    kn_bench_row(b, "M2", "/s", "the same without cgroups");
	int n = b->quick ? TASKS_QUICK : TASKS;
	struct kn_bench_pool with = { .policy = b->plain,
		.workers = WORKERS,
		.warm = 4 * WORKERS,
		.n = n,
		.task = true_task };
	struct kn_bench_pool without = with;
	struct kn_bench_cmd c = {
		.path = "/bin/true", .argv = argv, .lanes = WORKERS, .n = n
	};
	struct kn_series s = { 0 }, s2 = { 0 }, f = { 0 };
	uint64_t t0 = kn_clock_now();
	struct kn_err e = { 0 };
	int rc = 0;

	without.no_cgroups = true;
	for (unsigned i = 0; rc == 0 && kn_bench_another(b, i, t0, BUDGET_MS); i++) {
		rc = ours(b, &with, &s, &e);
		if (rc == 0)
			rc = bare(b, &c, &f, &e);
		if (rc == 0)
			rc = ours(b, &without, &s2, &e);
	}
	if (rc < 0)
		kn_bench_note(r, "%s", e.msg);
	else if (!with.had_cgroups)
		kn_bench_note(r, "this machine grants no cgroups: none were used");
	kn_bench_compare(r, &s, &f, "posix_spawn, 2 at a time");
	kn_bench_at_least(r, 0.5);
	kn_bench_compare(r2, &s2, &f, "posix_spawn, 2 at a time");
	kn_series_fini(&s);
	kn_series_fini(&s2);
	kn_series_fini(&f);
}

/* ---- M3 ---- */

struct contest {
	struct kn_series rate[KN_PEER_N];
	bool failed[KN_PEER_N];
	char why[KN_PEER_N][160];
};

/* One round of every peer that is here; one that fails is out. */
static void
peers_round(struct kn_bench *b, struct kn_peers *p, struct contest *x)
{
	for (int i = 0; i < KN_PEER_N; i++) {
		struct kn_err e = { 0 };

		if (!p->path[i][0] || x->failed[i] || kn_bench_ending(b))
			continue;
		if (bare(b, &p->cmd[i], &x->rate[i], &e) == 0)
			continue;
		x->failed[i] = true;
		snprintf(x->why[i], sizeof x->why[i], "%.150s", e.msg);
	}
}

static void
peer_rows(struct kn_bench *b, const struct kn_peers *p, struct contest *x,
    const struct kn_series *s)
{
	for (int i = 0; i < KN_PEER_N; i++) {
		struct kn_bench_row *r;
		char name[48];

		if (!p->path[i][0])
			continue;
		r = kn_bench_row(b, "M3", "/s", "exec, a program that does nothing");
		snprintf(name, sizeof name, "%s, one per task", kn_peer_name(i));
		if (x->failed[i]) { /* half a series is no series */
			kn_series_fini(&x->rate[i]);
			kn_bench_note(
			    r, "%s does not work here: %s", kn_peer_name(i), x->why[i]);
		}
		kn_bench_compare(r, s, &x->rate[i], name);
		if (i == KN_PEER_BWRAP)
			kn_bench_at_least(r, 8);
		kn_series_fini(&x->rate[i]);
	}
}

void
kn_bench_peers(struct kn_bench *b)
{
	const char *const argv[] = { b->task, NULL };
	struct kn_bench_row *r = kn_bench_row(
	    b, "M3", "/s", "exec, a program that does nothing, %d workers", WORKERS);
	int n = b->quick ? TASKS_QUICK : 2 * TASKS;
	struct kn_bench_pool pool = { .policy = b->policy,
		.workers = WORKERS,
		.warm = 4 * WORKERS,
		.n = n,
		.task = nothing_task };
	struct kn_bench_cmd c = {
		.path = b->task, .argv = argv, .lanes = WORKERS, .n = n
	};
	struct kn_series s = { 0 }, f = { 0 };
	uint64_t t0 = kn_clock_now();
	static struct contest x;
	static struct kn_peers peers;
	struct kn_err e = { 0 };
	int rc = 0;

	memset(&x, 0, sizeof x);
	kn_peers_find(&peers, b, WORKERS);
	for (unsigned i = 0; rc == 0 && kn_bench_another(b, i, t0, BUDGET_MS); i++) {
		rc = ours(b, &pool, &s, &e);
		if (rc == 0)
			rc = bare(b, &c, &f, &e);
		if (rc == 0)
			peers_round(b, &peers, &x);
	}
	if (rc < 0)
		kn_bench_note(r, "%s", e.msg);
	kn_bench_compare(r, &s, &f, "posix_spawn, 2 at a time");
	peer_rows(b, &peers, &x, &s);
	kn_peers_end(&peers, b);
	kn_series_fini(&s);
	kn_series_fini(&f);
}
