/* ipc/claim.c: claiming from a shared bank. Cards and labels: ipc/region.h.
 *
 * KN_CLAIM_STEP(): nothing here. Tests include this file with a macro of that name that
 * stops, kills or interleaves claimants at each step between two shared accesses.
 */
#include "ipc/claim.h"

#include <string.h>

#include "ipc/shm.h"

#ifndef KN_CLAIM_STEP
#define KN_CLAIM_STEP(name) ((void)0)
#endif

enum {
	/* How long a senior waits for a junior: enough to copy out a few slots (some 10
	 * us), and far from a turn of the scheduler. */
	LOOKS = 256,
	/* Regions tried in one call, and exchanges tried for one of them. */
	TRIES = 4,
	CAS_TRIES = 8,
};

static void
pause_cpu(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("yield");
#endif
}

int
kn_claimant_init(struct kn_claimant *k, const struct kn_bank *b, uint32_t id,
    enum kn_claim_how how, uint32_t width)
{
	uint64_t word;

	if (id >= b->claimant_n || !kn_claim_fits(how, b->claimant_n, width))
		return -1;
	memset(k, 0, sizeof *k);
	k->bank = *b;
	k->how = kn_claim_how_of(how);
	k->id = id;
	k->width = width;
	k->region_n = KN_SLOTS / width;
	k->cursor = k->region_n * id / b->claimant_n;
	/* What the one before us retired stays retired. */
	word = kn_shm_load64_seqcst(kn_bank_word(b, id)); /* W2 */
	k->ack = kn_word_ack(word);
	for (int s = 0; s < KN_SLOTS; s++)
		k->mine[s] =
		    kn_shm_load64_acquire(&kn_bank_own(b, id)->taken[s]); /* I2 */
	return 0;
}

void
kn_claim_free(struct kn_claimant *k, uint32_t area)
{
	if (area < KN_AREAS)
		(void)kn_shm_xor32_release(/* F1 */
		    &kn_bank_own(&k->bank, k->id)->freed, 1u << area);
}

/* ---- looking at the others ---- */

/* The claimant after p, ours left out, the supervisor last; 32 after that. */
static uint32_t
next_peer(const struct kn_claimant *k, uint32_t p)
{
	p++;
	if (p == k->id)
		p++;
	if (p >= k->bank.claimant_n && p < KN_CLAIM_SUPERVISOR)
		return KN_CLAIM_SUPERVISOR;
	return p;
}
#define EACH_PEER(k, p) \
	uint32_t p = next_peer(k, UINT32_MAX); \
	p <= KN_CLAIM_SUPERVISOR; \
	p = next_peer(k, p)

struct look {
	uint32_t acks;		   /* of all peers, dead ones too */
	uint32_t seniors, juniors; /* what the live ones want */
};

static void
survey(const struct kn_claimant *k, struct look *out)
{
	uint32_t live = kn_shm_load32_seqcst(&k->bank.head->live); /* V2 */
	struct look l = { 0, 0, 0 };

	for (EACH_PEER(k, p)) {
		uint64_t w = kn_shm_load64_seqcst(kn_bank_word(&k->bank, p)); /* W2 */

		l.acks ^= kn_word_ack(w);
		if (!(live >> p & 1))
			continue;
		if (p < k->id)
			l.seniors |= kn_word_want(w);
		else
			l.juniors |= kn_word_want(w);
	}
	*out = l;
}

/* Regions with a slot of mask. */
static uint32_t
regions_of(const struct kn_claimant *k, uint32_t mask)
{
	uint32_t regions = 0;

	for (uint32_t r = 0; mask && r < k->region_n; r++) {
		uint32_t slots = kn_claim_slots(k->width, r);

		if (mask & slots)
			regions |= 1u << r;
		mask &= ~slots;
	}
	return regions;
}

/* The first region of the mask (not 0) from the cursor on, going round. */
static uint32_t
from_cursor(const struct kn_claimant *k, uint32_t regions)
{
	uint32_t after = regions & (UINT32_MAX << k->cursor);

	return (uint32_t)__builtin_ctz(after ? after : regions);
}

static void
let_go(struct kn_claimant *k)
{
	uint64_t *word = &kn_bank_own(&k->bank, k->id)->word;

	kn_shm_store64_release(word, kn_word(0, k->ack)); /* W3 */
	KN_CLAIM_STEP("let go");
}

/* ---- the region is ours: copy, retire ---- */

/* Slots of mask with what was published in them, oldest first. Returns how many. */
static int
in_order(const struct kn_claimant *k, uint32_t mask, int slot[KN_SLOTS],
    uint64_t seq[KN_SLOTS])
{
	int n = 0;

	for (; mask; mask &= mask - 1) {
		int s = __builtin_ctz(mask), at = n++;
		uint64_t q = kn_shm_load64_acquire(&k->bank.slots[s].head.seq); /* D2 */

		for (; at > 0 && seq[at - 1] > q; at--) {
			seq[at] = seq[at - 1];
			slot[at] = slot[at - 1];
		}
		seq[at] = q;
		slot[at] = s;
	}
	return n;
}

/* False: the slot is not what it looked like. Only a liar's ack can do that: it makes a
 * slot look pending that was retired, and which is now written anew or was ours. */
static bool
copy_out(struct kn_claimant *k, int s, uint64_t seq, struct kn_claimed *out)
{
	const struct kn_slot *slot = &k->bank.slots[s];
	size_t n;

	if (seq == 0 || seq == k->mine[s])
		return false;
	kn_shm_words_load_acquire(&out->head, &slot->head, sizeof out->head); /* D2 */
	n = out->head.payload_len;
	if (out->head.area != KN_AREA_INLINE)
		n = 0;
	else if (n > KN_INLINE_MAX)
		n = KN_INLINE_MAX;
	kn_shm_words_load_acquire(out->inline_bytes, slot->inline_bytes, n); /* D2 */
	KN_CLAIM_STEP("copied");
	out->slot = s;
	return out->head.seq == seq &&
	       kn_shm_load64_acquire(&slot->head.seq) == seq; /* D2 */
}

/* Copy out what is pending in a region that is ours, and note it in ack; the caller
 * stores that. */
static int
take(struct kn_claimant *k, uint32_t region, uint32_t acks, struct kn_claimed *out,
    int max)
{
	struct kn_own *own = kn_bank_own(&k->bank, k->id);
	/* The last look before the copy, and after the one at the acks: see claim.h. */
	uint64_t pub = kn_shm_load64_acquire(&k->bank.head->published); /* Y2 */
	uint32_t mask =
	    ((uint32_t)pub ^ acks ^ k->ack) & kn_claim_slots(k->width, region);
	int slot[KN_SLOTS], n = 0, in_region;
	uint64_t seq[KN_SLOTS];

	KN_CLAIM_STEP("looked again");
	in_region = in_order(k, mask, slot, seq);
	for (int i = 0; i < in_region && n < max; i++) {
		if (!copy_out(k, slot[i], seq[i], &out[n])) {
			k->stale++;
			continue;
		}
		k->mine[slot[i]] = seq[i];
		kn_shm_store64_release(&own->taken[slot[i]], seq[i]); /* I1 */
		KN_CLAIM_STEP("noted");
		k->ack ^= 1u << slot[i];
		n++;
	}
	if (n)
		k->claims++;
	return n;
}

/* ---- dekker ---- */

/* Wait, not for long, until p no longer wants the regions of bit, or is dead. *word:
 * p's word as it was then. */
static bool
outwait(struct kn_claimant *k, uint32_t p, uint32_t bit, uint64_t *word)
{
	struct kn_own *own = kn_bank_own(&k->bank, k->id);

	for (int i = 0; i < LOOKS; i++) {
		uint32_t live;

		pause_cpu();
		KN_CLAIM_STEP("waiting");
		/* In this order: who is dead here has stored its last word before. */
		live = kn_shm_load32_seqcst(&k->bank.head->live);	 /* V2 */
		*word = kn_shm_load64_seqcst(kn_bank_word(&k->bank, p)); /* W2 */
		if (!(live >> p & 1) || !(kn_word_want(*word) & bit))
			return true;
	}
	k->stalls++;
	kn_shm_store32_release(&own->stalled_on, p);		   /* N1 */
	kn_shm_store32_release(&own->stalls, (uint32_t)k->stalls); /* N1 */
	return false;
}

/* Wanted has been said: is the region ours? If so *acks is what the peers have retired,
 * and in this region nobody adds to it until we let go: whoever wants it from now on
 * sees our word. LIVE is read after our swap: a replacement that is not yet in it
 * starts later, and sees our word too. */
static bool
is_ours(struct kn_claimant *k, uint32_t bit, uint32_t *acks)
{
	uint32_t live = kn_shm_load32_seqcst(&k->bank.head->live); /* V2 */
	uint32_t sum = 0;

	for (EACH_PEER(k, p)) {
		uint64_t w = kn_shm_load64_seqcst(kn_bank_word(&k->bank, p)); /* W2 */

		KN_CLAIM_STEP("second look");
		if ((live >> p & 1) && (kn_word_want(w) & bit) &&
		    (p < k->id || !outwait(k, p, bit, &w)))
			return false;
		sum ^= kn_word_ack(w);
	}
	*acks = sum;
	return true;
}

static int
by_dekker(struct kn_claimant *k, uint32_t region, struct kn_claimed *out, int max)
{
	uint64_t *word = &kn_bank_own(&k->bank, k->id)->word;
	uint32_t bit = 1u << region, acks;
	int n;

	(void)kn_shm_swap64_seqcst(word, kn_word(bit, k->ack)); /* W1 */
	KN_CLAIM_STEP("wanted");
	if (!is_ours(k, bit, &acks)) {
		k->withdrawn++;
		let_go(k);
		return 0;
	}
	n = take(k, region, acks, out, max);
	let_go(k); /* and ack, in one store */
	return n;
}

/* ---- cas-mask ---- */

static uint64_t
with_bits(uint64_t mask, uint32_t set, uint32_t clear)
{
	/* The carry out of the count falls off. */
	return ((mask | set) & ~(uint64_t)clear) + (1ull << 32);
}

static bool
own_region(struct kn_claimant *k, uint32_t bit)
{
	uint64_t *mask = &k->bank.owners->mask;
	uint64_t seen = kn_shm_load64_acquire(mask); /* M1 */

	for (int i = 0; i < CAS_TRIES; i++) {
		KN_CLAIM_STEP("before the exchange");
		if (seen & bit)
			return false;
		if (kn_shm_cas64_acqrel(mask, &seen, with_bits(seen, bit, 0))) /* M1 */
			return true;
	}
	return false;
}

static void
disown_region(struct kn_claimant *k, uint32_t bit)
{
	uint64_t *mask = &k->bank.owners->mask;
	uint64_t seen = kn_shm_load64_acquire(mask); /* M1 */

	/* Each failure is another's success, and nobody exchanges without end but a
	 * liar, whom the supervisor then finds with our bit. */
	for (int i = 0; i < LOOKS && (seen & bit); i++)
		if (kn_shm_cas64_acqrel(mask, &seen, with_bits(seen, 0, bit))) /* M1 */
			break;
	KN_CLAIM_STEP("disowned");
}

static int
by_cas_mask(struct kn_claimant *k, uint32_t region, struct kn_claimed *out, int max)
{
	uint64_t *word = &kn_bank_own(&k->bank, k->id)->word;
	uint32_t bit = 1u << region;
	struct look l;
	int n;

	if (kn_shm_load64_acquire(&k->bank.owners->mask) & bit) { /* M1 */
		k->withdrawn++;
		return 0;
	}
	/* Not an order but a record: the supervisor knows by it whose a bit is. */
	kn_shm_store64_release(word, kn_word(bit, k->ack)); /* W3 */
	KN_CLAIM_STEP("wanted");
	if (!own_region(k, bit)) {
		k->withdrawn++;
		let_go(k);
		return 0;
	}
	KN_CLAIM_STEP("owned");
	survey(k, &l);
	n = take(k, region, l.acks, out, max);
	kn_shm_store64_release(word, kn_word(bit, k->ack)); /* W3 */
	KN_CLAIM_STEP("acked");
	disown_region(k, bit);
	let_go(k);
	return n;
}

/* ---- either ---- */

int
kn_claim(struct kn_claimant *k, struct kn_claimed *out, int max)
{
	uint64_t pub = kn_shm_load64_acquire(&k->bank.head->published); /* Y2 */
	uint32_t regions, open, pending;
	struct look l;

	KN_CLAIM_STEP("first look");
	if (max < 1 || (k->empty && pub == k->empty_at))
		return 0;
	/* After `published`: what was pending then and still is shows as pending. The
	 * other way round, a slot retired and filled again in between would not. */
	survey(k, &l);
	pending = (uint32_t)pub ^ l.acks ^ k->ack;
	k->empty = pending == 0;
	k->empty_at = pub;
	if (!pending)
		return 0;
	regions = regions_of(k, pending);
	if (k->how == KN_CLAIM_DEKKER)
		regions &= ~l.seniors;
	open = regions & ~(l.seniors | l.juniors);
	for (int i = 0; i < TRIES && regions; i++) {
		uint32_t r = from_cursor(k, open ? open : regions);
		int n = k->how == KN_CLAIM_CAS_MASK ? by_cas_mask(k, r, out, max)
						    : by_dekker(k, r, out, max);

		if (n > 0) {
			k->cursor = (r + 1) % k->region_n;
			return n;
		}
		regions &= ~(1u << r);
		open &= ~(1u << r);
	}
	return KN_CLAIM_BUSY;
}
