/* sandbox/filter_join.c: lists of decisions: to append to one, and to make one of what
 * the rules of a policy say about a call and of what is below them.
 *
 * A rule that allows a group by its name does not allow what a guard refuses. It stands
 * in its place among the rules, and what it leaves out is decided by those after it. A
 * list has no "but not", so where such a rule stands the guards are repeated, and under
 * each that refuses the rest of the list.
 */
#include <stdlib.h>

#include "ipc/err.h"
#include "sandbox/filter_int.h"

/* After an entry without conditions nothing can be reached. */
static bool
is_closed(const struct kn_fcall *c)
{
	return c->n && c->v[c->n - 1].arg_n == 0 && !c->v[c->n - 1].guarded;
}

int
kn_fcall_push(struct kn_fcall *c, const struct kn_fentry *f, struct kn_err *e)
{
	if (is_closed(c))
		return 0;
	if (c->n == c->cap) {
		size_t cap = c->cap ? c->cap * 2 : 2;
		struct kn_fentry *v = realloc(c->v, cap * sizeof *v);
		if (!v)
			return kn_err_set(e, KN_EK_HOST, "seccomp: out of memory");
		c->v = v;
		c->cap = cap;
	}
	c->v[c->n++] = *f;
	return 0;
}

static bool
has_cond(const struct kn_fentry *f, const struct kn_farg *a)
{
	for (size_t i = 0; i < f->arg_n; i++)
		if (f->args[i].index == a->index && f->args[i].op == a->op &&
		    f->args[i].value == a->value &&
		    f->args[i].value_two == a->value_two)
			return true;
	return false;
}

/* Does it hold wherever the other does? */
static bool
covers(const struct kn_fentry *f, const struct kn_fentry *other)
{
	for (size_t i = 0; i < f->arg_n; i++)
		if (!has_cond(other, &f->args[i]))
			return false;
	return true;
}

/* Do two conditions ask for different values of the same bits? */
static bool
exclude(const struct kn_farg *a, const struct kn_farg *b)
{
	bool masked[2] = { a->op == KN_CMP_MASKED_EQ, b->op == KN_CMP_MASKED_EQ };
	uint64_t bits = a->narrow ? UINT32_MAX : UINT64_MAX;

	if (a->index != b->index || (!masked[0] && a->op != KN_CMP_EQ) ||
	    (!masked[1] && b->op != KN_CMP_EQ))
		return false;
	if (masked[0])
		bits &= a->value;
	if (masked[1])
		bits &= b->value;
	return (((masked[0] ? a->value_two : a->value) ^
		    (masked[1] ? b->value_two : b->value)) &
		   bits) != 0;
}

int
kn_fentry_narrow(struct kn_fentry *f, const struct kn_fentry *under, struct kn_err *e)
{
	const size_t own_n = f->arg_n;

	for (size_t i = 0; i < under->arg_n; i++) {
		const struct kn_farg *a = &under->args[i];

		for (size_t j = 0; j < own_n; j++)
			if (exclude(&f->args[j], a))
				return 0;
		if (has_cond(f, a))
			continue;
		if (f->arg_n == sizeof f->args / sizeof *f->args)
			return kn_err_set(e, KN_EK_CONFIG,
			    "/seccomp/rules: of one call too many conditions would "
			    "have to hold together; name it itself where a rule "
			    "allows a group with conditions");
		f->args[f->arg_n++] = *a;
	}
	return 1;
}

/* ---- two lists to one ---- */

struct join {
	const struct kn_fcall *rules, *below;
	struct kn_fcall out;
	struct kn_err *e;
};

static int emit(struct join *j, size_t i, const struct kn_fentry *under);

/* The rule i, narrowed: as far as guards do not refuse. 1: that is decided; 0: the rest
 * is what the rules after it say of all that came to this one. */
static int
emit_guarded(struct join *j, size_t i, const struct kn_fentry *rule)
{
	for (size_t k = 0; k < j->below->n; k++) {
		const struct kn_fentry *guard = &j->below->v[k];
		struct kn_fentry f = *guard;
		int rc = kn_fentry_narrow(&f, rule, j->e);

		if (rc == 0)
			continue;
		if (rc > 0 && guard->who == KN_FWHO_GUARD) {
			if (covers(guard, rule))
				return 0;
			rc = emit(j, i + 1, &f);
		} else if (rc > 0) {
			f.ret = rule->ret;
			f.who = rule->who;
			f.at = rule->at;
			rc = kn_fcall_push(&j->out, &f, j->e);
		}
		if (rc < 0)
			return -1;
		if (covers(guard, rule))
			return 1; /* nothing that the rule is about is left */
	}
	return 1;
}

/* What the rules from i on, and what is below them, say under these conditions. */
static int
emit(struct join *j, size_t i, const struct kn_fentry *under)
{
	for (; i < j->rules->n + j->below->n; i++) {
		const struct kn_fentry *own =
		    i < j->rules->n ? &j->rules->v[i] : &j->below->v[i - j->rules->n];
		struct kn_fentry f = *own;
		int rc = kn_fentry_narrow(&f, under, j->e);

		f.guarded = false;
		if (rc == 0)
			continue;
		if (rc > 0 && own->guarded)
			rc = emit_guarded(j, i, &f);
		else if (rc > 0 && kn_fcall_push(&j->out, &f, j->e) < 0)
			return -1;
		if (rc < 0)
			return -1;
		if (rc > 0 && covers(own, under))
			return 0;
	}
	return 0;
}

int
kn_fcall_join(struct kn_fcall *rules, struct kn_fcall *below, struct kn_err *e)
{
	struct join j = { .rules = rules, .below = below, .e = e };
	bool ruled = false;

	for (size_t i = 0; i < rules->n; i++)
		ruled = ruled || rules->v[i].who == KN_FWHO_RULE;
	if (emit(&j, 0, &(const struct kn_fentry){ 0 }) < 0) {
		free(j.out.v);
		return -1;
	}
	free(rules->v);
	free(below->v);
	*below = (struct kn_fcall){ 0 };
	*rules = j.out;
	rules->ruled = ruled;
	return 0;
}
