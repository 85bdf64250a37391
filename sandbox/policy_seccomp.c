/* sandbox/policy_seccomp.c: the seccomp part of the merged document: groups, rules, the
 * architectures they cover, and a foreign profile in place of the groups.
 */
#include <stdio.h>
#include <string.h>

#include "sandbox/policy_int.h"

enum kn_seccomp_action
kn_policy_action(const char *word)
{
	const struct kn_key *k = kn_policy_key("/seccomp/rules/*/action");
	unsigned i = 0;
	while (k->words[i] && strcmp(k->words[i], word) != 0)
		i++;
	return (enum kn_seccomp_action)i;
}

static int
build_args(struct kn_pol *p, json_t *list, struct kn_seccomp_rule *r, struct kn_err *e)
{
	size_t n = json_array_size(list);
	struct kn_seccomp_arg *a = kn_pmem_new(&p->mem, n * sizeof *a, e);
	if (!a)
		return -1;
	const struct kn_key *op = kn_policy_key("/seccomp/rules/*/args/*/op");
	for (size_t i = 0; i < n; i++) {
		json_t *v = json_array_get(list, i);
		const char *word = json_string_value(json_object_get(v, "op"));
		a[i].index = (unsigned)json_integer_value(json_object_get(v, "index"));
		a[i].value = (uint64_t)json_integer_value(json_object_get(v, "value"));
		a[i].value_two =
		    (uint64_t)json_integer_value(json_object_get(v, "valueTwo"));
		while (strcmp(op->words[a[i].op], word) != 0)
			a[i].op++;
	}
	r->args = a;
	r->arg_n = n;
	return 0;
}

/* One rule, or entry of a profile: they have the same members. */
static int
build_rule(struct kn_pol *p, const char *at, const char *origin,
    struct kn_seccomp_rule *out, struct kn_err *e)
{
	char names[80];
	json_t *r = kn_pointer_get(p->doc, at);
	json_t *ret = json_object_get(r, "errnoRet");
	const char *why = json_string_value(json_object_get(r, "why"));
	out->action = kn_policy_action(json_string_value(json_object_get(r, "action")));
	out->errno_ret = json_is_integer(ret) ? (unsigned)json_integer_value(ret) : 1;
	snprintf(names, sizeof names, "%s/names", at);
	if (kn_policy_build_strings(p, names, &out->names, &out->name_n, e) < 0 ||
	    build_args(p, json_object_get(r, "args"), out, e) < 0)
		return -1;
	out->why = kn_pmem_dup(&p->mem, why ? why : "", why ? strlen(why) : 0, e);
	out->origin = kn_pmem_dup(&p->mem, origin, strlen(origin), e);
	return out->why && out->origin ? 0 : -1;
}

static int
build_list(struct kn_pol *p, const char *pointer, const struct kn_seccomp_rule **out,
    size_t *out_n, struct kn_err *e)
{
	size_t n = json_array_size(kn_pointer_get(p->doc, pointer));
	struct kn_seccomp_rule *v = kn_pmem_new(&p->mem, n * sizeof *v, e);
	const char *profile = kn_pol_origin(p, "/seccomp/profile");
	bool foreign = strcmp(pointer, "/seccomp/rules") != 0;
	if (!v)
		return -1;
	for (size_t i = 0; i < n; i++) {
		char at[64];
		snprintf(at, sizeof at, "%s/%zu", pointer, i);
		if (build_rule(
			p, at, foreign ? profile : kn_pol_origin(p, at), &v[i], e) < 0)
			return -1;
	}
	*out = v;
	*out_n = n;
	return 0;
}

/* Architectures of the document and, with a profile, of that one. */
static uint32_t
abis(const struct kn_pol *p)
{
	static const char *const lists[] = { "/seccomp/architectures",
		"/seccomp/profile/architectures" };
	uint32_t bits = 1u << KN_ABI_NATIVE;
	for (size_t l = 0; l < 2; l++) {
		json_t *a = kn_pointer_get(p->doc, lists[l]);
		for (size_t i = 0; i < json_array_size(a); i++) {
			const char *s = json_string_value(json_array_get(a, i));
			if (strcmp(s, "SCMP_ARCH_X86") == 0)
				bits |= 1u << KN_ABI_I386;
			else if (strcmp(s, "SCMP_ARCH_X32") == 0)
				bits |= 1u << KN_ABI_X32;
		}
	}
	return bits;
}

int
kn_policy_build_seccomp(struct kn_pol *p, struct kn_err *e)
{
	struct kn_policy *q = &p->pub;
	if (kn_policy_build_profile(p, e) < 0)
		return -1;
	q->seccomp.abis = abis(p);
	if (build_list(p, "/seccomp/rules", &q->seccomp.rules, &q->seccomp.rule_n, e) <
	    0)
		return -1;
	if (q->seccomp.profiled &&
	    build_list(p, "/seccomp/profile/syscalls", &q->seccomp.profile,
		&q->seccomp.profile_n, e) < 0)
		return -1;
	return kn_policy_build_strings(
	    p, "/seccomp/groups/replace", &q->seccomp.groups, &q->seccomp.group_n, e);
}
