/* sandbox/policy_profile.c: a foreign seccomp profile, as OCI runtimes and Docker have
 * them: is it one, and does it mean what it says? Read as it stands, and strictly: a
 * member that nobody here knows may be a condition, and a condition that is passed over
 * is a hole.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sandbox/filter.h"
#include "sandbox/policy_int.h"

enum { ARGS_MAX = 6 };

/* What is looked at, and where it stands in the document. */
struct spot {
	const struct kn_pdoc *d;
	struct kn_err *e;
	char at[KN_POLICY_POINTER_MAX];
};

__attribute__((format(printf, 3, 4))) static int
fail(const struct spot *s, const char *member, const char *fmt, ...)
{
	char at[KN_POLICY_POINTER_MAX], text[160];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	if (!member || !kn_pointer_add(at, s->at, member))
		memcpy(at, s->at, sizeof at);
	return kn_pdoc_fail(s->d, at, false, s->e, "%s", text);
}

/* A place below. */
static int
below(struct spot *to, const struct spot *from, const char *member, size_t index)
{
	char number[24];
	*to = *from;
	snprintf(number, sizeof number, "%zu", index);
	if (kn_pointer_add(to->at, from->at, member) &&
	    kn_pointer_add(to->at, to->at, number))
		return 0;
	return fail(from, NULL, "too deep");
}

/* ---- members ---- */

enum {
	TEXT = 1,
	NUMBER = 2,
	OBJECT = 4,
	TEXTS = 8,   /* an array of texts */
	OBJECTS = 16 /* an array of objects */
};
struct member {
	const char *name;
	unsigned type;
	bool needed;
};

static bool
all_of(const json_t *a, unsigned type)
{
	for (size_t i = 0; i < json_array_size(a); i++) {
		const json_t *v = json_array_get(a, i);
		if (type == TEXTS ? !json_is_string(v) : !json_is_object(v))
			return false;
	}
	return true;
}

static bool
is_of(const json_t *v, unsigned type)
{
	if (type == TEXT)
		return json_is_string(v);
	if (type == NUMBER)
		return json_is_integer(v);
	if (type == OBJECT)
		return json_is_object(v);
	return json_is_array(v) && all_of(v, type);
}

static const char *
type_name(unsigned type)
{
	return type == TEXT	? "a string"
	       : type == NUMBER ? "an integer"
	       : type == OBJECT ? "an object"
	       : type == TEXTS	? "an array of strings"
				: "an array of objects";
}

/* null is as good as absent: these files are written by programs. */
static int
check_members(const struct spot *s, json_t *o, const struct member *m, size_t n)
{
	const char *name;
	json_t *v;
	char at[KN_POLICY_POINTER_MAX];
	json_object_foreach(o, name, v)
	{
		size_t i = 0;
		while (i < n && strcmp(m[i].name, name) != 0)
			i++;
		if (i == n && kn_pointer_add(at, s->at, name))
			return kn_pdoc_fail(s->d, at, true, s->e,
			    "is nothing that seccomp profiles have");
		if (i == n)
			return fail(s, NULL, "a key is too long");
		if (!json_is_null(v) && !is_of(v, m[i].type))
			return fail(s, name, "expected %s", type_name(m[i].type));
	}
	for (size_t i = 0; i < n; i++) {
		v = json_object_get(o, m[i].name);
		if (m[i].needed && (!v || json_is_null(v)))
			return fail(s, NULL, "needs \"%s\"", m[i].name);
	}
	return 0;
}
#define MEMBERS(s, o, m) check_members(s, o, m, sizeof m / sizeof *m)

/* ---- actions ---- */

const char *
kn_profile_no_action(const char *action)
{
	if (strcmp(action, "SCMP_ACT_TRACE") == 0)
		return "needs a debugger that traces the task, and there is none";
	if (strcmp(action, "SCMP_ACT_NOTIFY") == 0)
		return "needs a program of yours that answers for the kernel; "
		       "/seccomp/explain reports refused calls";
	return NULL;
}

static int
check_action(
    const struct spot *s, json_t *o, const char *member, enum kn_seccomp_action *out)
{
	const struct kn_key *k = kn_policy_key("/seccomp/rules/*/action");
	const char *word = json_string_value(json_object_get(o, member));
	const char *no = kn_profile_no_action(word);
	if (no)
		return fail(s, member, "%s %s", word, no);
	for (size_t i = 0; k->words[i]; i++)
		if (strcmp(k->words[i], word) == 0) {
			*out = (enum kn_seccomp_action)i;
			return 0;
		}
	return fail(s, member, "unknown action \"%.40s\"", word);
}

/* Its error number, as number or name: what goes with `action` only. */
static int
check_errno(const struct spot *s, json_t *o, const char *number, const char *name,
    enum kn_seccomp_action action)
{
	json_t *v = json_object_get(o, number), *w = json_object_get(o, name);
	bool has = v && !json_is_null(v), named = w && !json_is_null(w);
	if ((has || named) && action != KN_SC_ERRNO)
		return fail(s, has ? number : name, "goes with SCMP_ACT_ERRNO only");
	if (has && (json_integer_value(v) < 1 || json_integer_value(v) > 4095))
		return fail(s, number, "is out of range (1 to 4095)");
	if (named && kn_profile_errno(json_string_value(w)) < 0)
		return fail(s, name, "unknown error \"%.40s\"", json_string_value(w));
	return 0;
}

/* Names of errors that profiles use; the numbers are this machine's. */
int
kn_profile_errno(const char *name)
{
	for (int n = 1; n <= 4095; n++) {
		const char *s = strerrorname_np(n);
		if (s && strcmp(s, name) == 0)
			return n;
	}
	return -1;
}

/* ---- conditions ---- */

static int
check_arg(const struct spot *s, json_t *a)
{
	static const struct member members[] = { { "index", NUMBER, true },
		{ "value", NUMBER, true }, { "valueTwo", NUMBER, false },
		{ "op", TEXT, true } };
	const struct kn_key *k = kn_policy_key("/seccomp/rules/*/args/*/op");
	if (MEMBERS(s, a, members) < 0)
		return -1;
	const char *op = json_string_value(json_object_get(a, "op"));
	json_int_t index = json_integer_value(json_object_get(a, "index"));
	size_t i = 0;
	while (k->words[i] && strcmp(k->words[i], op) != 0)
		i++;
	if (!k->words[i])
		return fail(s, "op", "unknown comparison \"%.40s\"", op);
	if (index < 0 || index >= ARGS_MAX)
		return fail(s, "index", "is out of range (0 to 5)");
	if (i != KN_CMP_MASKED_EQ &&
	    json_integer_value(json_object_get(a, "valueTwo")) != 0)
		return fail(s, "valueTwo", "goes with SCMP_CMP_MASKED_EQ only");
	return 0;
}

/* "4.8" or "4.8.1" */
bool
kn_profile_version(const char *text, unsigned out[2])
{
	char *end;
	for (int i = 0; i < 2; i++) {
		if (*text < '0' || *text > '9')
			return false;
		unsigned long v = strtoul(text, &end, 10);
		if (v > 65535 || (i == 0 && *end != '.'))
			return false;
		out[i] = (unsigned)v;
		text = end + 1;
	}
	return *end == 0 ||
	       (*end == '.' && end[1] && !end[1 + strspn(end + 1, "0123456789")]);
}

static int
check_clause(const struct spot *s, json_t *syscall, const char *name, bool kernel)
{
	static const struct member members[] = { { "caps", TEXTS, false },
		{ "arches", TEXTS, false }, { "minKernel", TEXT, false } };
	json_t *o = json_object_get(syscall, name);
	struct spot at = *s;
	unsigned v[2];
	if (!o || json_is_null(o))
		return 0;
	if (!kn_pointer_add(at.at, s->at, name))
		return fail(s, NULL, "too deep");
	if (check_members(&at, o, members, kernel ? 3 : 2) < 0)
		return -1;
	const char *min = json_string_value(json_object_get(o, "minKernel"));
	if (min && !kn_profile_version(min, v))
		return fail(
		    &at, "minKernel", "\"%.20s\" is not a version as \"4.8\"", min);
	return 0;
}

/* ---- entries ---- */

static bool
is_permissive(enum kn_seccomp_action a)
{
	return a == KN_SC_ALLOW || a == KN_SC_LOG;
}

/* A typing error in what is refused would be a hole; in what is allowed it is not. */
static int
check_names(const struct spot *s, json_t *o, enum kn_seccomp_action action)
{
	json_t *names = json_object_get(o, "names"), *name = json_object_get(o, "name");
	size_t n = json_array_size(names);
	bool single = json_is_string(name);
	struct kn_err why;
	if (single && n)
		return fail(s, "name", "does not go with \"names\"");
	if (!single && !n)
		return fail(s, NULL, "an entry needs \"names\"");
	for (size_t i = 0; i < n + single && !is_permissive(action); i++) {
		struct spot at = *s;
		const char *word =
		    json_string_value(single ? name : json_array_get(names, i));
		kn_err_clear(&why);
		if (kn_filter_check_call(word, &why) == 0)
			continue;
		if (!single && below(&at, s, "names", i) < 0)
			return -1;
		return fail(&at, single ? "name" : NULL,
		    "%s: what is refused must be "
		    "known",
		    why.msg);
	}
	return 0;
}

static int
check_entry(const struct spot *s, json_t *o)
{
	static const struct member members[] = { { "names", TEXTS, false },
		{ "name", TEXT, false }, { "action", TEXT, true },
		{ "errnoRet", NUMBER, false }, { "errno", TEXT, false },
		{ "args", OBJECTS, false }, { "comment", TEXT, false },
		{ "includes", OBJECT, false }, { "excludes", OBJECT, false } };
	enum kn_seccomp_action action;
	json_t *args = json_object_get(o, "args");
	struct spot at;
	if (MEMBERS(s, o, members) < 0 || check_action(s, o, "action", &action) < 0 ||
	    check_errno(s, o, "errnoRet", "errno", action) < 0 ||
	    check_clause(s, o, "includes", true) < 0 ||
	    check_clause(s, o, "excludes", false) < 0 || check_names(s, o, action) < 0)
		return -1;
	if (json_array_size(args) > ARGS_MAX)
		return fail(s, "args", "more than 6 conditions");
	for (size_t i = 0; i < json_array_size(args); i++)
		if (below(&at, s, "args", i) < 0 ||
		    check_arg(&at, json_array_get(args, i)) < 0)
			return -1;
	return 0;
}

/* ---- the whole ---- */

static int
check_arches(const struct spot *s, json_t *o)
{
	static const struct member members[] = { { "architecture", TEXT, true },
		{ "subArchitectures", TEXTS, false } };
	json_t *map = json_object_get(o, "archMap");
	struct spot at;
	if (json_array_size(map) &&
	    json_array_size(json_object_get(o, "architectures")))
		return fail(s, "archMap", "does not go with \"architectures\"");
	for (size_t i = 0; i < json_array_size(map); i++)
		if (below(&at, s, "archMap", i) < 0 ||
		    MEMBERS(&at, json_array_get(map, i), members) < 0)
			return -1;
	return 0;
}

/* SCMP_FILTER_FLAG_TSYNC is about threads that run already: here there are none when
 * the filter is put in place. The others would change what happens. */
static int
check_flags(const struct spot *s, json_t *o)
{
	json_t *flags = json_object_get(o, "flags");
	struct spot at;
	for (size_t i = 0; i < json_array_size(flags); i++) {
		const char *f = json_string_value(json_array_get(flags, i));
		if (strcmp(f, "SECCOMP_FILTER_FLAG_TSYNC") == 0)
			continue;
		if (below(&at, s, "flags", i) < 0)
			return -1;
		return fail(&at, NULL, "\"%.60s\" is not supported", f);
	}
	return 0;
}

int
kn_profile_check(
    const struct kn_pdoc *d, const char *pointer, json_t *profile, struct kn_err *e)
{
	static const struct member members[] = { { "defaultAction", TEXT, true },
		{ "defaultErrnoRet", NUMBER, false }, { "defaultErrno", TEXT, false },
		{ "architectures", TEXTS, false }, { "archMap", OBJECTS, false },
		{ "flags", TEXTS, false }, { "syscalls", OBJECTS, false },
		{ "comment", TEXT, false } };
	enum kn_seccomp_action action;
	json_t *list;
	struct spot s = { d, e, "" }, at;
	snprintf(s.at, sizeof s.at, "%s", pointer);
	if (json_object_get(profile, "linux"))
		return fail(&s, "linux",
		    "this is a container's config.json; its profile is the object at "
		    "/linux/seccomp");
	if (MEMBERS(&s, profile, members) < 0 ||
	    check_action(&s, profile, "defaultAction", &action) < 0 ||
	    check_errno(&s, profile, "defaultErrnoRet", "defaultErrno", action) < 0 ||
	    check_arches(&s, profile) < 0 || check_flags(&s, profile) < 0)
		return -1;
	list = json_object_get(profile, "syscalls");
	for (size_t i = 0; i < json_array_size(list); i++)
		if (below(&at, &s, "syscalls", i) < 0 ||
		    check_entry(&at, json_array_get(list, i)) < 0)
			return -1;
	return 0;
}
