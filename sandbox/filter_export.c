/* sandbox/filter_export.c: the decisions of a policy as rules that need no order, for
 * programs that have none.
 *
 * Here the first entry of a call that matches decides. In an OCI profile any rule may
 * be tried first, a rule has one comparison per argument, and there is no "unless". So
 * each call's space of arguments is cut into boxes that do not overlap: for each
 * argument a mask and the value under it, which is what SCMP_CMP_MASKED_EQ says. What
 * an entry takes is what it matches without all that entries before it took. Nothing is
 * lost and nothing approximated; what would need too many boxes is an error.
 */
#include <stdlib.h>
#include <string.h>

#include "ipc/err.h"
#include "sandbox/filter_int.h"

enum { ARGS = 6, BOXES_MAX = 4096 };

struct box {
	struct kn_fcube arg[ARGS];
};
struct boxes {
	struct box *v;
	size_t n, cap;
	bool failed; /* out of memory, or too many */
};

static void
push(struct boxes *l, const struct box *b)
{
	if (l->n == l->cap) {
		size_t cap = l->cap ? 2 * l->cap : 16;
		struct box *v = cap > BOXES_MAX ? NULL : realloc(l->v, cap * sizeof *v);

		if (!v) {
			l->failed = true;
			return;
		}
		l->v = v;
		l->cap = cap;
	}
	l->v[l->n++] = *b;
}

static void
drop(struct boxes *l)
{
	free(l->v);
	*l = (struct boxes){ 0 };
}

static bool
meet(const struct box *a, const struct box *b, struct box *out)
{
	for (int i = 0; i < ARGS; i++) {
		uint64_t both = a->arg[i].mask & b->arg[i].mask;

		if ((a->arg[i].value ^ b->arg[i].value) & both)
			return false;
		out->arg[i].mask = a->arg[i].mask | b->arg[i].mask;
		out->arg[i].value = a->arg[i].value | b->arg[i].value;
	}
	return true;
}

/* What is in a and not in b: bit by bit of b, from the top, where it can differ. */
static void
without(const struct box *a, const struct box *b, struct boxes *out)
{
	struct box rest = *a, part;

	if (!meet(a, b, &part)) {
		push(out, a);
		return;
	}
	for (int i = 0; i < ARGS; i++)
		for (int bit = 63; bit >= 0; bit--) {
			uint64_t one = 1ull << bit;

			if (!(b->arg[i].mask & one) || (a->arg[i].mask & one))
				continue;
			part = rest;
			part.arg[i].mask |= one;
			part.arg[i].value |= ~b->arg[i].value & one;
			push(out, &part);
			rest.arg[i].mask |= one;
			rest.arg[i].value |= b->arg[i].value & one;
		}
}

/* Values that are less (or greater) than v: those that agree with it down to a bit and
 * are on the right side there. */
static void
one_side(const struct box *a, unsigned i, uint64_t v, uint64_t all, bool less,
    struct boxes *out)
{
	for (int bit = 63; bit >= 0; bit--) {
		uint64_t one = 1ull << bit, above = all & ~(one | (one - 1));
		struct box cut = { 0 }, both;

		if (!(all & one) || (less ? !(v & one) : (v & one) != 0))
			continue;
		cut.arg[i].mask = above | one;
		cut.arg[i].value = (v & above) | (less ? 0 : one);
		if (meet(a, &cut, &both))
			push(out, &both);
	}
}

/* The boxes of a in which the condition holds. */
static void
condition(const struct box *a, const struct kn_farg *c, struct boxes *out)
{
	uint64_t all = c->narrow ? UINT32_MAX : UINT64_MAX, v = c->value & all;
	struct box same = { 0 }, both;

	same.arg[c->index] = (struct kn_fcube){ all, v };
	switch (c->op) {
	case KN_CMP_NE:
		without(a, &same, out);
		return;
	case KN_CMP_LT:
	case KN_CMP_LE:
		one_side(a, c->index, v, all, true, out);
		break;
	case KN_CMP_GT:
	case KN_CMP_GE:
		one_side(a, c->index, v, all, false, out);
		break;
	case KN_CMP_MASKED_EQ:
		same.arg[c->index] = (struct kn_fcube){ v, c->value_two & all };
		if (c->value_two & all & ~v)
			return; /* a wanted bit that the mask takes away */
		break;
	case KN_CMP_EQ:
	default:
		break;
	}
	if (c->op != KN_CMP_LT && c->op != KN_CMP_GT && meet(a, &same, &both))
		push(out, &both);
}

/* Of `from`, what an entry matches. */
static void
matched(const struct boxes *from, const struct kn_fentry *f, struct boxes *out)
{
	struct boxes now = { 0 }, next = { 0 };

	for (size_t i = 0; i < from->n; i++)
		push(&now, &from->v[i]);
	for (size_t c = 0; c < f->arg_n; c++) {
		for (size_t i = 0; i < now.n; i++)
			condition(&now.v[i], &f->args[c], &next);
		out->failed = out->failed || now.failed;
		drop(&now);
		now = next;
		next = (struct boxes){ 0 };
	}
	now.failed = now.failed || out->failed;
	*out = now;
}

static void
subtract(struct boxes *from, const struct boxes *taken)
{
	for (size_t t = 0; t < taken->n; t++) {
		struct boxes next = { 0 };

		for (size_t i = 0; i < from->n; i++)
			without(&from->v[i], &taken->v[t], &next);
		next.failed = next.failed || from->failed;
		drop(from);
		*from = next;
	}
}

static int
one_call(const struct kn_ftable *t, int nr, const char *name,
    int (*each)(void *ctx, const struct kn_frule *r), void *ctx, struct kn_err *e)
{
	const struct kn_fcall *c = &t->calls[nr];
	struct box everything = { 0 };
	struct boxes rest = { 0 };
	bool failed = false;
	int rc = 0;

	push(&rest, &everything);
	for (size_t i = 0; i < c->n && rest.n > 0 && rc == 0; i++) {
		struct boxes hit = { 0 };

		matched(&rest, &c->v[i], &hit);
		subtract(&rest, &hit);
		failed = failed || hit.failed || rest.failed;
		for (size_t b = 0; b < hit.n && !failed && rc == 0; b++) {
			struct kn_frule r = {
				.name = name, .nr = nr, .ret = c->v[i].ret
			};

			memcpy(r.arg, hit.v[b].arg, sizeof r.arg);
			rc = r.ret == t->unlisted ? 0 : each(ctx, &r);
		}
		drop(&hit);
	}
	drop(&rest);
	if (failed)
		return kn_err_set(e, KN_EK_CONFIG,
		    "seccomp: the rules for %s have too many cases to be told without "
		    "order",
		    name);
	return rc < 0 ? kn_err_set(e, KN_EK_HOST, "seccomp: out of memory") : 0;
}

int
kn_filter_rules(const struct kn_policy *p, uint32_t *out_unlisted,
    int (*each)(void *ctx, const struct kn_frule *r), void *ctx, struct kn_err *e)
{
	struct kn_policy with = *p;
	struct kn_ftable t;
	int rc = 0;

	/* Others load it before they execute the task's own command. */
	with.run.set = with.run.n > 0;
	if (kn_ftable_init(&t, &with, false, e) < 0)
		return -1;
	*out_unlisted = t.unlisted;
	for (int nr = 0; nr < KN_NR_MAX && rc == 0; nr++) {
		char *name = kn_filter_name_of(t.abi, (uint32_t)nr);

		if (name)
			rc = one_call(&t, nr, name, each, ctx, e);
		free(name);
	}
	kn_ftable_fini(&t);
	return rc;
}

int
kn_filter_names(int (*each)(void *ctx, const char *name, int nr), void *ctx)
{
	int rc = 0;

	for (int nr = 0; nr < KN_NR_MAX && rc == 0; nr++) {
		char *name = kn_filter_name_of(KN_ABI_NATIVE, (uint32_t)nr);

		if (name)
			rc = each(ctx, name, nr);
		free(name);
	}
	return rc;
}
