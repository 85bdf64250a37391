/* supervisor/task_line_files.c: the field "files" of a task line, and the checks that
 * all parts of the reader share.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ipc/err.h"
#include "ipc/near.h"
#include "supervisor/task.h"
#include "supervisor/task_line_json.h"

const char *const kn_line_file_keys[] = { "content", "content_b64", "path", "from",
	"mode", NULL };

/* ---- shared checks ---- */

int
kn_line_fail(struct kn_line_ctx *c, const char *fmt, ...)
{
	char text[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	return kn_err_set(c->e, KN_EK_TASK, "%s", text);
}

void
kn_line_pointer(char *dst, size_t n, const char *parent, const char *key)
{
	char escaped[KN_LINE_POINTER_MAX / 2], shown[KN_LINE_POINTER_MAX / 2];
	size_t at = 0;

	for (; *key && at + 3 < sizeof escaped; key++) {
		if (*key == '~' || *key == '/') {
			escaped[at++] = '~';
			escaped[at++] = *key == '~' ? '0' : '1';
		} else {
			escaped[at++] = *key;
		}
	}
	kn_err_printable(shown, sizeof shown, escaped, (int)at);
	snprintf(dst, n, "%s/%s%s", parent, shown, *key ? "..." : "");
}

/* A few are told, many are looked up. */
static void
list_keys(char *dst, size_t n, const char *const *keys)
{
	size_t at = (size_t)snprintf(dst, n, "here are:");

	for (; *keys && at < n; keys++)
		at += (size_t)snprintf(
		    dst + at, n - at, " %s%s", *keys, keys[1] ? "," : "");
	if (at >= 80)
		snprintf(dst, n, "knit-tasks(5) lists them");
}

int
kn_line_object(
    struct kn_line_ctx *c, json_t *v, const char *at, const char *const *keys)
{
	char where[KN_LINE_POINTER_MAX];
	const char *key, *near;
	char list[128];
	json_t *value;

	if (!json_is_object(v))
		return kn_line_fail(c, "%s: must be an object", at);
	json_object_foreach(v, key, value)
	{
		size_t i = 0;

		while (keys[i] && strcmp(keys[i], key) != 0)
			i++;
		if (keys[i])
			continue;
		kn_line_pointer(where, sizeof where, at, key);
		near = kn_near_word(keys, key);
		if (near)
			return kn_line_fail(
			    c, "%s: unknown key; did you mean \"%s\"?", where, near);
		list_keys(list, sizeof list, keys);
		return kn_line_fail(c, "%s: unknown key; %s", where, list);
	}
	return 0;
}

bool
kn_line_path_ok(const char *path, size_t n)
{
	size_t start = 0;

	if (n == 0 || n > 4000 || memchr(path, '\0', n))
		return false;
	for (size_t i = 0; i <= n; i++) {
		size_t len = i - start;

		if (i < n && path[i] != '/')
			continue;
		if (len == 0 || len > 255 || (len == 1 && path[start] == '.') ||
		    (len == 2 && path[start] == '.' && path[start + 1] == '.'))
			return false;
		start = i + 1;
	}
	return true;
}

/* ---- files ---- */

static int
octal_mode(struct kn_line_ctx *c, json_t *v, const char *at, uint32_t *out)
{
	const char *s = json_string_value(v);
	uint32_t mode = 0;

	if (!s || json_string_length(v) < 1 || json_string_length(v) > 4)
		return kn_line_fail(
		    c, "%s/mode: must be octal text such as \"755\"", at);
	for (; *s; s++) {
		if (*s < '0' || *s > '7')
			return kn_line_fail(
			    c, "%s/mode: must be octal text such as \"755\"", at);
		mode = mode * 8 + (uint32_t)(*s - '0');
	}
	if (mode > 0777)
		return kn_line_fail(
		    c, "%s/mode: out of range: only permission bits, at most 777", at);
	*out = mode;
	return 0;
}

/* "c1/main": the id up to the last '/' whose left part stands in `after`: ids may
 * contain a
 * '/' themselves, and of "p" and "p/1" the longer one is meant. */
static int
split_from(
    struct kn_line_ctx *c, const char *text, const char *at, struct kn_line_source *s)
{
	json_t *after = json_object_get(c->root, "after");

	for (size_t id_n = strlen(text); id_n-- > 0;) {
		const char *slash = text + id_n;

		for (size_t i = 0; *slash == '/' && i < json_array_size(after); i++) {
			json_t *id = json_array_get(after, i);

			if (json_string_length(id) != id_n ||
			    memcmp(json_string_value(id), text, id_n) != 0)
				continue;
			if (!kn_line_path_ok(slash + 1, strlen(slash + 1)))
				return kn_line_fail(
				    c, "%s/from: not the name of a kept file", at);
			s->from = strndup(text, id_n);
			s->name = strdup(slash + 1);
			return s->from && s->name
				   ? 0
				   : kn_line_fail(c, "%s/from: out of memory", at);
		}
	}
	return kn_line_fail(c,
	    "%s/from: must be \"ID/NAME\" where ID stands in /after of this task", at);
}

static int
add_source(struct kn_line_ctx *c, json_t *path, json_t *from, bool mode_given,
    const char *at, size_t file)
{
	struct kn_line *l = c->out;
	struct kn_line_source *s;
	char where[KN_LINE_POINTER_MAX + 8], *text;
	int r;

	if (l->source_n == KN_LINE_FD_FILES_MAX)
		return kn_line_fail(c,
		    "/files: at most %d by \"path\" and \"from\" in one task",
		    KN_LINE_FD_FILES_MAX);
	if (!l->sources &&
	    !(l->sources = calloc(KN_LINE_FD_FILES_MAX, sizeof *l->sources)))
		return kn_line_fail(c, "/files: out of memory");
	s = &l->sources[l->source_n++];
	s->file = file;
	s->mode_given = mode_given;
	snprintf(where, sizeof where, "%s/%s", at, path ? "path" : "from");
	if (kn_line_string(c, path ? path : from, where, false, &text, NULL) < 0)
		return -1;
	if (path) {
		s->path = text;
		if (text[0] == '\0')
			return kn_line_fail(c, "%s: must name a file", where);
		return 0;
	}
	r = split_from(c, text, at, s);
	free(text);
	return r;
}

static int
read_file(struct kn_line_ctx *c, json_t *v, const char *at, struct kn_task_file *f,
    size_t index)
{
	json_t *content = json_object_get(v, "content");
	json_t *content_b64 = json_object_get(v, "content_b64");
	json_t *path = json_object_get(v, "path"), *from = json_object_get(v, "from");
	json_t *mode = json_object_get(v, "mode");
	char where[KN_LINE_POINTER_MAX + 16], *text;

	if (json_is_string(v))
		return kn_line_fail(
		    c, "%s: must be an object, as {\"content\":\"text\"}", at);
	if (kn_line_object(c, v, at, kn_line_file_keys) < 0)
		return -1;
	if (!!content + !!content_b64 + !!path + !!from != 1)
		return kn_line_fail(
		    c, "%s: needs exactly one of content, content_b64, path, from", at);
	f->mode = 0644;
	if (mode && octal_mode(c, mode, at, &f->mode) < 0)
		return -1;
	if (path || from)
		return add_source(c, path, from, mode != NULL, at, index);
	snprintf(where, sizeof where, "%s/%s", at, content ? "content" : "content_b64");
	if (content_b64)
		return kn_line_base64(c, content_b64, where, &f->bytes, &f->byte_n);
	if (kn_line_string(c, content, where, true, &text, &f->byte_n) < 0)
		return -1;
	f->bytes = text;
	return 0;
}

/* A file cannot also be a directory of another one. */
static int
no_file_above(struct kn_line_ctx *c, json_t *files, const char *name, const char *at)
{
	char *copy = strdup(name);
	int r = 0;

	if (!copy)
		return kn_line_fail(c, "%s: out of memory", at);
	for (char *s = strchr(copy, '/'); s && r == 0; s = strchr(s + 1, '/')) {
		*s = '\0';
		if (json_object_get(files, copy))
			r = kn_line_fail(
			    c, "%s: lies below another file of this task", at);
		*s = '/';
	}
	free(copy);
	return r;
}

int
kn_line_files(struct kn_line_ctx *c, json_t *v)
{
	struct kn_task *t = c->out->task;
	char at[KN_LINE_POINTER_MAX];
	const char *name;
	json_t *value;

	if (!json_is_object(v))
		return kn_line_fail(c, "/files: must be an object of files by name");
	if (json_object_size(v) > KN_LINE_FILES_MAX)
		return kn_line_fail(c, "/files: at most %d", KN_LINE_FILES_MAX);
	t->files = calloc(json_object_size(v) + 1, sizeof *t->files);
	if (!t->files)
		return kn_line_fail(c, "/files: out of memory");
	json_object_foreach(v, name, value)
	{
		struct kn_task_file *f = &t->files[t->file_n];

		kn_line_pointer(at, sizeof at, "/files", name);
		if (!kn_line_path_ok(name, strlen(name)))
			return kn_line_fail(c, "%s: " KN_LINE_PATH_RULE, at);
		if (no_file_above(c, v, name, at) < 0)
			return -1;
		f->fd = -1;
		f->path = strdup(name);
		t->file_n++;
		if (!f->path)
			return kn_line_fail(c, "%s: out of memory", at);
		c->out->bytes += strlen(name) + sizeof *f;
		if (read_file(c, value, at, f, t->file_n - 1) < 0)
			return -1;
	}
	return 0;
}
