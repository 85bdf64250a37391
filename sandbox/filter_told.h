/* sandbox/filter_told.h: a system call that was refused -> which error number it gets,
 * by what it was refused, and what would allow it.
 *
 * The number and arguments of the call are the kernel's words (sandbox/listener.h); all
 * the text comes from the policy and from our own tables, none from the task's memory.
 */
#ifndef KN_SANDBOX_FILTER_TOLD_H
#define KN_SANDBOX_FILTER_TOLD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct kn_policy;
struct kn_err;
struct kn_told;

struct kn_told_call {
	uint32_t arch, nr;
	uint64_t args[6];
};

/* The same policy and `watched` as the filter was built with; policy is borrowed. */
int kn_told_open(
    const struct kn_policy *p, bool watched, struct kn_told **out, struct kn_err *e);
void kn_told_close(struct kn_told *t);

struct kn_told_answer {
	unsigned errno_ret;
	/* Refused because nothing allows it, not because something refuses it. */
	bool unlisted;
	/* Calls with the same key are refused alike and allowed by the same line. */
	uint64_t key;
};
void kn_told_look(
    const struct kn_told *t, const struct kn_told_call *c, struct kn_told_answer *out);

struct kn_told_text {
	char name[48];
	unsigned arg_n; /* how many it takes */
	int64_t args[6];
	char *allow; /* a rule as JSON, malloc'ed; NULL: nothing would */
	char by[256];
};
/* 0, or -1: out of memory. */
int kn_told_text(
    const struct kn_told *t, const struct kn_told_call *c, struct kn_told_text *out);
void kn_told_text_fini(struct kn_told_text *x);
/* Which calls end who makes them, in some form at least: the kernel does not say which
 * it was. "ptrace, bpf or one of 30 others"; "" if none does. */
void kn_told_killers(const struct kn_told *t, char *dst, size_t cap);

#endif
