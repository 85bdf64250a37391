/* sandbox/filter_explain.h: what happens to one system call under a policy, and who
 * says so. The answer is that of the two programs a task runs under; the reason is read
 * from the lists that they were made of, and it is an error if the two do not agree.
 */
#ifndef KN_SANDBOX_FILTER_EXPLAIN_H
#define KN_SANDBOX_FILTER_EXPLAIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sandbox/policy.h"

struct kn_err;
struct kn_book; /* all that a policy says of calls, to be asked */

struct kn_ask {
	enum kn_abi abi;
	uint32_t nr; /* x32's without the bit that marks them */
	uint64_t args[6];
};
struct kn_answer {
	uint32_t ret;	 /* SECCOMP_RET_* */
	bool depends;	 /* other arguments may be answered otherwise */
	char call[48];	 /* "openat", "i386:openat", "number 600" */
	char does[96];	 /* "refused with EPERM (Operation not permitted)" */
	char when[192];	 /* under which conditions of the arguments, or "" */
	char by[192];	 /* "rule /seccomp/rules/3 (preset judge)" */
	const char *why; /* the reason that is given for it, or "" */
};
struct kn_count {
	unsigned allowed, partly, killed, refused; /* calls with a name */
};

int kn_book_open(const struct kn_policy *p, struct kn_book **out, struct kn_err *e);
void kn_book_close(struct kn_book *b);
/* "openat", "x32:openat", "i386:5" -> abi and nr. */
int kn_book_parse(const char *text, struct kn_ask *out, struct kn_err *e);
int kn_book_ask(const struct kn_book *b, const struct kn_ask *q, struct kn_answer *out,
    struct kn_err *e);
/* Each of the answers that a call can have, by an example of its arguments: index from
 * 0. 1: there is none such. */
int kn_book_case(const struct kn_book *b, const struct kn_ask *q, size_t index,
    struct kn_answer *out, struct kn_err *e);
/* The rule, as JSON, that would allow a call which is refused, and little beside it;
 * malloc'ed. NULL: nothing would, or it is allowed. */
char *kn_book_rule_for(const struct kn_book *b, const struct kn_ask *q);
void kn_book_count(const struct kn_book *b, struct kn_count *out);
/* The name of a call that ends the process whatever its arguments, from *from on, which
 * moves past it; malloc'ed, NULL: no more. */
char *kn_book_next_killed(const struct kn_book *b, uint32_t *from);

#endif
