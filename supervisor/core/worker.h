/* supervisor/core/worker.h: the life of one worker: a table of state x event.
 *
 *   DEAD -> SPAWNING -> STARTING -> READY -> STOPPING -> ENDING -> DEAD
 *                  any of them with a process -> DYING -> DEAD
 */
#ifndef KN_CORE_WORKER_H
#define KN_CORE_WORKER_H

#include "supervisor/core/state.h"

/* An event of a worker. Impossible ones are counted as bugs of the shell. */
void kn_worker_event(struct kn_pool *p, const struct kn_event *ev);
void kn_worker_spawn(struct kn_pool *p, uint32_t w);
/* READY with an empty lane. */
void kn_worker_stop(struct kn_pool *p, uint32_t w);
/* First reason stands; no effect on what is dead, dying, or not there yet. */
void kn_worker_kill(struct kn_pool *p, uint32_t w, enum kn_why why);
/* It is dying, and has taken its time. */
void kn_worker_kill_again(struct kn_pool *p, uint32_t w);
/* overdue.c: its timer fired: do what is due. */
void kn_worker_timer(struct kn_pool *p, uint32_t w);
/* overdue.c: set its timer to what it waits for now. */
void kn_worker_rearm(struct kn_pool *p, uint32_t w);
/* Ready and not on its way out: may get tasks if it has a place. */
bool kn_worker_stays(const struct kn_pool *p, uint32_t w);

#endif
