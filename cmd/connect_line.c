/* cmd/connect_line.c: one command as a task line, lines that are to be answered, and a
 * result line as its end.
 */
#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd/connect.h"
#include "cmd/report.h"
#include "ipc/err.h"
#include "ipc/fd.h"
#include "supervisor/base64.h"
#include "supervisor/value_json.h"

/* ---- the task ---- */

static json_t *
words(char *const *argv)
{
	json_t *list = json_array();

	for (; list && *argv; argv++) {
		if (json_array_append_new(list, json_string(*argv)) < 0) {
			json_decref(list);
			list = NULL;
		}
	}
	return list;
}

/* As `run` reads --input: JSON where it parses as such, else the text itself; of "@@"
 * the second begins it. */
static json_t *
argument(const char *text)
{
	json_t *v;

	text += text[0] == '@';
	v = json_loads(text, JSON_DECODE_ANY | JSON_REJECT_DUPLICATES, NULL);
	return v ? v : json_string(text);
}

/* Base64, since it need not be text. */
static int
set_input(json_t *task, const char *input, size_t n)
{
	char *code = kn_base64_encode(input, n);
	int rc = code
		     ? json_object_set_new(task, "stdin_b64", json_string_nocheck(code))
		     : -1;

	free(code);
	return rc;
}

char *
kn_connect_line(const struct kn_run_opts *o, const char *input, size_t input_n,
    size_t *out_n, struct kn_err *e)
{
	json_t *task = json_pack("{s:s}", "id", "command");
	char *line = NULL;
	int rc = -1;

	if (task && o->call) {
		rc = json_object_set_new(task, "call", json_string(o->call));
		if (rc == 0 && o->input)
			rc = json_object_set_new(task, "value", argument(o->input));
	} else if (task) {
		rc = json_object_set_new(task, "argv", words(o->argv));
		if (rc == 0 && input_n > 0 && set_input(task, input, input_n) < 0) {
			json_decref(task);
			kn_err_set(e, KN_EK_HOST, "--connect: out of memory");
			return NULL;
		}
	}
	if (rc == 0)
		line = kn_report_line(json_incref(task), JSON_COMPACT, out_n);
	json_decref(task);
	if (!line) {
		kn_err_set(e, KN_EK_USAGE, "--connect: the command is no UTF-8 text");
		kn_err_hint(e, "a task line has texts only: see knit-tasks(5)");
		return NULL;
	}
	if (*out_n <= KNIT_LINE_BYTES_MAX)
		return line;
	free(line);
	kn_err_set(e, KN_EK_USAGE,
	    "--connect: the command and its input are more than a task line may be");
	kn_err_hint(e, "a task line has 16 MiB at most: see knit-tasks(5)");
	return NULL;
}

/* ---- how many answers there must be ----
 *
 * The server closes the connection when all is answered, and the kernel does when the
 * server is killed: only by their number are the two told apart.
 */

/* {"cancel": id} has no answer of its own; what is longer than this is none. */
static bool
is_cancel(const struct kn_connect_count *c)
{
	json_t *line;
	bool yes;

	if (c->n > sizeof c->head || !memmem(c->head, c->n, "cancel", 6))
		return false;
	line = json_loadb(c->head, c->n, JSON_ALLOW_NUL, NULL);
	yes = json_object_get(line, "cancel") != NULL;
	json_decref(line);
	return yes;
}

static void
end_line(struct kn_connect_count *c)
{
	if (c->text && !is_cancel(c))
		c->lines++;
	c->n = 0;
	c->text = false;
}

void
kn_connect_count(struct kn_connect_count *c, const char *bytes, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		char ch = bytes[i];

		if (ch == '\n') {
			end_line(c);
			continue;
		}
		c->text = c->text || (ch != ' ' && ch != '\t' && ch != '\r');
		if (c->n < sizeof c->head)
			c->head[c->n] = ch;
		c->n++;
	}
}

void
kn_connect_count_end(struct kn_connect_count *c)
{
	end_line(c);
}

/* ---- the result ---- */

static const char *
text_of(json_t *o, const char *key)
{
	const char *s = json_string_value(json_object_get(o, key));

	return s ? s : "";
}

static int
verdict_of(const char *name)
{
	for (int i = 0; name && i < KNIT_VERDICT_N; i++) {
		if (strcmp(name, knit_verdict_name((enum knit_verdict)i)) == 0)
			return i;
	}
	return -1;
}

/* A text or, of bytes that are none, base64: decoded in its place. NULL: neither. */
static const char *
bytes_of(json_t *line, const char *name, const char *coded, size_t *out_n)
{
	json_t *text = json_object_get(line, name),
	       *code = json_object_get(line, coded);
	const char *from = json_string_value(code);
	size_t n = json_string_length(code);
	char *p;
	int rc;

	*out_n = json_string_length(text);
	if (json_is_string(text))
		return json_string_value(text);
	p = from ? malloc(kn_base64_decoded_max(n) + 1) : NULL;
	rc = p && kn_base64_decode(from, n, p, &n) == 0
		 ? json_string_setn_nocheck(code, p, n)
		 : -1;
	free(p);
	*out_n = rc == 0 ? n : 0;
	return rc == 0 ? json_string_value(code) : NULL;
}

static void
stream(json_t *line, const char *name, const char *coded, struct knit_stream *s)
{
	const char *bytes = bytes_of(line, name, coded, &s->n);

	s->bytes = bytes ? bytes : "";
}

/* What a call returned: "value_type" is there with it, and without it null is none. */
static int
value(json_t *line, struct kn_connect_answer *a)
{
	const char *type = json_string_value(json_object_get(line, "value_type"));
	struct knit_outcome *o = &a->outcome;

	if (!type)
		return 0;
	o->value_type = strcmp(type, "text") == 0    ? KNIT_TEXT
			: strcmp(type, "bytes") == 0 ? KNIT_BYTES
						     : KNIT_JSON;
	if (o->value_type != KNIT_JSON) {
		o->value = bytes_of(line, "value", "value_b64", &o->value_n);
	} else {
		json_t *v = json_object_get(line, "value");

		o->value = a->own = v ? kn_value_dump(v) : NULL;
		o->value_n = a->own ? strlen(a->own) : 0;
	}
	return o->value ? 0 : -1;
}

int
kn_connect_read(
    const char *line, size_t n, struct kn_connect_answer *a, struct kn_err *e)
{
	json_t *root = json_loadb(line, n, JSON_ALLOW_NUL, NULL), *v;
	int verdict = verdict_of(json_string_value(json_object_get(root, "verdict")));
	const char *error = json_string_value(json_object_get(root, "error"));

	*a = (struct kn_connect_answer){ .json = root };
	if (!root && n >= 7 && memcmp(line, "HTTP/1.", 7) == 0)
		return kn_opt_refuse(e, "name the --socket of knit-sandbox serve",
		    "--connect: who listens there speaks HTTP, as --http of a server: "
		    "no task is taken");
	if (verdict < 0) {
		kn_err_set(e, KN_EK_LAUNCH,
		    "the server's answer is no result line%s%.200s", error ? ": " : "",
		    error ? error : "");
		json_decref(root);
		return -1;
	}
	a->outcome.verdict = (enum knit_verdict)verdict;
	v = json_object_get(root, "exit_code");
	a->outcome.exit_code =
	    json_is_integer(v) ? (int)(json_integer_value(v) & 0xff) : -1;
	v = json_object_get(root, "signal");
	a->outcome.signal =
	    json_is_integer(v) ? (int)(json_integer_value(v) & 0x7f) : 0;
	a->outcome.error = error ? error : "";
	stream(root, "stdout", "stdout_b64", &a->outcome.out);
	stream(root, "stderr", "stderr_b64", &a->outcome.err);
	if (value(root, a) == 0)
		return 0;
	kn_err_set(
	    e, KN_EK_LAUNCH, "the server's answer has no value that can be read");
	kn_connect_forget(a);
	return -1;
}

static int
print_call(const struct kn_run *r, const struct kn_connect_answer *a)
{
	const struct knit_outcome *o = &a->outcome;
	json_t *error = json_object_get(a->json, "error");

	if (o->verdict == KNIT_OK && o->value_type &&
	    kn_run_call_value(r, o->value_type, o->value, o->value_n) < 0)
		return KN_EXIT_OURS;
	if (o->verdict != KNIT_OK && !json_is_object(error))
		kn_run_call_tell(r, o);
	for (size_t i = 0; json_is_object(error);
	     i++, error = json_object_get(error, "cause")) {
		struct knit_cause one = { .name = text_of(error, "name"),
			.message = text_of(error, "message"),
			.detail = text_of(error, "detail") };

		kn_run_call_cause(r, i, &one);
	}
	return kn_run_call_exit_of(o);
}

/* A server keeps the beginning and the end of a long stream only. */
static void
tell_cut(const struct kn_run *r, json_t *line, const char *name, const char *flag)
{
	if (json_is_true(json_object_get(line, flag)))
		kn_say(&r->voice,
		    "the middle of its %s is missing: the server's policy keeps less "
		    "(/limits/task/%s)",
		    name, name);
}

int
kn_connect_print(const struct kn_run *r, const struct kn_connect_answer *a)
{
	const struct knit_outcome *o = &a->outcome;

	if (r->opt.call)
		return print_call(r, a);
	if (kn_say_out(&r->voice, o->out.bytes, o->out.n) < 0)
		return KN_EXIT_OURS;
	(void)kn_fd_write_all(STDERR_FILENO, o->err.bytes, o->err.n);
	tell_cut(r, a->json, "stdout", "stdout_truncated");
	tell_cut(r, a->json, "stderr", "stderr_truncated");
	kn_run_tell(r, o, kn_run_exit_of(o));
	return kn_run_exit_of(o);
}

void
kn_connect_forget(struct kn_connect_answer *a)
{
	free(a->own);
	json_decref(a->json);
}
