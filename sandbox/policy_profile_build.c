/* sandbox/policy_profile_build.c: a foreign seccomp profile, found to be one, resolved
 * for this machine: what depends on its architecture, its kernel or a task's
 * capabilities is decided, and what is left is both shown and enforced.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include "sandbox/filter.h"
#include "sandbox/policy_int.h"

struct resolve {
	struct kn_pol *p;
	json_t *in, *caps; /* of the policy: names, or NULL for none */
	unsigned kernel[2];
	const char *arch; /* as Docker names it */
	const char *scmp; /* as libseccomp names it */
	const char **notes;
	size_t note_n, note_cap;
};

/* ---- this machine ---- */

static void
this_machine(struct resolve *r)
{
	struct utsname u;
	unsigned major = 0, minor = 0;
	kn_filter_machine(&r->scmp, &r->arch);
	if (uname(&u) == 0 && sscanf(u.release, "%u.%u", &major, &minor) == 2) {
		r->kernel[0] = major;
		r->kernel[1] = minor;
	}
}

static int
note(struct resolve *r, struct kn_err *e, const char *text, const char *what)
{
	char clean[64];
	kn_err_printable(clean, sizeof clean, what, (int)strnlen(what, 60));
	if (r->note_n == r->note_cap) {
		size_t cap = r->note_cap ? r->note_cap * 2 : 8;
		const char **v = kn_pmem_new(&r->p->mem, cap * sizeof *v, e);
		if (!v)
			return -1;
		if (r->note_n)
			memcpy(v, r->notes, r->note_n * sizeof *v);
		r->notes = v;
		r->note_cap = cap;
	}
	char *s = kn_pmem_fmt(&r->p->mem, e, "%s: %s", clean, text);
	if (!s)
		return -1;
	r->notes[r->note_n++] = s;
	return 0;
}

/* ---- conditions on the machine ---- */

static bool
has(json_t *list, const char *word)
{
	for (size_t i = 0; i < json_array_size(list); i++) {
		const char *s = json_string_value(json_array_get(list, i));
		if (s && strcmp(s, word) == 0)
			return true;
	}
	return false;
}

static size_t
caps_held(const struct resolve *r, json_t *wanted)
{
	size_t n = 0;
	for (size_t i = 0; i < json_array_size(wanted); i++)
		n += has(r->caps, json_string_value(json_array_get(wanted, i)));
	return n;
}

/* As Docker decides it: all capabilities, any architecture, the kernel or a later one;
 * and none of what excludes it. */
static bool
applies(const struct resolve *r, json_t *entry)
{
	json_t *in = json_object_get(entry, "includes");
	json_t *out = json_object_get(entry, "excludes");
	json_t *caps = json_object_get(in, "caps");
	json_t *arch = json_object_get(in, "arches");
	const char *kernel = json_string_value(json_object_get(in, "minKernel"));
	unsigned v[2];
	if (caps_held(r, caps) < json_array_size(caps))
		return false;
	if (json_array_size(arch) && !has(arch, r->arch))
		return false;
	if (kernel && kn_profile_version(kernel, v) &&
	    (r->kernel[0] < v[0] || (r->kernel[0] == v[0] && r->kernel[1] < v[1])))
		return false;
	return caps_held(r, json_object_get(out, "caps")) == 0 &&
	       !has(json_object_get(out, "arches"), r->arch);
}

/* ---- architectures ---- */

static bool
is_arch_word(const char *s)
{
	const struct kn_key *k = kn_policy_key("/seccomp/architectures/*");
	for (size_t i = 0; k->words[i]; i++)
		if (strcmp(k->words[i], s) == 0)
			return true;
	return false;
}

static int
add_arch(struct resolve *r, json_t *to, const char *s, struct kn_err *e)
{
	if (!is_arch_word(s))
		return note(r, e,
		    "an architecture that is not covered here: its calls are refused",
		    s);
	return has(to, s) || json_array_append_new(to, json_string(s)) == 0
		   ? 0
		   : kn_err_set(e, KN_EK_HOST, "policy: out of memory");
}

/* Those of this machine's line of the map, or the list. */
static json_t *
arch_list(struct resolve *r, struct kn_err *e)
{
	json_t *to = json_array(), *map = json_object_get(r->in, "archMap");
	json_t *list = json_object_get(r->in, "architectures");
	int rc = to ? 0 : -1;
	for (size_t i = 0; i < json_array_size(list) && rc == 0; i++)
		rc = add_arch(r, to, json_string_value(json_array_get(list, i)), e);
	for (size_t i = 0; i < json_array_size(map) && rc == 0; i++) {
		json_t *m = json_array_get(map, i);
		json_t *sub = json_object_get(m, "subArchitectures");
		const char *main =
		    json_string_value(json_object_get(m, "architecture"));
		if (strcmp(main, r->scmp) != 0)
			continue;
		rc = add_arch(r, to, main, e);
		for (size_t j = 0; j < json_array_size(sub) && rc == 0; j++)
			rc = add_arch(
			    r, to, json_string_value(json_array_get(sub, j)), e);
	}
	if (rc == 0)
		return to;
	json_decref(to);
	return NULL;
}

/* ---- entries ---- */

static int
add_name(struct resolve *r, json_t *to, const char *name, struct kn_err *e)
{
	if (kn_filter_check_call(name, NULL) < 0)
		return note(r, e, "an unknown system call, not allowed", name);
	return json_array_append_new(to, json_string(name)) == 0
		   ? 0
		   : kn_err_set(e, KN_EK_HOST, "policy: out of memory");
}

static json_t *
name_list(struct resolve *r, json_t *entry, struct kn_err *e)
{
	json_t *to = json_array(), *names = json_object_get(entry, "names");
	const char *single = json_string_value(json_object_get(entry, "name"));
	int rc = to ? 0 : -1;
	if (single && rc == 0)
		rc = add_name(r, to, single, e);
	for (size_t i = 0; i < json_array_size(names) && rc == 0; i++)
		rc = add_name(r, to, json_string_value(json_array_get(names, i)), e);
	if (rc == 0)
		return to;
	json_decref(to);
	return NULL;
}

/* 0: none is said, which for SCMP_ACT_ERRNO means EPERM. */
static int
errno_of(json_t *o, const char *number, const char *name)
{
	const char *s = json_string_value(json_object_get(o, name));
	json_int_t n = json_integer_value(json_object_get(o, number));
	return s ? kn_profile_errno(s) : (int)n;
}

static int
add_entry(struct resolve *r, json_t *to, json_t *entry, struct kn_err *e)
{
	json_t *args = json_object_get(entry, "args");
	json_t *names = name_list(r, entry, e);
	int n = errno_of(entry, "errnoRet", "errno");
	if (!names)
		return -1;
	if (json_array_size(names) == 0) {
		json_decref(names);
		return 0;
	}
	json_t *o = json_pack(
	    "{s:o,s:O}", "names", names, "action", json_object_get(entry, "action"));
	if (o && n)
		json_object_set_new(o, "errnoRet", json_integer(n));
	if (o && json_array_size(args))
		json_object_set(o, "args", args);
	return json_array_append_new(to, o) == 0
		   ? 0
		   : kn_err_set(e, KN_EK_HOST, "policy: out of memory");
}

/* The profile that is left, in the same format. */
static json_t *
resolve(struct resolve *r, struct kn_err *e)
{
	json_t *list = json_object_get(r->in, "syscalls"), *calls = json_array();
	json_t *archs = arch_list(r, e);
	int n = errno_of(r->in, "defaultErrnoRet", "defaultErrno");
	int rc = archs && calls ? 0 : -1;
	for (size_t i = 0; i < json_array_size(list) && rc == 0; i++)
		if (applies(r, json_array_get(list, i)))
			rc = add_entry(r, calls, json_array_get(list, i), e);
	json_t *o = rc == 0 ? json_pack("{s:O,s:O,s:O}", "defaultAction",
				  json_object_get(r->in, "defaultAction"),
				  "architectures", archs, "syscalls", calls)
			    : NULL;
	json_decref(archs);
	json_decref(calls);
	if (o && n)
		json_object_set_new(o, "defaultErrnoRet", json_integer(n));
	if (!o && e && e->kind == KN_EK_NONE)
		kn_err_set(e, KN_EK_HOST, "policy: out of memory");
	return o;
}

/* ---- into the policy ---- */

int
kn_policy_build_profile(struct kn_pol *p, struct kn_err *e)
{
	struct kn_policy *q = &p->pub;
	json_t *seccomp = json_object_get(p->doc, "seccomp");
	json_t *in = json_object_get(seccomp, "profile");
	struct resolve r = { .p = p, .in = in };
	if (!json_is_object(in))
		return 0;
	this_machine(&r);
	r.caps = json_object_get(p->doc, "capabilities");
	json_t *o = resolve(&r, e);
	if (!o || json_object_set_new(seccomp, "profile", o) < 0)
		return -1;
	q->seccomp.notes = r.notes;
	q->seccomp.note_n = r.note_n;
	q->seccomp.profiled = true;
	/* What our own document says of unlisted calls stands above the profile. */
	if (!kn_policy_named(q, "/seccomp/default/action") &&
	    !kn_policy_named(q, "/seccomp/default/errnoRet")) {
		const char *word =
		    json_string_value(json_object_get(o, "defaultAction"));
		int n = errno_of(o, "defaultErrnoRet", "");
		q->seccomp.unlisted = kn_policy_action(word);
		q->seccomp.unlisted_errno = n ? (unsigned)n : 1;
	}
	return 0;
}
