/* cmd/policy.h: the verbs of `knit-sandbox policy`, one file each. argv[0] is the verb;
 * each returns the exit code.
 */
#ifndef KN_CMD_POLICY_H
#define KN_CMD_POLICY_H

#include <stdbool.h>

struct kn_err;
struct kn_policy;
struct kn_policy_notes;
struct kn_run_opts;
struct knit_policy;

int kn_policy_list_main(int argc, char **argv);
int kn_policy_show_main(int argc, char **argv);
int kn_policy_check_main(int argc, char **argv);
int kn_policy_explain_main(int argc, char **argv);
int kn_policy_diff_main(int argc, char **argv);
int kn_policy_schema_main(int argc, char **argv);
int kn_policy_export_main(int argc, char **argv);
int kn_policy_learn_main(int argc, char **argv);

bool kn_policy_is_preset(const char *name);
/* --help of all of them. Returns the exit code. */
int kn_policy_help(void);
/* Options and names as kn_opt_parse_policy() has them, and the policy they make. True:
 * *out_p is one. False: *out_rc is the exit code, and all is said. kn_opt_fini() and
 * knit_policy_free() in both cases. */
bool kn_policy_of_args(int argc, char **argv, struct kn_run_opts *o,
    struct knit_policy **out_p, int *out_rc);
/* Is option `name` there? It is taken out of argv. */
bool kn_policy_take_flag(int *argc, char **argv, const char *name);
/* The value of option `name`, as --name VALUE or --name=VALUE, or NULL; taken out. */
const char *kn_policy_take_arg(int *argc, char **argv, const char *name);
/* The merged policy with all that is inside of it, or what is wrong with each source of
 * it. The caller ends both: kn_policy_free(), kn_policy_notes_fini(). */
int kn_policy_of_opts(const struct kn_run_opts *o, struct kn_policy **out,
    struct kn_policy_notes *notes, struct kn_err *e);
/* What is wrong, one line each, on stdout. Returns the exit code. */
int kn_policy_say_notes(const struct kn_policy_notes *notes, const struct kn_err *e);

#endif
