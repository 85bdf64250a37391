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

/* As `run` reads --input: JSON where it parses as such, else the text itself. */
static json_t *
argument(const char *text)
{
	json_t *v = json_loads(text, JSON_DECODE_ANY | JSON_REJECT_DUPLICATES, NULL);

	return v ? v : json_string(text);
}

char *
kn_connect_line(const struct kn_run_opts *o, size_t *out_n, struct kn_err *e)
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
	}
	if (rc == 0)
		line = kn_report_line(json_incref(task), JSON_COMPACT, out_n);
	json_decref(task);
	if (!line) {
		kn_err_set(e, KN_EK_USAGE, "--connect: the command is no UTF-8 text");
		kn_err_hint(e, "a task line has texts only: see knit-tasks(5)");
		return NULL;
	}
	return line;
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

static int
verdict_of(const char *name)
{
	for (int i = 0; name && i < KNIT_VERDICT_N; i++) {
		if (strcmp(name, knit_verdict_name((enum knit_verdict)i)) == 0)
			return i;
	}
	return -1;
}

/* "stdout" or, of bytes that are no text, "stdout_b64": decoded in its place. */
static void
stream(json_t *line, const char *name, const char *coded, struct knit_stream *s)
{
	json_t *text = json_object_get(line, name),
	       *code = json_object_get(line, coded);
	size_t n;
	char *p;

	s->bytes = "";
	if (json_is_string(text)) {
		s->bytes = json_string_value(text);
		s->n = json_string_length(text);
	} else if (json_is_string(code)) {
		n = json_string_length(code);
		p = malloc(kn_base64_decoded_max(n) + 1);
		if (p && kn_base64_decode(json_string_value(code), n, p, &n) == 0 &&
		    json_string_setn_nocheck(code, p, n) == 0) {
			s->bytes = json_string_value(code);
			s->n = n;
		}
		free(p);
	}
}

int
kn_connect_read(
    const char *line, size_t n, struct kn_connect_answer *a, struct kn_err *e)
{
	json_t *root = json_loadb(line, n, JSON_ALLOW_NUL, NULL), *v;
	int verdict = verdict_of(json_string_value(json_object_get(root, "verdict")));
	const char *error = json_string_value(json_object_get(root, "error"));

	*a = (struct kn_connect_answer){ .json = root };
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
	v = json_object_get(root, "value");
	if (json_is_string(v))
		a->value = strdup(json_string_value(v));
	else if (v && !json_is_null(v))
		a->value = json_dumps(v, JSON_COMPACT | JSON_ENCODE_ANY);
	return 0;
}

/* A call has no exit code unless it ended in place of returning. */
static int
exit_of(const struct knit_outcome *o)
{
	if (o->verdict == KNIT_OK && o->exit_code < 0)
		return KN_EXIT_OK;
	if (o->verdict == KNIT_EXIT && o->exit_code <= 0)
		return 1;
	return kn_run_exit_of(o);
}

int
kn_connect_print(const struct kn_run *r, const struct kn_connect_answer *a)
{
	const struct knit_outcome *o = &a->outcome;
	const struct kn_voice *v = &r->voice;

	if (kn_say_out(v, o->out.bytes, o->out.n) < 0)
		return KN_EXIT_OURS;
	(void)kn_fd_write_all(STDERR_FILENO, o->err.bytes, o->err.n);
	if (a->value && (kn_say_out(v, a->value, strlen(a->value)) < 0 ||
			    kn_say_out(v, "\n", 1) < 0))
		return KN_EXIT_OURS;
	if (o->verdict == KNIT_EXIT && o->error[0]) /* an error that a call returned */
		kn_say(v, "%s: %s", knit_verdict_name(o->verdict), o->error);
	kn_run_tell(r, o, exit_of(o));
	return exit_of(o);
}

void
kn_connect_forget(struct kn_connect_answer *a)
{
	free(a->value);
	json_decref(a->json);
}
