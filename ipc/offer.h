/* ipc/offer.h: the supervisor's side of a shared bank (ipc/region.h): offer tasks to
 * all of its workers, know who took which, and settle what a dead or lying one leaves.
 *
 * All that decides anything is private (struct kn_offer); a claimant's words are loaded
 * once and checked. An ack counts if it is for a slot that is offered and names that
 * publication; it makes the claimant the task's owner, and only the owner's answer is
 * accepted. What else a claimant stores is a lie (enum kn_lie): the claimant is to be
 * killed. It changes nothing here: the supervisor's own ack bit makes up for its
 * toggle.
 *
 * What a liar can do in a shared bank, until it is killed:
 *   - take any task that is offered (anybody may), and answer it wrongly or not at all;
 *   - keep the tasks of one region waiting, by wanting it and not letting go:
 *     kn_offer_blockers() names it. Under cas-mask, of all regions, and nothing names
 * it;
 *   - by an ack without a claim, have a task that it or another has just taken be taken
 *     and run once more. Then several have acked one publication: the first owns it,
 * and the answers of the others are dropped (KN_ANSWER_DROP; they are counted, not
 *     punished, since all but one are honest).
 * It cannot lose or change a task of another, settle one it did not take, free
 * another's payload, get another one blamed, or hold up the supervisor.
 *
 * Labels V1, Y1, W1, W2, W4, M2, I2, F2, N2, D1. Models: tests/model/dekker.pml and
 * casmask.pml.
 */
#ifndef KN_IPC_OFFER_H
#define KN_IPC_OFFER_H

#include <stdbool.h>
#include <stdint.h>

#include "ipc/payload.h"
#include "ipc/region.h"

/* What an honest claimant can have taken and not answered, as seen here: a full return
 * lane not yet read, and one claim. More is hoarding. */
enum { KN_HELD_MAX = 2 * KN_SLOTS };

enum kn_lie {
	KN_LIE_NONE,
	KN_LIE_ACK,   /* acked a slot that was not offered */
	KN_LIE_TAKEN, /* acked a slot, and named another publication than the one in it
		       */
	KN_LIE_HOARD, /* took far more than it answered */
	KN_LIE_FREED, /* freed an area that it does not have */
	KN_LIE_N
};
const char *kn_lie_name(enum kn_lie l); /* the field's name and what is wrong with it */

/* A publication. */
struct kn_offered {
	uint64_t seq;
	uint32_t task, gen;
	int area; /* -1: inline */
	uint32_t acked_by;
};

struct kn_held { /* acked by a claimant and not answered by it */
	uint32_t task, gen;
	int16_t area; /* below 0: none, or freed */
	bool second;  /* another one owns it */
};

struct kn_offer {
	struct kn_bank bank;
	enum kn_claim_how how;
	uint32_t width;
	uint64_t published;  /* shadow of our word */
	uint64_t seq;	     /* of the last publication */
	uint32_t own_ack;    /* shadow of our ack */
	uint32_t live;	     /* shadow of our word */
	uint32_t offered;    /* slots published and not seen taken */
	uint32_t staged;     /* written, to be published */
	uint32_t unreported; /* taken, not yet told to the caller */
	uint32_t wanted;     /* regions that somebody wanted at the last poll */
	unsigned cursor;
	struct kn_offered now[KN_SLOTS], before[KN_SLOTS];
	uint32_t taker[KN_SLOTS]; /* of unreported ones */
	struct kn_payload pay;
	uint32_t pay_freed; /* the word that pay looks at: ours, not a claimant's */
	uint32_t ack[KN_CLAIMANTS], freed[KN_CLAIMANTS]; /* as seen */
	uint64_t want_word[KN_CLAIMANTS], want_since[KN_CLAIMANTS];
	enum kn_lie lie[KN_CLAIMANTS];
	uint32_t liars; /* a bit for each that has a lie */
	uint64_t again; /* acks of what another owned already */
	uint32_t held_n[KN_CLAIMANTS];
	struct kn_held held[KN_CLAIMANTS][KN_HELD_MAX];
};

/* bank: zeroed, and nobody claims from it yet. -1 as kn_claimant_init(). */
int kn_offer_init(struct kn_offer *o, const struct kn_bank *bank, enum kn_claim_how how,
    uint32_t width);

/* ---- claimants come and go ---- */

/* Claimant c may claim from now on. New, or buried. Its process starts after this, or
 * waits for a message sent after this. */
void kn_offer_join(struct kn_offer *o, uint32_t c);
/* Claimant c is dead: reaped, and nothing has its page mapped any more. Fills out with
 * the tasks that it owned and did not answer, and returns how many. Those that its
 * begun word names have been started, the others have not. Its answers in the return
 * lane come before this call, or are void. What it only wanted is pending for others:
 * wake one. */
int kn_offer_bury(struct kn_offer *o, uint32_t c, struct kn_held out[KN_HELD_MAX]);

/* ---- offering ---- */

/* A free slot by our own record, or -1. Slots get free in kn_offer_poll(); those of a
 * region that somebody wanted then do not: with a liar about, a claimant may be copying
 * one that was retired. Spread over the regions. */
int kn_offer_slot(const struct kn_offer *o);
/* An area for n bytes, to be filled at bank.area + *out_off; or -1. */
int kn_offer_area(struct kn_offer *o, uint64_t n, uint64_t *out_off);
/* Write header and inline bytes (payload_len of them if head->area is KN_AREA_INLINE)
 * to a slot from kn_offer_slot(). Nobody sees it before kn_offer_publish(). */
void kn_offer_put(
    struct kn_offer *o, int slot, const struct kn_slot_head *head, const void *bytes);
/* Publish all that was put, with one store. Then wake. */
void kn_offer_publish(struct kn_offer *o);

/* ---- taking stock ---- */

struct kn_taken {
	uint32_t claimant, task, gen;
};
/* Look at all claimants. Returns how many tasks were taken since the last call, and who
 * took them: their clocks start now. Look at o->liars afterwards. */
int kn_offer_poll(struct kn_offer *o, struct kn_taken out[KN_SLOTS]);

enum kn_answer {
	KN_ANSWER_ACCEPT, /* claimant c owned it; it is settled now */
	KN_ANSWER_DROP,	  /* it took it too, but another one owns it */
	KN_ANSWER_LIE,	  /* it never took it, or has answered it already */
};
/* Claimant c has put (task, gen) in its return lane. */
enum kn_answer kn_offer_answer(
    struct kn_offer *o, uint32_t c, uint32_t task, uint32_t gen);

enum kn_back {
	KN_BACK_OURS, /* nobody will run it */
	KN_BACK_GONE, /* taken already: kn_offer_poll() tells by whom */
	KN_BACK_BUSY, /* somebody is in its region; try again later */
};
/* Take an offered slot back, as the most junior claimant. Waits for nobody. */
enum kn_back kn_offer_take_back(struct kn_offer *o, int slot);

/* Claimants that have wanted one region for bound_ns, without letting go or acking
 * anything: stopped, or worse. Call now and then; a word counts from the first call
 * that saw it. */
uint32_t kn_offer_stuck(struct kn_offer *o, uint64_t now_ns, uint64_t bound_ns);
/* Who wants the region of slot right now: for a task that nobody takes. */
uint32_t kn_offer_blockers(const struct kn_offer *o, int slot);
/* Live claimants that want anything at this moment. */
uint32_t kn_offer_wanting(const struct kn_offer *o);
/* A claimant's own count of juniors that did not withdraw, and the last one's id.
 * Hints.
 */
uint32_t kn_offer_stalls(const struct kn_offer *o, uint32_t c, uint32_t *out_on);
/* Claimants that hold nothing (by our record): where a wake is not wasted. */
uint32_t kn_offer_idle(const struct kn_offer *o);

#endif
