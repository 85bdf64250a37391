/* tests/evil/lane.c: lies in the lanes: claims, answers that are nobody's, the ping,
 * the bell, the stop word. */
#include <signal.h>
#include <string.h>

#include "evil.h"
#include "ipc/bell.h"
#include "ipc/clock.h"
#include "ipc/control.h"
#include "sandbox/stub/sys.h"

/* ---- the ping ---- */

static void
silent(struct kn_stub *s)
{
	(void)s;
	evil_sleep();
}

static void
leave(struct kn_stub *s)
{
	kn_serve_abandon(s);
}

static void
crash(struct kn_stub *s)
{
	(void)s;
	__builtin_trap();
}

/* Claim the ping, change the answer, go on. */
static void
pong(struct kn_stub *s, void (*change)(struct kn_slot_head *, uint8_t *), int times)
{
	struct kn_waiting w = s->waiting[s->waiting_at];
	uint8_t bytes[KN_INLINE_MAX] = { 0 };
	struct kn_slot_head h;

	s->waiting_n = 0;
	if (!kn_submit_claim_task(&s->slice, (int)w.slot, w.task, w.gen, &h, bytes))
		kn_serve_abandon(s);
	if (change)
		change(&h, bytes);
	for (int i = 0; i < times; i++)
		(void)evil_publish(s, &h, bytes);
}

static void
other_nonce(struct kn_slot_head *h, uint8_t *bytes)
{
	(void)h;
	bytes[0] ^= 1;
}

static void
short_nonce(struct kn_slot_head *h, uint8_t *bytes)
{
	(void)bytes;
	h->payload_len = 4;
}

static void
other_incarnation(struct kn_slot_head *h, uint8_t *bytes)
{
	(void)bytes;
	h->gen++;
}

static void
pong_wrong(struct kn_stub *s)
{
	pong(s, other_nonce, 1);
}
static void
pong_short(struct kn_stub *s)
{
	pong(s, short_nonce, 1);
}
static void
pong_other(struct kn_stub *s)
{
	pong(s, other_incarnation, 1);
}
static void
pong_twice(struct kn_stub *s)
{
	pong(s, NULL, 2);
}

/* Read the nonce and send it back without having claimed the slot. */
static void
pong_unclaimed(struct kn_stub *s)
{
	const struct kn_slot *slot =
	    &s->slice.submit_slots[s->waiting[s->waiting_at].slot];
	struct kn_slot_head h = slot->head;
	uint8_t bytes[KN_INLINE_MAX];

	memcpy(bytes, slot->inline_bytes, sizeof bytes);
	s->waiting_n = 0;
	(void)evil_publish(s, &h, bytes);
	evil_sleep();
}

static void
result_before_ready(struct kn_stub *s)
{
	uint8_t bytes[KN_INLINE_MAX];
	struct kn_slot_head h;

	evil_answer(&h, bytes, 0, 1, 0);
	(void)evil_publish(s, &h, bytes);
}

/* ---- claims ---- */

static void
flip_claims(struct kn_stub *s, uint32_t bits)
{
	uint64_t *word = &s->slice.control->submit_claimed;

	(void)__atomic_xor_fetch(word, (uint64_t)bits, __ATOMIC_SEQ_CST);
	evil_ring(s);
}

static void
claims_nothing(struct kn_stub *s)
{
	(void)s;
	evil_sleep();
}

static void
claims_everything(struct kn_stub *s)
{
	flip_claims(s, UINT32_MAX);
	evil_sleep();
}

/* Claimed, given back, claimed: the supervisor sees one of them. */
static void
flickers(struct kn_stub *s)
{
	for (;;)
		flip_claims(s, 1u << s->waiting[s->waiting_at].slot);
}

static void
never_answers(struct kn_stub *s)
{
	struct kn_slot_head h;
	struct kn_waiting w;

	(void)evil_claim(s, &w, &h);
	evil_ring(s);
	evil_sleep();
}

/* As above, with a begun word of its own making. */
static void
begin_and_sleep(struct kn_stub *s, uint64_t ns)
{
	struct kn_slot_head h;
	struct kn_waiting w;

	(void)evil_claim(s, &w, &h);
	kn_control_begin(s->slice.control, w.task, w.gen, ns);
	evil_ring(s);
	evil_sleep();
}
static void
began_in_the_future(struct kn_stub *s)
{
	begin_and_sleep(s, UINT64_MAX);
}
static void
began_long_ago(struct kn_stub *s)
{
	begin_and_sleep(s, 1);
}

/* Of what runs on it says that it is over: that buys it teardown_ms, and no more. */
static void
over_and_runs_on(struct kn_stub *s)
{
	struct kn_slot_head h;
	struct kn_waiting w;

	(void)evil_claim(s, &w, &h);
	kn_control_begin(s->slice.control, w.task, w.gen, kn_clock_now());
	kn_control_over(s->slice.control, w.task, w.gen);
	evil_ring(s);
	evil_sleep();
}

/* The same of all attempts that there may be but its own. */
static void
over_of_others(struct kn_stub *s)
{
	struct kn_slot_head h;
	struct kn_waiting w;

	(void)evil_claim(s, &w, &h);
	kn_control_begin(s->slice.control, w.task, w.gen, kn_clock_now());
	evil_ring(s);
	for (uint32_t i = 0;; i++)
		kn_control_over(s->slice.control, i % 64, w.gen + 1 + i % 97);
}

/* No lie: its first task is long over, and the answer takes it 5 s. */
static void
late_head(struct kn_slot_head *h, uint8_t bytes[KN_INLINE_MAX])
{
	(void)h;
	(void)bytes;
	evil.head = NULL;
	evil_pause_ms(5000);
}
static void
long_in_the_end(struct kn_stub *s)
{
	(void)s;
	evil.head = late_head;
}

static void
other_begun(uint32_t *task, uint32_t *gen, uint64_t *ns)
{
	*task = evil_random();
	*gen = evil_random();
	*ns = evil_random();
}
static void
begins_another(struct kn_stub *s)
{
	(void)s;
	evil.begin = other_begun;
}

static void
dies_after_claim(struct kn_stub *s)
{
	struct kn_slot_head h;
	struct kn_waiting w;

	(void)evil_claim(s, &w, &h);
	kn_serve_abandon(s);
}

/* ---- answers to what was not asked ---- */

static void
answer_to(struct kn_stub *s, uint32_t task, uint32_t gen, int times)
{
	uint8_t bytes[KN_INLINE_MAX];
	struct kn_slot_head h;

	evil_answer(&h, bytes, task, gen, 0);
	for (int i = 0; i < times; i++)
		(void)evil_publish(s, &h, bytes);
}

static void
answers_twice(struct kn_stub *s)
{
	struct kn_slot_head h;
	struct kn_waiting w;

	(void)evil_claim(s, &w, &h);
	answer_to(s, w.task, w.gen, 2);
}

static void
answers_unclaimed(struct kn_stub *s)
{
	const struct kn_waiting *w = &s->waiting[s->waiting_at];

	answer_to(s, w->task, w->gen, 1);
	evil_sleep();
}

/* Indices and stamps near its own are its siblings'. */
static void
answers_for_others(struct kn_stub *s)
{
	const struct kn_waiting *w = &s->waiting[s->waiting_at];

	for (uint32_t t = 0; t < 8; t++)
		for (uint32_t g = 1; g < 4; g++)
			if (t != w->task)
				answer_to(s, t, g, 1);
	evil_sleep();
}

static void
answers_an_old_one(struct kn_stub *s)
{
	struct kn_slot_head h;
	struct kn_waiting w;

	(void)evil_claim(s, &w, &h);
	answer_to(s, w.task, w.gen - 1, 1);
	evil_sleep();
}

static void
answers_out_of_range(struct kn_stub *s)
{
	answer_to(s, UINT32_MAX - 1, 1, 1);
	evil_sleep();
}

/* A full lane of answers, all the same, again and again. */
static void
floods_the_lane(struct kn_stub *s)
{
	struct kn_slot_head h;
	struct kn_waiting w;

	(void)evil_claim(s, &w, &h);
	for (;;)
		answer_to(s, w.task, w.gen, KN_SLOTS);
}

/* Bits without anything in the slots. */
static void
empty_slots(struct kn_stub *s)
{
	memset(s->slice.return_slots, 0, KN_SLOTS * sizeof s->slice.return_slots[0]);
	__atomic_store_n(
	    &s->slice.control->return_published, UINT32_MAX, __ATOMIC_SEQ_CST);
	evil_ring(s);
	evil_sleep();
}

/* ---- the bell ---- */

static void
rings_for_ever(struct kn_stub *s)
{
	for (;;)
		evil_ring(s);
}

static void
never_rings(struct kn_stub *s)
{
	(void)s;
	evil.no_ring = true;
}

/* Takes the arm away, so that it never has to ring. */
static void
disarms(struct kn_stub *s)
{
	evil.no_ring = true;
	for (int i = 0; i < 100000; i++)
		__atomic_store_n(&s->slice.control->armed, 0, __ATOMIC_SEQ_CST);
}

/* ---- the stop ---- */

static void
goes_on(struct kn_stub *s)
{
	(void)s;
	evil_sleep();
}

/* Says that it stopped though nobody asked, and works on. */
static void
acks_unasked(struct kn_stub *s)
{
	kn_control_ack_stop(s->slice.control);
	evil_ring(s);
}

static void
ack_is_garbage(struct kn_stub *s)
{
	for (int i = 0; i < 200; i++) {
		__atomic_store_n(
		    &s->slice.control->stop_ack, evil_random(), __ATOMIC_SEQ_CST);
		__atomic_store_n(
		    &s->slice.control->stop, evil_random(), __ATOMIC_SEQ_CST);
		evil_ring(s);
		evil_pause_ms(1);
	}
	evil_sleep();
}

/* Acknowledges, and answers once more what it never had. */
static void
ack_then_answers(struct kn_stub *s)
{
	answer_to(s, 0, 1, 1);
	evil_sleep();
}

const struct evil_lie evil_lane_lies[] = {
	{ "never-ready", EVIL_START, silent },
	{ "leaves-at-start", EVIL_START, leave },
	{ "crashes-at-start", EVIL_START, crash },
	{ "pong-wrong", EVIL_START, pong_wrong },
	{ "pong-short", EVIL_START, pong_short },
	{ "pong-other-incarnation", EVIL_START, pong_other },
	{ "pong-twice", EVIL_START, pong_twice },
	{ "pong-unclaimed", EVIL_START, pong_unclaimed },
	{ "result-before-ready", EVIL_START, result_before_ready },
	{ "claims-nothing", EVIL_TASK, claims_nothing },
	{ "claims-everything", EVIL_TASK, claims_everything },
	{ "claim-flickers", EVIL_TASK, flickers },
	{ "never-answers", EVIL_TASK, never_answers },
	{ "began-in-the-future", EVIL_TASK, began_in_the_future },
	{ "began-long-ago", EVIL_TASK, began_long_ago },
	{ "begins-another", EVIL_SERVE, begins_another },
	{ "over-and-runs-on", EVIL_TASK, over_and_runs_on },
	{ "over-of-others", EVIL_TASK, over_of_others },
	{ "long-in-the-end", EVIL_SERVE, long_in_the_end },
	{ "dies-after-claim", EVIL_TASK, dies_after_claim },
	{ "crashes-with-a-task", EVIL_TASK, crash },
	{ "answers-twice", EVIL_TASK, answers_twice },
	{ "answers-unclaimed", EVIL_TASK, answers_unclaimed },
	{ "answers-for-others", EVIL_TASK, answers_for_others },
	{ "answers-an-old-one", EVIL_TASK, answers_an_old_one },
	{ "answers-out-of-range", EVIL_TASK, answers_out_of_range },
	{ "floods-the-lane", EVIL_TASK, floods_the_lane },
	{ "empty-slots", EVIL_TASK, empty_slots },
	{ "rings-for-ever", EVIL_TASK, rings_for_ever },
	{ "never-rings", EVIL_SERVE, never_rings },
	{ "disarms", EVIL_TASK, disarms },
	{ "acks-unasked", EVIL_TASK, acks_unasked },
	{ "stop-acked-goes-on", EVIL_STOP, goes_on },
	{ "stop-ignored", EVIL_STOP, goes_on },
	{ "stop-ack-garbage", EVIL_STOP, ack_is_garbage },
	{ "stop-ack-then-answers", EVIL_STOP, ack_then_answers },
	{ NULL, EVIL_START, NULL },
};
