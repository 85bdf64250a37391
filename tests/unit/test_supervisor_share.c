/* tests/unit/test_supervisor_share.c: shared submit: calls in a bank whose claimants
 * are played by the test. The core is not asked: what it would be told stays in the
 * queues.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "ipc/claim.h"
#include "ipc/clock.h"
#include "supervisor/inner.h"

enum { WORKERS = 3, TASKS = 40, QUEUE = 64, AREA = 64 * 1024, LONG = 8000 };

static struct kn_sup *s;
static struct kn_share_bank *bank;
static struct kn_policy policy;
static struct kn_module module;
static struct kn_task small, big;
static char *names[] = { NULL, (char[]){ "f" } };
static char bytes[LONG];
static uint32_t gen;

static int
start(void **state)
{
	static const uint8_t id[16] = "the-pool-of-test";
	const struct kn_pool_config c = { .worker_n = WORKERS, .task_max = TASKS };
	struct kn_layout l;
	struct kn_err e;

	(void)state;
	memset(&policy, 0, sizeof policy);
	policy.payload_area = AREA;
	module = (struct kn_module){ .name = names, .name_n = 2, .name_room = 2 };
	small = (struct kn_task){ .call.fn = 1,
		.call.arg = { .type = KN_TYPE_BYTES, .bytes = bytes, .n = 10 } };
	big = small;
	big.call.arg.n = LONG;
	s = calloc(1, sizeof *s);
	s->policy = &policy;
	s->module = &module;
	s->steal = KN_STEAL_SHARED;
	s->trace.fd = -1;
	s->pumping = true; /* events are queued, and nobody steps */
	s->task_max = TASKS;
	s->worker_n = WORKERS;
	s->pool = kn_pool_init(calloc(1, kn_pool_bytes(&c)), &c);
	s->events.cap = s->replies.cap = QUEUE;
	s->events.v = calloc(QUEUE, sizeof(struct kn_event));
	s->replies.v = calloc(QUEUE, sizeof(struct kn_event));
	s->wk = calloc(WORKERS, sizeof *s->wk);
	s->entry = calloc(TASKS, sizeof *s->entry);
	for (uint32_t i = 0; i < TASKS; i++)
		s->entry[i] = (struct kn_entry){ .sup = s, .index = i, .worker = -1 };
	if (kn_layout_of(2 * WORKERS, AREA, AREA, &l) < 0 ||
	    kn_share_lay_out(s, &l, &e) < 0 ||
	    kn_arena_open(&s->arena, &l, id, &e) < 0 || kn_share_open(s, &e) < 0 ||
	    kn_loop_open(&s->loop, &e) < 0)
		return -1;
	bank = &s->share->bank[0];
	gen = 0;
	return 0;
}

static int
stop(void **state)
{
	(void)state;
	kn_share_close(s);
	kn_loop_close(&s->loop);
	kn_arena_close(&s->arena);
	free(s->pool);
	free(s->events.v);
	free(s->replies.v);
	free(s->wk);
	free(s->entry);
	free(s);
	return 0;
}

static struct kn_wk *
join(uint32_t i, bool ready)
{
	struct kn_wk *w = &s->wk[i];

	*w = (struct kn_wk){ .sup = s, .index = i, .incarnation = 7, .live = true };
	w->lw = (struct kn_launched)KN_LAUNCHED_NONE;
	kn_arena_slice(&s->arena, kn_resident_slice(s, i), &w->slice);
	kn_share_join(w);
	w->ready = ready;
	return w;
}

static struct kn_entry *
publish(struct kn_wk *w, uint32_t i, struct kn_task *t)
{
	struct kn_entry *e = &s->entry[i];

	e->task = t;
	e->gen = ++gen;
	e->serial = i;
	e->claimed = false;
	assert_true(kn_share_publish(w, e));
	return e;
}

static uint32_t
on_shelf(void)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < TASKS; i++)
		n += s->entry[i].shelved;
	assert_int_equal(n, bank->shelf_n);
	return n;
}

/* Long calls, until one has to wait. Returns its number. */
static uint32_t
fill(struct kn_wk *w)
{
	uint32_t i = 0;

	while (!publish(w, i, &big)->shelved)
		i++;
	return i;
}

static void
take_back(struct kn_entry *e)
{
	const struct kn_action a = { .type = KN_ACT_TAKE_BACK,
		.worker = (uint32_t)e->worker,
		.incarnation = e->incarnation,
		.task = e->index,
		.gen = e->gen };

	kn_act_do(s, &a);
}

/* ---- room ---- */

static void
each_worker_of_a_bank_brings_its_room(void **state)
{
	(void)state;
	join(0, true);
	assert_true(fill(join(1, true)) >= WORKERS * (AREA / (LONG + KN_LINE)));
	assert_int_equal(on_shelf(), 1);
}

static void
what_waits_for_room_is_taken_back_and_nobody_is_at_fault(void **state)
{
	struct kn_wk *w = join(0, true);
	uint32_t last = fill(w);

	(void)state;
	take_back(&s->entry[last]);
	take_back(&s->entry[0]);
	assert_int_equal(s->replies.n, 2);
	assert_int_equal(s->replies.v[0].type, KN_EV_TAKEN_BACK);
	assert_int_equal(s->replies.v[0].task, last);
	assert_true(s->replies.v[0].waited);
	assert_int_equal(s->replies.v[1].type, KN_EV_TAKEN_BACK);
	assert_false(s->replies.v[1].waited); /* it was on offer */
	assert_int_equal(on_shelf(), 0);
}

static void
what_needs_a_slot_only_passes_what_waits_for_room(void **state)
{
	struct kn_wk *w = join(0, true);
	uint32_t last = fill(w), first;

	(void)state;
	assert_false(publish(w, last + 1, &small)->shelved);
	assert_true(publish(w, last + 2, &big)->shelved);
	/* While it waits itself those behind it wait as well. */
	for (uint32_t i = last + 3; i < TASKS; i++)
		publish(w, i, &small);
	assert_true(s->entry[TASKS - 1].shelved);
	for (first = last + 3; !s->entry[first].shelved; first++)
		;
	take_back(&s->entry[last + 1]);
	kn_share_flush(s);
	assert_false(s->entry[first].shelved);
	assert_true(s->entry[first + 1].shelved);
	assert_true(s->entry[last].shelved);
	/* Nor is it its worker's fault if it has come on offer only just now. */
	take_back(&s->entry[first]);
	assert_true(s->replies.v[1].waited);
}

static void
who_waits_for_room_keeps_its_turn_when_it_is_given_to_another(void **state)
{
	struct kn_wk *w = join(0, true), *other = join(1, true);
	uint32_t first = fill(w);

	(void)state;
	publish(w, first + 1, &big);
	take_back(&s->entry[first]);
	publish(other, first, &big);
	assert_int_equal(on_shelf(), 2);
	take_back(&s->entry[0]);
	kn_share_flush(s);
	assert_false(s->entry[first].shelved);
	assert_true(s->entry[first + 1].shelved);
}

/* Where nobody has any that could be waited for. */
static void
no_memory_is_no_room_for_ever(void **state)
{
	struct kn_wk *w = join(0, true);
	struct kn_entry *e = &s->entry[0];
	int fd = s->arena.fd;
	uint32_t last;

	(void)state;
	s->arena.fd = -1; /* nothing can be asked of it */
	e->task = &big;
	e->gen = ++gen;
	assert_false(kn_share_publish(w, e));
	assert_int_equal(e->state, KN_ENTRY_KNOWN);
	assert_int_equal(bank->placed + w->outstanding + on_shelf(), 0);
	s->arena.fd = fd;

	last = fill(w); /* it waits for the others */
	s->arena.fd = -1;
	kn_share_flush(s);
	assert_int_equal(on_shelf(), 1);
	for (uint32_t i = 0; i < last; i++)
		take_back(&s->entry[i]);
	bank->backed = 0; /* and its pages were given back */
	kn_share_flush(s);
	s->arena.fd = fd;
	assert_int_equal(on_shelf(), 0);
	assert_int_equal(s->events.n, 1);
	assert_int_equal(s->events.v[0].type, KN_EV_PUBLISH_FAILED);
	assert_int_equal(s->events.v[0].task, last);
	assert_int_equal(s->entry[last].state, KN_ENTRY_KNOWN);
}

/* ---- who comes ---- */

static void
who_gets_ready_is_woken_for_what_was_offered_before(void **state)
{
	struct kn_wk *first = join(0, true), *late = join(1, false);

	(void)state;
	publish(first, 0, &small);
	publish(first, 1, &small);
	kn_share_flush(s);
	assert_true(first->to_wake);
	assert_false(late->to_wake); /* its answer to the ping is still to be read */
	late->ready = true;
	kn_share_ready(late);
	kn_share_flush(s);
	assert_true(late->to_wake);
}

static void
who_gets_ready_is_not_woken_for_nothing(void **state)
{
	struct kn_wk *w = join(0, true);

	(void)state;
	kn_share_ready(w);
	kn_share_flush(s);
	assert_false(w->to_wake);
}

/* ---- who goes ---- */

/* The region of what lies in its lane is wanted by another just then. */
static void
who_could_not_go_is_asked_again_soon(void **state)
{
	struct kn_wk *goes = join(0, true), *busy = join(1, true);
	struct kn_entry *e = publish(goes, 0, &small);
	uint64_t now = kn_clock_now(), due;

	(void)state;
	kn_share_flush(s);
	*kn_bank_word(&bank->offer.bank, busy->index) =
	    kn_word(1u << (uint32_t)e->slot / s->share->width, 0);
	assert_false(kn_share_leave(goes));
	kn_share_timer(s, now); /* of the same round */
	due = kn_share_due(s, now);
	assert_true(due > now && due <= now + 10 * KN_MS_NS);
	*kn_bank_word(&bank->offer.bank, busy->index) = 0;
	assert_true(kn_share_leave(goes));
	assert_int_equal(e->state, KN_ENTRY_KNOWN);
}

int
main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
		    each_worker_of_a_bank_brings_its_room, start, stop),
		cmocka_unit_test_setup_teardown(
		    what_waits_for_room_is_taken_back_and_nobody_is_at_fault, start,
		    stop),
		cmocka_unit_test_setup_teardown(
		    what_needs_a_slot_only_passes_what_waits_for_room, start, stop),
		cmocka_unit_test_setup_teardown(
		    who_waits_for_room_keeps_its_turn_when_it_is_given_to_another,
		    start, stop),
		cmocka_unit_test_setup_teardown(
		    no_memory_is_no_room_for_ever, start, stop),
		cmocka_unit_test_setup_teardown(
		    who_gets_ready_is_woken_for_what_was_offered_before, start, stop),
		cmocka_unit_test_setup_teardown(
		    who_gets_ready_is_not_woken_for_nothing, start, stop),
		cmocka_unit_test_setup_teardown(
		    who_could_not_go_is_asked_again_soon, start, stop),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
