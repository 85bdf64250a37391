/* sandbox/policy_show.c: a merged policy for readers: beside each value who set it; and
 * what differs between two. Who reads it by program takes the JSON.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sandbox/policy_int.h"

enum {
	COLUMN = 58,  /* where origins stand, if the line is not longer */
	INLINE = 100, /* what is not longer stands in one line */
	DUMP = JSON_ENCODE_ANY | JSON_SORT_KEYS | JSON_REAL_PRECISION(12)
};

/* "my.json:7", "preset judge", "--memory"; "" where nobody set it. */
static void
origin_text(const struct kn_pol *p, const char *pointer, char *dst, size_t cap)
{
	const char *s = json_string_value(json_object_get(p->origins, pointer));
	const char *label, *from, *text = s ? kn_pol_text_of(p, s, &label, &from) : "";
	unsigned line, col;
	char name[320];

	dst[0] = 0;
	if (!s)
		return;
	if (!text || !kn_policy_locate(text, strlen(text), from, false, &line, &col)) {
		kn_err_printable(dst, (int)cap, s, (int)strlen(s));
		return;
	}
	kn_err_printable(name, sizeof name, label, (int)strlen(label));
	snprintf(dst, cap, "%s:%u", name, line);
}

/* ---- one policy ---- */

struct listing {
	const struct kn_pol *p;
	FILE *f;
	bool failed;
};

/* One line: indent, text, and the origin of what is at pointer. */
static void
put_line(struct listing *l, unsigned depth, const char *text, const char *pointer)
{
	char origin[400] = "";
	int n = fprintf(l->f, "%*s%s", (int)(2 * depth), "", text);

	if (pointer)
		origin_text(l->p, pointer, origin, sizeof origin);
	if (origin[0])
		fprintf(l->f, "%*s  %s", n < COLUMN ? COLUMN - n : 0, "", origin);
	fputc('\n', l->f);
}

static void put_value(struct listing *l, unsigned depth, const char *head, json_t *v,
    const char *pointer, bool more);

/* Words from one place are told as one thing. */
static bool
one_origin(const struct listing *l, json_t *list, const char *pointer)
{
	char at[KN_POLICY_POINTER_MAX + 24], first[400] = "", next[400];

	for (size_t i = 0; i < json_array_size(list); i++) {
		json_t *v = json_array_get(list, i);

		if (json_is_object(v) || json_is_array(v))
			return false;
		snprintf(at, sizeof at, "%s/%zu", pointer, i);
		origin_text(l->p, at, next, sizeof next);
		if (i == 0)
			snprintf(first, sizeof first, "%s", next);
		else if (strcmp(first, next) != 0)
			return false;
	}
	return json_is_array(list);
}

/* `head` and the whole value in one line; it has an origin or is inside of what has. */
static void
put_inline(struct listing *l, unsigned depth, const char *head, json_t *v,
    const char *pointer, bool more)
{
	char *dump = json_dumps(v, DUMP), *line = NULL;

	if (!dump || asprintf(&line, "%s%s%s", head, dump, more ? "," : "") < 0)
		l->failed = true;
	else
		put_line(l, depth, line, pointer);
	free(line);
	free(dump);
}

static bool
fits(json_t *v, const char *head, unsigned depth)
{
	char *dump = json_dumps(v, DUMP);
	bool yes = dump && strlen(dump) + strlen(head) + (size_t)2 * depth <= INLINE;

	free(dump);
	return yes;
}

static void
put_members(struct listing *l, unsigned depth, json_t *v, const char *pointer)
{
	size_t at = 0, n = json_object_size(v);
	const char **names = calloc(n + 1, sizeof *names), *name;
	json_t *member;

	if (!names) {
		l->failed = true;
		return;
	}
	json_object_foreach(v, name, member)
	{
		size_t i = at++;
		for (; i > 0 && strcmp(names[i - 1], name) > 0; i--)
			names[i] = names[i - 1];
		names[i] = name;
	}
	for (size_t i = 0; i < n; i++) {
		char below[KN_POLICY_POINTER_MAX], *head = NULL;
		json_t *key = json_string(names[i]);
		char *quoted = key ? json_dumps(key, DUMP) : NULL;

		if (!quoted || !kn_pointer_add(below, pointer, names[i]) ||
		    asprintf(&head, "%s: ", quoted) < 0) {
			l->failed = true;
			head = NULL;
		} else {
			put_value(l, depth, head, json_object_get(v, names[i]), below,
			    i + 1 < n);
		}
		free(head);
		free(quoted);
		json_decref(key);
	}
	free(names);
}

static void
put_value(struct listing *l, unsigned depth, const char *head, json_t *v,
    const char *pointer, bool more)
{
	bool array = json_is_array(v);
	size_t n = array ? json_array_size(v) : json_object_size(v);
	char open[KN_POLICY_POINTER_MAX + 16], below[KN_POLICY_POINTER_MAX + 24];

	if (n == 0) {
		put_inline(l, depth, head, v, pointer, more);
		return;
	}
	if (fits(v, head, depth)) {
		/* An element of a list is one thing, with one origin. */
		bool words = one_origin(l, v, pointer);

		snprintf(below, sizeof below, "%s%s", pointer, words ? "/0" : "");
		if (words || json_object_get(l->p->origins, pointer)) {
			put_inline(l, depth, head, v, below, more);
			return;
		}
	}
	snprintf(open, sizeof open, "%s%s", head, array ? "[" : "{");
	put_line(l, depth, open, pointer);
	if (!array)
		put_members(l, depth + 1, v, pointer);
	for (size_t i = 0; array && i < n; i++) {
		snprintf(below, sizeof below, "%s/%zu", pointer, i);
		put_value(l, depth + 1, "", json_array_get(v, i), below, i + 1 < n);
	}
	snprintf(open, sizeof open, "%s%s", array ? "]" : "}", more ? "," : "");
	put_line(l, depth, open, NULL);
}

/* pub is the first member. */
static const struct kn_pol *
pol(const struct kn_policy *p)
{
	return (const struct kn_pol *)(const void *)p;
}

char *
kn_policy_listing(const struct kn_policy *p)
{
	char *out = NULL;
	size_t n;
	struct listing l = { .p = pol(p), .f = open_memstream(&out, &n) };

	if (!l.f)
		return NULL;
	put_value(&l, 0, "", l.p->doc, "", false);
	fprintf(l.f, "%s\n", kn_policy_hash(p));
	if (fclose(l.f) == 0 && !l.failed)
		return out;
	free(out);
	return NULL;
}

/* ---- two ---- */

struct pair {
	const struct kn_pol *a, *b;
	FILE *f;
	bool failed;
};

static void
put_side(
    struct pair *d, const struct kn_pol *p, char sign, json_t *v, const char *pointer)
{
	char origin[400];
	char *dump = json_dumps(v, DUMP);
	int n;

	if (!dump) {
		d->failed = true;
		return;
	}
	origin_text(p, pointer, origin, sizeof origin);
	n = fprintf(d->f, "  %c %s", sign, dump);
	if (origin[0])
		fprintf(d->f, "%*s  %s", n < COLUMN ? COLUMN - n : 0, "", origin);
	fputc('\n', d->f);
	free(dump);
}

/* How often v stands in the first n elements of list. */
static size_t
count_of(json_t *list, size_t n, json_t *v)
{
	size_t count = 0;

	for (size_t i = 0; i < n; i++)
		count += json_equal(json_array_get(list, i), v) != 0;
	return count;
}

/* Elements that the other list has not, or not as often. */
static void
put_rest(struct pair *d, const struct kn_pol *p, char sign, json_t *list, json_t *other,
    const char *pointer)
{
	char at[KN_POLICY_POINTER_MAX + 24];

	for (size_t i = 0; i < json_array_size(list); i++) {
		json_t *v = json_array_get(list, i);

		snprintf(at, sizeof at, "%s/%zu", pointer, i);
		if (count_of(list, i, v) >= count_of(other, json_array_size(other), v))
			put_side(d, p, sign, v, at);
	}
}

static void
compare_lists(struct pair *d, json_t *a, json_t *b, const char *pointer)
{
	long before;

	if (json_equal(a, b))
		return;
	fprintf(d->f, "%s\n", pointer);
	before = ftell(d->f);
	put_rest(d, d->a, '-', a, b, pointer);
	put_rest(d, d->b, '+', b, a, pointer);
	if (ftell(d->f) == before)
		fprintf(d->f, "  the same elements in another order\n");
}

static void compare(struct pair *d, json_t *a, json_t *b, const char *pointer);

static void
compare_members(struct pair *d, json_t *a, json_t *b, const char *pointer)
{
	char below[KN_POLICY_POINTER_MAX];
	const char *name;
	json_t *all = json_object(), *v;
	char *key;

	/* Sorted, as the listing is: by way of one object with the names of both. */
	json_object_update(all, a);
	json_object_update(all, b);
	size_t n = json_object_size(all), at = 0;
	char **names = calloc(n + 1, sizeof *names);
	json_object_foreach(all, name, v)
	{
		if (!names || !(key = strdup(name))) {
			d->failed = true;
			break;
		}
		size_t i = at++;
		for (; i > 0 && strcmp(names[i - 1], key) > 0; i--)
			names[i] = names[i - 1];
		names[i] = key;
	}
	for (size_t i = 0; i < at; i++) {
		if (kn_pointer_add(below, pointer, names[i]))
			compare(d, json_object_get(a, names[i]),
			    json_object_get(b, names[i]), below);
		free(names[i]);
	}
	free(names);
	json_decref(all);
}

static void
compare(struct pair *d, json_t *a, json_t *b, const char *pointer)
{
	bool ao = !a || json_is_object(a), bo = !b || json_is_object(b);

	if (ao && bo) {
		compare_members(d, a, b, pointer);
	} else if ((!a || json_is_array(a)) && (!b || json_is_array(b))) {
		compare_lists(d, a, b, pointer);
	} else if (!a || !b || !json_equal(a, b)) {
		fprintf(d->f, "%s\n", pointer);
		if (a)
			put_side(d, d->a, '-', a, pointer);
		if (b)
			put_side(d, d->b, '+', b, pointer);
	}
}

char *
kn_policy_compare(const struct kn_policy *a, const struct kn_policy *b)
{
	char *out = NULL;
	size_t n;
	struct pair d = { .a = pol(a), .b = pol(b), .f = open_memstream(&out, &n) };

	if (!d.f)
		return NULL;
	compare(&d, d.a->doc, d.b->doc, "");
	if (fclose(d.f) == 0 && !d.failed)
		return out;
	free(out);
	return NULL;
}
