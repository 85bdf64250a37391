/* tests/unit/test_ipc_lane.c: a task handed over is run by the worker or taken back by
 * the supervisor, never both and never neither; whatever a worker writes into its
 * words, the supervisor's record decides. Where two processes matter, there are two. */
#include "tests/unit/ipc_test.h"

#include "ipc/lane.h"
#include "ipc/shm.h"

static struct kn_arena arena;
static struct kn_slice sl; /* the supervisor's view of slice 0 */
static struct kn_submit tx;

static int
start(void **state)
{
	(void)state;
	open_arena(&arena, 1, 8192);
	kn_arena_slice(&arena, 0, &sl);
	kn_submit_init(&tx);
	return 0;
}

static int
stop(void **state)
{
	(void)state;
	pin(-1);
	kn_arena_close(&arena);
	return 0;
}

/* In a child: the worker's view. */
static int
map_as_worker(struct kn_slice *out)
{
	struct kn_map m;
	int sealed;

	if (kn_arena_map_slice(arena.fd, &arena.layout, pool_id, 0, &m, &sealed, NULL) <
	    0)
		return -1;
	kn_slice_at(m.p, &arena.layout, out);
	return 0;
}

static int
offer(uint32_t task, const char *text)
{
	struct kn_slot_head h = { .kind = KN_REQ_EXEC,
		.task = task,
		.gen = task + 1,
		.area = KN_AREA_INLINE,
		.payload_len = (uint32_t)strlen(text) };
	int slot = kn_submit_free(&tx, &sl);

	if (slot >= 0)
		kn_submit_publish(&tx, &sl, slot, &h, text);
	return slot;
}

static uint32_t
claimed(void)
{
	bool violation = false;
	uint32_t mask = kn_submit_claimed(&tx, &sl, &violation);

	assert_false(violation);
	return mask;
}

/* ---- submit lane, honest worker ---- */

static void
a_task_arrives_with_its_bytes_and_is_seen_claimed_once(void **state)
{
	struct kn_slot_head h;
	uint8_t in[KN_INLINE_MAX];
	int slot = offer(41, "hello");

	(void)state;
	assert_true(slot >= 0);
	assert_int_equal(claimed(), 0);
	assert_true(kn_submit_claim(&sl, slot, &h, in));
	assert_int_equal(h.kind, KN_REQ_EXEC);
	assert_int_equal(h.task, 41);
	assert_int_equal(h.gen, 42);
	assert_int_equal(h.payload_len, 5);
	assert_memory_equal(in, "hello", 5);
	assert_false(kn_submit_claim(&sl, slot, &h, in));
	assert_false(kn_submit_take_back(&tx, &sl, slot));
	assert_int_equal(claimed(), 1u << slot);
	assert_int_equal(claimed(), 0);
}

static void
a_lane_holds_32_and_frees_what_was_claimed_or_taken_back(void **state)
{
	struct kn_slot_head h;
	uint8_t in[KN_INLINE_MAX];

	(void)state;
	for (int round = 0; round < 5; round++) {
		uint32_t used = 0;

		for (uint32_t i = 0; i < KN_SLOTS; i++) {
			int slot = offer(i, "x");
			assert_true(slot >= 0 && !(used >> slot & 1));
			used |= 1u << slot;
		}
		assert_int_equal(offer(99, "x"), -1);
		assert_true(kn_submit_claim(&sl, 7, &h, in));
		assert_int_equal(offer(99, "x"), -1); /* not seen claimed yet */
		assert_int_equal(claimed(), 1u << 7);
		assert_int_equal(offer(99, "x"), 7);
		for (int slot = 0; slot < KN_SLOTS; slot++)
			assert_true(kn_submit_take_back(&tx, &sl, slot));
		assert_int_equal(claimed(), 0);
		for (int slot = 0; slot < KN_SLOTS; slot++)
			assert_false(kn_submit_claim(&sl, slot, &h, in));
	}
}

static void
what_was_taken_back_cannot_be_claimed_nor_taken_again(void **state)
{
	struct kn_slot_head h;
	uint8_t in[KN_INLINE_MAX];
	int slot = offer(1, "x");

	(void)state;
	assert_true(kn_submit_take_back(&tx, &sl, slot));
	assert_false(kn_submit_take_back(&tx, &sl, slot));
	assert_false(kn_submit_claim(&sl, slot, &h, in));
	assert_int_equal(claimed(), 0);
}

static void
an_old_message_does_not_claim_the_slots_next_task(void **state)
{
	struct kn_slot_head h;
	uint8_t in[KN_INLINE_MAX];
	int slot = offer(1, "old"), next;

	(void)state;
	assert_true(kn_submit_take_back(&tx, &sl, slot));
	next = offer(2, "new");
	assert_int_equal(next, slot);
	/* the worker acts on the message of task 1 */
	assert_false(kn_submit_claim_task(&sl, slot, 1, 2, &h, in));
	assert_int_equal(claimed(), 0);
	/* and then on that of task 2 */
	assert_false(kn_submit_claim_task(&sl, slot, 2, 9, &h, in));
	assert_true(kn_submit_claim_task(&sl, slot, 2, 3, &h, in));
	assert_memory_equal(in, "new", 3);
	assert_int_equal(claimed(), 1u << slot);
}

static void
a_slot_carries_nothing_of_the_task_before(void **state)
{
	struct kn_slot_head h;
	uint8_t in[KN_INLINE_MAX];
	int slot = offer(1, "a long secret of the task before");

	(void)state;
	assert_true(kn_submit_claim(&sl, slot, &h, in));
	claimed();
	assert_int_equal(offer(2, "b"), slot);
	memset(in, 0xcc, sizeof in);
	assert_true(kn_submit_claim(&sl, slot, &h, in));
	assert_int_equal(in[0], 'b');
	for (size_t i = 1; i < sizeof in; i++)
		assert_int_equal(in[i], 0xcc);
}

/* ---- the count of the claim word ---- */

static void
the_count_wraps_without_touching_the_bits(void **state)
{
	struct kn_slot_head h;
	uint8_t in[KN_INLINE_MAX];

	(void)state;
	/* Three exchanges below the wrap. */
	sl.control->submit_claimed = 0xfffffffdull << 32;
	for (uint32_t i = 0; i < 100; i++) {
		int slot = offer(i, "x");

		if (i % 3 == 0) {
			assert_true(kn_submit_take_back(&tx, &sl, slot));
			assert_int_equal(claimed(), 0);
		} else {
			assert_true(kn_submit_claim(&sl, slot, &h, in));
			assert_int_equal(h.task, i);
			assert_int_equal(claimed(), 1u << slot);
		}
		assert_int_equal(
		    (uint32_t)(sl.control->submit_claimed >> 32), 0xfffffffdu + i + 1);
	}
}

static void
a_claim_begun_before_two_reuses_of_the_slot_fails_also_at_the_wrap(void **state)
{
	static const uint32_t counts[] = { 0, 7, 0xfffffffe, 0xffffffff };

	(void)state;
	for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
		uint64_t seen, fresh;
		int slot;

		sl.control->submit_claimed =
		    (uint64_t)counts[i] << 32 | (uint32_t)sl.control->submit_claimed;
		slot = offer(1, "first");
		/* The worker reads the word and copies; then it is held up. */
		seen = kn_shm_load64_acquire(&sl.control->submit_claimed);
		assert_true(kn_submit_take_back(&tx, &sl, slot));
		assert_int_equal(offer(2, "second"), slot);
		assert_true(kn_submit_take_back(&tx, &sl, slot));
		assert_int_equal(offer(3, "third"), slot);
		fresh = kn_shm_load64_acquire(&sl.control->submit_claimed);
		/* All bits are as the worker saw them: only the count tells. */
		assert_int_equal((uint32_t)seen, (uint32_t)fresh);
		assert_false(kn_shm_cas64_acqrel(
		    &sl.control->submit_claimed, &seen, seen ^ (1u << slot)));
		assert_true(kn_submit_take_back(&tx, &sl, slot));
	}
}

/* ---- submit lane, lying worker ---- */

static void
bits_that_were_never_offered_are_a_violation(void **state)
{
	bool violation = false;
	int slot = offer(1, "x");

	(void)state;
	sl.control->submit_claimed ^= 1u << 20;
	assert_int_equal(kn_submit_claimed(&tx, &sl, &violation), 0);
	assert_true(violation);
	assert_int_equal(tx.offered, 1u << slot); /* the honest one is still offered */
}

static void
taking_a_claim_back_is_a_violation(void **state)
{
	struct kn_slot_head h;
	uint8_t in[KN_INLINE_MAX];
	bool violation = false;
	int slot = offer(1, "x");

	(void)state;
	assert_true(kn_submit_claim(&sl, slot, &h, in));
	assert_int_equal(claimed(), 1u << slot);
	sl.control->submit_claimed ^= 1u << slot;
	assert_int_equal(kn_submit_claimed(&tx, &sl, &violation), 0);
	assert_true(violation);
	/* The slot is only busy for longer. */
	for (int i = 0; i < KN_SLOTS - 1; i++)
		assert_int_not_equal(offer(7, "y"), slot);
	assert_int_equal(offer(7, "y"), -1);
}

static void
reviving_what_was_taken_back_is_a_violation(void **state)
{
	bool violation = false;
	int slot = offer(1, "x");

	(void)state;
	assert_true(kn_submit_take_back(&tx, &sl, slot));
	sl.control->submit_claimed ^= 1u << slot;
	kn_submit_claimed(&tx, &sl, &violation);
	assert_true(violation);
}

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
	for (int i = 0; i < 200000 || violations < 1000; i++) {
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

/* ---- two processes ---- */

enum { TASKS = 100000 };
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
	for (uint32_t death = 0; death < 60 || unclaimed < 5; death++) {
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

/* ---- return lane ---- */

static bool
answer(struct kn_return_tx *r, uint32_t task, const char *text)
{
	struct kn_slot_head h = { .task = task,
		.gen = 1,
		.area = KN_AREA_INLINE,
		.payload_len = (uint32_t)strlen(text) };

	return kn_return_publish(r, &sl, &h, text);
}

static void
answers_come_in_order_and_a_full_lane_refuses(void **state)
{
	struct kn_return_tx w = { 0 };
	struct kn_return_rx r = { 0 };
	struct kn_slot_head h;
	uint8_t in[KN_INLINE_MAX];
	uint32_t in_n = 0, out_n = 0;

	(void)state;
	for (uint32_t round = 1; round <= KN_SLOTS; round++) {
		for (uint32_t i = 0; i < round; i++)
			assert_true(answer(&w, in_n++, "r"));
		for (uint32_t i = 0; i < round; i++) {
			int slot = kn_return_peek(&r, &sl, &h, in);

			assert_true(slot >= 0);
			assert_int_equal(kn_return_peek(&r, &sl, &h, in), slot);
			assert_int_equal(h.task, out_n++);
			kn_return_retire(&r, &sl, slot);
		}
		assert_int_equal(kn_return_peek(&r, &sl, &h, in), -1);
	}
	for (uint32_t i = 0; i < KN_SLOTS; i++)
		assert_true(answer(&w, in_n++, "r"));
	assert_false(answer(&w, in_n, "r"));
	kn_return_retire(&r, &sl, kn_return_peek(&r, &sl, &h, in));
	assert_true(answer(&w, in_n++, "r"));
	assert_false(answer(&w, in_n, "r"));
}

static void
a_length_that_lies_writes_nothing_past_the_buffer(void **state)
{
	struct {
		uint8_t in[KN_INLINE_MAX];
		uint8_t canary[64];
	} b;
	struct kn_return_rx r = { 0 };
	struct kn_slot_head h;

	(void)state;
	memset(&b, 0x77, sizeof b);
	memset(&sl.return_slots[0], 0xff, sizeof sl.return_slots[0]);
	sl.control->return_published = 1;
	assert_int_equal(kn_return_peek(&r, &sl, &h, b.in), 0);
	assert_int_equal(h.payload_len, 0xffffffff); /* for the caller to refuse */
	for (size_t i = 0; i < sizeof b.canary; i++)
		assert_int_equal(b.canary[i], 0x77);
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
	for (int i = 0; i < 200000 || got < 1000; i++) {
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

int
main(void)
{
#define LANE(t) cmocka_unit_test_setup_teardown(t, start, stop)
	const struct CMUnitTest tests[] = {
		LANE(a_task_arrives_with_its_bytes_and_is_seen_claimed_once),
		LANE(a_lane_holds_32_and_frees_what_was_claimed_or_taken_back),
		LANE(what_was_taken_back_cannot_be_claimed_nor_taken_again),
		LANE(an_old_message_does_not_claim_the_slots_next_task),
		LANE(a_slot_carries_nothing_of_the_task_before),
		LANE(the_count_wraps_without_touching_the_bits),
		LANE(
		    a_claim_begun_before_two_reuses_of_the_slot_fails_also_at_the_wrap),
		LANE(bits_that_were_never_offered_are_a_violation),
		LANE(taking_a_claim_back_is_a_violation),
		LANE(reviving_what_was_taken_back_is_a_violation),
		LANE(a_scribbler_cannot_make_a_task_leave_twice_or_unoffered),
		LANE(each_task_is_run_or_taken_back_exactly_once),
		LANE(after_a_kill_the_record_tells_claimed_from_unclaimed),
		LANE(answers_come_in_order_and_a_full_lane_refuses),
		LANE(a_length_that_lies_writes_nothing_past_the_buffer),
		LANE(peeking_at_a_scribbled_lane_ends_and_stays_in_bounds),
	};
	alarm(300); /* a lost task would be awaited for ever */
	return cmocka_run_group_tests(tests, NULL, NULL);
}
