/* tests/unit/claim_steps.h: claimants that run one step at a time, in this process:
 * each is a coroutine that stops between any two of its accesses to shared words, so
 * that a test can interleave, stop or kill it there. The code is ipc/claim.c itself.
 */
#ifndef KN_TESTS_CLAIM_STEPS_H
#define KN_TESTS_CLAIM_STEPS_H

#include "tests/unit/ipc_test.h"

#include <ucontext.h>

#include "ipc/offer.h"

static void at_step(const char *name);
#define KN_CLAIM_STEP(name) at_step(name)
#include "ipc/claim.c"

enum {
	TASKS_MAX = 4096,
	BATCH = KN_SLOTS,
	STACK = 128 * 1024,
	AREA_BYTES = 64 * 1024,
	BIG = 700, /* does not fit a slot */
};

enum health { GONE, WELL, STOPPED };

struct answer {
	uint32_t task, gen;
};

/* A claimant and what is in its slice. */
struct who {
	struct kn_claimant k;
	struct kn_claimed got[BATCH];
	enum health health;
	int max;
	bool lies;			     /* runs lie() in place of work() */
	uint64_t begun;			     /* task << 32 | gen */
	struct answer answers[2 * KN_SLOTS]; /* its return lane */
	int answer_n;
	const char *at; /* step */
	uint64_t steps, idle;
	ucontext_t ctx;
	char *stack;
};

struct task {
	uint32_t gen, runs, settled;
	bool queued, lost;
	int area;
};

static struct {
	struct kn_arena arena;
	struct kn_bank bank;
	struct kn_offer o;
	uint32_t n, width;
	enum kn_claim_how how;
	struct who who[KN_CLAIMANTS];
	struct who *now; /* whose step it is */
	ucontext_t sup;
	struct task task[TASKS_MAX];
	uint32_t task_n, next;
	uint32_t again[TASKS_MAX]; /* to be offered once more */
	uint32_t again_n;
	uint32_t settled, lost, dropped;
	uint32_t seed;
	bool liars; /* more than one run of a task is no mistake */
} W;

static uint32_t
rnd(void)
{
	W.seed ^= W.seed << 13;
	W.seed ^= W.seed >> 17;
	W.seed ^= W.seed << 5;
	return W.seed;
}

/* ---- claimants ---- */

static void
at_step(const char *name)
{
	struct who *w = W.now;

	if (!w)
		return;
	w->at = name;
	w->steps++;
	W.now = NULL;
	swapcontext(&w->ctx, &W.sup);
}

static uint32_t
bytes_of(uint32_t task)
{
	return task % 9 == 4 ? BIG : task % 11 == 3 ? 0 : task * 7 % KN_INLINE_MAX + 1;
}

static void
fill(uint8_t *p, uint32_t task, uint32_t gen)
{
	for (uint32_t i = 0; i < bytes_of(task); i++)
		p[i] = (uint8_t)(task * 31 + gen * 17 + i);
}

static bool
is_filled(const uint8_t *p, uint32_t n, uint32_t task, uint32_t gen)
{
	if (n != bytes_of(task))
		return false;
	for (uint32_t i = 0; i < n; i++)
		if (p[i] != (uint8_t)(task * 31 + gen * 17 + i))
			return false;
	return true;
}

static void
run_one(struct who *w, const struct kn_claimed *c)
{
	const struct kn_slot_head *h = &c->head;
	struct task *t;

	assert_true(h->task < W.task_n);
	t = &W.task[h->task];
	w->begun = (uint64_t)h->task << 32 | h->gen;
	at_step("begun");
	t->runs++;
	if (!W.liars) {
		assert_int_equal(t->runs, 1);
		assert_int_equal(t->gen, h->gen);
	}
	/* An area may have been freed by a liar who took the task as well. */
	if (h->area == KN_AREA_INLINE)
		assert_true(
		    is_filled(c->inline_bytes, h->payload_len, h->task, h->gen));
	else if (!W.liars)
		assert_true(is_filled(
		    W.bank.area + h->payload_off, h->payload_len, h->task, h->gen));
	at_step("ran");
	if (h->area != KN_AREA_INLINE && h->task % 2)
		kn_claim_free(&w->k, h->area);
	at_step("freed");
	w->answers[w->answer_n++] = (struct answer){ h->task, h->gen };
	at_step("answered");
	w->begun = 0;
}

static void
work(struct who *w)
{
	for (;;) {
		int n = kn_claim(&w->k, w->got, w->max);

		if (n <= 0)
			w->idle++;
		at_step("claimed");
		/* As it is in a return lane: full is full. */
		while (w->answer_n > KN_SLOTS)
			at_step("lane full");
		for (int i = 0; i < n; i++)
			run_one(w, &w->got[i]);
	}
}

/* Random words at all places of its page; sometimes such as could be right. */
static void
lie(struct who *w)
{
	struct kn_own *own = kn_bank_own(&W.bank, w->k.id);

	for (;;) {
		uint32_t s = rnd() % KN_SLOTS, r = rnd() % 8;
		uint64_t word = kn_shm_load64_acquire(&own->word);
		uint64_t seq = kn_shm_load64_acquire(&W.bank.slots[s].head.seq);

		if (r == 0)
			kn_shm_store64_release(
			    &own->word, (uint64_t)rnd() << 32 | rnd());
		else if (r == 1)
			kn_shm_store64_release(&own->taken[s], rnd() % 2 ? seq : rnd());
		else if (r == 2)
			kn_shm_store32_release(&own->freed, rnd());
		else if (r == 3 && w->answer_n < KN_SLOTS)
			w->answers[w->answer_n++] =
			    (struct answer){ rnd() % W.task_n, rnd() % 3 };
		else if (r == 4)
			kn_shm_store64_release(&own->word,
			    kn_word(1u << rnd() % KN_SLOTS, kn_word_ack(word)));
		else { /* a well-made ack of what it did not claim */
			kn_shm_store64_release(&own->taken[s], seq);
			kn_shm_store64_release(&own->word, word ^ 1u << s);
		}
		at_step("lied");
	}
}

static void
body(unsigned c)
{
	struct who *w = &W.who[c];

	if (w->lies)
		lie(w);
	else
		work(w);
}

/* A process is there for id c. */
__attribute__((unused)) static void
spawn(uint32_t c)
{
	struct who *w = &W.who[c];
	char *stack = w->stack ? w->stack : malloc(STACK);
	int max = w->max;

	assert_non_null(stack);
	memset(w, 0, sizeof *w);
	w->max = max ? max : BATCH;
	w->stack = stack;
	kn_offer_join(&W.o, c);
	assert_int_equal(kn_claimant_init(&w->k, &W.bank, c, W.how, W.width), 0);
	assert_int_equal(getcontext(&w->ctx), 0);
	w->ctx.uc_stack.ss_sp = stack;
	w->ctx.uc_stack.ss_size = STACK;
	makecontext(&w->ctx, (void (*)(void))body, 1, c);
	w->health = WELL;
}

/* Let c make one step. */
static void
step(uint32_t c)
{
	W.now = &W.who[c];
	swapcontext(&W.sup, &W.who[c].ctx);
}

/* ---- the supervisor ---- */

static void
offer_task(uint32_t task)
{
	struct task *t = &W.task[task];
	struct kn_slot_head h = { .kind = KN_REQ_CALL,
		.task = task,
		.gen = ++t->gen,
		.area = KN_AREA_INLINE,
		.payload_len = bytes_of(task) };
	uint8_t in[BIG];

	if (h.payload_len > KN_INLINE_MAX) {
		uint64_t off;
		int area = kn_offer_area(&W.o, h.payload_len, &off);

		assert_true(area >= 0);
		h.area = (uint32_t)area;
		h.payload_off = (uint32_t)off;
		fill(W.bank.area + off, task, h.gen);
	} else {
		fill(in, task, h.gen);
	}
	kn_offer_put(&W.o, kn_offer_slot(&W.o), &h, in);
}

/* As many as there is room for, at most max, in one publication. */
static void
offer(uint32_t max)
{
	while (max-- && (W.again_n || W.next < W.task_n) && kn_offer_slot(&W.o) >= 0 &&
	       __builtin_popcount(W.o.pay.live & ~(W.o.pay_freed ^ W.o.pay.freed)) <
		   KN_AREAS)
		offer_task(W.again_n ? W.again[--W.again_n] : W.next++);
	kn_offer_publish(&W.o);
}

static int
poll_all(void)
{
	struct kn_taken taken[KN_SLOTS];

	return kn_offer_poll(&W.o, taken);
}

static void
settle(uint32_t task, bool lost)
{
	assert_int_equal(W.task[task].settled, 0);
	W.task[task].settled = 1;
	W.task[task].lost = lost;
	W.settled++;
	W.lost += lost;
}

static void
drain(uint32_t c)
{
	struct who *w = &W.who[c];

	for (int i = 0; i < w->answer_n; i++) {
		struct answer *a = &w->answers[i];
		enum kn_answer got = kn_offer_answer(&W.o, c, a->task, a->gen);

		if (!W.liars)
			assert_int_equal(got, KN_ANSWER_ACCEPT);
		if (!w->lies)
			assert_int_not_equal(got, KN_ANSWER_LIE);
		if (got == KN_ANSWER_ACCEPT)
			settle(a->task, false);
		W.dropped += got == KN_ANSWER_DROP;
	}
	w->answer_n = 0;
}

static void
drain_all(void)
{
	poll_all();
	for (uint32_t c = 0; c < W.n; c++)
		if (W.who[c].health != GONE)
			drain(c);
}

/* It is dead from here on; nobody has noticed. */
__attribute__((unused)) static void
kill_it(uint32_t c)
{
	W.who[c].health = GONE;
}

/* Noticed, reaped: what it left is seen to. Returns how many tasks are queued again. */
__attribute__((unused)) static int
bury(uint32_t c)
{
	struct kn_held left[KN_HELD_MAX];
	int n, again = 0;

	drain(c);
	n = kn_offer_bury(&W.o, c, left);
	for (int i = 0; i < n; i++) {
		if (W.who[c].begun == ((uint64_t)left[i].task << 32 | left[i].gen)) {
			settle(left[i].task, true);
			continue;
		}
		W.again[W.again_n++] = left[i].task;
		again++;
	}
	return again;
}

/* ---- a test's world ---- */

static void
open_world(uint32_t n, enum kn_claim_how how, uint32_t width, uint32_t tasks)
{
	struct kn_layout l;
	struct kn_err e = { 0 };
	uint32_t seed = W.seed;
	char *stacks[KN_CLAIMANTS];

	for (int i = 0; i < KN_CLAIMANTS; i++)
		stacks[i] = W.who[i].stack;
	memset(&W, 0, sizeof W);
	for (int i = 0; i < KN_CLAIMANTS; i++)
		W.who[i].stack = stacks[i];
	W.seed = seed ? seed : 2463534242u;
	W.n = n;
	W.how = how;
	W.width = width;
	W.task_n = tasks;
	assert_true(tasks <= TASKS_MAX);
	assert_int_equal(kn_layout_of(n, 4096, 4096, &l), 0);
	assert_int_equal(kn_layout_share(&l, n, AREA_BYTES), 0);
	if (kn_arena_open(&W.arena, &l, pool_id, &e) < 0)
		fail_msg("%s", e.msg);
	kn_arena_bank(&W.arena, 0, &W.bank);
	assert_int_equal(kn_offer_init(&W.o, &W.bank, how, width), 0);
	for (uint32_t c = 0; c < n; c++)
		spawn(c);
}

static void
close_world(void)
{
	kn_arena_close(&W.arena);
}

/* Random steps of all who are well, the supervisor's among them, until all is settled,
 * or so many turns were made, or so many since anything was settled. */
static void
run_turns(uint64_t turns, uint64_t patience)
{
	uint32_t settled = W.settled;

	for (uint64_t quiet = 0; turns-- && quiet < patience && W.settled < W.task_n;
	     quiet++) {
		uint32_t c = rnd() % (W.n + 1);

		if (c == W.n) {
			if (rnd() % 2)
				drain_all();
			offer(rnd() % 6);
		} else if (W.who[c].health == WELL) {
			for (uint32_t k = rnd() % 8; k-- && W.who[c].health == WELL;)
				step(c);
		}
		if (settled != W.settled)
			quiet = 0;
		settled = W.settled;
	}
}

__attribute__((unused)) static void
run_to_the_end(void)
{
	run_turns(UINT64_MAX, UINT64_MAX);
}

/* Until nothing comes any more: each has had turns for several whole waits. */
__attribute__((unused)) static void
run_until_quiet(void)
{
	run_turns(UINT64_MAX, 400 * (W.n + 1));
}

__attribute__((unused)) static void
nothing_is_left(void)
{
	assert_int_equal(W.settled, W.task_n);
	for (uint32_t i = 0; i < W.task_n; i++)
		assert_true(W.task[i].settled == 1);
	assert_int_equal(W.o.offered, 0);
}

/* ---- by hand ---- */

__attribute__((unused)) static struct kn_own *
own(uint32_t c)
{
	return kn_bank_own(&W.bank, c);
}

__attribute__((unused)) static void
ack_by_hand(uint32_t c, int slot, uint64_t seq)
{
	own(c)->taken[slot] = seq;
	own(c)->word ^= 1u << slot;
}

__attribute__((unused)) static int
one_offer(void)
{
	int slot = kn_offer_slot(&W.o);

	offer(1);
	return slot;
}

#endif
