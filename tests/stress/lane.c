/* tests/stress/lane.c: one supervisor thread and one worker thread on one mapping of
 * the arena, as fast as they can: publish, claim (singly and several at once), take
 * back, answer, payload areas, begun word, doorbell, parking, stop. Each task must be
 * run exactly once or taken back exactly once, with its own bytes, and its answer must
 * arrive exactly once with its own bytes.
 *
 *   lane [-n TASKS] [-s SEED]     default 1000000 tasks; the seed is printed
 *
 * Threads on ONE mapping, because a thread sanitizer does not see that two mappings of
 * one memfd are the same memory. Build with SAN=tsan for races, without for speed.
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "ipc/arena.h"
#include "ipc/bell.h"
#include "ipc/control.h"
#include "ipc/err.h"
#include "ipc/lane.h"
#include "ipc/park.h"
#include "ipc/payload.h"
#include "tests/stress/stress.h"

enum { AREA_BYTES = 1 << 16, BIG_MAX = 6000, LOST_WAKE_MS = 60000 };

struct shared {
	struct kn_arena arena;
	struct kn_slice slice;
	int bell;
	uint32_t task_n, seed;
	/* the worker's notes, read after it has ended */
	uint8_t *ran;
	uint64_t many, parks;
};

/* What the supervisor knows of each slot and task. */
struct sup {
	struct shared *sh;
	struct kn_submit tx;
	struct kn_payload pay;
	struct kn_return_rx rx;
	uint32_t seed, next, settled;
	uint32_t where[KN_SLOTS];
	int area[KN_SLOTS];
	uint8_t *taken, *claimed, *answered;
	uint64_t back, areas, sleeps, begun_seen, wakes;
};

/* ---- worker ---- */

struct worker {
	struct shared *sh;
	struct kn_return_tx tx;
	struct kn_payload pay;
	unsigned cursor;
};

/* Answer with as many bytes as asked, in an area if they do not fit. */
static void
answer(struct worker *w, const struct kn_slot_head *req)
{
	struct kn_control *c = w->sh->slice.control;
	struct kn_slot_head h = { .task = req->task,
		.gen = req->gen,
		.area = KN_AREA_INLINE,
		.payload_len = req->payload_len };
	uint8_t in[KN_INLINE_MAX];
	const void *bytes = in;

	if (h.payload_len <= KN_INLINE_MAX) {
		fill(in, h.payload_len, h.task, 0);
	} else {
		uint64_t off;
		int area;

		while ((area = kn_payload_alloc(
			    &w->pay, &c->return_freed, h.payload_len, &off)) < 0)
			sched_yield();
		fill(w->sh->slice.return_area + off, h.payload_len, h.task, 0);
		h.area = (uint32_t)area;
		h.payload_off = (uint32_t)off;
		bytes = NULL;
	}
	while (!kn_return_publish(&w->tx, &w->sh->slice, &h, bytes)) {
		kn_bell_ring(c, w->sh->bell);
		sched_yield();
	}
	kn_bell_ring(c, w->sh->bell);
}

static void
run_task(struct worker *w, const struct kn_slot_head *h, const uint8_t *in)
{
	struct kn_control *c = w->sh->slice.control;

	if (h->task >= w->sh->task_n || h->gen != h->task + 1)
		die("claimed a header that nobody wrote", h->task);
	kn_control_begin(c, h->task, h->gen, (uint64_t)h->gen * 7);
	if (w->sh->ran[h->task]++)
		die("run twice", h->task);
	if (h->area == KN_AREA_INLINE) {
		if (!is_filled(in, h->payload_len, h->task, 0))
			die("inline bytes of another task", h->task);
	} else {
		if (!is_filled(w->sh->slice.submit_area + h->payload_off,
			h->payload_len, h->task, 0))
			die("area bytes of another task", h->task);
		kn_payload_free(&c->submit_freed, (int)h->area);
	}
	kn_control_end(c);
	answer(w, h);
}

static int
claim_each(struct worker *w)
{
	struct kn_slot_head h;
	uint8_t in[KN_INLINE_MAX];
	int got = 0;

	for (int slot = 0; slot < KN_SLOTS; slot++)
		if (kn_submit_claim(&w->sh->slice, slot, &h, in)) {
			run_task(w, &h, in);
			got++;
		}
	return got;
}

static int
claim_many(struct worker *w, unsigned max)
{
	static struct kn_slot batch[KN_SLOTS];
	int n = kn_submit_claim_many(&w->sh->slice, &w->cursor, max, batch);

	if (n > (int)max)
		die("more claimed than asked for", 0);
	for (int i = 0; i < n; i++)
		run_task(w, &batch[i].head, batch[i].inline_bytes);
	w->sh->many += n > 1;
	return n;
}

/* As sandbox/module does: the last look is after the word that says so. */
static void
park(struct worker *w)
{
	struct kn_control *c = w->sh->slice.control;
	uint32_t seen = kn_park_begin(c);

	if (kn_submit_pending(&w->sh->slice) || kn_control_stopping(c)) {
		kn_park_end(c);
		return;
	}
	w->sh->parks++;
	kn_park(c, seen);
}

static void *
work(void *arg)
{
	struct worker w = { .sh = arg };
	uint32_t seed = w.sh->seed ^ 0x5bd1e995;

	kn_payload_init(&w.pay, w.sh->slice.return_area_bytes);
	seed += seed == 0;
	while (!kn_control_stopping(w.sh->slice.control)) {
		uint32_t r = rnd(&seed);

		if (r % 2 ? claim_each(&w) : claim_many(&w, r / 2 % KN_SLOTS + 1))
			continue;
		if (r % 4 == 1)
			sched_yield();
		else
			park(&w);
	}
	kn_control_ack_stop(w.sh->slice.control);
	return NULL;
}

/* ---- supervisor ---- */

static int
publish_one(struct sup *s)
{
	struct shared *sh = s->sh;
	uint32_t r = rnd(&s->seed), n = r % (KN_INLINE_MAX + 1);
	struct kn_slot_head h = { .kind = KN_REQ_EXEC,
		.task = s->next,
		.gen = s->next + 1,
		.area = KN_AREA_INLINE };
	int slot = kn_submit_free(&s->tx, &sh->slice), area = -1;
	uint8_t in[KN_INLINE_MAX];

	if (slot < 0)
		return 0;
	if (r >> 29 == 0) {
		uint64_t off;

		n = KN_INLINE_MAX + 1 + (r >> 8) % (BIG_MAX - KN_INLINE_MAX);
		area = kn_payload_alloc(
		    &s->pay, &sh->slice.control->submit_freed, n, &off);
		if (area < 0)
			return 0;
		fill(sh->slice.submit_area + off, n, h.task, 0);
		h.area = (uint32_t)area;
		h.payload_off = (uint32_t)off;
		s->areas++;
	} else {
		fill(in, n, h.task, 0);
	}
	h.payload_len = n;
	s->where[slot] = h.task;
	s->area[slot] = area;
	s->next++;
	kn_submit_publish(&s->tx, &sh->slice, slot, &h, in);
	/* A burst costs one wake; and nothing may stay published and unheard. */
	if (r >> 27 & 1)
		s->wakes += kn_park_wake(sh->slice.control);
	return 1;
}

static void
take_one_back(struct sup *s)
{
	int slot = __builtin_ctz(s->tx.offered);

	if (!kn_submit_take_back(&s->tx, &s->sh->slice, slot))
		return;
	if (s->taken[s->where[slot]]++)
		die("taken back twice", s->where[slot]);
	kn_payload_undo(&s->pay, s->area[slot]);
	s->back++;
	s->settled++;
}

static void
note_claims(struct sup *s)
{
	bool violation = false;
	uint32_t mask = kn_submit_claimed(&s->tx, &s->sh->slice, &violation);

	if (violation)
		die("an honest worker was called a liar", s->next);
	for (; mask; mask &= mask - 1)
		if (s->claimed[s->where[__builtin_ctz(mask)]]++)
			die("seen claimed twice", s->where[__builtin_ctz(mask)]);
}

static int
drain_one(struct sup *s)
{
	struct shared *sh = s->sh;
	struct kn_slot_head h;
	uint8_t in[KN_INLINE_MAX];
	int slot = kn_return_peek(&s->rx, &sh->slice, &h, in);

	if (slot < 0)
		return 0;
	if (h.task >= s->next || h.gen != h.task + 1 || s->answered[h.task]++)
		die("an answer that is not owed", h.task);
	if (h.area == KN_AREA_INLINE) {
		if (!is_filled(in, h.payload_len, h.task, 0))
			die("an answer's bytes are another's", h.task);
	} else {
		if (!is_filled(sh->slice.return_area + h.payload_off, h.payload_len,
			h.task, 0))
			die("an answer's area is another's", h.task);
		kn_payload_free(&sh->slice.control->return_freed, (int)h.area);
	}
	kn_return_retire(&s->rx, &sh->slice, slot);
	s->settled++;
	return 1;
}

static void
look_begun(struct sup *s)
{
	uint32_t task, gen;
	uint64_t ns;

	if (!kn_control_begun(s->sh->slice.control, &task, &gen, &ns))
		return;
	if (gen != task + 1 || ns != (uint64_t)gen * 7)
		die("the begun word mixes two tasks", task);
	s->begun_seen++;
}

/* Nothing to do: arm, look once more, sleep. */
static void
sleep_on_bell(struct sup *s)
{
	struct pollfd p = { s->sh->bell, POLLIN, 0 };
	uint64_t n;

	kn_bell_arm(s->sh->slice.control);
	if (drain_one(s)) {
		kn_bell_disarm(s->sh->slice.control);
		return;
	}
	s->sleeps++;
	s->wakes += kn_park_wake(s->sh->slice.control);
	if (poll(&p, 1, LOST_WAKE_MS) != 1)
		die("slept over an answer", s->next);
	if (read(s->sh->bell, &n, sizeof n) < 0 && errno != EAGAIN)
		die("the bell cannot be read", s->next);
	kn_bell_disarm(s->sh->slice.control);
}

static void
supervise(struct sup *s)
{
	while (s->settled < s->sh->task_n) {
		uint32_t r = rnd(&s->seed);
		int did = 0;

		if (s->next < s->sh->task_n)
			did |= publish_one(s);
		if (s->tx.offered && r % 3 == 0)
			take_one_back(s);
		note_claims(s);
		while (drain_one(s))
			did = 1;
		if (r >> 24 == 0)
			look_begun(s);
		/* Asleep only while something is owed, as the loop is. */
		if (!did && s->settled < s->sh->task_n &&
		    (s->next == s->sh->task_n ||
			kn_submit_free(&s->tx, &s->sh->slice) < 0) &&
		    s->settled < s->next)
			sleep_on_bell(s);
	}
}

static int
open_shared(struct shared *sh)
{
	static const uint8_t pool_id[16] = "stress-lane";
	struct kn_err e = { 0 };
	struct kn_layout l;

	if (kn_layout_of(1, AREA_BYTES, AREA_BYTES, &l) < 0 ||
	    kn_arena_open(&sh->arena, &l, pool_id, &e) < 0) {
		fprintf(stderr, "lane: %s\n", e.msg);
		return -1;
	}
	kn_arena_slice(&sh->arena, 0, &sh->slice);
	/* Close to the wrap of the claim word's count: it wraps early in each run. */
	sh->slice.control->submit_claimed = 0xffffff00ull << 32;
	sh->bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	sh->ran = calloc(sh->task_n, 1);
	return sh->bell < 0 || !sh->ran ? -1 : 0;
}

static void
check(const struct sup *s)
{
	for (uint32_t i = 0; i < s->sh->task_n; i++) {
		if (s->sh->ran[i] + s->taken[i] != 1)
			die("neither run nor taken back, or both", i);
		if (s->answered[i] != s->sh->ran[i] || s->claimed[i] != s->sh->ran[i])
			die("run and not answered once, or not seen claimed", i);
	}
}

int
main(int argc, char **argv)
{
	struct shared sh = { .task_n = 1000000, .seed = (uint32_t)time(NULL) };
	struct sup s = { .sh = &sh };
	pthread_t worker;
	int opt;

	while ((opt = getopt(argc, argv, "n:s:")) != -1) {
		uint32_t v = optarg ? (uint32_t)strtoul(optarg, NULL, 10) : 0;
		if (v == 0 || (opt != 'n' && opt != 's')) {
			fprintf(stderr, "usage: lane [-n TASKS] [-s SEED]\n");
			return 2;
		}
		*(opt == 'n' ? &sh.task_n : &sh.seed) = v;
	}
	fill_open();
	printf("lane: %u tasks, seed %u\n", sh.task_n, sh.seed);
	fflush(stdout);
	s.seed = sh.seed;
	s.taken = calloc(sh.task_n, 1);
	s.claimed = calloc(sh.task_n, 1);
	s.answered = calloc(sh.task_n, 1);
	if (!s.taken || !s.claimed || !s.answered || open_shared(&sh) < 0)
		return 2;
	kn_submit_init(&s.tx);
	kn_payload_init(&s.pay, sh.slice.submit_area_bytes);
	if (pthread_create(&worker, NULL, work, &sh) != 0)
		return 2;
	supervise(&s);
	kn_control_stop(sh.slice.control);
	(void)kn_park_wake(sh.slice.control);
	pthread_join(worker, NULL);
	if (!kn_control_stop_acked(sh.slice.control))
		die("the stop was not acknowledged", 0);
	note_claims(&s);
	check(&s);
	printf("lane: %llu taken back, %llu in areas, %llu sleeps, begun seen %llu, "
	       "%llu batches, %llu parks, %llu wakes\n",
	    (unsigned long long)s.back, (unsigned long long)s.areas,
	    (unsigned long long)s.sleeps, (unsigned long long)s.begun_seen,
	    (unsigned long long)sh.many, (unsigned long long)sh.parks,
	    (unsigned long long)s.wakes);
	if (s.back == 0 || s.back == sh.task_n || s.areas == 0 || sh.many == 0)
		die("the two sides never met", 0);
	kn_arena_close(&sh.arena);
	kn_fd_close(&sh.bell);
	free(sh.ran);
	free(s.taken);
	free(s.claimed);
	free(s.answered);
	return 0;
}
