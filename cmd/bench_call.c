/* cmd/bench_call.c: M4a, M4b, M5, M6, M7: calls of a module beside bare memory. */
#include "cmd/bench_call.h"

#include <stdio.h>

#include "ipc/clock.h"

enum { TRIPS = 20000, PACED = 200, PACE_MS = 5, WARM = 1000, BUDGET_MS = 20000 };

/* ---- M4a, M4b, M5: one at a time ---- */

struct latency {
	struct kn_series p50, tail, floor50, floor_tail;
	double tail_at;
};

static void
add(struct latency *l, const struct kn_series *ours, const struct kn_series *floor)
{
	kn_series_add(&l->p50, kn_series_median(ours));
	kn_series_add(&l->tail, kn_series_percentile(ours, l->tail_at));
	kn_series_add(&l->floor50, kn_series_median(floor));
	kn_series_add(&l->floor_tail, kn_series_percentile(floor, l->tail_at));
}

static int
trip_round(struct kn_bench *b, struct latency *l, unsigned n, struct kn_err *e)
{
	struct kn_series us = { 0 }, floor = { 0 };
	struct kn_bench_calls c = { .name = "nothing",
		.workers = 1,
		.depth = 1,
		.warm = WARM,
		.n = n,
		.us = &us };
	int rc = kn_bench_pingpong(n, &floor, e);

	if (rc == 0 && (rc = kn_bench_calls(b, &c, e)) == 0)
		add(l, &us, &floor);
	kn_series_fini(&us);
	kn_series_fini(&floor);
	return rc;
}

static int
paced_round(struct kn_bench *b, struct latency *l, unsigned n, struct kn_err *e)
{
	struct kn_series us = { 0 }, two = { 0 }, one = { 0 };
	struct kn_bench_calls c = { .name = "nothing",
		.workers = 1,
		.depth = 1,
		.warm = 1,
		.n = n,
		.pace_ms = PACE_MS,
		.us = &us };
	int rc = kn_bench_futex(n, PACE_MS, false, &two, e);

	if (rc == 0)
		rc = kn_bench_futex(n, PACE_MS, true, &one, e);
	if (rc == 0 && (rc = kn_bench_calls(b, &c, e)) == 0)
		add(l, &us,
		    kn_series_median(&one) < kn_series_median(&two) ? &one : &two);
	kn_series_fini(&us);
	kn_series_fini(&two);
	kn_series_fini(&one);
	return rc;
}

static void
latency(struct kn_bench *b, const char *id, const char *what, const char *tail_what,
    const char *floor_name, struct latency *l, double most, unsigned n,
    int (*round)(struct kn_bench *, struct latency *, unsigned, struct kn_err *))
{
	struct kn_bench_row *mid = NULL, *tail = NULL;
	uint64_t t0 = kn_clock_now();
	struct kn_err e = { 0 };
	int rc = 0;

	for (unsigned i = 0; rc == 0 && kn_bench_another(b, i, t0, BUDGET_MS); i++)
		rc = round(b, l, n, &e);
	mid = kn_bench_row(b, id, "us", "%s", what);
	if (rc < 0)
		kn_bench_note(mid, "%s", e.msg);
	kn_bench_compare(mid, &l->p50, &l->floor50, floor_name);
	kn_bench_at_most(mid, most);
	if (kn_bench_wants(b, 5)) {
		tail = kn_bench_row(b, "M5", "us", "%s", tail_what);
		kn_bench_compare(
		    tail, &l->tail, &l->floor_tail, "the same of its floor");
		kn_bench_at_most(tail, 2);
	}
	kn_series_fini(&l->p50);
	kn_series_fini(&l->tail);
	kn_series_fini(&l->floor50);
	kn_series_fini(&l->floor_tail);
}

void
kn_bench_trip(struct kn_bench *b)
{
	struct latency a = { .tail_at = 99.9 }, p = { .tail_at = 99 };

	latency(b, "M4a", "module no-op round trip, back to back, p50", "p99.9 of M4a",
	    "two bare atomics", &a, 2, b->quick ? TRIPS / 10 : TRIPS, trip_round);
	latency(b, "M4b", "the same, one every 5 ms, p50", "p99 of M4b",
	    "two futexes, best placement", &p, 1.3, b->quick ? PACED / 10 : PACED,
	    paced_round);
}

/* ---- M6: so many under way ---- */

void
kn_bench_flow(struct kn_bench *b)
{
	static const struct {
		unsigned depth, n;
		double least;
	} at[] = { { 1, 20000, 0.5 }, { 32, 200000, 0.1 }, { 1024, 400000, 0.05 } };

	static const struct {
		uint32_t workers;
		bool shared;
		const char *name;
	} pool[] = { { 1, false, "1 worker" }, { 2, false, "2 workers, brokered" },
		{ 2, true, "2 workers, shared" } };

	for (size_t p = 0; p < sizeof pool / sizeof *pool; p++) {
		for (size_t k = 0; k < sizeof at / sizeof *at; k++) {
			struct kn_series ours = { 0 }, ring = { 0 };
			unsigned n = b->quick ? at[k].n / 10 : at[k].n;
			uint64_t t0 = kn_clock_now();
			struct kn_err e = { 0 };
			int rc = 0;

			for (unsigned i = 0;
			     rc == 0 && kn_bench_another(b, i, t0, BUDGET_MS / 4);
			     i++) {
				struct kn_bench_calls c = { .name = "nothing",
					.workers = pool[p].workers,
					.shared = pool[p].shared,
					.depth = at[k].depth,
					.warm = WARM,
					.n = n };
				double ms = 0;

				rc = kn_bench_ring(n, at[k].depth, &ms, &e);
				if (rc == 0 && (rc = kn_bench_calls(b, &c, &e)) == 0) {
					kn_series_add(&ours, n / c.ms / 1e3);
					kn_series_add(&ring, n / ms / 1e3);
				}
			}
			struct kn_bench_row *r = kn_bench_row(b, "M6", "M/s",
			    "module no-ops, %u under way, %s", at[k].depth,
			    pool[p].name);
			if (rc < 0)
				kn_bench_note(r, "%s", e.msg);
			kn_bench_compare(
			    r, &ours, &ring, "a ring of 64 bytes an entry");
			if (pool[p].workers == 1)
				kn_bench_at_least(r, at[k].least);
			kn_series_fini(&ours);
			kn_series_fini(&ring);
		}
	}
}

/* ---- M7: bytes ---- */

void
kn_bench_bytes(struct kn_bench *b)
{
	static const struct {
		const char *name;
		size_t bytes;
		unsigned n;
	} at[] = { { "64 KiB", 64 << 10, 2000 }, { "1 MiB", 1 << 20, 200 },
		{ "4 MiB", 4 << 20, 50 } };

	for (size_t k = 0; k < sizeof at / sizeof *at; k++) {
		struct kn_series ours = { 0 }, copies = { 0 };
		unsigned n = b->quick ? at[k].n / 10 : at[k].n;
		uint64_t t0 = kn_clock_now();
		struct kn_err e = { 0 };
		int rc = 0;

		for (unsigned i = 0;
		     rc == 0 && kn_bench_another(b, i, t0, BUDGET_MS / 4); i++) {
			struct kn_bench_calls c = { .name = "echo",
				.workers = 1,
				.depth = 1,
				.bytes = at[k].bytes,
				.warm = 4,
				.n = n };
			double mib = (double)at[k].bytes * n / (1 << 20);
			double ms = kn_bench_copies_ms(at[k].bytes, n);

			if ((rc = kn_bench_calls(b, &c, &e)) == 0 && ms > 0) {
				kn_series_add(&ours, mib / c.ms * 1e3);
				kn_series_add(&copies, mib / ms * 1e3);
			}
		}
		struct kn_bench_row *r =
		    kn_bench_row(b, "M7", "MiB/s", "module echo of %s", at[k].name);
		if (rc < 0)
			kn_bench_note(r, "%s", e.msg);
		kn_bench_compare(r, &ours, &copies, "three copies");
		kn_bench_at_least(r, 0.7);
		kn_series_fini(&ours);
		kn_series_fini(&copies);
	}
}
