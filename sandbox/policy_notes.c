/* sandbox/policy_notes.c: what is wrong with policy documents, and where. Whoever
 * checks goes on after a mistake and leaves a note of each, so that a writer sees all
 * of them at once; the error of a load is the first.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sandbox/policy_int.h"

enum { NOTES_MAX = 200, NOTE_TEXT = 1024 };

void
kn_policy_note_add(struct kn_policy_notes *notes, const struct kn_err *e,
    const char *text, const char *pointer, size_t doc, unsigned line, unsigned col)
{
	struct kn_policy_note *v, *n;

	if (!notes)
		return;
	/* A document that is reached twice is read twice. */
	for (size_t i = 0; i < notes->n; i++)
		if (strcmp(notes->v[i].text, text) == 0)
			return;
	v = notes->n < NOTES_MAX ? realloc(notes->v, (notes->n + 1) * sizeof *v) : NULL;
	if (!v) {
		notes->more++;
		return;
	}
	notes->v = v;
	n = &v[notes->n];
	*n = (struct kn_policy_note){ .err = malloc(sizeof *n->err),
		.text = strdup(text),
		.pointer = strdup(pointer),
		.doc = doc,
		.line = line,
		.col = col };
	if (n->err && n->text && n->pointer) {
		*n->err = *e;
		notes->n++;
		return;
	}
	free(n->err);
	free(n->text);
	free(n->pointer);
	notes->more++;
}

static int
by_place(const void *a, const void *b)
{
	const struct kn_policy_note *x = a, *y = b;

	if (x->doc != y->doc)
		return x->doc < y->doc ? -1 : 1;
	if (x->line != y->line)
		return x->line < y->line ? -1 : 1;
	if (x->col != y->col)
		return x->col < y->col ? -1 : 1;
	return strcmp(x->text, y->text);
}

void
kn_policy_notes_sort(struct kn_policy_notes *notes)
{
	if (notes->n > 1)
		qsort(notes->v, notes->n, sizeof *notes->v, by_place);
}

void
kn_policy_notes_fini(struct kn_policy_notes *notes)
{
	for (size_t i = 0; i < notes->n; i++) {
		free(notes->v[i].err);
		free(notes->v[i].text);
		free(notes->v[i].pointer);
	}
	free(notes->v);
	*notes = (struct kn_policy_notes){ 0 };
}

/* "label:line:col: pointer: text", as far as each is known: printable. In an error,
 * which is short, no part drives out the text. */
static void
sentence(char *dst, size_t cap, int part, const struct kn_policy_note *at,
    const char *label, const char *text)
{
	char name[320], where[320], clean[640], place[32] = "";

	kn_err_printable(name, part, label, (int)strlen(label));
	kn_err_printable(where, part, at->pointer, (int)strlen(at->pointer));
	kn_err_printable(clean, sizeof clean, text, (int)strlen(text));
	if (at->line > 0)
		snprintf(place, sizeof place, ":%u:%u", at->line, at->col);
	snprintf(
	    dst, cap, "%s%s: %s%s%s", name, place, where, *where ? ": " : "", clean);
}

/* Always -1. at->pointer is borrowed. */
static int
note(struct kn_policy_notes *notes, const struct kn_policy_note *at, const char *label,
    const char *text, struct kn_err *e)
{
	char brief[256], whole[NOTE_TEXT];
	struct kn_err err = { 0 };

	sentence(brief, sizeof brief, 96, at, label, text);
	sentence(whole, sizeof whole, 320, at, label, text);
	kn_err_set(&err, KN_EK_CONFIG, "%s", brief);
	kn_policy_note_add(notes, &err, whole, at->pointer, at->doc, at->line, at->col);
	if (e)
		*e = err;
	return -1;
}

int
kn_pdoc_fail(const struct kn_pdoc *d, const char *pointer, bool at_key,
    struct kn_err *e, const char *fmt, ...)
{
	char text[320];
	struct kn_policy_note at = { .pointer = (char *)(uintptr_t)pointer,
		.doc = d->ordinal };
	va_list ap;

	/* Finding a place takes reading the text up to it: not for each of 100,000. */
	if (d->notes && d->notes->n == NOTES_MAX) {
		d->notes->more++;
		if (e)
			*e = *d->notes->v[0].err;
		return -1;
	}

	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	if (d->text &&
	    !kn_policy_locate(d->text, d->n, pointer, at_key, &at.line, &at.col))
		at.line = 0;
	return note(d->notes, &at, d->label, text, e);
}

int
kn_pdoc_fail_at(
    const struct kn_pdoc *d, int line, int col, struct kn_err *e, const char *text)
{
	char nowhere[] = "";
	const struct kn_policy_note at = { .pointer = nowhere,
		.doc = d->ordinal,
		.line = d->text && line > 0 ? (unsigned)line : 0,
		.col = (unsigned)col };

	return note(d->notes, &at, d->label, text, e);
}

const char *
kn_pol_text_of(const struct kn_pol *p, const char *origin, const char **out_label,
    const char **out_pointer)
{
	const char *label;
	json_t *text;

	json_object_foreach(p->texts, label, text)
	{
		size_t n = strlen(label);

		if (strncmp(origin, label, n) == 0 && origin[n] == ':' &&
		    origin[n + 1] == '/') {
			*out_label = label;
			*out_pointer = origin + n + 1;
			return json_string_value(text);
		}
	}
	return NULL;
}

int
kn_pol_fail(
    const struct kn_pol *p, const char *pointer, struct kn_err *e, const char *fmt, ...)
{
	char text[320];
	const char *label = kn_pol_origin(p, pointer), *from = pointer;
	const char *file = kn_pol_text_of(p, label, &label, &from);
	struct kn_policy_note at = { .pointer = (char *)(uintptr_t)from,
		.doc = SIZE_MAX };
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	if (file &&
	    !kn_policy_locate(file, strlen(file), from, false, &at.line, &at.col))
		at.line = 0;
	return note(p->notes, &at, label, text, e);
}

/* Of the error, and of its note, which was the last. */
static void
hint(const struct kn_policy_notes *n, struct kn_err *e, const char *text)
{
	kn_err_hint(e, "%s", text);
	if (e && n && n->n > 0 && strcmp(n->v[n->n - 1].err->msg, e->msg) == 0)
		kn_err_hint(n->v[n->n - 1].err, "%s", text);
}

void
kn_pol_hint(const struct kn_pol *p, struct kn_err *e, const char *text)
{
	hint(p->notes, e, text);
}

void
kn_pdoc_hint(const struct kn_pdoc *d, struct kn_err *e, const char *text)
{
	hint(d->notes, e, text);
}
