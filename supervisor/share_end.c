/* supervisor/share_end.c: shared submit: what is asked back, claimants that come, go,
 * or stand in the way; see share.h.
 *
 * A claimant that dies at any step leaves a word of want, acks and a begun word. When
 * it is reaped all three are settled in one go: nobody heeds its want any more, what it
 * has claimed is the core's again (but what it was at, which is answered by how it
 * ended), and what it had no more than wanted is there for the others, who have gone on
 * all the time in the other regions. Its successor has its place, its claim words, and
 * starts where it left off.
 */
#include <fcntl.h>

#include "ipc/clock.h"
#include "supervisor/inner.h"

enum {
	STUCK_MS = 500, /* where there is no claim_ms to take half of */
	STUCK_LOOK_MS = 50,
	AGAIN_NS = 1000 * 1000, /* between looks at what was not decided */
	SHELF_NS = 50 * 1000 * 1000,
};

/* ---- asked back ---- */

static enum kn_back
ask_back(struct kn_share_bank *b, struct kn_entry *e)
{
	struct kn_sup *s = e->sup;
	enum kn_back got = KN_BACK_OURS;

	if (e->shelved) {
		kn_share_unshelve(b, e);
		return KN_BACK_OURS;
	}
	if (b->offer.now[e->slot].task != e->index ||
	    b->offer.now[e->slot].gen != e->gen)
		return KN_BACK_GONE; /* and the slot is another's already */
	kn_offer_publish(&b->offer); /* it may not have been seen by anybody yet */
	got = kn_offer_take_back(&b->offer, e->slot);
	if (got == KN_BACK_GONE)
		kn_share_look(&s->wk[b->first]);
	return got;
}

enum kn_back
kn_share_take_back(struct kn_wk *w, struct kn_entry *e)
{
	struct kn_share_bank *b = kn_share_bank_of(w);
	enum kn_back got;

	e->taking = true;
	got = ask_back(b, e);
	if (got == KN_BACK_OURS) {
		e->taking = false;
	} else if (got == KN_BACK_BUSY) {
		if (!b->taking)
			b->taking_ns = kn_clock_now();
		b->taking |= 1u << e->slot;
	}
	return got;
}

/* A late answer to TAKE_BACK. */
static void
give_back(struct kn_entry *e)
{
	struct kn_event ev = kn_act_taken_back(&e->sup->wk[e->worker], e);

	kn_turn_feed(e->sup, &ev);
}

void
kn_share_ask_again(struct kn_sup *s, struct kn_share_bank *b)
{
	for (uint32_t m = b->taking; m; m &= m - 1) {
		uint32_t slot = (uint32_t)__builtin_ctz(m);
		const struct kn_offered *o = &b->offer.now[slot];
		struct kn_entry *e = kn_share_entry(s, o->task, o->gen);
		enum kn_back got;

		if (!e || !e->taking) {
			b->taking &= ~(1u << slot);
			continue;
		}
		got = ask_back(b, e);
		if (got != KN_BACK_BUSY)
			b->taking &= ~(1u << slot);
		if (got == KN_BACK_OURS)
			give_back(e);
	}
}

/* ---- who comes ---- */

void
kn_share_join(struct kn_wk *w)
{
	struct kn_share_bank *b = kn_share_bank_of(w);

	w->joined = true;
	kn_offer_join(&b->offer, w->index - b->first);
}

void
kn_share_ready(struct kn_wk *w)
{
	struct kn_share_bank *b = kn_share_bank_of(w);
	struct kn_offer *o = &b->offer;
	uint32_t c = w->index - b->first, task[KN_HELD_MAX], gen[KN_HELD_MAX], n;

	b->homes |= 1u << c; /* what lies there was published while it could not be
				woken, and it may sleep */
	n = o->held_n[c];
	for (uint32_t i = 0; i < n; i++) {
		task[i] = o->held[c][i].task;
		gen[i] = o->held[c][i].second ? 0 : o->held[c][i].gen;
	}
	for (uint32_t i = 0; i < n; i++) {
		struct kn_entry *e = kn_share_entry(w->sup, task[i], gen[i]);

		if (e && !e->claimed)
			kn_share_claimed(w, e);
	}
}

/* ---- who goes ---- */

static bool
is_among(const struct kn_held *v, int n, const struct kn_entry *e)
{
	for (int i = 0; i < n; i++)
		if (v[i].task == e->index && v[i].gen == e->gen)
			return true;
	return false;
}

/* Claimed by w and not left by it: another one, misled by a liar's ack, has it too, and
 * its answer is the one that counts. */
static void
pass_on(struct kn_wk *w, struct kn_entry *e)
{
	struct kn_share_bank *b = kn_share_bank_of(w);
	const struct kn_offer *o = &b->offer;

	for (uint32_t c = 0; c < o->bank.claimant_n; c++) {
		struct kn_wk *other = &w->sup->wk[b->first + c];

		if (other == w || !is_among(o->held[c], (int)o->held_n[c], e))
			continue;
		if (other->live && other->ready && !other->ready_untold)
			kn_share_claimed(other, e);
		return;
	}
}

/* Reaped: its words are settled. */
static void
bury(struct kn_wk *w)
{
	struct kn_share_bank *b = kn_share_bank_of(w);
	struct kn_sup *s = w->sup;
	struct kn_held left[KN_HELD_MAX];
	int n;

	kn_share_look(w);
	n = kn_offer_bury(&b->offer, w->index - b->first, left);
	w->joined = false;
	b->homes |= 1u << (w->index - b->first); /* to wake those who gave up for it */
	for (int i = 0; i < n; i++) {
		struct kn_entry *e = kn_share_entry(s, left[i].task, left[i].gen);

		/* Taken by one that was not to take anything. */
		if (!e || e->claimed || e->shelved)
			continue;
		e->waited = true; /* the dead one had it */
		if (e->taking)
			give_back(e);
		else
			kn_share_shelve(b, e);
	}
	for (uint32_t i = 0; i < s->task_max; i++) {
		struct kn_entry *e = &s->entry[i];

		if (e->state == KN_ENTRY_PLACED && e->claimed &&
		    e->worker == (int)w->index && !is_among(left, n, e))
			pass_on(w, e);
	}
}

static bool
is_waiting(const struct kn_entry *e, const struct kn_wk *w)
{
	return e->state == KN_ENTRY_PLACED && e->worker == (int)w->index && !e->claimed;
}

/* Unclaimed ones of its lane, in slots or on the shelf: out of the bank, so that the
 * core may give them to others. False: there are some, also if they are new: when the
 * core is told of a claim it may fill the lane of a worker that it takes for alive. */
static bool
empty_lane(struct kn_wk *w)
{
	struct kn_share_bank *b = kn_share_bank_of(w);
	struct kn_sup *s = w->sup;

	for (uint32_t i = 0; w->outstanding && i < s->task_max; i++) {
		struct kn_entry *e = &s->entry[i];

		if (is_waiting(e, w) && (e->slot >= 0 || e->shelved) &&
		    ask_back(b, e) == KN_BACK_OURS)
			kn_publish_forget(e);
	}
	for (uint32_t i = 0; w->outstanding && i < s->task_max; i++)
		if (is_waiting(&s->entry[i], w))
			return false;
	return true;
}

bool
kn_share_leave(struct kn_wk *w)
{
	bool all;

	if (w->joined)
		bury(w);
	all = empty_lane(w);
	w->sup->share->again |= !all;
	return all;
}

/* ---- who is in the way ---- */

static uint64_t
bound_ns(const struct kn_sup *s)
{
	uint32_t ms = s->policy->timeouts.claim_ms / 2;

	return (ms ? ms : STUCK_MS) * KN_MS_NS;
}

void
kn_share_watch(struct kn_sup *s, struct kn_share_bank *b)
{
	(void)s;
	b->stuck_ns = kn_clock_now() + STUCK_LOOK_MS * KN_MS_NS;
}

/* Stopped in the midst of a claim: then it has claimed nothing that it has not run. Who
 * is at a call has let go long ago, or lies. */
static void
end_stuck(struct kn_wk *w, const char *why)
{
	uint32_t task, gen;
	uint64_t ns;

	if (!w->live || w->bad || w->res.kill_by_ns)
		return;
	if (w->ready && kn_control_begun(w->slice.control, &task, &gen, &ns)) {
		kn_view_violation(w, "want: a region, kept while a call runs");
		kn_view_tell_bad(w);
		return;
	}
	KN_LOG(&w->sup->log, KN_NS_LIFECYCLE, (int)w->index, "kill why=stuck: %s", why);
	if (!kn_resident_kill(w, KN_CAUSE_STOP))
		kn_launch_kill(w->sup->launcher, w->index, &w->lw);
}

/* It wants a region in the midst of a call. Who is honest has let go before the call
 * begins, and wants the next one after it has said that it ended: between two looks at
 * the same call there is nothing to want. So two that swap regions, whose words never
 * stay as they are, are found as well. */
static bool
wants_at_call(struct kn_share_bank *b, struct kn_wk *w)
{
	uint32_t bit = 1u << (w->index - b->first);
	uint32_t task[2], gen[2];
	uint64_t ns;

	if (!w->live || !w->ready ||
	    !kn_control_begun(w->slice.control, &task[0], &gen[0], &ns))
		return false;
	return (kn_offer_wanting(&b->offer) & bit) &&
	       kn_control_begun(w->slice.control, &task[1], &gen[1], &ns) &&
	       task[0] == task[1] && gen[0] == gen[1];
}

static void
look_for_stuck(struct kn_sup *s, struct kn_share_bank *b, uint64_t now_ns)
{
	uint32_t stuck = kn_offer_stuck(&b->offer, now_ns, bound_ns(s));

	b->stuck_ns = 0;
	for (uint32_t m = stuck; m; m &= m - 1)
		end_stuck(&s->wk[b->first + (uint32_t)__builtin_ctz(m)],
		    "it wants a region and does not take from it");
	for (uint32_t m = b->offer.live & ~stuck; m; m &= m - 1) {
		struct kn_wk *w = &s->wk[b->first + (uint32_t)__builtin_ctz(m)];

		if (wants_at_call(b, w))
			end_stuck(w, "it wants a region and is at a call");
	}
	for (uint32_t c = 0; c < b->offer.bank.claimant_n; c++)
		if ((b->offer.live >> c & 1) && b->offer.want_word[c])
			b->stuck_ns = now_ns + STUCK_LOOK_MS * KN_MS_NS;
}

/* Under cas-mask nobody can tell who keeps the regions. */
static void
look_for_blocked(struct kn_sup *s, struct kn_share_bank *b, uint64_t now_ns)
{
	if (!b->taking || now_ns - b->taking_ns < 4 * bound_ns(s))
		return;
	for (uint32_t c = 0; c < b->offer.bank.claimant_n; c++)
		end_stuck(
		    &s->wk[b->first + c], "some worker of this bank keeps regions");
	b->taking_ns = now_ns;
}

/* Pages that long arguments took, once nothing has used them for a while. */
static void
give_pages_back(struct kn_sup *s, struct kn_share_bank *b)
{
	const struct kn_layout *l = &s->arena.layout;

	b->payload_ns = 0;
	if (b->backed)
		(void)fallocate(s->arena.fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
		    (off_t)(kn_layout_bank_off(l, b->index) +
			    kn_layout_bank_area_off(l)),
		    (off_t)b->backed);
	b->backed = 0;
}

static uint64_t
quiet_ns(const struct kn_share_bank *b)
{
	return b->payload_ns && b->placed == 0
		   ? b->payload_ns + KN_RESIDENT_QUIET_MS * KN_MS_NS
		   : 0;
}

static uint64_t
sooner(uint64_t a, uint64_t b)
{
	return !a || (b && b < a) ? b : a;
}

uint64_t
kn_share_due(const struct kn_sup *s, uint64_t now_ns)
{
	uint64_t due = s->share->again ? now_ns + AGAIN_NS : 0;

	for (uint32_t i = 0; i < s->share->bank_n; i++) {
		const struct kn_share_bank *b = &s->share->bank[i];

		due = sooner(due, b->stuck_ns);
		due = sooner(due, b->taking ? now_ns + AGAIN_NS : 0);
		due = sooner(due, b->shelf_n ? now_ns + SHELF_NS : 0);
		due = sooner(due, quiet_ns(b));
	}
	return due;
}

void
kn_share_timer(struct kn_sup *s, uint64_t now_ns)
{
	uint64_t core = kn_pool_deadline(s->pool);

	for (uint32_t i = 0; i < s->share->bank_n; i++) {
		struct kn_share_bank *b = &s->share->bank[i];

		/* What was claimed in time is known before time passes. */
		if (core && core <= now_ns)
			kn_share_look(&s->wk[b->first]);
		if (b->stuck_ns && b->stuck_ns <= now_ns)
			look_for_stuck(s, b, now_ns);
		if (b->taking)
			look_for_blocked(s, b, now_ns);
		if (quiet_ns(b) && quiet_ns(b) <= now_ns)
			give_pages_back(s, b);
	}
}
