/* ipc/claim.h: a worker's side of a shared bank (ipc/region.h): take tasks that others
 * may take too, each exactly once.
 *
 * Algorithm: PROTOCOL.md section 3, which is Knitting's region Dekker (its lock.ts up
 * to 0.1.73) and its cas-mask of 0.1.70. What differs here, and why:
 *   - want and ack are one 64-bit word (region.h): half the loads, and letting go
 * cannot come before, or without, the ack;
 *   - a senior's wait for a junior is bounded; theirs is not, and a stopped claimant
 *     stopped the pool. So is everything else here: no call waits for anybody;
 *   - a word that wants two regions wants none, so that a liar keeps one region at
 * most;
 *   - peers' acks are read before `published`, not after: a slot that was free, filled,
 *     and retired between the two loads would look pending;
 *   - each ack says which publication it retires (kn_own.taken), and a copy counts only
 *     if the slot's seq is the same before and after it;
 *   - a region's tasks are taken oldest first, and not more than the caller asks for;
 *   - cas-mask names who claims before the exchange, not after: whoever dies in between
 *     leaves a bit that can be told from one in use.
 *
 * What is claimed is copied out and retired before it is run, never the other way. If
 * this claimant dies at any step, others go on: see the cards of region.h. Labels Y2,
 * V2, W1 to W3, M1, I1, F1, N1, D2.
 *
 * auto is dekker. `knit-sandbox bench --only M15` compares the two with processes; on
 * two busy CPUs neither is ahead by more than the noise. In dekker each word has one
 * writer, so that it holds against a liar; cas-mask is for workers that trust each
 * other.
 *
 * A third discipline, by tickets, was measured and left out: the order of publication
 * in a ring, and a head that claimants move by an exchange (tests/stress/ticket.c).
 * Nanoseconds a task of a claim while nobody else claims, and million tasks a second
 * when all do, 2 CPUs, 9 rounds:
 *
 *   claimants    2           4           8           16          31
 *   dekker       15   2.11   20   1.41   46   1.94   147  1.22   181  0.86
 *   cas-mask     17   1.50   22   2.95   50   2.26   190  0.90   246  0.80
 *   tickets      11   2.94   12   3.50   20   2.46   29   1.44   20   1.45
 *
 * It is the cheapest claim, since it looks at nobody else's word. But a no-op call of a
 * pool that shares costs 2.8 us of processor with 2 workers and 14 us with 31, which
 * are wakes and answers: the claim is 0.5 and 1.3 percent of that, so that no pool
 * would be faster by more. And it would cost what the others have: the supervisor takes
 * a task back out of the midst of what is offered, which an order does not allow; and
 * one liar that moves the head has everybody's tasks skipped, as with cas-mask, but
 * nothing in memory shows it.
 */
#ifndef KN_IPC_CLAIM_H
#define KN_IPC_CLAIM_H

#include <stdbool.h>
#include <stdint.h>

#include "ipc/region.h"

struct kn_claimant {
	struct kn_bank bank;
	enum kn_claim_how how;
	uint32_t id, width, region_n;
	uint32_t ack;		 /* shadow of our own word */
	uint32_t cursor;	 /* the region to look at first */
	uint64_t empty_at;	 /* `published` when nothing was pending, */
	bool empty;		 /* if this is set */
	uint64_t mine[KN_SLOTS]; /* as kn_own.taken, privately */
	/* counters */
	uint64_t claims;    /* that took something */
	uint64_t withdrawn; /* for a senior, or a region was lost to another */
	uint64_t stalls;    /* a junior did not withdraw in time */
	uint64_t stale;	    /* slots that somebody's lie made look pending */
};

/* What a claim copies out of one slot. An area's bytes are read in place: they are the
 * claimant's until kn_claim_free() or its answer, whatever is first. */
struct kn_claimed {
	union {
		struct kn_slot as_slot;
		struct {
			_Alignas(KN_LINE) uint8_t inline_bytes[KN_INLINE_MAX];
			struct kn_slot_head head;
		};
	};
	int slot;
};

enum { KN_CLAIM_BUSY = -1 };

/* Start, or start again where a dead claimant of this id left off: the supervisor has
 * put the word of want to rights and says so by LIVE. -1: that many claimants cannot
 * work at this width, or there is no such id. */
int kn_claimant_init(struct kn_claimant *k, const struct kn_bank *b, uint32_t id,
    enum kn_claim_how how, uint32_t width);

/* Claim at most max tasks of one region. Returns how many are in out: they are this
 * claimant's to run. 0: nothing is pending; who wants to sleep looks once more after
 * saying so (ipc/park.h). KN_CLAIM_BUSY: something is pending, but others are at it, or
 * somebody is in the way: look again, and do not sleep without a limit, since that
 * somebody may withdraw in turn. max 1 takes a single task: for long tasks; a whole
 * region's width is for short ones. Claim only when what was claimed has been run. */
int kn_claim(struct kn_claimant *k, struct kn_claimed *out, int max);

/* Done with the bytes of an area; at most once, and before the answer. */
void kn_claim_free(struct kn_claimant *k, uint32_t area);

#endif
