/* ipc/region.h: a bank of the shared submit region: 32 slots that the supervisor fills
 * and up to 31 workers claim from. Its shape, and a card for each of its words; the
 * supervisor's side is ipc/offer.h, a worker's ipc/claim.h.
 *
 *   bank: [ supervisor's page | owners page | slots | a page a claimant | payload area
 * ]
 *
 * Workers of a bank may share memory: each reads the others' requests. They need not
 * trust each other beyond that. A worker maps the bank read-only from a descriptor that
 * was opened read-only (no mprotect can undo that), and over it its own page
 * read-write; where the discipline is cas-mask also the owners page. So each word below
 * has one writer, by the MMU, and what is wrong with a word is known to be its writer's
 * doing. The seeds have all of it writable by all (their weaknesses 1, 6, 9).
 */
#ifndef KN_IPC_REGION_H
#define KN_IPC_REGION_H

#include <stdbool.h>
#include <stdint.h>

#include "ipc/layout.h"

enum { KN_CLAIM_SUPERVISOR = 31 }; /* its id among the claimants: most junior */

/* The supervisor's page. */
struct kn_bank_head {
	/* published: writer supervisor, readers claimants. Low half: toggle bits; slot
	 * s is pending while bit s of published ^ (ack of all claimants, dead ones too)
	 * is set. High half: a count raised by each store, so that a claimant that
	 * found nothing need look at nothing else until the word changes. Y1
	 * kn_offer_publish store release <-> Y2 kn_claim load acquire, carries slots,
	 * inline bytes and area bytes. If the supervisor dies before Y1 nobody sees the
	 * task. model: tests/model/dekker.pml, mutant PUBLISH_BEFORE_WRITE. */
	_Alignas(KN_LINE) uint64_t published;
	/* live: writer supervisor, readers claimants: who may still write its word, the
	 * supervisor (bit 31) always.
	 * Cleared only after the reap: a word of want is ignored from then on, and its
	 * owner must not be able to act on it any more.
	 * V1 kn_offer_bury swap seq_cst <-> V2 kn_claim load seq_cst.
	 * If the supervisor dies the workers' launchers end them.
	 * model: tests/model/dekker.pml, mutant LIVE_BEFORE_REAP. */
	_Alignas(KN_LINE) uint32_t live;
	/* own: the supervisor as a claimant, for taking back. As kn_own.word: same
	 * labels; if the supervisor dies, see live. */
	_Alignas(KN_LINE) uint64_t own;
	/* abort: as kn_control.abort, for the calls of this bank, whoever takes them:
	 * its writer is the supervisor, and here its readers cannot write it. */
	_Alignas(KN_LINE) uint32_t abort[KN_ABORT_WORDS];
};

/* The owners page, cas-mask only: the one word here that all claimants write. */
struct kn_bank_owners {
	/* mask: writers claimants and supervisor, by 64-bit compare-exchange only. Low
	 * half: regions being claimed, high half: a count raised by each exchange
	 * (defeats ABA). M1 kn_claim cas acq_rel <-> M2 kn_offer_poll load acquire, cas
	 * acq_rel. If the owner of a bit dies, the supervisor sees, after the reap, a
	 * bit that no live claimant wants, and clears it.
	 * model: tests/model/casmask.pml, mutant WANT_AFTER_CAS. */
	_Alignas(KN_LINE) uint64_t mask;
};

/* A claimant's own words. In its page they stand one line further than those of the
 * claimant before: at one offset in all pages, 31 words would share one set of the
 * first-level cache. */
struct kn_own {
	/* word: low half ack: toggle bits of the slots retired by this claimant. High
	 * half want: bit r set while it means to claim region r, never two at once.
	 * Both in one word: a peer sees them as of one moment with one load, and
	 * retiring and letting go are one store, so nobody can die in between, and none
	 * of the two can come first. writer: claimant (supervisor before it is live).
	 * W1 kn_claim swap seq_cst <-> W2 kn_claim load seq_cst (peers),
	 * W3 kn_claim store release, carries taken <-> W4 kn_offer_poll load acquire.
	 * If the claimant dies before W1: no trace. Between W1 and W3: nothing was
	 * claimed; its region waits until LIVE is cleared. After W3: the slots are
	 * retired, and it is the begun word of its slice that tells which of their
	 * tasks had started. If it stops there: peers leave that region alone.
	 * model: tests/model/dekker.pml, mutants ACK_AFTER_RUN, WANT_BEFORE_ACK. */
	_Alignas(KN_LINE) uint64_t word;
	/* taken[s]: seq of the publication that this claimant last claimed in slot s:
	 * an ack counts for that one only. writer: claimant. I1 kn_claim store release
	 * <-> I2 kn_offer_poll load acquire; carried by W3. If it dies before W3 the
	 * entry means nothing. */
	_Alignas(KN_LINE) uint64_t taken[KN_SLOTS];
	/* freed: toggle bits of payload areas that this claimant has done with. A word
	 * each: the supervisor counts it only for areas that came with what this
	 * claimant has retired and not answered, so that an area freed twice, or by
	 * somebody else, is no area freed. writer: claimant.
	 * F1 kn_claim_free xor release <-> F2 kn_offer_poll load acquire.
	 * If it dies before F1 the area is free with the burial. */
	_Alignas(KN_LINE) uint32_t freed;
	/* stalls: how often this claimant, as the senior, waited for a junior as long
	 * as it may, and withdrew. stalled_on: that junior's id. writer: claimant, and
	 * only a hint. N1 kn_claim store release <-> N2 kn_offer_stalls load acquire.
	 * If it dies they stay as they are. */
	uint32_t stalls, stalled_on;
};
_Static_assert(sizeof(struct kn_bank_head) <= KN_PAGE, "a page");
_Static_assert(
    sizeof(struct kn_own) + KN_CLAIMANTS * KN_LINE <= KN_PAGE, "a page, also shifted");

/* The slots' words (D1, D2 of layout.h): read by claimants who own the region, and
 * written by the supervisor when it knows that the slot was retired. A liar's ack can
 * make it believe so too early. Hence seq: it is 0 while a slot is being written, and a
 * claimant compares it before and after the copy. */

/* One bank, as pointers into a mapping that the caller owns. */
struct kn_bank {
	struct kn_bank_head *head;
	struct kn_bank_owners *owners;
	struct kn_slot *slots;
	uint8_t *own_pages;
	uint8_t *area;
	uint64_t area_bytes;
	uint32_t claimant_n;
};
/* View of bank i, mapped at base. The last bank may have fewer claimants than the
 * others.
 */
void kn_bank_at(
    void *base, const struct kn_layout *l, uint32_t bank, struct kn_bank *out);

static inline struct kn_own *
kn_bank_own(const struct kn_bank *b, uint32_t claimant)
{
	return (void *)(b->own_pages + claimant * (KN_PAGE + KN_LINE));
}

/* A claimant's word, or the supervisor's. */
static inline uint64_t *
kn_bank_word(const struct kn_bank *b, uint32_t claimant)
{
	return claimant == KN_CLAIM_SUPERVISOR ? &b->head->own
					       : &kn_bank_own(b, claimant)->word;
}

static inline uint32_t
kn_word_ack(uint64_t word)
{
	return (uint32_t)word;
}

/* What a word wants; 0 if it says two regions, which nobody honest ever does: such a
 * word protects nothing. So one claimant can keep one region from the others, no more.
 */
static inline uint32_t
kn_word_want(uint64_t word)
{
	uint32_t want = (uint32_t)(word >> 32);

	return want & (want - 1) ? 0 : want;
}

static inline uint64_t
kn_word(uint32_t want, uint32_t ack)
{
	return (uint64_t)want << 32 | ack;
}

/* ---- how to claim, and how wide ---- */

enum kn_claim_how { KN_CLAIM_AUTO, KN_CLAIM_DEKKER, KN_CLAIM_CAS_MASK, KN_CLAIM_HOW_N };
const char *kn_claim_how_name(enum kn_claim_how how); /* "auto", "dekker", "cas-mask" */
/* -1 if there is no discipline of that name. */
int kn_claim_how_parse(const char *name);
/* What AUTO stands for; others as they are. */
enum kn_claim_how kn_claim_how_of(enum kn_claim_how how);

/* Slots of a region for n claimants. asked 0: the widest that leaves one region more
 * than there are claimants (1 for 31), so that one who is slow does not keep the
 * supervisor from the rest. Otherwise asked, clamped to that. 0 if asked is no power of
 * two. */
uint32_t kn_claim_width(uint32_t claimants, uint32_t asked);
/* Whether so many claimants can work at that width: a power of two, and for dekker not
 * fewer regions than claimants. */
bool kn_claim_fits(enum kn_claim_how how, uint32_t claimants, uint32_t width);

/* Slots of region r. */
static inline uint32_t
kn_claim_slots(uint32_t width, uint32_t r)
{
	return (width == KN_SLOTS ? UINT32_MAX : (1u << width) - 1) << r * width;
}

#endif
