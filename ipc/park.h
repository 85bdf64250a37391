/* ipc/park.h: how a resident module's worker sleeps and is woken, and the abort bits.
 *
 * Worker: kn_park_begin(), one more look at lane and stop word, then kn_park() (or
 * kn_park_end() if there was something). Supervisor: publish (any number), then
 * kn_park_wake() once. Labels K1 to K4 of layout.h: a publication is either seen by the
 * last look, or its publisher sees `parked` and wakes. No timeout is needed. Nobody
 * calls the kernel while the other side is awake.
 */
#ifndef KN_IPC_PARK_H
#define KN_IPC_PARK_H

#include <stdbool.h>

#include "ipc/layout.h"

/* Worker side. begin returns the value of the wake word to sleep on. */
uint32_t kn_park_begin(struct kn_control *c);
void kn_park_end(struct kn_control *c);
/* Sleep until the wake word differs from seen. May return early: look again. */
void kn_park(struct kn_control *c, uint32_t seen);
/* As kn_park(), for at most so long. False: the time is over. */
bool kn_park_for(struct kn_control *c, uint32_t seen, uint64_t ns);

/* Supervisor side, after publishing or storing the stop word. True: it slept and was
 * woken by a system call. */
bool kn_park_wake(struct kn_control *c);

/* Where each side ran of late: 1 + the CPU, 0: not known. Hints, and from a worker
 * perhaps lies. */
void kn_park_worker_is_on(struct kn_control *c, uint32_t cpu_1); /* worker */
uint32_t kn_park_worker_cpu(const struct kn_control *c);	 /* supervisor */
void kn_park_host_is_on(struct kn_control *c, uint32_t cpu_1);	 /* supervisor */
uint32_t kn_park_host_cpu(const struct kn_control *c);		 /* worker */

/* Abort bits: words of a slice (kn_control.abort) or of a bank (kn_bank_head.abort); id
 * below KN_ABORT_BITS. */
void kn_abort_set(uint32_t *words, uint32_t id);	/* supervisor */
void kn_abort_clear(uint32_t *words, uint32_t id);	/* supervisor, before reuse */
bool kn_abort_test(const uint32_t *words, uint32_t id); /* worker */

#endif
