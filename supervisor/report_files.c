/* supervisor/report_files.c: see report_files.h. */
#include "supervisor/report_files.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ipc/err.h"
#include "supervisor/base64.h"
#include "supervisor/report.h"

enum {
	PIECE = 48 * 1024, /* a multiple of 3: each is whole groups of base64 */
	OVERHEAD = 128	   /* of one file, beside its name and content */
};

struct text {
	char *p;
	size_t n, cap;
};

static int
grow(struct text *t, size_t more)
{
	size_t cap = t->cap;
	char *p;

	if (t->cap - t->n > more)
		return 0;
	while (cap - t->n <= more)
		cap = cap ? cap * 2 : 1024;
	p = realloc(t->p, cap);
	if (!p)
		return -1;
	t->p = p;
	t->cap = cap;
	return 0;
}

static int
put(struct text *t, const char *s, size_t n)
{
	if (grow(t, n) < 0)
		return -1;
	memcpy(t->p + t->n, s, n);
	t->n += n;
	t->p[t->n] = '\0';
	return 0;
}

static int
put_str(struct text *t, const char *s)
{
	return put(t, s, strlen(s));
}

static int
put_name(struct text *t, const char *name, bool ascii)
{
	json_t *v = json_string(name);
	char *s =
	    v ? json_dumps(v, JSON_ENCODE_ANY | (ascii ? JSON_ENSURE_ASCII : 0)) : NULL;
	int r = s ? put_str(t, s) : -1;

	free(s);
	json_decref(v);
	return r;
}

/* Up to n bytes; less at the end of the file. -1: errno. */
static ssize_t
read_piece(int fd, char *buf, size_t n, uint64_t at)
{
	size_t have = 0;

	while (have < n) {
		ssize_t got = pread(fd, buf + have, n - have, (off_t)(at + have));

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -1;
		if (got == 0)
			break;
		have += (size_t)got;
	}
	return (ssize_t)have;
}

/* 0, -1 (no memory), or 1: it cannot be read to its end, and a file cut short must not
 * pass for the file. */
static int
put_content(struct text *t, const struct kn_outcome_file *f)
{
	char *piece;
	int rc = 0;

	if (put_str(t, "\"content_b64\":\"") < 0 ||
	    grow(t, kn_base64_length(f->bytes) + OVERHEAD) < 0 ||
	    !(piece = malloc(PIECE)))
		return -1;
	for (uint64_t at = 0; at < f->bytes && rc == 0;) {
		size_t want = f->bytes - at < PIECE ? (size_t)(f->bytes - at) : PIECE;

		if (read_piece(f->fd, piece, want, at) != (ssize_t)want) {
			rc = 1;
			break;
		}
		kn_base64_encode_to(t->p + t->n, piece, want);
		t->n += kn_base64_length(want);
		at += want;
	}
	free(piece);
	return rc ? rc : put_str(t, "\",");
}

static int
put_file(struct text *t, const struct kn_report *rep, const struct kn_outcome_file *f)
{
	enum kn_file_refusal refusal = f->refusal;
	char small[OVERHEAD];
	size_t begin = t->n;

	if (put_str(t, "{") < 0)
		return -1;
	if (refusal == KN_FILE_OK && f->fd < 0)
		refusal = KN_FILE_IO;
	if (refusal == KN_FILE_OK && rep->contents) {
		int r = put_content(t, f);

		if (r < 0)
			return -1;
		if (r > 0) {
			t->n = begin + 1;
			refusal = KN_FILE_IO;
		}
	}
	if (refusal != KN_FILE_OK)
		snprintf(small, sizeof small, "\"error\":\"%s\"}",
		    kn_report_refusal(refusal));
	else if (rep->contents)
		snprintf(small, sizeof small, "\"mode\":\"%03o\"}",
		    (unsigned)f->mode & 0777);
	else
		snprintf(small, sizeof small, "\"bytes\":%llu,\"mode\":\"%03o\"}",
		    (unsigned long long)f->bytes, (unsigned)f->mode & 0777);
	return put_str(t, small);
}

/* Name -> index in o->files; of two with one name the later one. Collected files, and
 * kept ones that could not be kept. */
static json_t *
list(const struct kn_outcome *o)
{
	json_t *files = json_object();

	for (size_t i = 0; files && i < o->file_n; i++) {
		const struct kn_outcome_file *f = &o->files[i];
		json_t *at = json_integer((json_int_t)i);
		char clean[1024];
		int r;

		if (!(f->what & KN_FILE_COLLECT) && f->refusal == KN_FILE_OK) {
			json_decref(at);
			continue;
		}
		json_incref(at);
		r = json_object_set_new(files, f->name, at);
		if (r < 0) { /* not UTF-8 */
			kn_err_printable(
			    clean, sizeof clean, f->name, (int)strnlen(f->name, 1000));
			r = json_object_set(files, clean, at);
		}
		json_decref(at);
		if (r < 0) {
			json_decref(files);
			return NULL;
		}
	}
	return files;
}

char *
kn_report_files(
    char *line_own, size_t *n, const struct kn_report *rep, const struct kn_outcome *o)
{
	struct text t = { .p = line_own, .n = *n, .cap = *n + 1 };
	json_t *files = list(o), *at;
	size_t need = OVERHEAD, written = 0;
	const char *name;
	int r = files ? 0 : -1;

	if (files && json_object_size(files) == 0) {
		json_decref(files);
		return line_own;
	}
	for (size_t i = 0; i < o->file_n; i++)
		need += OVERHEAD + strlen(o->files[i].name) +
			(rep->contents ? kn_base64_length(o->files[i].bytes) : 0);
	/* In one go: a line that grows would be moved again and again. */
	if (r == 0)
		r = grow(&t, need);
	t.n -= 1; /* the closing brace */
	if (r == 0)
		r = put_str(&t, ",\"files\":{");
	json_object_foreach(files, name, at)
	{
		if (r < 0)
			break;
		if (written++ > 0)
			r |= put_str(&t, ",");
		r |= put_name(&t, name, rep->ascii);
		r |= put_str(&t, ":");
		r |= put_file(&t, rep, &o->files[json_integer_value(at)]);
	}
	if (r == 0)
		r = put_str(&t, "}}");
	json_decref(files);
	if (r < 0) {
		free(t.p);
		return NULL;
	}
	*n = t.n;
	return t.p;
}
