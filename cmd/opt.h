/* cmd/opt.h: the options of `run`: one table that is parsed by, printed by --help and
 * compared with the manual page.
 *
 * Names are exact (no abbreviations: a script must not change its meaning when an
 * option is added), values come as --name=VALUE or --name VALUE, and the command comes
 * after "--".
 */
#ifndef KN_CMD_OPT_H
#define KN_CMD_OPT_H

#include <stdbool.h>
#include <stddef.h>

struct kn_err;
struct kn_voice;
struct knit_policy;
struct knit_pool_options;

/* What a policy is merged from, in the order given. */
enum kn_opt_src_type {
	KN_OPT_NAMED, /* a preset or a file */
	KN_OPT_SET,   /* text "/pointer=VALUE" */
	KN_OPT_VALUE, /* pointer + text: a flag such as --memory */
	KN_OPT_MOUNT, /* text: host path, at: inside path or NULL */
};
struct kn_opt_src {
	enum kn_opt_src_type type;
	const char *text, *pointer, *at;
	bool writable;	   /* MOUNT */
	const char *label; /* for messages: "--memory" */
};

struct kn_run_opts {
	struct kn_opt_src *src;
	size_t src_n;
	char **owned; /* texts that src points to and argv does not have */
	size_t owned_n;
	const char *tasks, *stdin_path, *out_dir, *keep_dir, *report, *trace, *workdir;
	const char *debug, *module, *call, *input;
	const char *connect; /* a server's socket */
	const char **collect;
	size_t collect_n;
	bool log_json, ordered, fail_fast, delegate, dry_run, quiet, help;
	char **argv; /* the command, inside the argv given; NULL: none */
	int argc;
};

/* argv[0] is the verb. 0, or -1 with e (kind USAGE, a hint set). kn_opt_fini() in both
 * cases. */
int kn_opt_parse(struct kn_run_opts *o, int argc, char **argv, struct kn_err *e);
/* Always -1: a usage error with its hint. */
int kn_opt_refuse(struct kn_err *e, const char *hint, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
void kn_opt_fini(struct kn_run_opts *o);
/* The policy that they ask for, checked; knit_policy_free(). NULL with e. */
struct knit_policy *kn_opt_policy(const struct kn_run_opts *o, struct kn_err *e);
/* Why no policy of that name could be had, if that is what went wrong. */
void kn_opt_hint_policy(struct kn_err *e, const char *name);
/* The same of whatever file the options name for the pool. */
void kn_opt_hint_sources(const struct kn_run_opts *o, struct kn_err *e);
/* What is noted of the pool: --debug and --log-json, or KNIT_DEBUG. */
int kn_opt_debug(const struct kn_run_opts *o, const struct kn_voice *v,
    struct knit_pool_options *how, struct kn_err *e);
/* KNIT_STEAL and KNIT_STEAL_CLAIM, where neither policy nor option says anything. */
int kn_opt_steal(
    struct knit_policy *policy, struct knit_pool_options *how, struct kn_err *e);
/* The text of `run --help`; fresh. */
char *kn_opt_help(void);
/* The name of option i without its dashes, NULL after the last. */
const char *kn_opt_name(size_t i);
/* Only --policy, --set and --help: the options of `policy show` and `policy check`;
 * other arguments are policies too. */
int kn_opt_parse_policy(struct kn_run_opts *o, int argc, char **argv, struct kn_err *e);

/* ---- opt_few.c: for the verbs with options of their own; names without dashes ---- */

/* The name that arg, "--memroy" or "--memroy=1", was meant to be, or NULL. */
const char *kn_opt_near(const char *const *names, const char *arg);
/* Always -1: arg is no option of the verb, or no option at all. */
int kn_opt_unknown(
    struct kn_err *e, const char *verb, const char *arg, const char *const *names);
/* Is argv[*i] the option `name` ("--only")? 1 with its value, which *i then is past, 0
 * if not, -1 with e without a value. */
int kn_opt_take(const char *verb, const char *name, int argc, char **argv, int *i,
    const char **out, struct kn_err *e);

/* ---- opt_file.c ---- */

/* The file to read that an option names: a descriptor, or -1 with e. */
int kn_opt_open(const char *option, const char *path, struct kn_err *e);

/* Is there a file of nearly that name? Then it is told. */
bool kn_opt_hint_near(struct kn_err *e, const char *path);
/* opt_reach.c: a connection to who listens there: a descriptor, or -1 with e. No call
 * on it waits for longer than wait_s, unless that is 0. */
int kn_opt_reach(
    const char *option, const char *path, unsigned wait_s, struct kn_err *e);
/* By e->sys: what is there in place of the file, or why it cannot be had. */
void kn_opt_hint_file(struct kn_err *e, const char *path);

#endif
