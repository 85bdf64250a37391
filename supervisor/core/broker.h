/* supervisor/core/broker.h: who may take from whom.
 *
 * When a worker is idle and nothing is queued, an unclaimed task of another worker -
 * busy, or dying - is asked back (KN_ACT_TAKE_BACK). The exchange on the claim word
 * decides who has it; if it is ours it goes through the front of the queue to the idle
 * worker, in the same step. Never asked for: the first task of a ready worker's lane if
 * it is unclaimed (that worker is about to run it), and a task under way already. Nor,
 * where workers share a bank, what an idle one of the same bank will take by itself.
 */
#ifndef KN_CORE_BROKER_H
#define KN_CORE_BROKER_H

#include "supervisor/core/state.h"

void kn_broker_step(struct kn_pool *p);

#endif
