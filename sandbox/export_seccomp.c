/* sandbox/export_seccomp.c: the system calls of a policy as an OCI profile, which
 * Docker takes as well. Calls by the numbers of another architecture are libseccomp's
 * to kill: the profile names the machine's own and no other.
 */
#include <linux/seccomp.h>
#include <string.h>

#include "sandbox/export_int.h"
#include "sandbox/filter.h"

struct profile {
	json_t *calls,
	    *plain; /* plain: answer -> the list of names without conditions */
};

static const char *
action_of(uint32_t ret)
{
	switch (ret & SECCOMP_RET_ACTION_FULL) {
	case SECCOMP_RET_ALLOW:
		return "SCMP_ACT_ALLOW";
	case SECCOMP_RET_LOG:
		return "SCMP_ACT_LOG";
	case SECCOMP_RET_ERRNO:
		return "SCMP_ACT_ERRNO";
	case SECCOMP_RET_TRAP:
		return "SCMP_ACT_TRAP";
	case SECCOMP_RET_KILL_THREAD:
		return "SCMP_ACT_KILL_THREAD";
	default:
		return "SCMP_ACT_KILL_PROCESS";
	}
}

/* Takes names. */
static json_t *
entry(json_t *names, uint32_t ret)
{
	json_t *o = json_pack("{s:o,s:s}", "names", names, "action", action_of(ret));

	if (o && (ret & SECCOMP_RET_ACTION_FULL) == SECCOMP_RET_ERRNO)
		json_object_set_new(
		    o, "errnoRet", json_integer(ret & SECCOMP_RET_DATA));
	return o;
}

static json_t *
condition(int index, const struct kn_fcube *c)
{
	if (c->mask == UINT64_MAX)
		return json_pack("{s:i,s:I,s:s}", "index", index, "value",
		    (json_int_t)c->value, "op", "SCMP_CMP_EQ");
	return json_pack("{s:i,s:I,s:I,s:s}", "index", index, "value",
	    (json_int_t)c->mask, "valueTwo", (json_int_t)c->value, "op",
	    "SCMP_CMP_MASKED_EQ");
}

static int
add(void *ctx, const struct kn_frule *r)
{
	struct profile *p = ctx;
	json_t *args = NULL, *o;

	for (int i = 0; i < 6; i++) {
		if (!r->arg[i].mask)
			continue;
		if (!args)
			args = json_array();
		if (json_array_append_new(args, condition(i, &r->arg[i])) < 0)
			return -1;
	}
	if (!args) {
		char key[16];
		json_t *names;

		snprintf(key, sizeof key, "%x", r->ret);
		names = json_object_get(p->plain, key);
		if (names)
			return json_array_append_new(names, json_string(r->name));
		names = json_pack("[s]", r->name);
		if (json_object_set_new(p->plain, key, names) < 0)
			return -1;
		json_incref(names);
		return json_array_append_new(p->calls, entry(names, r->ret));
	}
	o = entry(json_pack("[s]", r->name), r->ret);
	if (!o || json_object_set_new(o, "args", args) < 0)
		return -1;
	return json_array_append_new(p->calls, o);
}

json_t *
kn_export_profile(const struct kn_policy *p, struct kn_err *e)
{
	struct profile s = { json_array(), json_object() };
	const char *machine, *docker;
	uint32_t unlisted = 0;
	json_t *o = NULL;

	kn_filter_machine(&machine, &docker);
	if (!s.calls || !s.plain)
		kn_err_set(e, KN_EK_HOST, "export: out of memory");
	else if (kn_filter_rules(p, &unlisted, add, &s, e) == 0)
		o = json_pack("{s:s,s:[s],s:O}", "defaultAction", action_of(unlisted),
		    "architectures", machine, "syscalls", s.calls);
	if (o && (unlisted & SECCOMP_RET_ACTION_FULL) == SECCOMP_RET_ERRNO)
		json_object_set_new(
		    o, "defaultErrnoRet", json_integer(unlisted & SECCOMP_RET_DATA));
	json_decref(s.calls);
	json_decref(s.plain);
	return o;
}
