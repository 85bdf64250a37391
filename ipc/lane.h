/* ipc/lane.h: the two private lanes of a slice: submit (supervisor -> worker, with
 * take-back) and return (worker -> supervisor). 32 slots, toggle words.
 *
 * Producer and consumer are in different, mutually distrusting processes. All state
 * that decides anything is private to the caller (struct kn_submit, kn_return_*);
 * shared words are loaded once, into locals. Publishing, claiming and retiring never
 * wait for the other side. Ordering contract: layout.h, labels P1, C1, C2, R1 to R4.
 */
#ifndef KN_IPC_LANE_H
#define KN_IPC_LANE_H

#include <stdbool.h>
#include <stdint.h>

#include "ipc/arena.h"

/* ---- submit lane, supervisor side ---- */
struct kn_submit {
	uint32_t published; /* our own word, with what is staged */
	uint32_t told;	    /* what the word in the lane says: without it */
	uint32_t
	    offered; /* slots we published and have not seen claimed, by our record */
	unsigned cursor; /* of kn_submit_next() */
};
void kn_submit_init(struct kn_submit *s);
/* A free slot by our own record, or -1. Free means: never offered, or
 * seen claimed by the worker, or taken back. The shared word can only make a slot busy
 * for longer. */
int kn_submit_free(struct kn_submit *s, const struct kn_slice *sl);
/* The next in turn that our own record has as free, or -1: for a worker that goes round
 * and claims in order of publication. The shared word is not looked at: who flips a bit
 * of a slot that was not offered has claimed it before it is. */
int kn_submit_next(const struct kn_submit *s);
/* Write header and inline bytes (payload_len of them if area is KN_AREA_INLINE, else
 * none) to slot and publish it. slot from kn_submit_free. */
void kn_submit_publish(struct kn_submit *s, const struct kn_slice *sl, int slot,
    const struct kn_slot_head *head, const void *inline_bytes);
/* The same in two halves, for a burst: written, and not offered before the flush, which
 * offers all that was staged by one store. Each such store takes a line away from a
 * worker that is looking at it. */
void kn_submit_stage(struct kn_submit *s, const struct kn_slice *sl, int slot,
    const struct kn_slot_head *head, const void *inline_bytes);
void kn_submit_flush(struct kn_submit *s, const struct kn_slice *sl);
/* Mask of offered slots that the worker has claimed since the last call; they leave
 * `offered`. Bits of slots never offered are a violation: *out_violation is set. */
uint32_t kn_submit_claimed(
    struct kn_submit *s, const struct kn_slice *sl, bool *out_violation);
/* Try to take slot back. true: ours again, the worker will not run it. false: the
 * worker claimed it first (kn_submit_claimed will tell). Bounded tries. */
bool kn_submit_take_back(struct kn_submit *s, const struct kn_slice *sl, int slot);

/* ---- submit lane, worker side ---- */
/* Copy slot's header and inline bytes out, then claim it. true: the copy is ours to
 * run. false: not pending, or taken back. Inline bytes past payload_len, or of a
 * payload in an area, are left as they were. An area's bytes are read after the claim,
 * in place: they are the worker's until kn_payload_free(). */
bool kn_submit_claim(const struct kn_slice *sl, int slot, struct kn_slot_head *out_head,
    uint8_t out_inline[KN_INLINE_MAX]);
/* As kn_submit_claim, but only if the slot holds (task, gen). For a worker that acts on
 * a message which names slot and task: by the time it looks, that task may have been
 * taken back and the slot hold another one, whose message (and descriptors) come later.
 */
bool kn_submit_claim_task(const struct kn_slice *sl, int slot, uint32_t task,
    uint32_t gen, struct kn_slot_head *out_head, uint8_t out_inline[KN_INLINE_MAX]);

/* As kn_submit_claim, for several slots by one exchange: at most max (1..KN_SLOTS) of
 * those that are pending, from *cursor on and round, in that order into out. *cursor
 * (any value) moves past the last one. Returns how many; 0: nothing is pending. Either
 * all that were copied are claimed, or none and the copies are made anew. */
int kn_submit_claim_many(const struct kn_slice *sl, unsigned *cursor, unsigned max,
    struct kn_slot out[KN_SLOTS]);
/* Mask of slots that are pending at this moment: two loads, nothing is claimed. */
uint32_t kn_submit_pending(const struct kn_slice *sl);

/* For who waits: the line of the slot that comes next, from cursor on, is fetched
 * beside the word that will tell of it, and not after it. */
void kn_submit_expect(const struct kn_slice *sl, unsigned cursor);

/* A look without a claim: does the slot still hold (task, gen) for us? false is final:
 * it was taken back (or claimed). true may be so no longer when the caller acts on it.
 * For a worker that keeps messages of tasks it cannot run yet: those that were taken
 * back leave it no other sign, and would pile up. */
bool kn_submit_is_offered(
    const struct kn_slice *sl, int slot, uint32_t task, uint32_t gen);

/* ---- return lane, worker side ---- */
struct kn_return_tx { /* starts as all zero */
	uint32_t published;
	uint32_t retired; /* as seen when there was no free slot: free may look busy */
	unsigned cursor;
};
/* Publish; false if all 32 slots are busy (the supervisor is behind). */
bool kn_return_publish(struct kn_return_tx *r, const struct kn_slice *sl,
    const struct kn_slot_head *head, const void *inline_bytes);
/* Whether the supervisor has taken all that was published. */
bool kn_return_is_taken(struct kn_return_tx *r, const struct kn_slice *sl);

/* ---- return lane, supervisor side ---- */
struct kn_return_rx { /* starts as all zero */
	uint32_t retired;
	uint32_t seen; /* the worker's word, looked at anew when all of it is taken */
	unsigned cursor;
};
/* Mask of slots that are pending at this moment. */
uint32_t kn_return_pending(const struct kn_return_rx *r, const struct kn_slice *sl);
/* As kn_submit_expect(). */
void kn_return_expect(const struct kn_return_rx *r, const struct kn_slice *sl);
/* Copy the next pending slot out, oldest first as far as the cursor can tell, without
 * retiring it. Returns the slot or -1. */
int kn_return_peek(struct kn_return_rx *r, const struct kn_slice *sl,
    struct kn_slot_head *out_head, uint8_t out_inline[KN_INLINE_MAX]);
void kn_return_retire(struct kn_return_rx *r, const struct kn_slice *sl, int slot);

#endif
