/* supervisor/core/assign.h: which worker gets the next task, and how many there are. */
#ifndef KN_CORE_ASSIGN_H
#define KN_CORE_ASSIGN_H

#include "supervisor/core/state.h"

/* Ready workers take free places, lowest index first. */
void kn_assign_places(struct kn_pool *p);
/* The oldest queued task that is not too late; those before it are answered. */
uint32_t kn_assign_next(struct kn_pool *p);
/* Queued tasks, oldest first, to workers with an empty lane. */
void kn_assign_idle(struct kn_pool *p);
/* The rest to those who are at work, up to lane_depth. */
void kn_assign_deepen(struct kn_pool *p);
/* Launch what is wanted: on demand or all, after the back-off. */
void kn_assign_spawn(struct kn_pool *p);

#endif
