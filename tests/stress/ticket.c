/* tests/stress/ticket.c: what a claim by tickets would cost beside dekker and cas-mask.
 *
 * Tickets: the supervisor writes down the order in which it published, in a ring, and
 * counts on; a claimant takes the next k of that order by one compare-exchange of a
 * head that all of them write, and looks at nobody else's words. What it would need
 * besides, to survive deaths, is counted in: a word of its own that says which tickets
 * it is after, stored before the exchange. The supervisor is that of the other two: it
 * learns from acks who took what. Each task is run once, which is checked.
 *
 *   ticket [-m MS] [-r ROUNDS]     short by default: does it run, and is nothing lost?
 *
 * Two figures for each number of claimants, medians of the rounds, which take turns:
 * nanoseconds a task of a single claim while nobody else claims, and tasks a second
 * when all do. Figures mean something on a quiet machine and without sanitizers only.
 */
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ipc/arena.h"
#include "ipc/clock.h"
#include "ipc/control.h"
#include "ipc/err.h"
#include "ipc/lane.h"
#include "ipc/offer.h"
#include "tests/stress/stress.h"

#include "ipc/claim.c"

enum {
	TASKS = 1 << 16,
	TASKS_MIN = 200,
	RETURN_BYTES = 4096,
	ALONE_ROUNDS = 20, /* for each millisecond of the other figure */
	ROUNDS_MAX = 99
};

/* What tickets need; each word on a line of its own. */
struct order {
	_Alignas(KN_LINE) uint64_t head; /* all claimants, by exchange */
	_Alignas(KN_LINE) uint32_t tail; /* supervisor */
	_Alignas(KN_LINE) uint32_t slot[KN_SLOTS];
	struct {
		_Alignas(KN_LINE) uint64_t after;
	} own[KN_CLAIMANTS];
};

enum way { DEKKER, CAS_MASK, TICKET, WAY_N };
static const char *const way_name[] = { "dekker", "cas-mask", "ticket" };

struct claimant {
	struct shared *sh;
	uint32_t id;
	pthread_t thread;
	struct kn_slice slice;
	struct kn_return_tx tx;
	struct kn_return_rx rx;
	struct kn_claimant k;
};

struct shared {
	struct kn_arena arena;
	struct kn_bank bank;
	struct kn_offer offer;
	struct order *order;
	enum way way;
	uint32_t n, width, next, tail, put_n, put[KN_SLOTS];
	uint64_t done;
	struct claimant who[KN_CLAIMANTS];
	uint8_t out[TASKS]; /* the supervisor's: offered and not answered */
};

/* ---- a claim ---- */

static int
by_ticket(struct kn_claimant *k, struct order *o, struct kn_claimed *out, uint32_t most)
{
	uint64_t head = kn_shm_load64_acquire(&o->head), seq;
	uint32_t n = kn_shm_load32_acquire(&o->tail) - (uint32_t)head;
	struct kn_own *own = kn_bank_own(&k->bank, k->id);
	uint32_t slot[KN_SLOTS];

	if (n == 0)
		return 0;
	if (n > KN_SLOTS)
		return KN_CLAIM_BUSY; /* head has moved on meanwhile */
	n = n < most ? n : most;
	/* Before the exchange: afterwards a cell may be written anew. */
	for (uint32_t i = 0; i < n; i++)
		slot[i] =
		    kn_shm_load32_acquire(&o->slot[(uint32_t)(head + i) % KN_SLOTS]);
	kn_shm_store64_release(&o->own[k->id].after, head << 6 | n);
	if (!kn_shm_cas64_acqrel(&o->head, &head, head + n))
		return KN_CLAIM_BUSY;
	for (uint32_t i = 0; i < n; i++) {
		uint32_t s = slot[i];

		seq = kn_shm_load64_acquire(&k->bank.slots[s].head.seq);
		if (!copy_out(k, (int)s, seq, &out[i]))
			die("a ticket's slot is not what it was", s);
		k->mine[s] = seq;
		kn_shm_store64_release(&own->taken[s], seq);
		k->ack ^= 1u << s;
	}
	kn_shm_store64_release(&own->word, kn_word(0, k->ack));
	kn_shm_store64_release(&o->own[k->id].after, 0);
	return (int)n;
}

static int
claim(struct claimant *w, struct kn_claimed *out)
{
	struct shared *sh = w->sh;

	return sh->way == TICKET ? by_ticket(&w->k, sh->order, out, sh->width)
				 : kn_claim(&w->k, out, (int)sh->width);
}

static void
answer(struct claimant *w, const struct kn_claimed *c)
{
	struct kn_slot_head h = {
		.task = c->head.task, .gen = c->head.gen, .area = KN_AREA_INLINE
	};

	while (!kn_return_publish(&w->tx, &w->slice, &h, NULL) &&
	       !kn_control_stopping(w->slice.control))
		sched_yield();
}

static void *
work(void *arg)
{
	struct claimant *w = arg;
	struct kn_claimed *got = calloc(KN_SLOTS, sizeof *got);

	if (!got)
		die("no memory", w->id);
	while (!kn_control_stopping(w->slice.control)) {
		int n = claim(w, got);

		for (int i = 0; i < n; i++)
			answer(w, &got[i]);
		if (n <= 0)
			sched_yield();
	}
	free(got);
	return NULL;
}

/* ---- the supervisor ---- */

static bool
offer_all(struct shared *sh)
{
	struct kn_slot_head h = {
		.kind = KN_REQ_CALL, .area = KN_AREA_INLINE, .gen = 1
	};
	struct order *o = sh->order;
	bool did = false;
	int slot;

	while ((slot = kn_offer_slot(&sh->offer)) >= 0) {
		h.task = sh->next++ % TASKS;
		if (sh->out[h.task]++)
			die("lost", h.task);
		kn_offer_put(&sh->offer, slot, &h, NULL);
		kn_shm_store32_release(&o->slot[sh->tail++ % KN_SLOTS], (uint32_t)slot);
		did = true;
	}
	kn_offer_publish(&sh->offer);
	kn_shm_store32_release(&o->tail, sh->tail);
	return did;
}

static int
drain(struct shared *sh, struct claimant *w)
{
	struct kn_slot_head h;
	uint8_t in[KN_INLINE_MAX];
	int slot, n = 0;

	for (; (slot = kn_return_peek(&w->rx, &w->slice, &h, in)) >= 0; n++) {
		if (kn_offer_answer(&sh->offer, w->id, h.task, h.gen) !=
		    KN_ANSWER_ACCEPT)
			die("answered twice, or by another", h.task);
		if (h.task >= TASKS || !sh->out[h.task])
			die("answered, and not offered", h.task);
		sh->out[h.task] = 0;
		kn_return_retire(&w->rx, &w->slice, slot);
	}
	sh->done += (uint64_t)n;
	return n;
}

static void
open_all(struct shared *sh, enum way way, uint32_t n)
{
	static const uint8_t pool_id[16] = "stress-ticket";
	enum kn_claim_how how = way == CAS_MASK ? KN_CLAIM_CAS_MASK : KN_CLAIM_DEKKER;
	struct kn_err e = { 0 };
	struct kn_layout l;

	memset(sh, 0, sizeof *sh);
	sh->way = way;
	sh->n = n;
	sh->width = kn_claim_width(n, 0);
	if (kn_layout_of(n, 4096, RETURN_BYTES, &l) < 0 ||
	    kn_layout_share(&l, n, 0) < 0 ||
	    kn_arena_open(&sh->arena, &l, pool_id, &e) < 0)
		die(e.msg, n);
	kn_arena_bank(&sh->arena, 0, &sh->bank);
	sh->order = aligned_alloc(KN_LINE, sizeof *sh->order);
	if (!sh->order || kn_offer_init(&sh->offer, &sh->bank, how, sh->width) < 0)
		die("no bank", n);
	memset(sh->order, 0, sizeof *sh->order);
	sh->order->head = 0xffffff00u; /* near the wrap of tail */
	sh->order->tail = sh->tail = 0xffffff00u;
	for (uint32_t c = 0; c < n; c++) {
		struct claimant *w = &sh->who[c];

		w->sh = sh;
		w->id = c;
		kn_arena_slice(&sh->arena, c, &w->slice);
		kn_offer_join(&sh->offer, c);
		if (kn_claimant_init(&w->k, &sh->bank, c, how, sh->width) < 0)
			die("a claimant was refused", c);
	}
}

static void
close_all(struct shared *sh)
{
	kn_arena_close(&sh->arena);
	free(sh->order);
}

/* ---- figures ---- */

/* Nanoseconds a task, of the claim alone: one in the middle claims all. */
static double
alone(struct shared *sh, unsigned ms)
{
	struct claimant *w = &sh->who[sh->n / 2];
	struct kn_claimed *got = calloc(KN_SLOTS, sizeof *got);
	struct kn_taken taken[KN_SLOTS];
	uint64_t ns = 0, all = 0;

	if (!got)
		die("no memory", 0);
	for (unsigned i = 0; i < ALONE_ROUNDS * ms; i++) {
		uint32_t left = KN_SLOTS;

		(void)offer_all(sh);
		while (left > 0) {
			uint64_t t0 = kn_clock_now();
			int at = 0, n;

			/* As many as fit what they are answered in. */
			while (at < KN_SLOTS / 2 && (n = claim(w, got + at)) > 0)
				at += n;
			ns += kn_clock_now() - t0;
			if (at == 0)
				die("nobody else claims, and there is nothing", left);
			for (int k = 0; k < at; k++)
				answer(w, &got[k]);
			left -= (uint32_t)at;
			all += (uint64_t)at;
			(void)kn_offer_poll(&sh->offer, taken);
			(void)drain(sh, w);
		}
	}
	free(got);
	return (double)ns / (double)all;
}

/* Tasks a second, all at it. */
static double
together(struct shared *sh, uint64_t ms)
{
	struct kn_taken taken[KN_SLOTS];
	uint64_t t0, end_ns;

	for (uint32_t c = 0; c < sh->n; c++)
		if (pthread_create(&sh->who[c].thread, NULL, work, &sh->who[c]) != 0)
			die("no thread", c);
	t0 = kn_clock_now();
	end_ns = t0 + ms * KN_MS_NS;
	while (kn_clock_now() < end_ns || sh->done < TASKS_MIN) {
		bool did = offer_all(sh);

		did |= kn_offer_poll(&sh->offer, taken) > 0;
		for (uint32_t c = 0; c < sh->n; c++)
			(void)drain(sh, &sh->who[c]);
		if (sh->offer.liars)
			die("an honest claimant was called a liar", sh->offer.liars);
		if (!did)
			sched_yield();
	}
	t0 = kn_clock_now() - t0;
	for (uint32_t c = 0; c < sh->n; c++)
		kn_control_stop(sh->who[c].slice.control);
	for (uint32_t c = 0; c < sh->n; c++)
		pthread_join(sh->who[c].thread, NULL);
	return (double)sh->done * 1e9 / (double)t0;
}

static int
by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double
median(double *v, unsigned n)
{
	qsort(v, n, sizeof *v, by_size);
	return n % 2 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
}

int
main(int argc, char **argv)
{
	static const uint32_t ns[] = { 2, 4, 8, 16, 31 };
	static struct shared sh;
	unsigned ms = 2, rounds = 1;
	int opt;

	while ((opt = getopt(argc, argv, "m:r:")) != -1) {
		unsigned v = optarg ? (unsigned)strtoul(optarg, NULL, 10) : 0;

		if (v == 0 || opt == '?' || (opt == 'r' && v > ROUNDS_MAX)) {
			fprintf(stderr, "usage: ticket [-m MS] [-r ROUNDS]\n");
			return 2;
		}
		*(opt == 'm' ? &ms : &rounds) = v;
	}
	for (size_t i = 0; i < sizeof ns / sizeof *ns; i++) {
		double one[WAY_N][ROUNDS_MAX], all[WAY_N][ROUNDS_MAX];

		for (unsigned r = 0; r < rounds; r++) {
			for (unsigned w = 0; w < WAY_N; w++) {
				enum way way = (enum way)((w + r) % WAY_N);

				open_all(&sh, way, ns[i]);
				one[way][r] = alone(&sh, ms);
				close_all(&sh);
				open_all(&sh, way, ns[i]);
				all[way][r] = together(&sh, ms);
				close_all(&sh);
			}
		}
		printf("ticket: %2u claimants, %2u at a time:", ns[i],
		    kn_claim_width(ns[i], 0));
		for (int w = 0; w < WAY_N; w++)
			printf(" %s %.0f ns, %.2f M/s%s", way_name[w],
			    median(one[w], rounds), median(all[w], rounds) / 1e6,
			    w + 1 < WAY_N ? ";" : "\n");
		fflush(stdout);
	}
	return 0;
}
