/* sandbox/filter_explain.c: who decides about one system call; see filter_explain.h. */
#include "sandbox/filter_explain.h"

#include <errno.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ipc/err.h"
#include "sandbox/filter_int.h"
#include "sandbox/filter_told.h"

struct kn_book {
	const struct kn_policy *p;
	struct kn_ftable t;
	struct kn_ftable watched; /* where no cgroup counts memory */
	struct kn_filter f;
	struct kn_told *told;
};

int
kn_book_open(const struct kn_policy *p, struct kn_book **out, struct kn_err *e)
{
	struct kn_book *b = calloc(1, sizeof *b);
	if (!b)
		return kn_err_set(e, KN_EK_HOST, "seccomp: out of memory");
	b->p = p;
	if (kn_ftable_init(&b->t, p, false, e) < 0 ||
	    kn_ftable_init(&b->watched, p, true, e) < 0 ||
	    kn_filter_build(p, &b->f, e) < 0 ||
	    kn_told_open(p, false, &b->told, e) < 0) {
		kn_book_close(b);
		return -1;
	}
	*out = b;
	return 0;
}

void
kn_book_close(struct kn_book *b)
{
	if (!b)
		return;
	kn_ftable_fini(&b->t);
	kn_ftable_fini(&b->watched);
	kn_filter_fini(&b->f);
	kn_told_close(b->told);
	free(b);
}

/* ---- names ---- */

static const char *const abi_names[KN_ABI_N] = { "", "x32:", "i386:" };

int
kn_book_parse(const char *text, struct kn_ask *out, struct kn_err *e)
{
	char *end;
	*out = (struct kn_ask){ .abi = KN_ABI_NATIVE };
	for (enum kn_abi a = KN_ABI_NATIVE + 1; a < KN_ABI_N; a++) {
		size_t n = strlen(abi_names[a]);
		if (strncmp(text, abi_names[a], n) != 0)
			continue;
		out->abi = a;
		text += n;
		if (!kn_filter_abi_here(a))
			return kn_err_set(e, KN_EK_USAGE,
			    "this machine has no %s calls", abi_names[a]);
	}
	if (*text >= '0' && *text <= '9') {
		unsigned long long nr = strtoull(text, &end, 0);
		out->nr = (uint32_t)nr;
		if (*end || nr > UINT32_MAX)
			return kn_err_set(
			    e, KN_EK_USAGE, "\"%.40s\" is no number of a call", text);
		return 0;
	}
	int nr = kn_filter_nr_of(out->abi, text);
	if (nr == KN_NR_FOREIGN)
		return kn_err_set(e, KN_EK_USAGE,
		    "%s%.40s is a call of another "
		    "architecture",
		    abi_names[out->abi], text);
	if (nr < 0) {
		kn_filter_check_call(text, e);
		e->kind = KN_EK_USAGE;
		return -1;
	}
	out->nr = (uint32_t)nr;
	return 0;
}

static void
name_call(const struct kn_ask *q, char out[48])
{
	char *name = kn_filter_name_of(q->abi, q->nr);
	if (name)
		snprintf(out, 48, "%s%.40s", abi_names[q->abi], name);
	else
		snprintf(out, 48, "%snumber %u", abi_names[q->abi], q->nr);
	free(name);
}

/* ---- in words ---- */

static void
say_does(uint32_t ret, char *dst, size_t cap)
{
	int n = (int)(ret & SECCOMP_RET_DATA);
	const char *name = strerrorname_np(n), *text = strerrordesc_np(n);
	switch (ret & SECCOMP_RET_ACTION_FULL) {
	case SECCOMP_RET_ALLOW:
		snprintf(dst, cap, "allowed");
		return;
	case SECCOMP_RET_LOG:
		snprintf(dst, cap, "allowed, and told in the kernel's log");
		return;
	case SECCOMP_RET_ERRNO:
		if (name && text)
			snprintf(dst, cap, "refused with %s (%s)", name, text);
		else
			snprintf(dst, cap, "refused with error %d", n);
		return;
	case SECCOMP_RET_TRAP:
		snprintf(dst, cap, "refused with SIGSYS, which a program may catch");
		return;
	case SECCOMP_RET_KILL_THREAD:
		snprintf(dst, cap, "ends the thread (SIGSYS)");
		return;
	default:
		snprintf(dst, cap, "ends the process (SIGSYS)");
		return;
	}
}

static void
say_when(const struct kn_fentry *f, char *dst, size_t cap)
{
	static const char *const ops[] = { "!=", "<", "<=", "==", ">=", ">" };
	size_t n = 0;
	dst[0] = 0;
	for (size_t i = 0; i < f->arg_n && n < cap; i++) {
		const struct kn_farg *a = &f->args[i];
		const char *and = i ? ", " : "";
		if (a->op == KN_CMP_MASKED_EQ)
			n += (size_t)snprintf(dst + n, cap - n,
			    "%sargument %u & %#llx is %#llx", and, a->index,
			    (unsigned long long)a->value,
			    (unsigned long long)a->value_two);
		else
			n += (size_t)snprintf(dst + n, cap - n, "%sargument %u %s %llu",
			    and, a->index, ops[a->op], (unsigned long long)a->value);
	}
}

/* "(origin)" of the first of two places that somebody set, or of nobody. */
static const char *
origin(const struct kn_policy *p, const char *at, const char * or)
{
	const char *o = kn_policy_origin(p, at);
	if (!o && or)
		o = kn_policy_origin(p, or);
	return o ? o : "built in";
}

static void
say_group(const struct kn_book *b, uint32_t at, struct kn_answer *out)
{
	char pointer[64];
	snprintf(pointer, sizeof pointer, "/seccomp/groups/replace/%u", at);
	snprintf(out->by, sizeof out->by, "group %s (%s)", b->p->seccomp.groups[at],
	    origin(b->p, pointer, "/seccomp/groups"));
}

static void
say_by(const struct kn_book *b, const struct kn_fentry *f, struct kn_answer *out)
{
	const struct kn_seccomp_rule *r = &b->p->seccomp.rules[f->at];
	const char *text = NULL;
	out->why = "";
	switch (f->who) {
	case KN_FWHO_RULE:
		snprintf(out->by, sizeof out->by, "rule /seccomp/rules/%u (%s)", f->at,
		    r->origin);
		out->why = r->why;
		return;
	case KN_FWHO_GROUP:
		say_group(b, f->at, out);
		return;
	case KN_FWHO_PROFILE:
		snprintf(out->by, sizeof out->by,
		    "the profile's entry /syscalls/%u (%s)", f->at,
		    b->p->seccomp.profile[f->at].origin);
		return;
	case KN_FWHO_GUARD:
		text = "always refused, unless a rule names it";
		out->why = kn_filter_guards[f->at].why;
		break;
	case KN_FWHO_NEVER:
		text = kn_filter_never_why(f->at);
		break;
	case KN_FWHO_NEEDED:
		text = "needed by the process of kind module";
		break;
	case KN_FWHO_NEWER:
		text = "a higher number than any that the profile names";
		break;
	case KN_FWHO_ABI:
		text = "/seccomp/architectures does not name these numbers";
		break;
	case KN_FWHO_DEFAULT:
	case KN_FWHO_N:
	default:
		snprintf(out->by, sizeof out->by,
		    "nothing names it: the default for such calls (%s)",
		    b->p->seccomp.profiled
			? "of the profile"
			: origin(b->p, "/seccomp/default/action", NULL));
		return;
	}
	snprintf(out->by, sizeof out->by, "%s", text);
}

/* ---- asking ---- */

static struct seccomp_data
data_of(const struct kn_ask *q)
{
	struct seccomp_data d = { .arch = kn_filter_abi_arch(q->abi),
		.nr = (int)(q->nr | (q->abi == KN_ABI_X32 ? KN_NR_X32 : 0)) };
	for (int i = 0; i < 6; i++)
		d.args[i] = q->args[i];
	return d;
}

static const struct kn_fcall *
list_of(const struct kn_book *b, const struct kn_ask *q)
{
	const struct kn_ftable *t =
	    q->abi == KN_ABI_NATIVE ? &b->t : b->t.other[q->abi];
	return t && q->nr < KN_NR_MAX ? &t->calls[q->nr] : NULL;
}

static bool
varies(const struct kn_fcall *c)
{
	for (size_t i = 1; c && i < c->n; i++)
		if (c->v[i].ret != c->v[0].ret)
			return true;
	return false;
}

int
kn_book_ask(const struct kn_book *b, const struct kn_ask *q, struct kn_answer *out,
    struct kn_err *e)
{
	struct seccomp_data d = data_of(q);
	uint64_t args[6];
	memset(out, 0, sizeof *out);
	memcpy(args, q->args, sizeof args);
	name_call(q, out->call);
	if (kn_filter_ask(&b->f, &d, &out->ret, e) < 0)
		return -1;
	struct kn_fentry f = kn_ftable_find(&b->t, d.arch, (uint32_t)d.nr, args);
	if (f.ret != out->ret)
		return kn_err_set(e, KN_EK_BUG,
		    "seccomp: the program answers %s with %#x, the policy with %#x",
		    out->call, out->ret, f.ret);
	out->depends = varies(list_of(b, q));
	say_does(out->ret, out->does, sizeof out->does);
	say_when(&f, out->when, sizeof out->when);
	say_by(b, &f, out);
	if (kn_ftable_decide(&b->watched, d.arch, (uint32_t)d.nr, args) != out->ret)
		out->why = "Where no cgroup counts a task's memory: refused, "
			   "unless a rule names it.";
	if (kn_filter_unasked(q->abi, q->nr))
		out->why = "Newer kernels ask no filter about it, and answer by "
			   "themselves: a task gains nothing.";
	return 0;
}

/* Arguments that meet a condition. */
static uint64_t
example(const struct kn_farg *a)
{
	switch (a->op) {
	case KN_CMP_NE:
	case KN_CMP_GT:
		return a->value + 1;
	case KN_CMP_LT:
		return a->value - 1;
	case KN_CMP_MASKED_EQ:
		return a->value_two;
	case KN_CMP_LE:
	case KN_CMP_EQ:
	case KN_CMP_GE:
	default:
		return a->value;
	}
}

int
kn_book_case(const struct kn_book *b, const struct kn_ask *q, size_t index,
    struct kn_answer *out, struct kn_err *e)
{
	const struct kn_fcall *c = list_of(b, q);
	struct kn_ask with = *q;
	if (!c)
		return index ? 1 : kn_book_ask(b, q, out, e);
	if (index >= c->n)
		return 1;
	const struct kn_fentry *f = &c->v[index];
	/* Of the others nothing that a condition asks for: an unlikely number. */
	for (int i = 0; i < 6; i++)
		with.args[i] = c->n == 1 ? 0 : 0x7ead6fff;
	for (size_t i = 0; i < f->arg_n; i++)
		with.args[f->args[i].index] = example(&f->args[i]);
	return kn_book_ask(b, &with, out, e);
}

static bool
is_allowed(uint32_t ret)
{
	ret &= SECCOMP_RET_ACTION_FULL;
	return ret == SECCOMP_RET_ALLOW || ret == SECCOMP_RET_LOG;
}

char *
kn_book_rule_for(const struct kn_book *b, const struct kn_ask *q)
{
	struct seccomp_data d = data_of(q);
	struct kn_told_call c = { .arch = d.arch, .nr = (uint32_t)d.nr };
	struct kn_told_text x = { 0 };
	for (int i = 0; i < 6; i++)
		c.args[i] = q->args[i];
	if (is_allowed(kn_ftable_decide(&b->t, c.arch, c.nr, c.args)) ||
	    (q->abi != KN_ABI_NATIVE && !b->t.other[q->abi]) ||
	    kn_told_text(b->told, &c, &x) < 0)
		return NULL;
	return x.allow;
}

/* ---- counting ---- */

static bool
is_kill(uint32_t ret)
{
	return (ret & SECCOMP_RET_ACTION_FULL) == SECCOMP_RET_KILL_PROCESS;
}

/* How many entries of the list are of this sort. */
static size_t
count(const struct kn_fcall *c, bool (*is)(uint32_t ret))
{
	size_t n = 0;
	for (size_t i = 0; i < c->n; i++)
		n += is(c->v[i].ret);
	return n;
}

void
kn_book_count(const struct kn_book *b, struct kn_count *out)
{
	memset(out, 0, sizeof *out);
	for (uint32_t nr = 0; nr < KN_NR_MAX; nr++) {
		const struct kn_fcall *c = &b->t.calls[nr];
		char *name = kn_filter_name_of(KN_ABI_NATIVE, nr);
		size_t may = count(c, is_allowed);
		if (!name)
			continue;
		free(name);
		if (may == c->n)
			out->allowed++;
		else if (may)
			out->partly++;
		else if (count(c, is_kill) == c->n)
			out->killed++;
		else
			out->refused++;
	}
}

char *
kn_book_next_killed(const struct kn_book *b, uint32_t *from)
{
	for (; *from < KN_NR_MAX; ++*from) {
		const struct kn_fcall *c = &b->t.calls[*from];
		char *name = NULL;
		if (count(c, is_kill) == c->n)
			name = kn_filter_name_of(KN_ABI_NATIVE, *from);
		if (name) {
			++*from;
			return name;
		}
	}
	return NULL;
}
