/* ipc/bell.h: the doorbell by which a worker wakes the supervisor's epoll.
 *
 * Supervisor: when all lanes are drained, kn_bell_arm(), look at every lane once more,
 * and only then sleep. Worker: publish, then kn_bell_ring(), which writes its own
 * eventfd only if armed (and disarms, so that a burst costs one ring). Labels B1, B2.
 */
#ifndef KN_IPC_BELL_H
#define KN_IPC_BELL_H

#include <stdbool.h>

#include "ipc/layout.h"

void kn_bell_arm(struct kn_control *c);
void kn_bell_disarm(struct kn_control *c);
/* Worker side. Returns true if the eventfd was written. */
bool kn_bell_ring(struct kn_control *c, int eventfd);

#endif
