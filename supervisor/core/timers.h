/* supervisor/core/timers.h: a heap of deadlines over a `now` that the caller gives.
 *
 * Ids are small integers, each with one deadline or none (0). Setting, clearing and
 * popping are O(log n); the arrays are the caller's.
 */
#ifndef KN_CORE_TIMERS_H
#define KN_CORE_TIMERS_H

#include <stdbool.h>
#include <stdint.h>

struct kn_timers {
	uint64_t *due_ns; /* by id; 0: not in the heap */
	uint32_t *at;	  /* by id: place in the heap, if due_ns is not 0 */
	uint32_t *heap;	  /* ids */
	uint32_t heap_n, id_n;
};

void kn_timers_init(struct kn_timers *t, uint32_t id_n);
/* due_ns 0 clears. */
void kn_timers_set(struct kn_timers *t, uint32_t id, uint64_t due_ns);
/* The earliest deadline, 0 if there is none. */
uint64_t kn_timers_next(const struct kn_timers *t);
/* Take out the earliest id that is due at now. */
bool kn_timers_pop(struct kn_timers *t, uint64_t now_ns, uint32_t *out_id);

#endif
