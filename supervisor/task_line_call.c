/* supervisor/task_line_call.c: the fields of a task line that is a call: "call" and its
 * argument, one of "value" (with "array"), "bytes_b64" and "path"; and "soft_default".
 */
#include <stdlib.h>
#include <string.h>

#include "ipc/err.h"
#include "sandbox/policy.h"
#include "supervisor/task.h"
#include "supervisor/task_line_json.h"
#include "supervisor/value_json.h"

enum { NAME_MAX_BYTES = 255 };

const char *const kn_line_call_keys[] = { "id", "after", "call", "value", "array",
	"bytes_b64", "path", "soft_default", "limits", "timeouts", NULL };

static int
read_name(struct kn_line_ctx *c, json_t *v)
{
	struct kn_call *call = &c->out->task->call;
	size_t n;

	if (kn_line_string(c, v, "/call", false, &call->name, &n) < 0)
		return -1;
	if (n == 0 || n > NAME_MAX_BYTES)
		return kn_line_fail(
		    c, "/call: must have 1 to %d bytes", NAME_MAX_BYTES);
	return 0;
}

static int
read_value(struct kn_line_ctx *c, json_t *v, const char *array, const char *at,
    struct kn_value *out)
{
	const char *why;

	if (kn_value_from_json(v, array, out, &why) < 0)
		return kn_line_fail(c, "%s: %s", array ? "/array" : at, why);
	c->out->bytes += out->n;
	return 0;
}

/* Read when it is handed on, as the files of a command are. */
static int
read_path(struct kn_line_ctx *c, json_t *v)
{
	struct kn_line *l = c->out;
	struct kn_task *t = l->task;

	l->sources = calloc(1, sizeof *l->sources);
	t->files = calloc(1, sizeof *t->files);
	if (!l->sources || !t->files)
		return kn_line_fail(c, "/path: out of memory");
	t->files[0].fd = -1;
	t->file_n = 1;
	l->source_n = 1;
	l->sources[0].mode_given = true;
	return kn_line_string(c, v, "/path", false, &l->sources[0].path, NULL);
}

static int
read_argument(struct kn_line_ctx *c)
{
	json_t *value = json_object_get(c->root, "value");
	json_t *array = json_object_get(c->root, "array");
	json_t *bytes = json_object_get(c->root, "bytes_b64");
	json_t *path = json_object_get(c->root, "path");
	struct kn_value *arg = &c->out->task->call.arg;

	if ((value != NULL) + (bytes != NULL) + (path != NULL) > 1)
		return kn_line_fail(c, "/%s: give one of value, bytes_b64 and path",
		    path ? "path" : "bytes_b64");
	if (array && !json_is_string(array))
		return kn_line_fail(c, "/array: must be a string");
	if (array && !value)
		return kn_line_fail(c, "/array: goes with value");
	arg->type = KN_TYPE_NULL;
	if (value)
		return read_value(c, value, json_string_value(array), "/value", arg);
	if (!bytes && !path)
		return 0;
	arg->type = KN_TYPE_BYTES;
	return path ? read_path(c, path)
		    : kn_line_base64(c, bytes, "/bytes_b64", &arg->bytes, &arg->n);
}

int
kn_line_call(struct kn_line_ctx *c)
{
	json_t *soft = json_object_get(c->root, "soft_default");
	json_t *limits = json_object_get(c->root, "limits");
	json_t *timeouts = json_object_get(c->root, "timeouts");

	if (json_object_get(c->root, "argv"))
		return kn_line_fail(
		    c, "/argv: a call and a command exclude each other");
	if (kn_line_object(c, c->root, "", kn_line_call_keys) < 0 ||
	    read_name(c, json_object_get(c->root, "call")) < 0 ||
	    read_argument(c) < 0 || (limits && kn_line_call_limits(c, limits) < 0) ||
	    (timeouts && kn_line_timeouts(c, timeouts) < 0))
		return -1;
	if (!soft)
		return 0;
	return read_value(
	    c, soft, NULL, "/soft_default", &c->out->task->call.soft_default);
}
