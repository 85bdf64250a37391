/* sandbox/filter_table.c: a policy -> for each system call an ordered list of
 * decisions.
 *
 * Order: what kind module never has; the policy's rules, the last one first; then the
 * guards; then whether a group allows the call; then what happens to calls that nothing
 * names. The first entry whose conditions all hold decides. The same lists make the
 * programs and answer what a policy says about one call, so the two can be compared.
 */
#include <errno.h>
#include <linux/seccomp.h>
#include <seccomp.h>
#include <stdlib.h>
#include <string.h>

#include "ipc/err.h"
#include "sandbox/filter_int.h"

static uint32_t
ret_of(enum kn_seccomp_action action, unsigned errno_ret)
{
	switch (action) {
	case KN_SC_ALLOW:
		return SECCOMP_RET_ALLOW;
	case KN_SC_LOG:
		return SECCOMP_RET_LOG;
	case KN_SC_ERRNO:
		return SECCOMP_RET_ERRNO | (errno_ret & SECCOMP_RET_DATA);
	case KN_SC_KILL:
	default:
		return SECCOMP_RET_KILL_PROCESS;
	}
}

/* After an entry without conditions nothing can be reached. */
static bool
is_closed(const struct kn_fcall *c)
{
	return c->n && c->v[c->n - 1].arg_n == 0;
}

static int
append(struct kn_ftable *t, const char *name, const struct kn_seccomp_arg *args,
    size_t arg_n, uint32_t ret, struct kn_err *e)
{
	int nr = kn_filter_nr(name);
	if (nr == KN_NR_UNKNOWN)
		return kn_err_set(e, KN_EK_BUG, "seccomp: no call is named %s", name);
	if (nr < 0 || is_closed(&t->calls[nr]))
		return 0;
	struct kn_fcall *c = &t->calls[nr];
	if (c->n == c->cap) {
		size_t cap = c->cap ? c->cap * 2 : 4;
		struct kn_fentry *v = realloc(c->v, cap * sizeof *v);
		if (!v)
			return kn_err_set(e, KN_EK_HOST, "seccomp: out of memory");
		c->v = v;
		c->cap = cap;
	}
	struct kn_fentry *f = &c->v[c->n];
	*f = (struct kn_fentry){ .arg_n = arg_n, .ret = ret };
	if (arg_n > sizeof f->args / sizeof *f->args)
		return kn_err_set(e, KN_EK_CONFIG,
		    "seccomp: a rule for %s has more than 6 conditions", name);
	for (size_t i = 0; i < arg_n; i++) {
		bool is_32 = kn_filter_arg_is_32(name, args[i].index);
		f->args[i] = (struct kn_farg){ args[i].index, args[i].op, is_32,
			args[i].value, args[i].value_two };
	}
	c->n++;
	return 0;
}

static int
add_rules(struct kn_ftable *t, const struct kn_policy *p, struct kn_err *e)
{
	const char *const *never = kn_filter_module_never;
	if (p->pool.kind == KN_KIND_MODULE)
		for (; *never; never++)
			if (append(t, *never, NULL, 0, ret_of(KN_SC_ERRNO, EPERM), e) <
			    0)
				return -1;
	for (size_t i = p->seccomp.rule_n; i-- > 0;) {
		const struct kn_seccomp_rule *r = &p->seccomp.rules[i];
		uint32_t ret = ret_of(r->action, r->errno_ret);
		for (size_t j = 0; j < r->name_n; j++)
			if (append(t, r->names[j], r->args, r->arg_n, ret, e) < 0)
				return -1;
	}
	for (int nr = 0; nr < KN_NR_MAX; nr++)
		t->calls[nr].ruled = t->calls[nr].n > 0;
	return 0;
}

static int
add_guards(struct kn_ftable *t, const struct kn_policy *p, const bool *grouped,
    bool watched, struct kn_err *e)
{
	for (size_t i = 0; i < kn_filter_guard_n; i++) {
		const struct kn_guard *g = &kn_filter_guards[i];
		if ((g->when == KN_GUARD_NET_NONE && p->network != KN_NET_NONE) ||
		    (g->when == KN_GUARD_NET_HOST && p->network != KN_NET_HOST) ||
		    (g->when == KN_GUARD_WATCHED && !watched))
			continue;
		for (size_t j = 0; g->names[j]; j++) {
			int nr = kn_filter_nr(g->names[j]);
			uint32_t pass =
			    nr >= 0 && grouped[nr] ? SECCOMP_RET_ALLOW : t->unlisted;
			uint32_t ret =
			    g->errno_ret ? ret_of(KN_SC_ERRNO, g->errno_ret) : pass;
			if (append(t, g->names[j], g->args, g->arg_n, ret, e) < 0)
				return -1;
		}
	}
	return 0;
}

static const char *const *
group_calls(const char *name)
{
	for (size_t i = 0; i < kn_filter_group_n; i++)
		if (strcmp(kn_filter_groups[i].name, name) == 0)
			return kn_filter_groups[i].calls;
	return NULL;
}

static int
mark_calls(const char *const *calls, const char *group, bool *grouped, struct kn_err *e)
{
	for (; *calls; calls++) {
		int nr = kn_filter_nr(*calls);
		if (nr == KN_NR_UNKNOWN)
			return kn_err_set(e, KN_EK_BUG,
			    "seccomp: group %s: no call is named %s", group, *calls);
		if (nr >= 0)
			grouped[nr] = true;
	}
	return 0;
}

static int
mark_groups(const struct kn_policy *p, bool *grouped, struct kn_err *e)
{
	if (p->pool.kind == KN_KIND_MODULE &&
	    mark_calls(kn_filter_module_needs, "of modules", grouped, e) < 0)
		return -1;
	for (size_t i = 0; i < p->seccomp.group_n; i++) {
		const char *const *calls = group_calls(p->seccomp.groups[i]);
		if (!calls)
			return kn_filter_check_group(p->seccomp.groups[i], e);
		if (mark_calls(calls, p->seccomp.groups[i], grouped, e) < 0)
			return -1;
	}
	return 0;
}

/* Lists end in an entry without conditions, so that reading one needs no default. */
static int
close_lists(struct kn_ftable *t, const bool *grouped, struct kn_err *e)
{
	for (int nr = 0; nr < KN_NR_MAX; nr++) {
		struct kn_fcall *c = &t->calls[nr];
		if (is_closed(c))
			continue;
		struct kn_fentry *v = realloc(c->v, (c->n + 1) * sizeof *v);
		if (!v)
			return kn_err_set(e, KN_EK_HOST, "seccomp: out of memory");
		c->v = v;
		c->cap = c->n + 1;
		c->v[c->n++] = (struct kn_fentry){
			.ret = grouped[nr] ? SECCOMP_RET_ALLOW : t->unlisted,
		};
	}
	return 0;
}

int
kn_ftable_init(
    struct kn_ftable *t, const struct kn_policy *p, bool watched, struct kn_err *e)
{
	bool grouped[KN_NR_MAX] = { 0 };
	memset(t, 0, sizeof *t);
	/* libseccomp's mark of an architecture is the kernel's AUDIT_ARCH value. */
	t->arch = seccomp_arch_native();
	t->unlisted = ret_of(p->seccomp.unlisted, p->seccomp.unlisted_errno);
	if (mark_groups(p, grouped, e) < 0 || add_rules(t, p, e) < 0 ||
	    add_guards(t, p, grouped, watched, e) < 0 ||
	    close_lists(t, grouped, e) < 0) {
		kn_ftable_fini(t);
		return -1;
	}
	return 0;
}

void
kn_ftable_fini(struct kn_ftable *t)
{
	for (int nr = 0; nr < KN_NR_MAX; nr++)
		free(t->calls[nr].v);
	memset(t, 0, sizeof *t);
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

uint32_t
kn_ftable_decide(
    const struct kn_ftable *t, uint32_t arch, uint32_t nr, const uint64_t args[6])
{
	if (arch != t->arch)
		return SECCOMP_RET_KILL_PROCESS;
	/* x32: the same calls by other numbers. And -1, which a tracer leaves. */
	if (nr >= 0x40000000)
		return SECCOMP_RET_ERRNO | ENOSYS;
	if (nr >= KN_NR_MAX)
		return t->unlisted;
	const struct kn_fcall *c = &t->calls[nr];
	for (size_t i = 0; i < c->n; i++) {
		bool all = true;
		for (size_t j = 0; j < c->v[i].arg_n && all; j++)
			all = holds(&c->v[i].args[j], args[c->v[i].args[j].index]);
		if (all)
			return c->v[i].ret;
	}
	return t->unlisted;
}
