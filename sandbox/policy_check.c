/* sandbox/policy_check.c: one document against the key table: unknown keys, types,
 * ranges, words. Each document is checked by itself, so that an error names the place
 * in the file it stands in and not a merged thing that nobody wrote.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ipc/near.h"
#include "sandbox/filter.h"
#include "sandbox/policy_int.h"

#define LATER_TEXT "is not supported by this version"

enum { LISTED_MAX = 9 };

static const char *
type_name(const json_t *v)
{
	switch (json_typeof(v)) {
	case JSON_OBJECT:
		return "an object";
	case JSON_ARRAY:
		return "an array";
	case JSON_STRING:
		return "a string";
	case JSON_INTEGER:
		return "an integer";
	case JSON_REAL:
		return "a number with a fraction";
	case JSON_TRUE:
	case JSON_FALSE:
		return "a boolean";
	case JSON_NULL:
	default:
		return "null";
	}
}

static int check(const struct kn_pdoc *d, const struct kn_key *k, const json_t *v,
    const char *pointer, struct kn_err *e);

static int
check_number(const struct kn_pdoc *d, const struct kn_key *k, const json_t *v,
    const char *pointer, struct kn_err *e)
{
	int64_t n;
	if (k->type == KN_KEY_SIZE && json_is_string(v)) {
		uint64_t u;
		struct kn_err why;
		kn_err_clear(&why);
		if (kn_policy_size(json_string_value(v), &u, &why) < 0)
			return kn_pdoc_fail(d, pointer, false, e, "%s", why.msg);
		n = (int64_t)u;
	} else if (json_is_integer(v)) {
		n = json_integer_value(v);
	} else {
		return kn_pdoc_fail(d, pointer, false, e, "expected %s, found %s",
		    k->type == KN_KEY_SIZE   ? "a size (64M, or bytes)"
		    : kn_policy_key_is_ms(k) ? "an integer (milliseconds)"
					     : "an integer",
		    type_name(v));
	}
	if ((n < k->min || n > k->max) && !(k->none && n == 0))
		return kn_pdoc_fail(d, pointer, false, e,
		    "%lld is out of range (%s%lld to %lld)", (long long)n,
		    k->none ? "0, or " : "", (long long)k->min, (long long)k->max);
	return 0;
}

static int
check_fraction(const struct kn_pdoc *d, const struct kn_key *k, const json_t *v,
    const char *pointer, struct kn_err *e)
{
	double x = json_number_value(v) * 1000;
	if (!json_is_number(v))
		return kn_pdoc_fail(
		    d, pointer, false, e, "expected a number, found %s", type_name(v));
	if ((x < (double)k->min || x > (double)k->max) && !(k->none && x == 0.0))
		return kn_pdoc_fail(d, pointer, false, e,
		    "%g is out of range (%s%g to %g)", x / 1000,
		    k->none ? "0, or " : "", (double)k->min / 1000,
		    (double)k->max / 1000);
	return 0;
}

/* "a", "b" or "c", cut if it does not fit. */
static void
join_words(char *dst, size_t cap, const char *const *words)
{
	size_t n = 0;
	dst[0] = 0;
	for (size_t i = 0; words[i] && n < cap; i++)
		n += (size_t)snprintf(dst + n, cap - n, "%s\"%s\"",
		    i == 0	   ? ""
		    : words[i + 1] ? ", "
				   : " or ",
		    words[i]);
}

/* What other tools would take for a launcher: the name of a container runtime. */
static bool
is_runtime(const char *pointer, const char *s)
{
	const char *const *w = kn_policy_key_at("/launcher/runtime")->words;
	if (strcmp(pointer, "/launcher/type") != 0 || strcmp(s, "auto") == 0)
		return false;
	while (*w && strcmp(*w, s) != 0)
		w++;
	return *w != NULL;
}

static int
check_word(const struct kn_pdoc *d, const struct kn_key *k, const json_t *v,
    const char *pointer, struct kn_err *e)
{
	char list[160];
	join_words(list, sizeof list, k->words);
	if (!json_is_string(v))
		return kn_pdoc_fail(
		    d, pointer, false, e, "expected %s, found %s", list, type_name(v));
	const char *s = json_string_value(v);
	for (size_t i = 0; k->words[i]; i++)
		if (strcmp(k->words[i], s) == 0)
			return 0;
	for (size_t i = 0; k->later && k->later[i]; i++)
		if (strcmp(k->later[i], s) == 0 && kn_profile_no_action(s))
			return kn_pdoc_fail(d, pointer, false, e, "\"%s\" %s", s,
			    kn_profile_no_action(s));
		else if (strcmp(k->later[i], s) == 0)
			return kn_pdoc_fail(d, pointer, false, e,
			    "\"%s\" " LATER_TEXT "; it has %s", s, list);
	if (is_runtime(pointer, s)) {
		char how[160];
		snprintf(how, sizeof how,
		    "--launcher oci:%s, or in a policy {\"type\": \"oci\", "
		    "\"runtime\": \"%s\"}",
		    s, s);
		kn_pdoc_fail(d, pointer, false, e,
		    "\"%s\" is a runtime of launcher oci, no launcher of its own", s);
		kn_pdoc_hint(d, e, how);
		return -1;
	}
	const char *near = kn_near_word(k->words, s);
	if (near)
		return kn_pdoc_fail(d, pointer, false, e,
		    "unknown word \"%.40s\"; did you mean \"%s\"?", s, near);
	return kn_pdoc_fail(
	    d, pointer, false, e, "unknown word \"%.40s\"; expected %s", s, list);
}

/* "; here are: a, b, c" where a key looks like none and there are few. */
static void
list_members(char *dst, size_t cap, const char *path)
{
	size_t n = 0, depth = strlen(path), count = 0;
	for (size_t i = 0; i < kn_policy_key_n; i++) {
		const char *p = kn_policy_keys[i].path;
		if (strncmp(p, path, depth) != 0 || p[depth] != '/' ||
		    strchr(p + depth + 1, '/') ||
		    kn_policy_keys[i].type == KN_KEY_LATER)
			continue;
		n += (size_t)snprintf(dst + n, cap - n, "%s%s",
		    count ? ", " : "; here are: ", p + depth + 1);
		if (++count > LISTED_MAX || n >= cap) {
			dst[0] = 0;
			return;
		}
	}
}

static int
check_members(const struct kn_pdoc *d, const struct kn_key *k, const json_t *v,
    const char *pointer, struct kn_err *e)
{
	const char *name;
	json_t *member;
	char below[KN_POLICY_POINTER_MAX];
	/* Iterating does not change the object; jansson's macro wants it non-const. */
	json_t *o = json_incref((json_t *)(uintptr_t)v);
	int rc = 0;
	json_object_foreach(o, name, member)
	{
		const struct kn_key *c = kn_policy_key_child(k->path, name);
		if (!kn_pointer_add(below, pointer, name))
			rc = kn_pdoc_fail(d, pointer, false, e, "a key is too long");
		else if (c && check(d, c, member, below, e) < 0)
			rc = -1;
		else if (c)
			continue;
		else {
			const char *near = kn_policy_key_near(k->path, name);
			char list[128] = "";
			if (near)
				snprintf(
				    list, sizeof list, "; did you mean \"%s\"?", near);
			else
				list_members(list, sizeof list, k->path);
			rc = kn_pdoc_fail(d, below, true, e, "unknown key%s", list);
		}
	}
	json_decref(o);
	return rc;
}

static int
check_elements(const struct kn_pdoc *d, const struct kn_key *k, const json_t *v,
    const char *pointer, struct kn_err *e)
{
	const struct kn_key *c = kn_policy_key_child(k->path, "*");
	char below[KN_POLICY_POINTER_MAX], number[24];
	int rc = 0;
	for (size_t i = 0; i < json_array_size(v); i++) {
		snprintf(number, sizeof number, "%zu", i);
		if (!kn_pointer_add(below, pointer, number))
			return kn_pdoc_fail(d, pointer, false, e, "too deep");
		const json_t *el = json_array_get(v, i);
		if (json_is_null(el))
			rc = kn_pdoc_fail(d, below, false, e, "null in a list");
		else if (check(d, c, el, below, e) < 0)
			rc = -1;
	}
	return rc;
}

static int
check(const struct kn_pdoc *d, const struct kn_key *k, const json_t *v,
    const char *pointer, struct kn_err *e)
{
	if (json_is_null(v) && *pointer)
		return 0; /* removes what was there before */
	switch (k->type) {
	case KN_KEY_OBJECT:
	case KN_KEY_MAP:
		if (!json_is_object(v))
			return kn_pdoc_fail(d, pointer, false, e,
			    "expected an object, found %s", type_name(v));
		return check_members(d, k, v, pointer, e);
	case KN_KEY_LIST:
		if (!json_is_array(v))
			return kn_pdoc_fail(d, pointer, false, e,
			    "expected an array, found %s", type_name(v));
		return check_elements(d, k, v, pointer, e);
	case KN_KEY_BOOL:
		if (!json_is_boolean(v))
			return kn_pdoc_fail(d, pointer, false, e,
			    "expected true or false, found %s", type_name(v));
		return 0;
	case KN_KEY_WORD:
		return check_word(d, k, v, pointer, e);
	case KN_KEY_TEXT:
		if (!json_is_string(v))
			return kn_pdoc_fail(d, pointer, false, e,
			    "expected a string, found %s", type_name(v));
		return 0;
	case KN_KEY_INT:
	case KN_KEY_SIZE:
		return check_number(d, k, v, pointer, e);
	case KN_KEY_NUMBER:
		return check_fraction(d, k, v, pointer, e);
	case KN_KEY_PROFILE:
		if (json_is_object(v))
			return kn_profile_check(d, pointer, (json_t *)(uintptr_t)v, e);
		if (json_is_string(v) && *json_string_value(v))
			return 0; /* read when the document is applied */
		return kn_pdoc_fail(d, pointer, false, e,
		    "expected a profile (an object) or a file's name");
	case KN_KEY_LATER:
		/* An empty list asks for nothing, and nothing is what there is. */
		if (json_is_array(v) && json_array_size(v) == 0)
			return 0;
		return kn_pdoc_fail(d, pointer, true, e, LATER_TEXT);
	case KN_KEY_TYPE_N:
	default:
		return kn_err_set(e, KN_EK_BUG, "key %s has no type", k->path);
	}
}

/* ---- names ---- */

/* Each text of the list at `list`, by the judge of such names. */
static int
check_names(const struct kn_pdoc *d, const char *list,
    int (*judge)(const char *name, struct kn_err *why), struct kn_err *e)
{
	char at[KN_POLICY_POINTER_MAX + 24];
	json_t *a = kn_pointer_get(d->root, list);
	int rc = 0;
	for (size_t i = 0; i < json_array_size(a); i++) {
		const char *s = json_string_value(json_array_get(a, i));
		struct kn_err why;
		kn_err_clear(&why);
		snprintf(at, sizeof at, "%s/%zu", list, i);
		if (s && judge(s, &why) < 0)
			rc = kn_pdoc_fail(d, at, false, e, "%s", why.msg);
	}
	return rc;
}

/* What a rule may name: a call, or all those of a group. */
static int
check_call(const char *name, struct kn_err *e)
{
	return *name == '@' ? kn_filter_check_group(name, e)
			    : kn_filter_check_call(name, e);
}

/* Names of groups and calls, where they stand in this document. */
static int
check_seccomp(const struct kn_pdoc *d, struct kn_err *e)
{
	static const char *const lists[] = { "/seccomp/groups/add",
		"/seccomp/groups/remove", "/seccomp/groups/replace" };
	char at[64];
	int rc = 0;
	for (size_t l = 0; l < sizeof lists / sizeof *lists; l++)
		if (check_names(d, lists[l],
			l == 1 ? kn_filter_check_group : kn_filter_check_group_allows,
			e) < 0)
			rc = -1;
	json_t *rules = kn_pointer_get(d->root, "/seccomp/rules");
	for (size_t r = 0; r < json_array_size(rules); r++) {
		snprintf(at, sizeof at, "/seccomp/rules/%zu/names", r);
		if (check_names(d, at, check_call, e) < 0)
			rc = -1;
	}
	return rc;
}

/* ---- a document ---- */

/* Take out what is wrong, so that what is checked next can rely on the rest: the
 * member, or where it is in a list the element it is in, for which null stands. */
static void
prune(json_t *root, const char *pointer)
{
	char up[KN_POLICY_POINTER_MAX], own[KN_POLICY_POINTER_MAX];
	json_t *at = NULL, *member;
	const char *key;
	void *tmp;
	snprintf(up, sizeof up, "%s", pointer);
	for (char *slash; (slash = strrchr(up, '/'));) {
		snprintf(own, sizeof own, "%s", slash);
		*slash = 0;
		at = kn_pointer_get(root, up);
		if (json_is_array(at)) {
			json_array_set_new(at, strtoul(own + 1, NULL, 10), json_null());
			return;
		}
	}
	/* In no list. */
	const char *last = strrchr(pointer, '/');
	if (!last)
		return;
	snprintf(up, sizeof up, "%.*s", (int)(last - pointer), pointer);
	at = kn_pointer_get(root, up);
	json_object_foreach_safe(at, tmp, key, member)
	{
		if (kn_pointer_add(own, "", key) && strcmp(own, last) == 0)
			json_object_del(at, key);
	}
}

int
kn_policy_check_doc(const struct kn_pdoc *d, struct kn_err *e)
{
	struct kn_policy_notes own = { 0 };
	struct kn_pdoc with = *d;
	int rc = 0;
	if (!with.notes)
		with.notes = &own;
	size_t before = with.notes->n, untold = with.notes->more;
	if (check(&with, kn_policy_key(""), d->root, "", e) < 0)
		rc = -1;
	/* A flag carries one key; a document says which format it is. */
	if (d->text && !json_object_get(d->root, "version"))
		rc = kn_pdoc_fail(&with, "", false, e, "\"version\": 1 is missing");
	else if (d->text && json_is_null(json_object_get(d->root, "version")))
		rc = kn_pdoc_fail(
		    &with, "/version", false, e, "\"version\": 1 is required");
	for (size_t i = before; i < with.notes->n; i++)
		prune(d->root, with.notes->v[i].pointer);
	/* Of more than are kept it is not known what else to take out. */
	if (with.notes->more > untold) {
		kn_policy_notes_fini(&own);
		return -1;
	}
	if (check_seccomp(&with, e) < 0)
		rc = -1;
	if (kn_policy_check_items(&with, e) < 0)
		rc = -1;
	kn_policy_notes_fini(&own);
	return rc;
}

uint64_t
kn_policy_size_of(const json_t *v)
{
	uint64_t n = 0;
	if (json_is_string(v) && kn_policy_size(json_string_value(v), &n, NULL) == 0)
		return n;
	return (uint64_t)json_integer_value(v);
}

uint64_t
kn_policy_thousandths(const json_t *v)
{
	return (uint64_t)(json_number_value(v) * 1000 + 0.5);
}
