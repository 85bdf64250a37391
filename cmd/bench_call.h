/* cmd/bench_call.h: calls of a module in this process, and what they stand beside. */
#ifndef KN_CMD_BENCH_CALL_H
#define KN_CMD_BENCH_CALL_H

#include "cmd/bench.h"

struct kn_bench_calls {
	const char *name;
	uint32_t workers, depth;
	size_t bytes;			       /* of the argument */
	int64_t (*arg)(void *ctx, unsigned i); /* or an i64 a call, NULL: none */
	void *ctx;
	unsigned warm, n;
	unsigned pace_ms; /* one call each, 0: the next when one is answered */
	bool no_steal, shared;
	int claim;	      /* where shared: enum kn_claim_how */
	struct kn_series *us; /* of each call, NULL: not wanted */
	double ms;	      /* out: of all n */
};
int kn_bench_calls(struct kn_bench *b, struct kn_bench_calls *c, struct kn_err *e);
/* So many calls of nothing a second, into out: c says in which pool and how many. */
int kn_bench_noops(struct kn_bench *b, struct kn_bench_calls c, struct kn_series *out,
    struct kn_err *e);

/* Two processes and nothing else. us: of each round trip. */
int kn_bench_pingpong(unsigned n, struct kn_series *us, struct kn_err *e);
/* The same, both asleep in a futex between them; on one CPU or on two. */
int kn_bench_futex(
    unsigned n, unsigned pace_ms, bool one_cpu, struct kn_series *us, struct kn_err *e);
/* A ring of 64-byte entries there and one back, so many under way, in batches of up to
 * 32. */
int kn_bench_ring(unsigned n, unsigned depth, double *out_ms, struct kn_err *e);
/* Three copies of so many bytes. */
double kn_bench_copies_ms(size_t bytes, unsigned n);

#endif
