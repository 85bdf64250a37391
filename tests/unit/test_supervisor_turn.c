/* tests/unit/test_supervisor_turn.c: before the loop sleeps: whoever owes an answer can
 * be heard, also who was given something at the very last look.
 *
 * The file itself, with another clock, core and loop around it: what is tested is what
 * happens between two instructions.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define kn_clock_now world_clock
#define kn_pool_step world_step
#define kn_pool_deadline world_deadline
#define kn_act_do world_act
#define kn_view_look world_look
#define kn_view_gone world_gone
#define kn_view_tell_bad world_tell_bad
#define kn_loop_wait world_wait
#define kn_loop_poll world_poll
#include "ipc/shm.h"
#include "supervisor/turn.c"

enum { WORKERS = 2 };
static struct {
	struct kn_sup s;
	struct kn_wk wk[WORKERS];
	struct kn_control control[WORKERS];
	uint64_t now, deadline, pass_at_look;
	unsigned looks, waits;
	int given; /* the worker that a passed deadline gives something to */
} W;

static bool
is_armed(uint32_t w)
{
	return kn_shm_load32_acquire(&W.control[w].armed) != 0;
}

uint64_t
kn_clock_now(void)
{
	return W.now;
}

uint64_t
kn_pool_deadline(const struct kn_pool *p)
{
	(void)p;
	return W.deadline;
}

/* A deadline that passes is one action: a task for a worker. */
size_t
kn_pool_step(struct kn_pool *p, const struct kn_event *ev, struct kn_action *out)
{
	(void)p;
	(void)out;
	if (ev->type == KN_EV_TIMER && W.deadline && W.deadline <= ev->now_ns) {
		W.deadline = 0;
		W.wk[W.given].outstanding = 1;
	}
	return 0;
}

void
kn_act_do(struct kn_sup *s, const struct kn_action *a)
{
	(void)s;
	(void)a;
}

/* Nothing is ever there; time passes at one of the looks. */
unsigned
kn_view_look(struct kn_wk *w)
{
	if (w->index == 0 && ++W.looks == W.pass_at_look)
		W.now = W.deadline;
	return 0;
}

void
kn_view_gone(struct kn_wk *w, uint64_t now_ns)
{
	(void)w;
	(void)now_ns;
}

void
kn_view_tell_bad(struct kn_wk *w)
{
	(void)w;
}

/* Asleep: who owes us something must be able to ring. */
int
kn_loop_wait(struct kn_loop *l, uint64_t now, uint64_t deadline, struct kn_err *e)
{
	(void)l;
	(void)now;
	(void)deadline;
	(void)e;
	W.waits++;
	for (uint32_t i = 0; i < WORKERS; i++)
		if (W.wk[i].outstanding && !is_armed(i))
			fail_msg("asleep, and worker %u cannot ring", i);
	return 0;
}

int
kn_loop_poll(struct kn_loop *l, uint64_t deadline, int *events, struct kn_err *e)
{
	(void)events;
	return kn_loop_wait(l, 0, deadline, e);
}

static void
open_world(uint64_t pass_at_look)
{
	memset(&W, 0, sizeof W);
	W.s.wk = W.wk;
	W.s.worker_n = WORKERS;
	W.s.refused_head = KN_NO_ENTRY;
	W.now = 1000;
	W.deadline = 2000;
	W.pass_at_look = pass_at_look;
	W.given = 1;
	for (uint32_t i = 0; i < WORKERS; i++) {
		W.wk[i].sup = &W.s;
		W.wk[i].index = i;
		W.wk[i].live = W.wk[i].ready = W.wk[i].exited = true;
		W.wk[i].slice.control = &W.control[i];
	}
}

static void
who_is_given_something_at_the_last_look_is_heard(void **state)
{
	(void)state;
	/* before the bells are armed, after it, and while we sleep */
	for (uint64_t look = 1; look <= 3; look++) {
		enum kn_sup_news news;
		struct kn_err e;

		open_world(look);
		for (int i = 0; i < 6; i++)
			assert_int_equal(kn_turn_step(&W.s, 0, &news, &e), 0);
		assert_int_equal(W.wk[1].outstanding, 1);
		assert_true(W.waits > 0);
		assert_true(is_armed(1));
	}
}

static void
a_bell_is_armed_for_who_owes_and_no_other(void **state)
{
	enum kn_sup_news news;
	struct kn_err e;

	(void)state;
	open_world(0);
	W.wk[0].outstanding = 3;
	assert_int_equal(kn_turn_step(&W.s, 0, &news, &e), 0);
	assert_int_equal(W.waits, 1);
	assert_true(is_armed(0));
	assert_false(is_armed(1));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(who_is_given_something_at_the_last_look_is_heard),
		cmocka_unit_test(a_bell_is_armed_for_who_owes_and_no_other),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
