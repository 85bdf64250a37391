/* supervisor/verdict.h: how a task ended, in the words of the command line.
 *
 * Pure: from how the core says it ended, the worker's checked result, and the limits
 * that held, to verdict, exit code, signal and one line for the user. Nothing here
 * looks at a clock or at the world, so that one table of cases tests all of it.
 */
#ifndef KN_SUPERVISOR_VERDICT_H
#define KN_SUPERVISOR_VERDICT_H

#include <stdbool.h>
#include <stdint.h>

#include "supervisor/core/event.h"
#include "supervisor/task.h"

struct kn_verdict_in {
	enum kn_how how;
	const struct kn_job_result *result; /* how == KN_HOW_RESULT */
	const struct kn_task_limits *limits;
	const struct kn_timeouts *timeouts;
	const char *program; /* argv[0] */
	const char *cwd;     /* as asked, or NULL */
	uint64_t wall_ns;    /* bounded by what the supervisor saw */
	const char *over; /* stream that went over its cap where that kills, or NULL */
	uint64_t over_cap;
	const char *broken; /* stream that was cut short by our own failure, or NULL */
	int broken_sys;
	const char *behind; /* why no file can be put in place, "; ...", or NULL */
	bool run_only;	    /* policy: permissions.run has entries */
	bool stopping;	    /* the pool is being stopped */
	const char *note;   /* launch error, name of a violated field, or NULL */
};

/* What there is beside it of a call. */
struct kn_call_in {
	bool died;	/* in.result says how its process ended under it */
	bool aborted;	/* it was told to give up before it had ended */
	uint32_t flags; /* enum kn_call_flag */
	const struct kn_value *value; /* checked; borrowed */
	const struct kn_value *soft_default;
};
/* As kn_verdict_of(); also sets value and soft. */
void kn_verdict_of_call(const struct kn_verdict_in *in, const struct kn_call_in *call,
    struct kn_outcome *o);

/* Sets verdict, started, exit_code, signal and error of *o. */
void kn_verdict_of(const struct kn_verdict_in *in, struct kn_outcome *o);
/* "ENOENT", or "errno 123" in buf. */
const char *kn_errno_name(int sys, char buf[16]);

#endif
