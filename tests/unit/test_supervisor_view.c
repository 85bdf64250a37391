/* tests/unit/test_supervisor_view.c: a worker that lies in its slice, in each way it
 * can: the first lie is named, and nothing after it is believed.
 */
#include <errno.h>

#include "tests/unit/supervisor_test.h"

static struct kn_slot_head
head_of(uint32_t i, uint32_t gen)
{
	return (struct kn_slot_head){
		.kind = KN_REQ_EXEC, .task = i, .gen = gen, .area = KN_AREA_INLINE
	};
}

static struct kn_job_result
good_result(void)
{
	uint64_t now = kn_clock_now();

	return (struct kn_job_result){ .begun_ns = now, .ended_ns = now };
}

static void
say(struct kn_slot_head h, const struct kn_job_result *r)
{
	uint8_t bytes[KN_INLINE_MAX];
	size_t n = kn_job_result_encode(r, bytes, sizeof bytes);

	if (!h.payload_len)
		h.payload_len = (uint32_t)n;
	assert_true(kn_return_publish(&tx, &w->slice, &h, bytes));
}

/* Everything is queued in order: answers of a turn first. */
static bool
was_fed(enum kn_event_type type, uint32_t i, uint32_t gen)
{
	const struct kn_queue *q = &s->events;

	for (uint32_t k = 0; k < q->n; k++) {
		const struct kn_event *ev = &q->v[(q->at + k) % q->cap];

		if (ev->type == type && ev->task == i && ev->gen == gen)
			return true;
	}
	return false;
}

static void
expect_violation(const char *field)
{
	kn_view_look(w);
	if (!w->bad || strcmp(w->bad, field) != 0)
		fail_msg("violation \"%s\", expected \"%s\"", w->bad ? w->bad : "none",
		    field);
	assert_false(was_fed(KN_EV_RESULT, 0, 5));
	/* and nothing more is believed */
	assert_int_equal(kn_view_look(w), 0);
	kn_view_tell_bad(w);
	kn_view_tell_bad(w);
	assert_int_equal(s->events.n, 1);
	assert_int_equal(s->events.v[0].type, KN_EV_VIOLATION);
	assert_int_equal(s->events.v[0].incarnation, 7);
}

/* ---- an honest one ---- */

static void
an_honest_result_is_fed_after_its_claim(void **state)
{
	struct kn_job_result r = good_result();
	struct kn_entry *e;

	(void)state;
	w->ready = true;
	e = hand_out(0, 5);
	claim(e);
	r.begun_ns = kn_clock_now();
	r.ended_ns = r.begun_ns + 1000;
	r.user_us = 77;
	say(head_of(0, 5), &r);
	assert_int_equal(kn_view_look(w), 1);
	assert_null(w->bad);
	assert_true(e->claimed);
	assert_int_equal(s->replies.n, 1);
	assert_int_equal(s->replies.v[0].type, KN_EV_CLAIMED);
	assert_true(was_fed(KN_EV_RESULT, 0, 5));
	assert_int_equal(e->result.user_us, 77);
	assert_int_equal(w->outstanding, 0);
}

static const struct kn_event *
fed_result(void)
{
	const struct kn_queue *q = &s->events;

	for (uint32_t k = 0; k < q->n; k++)
		if (q->v[(q->at + k) % q->cap].type == KN_EV_RESULT)
			return &q->v[(q->at + k) % q->cap];
	return NULL;
}

/* Not where its input is gone: the second attempt would end well, of nothing. */
static void
fail_a_cell(bool input_used)
{
	struct kn_job_result r = good_result();
	struct kn_entry *e;

	w->ready = true;
	e = hand_out(0, 5);
	claim(e);
	e->input_used = input_used;
	r.step = KN_EXEC_CELL;
	r.sys = EAGAIN;
	say(head_of(0, 5), &r);
	kn_view_look(w);
	assert_null(w->bad);
	assert_non_null(fed_result());
	assert_int_equal(fed_result()->infra_fail, !input_used);
}

static void
a_cell_that_failed_is_tried_again(void **state)
{
	(void)state;
	fail_a_cell(false);
}

static void
but_not_once_its_input_is_used(void **state)
{
	(void)state;
	fail_a_cell(true);
}

static void
ended_by_request_is_believed_where_it_was_requested(void **state)
{
	struct kn_job_result r = good_result();
	struct kn_entry *e;

	(void)state;
	w->ready = true;
	e = hand_out(0, 5);
	claim(e);
	e->told_to_end = true;
	r.cause = KN_CAUSE_CANCEL;
	say(head_of(0, 5), &r);
	kn_view_look(w);
	assert_null(w->bad);
	assert_true(was_fed(KN_EV_RESULT, 0, 5));
}

/* Times a worker tells are held within what the supervisor saw itself. */
static void
times_are_held_between_publication_and_now(void **state)
{
	struct kn_job_result r = good_result();
	struct kn_entry *e;

	(void)state;
	w->ready = true;
	e = hand_out(0, 5);
	claim(e);
	r.begun_ns = 1;
	r.ended_ns = UINT64_MAX / 2;
	say(head_of(0, 5), &r);
	kn_view_look(w);
	assert_null(w->bad);
	assert_int_equal(e->begun_ns, e->published_ns);
	assert_true(e->ended_ns <= kn_clock_now());
}

static void
a_begun_word_is_believed_within_bounds_only(void **state)
{
	struct kn_entry *e;

	(void)state;
	w->ready = true;
	e = hand_out(0, 5);
	claim(e);
	assert_false(kn_view_begun(w, e));
	kn_control_begin(w->slice.control, 0, 4, 1); /* another attempt's */
	assert_false(kn_view_begun(w, e));
	kn_control_begin(w->slice.control, 0, 5, UINT64_MAX);
	assert_true(kn_view_begun(w, e));
	assert_true(e->begun_ns <= kn_clock_now());
	kn_control_begin(w->slice.control, 0, 5, 1);
	assert_true(kn_view_begun(w, e));
	assert_int_equal(e->begun_ns, e->published_ns);
}

/* ---- liars ---- */

#define LIE(name, field, ...) \
	static void name(void **state) \
	{ \
		struct kn_slot_head h = head_of(0, 5); \
		struct kn_job_result r; \
		(void)state; \
		prepare(); \
		r = good_result(); \
		__VA_ARGS__; \
		say(h, &r); \
		expect_violation(field); \
	}

LIE(a_cancel_that_nobody_asked_for, "result.cause", r.cause = KN_CAUSE_CANCEL)
LIE(a_stop_that_nobody_asked_for, "result.cause", r.cause = KN_CAUSE_STOP)
LIE(a_result_of_a_task_never_handed_out, "result.task", h.task = 1)
LIE(a_result_beyond_the_table, "result.task", h.task = 0xfffffff0)
LIE(a_result_of_another_attempt, "result.task", h.gen = 4)
LIE(a_result_of_attempt_zero, "result.task", h.gen = 0)
LIE(a_result_of_another_workers_task, "result.task", s->entry[0].worker = 0)
LIE(a_result_of_an_earlier_incarnation, "result.task", s->entry[0].incarnation = 6)
LIE(a_kind_nobody_knows, "result.kind", h.kind = 77)
LIE(a_kind_of_zero, "result.kind", h.kind = 0)
LIE(flags_that_mean_nothing, "result.flags", h.flags = 1)
LIE(a_type_that_means_nothing, "result.type", h.type = 9)
LIE(descriptors_that_are_not_there, "result.fd_n", h.fd_n = 3)
LIE(an_area_of_its_own, "result.area", h.area = 0)
LIE(an_offset_elsewhere, "result.payload_off", h.payload_off = 64)
LIE(a_length_beyond_the_slot, "result.payload_len", h.payload_len = 513)
LIE(a_length_beyond_everything, "result.payload_len", h.payload_len = 0xffffffff)
LIE(files_that_never_came, "result.file_n", r.file_n = 1)
LIE(a_second_ping, "ping.task", h.kind = KN_REQ_PING; h.task = KN_NO_ENTRY; h.gen = 7)

static void
a_truncated_record(void **state)
{
	struct kn_slot_head h = head_of(0, 5);
	struct kn_job_result r = good_result();

	(void)state;
	prepare();
	h.payload_len = 3;
	say(h, &r);
	kn_view_look(w);
	assert_non_null(w->bad);
	assert_false(was_fed(KN_EV_RESULT, 0, 5));
}

static void
a_result_before_the_claim(void **state)
{
	struct kn_job_result r = good_result();

	(void)state;
	w->ready = true;
	hand_out(0, 5);
	say(head_of(0, 5), &r);
	expect_violation("result.claimed");
}

/* Of an only worker's calls that are answered the claims are looked at together. */
static void
claims_taken_for_granted_are_looked_at_later(void **state)
{
	struct kn_entry *e;

	(void)state;
	s->mute = true;
	w->ready = true;
	e = hand_out(0, 5);
	claim(e);
	assert_true(kn_view_is_claimed(w, e));
	assert_true(w->tx.offered & 1u << e->slot);
	kn_view_look_claims(w); /* it was there */
	assert_null(w->bad);
	assert_false(w->tx.offered & 1u << e->slot);
	e = hand_out(1, 6); /* and this one will not be */
	assert_true(kn_view_is_claimed(w, e));
	assert_null(w->bad);
	kn_view_look_claims(w);
	assert_string_equal(w->bad, "result.claimed");
}

/* Its master comes by the socket before the result, or what the task wrote is not
 * heard. */
static void
a_result_without_its_terminal(void **state)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	struct kn_job_result r;
	struct kn_err e;

	(void)state;
	task.stdio = KN_STDIO_RELAY;
	task.pty = true;
	task.streams[0] = task.streams[1] = task.streams[2] = null;
	s->entry[0].task = &task;
	assert_int_equal(kn_relay_open(s, &s->entry[0], &e), 0);
	prepare();
	r = good_result();
	r.step = KN_EXEC_STARTED;
	say(head_of(0, 5), &r);
	expect_violation("result.terminal");
	kn_relay_close(s);
	close(null);
}

static void
a_second_result(void **state)
{
	struct kn_job_result r = good_result();

	(void)state;
	prepare();
	say(head_of(0, 5), &r);
	say(head_of(0, 5), &r);
	kn_view_look(w);
	assert_string_equal(w->bad, "result.task");
	assert_true(was_fed(KN_EV_RESULT, 0, 5)); /* the first one was true */
	assert_int_equal(s->events.n, 1);
}

static void
a_result_before_it_is_ready(void **state)
{
	struct kn_job_result r = good_result();

	(void)state;
	claim(hand_out(0, 5));
	say(head_of(0, 5), &r);
	kn_view_look(w);
	assert_string_equal(w->bad, "result.kind");
}

static void
a_claim_of_what_was_never_offered(void **state)
{
	(void)state;
	prepare();
	kn_shm_store64_release(&w->slice.control->submit_claimed,
	    kn_shm_load64_acquire(&w->slice.control->submit_claimed) ^ 1u << 9);
	expect_violation("submit_claimed");
}

static void
return_slots_never_published_right(void **state)
{
	(void)state;
	prepare();
	kn_shm_store32_release(&w->slice.control->return_published, 0xffffffff);
	kn_view_look(w);
	assert_non_null(w->bad);
}

static void
a_bell_rung_without_cause(void **state)
{
	(void)state;
	prepare();
	for (unsigned i = 0; i <= KN_IDLE_RINGS + 1 && !w->bad; i++) {
		w->rang = true;
		kn_view_look(w);
	}
	assert_string_equal(w->bad, "bell");
}

static void
the_pong_must_be_the_ping(void **state)
{
	struct kn_slot_head h = { .kind = KN_REQ_PING,
		.task = KN_NO_ENTRY,
		.gen = 7,
		.area = KN_AREA_INLINE,
		.payload_len = 8 };
	uint8_t bytes[KN_INLINE_MAX];
	uint64_t wrong;
	struct kn_slot_head got;
	struct kn_err e;

	(void)state;
	assert_int_equal(kn_publish_ping(w, &e), 0);
	wrong = w->ping_nonce ^ 1;
	assert_true(kn_return_publish(&tx, &w->slice, &h, &wrong));
	kn_view_look(w);
	assert_string_equal(w->bad, "ping.payload");
	/* the right bytes, but the slot was not claimed */
	w->bad = NULL;
	assert_true(kn_return_publish(&tx, &w->slice, &h, &w->ping_nonce));
	kn_view_look(w);
	assert_string_equal(w->bad, "ping.claimed");
	assert_false(w->ready);
	/* as it should be */
	w->bad = NULL;
	assert_true(kn_submit_claim(&w->slice, w->ping_slot, &got, bytes));
	assert_true(kn_return_publish(&tx, &w->slice, &got, bytes));
	kn_view_look(w);
	assert_null(w->bad);
	assert_true(w->ready);
	assert_int_equal(s->events.v[0].type, KN_EV_READY);
}

/* A lane that is scribbled over, word by word, forever: no crash, no result. */
static void
random_words_all_over_the_slice(void **state)
{
	uint32_t *words = (uint32_t *)w->slice.control;
	size_t n = s->arena.layout.submit_area_off / sizeof *words;
	uint32_t seed = 12345;

	(void)state;
	prepare();
	for (int round = 0; round < 20000; round++) {
		for (int k = 0; k < 8; k++) {
			seed = seed * 1664525 + 1013904223;
			words[(seed >> 8) % n] = seed * 2654435761u;
		}
		kn_view_look(w);
		w->bad = NULL;
		w->bad_fed = false;
		assert_false(was_fed(KN_EV_RESULT, 0, 5));
		s->events.n = s->replies.n = 0;
	}
}

static void
an_area_that_is_never_freed_ends_the_worker(void **state)
{
	static char big[600 * 1024];
	char *arg = big;
	struct kn_entry *e;

	(void)state;
	w->ready = true;
	memset(big, 'x', sizeof big - 1);
	task.argv = &arg;
	e = hand_out(0, 5); /* 1 MiB of area: one fits, two do not */
	claim(e);
	kn_view_look(w);
	say(head_of(0, 5), &(struct kn_job_result){ 0 });
	kn_view_look(w);
	assert_null(w->bad);
	s->entry[1].task = &task;
	s->entry[1].gen = 6;
	s->entry[1].job_bytes = e->job_bytes;
	assert_false(kn_publish(w, &s->entry[1]));
	assert_string_equal(w->bad, "submit_freed");
	task.argv = argv_of_it;
}

int
main(void)
{
#define VIEW(t) cmocka_unit_test_setup_teardown(t, start, stop)
	const struct CMUnitTest tests[] = {
		VIEW(an_honest_result_is_fed_after_its_claim),
		VIEW(a_cell_that_failed_is_tried_again),
		VIEW(but_not_once_its_input_is_used),
		VIEW(ended_by_request_is_believed_where_it_was_requested),
		VIEW(a_cancel_that_nobody_asked_for),
		VIEW(a_stop_that_nobody_asked_for),
		VIEW(times_are_held_between_publication_and_now),
		VIEW(a_begun_word_is_believed_within_bounds_only),
		VIEW(a_result_of_a_task_never_handed_out),
		VIEW(a_result_beyond_the_table),
		VIEW(a_result_of_another_attempt),
		VIEW(a_result_of_attempt_zero),
		VIEW(a_result_of_another_workers_task),
		VIEW(a_result_of_an_earlier_incarnation),
		VIEW(a_kind_nobody_knows),
		VIEW(a_kind_of_zero),
		VIEW(flags_that_mean_nothing),
		VIEW(a_type_that_means_nothing),
		VIEW(descriptors_that_are_not_there),
		VIEW(an_area_of_its_own),
		VIEW(an_offset_elsewhere),
		VIEW(a_length_beyond_the_slot),
		VIEW(a_length_beyond_everything),
		VIEW(files_that_never_came),
		VIEW(a_second_ping),
		VIEW(a_truncated_record),
		VIEW(a_result_before_the_claim),
		VIEW(claims_taken_for_granted_are_looked_at_later),
		VIEW(a_result_without_its_terminal),
		VIEW(a_second_result),
		VIEW(a_result_before_it_is_ready),
		VIEW(a_claim_of_what_was_never_offered),
		VIEW(return_slots_never_published_right),
		VIEW(a_bell_rung_without_cause),
		VIEW(the_pong_must_be_the_ping),
		VIEW(random_words_all_over_the_slice),
		VIEW(an_area_that_is_never_freed_ends_the_worker),
	};

	sigaction(SIGPIPE, &(struct sigaction){ .sa_handler = SIG_IGN }, NULL);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
