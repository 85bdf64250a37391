/* tests/unit/test_core_worker.c: the state x event table, entry by entry: what a worker
 * may cause is never a bug of the shell, what it cannot cause always is. And the shells
 * that answer late, which the simulator's does not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "ipc/control.h"
#include "supervisor/core/state.h"

_Static_assert((int)KN_CORE_CAUSE_CANCEL == (int)KN_CAUSE_CANCEL, "numbers equal");
_Static_assert((int)KN_CORE_CAUSE_STOP == (int)KN_CAUSE_STOP, "numbers equal");

enum { OUT = 256 };

struct fixture {
	void *storage;
	struct kn_pool *p;
	struct kn_action out[OUT];
	size_t n;
	uint64_t now_ns;
};

static void
make_n(struct fixture *f, uint32_t workers, uint32_t bank, uint32_t recycle_tasks)
{
	struct kn_pool_config c = { .worker_n = workers,
		.bank_size = bank,
		.recycle_tasks = recycle_tasks,
		.task_max = 8,
		.lane_depth = 4,
		.start_ms = 1000,
		.claim_ms = 100,
		.hard_slack_ms = 50,
		.grace_ms = 100,
		.stop_ack_ms = 50,
		.crash_loop = 5 };

	assert_true(kn_pool_actions_max(&c) <= OUT);
	f->storage = malloc(kn_pool_bytes(&c));
	assert_non_null(f->storage);
	f->p = kn_pool_init(f->storage, &c);
	f->now_ns = 1000000000;
}

static void
make(struct fixture *f)
{
	make_n(f, 1, 0, 0);
}

/* Of worker `w`, about a task in the lane of worker `from`. */
static void
feed_of(struct fixture *f, uint32_t w, uint32_t from, enum kn_event_type type,
    uint32_t task)
{
	struct kn_event ev = { .type = type,
		.now_ns = f->now_ns,
		.worker = w,
		.from = from,
		.moved = from != w,
		.task = task,
		.gen = f->p->task[task].gen,
		.incarnation = f->p->worker[w].incarnation };

	f->n = kn_pool_step(f->p, &ev, f->out);
}

static void
feed(struct fixture *f, enum kn_event_type type, uint32_t task)
{
	feed_of(f, 0, 0, type, task);
}

static unsigned
count(const struct fixture *f, enum kn_action_type type)
{
	unsigned n = 0;

	for (size_t i = 0; i < f->n; i++)
		n += f->out[i].type == type;
	return n;
}

/* Bring worker 0 to a state by events alone. Task 0 is in its lane, claimed, where the
 * state allows it. */
static void
bring(struct fixture *f, enum kn_worker_state to)
{
	make(f);
	if (to == KN_WORKER_DEAD)
		return;
	feed(f, KN_EV_SUBMIT, 0);
	if (to == KN_WORKER_SPAWNING)
		return;
	feed(f, KN_EV_SPAWNED, 0);
	if (to == KN_WORKER_STARTING)
		return;
	feed(f, KN_EV_READY, 0);
	feed(f, KN_EV_PUBLISHED, 0);
	feed(f, KN_EV_CLAIMED, 0);
	if (to == KN_WORKER_READY)
		return;
	if (to == KN_WORKER_DYING) {
		feed(f, KN_EV_STOP_NOW, 0);
		return;
	}
	feed(f, KN_EV_RESULT, 0);
	feed(f, KN_EV_DRAIN, 0);
	if (to == KN_WORKER_ENDING)
		feed(f, KN_EV_STOP_ACKED, 0);
}

static void
every_entry_of_the_table(void **state)
{
	/* b: a bug of the shell; k: the worker is killed; .: taken or ignored. Events
	 * from SPAWNED to GONE, in the order of the enum. Tasks: the claimed one where
	 * there is one, else one that is not in the lane. */
	static const struct {
		enum kn_worker_state s;
		const char *row;
	} rows[] = {
		/* SPAWNED SPAWN_FAILED READY PUBLISHED PUBLISH_FAILED CLAIMED BEGUN
		 * OVER TAKEN_BACK TAKE_FAILED RESULT STOP_ACKED VIOLATION GONE */
		{ KN_WORKER_DEAD, "bbbbbbbbbbbbbb" },
		{ KN_WORKER_SPAWNING, "..bbbbbbbbbbbb" },
		{ KN_WORKER_STARTING, "bb.bbb..bbkkk." },
		{ KN_WORKER_READY, "bbbbb...bb.kk." },
		{ KN_WORKER_STOPPING, "bbbbbb..bbk.k." },
		{ KN_WORKER_ENDING, "bbbbbb..bbk.k." },
		{ KN_WORKER_DYING, "bb.bb...bb...." },
	};
	struct fixture f;

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		for (int e = KN_EV_SPAWNED; e <= KN_EV_GONE; e++) {
			char want = rows[i].row[e - KN_EV_SPAWNED];
			bring(&f, rows[i].s);
			assert_int_equal(f.p->worker[0].state, rows[i].s);
			assert_int_equal(kn_pool_bugs(f.p), 0);
			feed(&f, (enum kn_event_type)e, 0);
			char is = kn_pool_bugs(f.p) > 0		      ? 'b'
				  : count(&f, KN_ACT_KILL_WORKER) > 0 ? 'k'
								      : '.';
			if (is != want)
				print_error("state %d, event %s: %c, expected %c\n",
				    rows[i].s, kn_event_name((enum kn_event_type)e), is,
				    want);
			assert_int_equal(is, want);
			free(f.storage);
		}
	}
}

static void
events_of_an_earlier_life_are_ignored(void **state)
{
	struct fixture f;

	(void)state;
	bring(&f, KN_WORKER_READY);
	feed(&f, KN_EV_GONE, 0);
	feed(&f, KN_EV_SUBMIT, 1);
	assert_int_equal(f.p->worker[0].incarnation, 2);
	for (int e = KN_EV_SPAWNED; e <= KN_EV_GONE; e++) {
		struct kn_event ev = { .type = (enum kn_event_type)e,
			.now_ns = f.now_ns,
			.incarnation = 1,
			.gen = 1 };
		assert_int_equal(kn_pool_step(f.p, &ev, f.out), 0);
	}
	assert_int_equal(kn_pool_bugs(f.p), 0);
	free(f.storage);
}

static void
names_out_of_range_are_bugs(void **state)
{
	struct fixture f;
	struct kn_event ev = { .type = KN_EV_SUBMIT, .task = 8 };

	(void)state;
	make(&f);
	assert_int_equal(kn_pool_step(f.p, &ev, f.out), 0);
	ev = (struct kn_event){ .type = KN_EV_READY, .worker = 1 };
	assert_int_equal(kn_pool_step(f.p, &ev, f.out), 0);
	ev = (struct kn_event){ .type = KN_EV_N };
	assert_int_equal(kn_pool_step(f.p, &ev, f.out), 0);
	assert_int_equal(kn_pool_bugs(f.p), 3);
	free(f.storage);
}

/* A result for a slot index or gen that was never ours must not be looked up. */
static void
a_result_of_no_task_kills_and_touches_nothing(void **state)
{
	static const uint32_t tasks[] = { 8, 0xffffffffu, 7, 0 };
	struct fixture f;

	(void)state;
	for (size_t i = 0; i < sizeof tasks / sizeof tasks[0]; i++) {
		bring(&f, KN_WORKER_READY);
		struct kn_event ev = { .type = KN_EV_RESULT,
			.now_ns = f.now_ns,
			.incarnation = 1,
			.task = tasks[i],
			.gen = 77 };
		f.n = kn_pool_step(f.p, &ev, f.out);
		assert_int_equal(count(&f, KN_ACT_KILL_WORKER), 1);
		assert_int_equal(count(&f, KN_ACT_ANSWER), 0);
		feed(&f, KN_EV_GONE, 0);
		assert_int_equal(count(&f, KN_ACT_ANSWER), 1);
		assert_int_equal(f.out[0].how, KN_HOW_VIOLATION);
		free(f.storage);
	}
}

/* ---- a shell that answers PUBLISH and TAKE_BACK later than it should ---- */

static void
bring_publishing(struct fixture *f)
{
	make(f);
	feed(f, KN_EV_SUBMIT, 0);
	feed(f, KN_EV_SPAWNED, 0);
	feed(f, KN_EV_READY, 0);
	assert_int_equal(count(f, KN_ACT_PUBLISH), 1);
}

static void
cancelled_while_being_published(void **state)
{
	struct fixture f;

	(void)state;
	bring_publishing(&f);
	feed(&f, KN_EV_CANCEL, 0);
	assert_int_equal(f.n, 0);
	feed(&f, KN_EV_PUBLISHED, 0);
	assert_int_equal(count(&f, KN_ACT_TAKE_BACK), 1);
	feed(&f, KN_EV_TAKEN_BACK, 0);
	assert_int_equal(count(&f, KN_ACT_ANSWER), 1);
	assert_int_equal(f.out[0].how, KN_HOW_CANCELLED);
	free(f.storage);

	bring_publishing(&f);
	feed(&f, KN_EV_CANCEL, 0);
	feed(&f, KN_EV_PUBLISH_FAILED, 0);
	assert_int_equal(count(&f, KN_ACT_ANSWER), 1);
	assert_int_equal(f.out[0].how, KN_HOW_CANCELLED);
	free(f.storage);
}

static void
late_while_being_published(void **state)
{
	struct fixture f;
	struct kn_event ev = { .type = KN_EV_SUBMIT, .submit = { .queue_ms = 10 } };

	(void)state;
	make(&f);
	ev.now_ns = f.now_ns;
	f.n = kn_pool_step(f.p, &ev, f.out);
	feed(&f, KN_EV_SPAWNED, 0);
	feed(&f, KN_EV_READY, 0);
	f.now_ns += 20 * KN_CORE_MS;
	feed(&f, KN_EV_TIMER, 0);
	assert_int_equal(f.n, 0);
	feed(&f, KN_EV_PUBLISHED, 0);
	assert_int_equal(count(&f, KN_ACT_TAKE_BACK), 1);
	feed(&f, KN_EV_TAKEN_BACK, 0);
	assert_int_equal(f.out[0].how, KN_HOW_QUEUE_TIMEOUT);
	free(f.storage);
}

/* Its worker goes before TAKE_BACK is answered, and another task comes back before it.
 */
static void
late_while_being_taken_back(void **state)
{
	struct fixture f;
	struct kn_event ev = {
		.type = KN_EV_SUBMIT, .task = 1, .submit = { .queue_ms = 10 }
	};

	(void)state;
	bring_publishing(&f);
	feed(&f, KN_EV_PUBLISHED, 0);
	ev.now_ns = f.now_ns;
	f.n = kn_pool_step(f.p, &ev, f.out);
	assert_int_equal(count(&f, KN_ACT_PUBLISH), 1);
	feed(&f, KN_EV_PUBLISHED, 1);
	f.now_ns += 20 * KN_CORE_MS;
	feed(&f, KN_EV_TIMER, 0);
	assert_int_equal(count(&f, KN_ACT_TAKE_BACK), 1);
	feed(&f, KN_EV_GONE, 0);
	assert_int_equal(count(&f, KN_ACT_ANSWER), 1);
	assert_int_equal(f.out[0].task, 1);
	assert_int_equal(f.out[0].how, KN_HOW_QUEUE_TIMEOUT);
	free(f.storage);
}

static void
claimed_when_the_grace_is_over(void **state)
{
	struct fixture f;

	(void)state;
	bring_publishing(&f);
	feed(&f, KN_EV_PUBLISHED, 0);
	feed(&f, KN_EV_STOP, 0);
	assert_int_equal(count(&f, KN_ACT_TAKE_BACK), 1);
	f.now_ns += 101 * KN_CORE_MS;
	feed(&f, KN_EV_TIMER, 0);
	assert_int_equal(f.n, 0);
	feed(&f, KN_EV_TAKE_FAILED, 0);
	assert_int_equal(count(&f, KN_ACT_KILL_TASK), 1);
	assert_int_equal(f.out[0].arg, KN_CORE_CAUSE_STOP);
	free(f.storage);
}

static uint64_t
lost_when_gone(struct fixture *f)
{
	struct kn_pool_counts c;

	feed(f, KN_EV_GONE, 0);
	kn_pool_count(f->p, &c);
	assert_int_equal(c.failed_launches, 0);
	free(f->storage);
	return c.lost;
}

static void
who_has_stopped_and_ends_late_is_not_lost(void **state)
{
	struct fixture f;

	(void)state;
	bring(&f, KN_WORKER_ENDING);
	f.now_ns += 1000 * KN_CORE_MS;
	feed(&f, KN_EV_TIMER, 0);
	assert_int_equal(count(&f, KN_ACT_KILL_WORKER), 1);
	assert_int_equal(f.out[0].why, KN_WHY_NO_END);
	assert_int_equal(lost_when_gone(&f), 0);
}

static void
who_is_slow_to_hear_and_holds_nothing_is_not_lost(void **state)
{
	struct fixture f;

	(void)state;
	bring(&f, KN_WORKER_STOPPING);
	f.now_ns += 1000 * KN_CORE_MS;
	feed(&f, KN_EV_TIMER, 0);
	assert_int_equal(count(&f, KN_ACT_KILL_WORKER), 1);
	assert_int_equal(f.out[0].why, KN_WHY_NO_STOP_ACK);
	assert_int_equal(lost_when_gone(&f), 0);
}

static void
who_has_stopped_and_then_lies_is_lost(void **state)
{
	struct fixture f;

	(void)state;
	bring(&f, KN_WORKER_ENDING);
	feed(&f, KN_EV_VIOLATION, 0);
	assert_int_equal(count(&f, KN_ACT_KILL_WORKER), 1);
	assert_int_equal(lost_when_gone(&f), 1);
}

/* It claimed from the bank before it saw that it is to stop. */
static void
who_has_stopped_with_a_task_claimed_is_lost(void **state)
{
	struct fixture f;

	(void)state;
	make_n(&f, 2, 2, 1);
	feed(&f, KN_EV_SUBMIT, 0);
	feed(&f, KN_EV_SUBMIT, 1);
	for (uint32_t w = 0; w < 2; w++) {
		feed_of(&f, w, w, KN_EV_SPAWNED, 0);
		feed_of(&f, w, w, KN_EV_READY, 0);
	}
	feed(&f, KN_EV_PUBLISHED, 0);
	feed(&f, KN_EV_CLAIMED, 0);
	feed_of(&f, 1, 1, KN_EV_PUBLISHED, 1);
	feed(&f, KN_EV_RESULT, 0);
	assert_int_equal(f.p->worker[0].state, KN_WORKER_STOPPING);
	feed_of(&f, 0, 1, KN_EV_CLAIMED, 1);
	feed(&f, KN_EV_STOP_ACKED, 0);
	assert_int_equal(f.p->worker[0].claimed_n, 1);
	assert_int_equal(lost_when_gone(&f), 1);
}

static void
a_gen_is_never_0(void **state)
{
	struct fixture f;

	(void)state;
	make(&f);
	f.p->task[0].gen = UINT32_MAX;
	feed(&f, KN_EV_SUBMIT, 0);
	feed(&f, KN_EV_SPAWNED, 0);
	feed(&f, KN_EV_READY, 0);
	assert_int_equal(f.out[0].type, KN_ACT_PUBLISH);
	assert_int_equal(f.out[0].gen, 1);
	free(f.storage);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_entry_of_the_table),
		cmocka_unit_test(events_of_an_earlier_life_are_ignored),
		cmocka_unit_test(names_out_of_range_are_bugs),
		cmocka_unit_test(a_result_of_no_task_kills_and_touches_nothing),
		cmocka_unit_test(cancelled_while_being_published),
		cmocka_unit_test(late_while_being_published),
		cmocka_unit_test(late_while_being_taken_back),
		cmocka_unit_test(claimed_when_the_grace_is_over),
		cmocka_unit_test(who_has_stopped_and_ends_late_is_not_lost),
		cmocka_unit_test(who_is_slow_to_hear_and_holds_nothing_is_not_lost),
		cmocka_unit_test(who_has_stopped_and_then_lies_is_lost),
		cmocka_unit_test(who_has_stopped_with_a_task_claimed_is_lost),
		cmocka_unit_test(a_gen_is_never_0),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
