/* supervisor/core/event.h: the closed lists: what may happen, and what may follow.
 *
 * The core is pure: kn_pool_step() takes one event (time included) and appends actions
 * to a bounded list. No descriptor, no clock, no allocation after kn_pool_init(), no
 * knowledge of shared memory. The shell (supervisor/act.c) turns actions into the world
 * and the world into events. A task is named by (task, gen): an index the shell chose
 * below the pool's task_max, and the attempt stamp that the core raises at each
 * publication; events with a stale gen are ignored or are violations, as noted.
 */
#ifndef KN_CORE_EVENT_H
#define KN_CORE_EVENT_H

#include <stdint.h>

enum kn_event_type {
	/* tasks */
	KN_EV_SUBMIT, /* task: a free index; params in ev.submit */
	KN_EV_CANCEL, /* task */
	/* one worker; `incarnation` must match the one of the last SPAWN */
	KN_EV_SPAWNED,	      /* the launcher process exists */
	KN_EV_SPAWN_FAILED,   /* it does not; fatal: trying again cannot help */
	KN_EV_READY,	      /* the ping came back */
	KN_EV_PUBLISHED,      /* task, gen: it is in the worker's lane */
	KN_EV_PUBLISH_FAILED, /* task, gen: no room or the socket refused; it is ours */
	KN_EV_CLAIMED,	   /* task, gen: the worker has taken it (seen in the lane) */
	KN_EV_BEGUN,	   /* task, gen: begun_ns, already bounded by the shell */
	KN_EV_TAKEN_BACK,  /* task, gen: answer to TAKE_BACK: it is ours again */
	KN_EV_TAKE_FAILED, /* task, gen: answer to TAKE_BACK: the worker has it */
	KN_EV_RESULT,	   /* task, gen: the worker's answer, decoded and checked */
	KN_EV_STOP_ACKED,
	KN_EV_VIOLATION, /* the worker lied; shell logged the field */
	KN_EV_GONE,	 /* reaped; all CLAIMED of its lane were reported before */
	/* pool */
	KN_EV_TIMER,	/* now only; also implied by every other event */
	KN_EV_DRAIN,	/* accept nothing more; end when all is answered */
	KN_EV_STOP,	/* as DRAIN, but queued tasks are cancelled and running ones get
			   grace_ms */
	KN_EV_STOP_NOW, /* kill */
	KN_EV_N
};

struct kn_event {
	enum kn_event_type type;
	uint64_t now_ns;
	uint32_t worker, incarnation;
	uint32_t task, gen;
	uint64_t begun_ns; /* BEGUN */
	uint32_t fatal;	   /* SPAWN_FAILED */
	uint64_t memory;   /* RESULT: what the worker holds when idle, for recycling; 0
			      unknown */
	uint32_t infra_fail; /* RESULT: the cell could not be built: retry elsewhere is
				allowed */
	struct {	     /* SUBMIT */
		uint32_t queue_ms, hard_ms; /* 0: none */
		uint32_t retries;
	} submit;
};

enum kn_action_type {
	KN_ACT_SPAWN,	/* worker, incarnation: launch it */
	KN_ACT_PUBLISH, /* worker, task, gen; answered by PUBLISHED or PUBLISH_FAILED */
	KN_ACT_TAKE_BACK,   /* worker, task, gen; answered at once by TAKEN_BACK /
			       TAKE_FAILED */
	KN_ACT_KILL_TASK,   /* worker, task, gen, cause: ask the stub to end the cell */
	KN_ACT_STOP_WORKER, /* store stop, wake it */
	KN_ACT_KILL_WORKER, /* cgroup.kill, SIGKILL to the launcher; why for the log */
	KN_ACT_LOOK_BEGUN,  /* worker, task, gen: read the begun word, send BEGUN if it
			       is this  task's; asked when a deadline depends on it */
	KN_ACT_ANSWER,	    /* task, gen, how: final, exactly once per submitted task */
	KN_ACT_POOL_FAILED, /* why: launches fail again and again; answers follow */
	KN_ACT_ENDED,	    /* nothing runs, nothing is owed: the loop may return */
	KN_ACT_N
};

/* How a task ended, as far as the core decides it. */
enum kn_how {
	KN_HOW_RESULT, /* the stub's result decides the verdict */
	KN_HOW_HARD,   /* backstop: the worker was killed at the hard deadline */
	KN_HOW_QUEUE_TIMEOUT,
	KN_HOW_CANCELLED,
	KN_HOW_WORKER_LOST,
	KN_HOW_LAUNCH_FAILED,
	KN_HOW_VIOLATION,
	KN_HOW_N
};

/* Why a worker is killed or the pool failed. */
enum kn_why {
	KN_WHY_NONE,
	KN_WHY_NOT_READY,
	KN_WHY_NOT_CLAIMED,
	KN_WHY_HARD,
	KN_WHY_NO_STOP_ACK,
	KN_WHY_NO_END,
	KN_WHY_VIOLATION,
	KN_WHY_STOP_NOW,
	KN_WHY_CRASH_LOOP,
	KN_WHY_LAUNCH_FATAL,
	KN_WHY_N
};

struct kn_action {
	enum kn_action_type type;
	uint32_t worker, incarnation;
	uint32_t task, gen;
	uint32_t arg; /* KILL_TASK: enum kn_cause as in ipc/control.h (numbers equal) */
	enum kn_how how; /* ANSWER */
	enum kn_why why;
	uint32_t attempt; /* ANSWER, PUBLISH: 1 for the first */
};

const char *kn_event_name(enum kn_event_type t);
const char *kn_action_name(enum kn_action_type t);
const char *kn_how_name(enum kn_how h);
const char *kn_why_name(enum kn_why w);

#endif
