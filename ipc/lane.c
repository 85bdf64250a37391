/* ipc/lane.c: the two lanes of a slice. See layout.h for the cards of the words. */
#include "ipc/lane.h"

#include "ipc/shm.h"

/* An honest worker can make a take-back fail only by claiming, at most once for each
 * slot; whoever makes it fail more often is scribbling, and gets its way: the task is
 * counted as the worker's. */
enum { TAKE_BACK_TRIES = KN_SLOTS + 1 };

/* The claim word: toggle bits below, a count above. */
static uint32_t
bits_of(uint64_t claim_word)
{
	return (uint32_t)claim_word;
}

static uint64_t
flipped(uint64_t claim_word, uint32_t bits)
{
	/* The carry out of the count falls off: it wraps to 0 without touching the
	 * bits. */
	return (claim_word ^ bits) + (1ull << 32);
}

/* The first set bit at or after `from`, going round; mask is not 0. */
static int
next_bit(uint32_t mask, unsigned from)
{
	uint32_t above = mask & (UINT32_MAX << (from % KN_SLOTS));

	return __builtin_ctz(above ? above : mask);
}

/* Bytes of a slot's inline payload that its header speaks of, never more than there
 * are. */
static size_t
inline_n(const struct kn_slot_head *head)
{
	if (head->area != KN_AREA_INLINE)
		return 0;
	return head->payload_len < KN_INLINE_MAX ? head->payload_len : KN_INLINE_MAX;
}

/* D1: word by word with release. A worker may still be copying the slot's former
 * request, taken back meanwhile: if it sees one of these words it also sees the
 * take-back, and its claim fails. */
static void
slot_write(struct kn_slot *slot, const struct kn_slot_head *head, const void *bytes)
{
	kn_shm_words_store_release(slot->inline_bytes, bytes, inline_n(head)); /* D1 */
	kn_shm_words_store_release(&slot->head, head, sizeof *head);	       /* D1 */
}

/* D2: each word is loaded once; the length comes from the copied header. */
static void
slot_read(const struct kn_slot *slot, struct kn_slot_head *out_head,
    uint8_t out_inline[KN_INLINE_MAX])
{
	kn_shm_words_load_acquire(out_head, &slot->head, sizeof *out_head); /* D2 */
	kn_shm_words_load_acquire(					    /* D2 */
	    out_inline, slot->inline_bytes, inline_n(out_head));
}

/* ---- submit lane, supervisor side ---- */

void
kn_submit_init(struct kn_submit *s)
{
	s->published = 0;
	s->told = 0;
	s->offered = 0;
	s->cursor = 0;
}

static uint32_t
free_slots(const struct kn_submit *s, const struct kn_slice *sl)
{
	uint64_t word = kn_shm_load64_acquire(&sl->control->submit_claimed); /* C2 */

	return ~(s->offered | (s->published ^ bits_of(word)));
}

int
kn_submit_free(struct kn_submit *s, const struct kn_slice *sl)
{
	uint32_t mask = free_slots(s, sl);

	return mask ? __builtin_ctz(mask) : -1;
}

int
kn_submit_next(const struct kn_submit *s)
{
	return ~s->offered ? next_bit(~s->offered, s->cursor) : -1;
}

void
kn_submit_stage(struct kn_submit *s, const struct kn_slice *sl, int slot,
    const struct kn_slot_head *head, const void *inline_bytes)
{
	uint32_t bit = 1u << slot;

	slot_write(&sl->submit_slots[slot], head, inline_bytes);
	s->published ^= bit;
	s->offered |= bit;
	s->cursor = (unsigned)slot + 1;
	/* The worker read it last: its line is fetched while we do other things. */
	kn_line_warm(&sl->submit_slots[s->cursor % KN_SLOTS].head);
}

void
kn_submit_flush(struct kn_submit *s, const struct kn_slice *sl)
{
	if (s->told == s->published)
		return;
	s->told = s->published;
	kn_shm_store32_release(&sl->control->submit_published, s->published); /* P1 */
}

void
kn_submit_publish(struct kn_submit *s, const struct kn_slice *sl, int slot,
    const struct kn_slot_head *head, const void *inline_bytes)
{
	kn_submit_stage(s, sl, slot, head, inline_bytes);
	kn_submit_flush(s, sl);
}

uint32_t
kn_submit_claimed(struct kn_submit *s, const struct kn_slice *sl, bool *out_violation)
{
	/* One load decides all; what the worker does to the word a moment later is
	 * the next call's business. */
	uint64_t word = kn_shm_load64_acquire(&sl->control->submit_claimed); /* C2 */
	uint32_t pending = s->published ^ bits_of(word);
	uint32_t claimed = s->offered & ~pending;

	if (pending & ~s->offered)
		*out_violation = true;
	s->offered &= ~claimed;
	return claimed;
}

bool
kn_submit_take_back(struct kn_submit *s, const struct kn_slice *sl, int slot)
{
	uint64_t *claim = &sl->control->submit_claimed;
	uint32_t bit = 1u << slot;
	uint64_t word;

	if (!(s->offered & bit))
		return false;
	/* A bit that is flipped in the claim word alone is pending. */
	kn_submit_flush(s, sl);
	word = kn_shm_load64_acquire(claim); /* C2 */
	for (int i = 0; i < TAKE_BACK_TRIES; i++) {
		if (!((s->published ^ bits_of(word)) & bit))
			return false;
		if (kn_shm_cas64_acqrel(claim, &word, flipped(word, bit))) { /* C2 */
			s->offered &= ~bit;
			return true;
		}
	}
	return false;
}

/* ---- submit lane, worker side ---- */

static bool
holds(const struct kn_slot_head *head, uint32_t task, uint32_t gen)
{
	return head->task == task && head->gen == gen;
}

static bool
claim(const struct kn_slice *sl, int slot, const uint64_t *want,
    struct kn_slot_head *out_head, uint8_t out_inline[KN_INLINE_MAX])
{
	struct kn_control *c = sl->control;
	uint32_t bit = 1u << slot;

	/* Each failed round means that the supervisor took something back; it is the
	 * trusted side, and a lane holds 32 tasks. */
	for (;;) {
		uint64_t word = kn_shm_load64_acquire(&c->submit_claimed);  /* C2 */
		uint32_t pub = kn_shm_load32_acquire(&c->submit_published); /* C1 */

		if (!((pub ^ bits_of(word)) & bit))
			return false;
		slot_read(&sl->submit_slots[slot], out_head, out_inline);
		if (want &&
		    !holds(out_head, (uint32_t)(*want >> 32), (uint32_t)*want)) {
			/* Another task's, or a torn copy of a slot that was taken back
			 * this moment: only an unchanged word tells which. */
			if (kn_shm_load64_acquire(&c->submit_claimed) == word) /* C2 */
				return false;
			continue;
		}
		/* Copied before claimed: from here on the slot may be overwritten. */
		if (kn_shm_cas64_acqrel(/* C2 */
			&c->submit_claimed, &word, flipped(word, bit)))
			return true;
	}
}

bool
kn_submit_claim(const struct kn_slice *sl, int slot, struct kn_slot_head *out_head,
    uint8_t out_inline[KN_INLINE_MAX])
{
	return claim(sl, slot, NULL, out_head, out_inline);
}

bool
kn_submit_claim_task(const struct kn_slice *sl, int slot, uint32_t task, uint32_t gen,
    struct kn_slot_head *out_head, uint8_t out_inline[KN_INLINE_MAX])
{
	uint64_t want = (uint64_t)task << 32 | gen;

	return claim(sl, slot, &want, out_head, out_inline);
}

bool
kn_submit_is_offered(const struct kn_slice *sl, int slot, uint32_t task, uint32_t gen)
{
	struct kn_control *c = sl->control;
	struct kn_slot_head head;

	for (;;) {
		uint64_t word = kn_shm_load64_acquire(&c->submit_claimed);  /* C2 */
		uint32_t pub = kn_shm_load32_acquire(&c->submit_published); /* C1 */

		if (!((pub ^ bits_of(word)) & 1u << slot))
			return false;
		kn_shm_words_load_acquire(/* D2 */
		    &head, &sl->submit_slots[slot].head, sizeof head);
		if (kn_shm_load64_acquire(&c->submit_claimed) == word) /* C2 */
			return holds(&head, task, gen);
	}
}

uint32_t
kn_submit_pending(const struct kn_slice *sl)
{
	uint64_t word = kn_shm_load64_acquire(&sl->control->submit_claimed);  /* C2 */
	uint32_t pub = kn_shm_load32_acquire(&sl->control->submit_published); /* C1 */

	return pub ^ bits_of(word);
}

void
kn_submit_expect(const struct kn_slice *sl, unsigned cursor)
{
	__builtin_prefetch(&sl->submit_slots[cursor % KN_SLOTS].head);
}

int
kn_submit_claim_many(const struct kn_slice *sl, unsigned *cursor, unsigned max,
    struct kn_slot out[KN_SLOTS])
{
	struct kn_control *c = sl->control;

	for (;;) { /* as claim() */
		uint64_t word = kn_shm_load64_acquire(&c->submit_claimed);  /* C2 */
		uint32_t pub = kn_shm_load32_acquire(&c->submit_published); /* C1 */
		uint32_t pending = pub ^ bits_of(word), taken = 0;
		unsigned at = *cursor, n = 0;

		if (pending)
			kn_line_warm(&c->submit_claimed);
		while (pending && n < max) {
			int slot = next_bit(pending, at);

			slot_read(
			    &sl->submit_slots[slot], &out[n].head, out[n].inline_bytes);
			pending &= ~(1u << slot);
			taken |= 1u << slot;
			at = (unsigned)slot + 1;
			n++;
		}
		if (n == 0)
			return 0;
		/* Copied before claimed; what was copied is as it was published only if
		 * nothing was taken back since the word was read. */
		if (kn_shm_cas64_acqrel(/* C2 */
			&c->submit_claimed, &word, flipped(word, taken))) {
			*cursor = at;
			return (int)n;
		}
	}
}

/* ---- return lane ---- */

bool
kn_return_publish(struct kn_return_tx *r, const struct kn_slice *sl,
    const struct kn_slot_head *head, const void *inline_bytes)
{
	uint32_t busy = r->published ^ r->retired;
	int slot;

	/* The supervisor's word is looked at only when ours says that there is no slot:
	 * each look fetches its cache line anew. */
	if (busy == UINT32_MAX) {
		const uint32_t *word = &sl->control->return_retired;

		r->retired = kn_shm_load32_acquire(word); /* R4 */
		busy = r->published ^ r->retired;
		if (busy == UINT32_MAX)
			return false;
	}
	slot = next_bit(~busy, r->cursor);
	slot_write(&sl->return_slots[slot], head, inline_bytes);
	r->published ^= 1u << slot;
	r->cursor = (unsigned)slot + 1;
	kn_shm_store32_release(&sl->control->return_published, r->published); /* R1 */
	kn_line_warm(&sl->return_slots[r->cursor % KN_SLOTS].head);
	return true;
}

bool
kn_return_is_taken(struct kn_return_tx *r, const struct kn_slice *sl)
{
	r->retired = kn_shm_load32_acquire(&sl->control->return_retired); /* R4 */
	return r->published == r->retired;
}

uint32_t
kn_return_pending(const struct kn_return_rx *r, const struct kn_slice *sl)
{
	return kn_shm_load32_acquire(&sl->control->return_published) ^ /* R2 */
	       r->retired;
}

void
kn_return_expect(const struct kn_return_rx *r, const struct kn_slice *sl)
{
	__builtin_prefetch(&sl->return_slots[r->cursor % KN_SLOTS].head);
}

int
kn_return_peek(struct kn_return_rx *r, const struct kn_slice *sl,
    struct kn_slot_head *out_head, uint8_t out_inline[KN_INLINE_MAX])
{
	uint32_t pending = r->seen ^ r->retired;
	int slot;

	/* One look for all that lies there: each fetches the line from a worker that is
	 * writing it. */
	if (!pending) {
		r->seen =
		    kn_shm_load32_acquire(&sl->control->return_published); /* R2 */
		pending = r->seen ^ r->retired;
		for (uint32_t m = pending; m; m &= m - 1)
			__builtin_prefetch(&sl->return_slots[__builtin_ctz(m)].head);
	}
	if (!pending)
		return -1;
	slot = next_bit(pending, r->cursor);
	slot_read(&sl->return_slots[slot], out_head, out_inline);
	return slot;
}

void
kn_return_retire(struct kn_return_rx *r, const struct kn_slice *sl, int slot)
{
	r->retired ^= 1u << slot;
	r->cursor = (unsigned)slot + 1;
	kn_shm_store32_release(&sl->control->return_retired, r->retired); /* R3 */
}
