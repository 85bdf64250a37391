/* ipc/offer.c: offering tasks in a shared bank. Cards and labels: ipc/region.h. */
#include "ipc/offer.h"

#include <string.h>

#include "ipc/offer_int.h"
#include "ipc/shm.h"

int
kn_offer_init(struct kn_offer *o, const struct kn_bank *bank, enum kn_claim_how how,
    uint32_t width)
{
	if (!kn_claim_fits(how, bank->claimant_n, width))
		return -1;
	memset(o, 0, sizeof *o);
	o->bank = *bank;
	o->how = kn_claim_how_of(how);
	o->width = width;
	kn_payload_init(&o->pay, bank->area_bytes);
	return 0;
}

/* ---- our own words ---- */

/* A new value of the count: who found nothing looks again. */
void
kn_offer_store_published(struct kn_offer *o, uint32_t flip)
{
	o->published = (o->published ^ flip) + (1ull << 32);
	kn_shm_store64_release(&o->bank.head->published, o->published); /* Y1 */
}

void
kn_offer_store_own(struct kn_offer *o, uint32_t want)
{
	kn_shm_store64_release(&o->bank.head->own, kn_word(want, o->own_ack)); /* W3 */
}

void
kn_offer_free_area(struct kn_offer *o, int area)
{
	if (area >= 0)
		o->pay_freed ^= 1u << area;
}

/* ---- offering ---- */

static uint32_t
slots_wanted(const struct kn_offer *o)
{
	uint32_t slots = 0;

	for (uint32_t w = o->wanted; w; w &= w - 1) {
		uint32_t r = (uint32_t)__builtin_ctz(w);

		if (r < KN_SLOTS / o->width)
			slots |= kn_claim_slots(o->width, r);
	}
	return slots;
}

int
kn_offer_slot(const struct kn_offer *o)
{
	uint32_t free = ~(o->offered | o->staged | o->unreported | slots_wanted(o));
	unsigned at = o->cursor;

	if (!free)
		return -1;
	/* One region further each time; a round later, one slot further. */
	while (!(free >> at & 1)) {
		at += o->width;
		if (at >= KN_SLOTS)
			at = (at + 1) % o->width;
	}
	return (int)at;
}

int
kn_offer_area(struct kn_offer *o, uint64_t n, uint64_t *out_off)
{
	return kn_payload_alloc(&o->pay, &o->pay_freed, n, out_off);
}

void
kn_offer_put(
    struct kn_offer *o, int slot, const struct kn_slot_head *head, const void *bytes)
{
	struct kn_slot *to = &o->bank.slots[slot];
	struct kn_slot_head h = *head;
	unsigned next = (unsigned)slot + o->width;
	size_t n = 0;

	h.seq = ++o->seq;
	if (h.area == KN_AREA_INLINE)
		n = h.payload_len < KN_INLINE_MAX ? h.payload_len : KN_INLINE_MAX;
	/* Who copies the slot because of a liar's ack sees the seq change. */
	kn_shm_store64_release(&to->head.seq, 0);		/* D1 */
	kn_shm_words_store_release(to->inline_bytes, bytes, n); /* D1 */
	kn_shm_words_store_release(&to->head, &h, sizeof h);	/* D1 */
	o->before[slot] = o->now[slot];
	o->now[slot] = (struct kn_offered){ .seq = h.seq,
		.task = h.task,
		.gen = h.gen,
		.area = h.area == KN_AREA_INLINE ? -1 : (int)h.area };
	o->staged |= 1u << slot;
	o->cursor = next < KN_SLOTS ? next : (next + 1) % o->width;
}

void
kn_offer_publish(struct kn_offer *o)
{
	if (!o->staged)
		return;
	o->offered |= o->staged;
	kn_offer_store_published(o, o->staged);
	o->staged = 0;
}

/* ---- taking back ---- */

/* Nobody has acked slot s since we last looked, and nobody is in its region. want: how
 * a peer's word may say that it is. */
static enum kn_back
peers_allow(struct kn_offer *o, uint32_t s, uint32_t bit)
{
	for (uint32_t c = 0; c < o->bank.claimant_n; c++) {
		uint64_t w;

		if (!(o->live >> c & 1))
			continue;
		w = kn_shm_load64_seqcst(kn_bank_word(&o->bank, c)); /* W2 */
		if (o->how == KN_CLAIM_DEKKER && (kn_word_want(w) & bit))
			return KN_BACK_BUSY;
		if ((kn_word_ack(w) ^ o->ack[c]) >> s & 1)
			return KN_BACK_GONE;
	}
	return KN_BACK_OURS;
}

static bool
own_region(struct kn_offer *o, uint32_t bit)
{
	uint64_t *mask = &o->bank.owners->mask;
	uint64_t seen = kn_shm_load64_acquire(mask); /* M2 */

	if (o->how != KN_CLAIM_CAS_MASK)
		return true;
	return !(seen & bit) &&
	       kn_shm_cas64_acqrel(mask, &seen, (seen | bit) + (1ull << 32)); /* M2 */
}

static void
disown_region(struct kn_offer *o, uint32_t bit)
{
	uint64_t *mask = &o->bank.owners->mask;
	uint64_t seen = kn_shm_load64_acquire(mask); /* M2 */

	/* If a liar keeps us from it, the next poll finds the bit unwanted. */
	for (int i = 0; i < KN_SLOTS && o->how == KN_CLAIM_CAS_MASK && (seen & bit);
	     i++)
		if (kn_shm_cas64_acqrel(mask, &seen, /* M2 */
			(seen & ~(uint64_t)bit) + (1ull << 32)))
			break;
}

enum kn_back
kn_offer_take_back(struct kn_offer *o, int slot)
{
	uint32_t s = (uint32_t)slot, bit = 1u << s / o->width;
	enum kn_back got;

	if (slot < 0 || slot >= KN_SLOTS || !(o->offered >> s & 1))
		return KN_BACK_GONE;
	(void)kn_shm_swap64_seqcst(/* W1 */
	    &o->bank.head->own, kn_word(bit, o->own_ack));
	if (own_region(o, bit)) {
		got = peers_allow(o, s, bit);
		if (got == KN_BACK_OURS) {
			o->own_ack ^= 1u << s;
			o->now[s].acked_by = 1u << KN_CLAIM_SUPERVISOR;
			o->offered &= ~(1u << s);
			kn_offer_free_area(o, o->now[s].area);
			kn_offer_store_own(o, bit);
		}
		disown_region(o, bit);
	} else {
		got = KN_BACK_BUSY;
	}
	kn_offer_store_own(o, 0);
	return got;
}
