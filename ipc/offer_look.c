/* ipc/offer_look.c: what the claimants of a bank have done: whose a task is, and who
 * lied, came, died or is in the way. Cards and labels: ipc/region.h. */
#include "ipc/offer.h"

#include "ipc/offer_int.h"
#include "ipc/shm.h"

enum { INLINE = -1, FREED = -2 }; /* in place of an area */

const char *
kn_lie_name(enum kn_lie l)
{
	static const char *const names[] = {
		[KN_LIE_NONE] = "none",
		[KN_LIE_ACK] = "ack: a slot that was not offered",
		[KN_LIE_TAKEN] = "taken: not what is in the slot",
		[KN_LIE_HOARD] = "ack: far more tasks than were answered",
		[KN_LIE_FREED] = "freed: an area of somebody else",
	};
	_Static_assert(sizeof names / sizeof *names == KN_LIE_N, "a name a lie");

	return (unsigned)l < KN_LIE_N ? names[l] : "unknown";
}

static void
lied(struct kn_offer *o, uint32_t c, enum kn_lie what)
{
	if (!(o->liars >> c & 1))
		o->lie[c] = what;
	o->liars |= 1u << c;
}

/* ---- what a claimant holds ---- */

static struct kn_held *
find_held(struct kn_offer *o, uint32_t c, uint32_t task, uint32_t gen)
{
	for (uint32_t i = 0; i < o->held_n[c]; i++)
		if (o->held[c][i].task == task && o->held[c][i].gen == gen)
			return &o->held[c][i];
	return NULL;
}

/* An area goes with its owner; who took the task as well has only read it. */
static void
free_of(struct kn_offer *o, const struct kn_held *h)
{
	if (!h->second)
		kn_offer_free_area(o, h->area);
}

static void
drop_held(struct kn_offer *o, uint32_t c, struct kn_held *h)
{
	*h = o->held[c][--o->held_n[c]];
}

static bool
hold(struct kn_offer *o, uint32_t c, const struct kn_offered *p, bool second)
{
	if (o->held_n[c] == KN_HELD_MAX) {
		lied(o, c, KN_LIE_HOARD);
		return false;
	}
	o->held[c][o->held_n[c]++] = (struct kn_held){ .task = p->task,
		.gen = p->gen,
		.area = (int16_t)p->area,
		.second = second };
	return true;
}

/* ---- taking stock ---- */

/* Claimant c owns what is offered in slot s. */
static bool
own_it(struct kn_offer *o, uint32_t c, uint32_t s)
{
	struct kn_offered *p = &o->now[s];

	if (!hold(o, c, p, false))
		return false;
	p->acked_by = 1u << c;
	o->offered &= ~(1u << s);
	o->unreported |= 1u << s;
	o->taker[s] = c;
	return true;
}

/* Claimant c has toggled its ack of slot s. True: it has taken what is offered there.
 * False: the toggle is none, and has to be made up for. */
static bool
one_ack(struct kn_offer *o, uint32_t c, uint32_t s)
{
	const struct kn_own *own = kn_bank_own(&o->bank, c);
	uint64_t seq = kn_shm_load64_acquire(&own->taken[s]); /* I2 */
	struct kn_offered *p = &o->now[s];
	uint32_t me = 1u << c;

	if ((o->offered >> s & 1) && seq == p->seq)
		return own_it(o, c, s);
	/* Somebody's lie made it look pending before it was: then it is published now.
	 */
	if ((o->staged >> s & 1) && seq == p->seq) {
		o->staged &= ~(1u << s);
		o->offered |= 1u << s;
		kn_offer_store_published(o, 1u << s);
		return own_it(o, c, s);
	}
	/* Somebody's lie made the slot look pending to this one, or this one lies: of
	 * the publication that it names another is the owner. Once is forgiven. */
	if (seq == o->before[s].seq)
		p = &o->before[s];
	if (seq && seq == p->seq && p->acked_by && !(p->acked_by & me)) {
		p->acked_by |= me;
		o->again++;
		(void)hold(o, c, p, true);
		return false;
	}
	lied(o, c, o->offered >> s & 1 ? KN_LIE_TAKEN : KN_LIE_ACK);
	return false;
}

/* Areas of toggled that came with what claimant c holds, as an owner or not. Returns
 * the rest. */
static uint32_t
freed_as(struct kn_offer *o, uint32_t c, uint32_t toggled, bool second)
{
	for (uint32_t i = 0; i < o->held_n[c] && toggled; i++) {
		struct kn_held *h = &o->held[c][i];

		if (h->second != second || h->area < 0 || !(toggled >> h->area & 1))
			continue;
		toggled &= ~(1u << h->area);
		free_of(o, h);
		h->area = FREED;
	}
	return toggled;
}

static void
freed_areas(struct kn_offer *o, uint32_t c, uint32_t toggled)
{
	/* If in doubt it was the one that frees nothing: an area that stays until the
	 * answer does no harm. */
	toggled = freed_as(o, c, toggled, true);
	if (freed_as(o, c, toggled, false))
		lied(o, c, KN_LIE_FREED);
}

/* Take in what claimant c has stored. Returns its word. */
uint64_t
kn_offer_look(struct kn_offer *o, uint32_t c)
{
	const struct kn_own *own = kn_bank_own(&o->bank, c);
	/* Freed first: an area is freed after its task's ack, which we then see. */
	uint32_t freed = kn_shm_load32_acquire(&own->freed); /* F2 */
	uint64_t word = kn_shm_load64_acquire(&own->word);   /* W4 */
	uint32_t toggled = kn_word_ack(word) ^ o->ack[c], mend = 0;

	o->ack[c] = kn_word_ack(word);
	for (; toggled; toggled &= toggled - 1) {
		uint32_t s = (uint32_t)__builtin_ctz(toggled);

		if (!one_ack(o, c, s))
			mend |= 1u << s;
	}
	if (freed != o->freed[c]) {
		freed_areas(o, c, freed ^ o->freed[c]);
		o->freed[c] = freed;
	}
	if (mend) {
		/* What we offer, and nothing else, is to look pending again. */
		o->own_ack ^= mend;
		kn_offer_store_own(o, 0);
		kn_offer_store_published(o, 0);
	}
	return word;
}

/* cas-mask: bits that no live claimant wants are a dead one's, or a liar's. Whoever set
 * one honestly said so before; the count tells whether the mask has changed since. */
static void
clear_orphans(struct kn_offer *o)
{
	uint64_t *mask = &o->bank.owners->mask;
	uint64_t seen = kn_shm_load64_acquire(mask); /* M2 */
	uint32_t wanted = 0;

	if (!(uint32_t)seen)
		return;
	for (uint32_t live = o->live; live; live &= live - 1) {
		uint32_t c = (uint32_t)__builtin_ctz(live);
		const struct kn_own *own = kn_bank_own(&o->bank, c);

		wanted |= (uint32_t)(kn_shm_load64_acquire(&own->word) >> 32); /* W4 */
	}
	if ((uint32_t)seen & ~wanted)
		(void)kn_shm_cas64_acqrel(mask, &seen, /* M2 */
		    (seen & ~(uint64_t)(uint32_t)~wanted) + (1ull << 32));
}

static void
look_at_all(struct kn_offer *o)
{
	o->wanted = 0;
	for (uint32_t live = o->live; live; live &= live - 1)
		o->wanted |=
		    kn_word_want(kn_offer_look(o, (uint32_t)__builtin_ctz(live)));
	if (o->how == KN_CLAIM_CAS_MASK)
		clear_orphans(o);
}

int
kn_offer_poll(struct kn_offer *o, struct kn_taken out[KN_SLOTS])
{
	int n = 0;

	look_at_all(o);
	for (; o->unreported; o->unreported &= o->unreported - 1) {
		uint32_t s = (uint32_t)__builtin_ctz(o->unreported);

		out[n++] =
		    (struct kn_taken){ o->taker[s], o->now[s].task, o->now[s].gen };
	}
	return n;
}

/* Claimant c says that it had (task, gen), and we saw no ack of it. Two acks of one
 * slot between two of our looks hide each other: a liar made the first one look
 * pending, which was another's, and the slot was offered anew. Then the first is
 * counted now, and the second seen in the next look. */
static void
unhide(struct kn_offer *o, uint32_t c, uint32_t task, uint32_t gen)
{
	uint32_t me = 1u << c;

	for (uint32_t s = 0; s < KN_SLOTS; s++) {
		struct kn_offered *p = &o->before[s];

		if (p->task != task || p->gen != gen || !p->acked_by ||
		    (p->acked_by & me))
			continue;
		p->acked_by |= me;
		o->again++;
		o->ack[c] ^= 1u << s;
		o->own_ack ^= 1u << s;
		kn_offer_store_own(o, 0);
		if (hold(o, c, p, true))
			(void)kn_offer_look(o, c);
		return;
	}
}

enum kn_answer
kn_offer_answer(struct kn_offer *o, uint32_t c, uint32_t task, uint32_t gen)
{
	struct kn_held *h;
	bool second;

	if (c >= o->bank.claimant_n)
		return KN_ANSWER_LIE;
	h = find_held(o, c, task, gen);
	if (!h || h->area >= 0) {
		/* Also for what it has freed: after the answer an area is anybody's. */
		(void)kn_offer_look(o, c);
		h = find_held(o, c, task, gen);
	}
	if (!h) {
		unhide(o, c, task, gen);
		h = find_held(o, c, task, gen);
	}
	if (!h)
		return KN_ANSWER_LIE;
	free_of(o, h);
	second = h->second;
	drop_held(o, c, h);
	return second ? KN_ANSWER_DROP : KN_ANSWER_ACCEPT;
}

static void
store_live(struct kn_offer *o)
{
	/* We are always there, or nobody would heed what we want. */
	(void)kn_shm_swap32_seqcst(/* V1 */
	    &o->bank.head->live, o->live | 1u << KN_CLAIM_SUPERVISOR);
}

/* ---- claimants come and go ---- */

void
kn_offer_join(struct kn_offer *o, uint32_t c)
{
	uint64_t *word = kn_bank_word(&o->bank, c);

	/* Exclusive: its owner is dead, or not there yet. */
	kn_shm_store64_release(word, kn_word(0, o->ack[c])); /* W3 */
	for (int s = 0; s < KN_SLOTS; s++)
		kn_shm_store64_release(&kn_bank_own(&o->bank, c)->taken[s], /* I1 */
		    o->now[s].acked_by >> c & 1 ? o->now[s].seq : 0);
	o->want_word[c] = 0;
	o->lie[c] = KN_LIE_NONE;
	o->liars &= ~(1u << c);
	o->live |= 1u << c;
	store_live(o);
}

/* Who else has acked a task that the dead one owned runs it, or has run it: it is the
 * owner now, if its answer is still to come. Not if there is an area, which the dead
 * one may have freed while the other read it. */
static bool
pass_on(struct kn_offer *o, const struct kn_held *h)
{
	for (uint32_t c = 0; c < o->bank.claimant_n; c++) {
		struct kn_held *other = find_held(o, c, h->task, h->gen);

		if (!other || !other->second || other->area != INLINE)
			continue;
		other->second = false;
		return true;
	}
	return false;
}

int
kn_offer_bury(struct kn_offer *o, uint32_t c, struct kn_held out[KN_HELD_MAX])
{
	uint32_t held_n;
	int n = 0;

	(void)kn_offer_look(o, c); /* its last words */
	o->live &= ~(1u << c);
	store_live(o);
	if (o->how == KN_CLAIM_CAS_MASK)
		clear_orphans(o);
	o->liars &= ~(1u << c); /* who comes next has done nothing yet */
	held_n = o->held_n[c];
	o->held_n[c] = 0;
	for (uint32_t i = 0; i < held_n; i++) {
		const struct kn_held *h = &o->held[c][i];

		free_of(o, h);
		if (!h->second && !pass_on(o, h))
			out[n++] = *h;
	}
	kn_offer_store_published(o, 0); /* what it wanted is to be had again */
	return n;
}

/* ---- who is in the way ---- */

uint32_t
kn_offer_stuck(struct kn_offer *o, uint64_t now_ns, uint64_t bound_ns)
{
	uint32_t stuck = 0;

	for (uint32_t live = o->live; live; live &= live - 1) {
		uint32_t c = (uint32_t)__builtin_ctz(live);
		uint64_t w = kn_shm_load64_acquire(kn_bank_word(&o->bank, c)); /* W4 */

		if (!(w >> 32)) {
			o->want_word[c] = 0;
		} else if (w != o->want_word[c]) {
			o->want_word[c] = w;
			o->want_since[c] = now_ns;
		} else if (now_ns - o->want_since[c] >= bound_ns) {
			stuck |= 1u << c;
		}
	}
	return stuck;
}

uint32_t
kn_offer_wanting(const struct kn_offer *o)
{
	uint32_t who = 0;

	for (uint32_t live = o->live; live; live &= live - 1) {
		uint32_t c = (uint32_t)__builtin_ctz(live);
		uint64_t w = kn_shm_load64_acquire(kn_bank_word(&o->bank, c)); /* W4 */

		if (w >> 32)
			who |= 1u << c;
	}
	return who;
}

uint32_t
kn_offer_blockers(const struct kn_offer *o, int slot)
{
	uint32_t bit = 1u << (uint32_t)slot / o->width, who = 0;

	for (uint32_t live = o->live; live; live &= live - 1) {
		uint32_t c = (uint32_t)__builtin_ctz(live);
		uint64_t w = kn_shm_load64_acquire(kn_bank_word(&o->bank, c)); /* W4 */

		if (kn_word_want(w) & bit)
			who |= 1u << c;
	}
	return who;
}

uint32_t
kn_offer_stalls(const struct kn_offer *o, uint32_t c, uint32_t *out_on)
{
	const struct kn_own *own = kn_bank_own(&o->bank, c);

	*out_on = kn_shm_load32_acquire(&own->stalled_on); /* N2 */
	return kn_shm_load32_acquire(&own->stalls);	   /* N2 */
}

uint32_t
kn_offer_idle(const struct kn_offer *o)
{
	uint32_t idle = 0;

	for (uint32_t live = o->live; live; live &= live - 1) {
		uint32_t c = (uint32_t)__builtin_ctz(live);

		if (!o->held_n[c])
			idle |= 1u << c;
	}
	return idle;
}
