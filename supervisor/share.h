/* supervisor/share.h: shared submit: calls that any worker of a bank may take.
 *
 * Where a policy lets the workers of a module share memory, calls are not put into one
 * worker's lane but into a submit bank (ipc/region.h) that up to 31 workers claim from;
 * more workers have several banks. Results come back in each worker's own lane.
 *
 * To the core a task is in the lane of one worker all the same: the one that it was
 * given to, its home, from which it moves to whoever claims it (core/event.h, "Banks").
 * What is not claimed is in a slot of the bank or, where there is no room, on the shelf
 * in front of it, which the worker never sees: so none is killed because it has not
 * claimed what lies there.
 *
 * Who may claim: a worker that is ready and has not acknowledged a stop. What another
 * has claimed stays as it is until that one is ready (its pong is still to be read), or
 * gone: then it is offered again, as it cannot have been run by anybody honest.
 */
#ifndef KN_SUPERVISOR_SHARE_H
#define KN_SUPERVISOR_SHARE_H

#include <stdbool.h>
#include <stdint.h>

#include "ipc/err.h"
#include "ipc/offer.h"
#include "supervisor/resident.h"

struct kn_event;

struct kn_share_bank {
	struct kn_offer offer;
	uint32_t index, first; /* its first worker */
	uint32_t placed;       /* tasks in lanes of its workers, claimed or not */
	uint32_t shelf_head, shelf_n, shelf_short; /* short: need a slot only */
	uint32_t homes;	 /* claimants whose calls were published since the last wake */
	uint32_t taking; /* slots that are asked back, and somebody is there */
	uint64_t taking_ns; /* since when there have been such */
	struct kn_abort_ids ids;
	uint64_t backed;     /* of its area: bytes from the start */
	uint64_t payload_ns; /* last use; 0: nothing to give back */
	uint64_t stuck_ns;   /* when to look again for who wants and does not take */
};

struct kn_share {
	enum kn_claim_how how;
	uint32_t width, bank_n, bank_size;
	bool again; /* somebody was to be gone in this round, and could not */
	int ro_fd;  /* the arena, for reading only: what claimants map */
	struct kn_share_bank bank[];
};

/* How waiting tasks get to idle workers, and why so. -1: what is asked for cannot be.
 */
int kn_share_choose(struct kn_sup *s, uint32_t workers, struct kn_err *e);
/* What the core is told of banks. */
struct kn_pool_config;
void kn_share_configure(struct kn_pool_config *c);
/* The region of the pool's layout. */
int kn_share_lay_out(struct kn_sup *s, struct kn_layout *l, struct kn_err *e);
int kn_share_open(struct kn_sup *s, struct kn_err *e);
void kn_share_close(struct kn_sup *s);

/* The resident that is to be started may claim. */
void kn_share_join(struct kn_wk *w);
/* It is ready: what it has claimed until now is told. */
void kn_share_ready(struct kn_wk *w);
/* It is gone, all that it said is read. False: a task of its lane is in nobody's hands
 * yet: again in the next round. */
bool kn_share_leave(struct kn_wk *w);

/* To a slot or the shelf. Seen by workers after kn_share_flush(). False: what it needs
 * is memory, and nobody has any that it could wait for. */
bool kn_share_publish(struct kn_wk *w, struct kn_entry *e);
/* Publish what was put, wake who is to take it. Once a round. */
void kn_share_flush(struct kn_sup *s);
/* What was claimed in w's bank -> events. */
void kn_share_look(struct kn_wk *w);
/* A result of (task, gen) in w's lane: whether it is w's to answer; KN_ANSWER_ACCEPT:
 * ev says what is told along with it. */
enum kn_answer kn_share_answer(
    struct kn_wk *w, uint32_t task, uint32_t gen, struct kn_event *ev);
/* TAKE_BACK. OURS: it is out of the bank. Otherwise its answer is fed, or will be. */
enum kn_back kn_share_take_back(struct kn_wk *w, struct kn_entry *e);
/* Its lane has it no more. */
void kn_share_forget(struct kn_wk *w, struct kn_entry *e);

/* When something of it is due, 0: never; and do it. */
uint64_t kn_share_due(const struct kn_sup *s, uint64_t now_ns);
void kn_share_timer(struct kn_sup *s, uint64_t now_ns);

struct kn_share_bank *kn_share_bank_of(const struct kn_wk *w);

/* Between call_share.c and share_end.c: */
void kn_share_unshelve(struct kn_share_bank *b, struct kn_entry *e);
struct kn_entry *kn_share_entry(struct kn_sup *s, uint32_t task, uint32_t gen);
void kn_share_claimed(struct kn_wk *w, struct kn_entry *e);
/* Offer again what nobody has run. */
void kn_share_shelve(struct kn_share_bank *b, struct kn_entry *e);
/* Takes back that were not decided. */
void kn_share_ask_again(struct kn_sup *s, struct kn_share_bank *b);
/* Somebody wants a region: see whether it lets go. */
void kn_share_watch(struct kn_sup *s, struct kn_share_bank *b);

#endif
