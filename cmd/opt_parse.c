/* cmd/opt_parse.c: the parser over the option table, and --help. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/opt.h"
#include "cmd/opt_table.h"
#include "ipc/err.h"

/* What other tools call it, or an earlier plan of this one did. */
static const struct {
	const char *name, *here;
} elsewhere[] = {
	{ "chdir", "it is --workdir DIR here" },
	{ "cpus", "--set /limits/task/cpus=1.5 for processors, --cpu-time TIME" },
	{ "cwd", "it is --workdir DIR here" },
	{ "directory", "it is --workdir DIR here" },
	{ "image", "--launcher oci:podman --set /launcher/image=NAME" },
	{ "jobs", "it is --workers N here" },
	{ "json", "a batch answers in JSON; of one command: --report FILE|-" },
	{ "mount", "it is --bind SRC[:DST] or --ro-bind here" },
	{ "rootfs", "--launcher oci --set /launcher/rootfs=DIR" },
	{ "setenv", "it is --env K=V here" },
	{ "share-net", "it is --network host here" },
	{ "socket", "a running server's: --connect SOCKET" },
	{ "verbose", "--debug '*' tells all" },
	{ "volume", "it is --bind SRC[:DST] or --ro-bind here" },
};

/* ---- parsing ---- */

static const struct kn_opt *
find(const char *name, size_t n)
{
	for (size_t i = 0; i < KN_OPT_N; i++) {
		if (strlen(kn_opts[i].name) == n &&
		    memcmp(kn_opts[i].name, name, n) == 0)
			return &kn_opts[i];
	}
	return NULL;
}

int
kn_opt_unknown_run(
    struct kn_err *e, const char *verb, const char *arg, const char *const *names)
{
	const char *bare = arg + strspn(arg, "-");
	size_t n = strcspn(bare, "=");

	if (n == 9 && memcmp(bare, "raw-stdio", n) == 0)
		return kn_opt_refuse(e, "knit-sandbox run --help lists what it has",
		    "this version does not have --raw-stdio");
	for (size_t i = 0; i < sizeof elsewhere / sizeof *elsewhere; i++) {
		if (strlen(elsewhere[i].name) == n &&
		    memcmp(elsewhere[i].name, bare, n) == 0)
			return kn_opt_refuse(e, elsewhere[i].here,
			    "%s: unknown option --%s", verb, elsewhere[i].name);
	}
	return kn_opt_unknown(e, verb, arg, names);
}

static int
unknown(const char *arg, struct kn_err *e)
{
	const char *names[KN_OPT_N + 1] = { NULL };

	for (size_t i = 0; i < KN_OPT_N; i++)
		names[i] = kn_opts[i].name;
	return kn_opt_unknown_run(e, "run", arg, names);
}

int
kn_opt_one(struct kn_run_opts *o, int argc, char **argv, int *i, struct kn_err *e)
{
	const char *arg = argv[*i], *name = arg + 2, *eq = strchr(arg, '=');
	size_t n = eq ? (size_t)(eq - name) : strlen(name);
	const struct kn_opt *opt;
	const char *v = eq ? eq + 1 : NULL;

	if (strcmp(arg, "-h") == 0) {
		o->help = true;
		return 0;
	}
	opt = arg[1] == '-' ? find(name, n) : NULL;
	if (!opt)
		return unknown(arg, e);
	if (!opt->arg && v)
		return kn_opt_usage(
		    e, opt, "leave the = out", "takes no value, here \"%s\"", v);
	if (opt->arg && !v) {
		/* "--" is never a value: the command would be taken apart. */
		if (*i + 1 >= argc || strcmp(argv[*i + 1], "--") == 0)
			return kn_opt_usage(e, opt,
			    "knit-sandbox run --help has the options",
			    "needs a value: %s", opt->arg);
		v = argv[++*i];
	}
	/* A text may be none; of anything else that is a variable nobody has set. */
	if (v && v[0] == '\0' && strncmp(opt->arg, "TEXT", 4) != 0)
		return kn_opt_usage(e, opt, "knit-sandbox run --help has the options",
		    "the value is empty: %s", opt->arg);
	return opt->fn(o, opt, v, e);
}

/* Kind module. Whether it is that is known when the policies are: run.c asks again. */
static int
conflict_call(const struct kn_run_opts *o, struct kn_err *e)
{
	const char *command = o->stdin_path  ? "--stdin"
			      : o->collect_n ? "--collect"
			      : o->out_dir   ? "--out-dir"
			      : o->keep_dir  ? "--keep"
					     : NULL;

	if (o->input && !o->call)
		return kn_opt_refuse(e,
		    o->tasks ? "each line has its own value" : "add --call NAME",
		    o->tasks ? "--input: not with --tasks" : "--input: needs --call");
	if (o->call && o->tasks)
		return kn_opt_refuse(e, "each line of the batch names its own",
		    "--call: not with --tasks");
	if (o->call && o->argv)
		return kn_opt_refuse(e, "leave out one of them",
		    "--call: a call and a command exclude each other");
	if (o->module && o->argv)
		return kn_opt_refuse(e, "what it does is chosen by --call or --tasks",
		    "--module: a module and a command exclude each other");
	if ((o->module || o->call) && command)
		return kn_opt_refuse(e, "--input @FILE hands a file to a call",
		    "%s: only for commands, not for calls of a module", command);
	if (o->module && !o->call && !o->tasks && !o->dry_run)
		return kn_opt_refuse(e, "add --call NAME or --tasks FILE",
		    "--module: neither --call nor --tasks says what to do");
	return 0;
}

/* With --connect policy and pool are the server's, and so is its machine. */
static int
conflict_connect(const struct kn_run_opts *o, struct kn_err *e)
{
	const char *ours = o->src_n	  ? o->src[0].label
			   : o->out_dir	  ? "--out-dir"
			   : o->collect_n ? "--collect"
			   : o->keep_dir  ? "--keep"
			   : o->report	  ? "--report"
			   : o->trace	  ? "--trace"
			   : o->workdir	  ? "--workdir"
			   : o->debug	  ? "--debug"
			   : o->ordered	  ? "--ordered"
			   : o->fail_fast ? "--fail-fast"
			   : o->delegate  ? "--delegate"
			   : o->dry_run	  ? "--dry-run"
					  : NULL;

	if (!o->connect)
		return 0;
	if (ours)
		return kn_opt_refuse(e,
		    "the policy is the server's; a task line may have limits, files, "
		    "stdin",
		    "%s: not with --connect", ours);
	if (o->input && o->input[0] == '@' && o->input[1] != '@')
		return kn_opt_refuse(e, "write a task line with value or bytes_b64",
		    "--input: no file with --connect");
	return 0;
}

/* Was an option given that sets a value of the policy? */
static bool
is_given(const struct kn_run_opts *o, const char *label)
{
	for (size_t i = 0; i < o->src_n; i++) {
		if (o->src[i].type == KN_OPT_VALUE &&
		    strcmp(o->src[i].label, label) == 0)
			return true;
	}
	return false;
}

static int
conflict(const struct kn_run_opts *o, struct kn_err *e)
{
	const char *batch = o->ordered	   ? "--ordered"
			    : o->fail_fast ? "--fail-fast"
			    : o->keep_dir  ? "--keep"
					   : NULL;
	const char *single = o->stdin_path  ? "--stdin"
			     : o->collect_n ? "--collect"
			     : o->out_dir   ? "--out-dir"
					    : NULL;

	if (o->tasks && o->argv)
		return kn_opt_refuse(e, "put the commands into the lines of the batch",
		    "--tasks: a batch and a command exclude each other");
	if (o->tasks && single)
		return kn_opt_refuse(e, "a task line has its own: see knit-tasks(5)",
		    "%s: not with --tasks", single);
	if (o->tasks && o->report && strcmp(o->report, "-") == 0)
		return kn_opt_refuse(e, "stdout has the result lines; give a FILE",
		    "--report: not - with --tasks");
	if (o->trace && strcmp(o->trace, "-") == 0)
		return kn_opt_refuse(e, "it is a file of its own; give a FILE",
		    "--trace: not on stdout");
	if (!o->tasks && batch)
		return kn_opt_refuse(e, "it is for batches: add --tasks FILE",
		    "%s: only with --tasks", batch);
	if (o->argv && is_given(o, "--retries"))
		return kn_opt_refuse(e,
		    "what a command has read and written is out of our hands: put it "
		    "into a line of --tasks FILE",
		    "--retries: not for a single command, only with --tasks or "
		    "--call");
	if (!o->collect_n != !o->out_dir)
		return kn_opt_refuse(e,
		    "for instance --collect 'out/*' --out-dir results",
		    "%s: needs %s as well", o->out_dir ? "--out-dir" : "--collect",
		    o->out_dir ? "--collect" : "--out-dir");
	if (!o->tasks && !o->argv && !o->call && !o->dry_run)
		return kn_opt_refuse(e,
		    "knit-sandbox run -- COMMAND, or run --tasks FILE",
		    "run: no command and no --tasks");
	return 0;
}

int
kn_opt_parse(struct kn_run_opts *o, int argc, char **argv, struct kn_err *e)
{
	*o = (struct kn_run_opts){ 0 };
	*e = (struct kn_err){ 0 };
	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--") == 0) {
			if (i + 1 < argc) {
				o->argv = argv + i + 1;
				o->argc = argc - i - 1;
			}
			break;
		}
		if (argv[i][0] != '-' || argv[i][1] == '\0')
			return kn_opt_refuse(e,
			    "put -- before the command: run -- COMMAND",
			    "run: unexpected argument \"%.100s\"", argv[i]);
		if (kn_opt_one(o, argc, argv, &i, e) < 0)
			return -1;
		if (o->help)
			return 0;
	}
	if (o->argv && o->argv[0][0] == '\0')
		return kn_opt_refuse(
		    e, "name a program after --", "run: the command is empty");
	if (conflict_connect(o, e) < 0 || conflict_call(o, e) < 0 || conflict(o, e) < 0)
		return -1;
	if (o->stdin_path && strcmp(o->stdin_path, "-") == 0)
		o->stdin_path = NULL; /* the caller's, as without it */
	return 0;
}

/* The others are taken out by the verbs that have them. */
static int
unknown_policy(const char *arg, struct kn_err *e)
{
	static const char *const names[] = { "policy", "set", "json", "format",
		"around", "workers", "grant", "merge", "out", "call", "help", NULL };
	const char *near = kn_opt_near(names, arg);
	size_t n = strcspn(arg, "=");

	if (near && strlen(near) + 2 == n && memcmp(near, arg + 2, n - 2) == 0)
		return kn_opt_refuse(e, "knit-sandbox policy --help says whose it is",
		    "policy: --%s needs a value, or is no option of this verb", near);
	return kn_opt_unknown(e, "policy", arg, names);
}

int
kn_opt_parse_policy(struct kn_run_opts *o, int argc, char **argv, struct kn_err *e)
{
	*o = (struct kn_run_opts){ 0 };
	*e = (struct kn_err){ 0 };
	for (int i = 1; i < argc; i++) {
		const char *arg = argv[i];

		if (strcmp(arg, "--help") == 0 || strcmp(arg, "-h") == 0) {
			o->help = true;
			return 0;
		}
		if (arg[0] != '-' || arg[1] == '\0') {
			if (kn_opt_add_policy(o, arg, e) < 0)
				return -1;
		} else if (strcmp(arg, "--policy") == 0 || strcmp(arg, "--set") == 0 ||
			   strncmp(arg, "--policy=", 9) == 0 ||
			   strncmp(arg, "--set=", 6) == 0) {
			if (kn_opt_one(o, argc, argv, &i, e) < 0)
				return -1;
		} else {
			return unknown_policy(arg, e);
		}
	}
	return 0;
}

/* ---- help ---- */

const char *
kn_opt_name(size_t i)
{
	return i < KN_OPT_N ? kn_opts[i].name : NULL;
}

char *
kn_opt_help(void)
{
	char *out = NULL, left[64];
	size_t n;
	FILE *f = open_memstream(&out, &n);

	if (!f)
		return NULL;
	fputs("usage: knit-sandbox run [OPTIONS] -- COMMAND [ARG...]  one task\n"
	      "       knit-sandbox run [OPTIONS] --tasks FILE|-  JSON lines in and "
	      "out\n"
	      "       knit-sandbox run [OPTIONS] --module FILE.so --call NAME  one "
	      "call\n\n",
	    f);
	for (size_t i = 0; i < KN_OPT_N; i++) {
		snprintf(left, sizeof left, "--%s%s%s", kn_opts[i].name,
		    kn_opts[i].arg ? " " : "", kn_opts[i].arg ? kn_opts[i].arg : "");
		if (strlen(left) > 22) /* its text stands below the others' */
			fprintf(f, "  %s\n%25s%s\n", left, "", kn_opts[i].help);
		else
			fprintf(f, "  %-22s %s\n", left, kn_opts[i].help);
	}
	fputs("\nExit: the command's own; 128+n signal n; 124 time; 137 memory; 125 "
	      "ours;\n"
	      "126 cannot be executed; 127 not found. Batch: 0 all ok, 1 not all, 125 "
	      "ours.\n"
	      "More: man knit-sandbox\n",
	    f);
	if (fclose(f) != 0) {
		free(out);
		return NULL;
	}
	return out;
}
