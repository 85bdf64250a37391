/* supervisor/report.c: see report.h. Whatever a task wrote or named arrives intact:
 * text as text, bytes that are not UTF-8 as base64, so a result line is always valid
 * JSON.
 */
#include "supervisor/report.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ipc/err.h"
#include "sandbox/lack.h"
#include "sandbox/launch.h"
#include "supervisor/base64.h"
#include "supervisor/report_files.h"
#include "supervisor/report_net.h"
#include "supervisor/report_refused.h"
#include "supervisor/value_json.h"

enum { PRECISION = 12 }; /* digits of our own numbers: 18.2, not 18.199999999999999 */

const char *
kn_report_refusal(enum kn_file_refusal why)
{
	static const char *const text[KN_FILE_REFUSAL_N] = {
		[KN_FILE_OK] = "",
		[KN_FILE_MISSING] = "no such file",
		[KN_FILE_NOT_REGULAR] = "not a regular file",
		[KN_FILE_SYMLINK] = "a symbolic link",
		[KN_FILE_TOO_LARGE] = "too large (16M a file, 64M all together)",
		[KN_FILE_TOO_MANY] = "too many files (999)",
		[KN_FILE_BAD_NAME] = "not a name that can be handed back",
		[KN_FILE_IO] = "could not be read",
		[KN_FILE_TOO_DEEP] = "too deep (32 directories)",
		[KN_FILE_UNWRITTEN] = "could not be written",
	};

	_Static_assert(KN_FILE_BYTES_MAX == 16 << 20 && KN_FILES_BYTES_MAX == 64 << 20,
	    "said above, and in knit-tasks(5)");
	/* A worker says no errno with it, and is under the filter that we are under. */
	if (why == KN_FILE_IO && kn_lack_openat2(ENOSYS))
		return kn_lack_openat2_text(ENOSYS) + sizeof("; ") - 1;
	return (unsigned)why < KN_FILE_REFUSAL_N ? text[why] : "refused";
}

/* ---- bytes ---- */

json_t *
kn_report_words(const char *text)
{
	json_t *v = json_string(text);
	char clean[1024];

	if (v)
		return v;
	kn_err_printable(clean, sizeof clean, text, (int)strnlen(text, 1000));
	return json_string(clean);
}

/* The cut of a long stream falls between bytes, not characters: leave away the halves
 * of a character on both sides of it, so that text stays text. */
static json_t *
cut_text(const struct kn_capture *c, size_t *out_cut)
{
	size_t head = c->head_n, tail = c->head_n, back = 0;
	unsigned char lead = 0;
	char *joined;
	json_t *v;

	while (back < 4 && back < head) {
		lead = (unsigned char)c->bytes[head - 1 - back++];
		if ((lead & 0xc0) != 0x80)
			break;
	}
	if ((lead >= 0xf0 && back < 4) || (lead >= 0xe0 && lead < 0xf0 && back < 3) ||
	    (lead >= 0xc0 && lead < 0xe0 && back < 2))
		head -= back;
	for (size_t i = 0; i < 3 && tail < c->n; i++) {
		if (((unsigned char)c->bytes[tail] & 0xc0) != 0x80)
			break;
		tail++;
	}
	joined = malloc(head + c->n - tail + 1);
	if (!joined)
		return NULL;
	memcpy(joined, c->bytes, head);
	memcpy(joined + head, c->bytes + tail, c->n - tail);
	v = json_stringn(joined, head + c->n - tail);
	free(joined);
	*out_cut = head;
	return v;
}

/* Text that is mostly control characters (zeros of a memory image, say) is none: as
 * JSON it would be six times as long, and writing it would hold up everybody else. */
static bool
is_text(const char *p, size_t n)
{
	size_t odd = 0;

	for (size_t i = 0; i < n; i++)
		odd += (unsigned char)p[i] < ' ' && !memchr("\n\t\r\b\f", p[i], 5);
	return odd <= 64 + n / 16;
}

static int
set(json_t *o, const char *key, json_t *v)
{
	return json_object_set_new(o, key, v);
}

static int
set_bytes(json_t *o, const char *key, const char *bytes, size_t n)
{
	char *text = kn_base64_encode(bytes ? bytes : "", n);
	int r = text ? set(o, key, json_string(text)) : -1;

	free(text);
	return r;
}

/* Of a stream that was relayed: how much came, and whether all of it went on. */
static int
set_counts(json_t *o, const char *name, const struct kn_capture *c)
{
	char key[32];
	int r = 0;

	snprintf(key, sizeof key, "%s_bytes", name);
	r |= set(o, key, json_integer((json_int_t)c->total));
	snprintf(key, sizeof key, "%s_truncated", name);
	return r | set(o, key, json_boolean(c->truncated));
}

static int
set_stream(json_t *o, const char *name, const struct kn_capture *c)
{
	bool cut = c->truncated && c->head_n <= c->n;
	size_t cut_at = c->head_n;
	json_t *v = NULL;
	char key[32];
	int r = 0;

	if (c->n == 0 || is_text(c->bytes, c->n))
		v = cut ? cut_text(c, &cut_at)
			: json_stringn(c->n ? c->bytes : "", c->n);
	if (v) {
		r |= set(o, name, v);
	} else {
		snprintf(key, sizeof key, "%s_b64", name);
		r |= set_bytes(o, key, c->bytes, c->n);
		cut_at = c->head_n;
	}
	r |= set_counts(o, name, c);
	if (cut) {
		snprintf(key, sizeof key, "%s_cut_at", name);
		r |= set(o, key, json_integer((json_int_t)cut_at));
	}
	return r;
}

/* ---- values ---- */

static int
set_value(json_t *root, const struct kn_value *v, bool soft)
{
	bool value = v->type != 0 && v->type != KN_TYPE_ERROR;
	int r = 0;

	if (v->type == KN_TYPE_BYTES)
		r |= set_bytes(root, "value_b64", v->bytes, v->n);
	else
		r |= set(root, "value", value ? kn_value_to_json(v) : json_null());
	if (value)
		r |= set(root, "value_type",
		    json_string(kn_type_name((enum kn_type)v->type)));
	if (soft)
		r |= set(root, "soft", json_true());
	return r;
}

/* ---- the result ---- */

static json_t *
ms(uint64_t us)
{
	return json_real((double)us / 1000.0);
}

static int
set_usage(json_t *root, const struct kn_report *rep, const struct kn_outcome *o)
{
	json_t *u = json_object();
	int r = 0;

	r |= set(u, "wall_ms", ms(o->wall_us));
	if (!rep->calls ||
	    o->cpu_us) /* of a call nobody counts it: not known is not 0 */
		r |= set(u, "cpu_ms", ms(o->cpu_us));
	r |= set(u, "queue_ms", ms(o->queue_us));
	if (o->max_rss)
		r |= set(u, "max_rss", json_integer((json_int_t)o->max_rss));
	if (o->memory_peak)
		r |= set(u, "memory_peak", json_integer((json_int_t)o->memory_peak));
	if (o->pids_peak)
		r |= set(u, "pids_peak", json_integer((json_int_t)o->pids_peak));
	return r | set(root, "usage", u);
}

static int
set_layers(json_t *root, const struct kn_layers *l)
{
	json_t *o = json_object();
	int r = 0;

	for (unsigned i = 0; i < KN_LAYER_N; i++)
		r |= set(o, kn_layer_name((enum kn_layer)i),
		    json_string(kn_layer_state_name(l->state[i])));
	return r | set(root, "layers", o);
}

/* In a batch the summary has it, once. */
static int
set_lacks(json_t *root, const struct kn_report *rep, const struct kn_outcome *o)
{
	json_t *v = json_object();
	int r = 0;

	for (unsigned i = 0; !rep->streams && i < KN_LAYER_N; i++)
		if (o->lacks[i])
			r |= set(v, kn_layer_name((enum kn_layer)i),
			    json_string(o->lacks[i]));
	if (json_object_size(v) > 0)
		return r | set(root, "lacks", v);
	json_decref(v);
	return r;
}

static char *
dump(const struct kn_report *rep, json_t *root, int ok, size_t digits)
{
	size_t flags = JSON_COMPACT | JSON_REAL_PRECISION(digits) |
		       (rep->ascii ? JSON_ENSURE_ASCII : 0);
	char *text = ok == 0 ? json_dumps(root, flags) : NULL;

	json_decref(root);
	return text;
}

/* Two objects' texts as one's. */
static char *
join(char *text_own, char *rest_own)
{
	size_t n = text_own ? strlen(text_own) : 0, more;
	char *all = NULL;

	if (text_own && rest_own) {
		more = strlen(rest_own);
		all = realloc(text_own, n + more);
	}
	if (!all) {
		free(text_own);
	} else if (more > 2) { /* not {} */
		memcpy(all + n - 1, rest_own, more + 1);
		all[n - 1] = ',';
	}
	free(rest_own);
	return all;
}

/* What it changed in a copy. */
static json_t *
brought(const struct kn_outcome *o)
{
	json_t *out = json_object();

	if (set(out, "dir", kn_report_words(o->out_dir)) |
	    set(out, "files", json_integer((json_int_t)o->out_files)) |
	    set(out, "bytes", json_integer((json_int_t)o->out_bytes))) {
		json_decref(out);
		return NULL;
	}
	return out;
}

static char *
end_line(char *text_own, size_t *n)
{
	char *line = realloc(text_own, *n + 2);

	if (!line) {
		free(text_own);
		return NULL;
	}
	memcpy(line + *n, "\n", 2);
	*n += 1;
	return line;
}

/* How it ended, and what it gave. */
static int
set_end(json_t *root, const struct kn_report *rep, const char *id, uint64_t line,
    const struct kn_outcome *o)
{
	bool known = o->verdict != KN_V_INVALID;
	int r = 0;

	r |= set(root, "id", kn_report_words(id));
	r |= set(root, "verdict", json_string(kn_verdict_name(o->verdict)));
	if (line)
		r |= set(root, "line", json_integer((json_int_t)line));
	if (known) {
		r |= set(root, "exit_code",
		    o->started && o->exit_code >= 0 && o->signal == 0
			? json_integer(o->exit_code)
			: json_null());
		r |= set(root, "signal",
		    o->started && o->signal > 0 ? json_integer(o->signal)
						: json_null());
	}
	if (known && rep->calls) {
		r |= set_value(root, &o->value, o->soft);
	} else if (known && rep->streams) {
		r |= set_stream(root, "stdout", &o->out);
		r |= set_stream(root, "stderr", &o->err);
	} else if (known && o->worker >= 0) {
		r |= set_counts(root, "stdout", &o->out);
		r |= set_counts(root, "stderr", &o->err);
	}
	if (o->value.type == KN_TYPE_ERROR)
		return r | set(root, "error", kn_value_error_to_json(&o->value));
	return r | set(root, "error",
		       o->error[0] ? kn_report_words(o->error) : json_null());
}

/* Where and under what it ran, and what that took. */
static int
set_rest(json_t *root, const struct kn_report *rep, const struct kn_outcome *o)
{
	char worker[16];
	int r = 0;

	if (o->out_dir)
		r |= set(root, "out", brought(o));
	r |= kn_report_refused(root, o);
	if (o->verdict != KN_V_INVALID)
		r |= set_usage(root, rep, o);
	if (o->has_net)
		r |= set(root, "network", kn_report_net(&o->net));
	if (o->worker >= 0) {
		snprintf(worker, sizeof worker, "w%d", o->worker);
		r |= set(root, "worker", json_string(worker));
		r |= set(root, "attempt", json_integer(o->attempt));
	}
	if (rep->policy)
		r |= set(root, "policy", json_string(rep->policy));
	if (o->worker >= 0)
		r |= set_layers(root, &o->layers) | set_lacks(root, rep, o);
	return r;
}

char *
kn_report_result(const struct kn_report *rep, const char *id, uint64_t line,
    const struct kn_outcome *o, size_t *out_n)
{
	json_t *end = json_object(), *rest = json_object();
	int r = set_end(end, rep, id, line, o) | set_rest(rest, rep, o);
	/* A module's numbers arrive as they are; ours are short. */
	size_t n, digits = kn_value_digits(json_object_get(end, "value"));
	char *text = join(dump(rep, end, r, digits), dump(rep, rest, r, PRECISION));

	if (!text)
		return NULL;
	n = strlen(text);
	text = kn_report_files(text, &n, rep, o);
	if (!text || !(text = end_line(text, &n)))
		return NULL;
	*out_n = n;
	return text;
}
