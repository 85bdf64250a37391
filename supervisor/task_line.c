/* supervisor/task_line.c: see task_line.h. Files of a task are in task_line_files.c,
 * limits and timeouts in task_line_limits.c.
 */
#include "supervisor/task_line.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ipc/err.h"
#include "sandbox/policy.h"
#include "supervisor/base64.h"
#include "supervisor/task.h"
#include "supervisor/task_env.h"
#include "supervisor/task_line_json.h"

#define COUNT(a) (sizeof(a) / sizeof(a)[0])

struct field {
	const char *name;
	int (*read)(struct kn_line_ctx *c, json_t *v);
};

/* ---- strings and lists of strings ---- */

int
kn_line_string(struct kn_line_ctx *c, json_t *v, const char *at, bool nul_ok,
    char **out, size_t *out_n)
{
	size_t n;

	if (!json_is_string(v))
		return kn_line_fail(c, "%s: must be a string", at);
	n = json_string_length(v);
	if (!nul_ok && memchr(json_string_value(v), '\0', n))
		return kn_line_fail(c, "%s: a NUL character cannot be passed on", at);
	*out = malloc(n + 1);
	if (!*out)
		return kn_line_fail(c, "%s: out of memory", at);
	memcpy(*out, json_string_value(v), n);
	(*out)[n] = '\0';
	c->out->bytes += n + 1;
	if (out_n)
		*out_n = n;
	return 0;
}

static int
string_list(struct kn_line_ctx *c, json_t *v, const char *at, size_t max, char ***out,
    size_t *out_n)
{
	char where[KN_LINE_POINTER_MAX];
	size_t n;

	if (!json_is_array(v))
		return kn_line_fail(c, "%s: must be an array of strings", at);
	n = json_array_size(v);
	if (n > max)
		return kn_line_fail(c, "%s: at most %zu entries, here %zu", at, max, n);
	*out = calloc(n + 1, sizeof **out);
	if (!*out)
		return kn_line_fail(c, "%s: out of memory", at);
	c->out->bytes += (n + 1) * sizeof **out;
	for (; *out_n < n; ++*out_n) {
		snprintf(where, sizeof where, "%s/%zu", at, *out_n);
		if (kn_line_string(c, json_array_get(v, *out_n), where, false,
			&(*out)[*out_n], NULL) < 0)
			return -1;
	}
	return 0;
}

int
kn_line_base64(
    struct kn_line_ctx *c, json_t *v, const char *at, void **out, size_t *out_n)
{
	size_t n;

	if (!json_is_string(v))
		return kn_line_fail(c, "%s: must be a string of base64", at);
	n = json_string_length(v);
	*out = malloc(kn_base64_decoded_max(n) + 1);
	if (!*out)
		return kn_line_fail(c, "%s: out of memory", at);
	if (kn_base64_decode(json_string_value(v), n, *out, out_n) < 0) {
		size_t bad = *out_n;

		*out_n = 0;
		return kn_line_fail(c, "%s: not base64 at character %zu", at, bad + 1);
	}
	c->out->bytes += *out_n;
	return 0;
}

/* ---- the fields of a task ---- */

static int
id_text(struct kn_line_ctx *c, json_t *v, const char *at)
{
	char *id;
	size_t n;

	if (kn_line_string(c, v, at, false, &id, &n) < 0)
		return -1;
	if (n == 0 || n > KN_LINE_ID_MAX) {
		free(id);
		return kn_line_fail(
		    c, "%s: must have 1 to %d bytes", at, KN_LINE_ID_MAX);
	}
	c->out->id = id;
	return 0;
}

static int
read_id(struct kn_line_ctx *c, json_t *v)
{
	(void)v; /* read before all others, so that any other error can name it */
	(void)c;
	return 0;
}

static int
read_argv(struct kn_line_ctx *c, json_t *v)
{
	struct kn_task *t = c->out->task;

	if (string_list(c, v, "/argv", 1 << 20, &t->argv, &t->argv_n) < 0)
		return -1;
	if (t->argv_n == 0 || t->argv[0][0] == '\0')
		return kn_line_fail(c, "/argv: must name a command");
	return 0;
}

static int
read_after(struct kn_line_ctx *c, json_t *v)
{
	struct kn_line *l = c->out;

	return string_list(c, v, "/after", KN_LINE_AFTER_MAX, &l->after, &l->after_n);
}

static int
read_stdin(struct kn_line_ctx *c, json_t *v)
{
	struct kn_task *t = c->out->task;
	char *text;

	if (json_object_get(c->root, "stdin_b64"))
		return kn_line_fail(c, "/stdin: give either this or /stdin_b64");
	if (kn_line_string(c, v, "/stdin", true, &text, &t->stdin_n) < 0)
		return -1;
	t->stdin_bytes = text;
	return 0;
}

static int
read_stdin_b64(struct kn_line_ctx *c, json_t *v)
{
	struct kn_task *t = c->out->task;

	return kn_line_base64(c, v, "/stdin_b64", &t->stdin_bytes, &t->stdin_n);
}

static int
names_below_task(struct kn_line_ctx *c, const char *at, char **v, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (!kn_line_path_ok(v[i], strlen(v[i])))
			return kn_line_fail(c, "%s/%zu: " KN_LINE_PATH_RULE, at, i);
	}
	return 0;
}

static int
read_keep(struct kn_line_ctx *c, json_t *v)
{
	struct kn_task *t = c->out->task;

	if (string_list(c, v, "/keep", KN_LINE_FILES_MAX, &t->keep, &t->keep_n) < 0)
		return -1;
	return names_below_task(c, "/keep", t->keep, t->keep_n);
}

static int
read_collect(struct kn_line_ctx *c, json_t *v)
{
	struct kn_task *t = c->out->task;

	if (string_list(
		c, v, "/collect", KN_LINE_FILES_MAX, &t->collect, &t->collect_n) < 0)
		return -1;
	return names_below_task(c, "/collect", t->collect, t->collect_n);
}

static int
read_env(struct kn_line_ctx *c, json_t *v)
{
	char where[KN_LINE_POINTER_MAX];
	const char *key;
	json_t *value;

	if (!json_is_object(v))
		return kn_line_fail(c, "/env: must be an object of strings");
	json_object_foreach(v, key, value)
	{
		kn_line_pointer(where, sizeof where, "/env", key);
		if (!kn_env_key_ok(key, strlen(key)))
			return kn_line_fail(c, "%s: not a variable name", where);
		if (!json_is_string(value))
			return kn_line_fail(c, "%s: must be a string", where);
		if (strlen(json_string_value(value)) != json_string_length(value))
			return kn_line_fail(
			    c, "%s: a NUL character cannot be passed on", where);
		c->out->bytes += strlen(key) + json_string_length(value) + 2;
		if (kn_env_set(&c->env, key, strlen(key), json_string_value(value)) < 0)
			return kn_line_fail(c, "/env: out of memory");
	}
	return 0;
}

static const struct field fields[] = {
	{ "id", read_id },
	{ "argv", read_argv },
	{ "after", read_after },
	{ "files", kn_line_files },
	{ "keep", read_keep },
	{ "collect", read_collect },
	{ "stdin", read_stdin },
	{ "stdin_b64", read_stdin_b64 },
	{ "env", read_env },
	{ "limits", kn_line_limits },
	{ "timeouts", kn_line_timeouts },
};
static const char *const keys_task[] = { "id", "argv", "after", "files", "keep",
	"collect", "stdin", "stdin_b64", "env", "limits", "timeouts", NULL };
_Static_assert(COUNT(keys_task) == COUNT(fields) + 1, "one key per field");

const char *const *
kn_line_keys(enum kn_line_keys which)
{
	static const char *const *const all[KN_LINE_KEYS_N] = {
		[KN_LINE_KEYS_TASK] = keys_task,
		[KN_LINE_KEYS_CALL] = kn_line_call_keys,
		[KN_LINE_KEYS_FILE] = kn_line_file_keys,
		[KN_LINE_KEYS_LIMITS] = kn_line_limit_keys,
		[KN_LINE_KEYS_CALL_LIMITS] = kn_line_call_limit_keys,
		[KN_LINE_KEYS_TIMEOUTS] = kn_line_timeout_keys,
	};

	return which < KN_LINE_KEYS_N ? all[which] : NULL;
}

/* ---- the whole line ---- */

static int
read_cancel(struct kn_line_ctx *c, json_t *whom)
{
	static const char *const keys[] = { "cancel", NULL };

	if (kn_line_object(c, c->root, "", keys) < 0)
		return -1;
	if (id_text(c, whom, "/cancel") < 0)
		return -1;
	c->out->kind = KN_LINE_CANCEL;
	return 0;
}

static int
finish_task(struct kn_line_ctx *c)
{
	struct kn_task *t = c->out->task;
	struct kn_err e = { 0 };

	if (!t->argv && !t->call.name)
		return kn_line_fail(c, "/argv: missing: the command to run");
	if (kn_policy_tighten(c->rules->policy, &c->ask, &t->limits, &t->timeouts, &e) <
	    0)
		return kn_line_fail(c, "%s", e.msg);
	if (c->rules->cwd && !(t->cwd = strdup(c->rules->cwd)))
		return kn_line_fail(c, "out of memory");
	t->env = c->env.v;
	t->env_n = c->env.n;
	c->env = (struct kn_env){ 0 };
	if (!t->env && !(t->env = calloc(1, sizeof *t->env)))
		return kn_line_fail(c, "out of memory");
	t->retries = c->rules->retries;
	t->stdio = KN_STDIO_CAPTURE;
	c->out->kind = KN_LINE_TASK;
	return 0;
}

static int
read_call(struct kn_line_ctx *c)
{
	json_t *after = json_object_get(c->root, "after");

	if (kn_line_call(c) < 0 || (after && read_after(c, after) < 0))
		return -1;
	return finish_task(c);
}

static int
read_task(struct kn_line_ctx *c)
{
	json_t *id = json_object_get(c->root, "id");
	bool call = json_object_get(c->root, "call") != NULL;
	bool module = c->rules->policy->pool.kind == KN_KIND_MODULE;

	if (id && id_text(c, id, "/id") < 0)
		return -1;
	if (call && !module)
		return kn_line_fail(
		    c, "/call: there is no module here (--module FILE)");
	if (module && !call)
		return kn_line_fail(c, "/call: missing: the task of the module");
	c->out->task = kn_task_new();
	if (!c->out->task)
		return kn_line_fail(c, "out of memory");
	if (call)
		return read_call(c);
	if (kn_line_object(c, c->root, "", keys_task) < 0)
		return -1;
	if (kn_env_copy(&c->env, c->rules->env, c->rules->env_n) < 0)
		return kn_line_fail(c, "out of memory");
	for (size_t i = 0; i < COUNT(fields); i++) {
		json_t *v = json_object_get(c->root, fields[i].name);

		if (v && fields[i].read(c, v) < 0)
			return -1;
	}
	return finish_task(c);
}

static int
read_line(struct kn_line_ctx *c, const char *text, size_t n)
{
	json_error_t je;
	json_t *cancel;

	c->root = json_loadb(text, n, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &je);
	if (!c->root) {
		char why[160];

		kn_err_printable(why, sizeof why, je.text, (int)strlen(je.text));
		return kn_line_fail(c, "not JSON, at byte %d: %s%s", je.position, why,
		    json_error_code(&je) == json_error_premature_end_of_input
			? "; a task is one whole line"
			: "");
	}
	if (!json_is_object(c->root))
		return kn_line_fail(c, "must be one JSON object%s",
		    json_is_array(c->root) ? ", not a list: each task is a line" : "");
	cancel = json_object_get(c->root, "cancel");
	return cancel ? read_cancel(c, cancel) : read_task(c);
}

int
kn_line_parse(const struct kn_line_rules *rules, const char *text, size_t n,
    uint64_t line_no, struct kn_line *out, struct kn_err *e)
{
	struct kn_line_ctx c = { .rules = rules, .out = out, .e = e };
	int r;

	*out = (struct kn_line){ 0 };
	while (n > 0 && strchr(" \t\r\n", text[n - 1]) && text[n - 1] != '\0')
		n--;
	while (n > 0 && strchr(" \t\r\n", text[0]) && text[0] != '\0') {
		text++;
		n--;
	}
	if (n == 0)
		return 0;
	r = read_line(&c, text, n);
	json_decref(c.root);
	kn_env_fini(&c.env);
	if (r < 0) {
		char *id = out->id;

		out->id = NULL;
		kn_line_fini(out);
		out->id = id;
		return -1;
	}
	if (out->task)
		out->task->line = line_no;
	return 0;
}

void
kn_line_fini(struct kn_line *l)
{
	free(l->id);
	kn_task_free(l->task);
	for (size_t i = 0; i < l->after_n; i++)
		free(l->after[i]);
	free(l->after);
	for (size_t i = 0; i < l->source_n; i++) {
		free(l->sources[i].path);
		free(l->sources[i].from);
		free(l->sources[i].name);
	}
	free(l->sources);
	*l = (struct kn_line){ 0 };
}
