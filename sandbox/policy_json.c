/* sandbox/policy_json.c: reading policy documents, and where in the text a value is.
 *
 * A document is a stranger's file: bounded before it is read, bounded in depth before
 * the recursive parser sees it. jansson keeps no positions of values, so a small
 * scanner finds a JSON pointer in the text again when there is something to say about
 * it.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ipc/fd.h"
#include "sandbox/policy_int.h"

void
kn_pdoc_fini(struct kn_pdoc *d)
{
	json_decref(d->root);
	free(d->label);
	free(d->dir);
	free(d->text);
	free(d->profile);
	memset(d, 0, sizeof *d);
}

/* ---- the scanner: text that jansson has accepted, or will refuse by itself ---- */

struct scan {
	const char *p, *end;
};

static void
skip_space(struct scan *s)
{
	while (s->p < s->end && *s->p && strchr(" \t\r\n", *s->p))
		s->p++;
}

static void
skip_string(struct scan *s)
{
	for (s->p++; s->p < s->end && *s->p != '"'; s->p++)
		if (*s->p == '\\' && s->p + 1 < s->end)
			s->p++;
	if (s->p < s->end)
		s->p++;
}

static void
skip_value(struct scan *s)
{
	unsigned depth = 0;
	do {
		skip_space(s);
		if (s->p >= s->end)
			return;
		if (*s->p == '"') {
			skip_string(s);
			continue;
		}
		if (*s->p == '{' || *s->p == '[')
			depth++;
		else if (*s->p == '}' || *s->p == ']')
			depth--;
		else if (depth == 0)
			while (
			    s->p < s->end && (!*s->p || !strchr(" \t\r\n,]}", *s->p)))
				s->p++;
		if (depth || (s->p < s->end && (*s->p == '}' || *s->p == ']')))
			s->p++;
	} while (depth && s->p < s->end);
}

/* Is the string at s (a key) the pointer component `name`? Moves past it. */
static bool
key_is(struct scan *s, const char *name)
{
	const char *from = s->p;
	skip_string(s);
	size_t n = strlen(name), len = (size_t)(s->p - from);
	/* Mostly it stands there as it is. */
	if (!memchr(from, '\\', len))
		return len == n + 2 && memcmp(from + 1, name, n) == 0;
	json_t *k = json_loadb(from, (size_t)(s->p - from), JSON_DECODE_ANY, NULL);
	bool same = k && json_is_string(k) && strcmp(json_string_value(k), name) == 0;
	json_decref(k);
	return same;
}

/* From the start of a container to its member: to the key, or past it to the value. */
static bool
enter(struct scan *s, const char *name, bool at_key)
{
	bool object = *s->p == '{';
	unsigned long want = object ? 0 : strtoul(name, NULL, 10);
	if (!object && *s->p != '[')
		return false;
	s->p++;
	for (unsigned long i = 0;; i++) {
		skip_space(s);
		if (s->p >= s->end || *s->p == '}' || *s->p == ']')
			return false;
		const char *key = s->p;
		bool hit = object ? *key == '"' && key_is(s, name) : i == want;
		skip_space(s);
		if (object && s->p < s->end && *s->p == ':')
			s->p++;
		skip_space(s);
		if (hit) {
			if (at_key)
				s->p = key;
			return s->p < s->end;
		}
		skip_value(s);
		skip_space(s);
		if (s->p < s->end && *s->p == ',')
			s->p++;
		if (s->p == key)
			return false; /* not JSON: no way on */
	}
}

/* Take the first component off a pointer, unescaped. */
static const char *
component(const char *pointer, char *out, size_t cap)
{
	size_t n = 0;
	for (pointer++; *pointer && *pointer != '/'; pointer++) {
		char c = *pointer;
		if (c == '~' && (pointer[1] == '0' || pointer[1] == '1'))
			c = *++pointer == '0' ? '~' : '/';
		if (n + 1 < cap)
			out[n++] = c;
	}
	out[n] = 0;
	return pointer;
}

bool
kn_policy_locate(const char *text, size_t n, const char *pointer, bool at_key,
    unsigned *out_line, unsigned *out_col)
{
	struct scan s = { text, text + n };
	skip_space(&s);
	while (*pointer == '/') {
		char name[KN_POLICY_POINTER_MAX];
		pointer = component(pointer, name, sizeof name);
		if (s.p >= s.end || !enter(&s, name, at_key && !*pointer))
			return false;
	}
	unsigned line = 1, col = 1;
	for (const char *p = text; p < s.p; p++) {
		if (*p == '\n') {
			line++;
			col = 1;
		} else if (((unsigned char)*p & 0xc0) != 0x80) {
			col++; /* characters, not bytes, as jansson counts */
		}
	}
	*out_line = line;
	*out_col = col;
	return true;
}

/* Deepest nesting, up to max + 1; the position where max was passed. */
static unsigned
depth_of(const char *text, size_t n, unsigned max, size_t *out_at)
{
	unsigned depth = 0, most = 0;
	struct scan s = { text, text + n };
	while (s.p < s.end && most <= max) {
		*out_at = (size_t)(s.p - text);
		if (*s.p == '"') {
			skip_string(&s);
			continue;
		}
		if (*s.p == '{' || *s.p == '[')
			depth++;
		else if ((*s.p == '}' || *s.p == ']') && depth)
			depth--;
		if (depth > most)
			most = depth;
		s.p++;
	}
	return most;
}

/* ---- pointers ---- */

bool
kn_pointer_add(char dst[KN_POLICY_POINTER_MAX], const char *pointer, const char *name)
{
	size_t n = strlen(pointer);
	if (n + 2 > KN_POLICY_POINTER_MAX)
		return false;
	if (dst != pointer)
		memcpy(dst, pointer, n);
	dst[n++] = '/';
	for (; *name; name++) {
		bool escape = *name == '~' || *name == '/';
		if (n + (escape ? 3 : 2) > KN_POLICY_POINTER_MAX)
			return false;
		dst[n++] = escape ? '~' : *name;
		if (escape)
			dst[n++] = *name == '~' ? '0' : '1';
	}
	dst[n] = 0;
	return true;
}

json_t *
kn_pointer_get(json_t *root, const char *pointer)
{
	while (root && *pointer == '/') {
		char name[KN_POLICY_POINTER_MAX];
		pointer = component(pointer, name, sizeof name);
		root = json_is_array(root)
			   ? json_array_get(root, strtoul(name, NULL, 10))
			   : json_object_get(root, name);
	}
	return root;
}

/* ---- reading ---- */

int
kn_pdoc_parse(struct kn_pdoc *d, struct kn_err *e)
{
	json_error_t je;
	size_t at = 0;
	if (d->n >= 3 && memcmp(d->text, "\xef\xbb\xbf", 3) == 0)
		return kn_pdoc_fail_at(d, 1, 1, e,
		    "starts with a byte order mark; save it as UTF-8 without one");
	if (depth_of(d->text, d->n, KN_POLICY_DEPTH, &at) > KN_POLICY_DEPTH) {
		int line = 1, col = 1;
		for (size_t i = 0; i < at; i++, col++)
			if (d->text[i] == '\n') {
				line++;
				col = 0;
			}
		return kn_pdoc_fail_at(
		    d, line, col, e, "too deep: more than 32 levels");
	}
	d->root = json_loadb(d->text, d->n, JSON_REJECT_DUPLICATES, &je);
	if (!d->root)
		return kn_pdoc_fail_at(
		    d, je.line, je.column > 0 ? je.column : 1, e, je.text);
	if (!json_is_object(d->root))
		return kn_pdoc_fail_at(d, 1, 1, e, "a policy is an object: { ... }");
	return 0;
}

static const char *
file_type(mode_t mode)
{
	return S_ISDIR(mode)	? "a directory"
	       : S_ISFIFO(mode) ? "a FIFO"
	       : S_ISSOCK(mode) ? "a socket"
				: "a device";
}

/* The folder of a file as it was named: a link to a policy stands for its own place. */
static char *
folder_of(const char *path)
{
	const char *slash = strrchr(path, '/');
	char *dir = slash ? strndup(path, (size_t)(slash - path) + 1) : strdup(".");
	char *real = dir ? realpath(dir, NULL) : NULL;
	free(dir);
	return real;
}

int
kn_pdoc_open(struct kn_pdoc *d, const char *path, struct kn_err *e)
{
	struct stat st;
	/* Not blocking: a FIFO without a writer must not hold us. */
	KN_OWN_FD int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0 || fstat(fd, &st) < 0)
		return kn_err_sys(e, KN_EK_CONFIG, "policy %s", path);
	if (!S_ISREG(st.st_mode))
		return kn_err_set(e, KN_EK_CONFIG,
		    "policy %s: is %s, not a regular file", path,
		    file_type(st.st_mode));
	char *buf = malloc(KN_POLICY_FILE_MAX + 2);
	if (!buf)
		return kn_err_set(e, KN_EK_HOST, "policy %s: out of memory", path);
	size_t n = 0;
	while (n <= KN_POLICY_FILE_MAX) {
		ssize_t got = read(fd, buf + n, KN_POLICY_FILE_MAX + 1 - n);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0) {
			kn_err_sys(e, KN_EK_CONFIG, "policy %s: read", path);
			free(buf);
			return -1;
		}
		if (got == 0)
			break;
		n += (size_t)got;
	}
	if (n > KN_POLICY_FILE_MAX) {
		free(buf);
		return kn_err_set(
		    e, KN_EK_CONFIG, "policy %s: larger than 1 MiB", path);
	}
	buf[n] = 0;
	d->text = buf;
	d->n = n;
	d->label = strdup(path);
	if (!d->label || !(d->dir = folder_of(path)))
		return kn_err_sys(e, KN_EK_CONFIG, "policy %s", path);
	return kn_pdoc_parse(d, e);
}

/* A flag's text as the JSON value its key wants: JSON where it parses, else a string;
 * always a string where the key is a text. */
static json_t *
flag_value(const struct kn_key *k, const struct kn_policy_src *s, const char *text)
{
	bool wants_text = k && (k->type == KN_KEY_TEXT || k->type == KN_KEY_WORD);
	uint64_t ms;
	if (s->type == KN_SRC_VALUE && k && kn_policy_key_is_ms(k) &&
	    kn_policy_duration_ms(text, &ms, NULL) == 0 && ms <= INT64_MAX)
		return json_integer((json_int_t)ms);
	if (s->type == KN_SRC_VALUE && wants_text)
		return json_string(text);
	json_t *v = json_loads(text, JSON_DECODE_ANY | JSON_REJECT_DUPLICATES, NULL);
	if (v && (!wants_text || json_is_string(v) || json_is_null(v)))
		return v;
	json_decref(v);
	return json_string(text);
}

/* {"a":{"b":value}} for /a/b; takes value. */
static json_t *
nest(const char *pointer, json_t *value)
{
	char name[KN_POLICY_POINTER_MAX];
	const char *rest = component(pointer, name, sizeof name);
	json_t *inner = *rest && value ? nest(rest, value) : value;
	json_t *o = json_object();
	if (!o || !inner || json_object_set_new(o, name, inner) < 0) {
		json_decref(o);
		return NULL;
	}
	return o;
}

/* What a flag's value cannot be, said in the flag's words and not in JSON's. */
static int
check_flag(const struct kn_policy_src *s, const char *label, const char *pointer,
    const char *text, struct kn_err *e)
{
	const struct kn_key *k = kn_policy_key_at(pointer);
	char list[KN_POLICY_POINTER_MAX];
	uint64_t ms;
	snprintf(list, sizeof list, "%s", pointer);
	for (char *slash; (slash = strrchr(list, '/')) && slash > list;) {
		*slash = 0;
		const struct kn_key *up = kn_policy_key_at(list);
		if (up && up->type == KN_KEY_LIST)
			return kn_err_set(e, KN_EK_USAGE,
			    "%s: %s: a list is named as a whole, as %s=[...], which "
			    "appends",
			    label, pointer, list);
	}
	if (s->type != KN_SRC_VALUE || !k || !kn_policy_key_is_ms(k))
		return 0;
	json_t *v = json_loads(text, JSON_DECODE_ANY, NULL);
	bool number = json_is_integer(v); /* its range is checked with the others */
	json_decref(v);
	if (number || kn_policy_duration_ms(text, &ms, e) == 0)
		return 0;
	return kn_err_wrap(e, "%s", label);
}

int
kn_pdoc_flag(struct kn_pdoc *d, const struct kn_policy_src *s, struct kn_err *e)
{
	char pointer[KN_POLICY_POINTER_MAX];
	const char *text = s->text, *label = s->label ? s->label : "--set";
	size_t at = 0, skip = 0;
	d->label = strdup(label);
	d->dir = realpath(".", NULL);
	if (!d->label)
		return kn_err_set(e, KN_EK_HOST, "%s: out of memory", label);
	if (s->type == KN_SRC_MOUNT) {
		d->root = json_pack("{s:{s:[{s:s,s:s*,s:s}]}}", "filesystem", "mounts",
		    "bind", text, "at", s->at, "mode", s->writable ? "rw" : "ro");
		if (!d->root)
			return kn_err_set(
			    e, KN_EK_USAGE, "%s: the paths are not valid UTF-8", label);
		return 0;
	}
	if (s->type == KN_SRC_VALUE) {
		at = strlen(s->pointer);
	} else {
		at = strcspn(text, "=");
		skip = 1;
		if (!text[at])
			return kn_err_set(
			    e, KN_EK_USAGE, "%s: expected /json/pointer=VALUE", label);
	}
	const char *from = s->type == KN_SRC_VALUE ? s->pointer : text;
	if (*from != '/' || at >= sizeof pointer)
		return kn_err_set(e, KN_EK_USAGE,
		    "%s: a JSON pointer starts with '/', as /limits/task/memory",
		    label);
	memcpy(pointer, from, at);
	pointer[at] = 0;
	unsigned depth = 0;
	for (const char *p = pointer; *p; p++)
		depth += *p == '/';
	if (depth > KN_POLICY_DEPTH)
		return kn_err_set(e, KN_EK_USAGE, "%s: too deep", label);
	if (skip)
		text += at + 1;
	if (strlen(text) > KN_POLICY_FILE_MAX ||
	    depth_of(text, strlen(text), KN_POLICY_DEPTH, &skip) > KN_POLICY_DEPTH)
		return kn_err_set(
		    e, KN_EK_USAGE, "%s: value too deep or too long", label);
	if (strcmp(pointer, "/extends") == 0)
		return kn_err_set(e, KN_EK_USAGE,
		    "%s: /extends is a document's own; name a preset or a file with "
		    "--policy",
		    label);
	if (check_flag(s, label, pointer, text, e) < 0)
		return -1;
	d->root = nest(pointer, flag_value(kn_policy_key_at(pointer), s, text));
	if (!d->root)
		return kn_err_set(
		    e, KN_EK_USAGE, "%s: the value is not valid UTF-8", label);
	return 0;
}
