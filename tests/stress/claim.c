/* tests/stress/claim.c: a shared bank under threads, on one mapping: a supervisor that
 * offers, takes back, polls and answers, and claimants that claim, run and answer, as
 * fast as they can. Now and then one of them dies in the middle of anything (its thread
 * ends between two steps of a claim), is buried and replaced at the same id. Each task
 * is answered once, or known to have been started by one that died.
 *
 *   claim [-d dekker|cas-mask] [-n TASKS] [-c CLAIMANTS] [-w WIDTH] [-s SEED]
 * default: both, 150000 tasks over 2, 5 and 31 claimants in turn; the seed is printed
 *
 * Threads on ONE mapping, because a thread sanitizer does not see that two mappings of
 * one memfd are the same memory. Build with SAN=tsan for races, without for speed.
 */
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "ipc/arena.h"
#include "ipc/control.h"
#include "ipc/err.h"
#include "ipc/lane.h"
#include "ipc/offer.h"
#include "tests/stress/stress.h"

static void maybe_die(void);
#define KN_CLAIM_STEP(name) maybe_die()
#include "ipc/claim.c"

enum { AREA_BYTES = 1 << 17, BIG_MAX = 4000, RETURN_BYTES = 4096 };

struct claimant {
	struct shared *sh;
	uint32_t id, seed;
	pthread_t thread;
	bool running;
	struct kn_slice slice; /* its private one: begun word, return lane */
	struct kn_return_tx tx;
	struct kn_return_rx rx; /* the supervisor's */
	uint32_t fuse;		/* steps to go before it dies, 0: it does not */
	uint32_t dead;		/* by atomic: the thread has ended by itself */
};

struct shared {
	struct kn_arena arena;
	struct kn_bank bank;
	struct kn_offer offer;
	enum kn_claim_how how;
	uint32_t n, width, task_n, seed;
	struct claimant who[KN_CLAIMANTS];
	uint8_t *ran; /* each written by who claimed it, read when all have ended */
};

/* What the supervisor knows. */
struct sup {
	struct shared *sh;
	uint32_t seed, next, settled, again_n;
	uint32_t *again, *gen;
	uint8_t *answered, *lost;
	uint64_t back, deaths, requeued, areas;
};

/* ---- claimants ---- */

static __thread struct claimant *me;

/* A SIGKILL for threads: nothing is cleared up, nothing more is stored. */
static void
maybe_die(void)
{
	if (!me || !me->fuse || --me->fuse)
		return;
	kn_shm_store32_release(&me->dead, 1);
	pthread_exit(NULL);
}

static void
run_one(struct claimant *w, struct kn_claimant *k, const struct kn_claimed *c)
{
	struct kn_slot_head h = {
		.task = c->head.task, .gen = c->head.gen, .area = KN_AREA_INLINE
	};

	if (h.task >= w->sh->task_n)
		die("claimed a header that nobody wrote", h.task);
	kn_control_begin(w->slice.control, h.task, h.gen, 1);
	maybe_die();
	if (w->sh->ran[h.task]++)
		die("run twice", h.task);
	if (!is_filled(c->head.area == KN_AREA_INLINE
			   ? c->inline_bytes
			   : w->sh->bank.area + c->head.payload_off,
		c->head.payload_len, h.task, h.gen))
		die("bytes of another task", h.task);
	if (c->head.area != KN_AREA_INLINE && h.task % 2)
		kn_claim_free(k, c->head.area);
	maybe_die();
	while (!kn_return_publish(&w->tx, &w->slice, &h, NULL)) {
		maybe_die();
		sched_yield();
	}
	maybe_die();
	kn_control_end(w->slice.control);
}

static void *
work(void *arg)
{
	struct claimant *w = arg;
	struct kn_claimed *got = calloc(KN_SLOTS, sizeof *got);
	struct kn_claimant k;

	if (!got ||
	    kn_claimant_init(&k, &w->sh->bank, w->id, w->sh->how, w->sh->width) < 0)
		die("a claimant was refused", w->id);
	pthread_cleanup_push(free, got);
	me = w;
	while (!kn_control_stopping(w->slice.control)) {
		int n = kn_claim(&k, got, w->id % 3 == 1 ? 1 : KN_SLOTS);

		for (int i = 0; i < n; i++)
			run_one(w, &k, &got[i]);
		if (n <= 0)
			sched_yield();
	}
	pthread_cleanup_pop(1);
	return NULL;
}

static void
start(struct sup *s, uint32_t c, uint32_t fuse)
{
	struct claimant *w = &s->sh->who[c];
	struct kn_err e = { 0 };

	if (kn_arena_reset_slice(&s->sh->arena, c, &e) < 0)
		die(e.msg, c);
	memset(&w->tx, 0, sizeof w->tx);
	memset(&w->rx, 0, sizeof w->rx);
	w->dead = 0;
	w->fuse = fuse;
	kn_offer_join(&s->sh->offer, c);
	if (pthread_create(&w->thread, NULL, work, w) != 0)
		die("no thread", c);
	w->running = true;
}

/* ---- supervisor ---- */

static bool
offer_one(struct sup *s)
{
	struct shared *sh = s->sh;
	uint32_t r = rnd(&s->seed), n = r % (KN_INLINE_MAX + 1);
	struct kn_slot_head h = { .kind = KN_REQ_CALL, .area = KN_AREA_INLINE };
	int slot = kn_offer_slot(&sh->offer);
	uint8_t in[KN_INLINE_MAX];

	if (slot < 0 || (!s->again_n && s->next == sh->task_n))
		return false;
	h.task = s->again_n ? s->again[s->again_n - 1] : s->next;
	h.gen = s->gen[h.task] + 1;
	if (r >> 29 == 0) {
		uint64_t off;
		int area;

		n = KN_INLINE_MAX + 1 + (r >> 8) % (BIG_MAX - KN_INLINE_MAX);
		area = kn_offer_area(&sh->offer, n, &off);
		if (area < 0)
			return false;
		fill(sh->bank.area + off, n, h.task, h.gen);
		h.area = (uint32_t)area;
		h.payload_off = (uint32_t)off;
		s->areas++;
	} else {
		fill(in, n, h.task, h.gen);
	}
	h.payload_len = n;
	s->gen[h.task] = h.gen;
	if (s->again_n)
		s->again_n--;
	else
		s->next++;
	kn_offer_put(&sh->offer, slot, &h, in);
	return true;
}

static void
take_one_back(struct sup *s)
{
	struct kn_offer *o = &s->sh->offer;
	int slot;

	if (!o->offered)
		return;
	slot = __builtin_ctz(o->offered);
	if (kn_offer_take_back(o, slot) != KN_BACK_OURS)
		return;
	s->again[s->again_n++] = o->now[slot].task;
	s->back++;
}

static void
drain(struct sup *s, struct claimant *w)
{
	struct kn_slot_head h;
	uint8_t in[KN_INLINE_MAX];
	int slot;

	while ((slot = kn_return_peek(&w->rx, &w->slice, &h, in)) >= 0) {
		enum kn_answer got =
		    kn_offer_answer(&s->sh->offer, w->id, h.task, h.gen);

		if (got != KN_ANSWER_ACCEPT)
			die(got == KN_ANSWER_DROP ? "an answer that another owes"
						  : "an answer that is not owed",
			    h.task);
		if (s->answered[h.task]++)
			die("answered twice", h.task);
		s->settled++;
		kn_return_retire(&w->rx, &w->slice, slot);
	}
}

static void
bury(struct sup *s, struct claimant *w)
{
	struct kn_held left[KN_HELD_MAX];
	uint32_t task = 0, gen = 0;
	uint64_t ns;
	bool begun;
	int n;

	pthread_join(w->thread, NULL);
	drain(s, w);
	begun = kn_control_begun(w->slice.control, &task, &gen, &ns);
	n = kn_offer_bury(&s->sh->offer, w->id, left);
	for (int i = 0; i < n; i++) {
		if (begun && left[i].task == task && left[i].gen == gen) {
			s->lost[task] = 1;
			s->settled++;
		} else {
			s->again[s->again_n++] = left[i].task;
			s->requeued++;
		}
	}
	s->deaths++;
	start(s, w->id, 1 + rnd(&s->seed) % 4000);
}

static void
supervise(struct sup *s)
{
	struct shared *sh = s->sh;

	while (s->settled < sh->task_n) {
		struct kn_taken taken[KN_SLOTS];
		bool did = false;

		for (int i = 0; i < 16 && offer_one(s); i++)
			did = true;
		kn_offer_publish(&sh->offer);
		if (rnd(&s->seed) % 16 == 0)
			take_one_back(s);
		did |= kn_offer_poll(&sh->offer, taken) > 0;
		for (uint32_t c = 0; c < sh->n; c++) {
			drain(s, &sh->who[c]);
			if (kn_shm_load32_acquire(&sh->who[c].dead))
				bury(s, &sh->who[c]);
		}
		if (sh->offer.liars)
			die(kn_lie_name(sh->offer.lie[__builtin_ctz(sh->offer.liars)]),
			    sh->offer.liars);
		if (!did)
			sched_yield();
	}
}

static void
open_all(struct sup *s)
{
	static const uint8_t pool_id[16] = "stress-claim";
	struct shared *sh = s->sh;
	struct kn_err e = { 0 };
	struct kn_layout l;

	if (kn_layout_of(sh->n, 4096, RETURN_BYTES, &l) < 0 ||
	    kn_layout_share(&l, sh->n, AREA_BYTES) < 0 ||
	    kn_arena_open(&sh->arena, &l, pool_id, &e) < 0)
		die(e.msg, 0);
	kn_arena_bank(&sh->arena, 0, &sh->bank);
	if (kn_offer_init(&sh->offer, &sh->bank, sh->how, sh->width) < 0)
		die("too few regions", sh->width);
	/* Near the wraps of the counts. */
	sh->offer.published = sh->bank.head->published = 0xffffff00ull << 32;
	sh->bank.owners->mask = 0xffffff00ull << 32;
	sh->ran = calloc(sh->task_n, 1);
	s->answered = calloc(sh->task_n, 1);
	s->lost = calloc(sh->task_n, 1);
	s->gen = calloc(sh->task_n, sizeof *s->gen);
	s->again = calloc(sh->task_n, sizeof *s->again);
	if (!sh->ran || !s->answered || !s->lost || !s->gen || !s->again)
		die("no memory", 0);
	for (uint32_t c = 0; c < sh->n; c++) {
		sh->who[c] = (struct claimant){ .sh = sh, .id = c };
		kn_arena_slice(&sh->arena, c, &sh->who[c].slice);
		start(s, c, 1 + rnd(&s->seed) % 2000);
	}
}

static void
check(const struct sup *s)
{
	for (uint32_t i = 0; i < s->sh->task_n; i++) {
		if (s->answered[i] + s->lost[i] != 1)
			die("neither answered nor lost, or both", i);
		if (s->answered[i] && s->sh->ran[i] != 1)
			die("answered, and not run once", i);
	}
}

static void
round_of(
    enum kn_claim_how how, uint32_t n, uint32_t width, uint32_t tasks, uint32_t seed)
{
	static struct shared sh;
	struct sup s = { .sh = &sh, .seed = seed };

	memset(&sh, 0, sizeof sh);
	sh.how = how;
	sh.n = n;
	sh.width = width ? width : kn_claim_width(n, 0);
	sh.task_n = tasks;
	open_all(&s);
	supervise(&s);
	for (uint32_t c = 0; c < n; c++)
		kn_control_stop(sh.who[c].slice.control);
	for (uint32_t c = 0; c < n; c++)
		pthread_join(sh.who[c].thread, NULL);
	check(&s);
	printf("claim: %s, %u claimants, width %u: %u tasks, %llu deaths, %llu queued "
	       "again, %llu taken back, %llu in areas\n",
	    kn_claim_how_name(how), n, sh.width, tasks, (unsigned long long)s.deaths,
	    (unsigned long long)s.requeued, (unsigned long long)s.back,
	    (unsigned long long)s.areas);
	fflush(stdout);
	if (s.deaths == 0 || s.areas == 0)
		die("nobody died", 0);
	kn_arena_close(&sh.arena);
	free(sh.ran);
	free(s.answered);
	free(s.lost);
	free(s.gen);
	free(s.again);
}

int
main(int argc, char **argv)
{
	uint32_t tasks = 150000, n = 0, width = 0, seed = (uint32_t)time(NULL);
	static const uint32_t ns[] = { 2, 5, 31 };
	int opt, only = KN_CLAIM_AUTO;

	while ((opt = getopt(argc, argv, "d:n:c:w:s:")) != -1) {
		uint32_t v = optarg ? (uint32_t)strtoul(optarg, NULL, 10) : 0;

		if (opt == 'd' && (only = kn_claim_how_parse(optarg)) > KN_CLAIM_AUTO)
			continue;
		if (v == 0 || opt == '?' || opt == 'd') {
			fprintf(stderr, "usage: claim [-d dekker|cas-mask] [-n TASKS] "
					"[-c CLAIMANTS] [-w WIDTH] [-s SEED]\n");
			return 2;
		}
		*(opt == 'n'	 ? &tasks
		    : opt == 'c' ? &n
		    : opt == 'w' ? &width
				 : &seed) = v;
	}
	fill_open();
	printf("claim: seed %u\n", seed);
	for (int how = KN_CLAIM_DEKKER; how <= KN_CLAIM_CAS_MASK; how++) {
		if (only != KN_CLAIM_AUTO && how != only)
			continue;
		for (int i = 0; !n && i < 3; i++)
			round_of(
			    (enum kn_claim_how)how, ns[i], width, tasks / ns[i], seed);
		if (n)
			round_of((enum kn_claim_how)how, n, width, tasks, seed);
	}
	return 0;
}
