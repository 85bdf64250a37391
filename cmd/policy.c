/* cmd/policy.c: knit-sandbox policy: the table of its verbs, and `policy list`. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <knit/pool.h>

#include "cmd/cmd.h"
#include "cmd/opt.h"
#include "cmd/policy.h"
#include "ipc/err.h"
#include "ipc/near.h"
#include "sandbox/policy.h"

static const struct verb {
	const char *name, *args, *what;
	int (*run)(int argc, char **argv); /* argv[0] is the verb */
} verbs[] = {
	{ "list", "", "the presets", kn_policy_list_main },
	{ "show", "[NAME|FILE...]", "the merged policy, who set what",
	    kn_policy_show_main },
	{ "check", "[NAME|FILE...]", "is it valid?", kn_policy_check_main },
	{ "explain", "[NAME|FILE...] [--call NAME [ARG...]]",
	    "it in words; or a system call", kn_policy_explain_main },
	{ "diff", "NAME|FILE NAME|FILE", "what differs", kn_policy_diff_main },
	{ "export", "--format F [NAME|FILE...]", "as other programs want it",
	    kn_policy_export_main },
	{ "schema", "", "the JSON Schema of a policy", kn_policy_schema_main },
	{ "learn", "[--out FILE] -- COMMAND", "what a command needs, as a policy",
	    kn_policy_learn_main },
};
enum { VERB_N = sizeof verbs / sizeof *verbs };

int
kn_policy_help(void)
{
	char text[4096];
	int n = 0;

	for (int i = 0; i < VERB_N; i++)
		if (verbs[i].run)
			n += snprintf(text + n, sizeof text - (size_t)n,
			    "%s knit-sandbox policy %-7s %-20s  %s\n",
			    n ? "      " : "usage:", verbs[i].name, verbs[i].args,
			    verbs[i].what);
	n += snprintf(text + n, sizeof text - (size_t)n,
	    "\n"
	    "  --policy NAME|FILE     as with run; repeatable\n"
	    "  --set /PTR=VALUE       as with run; repeatable\n"
	    "  --json                 of show: the plain document, for programs\n"
	    "  --format F             of export: bwrap, oci, docker, k8s, systemd, "
	    "seccomp\n"
	    "  --around               of export: what this program needs around it, "
	    "with\n"
	    "                         --workers N (2)\n"
	    "  --grant CALL           of learn: also if something refuses it; "
	    "repeatable\n"
	    "  --merge A B            of learn: two learned ones as one\n\n"
	    "Several names are merged in order, later ones win; none means: default.\n"
	    "Exit: 0 fine, 1 check found something or two differ, 125 usage.\n");
	return kn_say_out(NULL, text, (size_t)n) < 0 ? KN_EXIT_OURS : KN_EXIT_OK;
}

bool
kn_policy_is_preset(const char *name)
{
	const char *const *v = kn_policy_presets();

	while (*v && strcmp(*v, name) != 0)
		v++;
	return *v != NULL;
}

int
kn_policy_list_main(int argc, char **argv)
{
	const char *const *names = kn_policy_presets();
	char line[128];
	int n;

	if (argc > 1 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0))
		return kn_policy_help();
	if (argc > 1) {
		struct kn_err e = { 0 };

		kn_opt_refuse(&e, "knit-sandbox policy list",
		    "policy: unexpected argument \"%.100s\"", argv[1]);
		return kn_say_error(NULL, &e);
	}
	for (size_t i = 0; names[i]; i++) {
		n = snprintf(line, sizeof line, "%s\n", names[i]);
		if (kn_say_out(NULL, line, (size_t)n) < 0)
			return KN_EXIT_OURS;
	}
	return KN_EXIT_OK;
}

bool
kn_policy_of_args(int argc, char **argv, struct kn_run_opts *o,
    struct knit_policy **out_p, int *out_rc)
{
	struct kn_err e = { 0 };

	*out_p = NULL;
	if (kn_opt_parse_policy(o, argc, argv, &e) < 0) {
		*out_rc = kn_say_error(NULL, &e);
	} else if (o->help) {
		*out_rc = kn_policy_help();
	} else if (!(*out_p = kn_opt_policy(o, &e))) {
		kn_say_error(NULL, &e);
		*out_rc = e.kind == KN_EK_HOST ? KN_EXIT_OURS : KN_EXIT_NOT_ALL_OK;
	}
	return *out_p != NULL;
}

/* "list, show or check", of the verbs that there are. */
static void
verb_list(char *dst, size_t cap)
{
	size_t n = 0;
	int last = 0;

	for (int i = 0; i < VERB_N; i++)
		last = verbs[i].run ? i : last;
	for (int i = 0; i <= last && n < cap; i++)
		if (verbs[i].run)
			n += (size_t)snprintf(dst + n, cap - n, "%s%s",
			    n == 0	? ""
			    : i == last ? " or "
					: ", ",
			    verbs[i].name);
}

static void
unknown(const char *what, const char *hint, struct kn_err *e)
{
	const char *names[VERB_N + 1] = { NULL }, *near;
	char meant[80];

	for (int i = 0; i < VERB_N; i++)
		names[i] = verbs[i].name;
	near = kn_near_word(names, what);
	if (near)
		snprintf(
		    meant, sizeof meant, "did you mean knit-sandbox policy %s?", near);
	if (!near && (access(what, F_OK) == 0 || kn_policy_is_preset(what)))
		kn_opt_refuse(e,
		    "say what: knit-sandbox policy explain NAME|FILE, or show, check",
		    "policy: \"%.100s\" is a policy, not what to do with it", what);
	else
		kn_opt_refuse(e, near ? meant : hint,
		    "policy: unexpected argument \"%.100s\"", what);
}

int
kn_cmd_policy(int argc, char **argv, unsigned closed)
{
	const char *what = argc > 1 ? argv[1] : "";
	char list[160], hint[200];
	struct kn_err e = { 0 };

	(void)closed;
	if (strcmp(what, "--help") == 0 || strcmp(what, "-h") == 0)
		return kn_policy_help();
	verb_list(list, sizeof list);
	snprintf(hint, sizeof hint, "knit-sandbox policy %s", list);
	for (int i = 0; i < VERB_N; i++) {
		if (strcmp(what, verbs[i].name) != 0)
			continue;
		if (verbs[i].run)
			return verbs[i].run(argc - 1, argv + 1);
		kn_opt_refuse(&e, hint, "this version does not have: policy %s", what);
		return kn_say_error(NULL, &e);
	}
	if (argc < 2)
		kn_opt_refuse(&e, hint, "policy: %s what?", list);
	else
		unknown(what, hint, &e);
	return kn_say_error(NULL, &e);
}
