/* supervisor/core/state.h: what the core remembers. Private to supervisor/core.
 *
 * One block of the caller's storage, laid out by kn_pool_init(): the pool, its tasks,
 * its workers, its timers. Everything is an index, nothing a pointer into the block,
 * except the four array bases.
 */
#ifndef KN_CORE_STATE_H
#define KN_CORE_STATE_H

#include "supervisor/core/pool.h"
#include "supervisor/core/timers.h"

#define KN_NIL 0xffffffffu
#define KN_CORE_MS 1000000ull
#define KN_CORE_S 1000000000ull

enum {
	KN_INFRA_RETRIES =
	    2,		  /* a cell that could not be built is tried again so often */
	KN_INFRA_ROW = 3, /* so many in a row from one worker: the worker retires */
	KN_REFUSED_WORKER =
	    8, /* failed publications in a row to an empty lane: killed */
	KN_REFUSED_TASK = 16, /* failed publications of one task: LAUNCH_FAILED */
	KN_UNRUN = 3, /* workers that may go with a call and have answered nothing */
	KN_UNRUN_ALL = 32, /* workers that may go with a call, whatever they answered */
	KN_LANE_SLOTS = 32,
	KN_KILL_AGAIN_MS = 1000,
	KN_BLOCK_BUSY_MS =
	    100, /* a full lane or area: until a result, at latest this */
};

enum kn_task_state {
	KN_TASK_FREE,
	KN_TASK_QUEUED,
	KN_TASK_PUBLISHING, /* PUBLISH sent, PUBLISHED not yet seen; in a lane */
	KN_TASK_PUBLISHED,
	KN_TASK_CLAIMED,
};

/* Why a TAKE_BACK is under way. */
enum kn_take {
	KN_TAKE_NONE,
	KN_TAKE_STEAL, /* for an idle worker */
	KN_TAKE_LATE,  /* queue_ms is over */
	KN_TAKE_DROP,  /* cancelled, or the pool stops */
	KN_TAKE_PROBE, /* claim_ms is over: has the worker claimed it? */
};

struct kn_core_list {
	uint32_t head, tail, n;
};

struct kn_core_task {
	enum kn_task_state state;
	enum kn_take take;
	bool cancelled;	 /* CANCEL came */
	bool killed;	 /* KILL_TASK was sent */
	bool looked;	 /* LOOK_BEGUN was sent */
	bool moved;	 /* its worker took it from the lane of another of its bank */
	bool asked_over; /* LOOK_OVER was sent */
	bool over;	 /* its worker says: nothing of it runs any more */
	bool tried;	 /* published since SUBMIT */
	bool decided;	 /* how it is answered if its worker goes without a result */
	enum kn_how how;
	uint32_t gen;
	uint32_t runs; /* attempts claimed */
	uint32_t retries, infra_left, refused;
	uint32_t unrun, unrun_all; /* times it was claimed, not begun, and came back */
	uint32_t worker;	   /* whose lane it is in */
	uint32_t avoid; /* a worker that could not build its cell, or KN_NIL */
	uint32_t prev, next;
	uint32_t hard_ms;
	uint64_t queue_due_ns;			     /* 0: none, or claimed once */
	uint64_t published_ns, claimed_ns, begun_ns; /* begun_ns 0: not known */
	uint64_t kill_due_ns;			     /* when killed */
};

enum kn_worker_state {
	KN_WORKER_DEAD,
	KN_WORKER_SPAWNING, /* SPAWN sent */
	KN_WORKER_STARTING, /* SPAWNED, not READY */
	KN_WORKER_READY,
	KN_WORKER_STOPPING, /* STOP_WORKER sent, lane empty */
	KN_WORKER_ENDING,   /* acknowledged */
	KN_WORKER_DYING,    /* KILL_WORKER sent */
	KN_WORKER_N
};

struct kn_core_worker {
	enum kn_worker_state state;
	enum kn_why why; /* of the kill */
	uint32_t incarnation;
	struct kn_core_list lane; /* published order, head is run or next to be */
	uint32_t claimed_n;	  /* tasks of the lane that are CLAIMED */
	uint32_t given;		  /* tasks claimed so far, for recycle_tasks */
	uint32_t infra_row, refused_row;
	uint32_t fails_before; /* the pool's launch failures when it became ready */
	bool place;	       /* may be given tasks */
	bool retire;	       /* gets no more; stopped when the lane is empty */
	bool lied;
	bool served;	 /* has claimed a task in this incarnation */
	bool answered;	 /* has answered one */
	bool was_ready;	 /* in this incarnation */
	bool stopped;	 /* has said so; with nothing claimed it is no loss then */
	bool looking;	 /* a LOOK sent in this step: its answer comes before a kill */
	bool dirty;	 /* its timer is set anew at the end of the step */
	uint64_t due_ns; /* what the present state waits for: start, stop, kill again */
	uint64_t ready_ns, head_since_ns, blocked_ns;
};

enum kn_pool_mode { KN_MODE_RUN, KN_MODE_DRAIN, KN_MODE_STOP, KN_MODE_STOP_NOW };

struct kn_pool {
	struct kn_pool_config c;
	struct kn_core_task *task;
	struct kn_core_worker *worker;
	struct kn_timers timers;
	uint32_t worker_n; /* places and spares */
	uint64_t now_ns;
	enum kn_pool_mode mode;
	bool failed, ended;
	bool ever_ready;
	uint32_t launch_fails; /* in a row */
	bool slow;	       /* launches fail: one at a time, after spawn_after_ns */
	uint64_t spawn_after_ns;
	uint64_t grace_ns; /* STOP: until when running tasks may end by themselves */
	struct kn_core_list queue;
	uint32_t last_w;    /* who was given a task last */
	uint32_t random;    /* never 0 */
	uint32_t open;	    /* tasks not answered */
	uint32_t steals;    /* TAKE_BACKs under way for idle workers */
	uint32_t claimed_n; /* tasks CLAIMED, all lanes */
	uint32_t lane_n;    /* tasks in lanes */
	uint32_t ready_n;   /* workers READY */
	bool any_retire;    /* some worker has been due for recycling */
	uint64_t answered, spawned, lost, failed_launches, stolen, bugs;
	/* the step under way */
	struct kn_action *out;
	size_t out_n, out_max;
	struct kn_action scrap; /* where an action goes that breaks the bound: a bug */
};

/* Timer ids: one a task (queue_ms), one a worker, and the pool's two. */
static inline uint32_t
kn_timer_of_worker(const struct kn_pool *p, uint32_t w)
{
	return p->c.task_max + w;
}
static inline uint32_t
kn_timer_spawn(const struct kn_pool *p)
{
	return p->c.task_max + p->worker_n;
}
static inline uint32_t
kn_timer_grace(const struct kn_pool *p)
{
	return p->c.task_max + p->worker_n + 1;
}

static inline bool
kn_same_bank(const struct kn_pool *p, uint32_t a, uint32_t b)
{
	return a / p->c.bank_size == b / p->c.bank_size;
}

/* pool.c: append an action; the returned one is the caller's to complete. */
struct kn_action *kn_pool_act(struct kn_pool *p, enum kn_action_type type);
/* pool.c: nothing can be launched any more. */
void kn_pool_fail(struct kn_pool *p, enum kn_why why);

static inline bool
kn_pool_ending(const struct kn_pool *p)
{
	return p->mode >= KN_MODE_STOP || p->failed;
}

#endif
