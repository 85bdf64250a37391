/* supervisor/core/book.h: the pool's book of tasks: who has each, and its one answer.
 *
 * Every task that is not free is in exactly one place: the queue, or one worker's lane.
 * All moves between them, and the answer, are here; whoever calls these decides when.
 * A task that comes back goes to the front of the queue, unless something that happened
 * meanwhile (cancel, queue_ms, the end of the pool) answers it instead.
 */
#ifndef KN_CORE_BOOK_H
#define KN_CORE_BOOK_H

#include "supervisor/core/state.h"

void kn_book_init(struct kn_pool *p);
void kn_book_submit(struct kn_pool *p, const struct kn_event *ev);
void kn_book_cancel(struct kn_pool *p, uint32_t t);
/* Has the queue deadline of t passed? */
bool kn_book_is_late(const struct kn_pool *p, uint32_t t);
/* It has: answer, or ask it back. */
void kn_book_late(struct kn_pool *p, uint32_t t);
/* Answer all that is queued. */
void kn_book_flush(struct kn_pool *p, enum kn_how how);

/* The task that ev names, if it is in ev->worker's lane under that gen, else KN_NIL. */
uint32_t kn_book_find(const struct kn_pool *p, const struct kn_event *ev);

/* Queued -> lane of w. */
void kn_book_publish(struct kn_pool *p, uint32_t t, uint32_t w);
void kn_book_published(struct kn_pool *p, uint32_t t);
/* Nothing of it reached the lane. */
void kn_book_refused(struct kn_pool *p, uint32_t t);
/* Published -> claimed: may have run from here on. */
void kn_book_claimed(struct kn_pool *p, uint32_t t);
/* Out of the lane it is in, to the claimed ones of w's, which is of the same bank. */
void kn_book_move(struct kn_pool *p, uint32_t t, uint32_t w);
/* Ask for an unclaimed task back; no effect if it is being asked for already. */
void kn_book_take(struct kn_pool *p, uint32_t t, enum kn_take why);
/* Unclaimed and ours again. */
void kn_book_back(struct kn_pool *p, uint32_t t);
/* Claimed, and its worker is gone without a result. */
void kn_book_lost(struct kn_pool *p, uint32_t t);
/* The same for a call that was claimed with others; progress: its worker has answered
 * something. */
void kn_book_unrun(struct kn_pool *p, uint32_t t, bool progress);
void kn_book_result(struct kn_pool *p, uint32_t t, bool infra_fail);
/* End the cell of a claimed task; once a task. */
void kn_book_kill(struct kn_pool *p, uint32_t t, enum kn_core_cause cause);
/* How t is answered if no result comes; the first decision stands. */
void kn_book_decide(struct kn_pool *p, uint32_t t, enum kn_how how);

#endif
