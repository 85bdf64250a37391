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

bool
kn_farg_holds(const struct kn_farg *a, uint64_t v)
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

bool
kn_fentry_holds(const struct kn_fentry *f, const uint64_t args[6])
{
	for (size_t j = 0; j < f->arg_n; j++)
		if (!kn_farg_holds(&f->args[j], args[f->args[j].index]))
			return false;
	return true;
}

/* The table that has the calls of this architecture; NULL: they kill. */
static const struct kn_ftable *
of_arch(const struct kn_ftable *t, uint32_t arch)
{
	if (arch == AUDIT_ARCH_I386 && arch != t->arch && t->other[KN_ABI_I386])
		return t->other[KN_ABI_I386];
	return arch == t->arch ? t : NULL;
}

const struct kn_fcall *
kn_ftable_list(const struct kn_ftable *t, uint32_t arch, uint32_t nr)
{
	t = of_arch(t, arch);
	if (t && t->abi == KN_ABI_NATIVE && nr >= KN_NR_X32) {
		t = t->other[KN_ABI_X32];
		nr -= KN_NR_X32;
	}
	return t && nr < KN_NR_MAX ? &t->calls[nr] : NULL;
}

struct kn_fentry
kn_ftable_find(
    const struct kn_ftable *t, uint32_t arch, uint32_t nr, const uint64_t args[6])
{
	const struct kn_fcall *c = kn_ftable_list(t, arch, nr);
	t = of_arch(t, arch);
	if (!t)
		return (struct kn_fentry){ .ret = SECCOMP_RET_KILL_PROCESS,
			.who = KN_FWHO_ABI };
	/* x32: the same calls by other numbers. And -1, which a tracer leaves. */
	if (!c && t->abi == KN_ABI_NATIVE && nr >= KN_NR_X32)
		return (struct kn_fentry){ .ret = SECCOMP_RET_ERRNO | ENOSYS,
			.who = KN_FWHO_ABI };
	if (!c)
		return kn_ftable_beyond(t);
	for (size_t i = 0; i < c->n; i++)
		if (kn_fentry_holds(&c->v[i], args))
			return c->v[i];
	return (struct kn_fentry){ .ret = t->unlisted };
}

uint32_t
kn_ftable_decide(
    const struct kn_ftable *t, uint32_t arch, uint32_t nr, const uint64_t args[6])
{
	return kn_ftable_find(t, arch, nr, args).ret;
}
