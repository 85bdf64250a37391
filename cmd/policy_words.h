/* cmd/policy_words.h: a policy in words: what a task can reach, on one screen. */
#ifndef KN_CMD_POLICY_WORDS_H
#define KN_CMD_POLICY_WORDS_H

struct kn_book;
struct kn_policy;

/* malloc'ed; NULL: out of memory. name: how the caller named it. */
char *kn_policy_words(
    const struct kn_policy *p, const struct kn_book *b, const char *name);

#endif
