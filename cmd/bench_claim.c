/* cmd/bench_claim.c: M15: tasks a second through one shared submit bank, claimed by
 * dekker beside cas-mask, by 2 to 31 processes spread over the CPUs there are. No
 * sandboxes and no work in the tasks: what is measured is the claim, with the answers'
 * way back. And the same through whole pools of modules, where the claim is a part.
 */
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cmd/bench.h"
#include "cmd/bench_call.h"
#include "ipc/arena.h"
#include "ipc/claim.h"
#include "ipc/clock.h"
#include "ipc/control.h"
#include "ipc/fd.h"
#include "ipc/lane.h"
#include "ipc/offer.h"

enum { RUN_MS = 120, QUICK_MS = 15, WARM_MS = 10, BUDGET_MS = 6000, TASKS = 1 << 16 };
enum { CALLS = 100000 };

static const uint32_t claimants[] = { 2, 4, 8, 16, 31 };
static const uint32_t pools[] = { 2, 8, 32, 64 };

struct run {
	struct kn_arena arena;
	int ro;
	enum kn_claim_how how;
	uint32_t n, width, next;
	struct kn_offer offer;
	struct kn_slice slice[KN_CLAIMANTS];
	struct kn_return_rx rx[KN_CLAIMANTS];
	pid_t pid[KN_CLAIMANTS];
	uint64_t done;
};

/* ---- a claimant ---- */

static void
spread(uint32_t c)
{
	cpu_set_t may, one;
	int n, nth;

	if (sched_getaffinity(0, sizeof may, &may) < 0 || (n = CPU_COUNT(&may)) < 2)
		return;
	nth = (int)c % n;
	CPU_ZERO(&one);
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
		if (CPU_ISSET(cpu, &may) && nth-- == 0)
			CPU_SET(cpu, &one);
	sched_setaffinity(0, sizeof one, &one);
}

static int
claimant(const struct run *r, uint32_t c)
{
	static struct kn_claimed got[KN_SLOTS];
	struct kn_return_tx tx = { 0 };
	const struct kn_layout *l = &r->arena.layout;
	const uint8_t *id = r->arena.pool_id;
	struct kn_err e = { 0 };
	struct kn_claimant k;
	struct kn_slice sl;
	struct kn_bank b;
	struct kn_map bm, sm;
	int sealed;

	if (kn_arena_map_bank(r->arena.fd, r->ro, l, id, c, r->how == KN_CLAIM_CAS_MASK,
		&bm, &sealed, &e) < 0 ||
	    kn_arena_map_slice(r->arena.fd, l, id, c, &sm, &sealed, &e) < 0)
		return 1;
	kn_bank_at(bm.p, l, 0, &b);
	kn_slice_at(sm.p, l, &sl);
	if (kn_claimant_init(&k, &b, c, r->how, r->width) < 0)
		return 1;
	while (!kn_control_stopping(sl.control)) {
		int n = kn_claim(&k, got, KN_SLOTS);

		if (n <= 0)
			sched_yield();
		for (int i = 0; i < n; i++) {
			got[i].head.payload_len = 0;
			while (!kn_return_publish(&tx, &sl, &got[i].head, NULL) &&
			       !kn_control_stopping(sl.control))
				sched_yield();
		}
	}
	return 0;
}

static int
start(struct run *r, struct kn_err *e)
{
	for (uint32_t c = 0; c < r->n; c++) {
		kn_arena_slice(&r->arena, c, &r->slice[c]);
		kn_offer_join(&r->offer, c);
		r->pid[c] = fork();
		if (r->pid[c] < 0)
			return kn_err_sys(e, KN_EK_HOST, "fork claimant %u", c);
		if (r->pid[c] == 0) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			spread(c);
			_exit(claimant(r, c));
		}
	}
	return 0;
}

static int
end(struct run *r, struct kn_err *e)
{
	int rc = 0;

	for (uint32_t c = 0; c < r->n; c++)
		if (r->pid[c] > 0)
			kn_control_stop(r->slice[c].control);
	for (uint32_t c = 0; c < r->n; c++) {
		int status = 0;

		if (r->pid[c] <= 0)
			continue;
		while (waitpid(r->pid[c], &status, 0) < 0 && errno == EINTR)
			;
		if (status != 0)
			rc = kn_err_set(
			    e, KN_EK_HOST, "claimant %u ended with %#x", c, status);
	}
	kn_fd_close(&r->ro);
	kn_arena_close(&r->arena);
	return rc;
}

/* ---- the supervisor's side ---- */

static bool
offer(struct run *r)
{
	struct kn_slot_head h = {
		.kind = KN_REQ_CALL, .area = KN_AREA_INLINE, .gen = 1
	};
	int slot, n = 0;

	while ((slot = kn_offer_slot(&r->offer)) >= 0) {
		h.task = r->next++ % TASKS;
		kn_offer_put(&r->offer, slot, &h, NULL);
		n++;
	}
	kn_offer_publish(&r->offer);
	return n > 0;
}

static int
drain(struct run *r, uint32_t c, struct kn_err *e)
{
	static uint8_t in[KN_INLINE_MAX];
	struct kn_slot_head h;
	int slot;

	while ((slot = kn_return_peek(&r->rx[c], &r->slice[c], &h, in)) >= 0) {
		if (kn_offer_answer(&r->offer, c, h.task, h.gen) != KN_ANSWER_ACCEPT)
			return kn_err_set(
			    e, KN_EK_BUG, "task %u is answered twice", h.task);
		kn_return_retire(&r->rx[c], &r->slice[c], slot);
		r->done++;
	}
	return 0;
}

static int
run_for(struct run *r, uint64_t ms, struct kn_err *e)
{
	uint64_t end_ns = kn_clock_now() + ms * KN_MS_NS;
	struct kn_taken taken[KN_SLOTS];

	while (kn_clock_now() < end_ns) {
		bool did = offer(r);

		did |= kn_offer_poll(&r->offer, taken) > 0;
		for (uint32_t c = 0; c < r->n; c++)
			if (drain(r, c, e) < 0)
				return -1;
		if (!did)
			sched_yield();
	}
	return 0;
}

static int
open_run(struct run *r, enum kn_claim_how how, uint32_t n, struct kn_err *e)
{
	static const uint8_t pool_id[16] = "bench-claim";
	struct kn_layout l;
	struct kn_bank b;

	memset(r, 0, sizeof *r);
	r->ro = r->arena.fd = -1;
	r->how = how;
	r->n = n;
	r->width = kn_claim_width(n, 0);
	if (kn_layout_of(n, KN_PAGE, KN_PAGE, &l) < 0 || kn_layout_share(&l, n, 0) < 0)
		return kn_err_set(e, KN_EK_BUG, "no layout for %u claimants", n);
	if (kn_arena_open(&r->arena, &l, pool_id, e) < 0 ||
	    kn_arena_readonly(&r->arena, &r->ro, e) < 0)
		return -1;
	kn_arena_bank(&r->arena, 0, &b);
	return kn_offer_init(&r->offer, &b, how, r->width);
}

/* Tasks a second. */
static int
measure(struct kn_bench *b, enum kn_claim_how how, uint32_t n, struct kn_series *out,
    struct kn_err *e)
{
	static struct run r;
	struct kn_err late = { 0 };
	uint64_t t0, ns;
	int rc = open_run(&r, how, n, e);

	if (rc == 0)
		rc = start(&r, e);
	if (rc == 0)
		rc = run_for(&r, WARM_MS, e);
	r.done = 0;
	t0 = kn_clock_now();
	if (rc == 0)
		rc = run_for(&r, b->quick ? QUICK_MS : RUN_MS, e);
	ns = kn_clock_now() - t0;
	if (end(&r, &late) < 0 && rc == 0) {
		*e = late;
		rc = -1;
	}
	if (rc == 0)
		kn_series_add(out, (double)r.done * 1e9 / (double)ns);
	return rc;
}

/* ---- a pool of modules ---- */

/* No-ops a second. */
static int
measure_pool(struct kn_bench *b, enum kn_claim_how how, uint32_t n,
    struct kn_series *out, struct kn_err *e)
{
	const struct kn_bench_calls c = {
		.workers = n, .shared = true, .claim = how, .n = CALLS
	};

	return kn_bench_noops(b, c, out, e);
}

static void
compare(struct kn_bench *b, uint32_t n, struct kn_bench_row *row,
    int (*one)(struct kn_bench *, enum kn_claim_how, uint32_t, struct kn_series *,
	struct kn_err *))
{
	struct kn_series dekker = { 0 }, mask = { 0 };
	uint64_t t0 = kn_clock_now();
	struct kn_err e = { 0 };
	int rc = 0;

	for (unsigned k = 0; rc == 0 && kn_bench_another(b, k, t0, BUDGET_MS); k++) {
		/* by turns: whoever comes second may find a warmer machine */
		rc = k % 2 ? one(b, KN_CLAIM_CAS_MASK, n, &mask, &e)
			   : one(b, KN_CLAIM_DEKKER, n, &dekker, &e);
		if (rc == 0)
			rc = k % 2 ? one(b, KN_CLAIM_DEKKER, n, &dekker, &e)
				   : one(b, KN_CLAIM_CAS_MASK, n, &mask, &e);
	}
	if (rc < 0)
		kn_bench_note(row, "%s", e.msg);
	kn_bench_note(
	    row, "auto is %s", kn_claim_how_name(kn_claim_how_of(KN_CLAIM_AUTO)));
	kn_bench_compare(row, &dekker, &mask, "cas-mask");
	kn_series_fini(&dekker);
	kn_series_fini(&mask);
}

void
kn_bench_claim(struct kn_bench *b)
{
	for (size_t i = 0; i < sizeof claimants / sizeof *claimants; i++) {
		uint32_t n = claimants[i];

		compare(b, n,
		    kn_bench_row(b, "M15", "task/s",
			"claims by dekker, %u claimants, regions of %u", n,
			kn_claim_width(n, 0)),
		    measure);
	}
	for (size_t i = 0; i < sizeof pools / sizeof *pools; i++) {
		if (kn_bench_ending(b))
			return;
		/* does it run? also with several banks */
		if (b->quick && pools[i] != 2 && pools[i] != 32)
			continue;
		compare(b, pools[i],
		    kn_bench_row(b, "M15", "call/s",
			"no-op calls, %u workers that claim by dekker", pools[i]),
		    measure_pool);
	}
}
