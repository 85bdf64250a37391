/* cmd/opt_table.h: the option table, as its parser sees it. */
#ifndef KN_CMD_OPT_TABLE_H
#define KN_CMD_OPT_TABLE_H

#include <stddef.h>

struct kn_err;
struct kn_opt;
struct kn_run_opts;

typedef int (*kn_opt_fn)(struct kn_run_opts *o, const struct kn_opt *opt,
    const char *value, struct kn_err *e);

struct kn_opt {
	const char *name, *arg, *help; /* arg NULL: a flag */
	kn_opt_fn fn;
	size_t at;	     /* of the member that a flag or a text sets */
	const char *pointer; /* of the policy value that is set */
};

enum { KN_OPT_N = 36 };
extern const struct kn_opt kn_opts[KN_OPT_N];

/* Always -1: "--name: text", and the hint. */
int kn_opt_usage(struct kn_err *e, const struct kn_opt *opt, const char *hint,
    const char *fmt, ...) __attribute__((format(printf, 4, 5)));
/* One option at argv[*i]; moves *i past a value. */
int kn_opt_one(struct kn_run_opts *o, int argc, char **argv, int *i, struct kn_err *e);
/* Always -1: arg is none of names, which are the verb's; what other tools call by it is
 * told too. */
int kn_opt_unknown_run(
    struct kn_err *e, const char *verb, const char *arg, const char *const *names);
int kn_opt_add_policy(struct kn_run_opts *o, const char *name, struct kn_err *e);

#endif
