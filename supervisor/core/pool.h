/* supervisor/core/pool.h: the pool as a pure state machine.
 *
 * kn_pool_init() allocates nothing: the caller hands storage of kn_pool_bytes().
 * kn_pool_step() never fails; an event that is impossible in the present state is a bug
 * of the shell, is counted in kn_pool_bugs() and changes nothing (the shell asserts
 * that the count stays 0 in its own tests). What a worker can cause is never counted
 * there. Which event answers which action, and which deadlines run when: event.h.
 *
 * Workers. Indices 0 to kn_pool_workers()-1, that is worker_n + spares, all alike. At
 * most worker_n of them hold a place: only those are given tasks. A worker takes a
 * place when it is ready and one is free, lowest index first; it gives it up when it
 * leaves (stopped, killed, or retired for recycling and its lane empty). So a spare is
 * a ready worker without a place; it takes over in the very step in which a place is
 * given up. On demand (not eager) there are never more workers, spares included, than
 * tasks to run. A recycled worker gets no more tasks once it is due, ends what it has,
 * and is stopped; with recycle_tasks N it is never given more than N.
 */
#ifndef KN_CORE_POOL_H
#define KN_CORE_POOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "supervisor/core/event.h"

/* Which worker gets the next task. An idle one always comes before a busy one: */
enum kn_balance {
	KN_BALANCE_FIRST_IDLE,	/* the first idle one; else the shortest lane */
	KN_BALANCE_ROUND_ROBIN, /* the next after the one that was given one last */
	KN_BALANCE_RANDOM,	/* any idle one; else any that has room */
	KN_BALANCE_FIRST_IDLE_OR_RANDOM, /* the first idle one; else any */
	KN_BALANCE_N
};

struct kn_pool_config {
	uint32_t worker_n;   /* 1..256 */
	uint32_t task_max;   /* tasks known at one time, 1..65536 */
	uint32_t lane_depth; /* tasks published to one worker at a time, 1..64; at
				most 32 of them unclaimed */
	uint32_t start_ms;   /* launch to ready */
	uint32_t claim_ms;   /* published to an idle worker until claimed; 0:
			      see event.h */
	uint32_t
	    hard_slack_ms; /* the stub enforces hard_ms; after this much more we do */
	uint32_t teardown_ms; /* more for a worker that has ended all of a task and is
				 taking down what it left; 0: none, nobody asks */
	uint32_t grace_ms, stop_ack_ms;
	uint32_t recycle_tasks; /* 0: never */
	uint32_t recycle_s;
	uint64_t recycle_memory;
	uint32_t spares; /* workers launched ahead beyond worker_n (0..worker_n) */
	uint32_t backoff_min_ms, backoff_max_ms;
	uint32_t
	    crash_loop; /* launches in a row without a ready worker that end the pool */
	uint32_t crash_loop_later; /* the same once there has been a ready one: then
				      the machine can, and work is at stake; 0: as
				      crash_loop */
	/* Tasks are calls of one process per worker, which claims several at a time and
	 * runs them in the order of the lane: what it has claimed and not answered when
	 * it goes is queued again, no attempt counted. The shell has fed a RESULT for
	 * the one that it was at, or BEGUN, if it knows. */
	/* And there are many: PUBLISH is taken for done unless PUBLISH_FAILED says
	 * otherwise, and a RESULT may stand for its CLAIMED. */
	bool calls;
	/* Workers i * bank_size and on, so many, share a bank: see event.h. 0, 1: none.
	 */
	uint32_t bank_size;
	uint32_t offer_max; /* unclaimed tasks in one lane, 1..32; 0: 32 */
	enum kn_balance balance;
	uint32_t seed; /* of what is random */
	bool broker;   /* take unclaimed tasks back for idle workers */
	bool eager;    /* launch all workers at the first event; else on demand */
};

struct kn_pool;
/* Worker indices in use: worker_n + spares, 256 at most. */
uint32_t kn_pool_workers(const struct kn_pool_config *c);
/* storage: kn_pool_bytes() bytes, aligned as by malloc. Numbers out of range are
 * brought into range (see the comments at the fields). */
size_t kn_pool_bytes(const struct kn_pool_config *c);
struct kn_pool *kn_pool_init(void *storage, const struct kn_pool_config *c);

/* Room for one step. The bound is computed from the config. */
size_t kn_pool_actions_max(const struct kn_pool_config *c);
/* Returns the number of actions written to out. */
size_t kn_pool_step(
    struct kn_pool *p, const struct kn_event *ev, struct kn_action *out);
/* When to send the next KN_EV_TIMER at latest; 0: no need. */
uint64_t kn_pool_deadline(const struct kn_pool *p);

struct kn_pool_counts {
	/* now. published: in a lane, not claimed. running: claimed. ready: spares too.
	   dead: indices without a process */
	uint32_t queued, published, running, ready, launching, dead;
	/* ever. lost: workers that had been ready and went without being asked, or were
	   killed for a fault. failed_launches: those that did not get ready */
	uint64_t answered, spawned, lost, failed_launches, stolen;
};
void kn_pool_count(const struct kn_pool *p, struct kn_pool_counts *out);
uint64_t kn_pool_bugs(const struct kn_pool *p);

#endif
