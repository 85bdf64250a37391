/* tests/unit/test_ipc_lane_race.c: the lanes with the worker in a process of its own: a
 * task handed over is run by the worker or taken back, never both and never neither;
 * whatever a worker scribbles, the supervisor's record decides. */
#include "tests/unit/ipc_lane.h"

static int
scribble_on_the_claim_word(void *arg)
{
	struct kn_slice mine;
	uint64_t x = 88172645463325252ull;

	(void)arg;
	if (map_as_worker(&mine) < 0)
		return 1;
	for (;;) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		kn_shm_store64_release(&mine.control->submit_claimed, x);
		kn_shm_store32_release(&mine.control->submit_published, (uint32_t)x);
	}
}

static void
a_scribbler_cannot_make_a_task_leave_twice_or_unoffered(void **state)
{
	pid_t pid = start_child(scribble_on_the_claim_word, NULL);
	uint32_t out = 0; /* slots that are the worker's by our own count */
	unsigned violations = 0, published = 0, left = 0, back = 0;
	int status;

	(void)state;
	/* On a busy machine it takes a while until the scribbler is there. */
	for (int i = 0; i < 100000 || violations < 50; i++) {
		bool violation = false;
		uint32_t mask;
		int slot = offer(1, "bait");

		if (slot >= 0) {
			assert_false(out >> slot & 1);
			out |= 1u << slot;
			published++;
		}
		if (i % 3 == 0 && out) {
			slot = __builtin_ctz(out);
			if (kn_submit_take_back(&tx, &sl, slot)) {
				out &= ~(1u << slot);
				back++;
			}
		}
		mask = kn_submit_claimed(&tx, &sl, &violation);
		assert_int_equal(mask & ~out, 0);
		out &= ~mask;
		left += (unsigned)__builtin_popcount(mask);
		violations += violation;
		assert_int_equal(tx.offered, out);
	}
	assert_int_equal(published, left + back + (unsigned)__builtin_popcount(out));
	assert_true(violations > 0);
	assert_int_equal(
	    waitpid(pid, &status, WNOHANG), 0); /* it was there all along */
	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
}

static int
scribble_on_all(void *arg)
{
	struct kn_slice mine;
	uint64_t x = 4101842887655102017ull;
	uint64_t *words;

	(void)arg;
	if (map_as_worker(&mine) < 0)
		return 1;
	words = (void *)mine.control;
	for (;;) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		words[(x >> 32) % (arena.layout.slice_bytes / 8)] = x;
		kn_shm_store32_release(&mine.control->return_published, (uint32_t)x);
	}
}

static void
peeking_at_a_scribbled_lane_ends_and_stays_in_bounds(void **state)
{
	struct {
		uint8_t in[KN_INLINE_MAX];
		uint8_t canary[64];
	} b;
	pid_t pid = start_child(scribble_on_all, NULL);
	struct kn_return_rx r = { 0 };
	struct kn_slot_head h;
	int status, got = 0;

	(void)state;
	memset(&b, 0x77, sizeof b);
	for (int i = 0; i < 100000 || got < 50; i++) {
		int slot = kn_return_peek(&r, &sl, &h, b.in);

		assert_in_range(slot + 1, 0, KN_SLOTS);
		if (slot >= 0) {
			got++;
			kn_return_retire(&r, &sl, slot);
		}
	}
	for (size_t i = 0; i < sizeof b.canary; i++)
		assert_int_equal(b.canary[i], 0x77);
	assert_int_equal(waitpid(pid, &status, WNOHANG), 0);
	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
}

enum { TASKS = 40000 };
struct notes {
	uint32_t done;	    /* tasks that the supervisor is through with */
	uint8_t ran[TASKS]; /* by the worker */
};

static int
claim_whatever_comes(void *arg)
{
	struct notes *notes = arg;
	struct kn_slice mine;
	struct kn_slot_head h;
	uint8_t in[KN_INLINE_MAX];

	pin(1);
	if (map_as_worker(&mine) < 0)
		return 1;
	while (kn_shm_load32_acquire(&notes->done) < TASKS)
		for (int slot = 0; slot < KN_SLOTS; slot++) {
			char want[32];

			if (!kn_submit_claim(&mine, slot, &h, in))
				continue;
			if (h.task >= TASKS || h.gen != h.task + 1)
				return 2;
			/* a torn copy would mix two tasks */
			if (h.payload_len != (uint32_t)snprintf(want, sizeof want,
						 "task %u", h.task) ||
			    memcmp(in, want, h.payload_len) != 0)
				return 3;
			if (notes->ran[h.task]++)
				return 4;
		}
	return 0;
}

static void
each_task_is_run_or_taken_back_exactly_once(void **state)
{
	struct notes *notes = shared_notes(sizeof *notes);
	static uint8_t taken[TASKS], seen[TASKS];
	uint32_t next = 0, done = 0, where[KN_SLOTS], run = 0, back = 0;
	pid_t pid = start_child(claim_whatever_comes, notes);
	int status;

	(void)state;
	pin(0);
	memset(taken, 0, sizeof taken);
	memset(seen, 0, sizeof seen);
	while (done < TASKS) {
		uint32_t mask;
		char text[32];
		int slot;

		snprintf(text, sizeof text, "task %u", next);
		if (next < TASKS && (slot = offer(next, text)) >= 0)
			where[slot] = next++;
		/* Take back what is oldest, so that both want the same slot. */
		if (tx.offered && next % 2) {
			slot = __builtin_ctz(tx.offered);
			if (kn_submit_take_back(&tx, &sl, slot)) {
				taken[where[slot]]++;
				done++;
			}
		}
		for (mask = claimed(); mask; mask &= mask - 1) {
			seen[where[__builtin_ctz(mask)]]++;
			done++;
		}
		if (next % 64 == 0 && waitpid(pid, &status, WNOHANG) == pid)
			fail_msg("the worker ended: %x", (unsigned)status);
		if (next % 16 == 0)
			sched_yield();
	}
	kn_shm_store32_release(&notes->done, TASKS);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	for (uint32_t i = 0; i < TASKS; i++) {
		assert_int_equal(notes->ran[i] + taken[i], 1);
		assert_int_equal(seen[i], notes->ran[i]);
		run += notes->ran[i];
		back += taken[i];
	}
	print_message("%u run, %u taken back\n", run, back);
	assert_true(run > 100 && back > 100); /* else there was no race to win */
	munmap(notes, sizeof *notes);
}

struct grave {
	uint32_t claims[1 << 16]; /* gens, in the order of their claims */
	uint32_t n;
};

static int
claim_and_note(void *arg)
{
	struct grave *g = arg;
	struct kn_slice mine;
	struct kn_slot_head h;
	uint8_t in[KN_INLINE_MAX];

	if (map_as_worker(&mine) < 0)
		return 1;
	for (;;)
		for (int slot = 0; slot < KN_SLOTS; slot++)
			if (kn_submit_claim(&mine, slot, &h, in)) {
				g->claims[g->n % (1 << 16)] = h.task;
				kn_shm_store32_release(&g->n, g->n + 1);
			}
}

static void
after_a_kill_the_record_tells_claimed_from_unclaimed(void **state)
{
	struct grave *g = shared_notes(sizeof *g);
	uint32_t unclaimed = 0;

	(void)state;
	/* Until some died with tasks unclaimed. */
	for (uint32_t death = 0; death < 40 || unclaimed < 5; death++) {
		struct kn_err e = { 0 };
		uint32_t id = 0, ran, handed = 0, goal = death * 7 % 200 + 1;
		int status;
		pid_t pid;

		assert_int_equal(kn_arena_reset_slice(&arena, 0, &e), 0);
		kn_submit_init(&tx);
		memset(g, 0, sizeof *g);
		pid = start_child(claim_and_note, g);
		while (kn_shm_load32_acquire(&g->n) < goal) {
			while (offer(id, "x") >= 0)
				id++;
			handed += (uint32_t)__builtin_popcount(claimed());
			assert_int_equal(waitpid(pid, &status, WNOHANG), 0);
		}
		while (offer(id, "x") >= 0)
			id++; /* with one CPU these are what it dies without */
		kill(pid, SIGKILL);
		assert_int_equal(waitpid(pid, &status, 0), pid);
		/* Only after the reap: now the word cannot change any more. */
		handed += (uint32_t)__builtin_popcount(claimed());
		ran = g->n;
		/* It claims, then notes: one claim may be without its note. */
		assert_true(handed == ran || handed == ran + 1);
		assert_int_equal(handed + (uint32_t)__builtin_popcount(tx.offered), id);
		for (uint32_t i = 0; i < ran; i++)
			for (uint32_t k = 0; k < i; k++)
				assert_int_not_equal(g->claims[i], g->claims[k]);
		for (int slot = 0; slot < KN_SLOTS; slot++)
			if (tx.offered >> slot & 1) {
				unclaimed++;
				assert_true(kn_submit_take_back(&tx, &sl, slot));
			}
	}
	munmap(g, sizeof *g);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		LANE(a_scribbler_cannot_make_a_task_leave_twice_or_unoffered),
		LANE(each_task_is_run_or_taken_back_exactly_once),
		LANE(after_a_kill_the_record_tells_claimed_from_unclaimed),
		LANE(peeking_at_a_scribbled_lane_ends_and_stays_in_bounds),
	};
	alarm(300); /* a lost task would be awaited for ever */
	return cmocka_run_group_tests(tests, NULL, NULL);
}
