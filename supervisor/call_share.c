/* supervisor/call_share.c: shared submit: calls into a bank, claims out of it; see
 * share.h. What becomes of those that leave or stand in the way: share_end.c.
 */
#include <string.h>

#include "ipc/clock.h"
#include "supervisor/inner.h"

struct kn_share_bank *
kn_share_bank_of(const struct kn_wk *w)
{
	struct kn_share *h = w->sup->share;

	return &h->bank[w->index / h->bank_size];
}

/* ---- the shelf ---- */

/* It needs room in the area, not only a slot. */
static bool
is_long(const struct kn_entry *e)
{
	return e->task->call.arg.n + strlen(kn_call_name(e)) > KN_INLINE_MAX;
}

/* In the order in which they were submitted: what the core takes back, and gives to
 * another, does not lose its turn. */
void
kn_share_shelve(struct kn_share_bank *b, struct kn_entry *e)
{
	struct kn_entry *entry = e->sup->entry;
	uint32_t before = KN_NO_ENTRY, next = b->shelf_head;

	while (next != KN_NO_ENTRY && entry[next].serial < e->serial) {
		before = next;
		next = entry[next].shelf_next;
	}
	e->shelved = e->waited = true;
	e->shelf_next = next;
	if (before == KN_NO_ENTRY)
		b->shelf_head = e->index;
	else
		entry[before].shelf_next = e->index;
	b->shelf_n++;
	b->shelf_short += !is_long(e);
}

void
kn_share_unshelve(struct kn_share_bank *b, struct kn_entry *e)
{
	struct kn_sup *s = e->sup;
	uint32_t before = KN_NO_ENTRY, at = b->shelf_head;

	while (at != e->index) {
		before = at;
		at = s->entry[at].shelf_next;
	}
	if (before == KN_NO_ENTRY)
		b->shelf_head = e->shelf_next;
	else
		s->entry[before].shelf_next = e->shelf_next;
	b->shelf_n--;
	b->shelf_short -= !is_long(e);
	e->shelved = false;
}

/* ---- publication ---- */

/* Into a slot, if there is one, and room for what does not fit. */
static enum kn_put
offer(struct kn_share_bank *b, struct kn_entry *e)
{
	const struct kn_task *t = e->task;
	struct kn_slot_head head = { .kind = KN_REQ_CALL,
		.task = e->index,
		.gen = e->gen,
		.area = KN_AREA_INLINE,
		.type = t->call.arg.type,
		.fn = t->call.fn,
		.abort = e->abort,
		.soft_ms = t->timeouts.task_ms };
	const struct kn_call_room room = { .offer = &b->offer,
		.area = b->offer.bank.area,
		.backed = &b->backed,
		.index = b->index };
	int slot = kn_offer_slot(&b->offer);
	uint8_t buf[KN_INLINE_MAX];
	enum kn_put put;

	if (slot < 0)
		return KN_PUT_NO_ROOM;
	/* Whoever takes the call may not know its name yet. */
	head.name_n = (uint32_t)strlen(kn_call_name(e));
	put = kn_call_put(e->sup, &room, e, &head, buf);
	/* What others give back has its pages: that is waited for. */
	if (put == KN_PUT_NO_MEMORY && b->offer.pay.live)
		return KN_PUT_NO_ROOM;
	if (put != KN_PUT_DONE)
		return put;
	if (head.area != KN_AREA_INLINE)
		b->payload_ns = e->sup->step_ns;
	kn_offer_put(&b->offer, slot, &head, buf);
	e->slot = slot;
	b->homes |= 1u << ((uint32_t)e->worker - b->first);
	e->sup->long_bytes = head.area == KN_AREA_INLINE ? 0 : head.payload_len;
	return KN_PUT_DONE;
}

/* Something waits that it may not pass: what needs a slot only does not wait for what
 * needs more. */
static bool
has_to_wait(const struct kn_share_bank *b, const struct kn_entry *e)
{
	return b->shelf_n && (b->shelf_short || is_long(e));
}

bool
kn_share_publish(struct kn_wk *w, struct kn_entry *e)
{
	struct kn_share_bank *b = kn_share_bank_of(w);
	enum kn_put put = KN_PUT_NO_ROOM;

	e->abort = kn_call_take_abort(w);
	e->aborted = e->died = e->taking = e->waited = false;
	e->broken = NULL;
	e->published_ns = w->sup->step_ns;
	e->area = e->slot = -1;
	e->state = KN_ENTRY_PLACED;
	e->worker = (int)w->index;
	e->incarnation = w->incarnation;
	w->outstanding++;
	b->placed++;
	if (!has_to_wait(b, e))
		put = offer(b, e);
	if (put == KN_PUT_NO_MEMORY)
		kn_publish_forget(e);
	else if (put != KN_PUT_DONE)
		kn_share_shelve(b, e);
	return put != KN_PUT_NO_MEMORY;
}

void
kn_share_forget(struct kn_wk *w, struct kn_entry *e)
{
	struct kn_share_bank *b = kn_share_bank_of(w);

	if (e->shelved)
		kn_share_unshelve(b, e);
	e->taking = false;
	b->placed--;
}

/* ---- waking ---- */

/* Whoever is awake looks once more before it sleeps; of the others as many are woken as
 * there is work for, those first to whom it was given. (Tried: to wake fewer where
 * calls are short, by how long they took of late, and to let workers spin for 50 us as
 * an only one does. No-ops, two workers, two busy CPUs: a third of the calls a second.)
 */
static void
wake(struct kn_sup *s, struct kn_share_bank *b)
{
	uint32_t need = (uint32_t)__builtin_popcount(b->offer.offered);
	uint32_t idle = kn_offer_idle(&b->offer);
	uint32_t order[2] = { idle & b->homes, idle & ~b->homes };

	for (int i = 0; i < 2; i++) {
		for (uint32_t m = order[i]; m && need; m &= m - 1) {
			struct kn_wk *w = &s->wk[b->first + (uint32_t)__builtin_ctz(m)];

			if (!w->ready)
				continue;
			w->to_wake = true;
			need--;
		}
	}
	b->homes = 0;
}

/* It would wait for ever. */
static void
refuse(struct kn_sup *s, struct kn_entry *e)
{
	struct kn_event ev = { .type = KN_EV_PUBLISH_FAILED,
		.now_ns = s->step_ns,
		.worker = (uint32_t)e->worker,
		.incarnation = e->incarnation,
		.task = e->index,
		.gen = e->gen };

	kn_publish_forget(e);
	kn_turn_feed(s, &ev);
}

/* The long ones in their turn, and past them those that need a slot only. */
static void
clear_shelf(struct kn_sup *s, struct kn_share_bank *b)
{
	struct kn_entry *none = NULL;
	uint32_t next = b->shelf_head;
	bool full = false;

	while (next != KN_NO_ENTRY && (!full || b->shelf_short)) {
		struct kn_entry *e = &s->entry[next];
		enum kn_put put = KN_PUT_NO_ROOM;

		next = e->shelf_next;
		if (!full || !is_long(e))
			put = offer(b, e);
		if (put == KN_PUT_DONE) {
			kn_share_unshelve(b, e);
		} else if (!is_long(e)) {
			break; /* there is no slot */
		} else {
			full = true;
			none = put == KN_PUT_NO_MEMORY ? e : none;
		}
	}
	if (none)
		refuse(s, none); /* the shelf may be another one then */
}

static void
flush(struct kn_sup *s, struct kn_share_bank *b)
{
	if (b->shelf_n) /* what is known to be taken leaves a slot */
		kn_share_look(&s->wk[b->first]);
	clear_shelf(s, b);
	if (b->taking)
		kn_share_ask_again(s, b);
	if (!b->homes)
		return;
	kn_offer_publish(&b->offer);
	/* Who has taken something since the last look is not idle. */
	kn_share_look(&s->wk[b->first]);
	kn_offer_publish(&b->offer);
	wake(s, b);
}

void
kn_share_flush(struct kn_sup *s)
{
	for (uint32_t i = 0; i < s->share->bank_n; i++) {
		struct kn_share_bank *b = &s->share->bank[i];

		flush(s, b);
		for (uint32_t m = b->offer.liars; m; m &= m - 1)
			kn_view_tell_bad(&s->wk[b->first + (uint32_t)__builtin_ctz(m)]);
	}
}

/* ---- claims ---- */

static bool
may_claim(const struct kn_wk *w)
{
	return w->live && w->ready && !w->ready_untold && !w->stop_acked;
}

/* The task of a publication in this bank. */
struct kn_entry *
kn_share_entry(struct kn_sup *s, uint32_t task, uint32_t gen)
{
	struct kn_entry *e = task < s->task_max ? &s->entry[task] : NULL;

	return e && e->state == KN_ENTRY_PLACED && e->gen == gen ? e : NULL;
}

static void
feed(struct kn_sup *s, const struct kn_event *ev)
{
	if (s->pumping)
		kn_turn_reply(s, ev);
	else
		kn_turn_feed(s, ev);
}

/* From the lane that it was in to w's. */
static void
move(struct kn_entry *e, struct kn_wk *w, struct kn_event *ev)
{
	struct kn_wk *from = &w->sup->wk[e->worker];

	ev->moved = 1;
	ev->from = from->index;
	from->outstanding--;
	w->outstanding++;
	e->worker = (int)w->index;
	e->incarnation = w->incarnation;
	e->taken_from = (int)from->index;
	e->taken_ns = ev->now_ns;
}

/* w has claimed e. */
void
kn_share_claimed(struct kn_wk *w, struct kn_entry *e)
{
	struct kn_sup *s = w->sup;
	struct kn_event ev = { .type = KN_EV_CLAIMED,
		.now_ns = s->step_ns,
		.worker = w->index,
		.incarnation = w->incarnation,
		.task = e->index,
		.gen = e->gen };
	bool asked = e->taking;

	e->claimed = true;
	e->taking = false;
	if (e->worker != (int)w->index)
		move(e, w, &ev);
	else if (asked)
		ev.type = KN_EV_TAKE_FAILED;
	if (e == w->quiet && !asked) {
		w->quiet_moved = ev.moved;
		w->quiet_from = ev.from;
		return;
	}
	feed(s, &ev);
}

/* In the order of their publication, which is that in which each runs its own. */
static void
sort(const struct kn_share_bank *b, struct kn_sup *s, struct kn_taken *v, int n)
{
	uint64_t key[KN_SLOTS];

	for (int i = 0; i < n; i++) {
		const struct kn_entry *e = kn_share_entry(s, v[i].task, v[i].gen);
		uint64_t k = e && e->slot >= 0 ? b->offer.now[e->slot].seq : 0;
		struct kn_taken t = v[i];
		int at = i;

		for (; at > 0 && key[at - 1] > k; at--) {
			key[at] = key[at - 1];
			v[at] = v[at - 1];
		}
		key[at] = k;
		v[at] = t;
	}
}

static void
judge(struct kn_sup *s, const struct kn_share_bank *b)
{
	for (uint32_t m = b->offer.liars; m; m &= m - 1) {
		uint32_t c = (uint32_t)__builtin_ctz(m);

		if (s->wk[b->first + c].live)
			kn_view_violation(
			    &s->wk[b->first + c], kn_lie_name(b->offer.lie[c]));
	}
}

void
kn_share_look(struct kn_wk *any)
{
	struct kn_share_bank *b = kn_share_bank_of(any);
	struct kn_sup *s = any->sup;
	struct kn_taken out[KN_SLOTS];
	int n = kn_offer_poll(&b->offer, out);

	if (b->offer.liars)
		judge(s, b);
	if (n > 1)
		sort(b, s, out, n);
	for (int i = 0; i < n; i++) {
		struct kn_wk *w = &s->wk[b->first + out[i].claimant];
		struct kn_entry *e = kn_share_entry(s, out[i].task, out[i].gen);

		if (e)
			b->taking &= ~(1u << e->slot);
		if (w->stop_acked)
			kn_view_violation(
			    w, "ack: a slot, after it had acknowledged a stop");
		if (e && !e->claimed && may_claim(w))
			kn_share_claimed(w, e);
	}
	if (b->offer.wanted && !b->stuck_ns)
		kn_share_watch(s, b);
}

enum kn_answer
kn_share_answer(struct kn_wk *w, uint32_t task, uint32_t gen, struct kn_event *ev)
{
	struct kn_share_bank *b = kn_share_bank_of(w);
	struct kn_entry *e = kn_share_entry(w->sup, task, gen);
	enum kn_answer whose;

	if (e && !e->claimed) {
		w->quiet = e;
		w->quiet_moved = w->quiet_from = 0;
		kn_share_look(w);
		w->quiet = NULL;
		ev->claimed = e->claimed && e->worker == (int)w->index;
		ev->moved = w->quiet_moved;
		ev->from = w->quiet_from;
	}
	whose = kn_offer_answer(&b->offer, w->index - b->first, task, gen);
	/* By the bank's account it is w's, from a liar that had it first and died
	 * before w was ready; it was settled then, and is another's by now. */
	return whose == KN_ANSWER_ACCEPT && !e ? KN_ANSWER_DROP : whose;
}
