/* sandbox/policy_learn.h: policies that were learnt: what was seen, as a document that
 * extends a base, and two of those as one.
 */
#ifndef KN_SANDBOX_POLICY_LEARN_H
#define KN_SANDBOX_POLICY_LEARN_H

#include <stddef.h>
#include <stdint.h>

struct kn_err;

struct kn_learnt {
	const char *rule; /* as kn_told_text() has it */
	uint64_t count;
};
/* malloc'ed JSON, or NULL: no memory. base: what it extends; what: its description. */
char *kn_policy_learnt_text(
    const char *base, const char *what, const struct kn_learnt *v, size_t n);
/* The rules of two such files, each once. Both must extend the same, and hold nothing
 * that a learnt policy does not. NULL with e. */
char *kn_policy_learnt_merge(const char *a, const char *b, struct kn_err *e);

#endif
