/* sandbox/filter_decide.c: what the lists of decisions of a policy say about one call:
 * the first entry whose conditions all hold.
 */
#include <errno.h>
#include <linux/audit.h>
#include <linux/seccomp.h>

#include "sandbox/filter_int.h"

/* Calls that came after a profile was written: refused as by an older kernel, so that
 * libc falls back, as container runtimes do. A profile that allows the unlisted says so
 * of them too. */
struct kn_fentry
kn_ftable_beyond(const struct kn_ftable *t)
{
	bool strict =
	    t->unlisted != SECCOMP_RET_ALLOW && t->unlisted != SECCOMP_RET_LOG;
	if (t->newer == UINT32_MAX || !strict)
		return (struct kn_fentry){ .ret = t->unlisted };
	return (struct kn_fentry){ .ret = SECCOMP_RET_ERRNO | ENOSYS,
		.who = KN_FWHO_NEWER };
}

bool
kn_fcall_is_plain_allow(const struct kn_fcall *c)
{
	for (size_t i = 0; i < c->n; i++)
		if (c->v[i].ret != SECCOMP_RET_ALLOW)
			return false;
	return true;
}

static bool
holds(const struct kn_farg *a, uint64_t v)
{
	uint64_t x = a->value, y = a->value_two;
	if (a->narrow) {
		v = (uint32_t)v;
		x = (uint32_t)x;
		y = (uint32_t)y;
	}
	switch (a->op) {
	case KN_CMP_NE:
		return v != x;
	case KN_CMP_LT:
		return v < x;
	case KN_CMP_LE:
		return v <= x;
	case KN_CMP_EQ:
		return v == x;
	case KN_CMP_GE:
		return v >= x;
	case KN_CMP_GT:
		return v > x;
	case KN_CMP_MASKED_EQ:
	default:
		return (v & x) == y;
	}
}

struct kn_fentry
kn_ftable_find(
    const struct kn_ftable *t, uint32_t arch, uint32_t nr, const uint64_t args[6])
{
	const struct kn_fentry none = { .ret = SECCOMP_RET_ERRNO | ENOSYS,
		.who = KN_FWHO_ABI };
	if (arch == AUDIT_ARCH_I386 && arch != t->arch && t->other[KN_ABI_I386])
		t = t->other[KN_ABI_I386];
	if (arch != t->arch)
		return (struct kn_fentry){ .ret = SECCOMP_RET_KILL_PROCESS,
			.who = KN_FWHO_ABI };
	if (t->abi == KN_ABI_NATIVE && nr >= KN_NR_X32) {
		/* x32: the same calls by other numbers. And -1, which a tracer leaves.
		 */
		if (!t->other[KN_ABI_X32] || nr >= KN_NR_X32 + KN_NR_MAX)
			return none;
		t = t->other[KN_ABI_X32];
		nr -= KN_NR_X32;
	}
	if (nr >= KN_NR_MAX)
		return kn_ftable_beyond(t);
	const struct kn_fcall *c = &t->calls[nr];
	for (size_t i = 0; i < c->n; i++) {
		bool all = true;
		for (size_t j = 0; j < c->v[i].arg_n && all; j++)
			all = holds(&c->v[i].args[j], args[c->v[i].args[j].index]);
		if (all)
			return c->v[i];
	}
	return (struct kn_fentry){ .ret = t->unlisted };
}

uint32_t
kn_ftable_decide(
    const struct kn_ftable *t, uint32_t arch, uint32_t nr, const uint64_t args[6])
{
	return kn_ftable_find(t, arch, nr, args).ret;
}
