/* cmd/bench_scale.c: M15: how a pool gets on with more workers than there are CPUs, and
 * with more than one bank holds (31): no cliff between 1 and 64. No-op calls, shared
 * and brokered, and commands; all sizes take turns in each round.
 */
#include "cmd/bench.h"
#include "cmd/bench_call.h"
#include "ipc/clock.h"

enum { CALLS = 60000, COMMANDS = 300, BUDGET_MS = 60000 };

static const uint32_t sizes[] = { 1, 2, 4, 8, 16, 31, 32, 33, 64 };
enum { SIZE_N = sizeof sizes / sizeof *sizes };

struct scale {
	struct kn_series shared[SIZE_N], brokered[SIZE_N], commands[SIZE_N];
};

static bool
is_asked(const struct kn_bench *b, size_t i)
{
	return !b->quick || sizes[i] == 1 || sizes[i] == 33;
}

static uint32_t
command(void *ctx, int i, const char *argv[4])
{
	(void)ctx;
	(void)i;
	argv[0] = KN_BENCH_TASK;
	return 0;
}

static int
calls(struct kn_bench *b, uint32_t workers, bool shared, struct kn_series *out,
    struct kn_err *e)
{
	const struct kn_bench_calls c = {
		.workers = workers, .shared = shared, .n = CALLS
	};

	return kn_bench_noops(b, c, out, e);
}

static int
commands(struct kn_bench *b, uint32_t workers, struct kn_series *out, struct kn_err *e)
{
	struct kn_bench_pool p = { .policy = b->policy,
		.workers = workers,
		.warm = (int)workers,
		.n = b->quick ? COMMANDS / 10 : COMMANDS,
		.task = command };

	if (kn_bench_pool(b, &p, e) < 0)
		return -1;
	kn_series_add(out, p.n / p.ms * 1e3);
	return 0;
}

static int
one_round(struct kn_bench *b, struct scale *x, struct kn_err *e)
{
	for (size_t i = 0; i < SIZE_N && !kn_bench_ending(b); i++) {
		if (!is_asked(b, i))
			continue;
		if (calls(b, sizes[i], true, &x->shared[i], e) < 0 ||
		    calls(b, sizes[i], false, &x->brokered[i], e) < 0 ||
		    commands(b, sizes[i], &x->commands[i], e) < 0)
			return -1;
	}
	return 0;
}

void
kn_bench_scale(struct kn_bench *b)
{
	static struct scale x;
	uint64_t t0 = kn_clock_now();
	struct kn_err e = { 0 };
	int rc = 0;

	for (unsigned k = 0; rc == 0 && kn_bench_another(b, k, t0, BUDGET_MS); k++)
		rc = one_round(b, &x, &e);
	for (size_t i = 0; i < SIZE_N; i++) {
		struct kn_bench_row *r, *r2;

		if (!is_asked(b, i))
			continue;
		r = kn_bench_row(
		    b, "M15", "call/s", "no-op calls, pool of %u, shared", sizes[i]);
		kn_bench_compare(r, &x.shared[i], &x.brokered[i], "brokered");
		r2 = kn_bench_row(b, "M15", "task/s", "commands, pool of %u", sizes[i]);
		kn_bench_alone(r2, &x.commands[i]);
		if (rc < 0)
			kn_bench_note(r, "%s", e.msg);
	}
	for (size_t i = 0; i < SIZE_N; i++) {
		kn_series_fini(&x.shared[i]);
		kn_series_fini(&x.brokered[i]);
		kn_series_fini(&x.commands[i]);
	}
}
