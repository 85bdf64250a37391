/* supervisor/core/duty.h: what a worker owes next, and by when.
 *
 * One question asked twice: to set the worker's timer, and when it has fired to know
 * what to do. So a deadline cannot be set for one thing and mean another.
 */
#ifndef KN_CORE_DUTY_H
#define KN_CORE_DUTY_H

#include "supervisor/core/state.h"

enum kn_duty_what {
	KN_DUTY_NONE,
	KN_DUTY_READY,	   /* start_ms */
	KN_DUTY_STOP_ACK,  /* stop_ack_ms, from when it has nothing claimed */
	KN_DUTY_END,	   /* from acknowledged to gone */
	KN_DUTY_GONE,	   /* killed: kill again */
	KN_DUTY_RETIRE,	   /* recycle_s */
	KN_DUTY_UNBLOCK,   /* publications were refused: try again */
	KN_DUTY_CLAIM,	   /* claim_ms: the first of the lane */
	KN_DUTY_LOOK,	   /* ask for its begun word */
	KN_DUTY_LOOK_OVER, /* the next would be a kill: ask whether the task is over */
	KN_DUTY_HARD,	   /* hard_ms + hard_slack_ms */
	KN_DUTY_KILLED,	   /* KILL_TASK was sent: the result */
};

struct kn_duty {
	enum kn_duty_what what;
	uint32_t task; /* CLAIM, LOOK, LOOK_OVER, HARD, KILLED */
	uint64_t due_ns;
};

/* The earliest; KN_DUTY_NONE with due_ns 0 if it owes nothing. */
struct kn_duty kn_duty_next(const struct kn_pool *p, uint32_t w);

#endif
