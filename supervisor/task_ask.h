/* supervisor/task_ask.h: what a task may ask for of limits and timeouts: the one table
 * of names and ranges. That a number is not looser than the policy is
 * kn_policy_tighten()'s to say; 0 means "none" in a policy, which is looser than any
 * number, so a task cannot ask for it.
 */
#ifndef KN_SUPERVISOR_TASK_ASK_H
#define KN_SUPERVISOR_TASK_ASK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sandbox/policy.h"

enum kn_ask { /* in the order of enum knit_limit */
	KN_ASK_MEMORY,
	KN_ASK_PIDS,
	KN_ASK_CPU_MS,
	KN_ASK_NOFILE,
	KN_ASK_FSIZE,
	KN_ASK_STACK,
	KN_ASK_CORE,
	KN_ASK_STDOUT,
	KN_ASK_STDERR,
	KN_ASK_LIMITS_N,
	KN_ASK_QUEUE_MS = KN_ASK_LIMITS_N,
	KN_ASK_TASK_MS,
	KN_ASK_HARD_MS,
	KN_ASK_GRACE_MS,
	KN_ASK_N
};
struct kn_ask_field {
	const char *name;
	bool size;   /* a text such as "64M" stands for it */
	bool narrow; /* of 32 bits */
	uint64_t min, max;
	size_t has_at, value_at; /* in struct kn_task_ask */
};
extern const struct kn_ask_field kn_ask_fields[KN_ASK_N];
/* value is within the field's range. */
void kn_ask_set(struct kn_task_ask *ask, enum kn_ask which, uint64_t value);

#endif
