/* cmd/report.c: see report.h. Whatever a task wrote or named arrives intact: text as
 * text, bytes that are not UTF-8 as base64, so a result line is always valid JSON.
 */
#include "cmd/report.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ipc/err.h"
#include "supervisor/base64.h"

enum { PRECISION = 12 }; /* digits of a number: 18.2, not 18.199999999999999 */

const char *
kn_report_refusal(enum kn_file_refusal why)
{
	static const char *const text[KN_FILE_REFUSAL_N] = {
		[KN_FILE_OK] = "",
		[KN_FILE_MISSING] = "no such file",
		[KN_FILE_NOT_REGULAR] = "not a regular file",
		[KN_FILE_SYMLINK] = "a symbolic link",
		[KN_FILE_TOO_LARGE] = "too large",
		[KN_FILE_TOO_MANY] = "too many files",
		[KN_FILE_BAD_NAME] = "not a name that can be handed back",
		[KN_FILE_IO] = "could not be read",
	};

	return (unsigned)why < KN_FILE_REFUSAL_N ? text[why] : "refused";
}

/* ---- bytes ---- */

/* A string of ours or a name: if it is not UTF-8 after all, made printable. */
static json_t *
words(const char *text)
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

/* ---- files ---- */

/* 0, -1 (no memory), or 1: it cannot be read to its end, and a file cut short must not
 * pass for the file. */
static int
set_content(json_t *o, const struct kn_outcome_file *f)
{
	char *bytes = malloc(f->bytes + 1);
	size_t n = 0;
	int r;

	while (bytes && n < f->bytes) {
		ssize_t got = pread(f->fd, bytes + n, f->bytes - n, (off_t)n);

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			break;
		n += (size_t)got;
	}
	if (bytes && n < f->bytes)
		r = 1;
	else
		r = bytes ? set_bytes(o, "content_b64", bytes, n) : -1;
	free(bytes);
	return r;
}

static json_t *
file_object(const struct kn_report *rep, const struct kn_outcome_file *f)
{
	json_t *o = json_object();
	char mode[8];
	enum kn_file_refusal refusal = f->refusal;
	int r = 0;

	if (refusal == KN_FILE_OK && f->fd < 0)
		refusal = KN_FILE_IO;
	if (refusal == KN_FILE_OK && rep->contents) {
		r = set_content(o, f);
		if (r == 1) {
			refusal = KN_FILE_IO;
			r = 0;
		}
	}
	if (refusal != KN_FILE_OK) {
		r |= set(o, "error", json_string(kn_report_refusal(refusal)));
	} else {
		if (!rep->contents)
			r |= set(o, "bytes", json_integer((json_int_t)f->bytes));
		snprintf(mode, sizeof mode, "%03o", (unsigned)f->mode & 0777);
		r |= set(o, "mode", json_string(mode));
	}
	if (r < 0) {
		json_decref(o);
		return NULL;
	}
	return o;
}

/* Collected files, and kept ones that could not be kept. */
static int
set_files(json_t *root, const struct kn_report *rep, const struct kn_outcome *o)
{
	json_t *files = json_object();
	char clean[1024];
	int r = 0;

	for (size_t i = 0; i < o->file_n; i++) {
		const struct kn_outcome_file *f = &o->files[i];
		json_t *v;

		if (!(f->what & KN_FILE_COLLECT) && f->refusal == KN_FILE_OK)
			continue;
		v = file_object(rep, f);
		if (!v) {
			r = -1;
			break;
		}
		json_incref(v);
		if (json_object_set_new(files, f->name, v) < 0) {
			kn_err_printable(
			    clean, sizeof clean, f->name, (int)strnlen(f->name, 1000));
			r |= json_object_set(files, clean, v);
		}
		json_decref(v);
	}
	if (r < 0 || json_object_size(files) == 0) {
		json_decref(files);
		return r;
	}
	return set(root, "files", files);
}

/* ---- the result ---- */

static json_t *
ms(uint64_t us)
{
	return json_real((double)us / 1000.0);
}

static int
set_usage(json_t *root, const struct kn_outcome *o)
{
	json_t *u = json_object();
	int r = 0;

	r |= set(u, "wall_ms", ms(o->wall_us));
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

static char *
dump(const struct kn_report *rep, json_t *root, int ok, size_t *out_n)
{
	size_t flags = JSON_COMPACT | JSON_REAL_PRECISION(PRECISION) |
		       (rep->ascii ? JSON_ENSURE_ASCII : 0);
	char *text = ok == 0 ? json_dumps(root, flags) : NULL;
	char *line;

	json_decref(root);
	if (!text)
		return NULL;
	*out_n = strlen(text) + 1;
	line = realloc(text, *out_n + 1);
	if (!line) {
		free(text);
		return NULL;
	}
	memcpy(line + *out_n - 1, "\n", 2);
	return line;
}

char *
kn_report_result(const struct kn_report *rep, const char *id, uint64_t line,
    const struct kn_outcome *o, size_t *out_n)
{
	bool known = o->verdict != KN_V_INVALID;
	json_t *root = json_object();
	char worker[16];
	int r = 0;

	r |= set(root, "id", words(id));
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
	if (known && rep->streams) {
		r |= set_stream(root, "stdout", &o->out);
		r |= set_stream(root, "stderr", &o->err);
	} else if (known && o->worker >= 0) {
		r |= set_counts(root, "stdout", &o->out);
		r |= set_counts(root, "stderr", &o->err);
	}
	r |= set_files(root, rep, o);
	r |= set(root, "error", o->error[0] ? words(o->error) : json_null());
	if (known)
		r |= set_usage(root, o);
	if (o->worker >= 0) {
		snprintf(worker, sizeof worker, "w%d", o->worker);
		r |= set(root, "worker", json_string(worker));
		r |= set(root, "attempt", json_integer(o->attempt));
	}
	if (rep->policy)
		r |= set(root, "policy", json_string(rep->policy));
	if (o->worker >= 0)
		r |= set_layers(root, &o->layers);
	return dump(rep, root, r, out_n);
}

char *
kn_report_summary(
    const struct kn_report *rep, const struct kn_report_batch *b, size_t *out_n)
{
	json_t *root = json_object(), *verdicts = json_object();
	uint64_t total = 0;
	int r = 0;

	for (unsigned i = 0; i < KN_V_N; i++) {
		total += b->verdicts[i];
		if (b->verdicts[i])
			r |= set(verdicts, kn_verdict_name((enum kn_verdict)i),
			    json_integer((json_int_t)b->verdicts[i]));
	}
	r |= set(root, "answered", json_integer((json_int_t)total));
	r |= set(root, "verdicts", verdicts);
	r |= set(root, "wall_ms", json_integer((json_int_t)b->wall_ms));
	r |= set(root, "cpu_ms", json_integer((json_int_t)b->cpu_ms));
	r |= set(root, "workers", json_integer(b->workers));
	r |= set(root, "workers_lost", json_integer((json_int_t)b->workers_lost));
	r |= set(root, "failed_launches", json_integer((json_int_t)b->failed_launches));
	r |= set(root, "signal", b->signal ? json_integer(b->signal) : json_null());
	r |= set(root, "error", b->error[0] ? words(b->error) : json_null());
	if (rep->policy)
		r |= set(root, "policy", json_string(rep->policy));
	if (b->layers)
		r |= set_layers(root, b->layers);
	return dump(rep, root, r, out_n);
}
