/* tests/unit/test_core_pool.c: the edges of the pool's interface: names, numbers out of
 * range, the bound of the action list, an idle pool without a deadline, large pools. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "supervisor/core/pool.h"

static void
every_enumerator_has_a_name_of_its_own(void **state)
{
	(void)state;
	for (int i = 0; i < KN_EV_N; i++) {
		const char *a = kn_event_name((enum kn_event_type)i);
		assert_string_not_equal(a, "?");
		for (int j = 0; j < i; j++)
			assert_string_not_equal(
			    a, kn_event_name((enum kn_event_type)j));
	}
	for (int i = 0; i < KN_ACT_N; i++)
		assert_string_not_equal(kn_action_name((enum kn_action_type)i), "?");
	for (int i = 0; i < KN_HOW_N; i++)
		assert_string_not_equal(kn_how_name((enum kn_how)i), "?");
	for (int i = 0; i < KN_WHY_N; i++)
		assert_string_not_equal(kn_why_name((enum kn_why)i), "?");
	assert_string_equal(kn_event_name(KN_EV_N), "?");
	assert_string_equal(kn_action_name(KN_ACT_N), "?");
	assert_string_equal(kn_how_name(KN_HOW_N), "?");
	assert_string_equal(kn_why_name(KN_WHY_N), "?");
}

static void
numbers_out_of_range_are_brought_into_it(void **state)
{
	struct kn_pool_config none = { 0 };
	struct kn_pool_config huge;

	(void)state;
	memset(&huge, 0xff, sizeof huge);
	huge.broker = huge.eager = true;
	assert_int_equal(kn_pool_workers(&none), 1);
	assert_int_equal(kn_pool_workers(&huge), 256);
	huge.worker_n = 200;
	huge.spares = 200;
	assert_int_equal(kn_pool_workers(&huge), 256);
	huge.worker_n = 3;
	assert_int_equal(kn_pool_workers(&huge), 6);
	void *storage = malloc(kn_pool_bytes(&none));
	assert_non_null(storage);
	struct kn_pool *p = kn_pool_init(storage, &none);
	assert_int_equal(kn_pool_deadline(p), 0);
	free(storage);
}

/* A shell that answers all at once, each task a result. */
struct shell {
	struct kn_pool_config c;
	struct kn_pool *p;
	struct kn_action *out;
	size_t out_max, most;
	struct kn_event *todo;
	size_t head, tail, cap;
	uint64_t now_ns, answered;
	bool ended;
};

static void
later(struct shell *s, const struct kn_action *a, enum kn_event_type type)
{
	assert_true(s->tail < s->cap);
	s->todo[s->tail++] = (struct kn_event){ .type = type,
		.worker = a->worker,
		.incarnation = a->incarnation,
		.task = a->task,
		.gen = a->gen };
}

static void
perform(struct shell *s, const struct kn_action *a)
{
	if (a->type == KN_ACT_SPAWN) {
		later(s, a, KN_EV_SPAWNED);
		later(s, a, KN_EV_READY);
	} else if (a->type == KN_ACT_PUBLISH) {
		later(s, a, KN_EV_PUBLISHED);
		later(s, a, KN_EV_CLAIMED);
		later(s, a, KN_EV_RESULT);
	} else if (a->type == KN_ACT_STOP_WORKER) {
		later(s, a, KN_EV_STOP_ACKED);
		later(s, a, KN_EV_GONE);
	} else if (a->type == KN_ACT_KILL_WORKER) {
		later(s, a, KN_EV_GONE);
	}
	s->answered += a->type == KN_ACT_ANSWER;
	s->ended = s->ended || a->type == KN_ACT_ENDED;
}

static void
feed(struct shell *s, struct kn_event ev)
{
	ev.now_ns = s->now_ns += 1000;
	size_t n = kn_pool_step(s->p, &ev, s->out);
	assert_true(n <= s->out_max);
	if (n > s->most)
		s->most = n;
	for (size_t i = 0; i < n; i++)
		perform(s, &s->out[i]);
}

static void
run(struct shell *s)
{
	while (s->head < s->tail)
		feed(s, s->todo[s->head++]);
	s->head = s->tail = 0;
}

static void
open_shell(struct shell *s, const struct kn_pool_config *c)
{
	memset(s, 0, sizeof *s);
	s->c = *c;
	s->now_ns = 1000000000;
	s->out_max = kn_pool_actions_max(c);
	s->out = calloc(s->out_max, sizeof *s->out);
	s->cap = 8ull * c->task_max + 4096;
	s->todo = calloc(s->cap, sizeof *s->todo);
	s->p = kn_pool_init(malloc(kn_pool_bytes(c)), c);
	assert_non_null(s->out);
	assert_non_null(s->todo);
}

static void
close_shell(struct shell *s)
{
	assert_int_equal(kn_pool_bugs(s->p), 0);
	free(s->p);
	free(s->out);
	free(s->todo);
}

static const struct kn_pool_config plain = { .worker_n = 4,
	.task_max = 64,
	.lane_depth = 4,
	.start_ms = 1000,
	.claim_ms = 1000,
	.hard_slack_ms = 50,
	.grace_ms = 100,
	.stop_ack_ms = 50,
	.backoff_min_ms = 10,
	.backoff_max_ms = 1000,
	.crash_loop = 5,
	.broker = true };

static void
an_idle_pool_has_no_deadline(void **state)
{
	struct shell s;
	struct kn_pool_counts n;

	(void)state;
	open_shell(&s, &plain);
	assert_int_equal(kn_pool_deadline(s.p), 0);
	for (uint32_t t = 0; t < 64; t++)
		feed(&s, (struct kn_event){ .type = KN_EV_SUBMIT,
			     .task = t,
			     .submit = { .queue_ms = 1000, .hard_ms = 1000 } });
	assert_true(kn_pool_deadline(s.p) != 0);
	run(&s);
	kn_pool_count(s.p, &n);
	assert_int_equal(s.answered, 64);
	assert_int_equal(n.ready, 4);
	assert_int_equal(kn_pool_deadline(s.p), 0);
	feed(&s, (struct kn_event){ .type = KN_EV_DRAIN });
	run(&s);
	assert_true(s.ended);
	assert_int_equal(kn_pool_deadline(s.p), 0);
	close_shell(&s);
}

static void
the_action_list_is_bounded_at_its_worst(void **state)
{
	struct kn_pool_config c = plain;
	struct shell s;

	(void)state;
	c.task_max = 1000;
	c.worker_n = 8;
	c.eager = true;
	open_shell(&s, &c);
	for (uint32_t t = 0; t < c.task_max; t++)
		feed(&s, (struct kn_event){ .type = KN_EV_SUBMIT, .task = t });
	/* All queued, none ready: one stop answers every task and kills every worker.
	 */
	feed(&s, (struct kn_event){ .type = KN_EV_STOP });
	assert_true(s.most >= c.task_max);
	run(&s);
	assert_int_equal(s.answered, c.task_max);
	assert_true(s.ended);
	close_shell(&s);
}

static void
answer_all(uint32_t task_max, uint32_t worker_n)
{
	struct kn_pool_config c = plain;
	struct shell s;

	c.task_max = task_max;
	c.worker_n = worker_n;
	c.lane_depth = 32;
	open_shell(&s, &c);
	for (uint32_t t = 0; t < c.task_max; t++)
		feed(&s, (struct kn_event){ .type = KN_EV_SUBMIT, .task = t });
	feed(&s, (struct kn_event){ .type = KN_EV_DRAIN });
	run(&s);
	assert_int_equal(s.answered, c.task_max);
	assert_true(s.ended);
	close_shell(&s);
}

static void
the_largest_pools_answer_each_task_once(void **state)
{
	(void)state;
	answer_all(65536, 2);
	answer_all(2048, 256);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_enumerator_has_a_name_of_its_own),
		cmocka_unit_test(numbers_out_of_range_are_brought_into_it),
		cmocka_unit_test(an_idle_pool_has_no_deadline),
		cmocka_unit_test(the_action_list_is_bounded_at_its_worst),
		cmocka_unit_test(the_largest_pools_answer_each_task_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
