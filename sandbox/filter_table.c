/* sandbox/filter_table.c: a policy -> for each system call an ordered list of
 * decisions, by the numbers of each ABI that the policy covers.
 *
 * Order: what is never allowed (kind module, permissions.run, launcher direct); the
 * policy's rules, the last one first; then the guards; then the base: what a foreign
 * profile says, or whether a group allows the call; then what happens to calls that
 * nothing names. The first entry whose conditions all hold decides. The same lists make
 * the programs and answer what a policy says about one call, so the two can be
 * compared.
 */
#include <errno.h>
#include <linux/seccomp.h>
#include <stdlib.h>
#include <string.h>

#include "ipc/err.h"
#include "sandbox/filter_int.h"

uint32_t
kn_filter_ret(enum kn_seccomp_action action, unsigned errno_ret)
{
	switch (action) {
	case KN_SC_ALLOW:
		return SECCOMP_RET_ALLOW;
	case KN_SC_LOG:
		return SECCOMP_RET_LOG;
	case KN_SC_ERRNO:
		return SECCOMP_RET_ERRNO | (errno_ret & SECCOMP_RET_DATA);
	case KN_SC_TRAP:
		return SECCOMP_RET_TRAP;
	case KN_SC_KILL_THREAD:
		return SECCOMP_RET_KILL_THREAD;
	case KN_SC_KILL:
	case KN_SC_KILL_OLD:
	default:
		return SECCOMP_RET_KILL_PROCESS;
	}
}

/* A table in the making. */
struct make {
	struct kn_ftable *t;
	const struct kn_policy *p;
	/* Per number: what is under the rules, and what is under the guards; closed
	 * lists. */
	struct kn_fcall *below, *base;
	bool guarded; /* what is appended (struct kn_fentry) */
	struct kn_err *e;
};

/* What is appended, to whom. */
struct verdict {
	uint32_t ret;
	enum kn_fwho who;
	size_t at;
};

/* An i386 process has no upper halves: a negative number that is compared with is one
 * of 32 bits there. */
static bool
is_narrow(const struct kn_ftable *t, const char *name, const struct kn_seccomp_arg *a)
{
	return kn_filter_arg_is_32(name, a->index) ||
	       (t->abi == KN_ABI_I386 && (int64_t)a->value < 0);
}

static int
entry(struct kn_fentry *f, const struct kn_ftable *t, const char *name,
    const struct kn_seccomp_arg *args, size_t arg_n, struct verdict v, struct kn_err *e)
{
	*f = (struct kn_fentry){
		.arg_n = arg_n, .ret = v.ret, .who = v.who, .at = (uint32_t)v.at
	};
	if (arg_n > 6)
		return kn_err_set(e, KN_EK_CONFIG,
		    "seccomp: a rule for %s has more than 6 conditions", name);
	for (size_t i = 0; i < arg_n; i++)
		f->args[i] = (struct kn_farg){ args[i].index, args[i].op,
			is_narrow(t, name, &args[i]), args[i].value,
			args[i].value_two };
	return 0;
}

static int
append(struct make *m, struct kn_fcall *lists, const char *name,
    const struct kn_seccomp_arg *args, size_t arg_n, struct verdict v)
{
	struct kn_fentry f;
	int nr = kn_filter_nr_of(m->t->abi, name);
	if (nr == KN_NR_UNKNOWN)
		return kn_err_set(
		    m->e, KN_EK_BUG, "seccomp: no call is named %s", name);
	if (nr < 0)
		return 0;
	if (entry(&f, m->t, name, args, arg_n, v, m->e) < 0)
		return -1;
	f.guarded = m->guarded;
	return kn_fcall_push(&lists[nr], &f, m->e);
}

/* All numbers that have a name. */
static int
append_known(struct make *m, struct kn_fcall *lists, const struct kn_seccomp_arg *args,
    size_t arg_n, struct verdict v)
{
	int rc = 0;
	for (uint32_t nr = 0; nr < KN_NR_MAX && rc == 0; nr++) {
		char *name = kn_filter_name_of(m->t->abi, nr);
		if (name)
			rc = append(m, lists, name, args, arg_n, v);
		free(name);
	}
	return rc;
}

/* A rule of ours is about the call, by whatever names an ABI has it, or about all calls
 * of a group. */
static int
append_all(
    struct make *m, const char *name, const struct kn_seccomp_rule *r, struct verdict v)
{
	char room[64];
	const char *other;
	if (strcmp(name, "*") == 0)
		return append_known(m, m->t->calls, r->args, r->arg_n, v);
	if (*name == '@') {
		const char *const *c = kn_filter_group(name)->calls;
		int rc = 0;
		for (; *c && rc == 0; c++)
			rc = append_all(m, *c, r, v);
		return rc;
	}
	if (append(m, m->t->calls, name, r->args, r->arg_n, v) < 0)
		return -1;
	for (unsigned i = 0; (other = kn_filter_other_name(m->t->abi, name, i, room));
	     i++)
		if (kn_filter_nr_of(m->t->abi, other) >= 0 &&
		    append(m, m->t->calls, other, r->args, r->arg_n, v) < 0)
			return -1;
	return 0;
}

/* permissions.run. Of an empty list: nothing is executed. The stub starts a task by a
 * number that only it knows (struct kn_filter, exec_key). Of another: Landlock, which
 * keeps it, does not see memory files, so they are made without the right to be
 * executed, which is for good, or not at all. */
static int
never_run(struct make *m)
{
	const struct verdict no = { kn_filter_ret(KN_SC_ERRNO, EACCES), KN_FWHO_NEVER,
		KN_FNEVER_RUN };
	static const struct kn_seccomp_arg executable = { 1, KN_CMP_MASKED_EQ,
		8 /* MFD_NOEXEC_SEAL */, 0 };

	if (!m->p->run.set)
		return 0;
	if (m->p->run.n > 0)
		return append(m, m->t->calls, "memfd_create", &executable, 1, no);
	if (append(m, m->t->calls, "execve", NULL, 0, no) < 0)
		return -1;
	return append(m, m->t->calls, "execveat", NULL, 0, no);
}

static int
never_direct(struct make *m)
{
	for (size_t i = 0; i < kn_filter_direct_never_n; i++) {
		const struct kn_guard *g = &kn_filter_direct_never[i];
		const struct verdict no = { kn_filter_ret(KN_SC_ERRNO, g->errno_ret),
			KN_FWHO_NEVER, KN_FNEVER_DIRECT };
		for (size_t j = 0; g->names[j]; j++)
			if (append(m, m->t->calls, g->names[j], g->args, g->arg_n, no) <
			    0)
				return -1;
	}
	return 0;
}

static int
add_never(struct make *m)
{
	const char *const *never = kn_filter_module_never;
	const struct verdict no = { kn_filter_ret(KN_SC_ERRNO, EPERM), KN_FWHO_NEVER,
		KN_FNEVER_MODULE };

	if (m->p->pool.kind == KN_KIND_MODULE)
		for (; *never; never++)
			if (append(m, m->t->calls, *never, NULL, 0, no) < 0)
				return -1;
	if (m->p->launcher == KN_LAUNCHER_DIRECT && never_direct(m) < 0)
		return -1;
	return never_run(m);
}

/* Who allows a group has its calls in mind, not each that is made in an unusual form;
 * but of some groups there is nothing else. */
static bool
keeps_guards(const struct kn_seccomp_rule *r, const char *name)
{
	return *name == '@' && (r->action == KN_SC_ALLOW || r->action == KN_SC_LOG) &&
	       kn_filter_check_group_allows(name, NULL) == 0;
}

static int
add_rules(struct make *m)
{
	const struct kn_policy *p = m->p;
	if (add_never(m) < 0)
		return -1;
	for (size_t i = p->seccomp.rule_n; i-- > 0;) {
		const struct kn_seccomp_rule *r = &p->seccomp.rules[i];
		struct verdict v = { kn_filter_ret(r->action, r->errno_ret),
			KN_FWHO_RULE, i };
		for (size_t j = 0; j < r->name_n; j++) {
			m->guarded = keeps_guards(r, r->names[j]);
			if (append_all(m, r->names[j], r, v) < 0)
				return -1;
		}
	}
	m->guarded = false;
	return 0;
}

/* Go on to the base, as far as the guard's conditions hold. */
static int
pass(struct make *m, int nr, const struct kn_fentry *guard)
{
	for (size_t i = 0; i < m->base[nr].n; i++) {
		struct kn_fentry f = m->base[nr].v[i];
		int rc = kn_fentry_narrow(&f, guard, m->e);
		if (rc < 0 || (rc > 0 && kn_fcall_push(&m->below[nr], &f, m->e) < 0))
			return -1;
	}
	return 0;
}

/* The first mmap() of i386 has its arguments in memory; its libraries call mmap2(). */
static bool
is_blind(const struct make *m, const char *name)
{
	return m->t->abi == KN_ABI_I386 && strcmp(name, "mmap") == 0;
}

static int
add_guard(struct make *m, const struct kn_guard *g)
{
	const struct verdict v = { kn_filter_ret(KN_SC_ERRNO, g->errno_ret),
		KN_FWHO_GUARD, (size_t)(g - kn_filter_guards) };
	for (size_t j = 0; g->names[j]; j++) {
		struct kn_fentry f;
		int nr = kn_filter_nr_of(m->t->abi, g->names[j]);
		if (nr < 0 || g->errno_ret) {
			if (append(m, m->below, g->names[j], g->args,
				is_blind(m, g->names[j]) ? 0 : g->arg_n, v) < 0)
				return -1;
			continue;
		}
		if (entry(&f, m->t, g->names[j], g->args, g->arg_n, v, m->e) < 0 ||
		    pass(m, nr, &f) < 0)
			return -1;
	}
	return 0;
}

static int
add_guards(struct make *m, bool watched)
{
	for (size_t i = 0; i < kn_filter_guard_n; i++) {
		const struct kn_guard *g = &kn_filter_guards[i];
		if (!kn_guard_applies(g, m->p, watched))
			continue;
		if (add_guard(m, g) < 0)
			return -1;
	}
	return 0;
}

/* ---- the base ---- */

static int
allow_all(struct make *m, const char *const *calls, enum kn_fwho who, size_t at)
{
	const struct verdict v = { SECCOMP_RET_ALLOW, who, at };
	for (; *calls; calls++) {
		int rc;
		if (**calls == '@')
			rc = allow_all(m, kn_filter_group(*calls)->calls, who, at);
		else if (strcmp(*calls, "*") == 0)
			rc = append_known(m, m->base, NULL, 0, v);
		else
			rc = append(m, m->base, *calls, NULL, 0, v);
		if (rc < 0)
			return -1;
	}
	return 0;
}

static int
base_of_groups(struct make *m)
{
	const struct kn_policy *p = m->p;
	for (size_t i = 0; i < p->seccomp.group_n; i++) {
		const struct kn_fgroup *g = kn_filter_group(p->seccomp.groups[i]);
		if (!g)
			return kn_filter_check_group(p->seccomp.groups[i], m->e);
		if (allow_all(m, g->calls, KN_FWHO_GROUP, i) < 0)
			return -1;
	}
	return 0;
}

/* Two conditions on one argument: no runtime can say that in one rule, and all make a
 * rule of each. */
static bool
names_twice(const struct kn_seccomp_rule *r)
{
	unsigned seen = 0;
	for (size_t i = 0; i < r->arg_n; i++) {
		if (seen >> r->args[i].index & 1)
			return true;
		seen |= 1u << r->args[i].index;
	}
	return false;
}

static int
base_of_entry(struct make *m, const struct kn_seccomp_rule *r, struct verdict v)
{
	bool split = names_twice(r);
	for (size_t i = 0; i < r->name_n; i++) {
		int nr = kn_filter_nr_of(m->t->abi, r->names[i]);
		if (nr >= 0 && (uint32_t)nr >= m->t->newer)
			m->t->newer = (uint32_t)nr + 1;
		for (size_t j = 0; j < (split ? r->arg_n : 1); j++)
			if (append(m, m->base, r->names[i], r->args + j,
				split ? 1 : r->arg_n, v) < 0)
				return -1;
	}
	return 0;
}

/* A profile's entries have no order: the strictest that matches decides, as the kernel
 * does among filters. One that only repeats the default says nothing. */
static int
base_of_profile(struct make *m)
{
	static const enum kn_seccomp_action strictest_first[] = { KN_SC_KILL,
		KN_SC_KILL_OLD, KN_SC_KILL_THREAD, KN_SC_TRAP, KN_SC_ERRNO, KN_SC_LOG,
		KN_SC_ALLOW };
	const struct kn_policy *p = m->p;
	enum { N = sizeof strictest_first / sizeof *strictest_first };
	m->t->newer = 0;
	for (size_t k = 0; k < N; k++)
		for (size_t i = 0; i < p->seccomp.profile_n; i++) {
			const struct kn_seccomp_rule *r = &p->seccomp.profile[i];
			struct verdict v = { kn_filter_ret(r->action, r->errno_ret),
				KN_FWHO_PROFILE, i };
			if (r->action == strictest_first[k] &&
			    v.ret != m->t->unlisted && base_of_entry(m, r, v) < 0)
				return -1;
		}
	return 0;
}

/* Lists end in an entry without conditions, so that reading one needs no default. */
static int
close_base(struct make *m)
{
	for (uint32_t nr = 0; nr < KN_NR_MAX; nr++) {
		struct kn_fentry f = { .ret = m->t->unlisted };
		if (nr >= m->t->newer)
			f = kn_ftable_beyond(m->t);
		if (kn_fcall_push(&m->base[nr], &f, m->e) < 0)
			return -1;
	}
	return 0;
}

static int
make_base(struct make *m)
{
	if (m->p->pool.kind == KN_KIND_MODULE &&
	    allow_all(m, kn_filter_module_needs, KN_FWHO_NEEDED, 0) < 0)
		return -1;
	if ((m->p->seccomp.profiled ? base_of_profile(m) : base_of_groups(m)) < 0)
		return -1;
	return close_base(m);
}

/* ---- tables ---- */

static void
drop(struct kn_fcall *lists)
{
	for (int nr = 0; nr < KN_NR_MAX && lists; nr++)
		free(lists[nr].v);
	free(lists);
}

static int
make_table(struct kn_ftable *t, const struct kn_policy *p, enum kn_abi abi,
    bool watched, struct kn_err *e)
{
	struct make m = { .t = t, .p = p, .e = e };
	memset(t, 0, sizeof *t);
	t->abi = abi;
	t->arch = kn_filter_abi_arch(abi);
	t->unlisted = kn_filter_ret(p->seccomp.unlisted, p->seccomp.unlisted_errno);
	t->newer = UINT32_MAX;
	m.base = calloc(KN_NR_MAX, sizeof *m.base);
	m.below = calloc(KN_NR_MAX, sizeof *m.below);
	int rc =
	    m.base && m.below ? 0 : kn_err_set(e, KN_EK_HOST, "seccomp: out of memory");
	if (rc == 0 &&
	    (make_base(&m) < 0 || add_rules(&m) < 0 || add_guards(&m, watched) < 0))
		rc = -1;
	for (int nr = 0; nr < KN_NR_MAX && rc == 0; nr++) {
		rc = pass(&m, nr, &(const struct kn_fentry){ 0 });
		if (rc == 0)
			rc = kn_fcall_join(&t->calls[nr], &m.below[nr], e);
	}
	int seccomp = kn_filter_nr_of(abi, "seccomp");
	if (seccomp >= 0)
		t->calls[seccomp].listens = true;
	drop(m.base);
	drop(m.below);
	return rc;
}

int
kn_ftable_init(
    struct kn_ftable *t, const struct kn_policy *p, bool watched, struct kn_err *e)
{
	int rc = make_table(t, p, KN_ABI_NATIVE, watched, e);
	for (enum kn_abi abi = KN_ABI_NATIVE + 1; abi < KN_ABI_N && rc == 0; abi++) {
		if (!(p->seccomp.abis >> abi & 1) || !kn_filter_abi_here(abi))
			continue;
		t->other[abi] = calloc(1, sizeof *t);
		rc = t->other[abi]
			 ? make_table(t->other[abi], p, abi, watched, e)
			 : kn_err_set(e, KN_EK_HOST, "seccomp: out of memory");
	}
	if (rc < 0)
		kn_ftable_fini(t);
	return rc;
}

void
kn_ftable_fini(struct kn_ftable *t)
{
	for (int nr = 0; nr < KN_NR_MAX; nr++)
		free(t->calls[nr].v);
	for (int abi = 0; abi < KN_ABI_N; abi++)
		if (t->other[abi]) {
			kn_ftable_fini(t->other[abi]);
			free(t->other[abi]);
		}
	memset(t, 0, sizeof *t);
}
