/* supervisor/task_ask.c: see task_ask.h. */
#include "supervisor/task_ask.h"

#define SIZE_TOP ((uint64_t)INT64_MAX)
#define LIMIT(k, f, is_size, lo, hi, member) \
	[KN_ASK_##k] = { #f, is_size, false, lo, hi, \
		offsetof(struct kn_task_ask, has_##f), \
		offsetof(struct kn_task_ask, limits.member) }
#define TIMEOUT(k, f, lo) \
	[KN_ASK_##k] = { #f, false, true, lo, UINT32_MAX, \
		offsetof(struct kn_task_ask, has_##f), \
		offsetof(struct kn_task_ask, timeouts.f) }

const struct kn_ask_field kn_ask_fields[KN_ASK_N] = {
	LIMIT(MEMORY, memory, true, 1, SIZE_TOP, memory),
	LIMIT(PIDS, pids, false, 1, 1 << 22, pids),
	LIMIT(CPU_MS, cpu_ms, false, 1, UINT32_MAX, cpu_ms),
	LIMIT(NOFILE, nofile, false, 1, 1 << 20, nofile),
	LIMIT(FSIZE, fsize, true, 1, SIZE_TOP, fsize),
	LIMIT(STACK, stack, true, 1, SIZE_TOP, stack),
	LIMIT(CORE, core, true, 0, SIZE_TOP, core),
	LIMIT(STDOUT, stdout, true, 0, SIZE_TOP, stdout_bytes),
	LIMIT(STDERR, stderr, true, 0, SIZE_TOP, stderr_bytes),
	TIMEOUT(QUEUE_MS, queue_ms, 1), TIMEOUT(TASK_MS, task_ms, 1),
	TIMEOUT(HARD_MS, hard_ms, 1),
	TIMEOUT(GRACE_MS, grace_ms, 0), /* no grace: tighter than any */
};

void
kn_ask_set(struct kn_task_ask *ask, enum kn_ask which, uint64_t value)
{
	const struct kn_ask_field *f = &kn_ask_fields[which];
	char *at = (char *)ask;

	*(bool *)(void *)(at + f->has_at) = true;
	if (f->narrow)
		*(uint32_t *)(void *)(at + f->value_at) = (uint32_t)value;
	else
		*(uint64_t *)(void *)(at + f->value_at) = value;
}
