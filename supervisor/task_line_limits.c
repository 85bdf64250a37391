/* supervisor/task_line_limits.c: the fields "limits" and "timeouts" of a task line:
 * numbers and sizes within the ranges of task_ask.h.
 */
#include <stdio.h>
#include <string.h>

#include "ipc/err.h"
#include "supervisor/task_ask.h"
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

#define COUNT(a) (sizeof(a) / sizeof(a)[0])

const char *const kn_line_limit_keys[] = { "memory", "pids", "cpu_ms", "nofile",
	"fsize", "stack", "core", "stdout", "stderr", NULL };
const char *const kn_line_call_limit_keys[] = { "cpu_ms", NULL };
const char *const kn_line_timeout_keys[] = { "queue_ms", "task_ms", "hard_ms",
	"grace_ms", NULL };
static const char *const keys_limits_outer[] = { "task", NULL };
_Static_assert(COUNT(kn_line_limit_keys) == KN_ASK_LIMITS_N + 1, "one key per limit");
_Static_assert(COUNT(kn_line_timeout_keys) == KN_ASK_N - KN_ASK_LIMITS_N + 1,
    "one key per timeout");

static int
read_limits(struct kn_line_ctx *c, json_t *v, const char *at, int from, int to)
{
	char where[KN_LINE_POINTER_MAX];
	uint64_t value;

	for (int i = from; i < to; i++) {
		const struct kn_ask_field *f = &kn_ask_fields[i];
		json_t *item = json_object_get(v, f->name);

		if (!item)
			continue;
		snprintf(where, sizeof where, "%s/%s", at, f->name);
		if (number(c, item, where, f->size, f->min, f->max, &value) < 0)
			return -1;
		kn_ask_set(&c->ask, (enum kn_ask)i, value);
	}
	return 0;
}

static int
limits(struct kn_line_ctx *c, json_t *v, const char *const *keys)
{
	json_t *task;

	if (kn_line_object(c, v, "/limits", keys_limits_outer) < 0)
		return -1;
	task = json_object_get(v, "task");
	if (!task)
		return 0;
	if (kn_line_object(c, task, "/limits/task", keys) < 0)
		return -1;
	return read_limits(c, task, "/limits/task", 0, KN_ASK_LIMITS_N);
}

int
kn_line_limits(struct kn_line_ctx *c, json_t *v)
{
	return limits(c, v, kn_line_limit_keys);
}

/* The others are those of its process, which other calls are in as well. */
int
kn_line_call_limits(struct kn_line_ctx *c, json_t *v)
{
	return limits(c, v, kn_line_call_limit_keys);
}

int
kn_line_timeouts(struct kn_line_ctx *c, json_t *v)
{
	if (kn_line_object(c, v, "/timeouts", kn_line_timeout_keys) < 0)
		return -1;
	return read_limits(c, v, "/timeouts", KN_ASK_LIMITS_N, KN_ASK_N);
}
