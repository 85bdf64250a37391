/* supervisor/task_line_limits.c: the fields "limits" and "timeouts" of a task line. The
 * numbers are only read here; that they are not looser than the policy is
 * kn_policy_tighten()'s to say. 0 means "none" in a policy, which is looser than any
 * number, so a task cannot ask for it.
 */
#include <stdio.h>
#include <string.h>

#include "ipc/err.h"
#include "supervisor/task_line_json.h"

static bool
is_ms(const char *pointer)
{
	size_t n = strlen(pointer);

	return n > 3 && strcmp(pointer + n - 3, "_ms") == 0;
}

static int
number(struct kn_line_ctx *c, json_t *v, const char *at, bool size, uint64_t min,
    uint64_t max, uint64_t *out)
{
	struct kn_err e = { 0 };

	if (size && json_is_string(v)) {
		if (strlen(json_string_value(v)) != json_string_length(v) ||
		    kn_policy_size(json_string_value(v), out, &e) < 0)
			return kn_line_fail(c, "%s: not a size such as \"64M\"", at);
	} else if (!json_is_integer(v)) {
		return kn_line_fail(c, "%s: must be a whole number%s", at,
		    size	? " or a size such as \"64M\""
		    : is_ms(at) ? " of milliseconds"
				: "");
	} else if (json_integer_value(v) < 0) {
		return kn_line_fail(c, "%s: out of range: below 0", at);
	} else {
		*out = (uint64_t)json_integer_value(v);
	}
	if (*out < min || *out > max)
		return kn_line_fail(c, "%s: out of range: %llu is not in %llu to %llu",
		    at, (unsigned long long)*out, (unsigned long long)min,
		    (unsigned long long)max);
	return 0;
}

struct limit {
	const char *name;
	bool size;
	uint64_t min, max;
	size_t has_at, value_at;
};
#define LIMIT(f, is_size, lo, hi, member) \
	{ \
#f, is_size, lo, hi, offsetof(struct kn_task_ask, has_##f), \
		    offsetof(struct kn_task_ask, limits.member) \
	}
#define SIZE_TOP ((uint64_t)INT64_MAX)
static const struct limit task_limits[] = {
	LIMIT(memory, true, 1, SIZE_TOP, memory),
	LIMIT(pids, false, 1, 1 << 22, pids),
	LIMIT(cpu_ms, false, 1, UINT32_MAX, cpu_ms),
	LIMIT(nofile, false, 1, 1 << 20, nofile),
	LIMIT(fsize, true, 1, SIZE_TOP, fsize),
	LIMIT(stack, true, 1, SIZE_TOP, stack),
	LIMIT(core, true, 0, SIZE_TOP, core),
	LIMIT(stdout, true, 0, SIZE_TOP, stdout_bytes),
	LIMIT(stderr, true, 0, SIZE_TOP, stderr_bytes),
};
#define TIMEOUT(f, least) \
	{ \
#f, false, least, UINT32_MAX, offsetof(struct kn_task_ask, has_##f), \
		    offsetof(struct kn_task_ask, timeouts.f) \
	}
static const struct limit task_timeouts[] = {
	TIMEOUT(queue_ms, 1), TIMEOUT(task_ms, 1), TIMEOUT(hard_ms, 1),
	TIMEOUT(grace_ms, 0), /* no grace: tighter than any */
};
#define COUNT(a) (sizeof(a) / sizeof(a)[0])

const char *const kn_line_limit_keys[] = { "memory", "pids", "cpu_ms", "nofile",
	"fsize", "stack", "core", "stdout", "stderr", NULL };
const char *const kn_line_timeout_keys[] = { "queue_ms", "task_ms", "hard_ms",
	"grace_ms", NULL };
static const char *const keys_limits_outer[] = { "task", NULL };
_Static_assert(
    COUNT(kn_line_limit_keys) == COUNT(task_limits) + 1, "one key per limit");
_Static_assert(
    COUNT(kn_line_timeout_keys) == COUNT(task_timeouts) + 1, "one key per timeout");

static int
read_limits(struct kn_line_ctx *c, json_t *v, const char *at, const struct limit *table,
    size_t n, bool wide)
{
	char where[KN_LINE_POINTER_MAX];
	uint64_t value;

	for (size_t i = 0; i < n; i++) {
		json_t *item = json_object_get(v, table[i].name);
		char *ask = (char *)&c->ask;

		if (!item)
			continue;
		snprintf(where, sizeof where, "%s/%s", at, table[i].name);
		if (number(c, item, where, table[i].size, table[i].min, table[i].max,
			&value) < 0)
			return -1;
		*(bool *)(void *)(ask + table[i].has_at) = true;
		if (wide)
			*(uint64_t *)(void *)(ask + table[i].value_at) = value;
		else
			*(uint32_t *)(void *)(ask + table[i].value_at) =
			    (uint32_t)value;
	}
	return 0;
}

int
kn_line_limits(struct kn_line_ctx *c, json_t *v)
{
	json_t *task;

	if (kn_line_object(c, v, "/limits", keys_limits_outer) < 0)
		return -1;
	task = json_object_get(v, "task");
	if (!task)
		return 0;
	if (kn_line_object(c, task, "/limits/task", kn_line_limit_keys) < 0)
		return -1;
	return read_limits(
	    c, task, "/limits/task", task_limits, COUNT(task_limits), true);
}

int
kn_line_timeouts(struct kn_line_ctx *c, json_t *v)
{
	if (kn_line_object(c, v, "/timeouts", kn_line_timeout_keys) < 0)
		return -1;
	return read_limits(
	    c, v, "/timeouts", task_timeouts, COUNT(task_timeouts), false);
}
