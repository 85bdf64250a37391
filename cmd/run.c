/* cmd/run.c: knit-sandbox run: options and policy, then run_single.c or run_batch.c. */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "cmd/delegate.h"
#include "cmd/run_int.h"
#include "ipc/fd.h"
#include "sandbox/policy.h"
#include "supervisor/log.h"

extern char **environ;

static int
set_debug(struct kn_run *r, const char *list, const char *from, struct kn_err *e)
{
	const char *bad = "";
	int bad_n = 0;

	if (kn_log_mask(list, &r->sup.debug, &bad, &bad_n) == 0)
		return 0;
	return kn_opt_refuse(e,
	    "namespaces: host, lifecycle, signals, imports, sandbox, policy, or * for "
	    "all",
	    "%s: unknown namespace \"%.*s\"", from, bad_n, bad);
}

/* Debug lines asked for by KNIT_DEBUG must not make every run fail when it holds
 * something else: only the option is strict. */
static int
choose_debug(struct kn_run *r, struct kn_err *e)
{
	const char *list = getenv("KNIT_DEBUG");
	struct kn_err ignored = { 0 };

	if (r->opt.debug)
		return set_debug(r, r->opt.debug, "--debug", e);
	if (list && *list && set_debug(r, list, "KNIT_DEBUG", &ignored) < 0)
		kn_say_error(&r->voice, &ignored);
	return 0;
}

/* What was asked for and what the policies say must be of one kind. */
static int
check_kind(const struct kn_run *r, struct kn_err *e)
{
	bool module = r->policy->pool.kind == KN_KIND_MODULE;

	if (r->opt.call && !module)
		return kn_opt_refuse(
		    e, "add --module FILE.so", "--call: there is no module to call");
	if (r->opt.argv && module)
		return kn_opt_refuse(e, "use --call NAME or --tasks FILE",
		    "run: a policy of kind module runs calls, not commands");
	return 0;
}

/* KNIT_STEAL and KNIT_STEAL_CLAIM stand for --steal and /pool/claim where nobody said
 * anything. */
static int
choose_steal(struct kn_run *r, struct kn_err *e)
{
	const char *steal = getenv("KNIT_STEAL"), *claim = getenv("KNIT_STEAL_CLAIM");

	if (steal && *steal && !kn_policy_named(r->policy, "/pool/steal")) {
		r->sup.steal = kn_steal_parse(steal);
		r->sup.steal_set = true;
		if (r->sup.steal < 0)
			return kn_opt_refuse(e, "one of auto, shared, brokered and off",
			    "KNIT_STEAL: \"%.40s\" is not supported", steal);
	}
	if (claim && *claim && !kn_policy_named(r->policy, "/pool/claim")) {
		r->sup.claim = kn_claims_parse(claim);
		r->sup.claim_set = true;
		if (r->sup.claim < 0)
			return kn_opt_refuse(e, "one of auto, dekker and cas-mask",
			    "KNIT_STEAL_CLAIM: \"%.40s\" is not supported", claim);
	}
	return 0;
}

static bool
is_file(const struct stat *st, const char *path)
{
	struct stat other;

	return path && stat(path, &other) == 0 && other.st_dev == st->st_dev &&
	       other.st_ino == st->st_ino;
}

/* Which part of this run has that file already: writing there would destroy what is
 * read, or mix two texts. NULL: none. */
static const char *
other_use(const struct kn_run *r, const char *option, const struct stat *st)
{
	const struct kn_run_opts *o = &r->opt;

	if (!S_ISREG(st->st_mode))
		return NULL;
	if (is_file(st, o->tasks))
		return "--tasks";
	if (is_file(st, o->stdin_path))
		return "--stdin";
	if (o->input && o->input[0] == '@' && is_file(st, o->input + 1))
		return "--input";
	if (is_file(st, r->policy->pool.module))
		return "the module";
	for (size_t i = 0; i < o->src_n; i++) {
		if (o->src[i].type == KN_SRC_NAMED && is_file(st, o->src[i].text))
			return "--policy";
	}
	if (strcmp(option, "--trace") != 0 && is_file(st, o->trace))
		return "--trace";
	return is_file(st, "/proc/self/fd/0")	? "standard input"
	       : is_file(st, "/proc/self/fd/1") ? "standard output"
						: NULL;
}

static int
open_output(struct kn_run *r, const char *option, const char *path, int *out_fd,
    struct kn_err *e)
{
	const char *use;
	struct stat st;

	*out_fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOCTTY, 0666);
	if (*out_fd < 0 || fstat(*out_fd, &st) < 0)
		return kn_err_sys(e, KN_EK_USAGE, "%s: open %s", option, path);
	use = other_use(r, option, &st);
	if (use)
		return kn_opt_refuse(e, "name a file of its own",
		    "%s: %.100s is the file of %s as well", option, path, use);
	if (S_ISREG(st.st_mode) && ftruncate(*out_fd, 0) < 0)
		return kn_err_sys(e, KN_EK_USAGE, "%s: empty %s", option, path);
	return 0;
}

static int
open_outputs(struct kn_run *r, struct kn_err *e)
{
	if (r->opt.trace) {
		if (open_output(r, "--trace", r->opt.trace, &r->trace_fd, e) < 0)
			return -1;
		r->sup.trace_on = true;
		r->sup.trace_fd = r->trace_fd;
	}
	if (r->opt.report && strcmp(r->opt.report, "-") == 0)
		r->report_fd = STDOUT_FILENO;
	else if (r->opt.report &&
		 open_output(r, "--report", r->opt.report, &r->report_fd, e) < 0)
		return -1;
	return 0;
}

static void
stop_signals(sigset_t *set)
{
	sigemptyset(set);
	sigaddset(set, SIGINT);
	sigaddset(set, SIGTERM);
	sigaddset(set, SIGHUP);
	sigaddset(set, SIGQUIT);
}

void
kn_run_hold_signals(struct kn_run *r)
{
	sigset_t set;

	stop_signals(&set);
	sigprocmask(SIG_BLOCK, &set, &r->mask);
}

void
kn_run_free_signals(const struct kn_run *r)
{
	const struct timespec now = { 0, 0 };
	sigset_t set;

	stop_signals(&set);
	while (sigtimedwait(&set, NULL, &now) > 0)
		;
	sigprocmask(SIG_SETMASK, &r->mask, NULL);
}

int
kn_run_report(struct kn_run *r, char *text, size_t n)
{
	int rc = 0;

	if (r->report_fd < 0) {
		free(text);
		return 0;
	}
	if (!text) {
		kn_say(&r->voice, "--report: out of memory");
		return -1;
	}
	if (kn_fd_write_all(r->report_fd, text, n) < 0) {
		kn_say(&r->voice, "--report: write %s: %s", r->opt.report,
		    strerror(errno));
		rc = -1;
	}
	free(text);
	if (r->report_fd != STDOUT_FILENO)
		kn_fd_close(&r->report_fd);
	r->report_fd = -1;
	return rc;
}

void
kn_run_tell_layers(const struct kn_run *r, const struct kn_layers *l)
{
	char text[400];
	size_t n = 0;

	for (unsigned i = 0; i < KN_LAYER_N; i++) {
		if (l->state[i] == KN_LAYER_DEGRADED && n < sizeof text)
			n += (size_t)snprintf(text + n, sizeof text - n, "%s%s",
			    n ? ", " : "", kn_layer_name((enum kn_layer)i));
	}
	if (n > 0 && !r->voice.quiet)
		kn_say(&r->voice,
		    "not enforced by the kernel here, something weaker stands in: %s",
		    text);
}

/* ---- dry run ---- */

/* An argument as a shell would take it. */
static void
print_quoted(FILE *f, const char *arg)
{
	const char *s = arg;

	while (*s && (isalnum((unsigned char)*s) || strchr("_-+=./:,@%", *s)))
		s++;
	if (*arg && !*s) {
		fputs(arg, f);
		return;
	}
	fputc('\'', f);
	for (s = arg; *s; s++) {
		if (*s == '\'')
			fputs("'\\''", f);
		else
			fputc(*s, f);
	}
	fputc('\'', f);
}

static int
dry_run(struct kn_run *r)
{
	const char *const *argv;
	struct kn_err e = { 0 };
	struct kn_sup *s;
	char *text = NULL, *policy;
	size_t n = 0;
	FILE *f;
	int rc = KN_EXIT_OURS;

	if (kn_sup_dry_run(r->policy, &r->host, &argv, &s, &e) < 0)
		return kn_say_error(&r->voice, &e);
	policy = kn_policy_text(r->policy);
	f = open_memstream(&text, &n);
	if (f) {
		for (size_t i = 0; argv[i]; i++) {
			if (i > 0)
				fputc(' ', f);
			print_quoted(f, argv[i]);
		}
		fprintf(f, "\n%s", policy ? policy : "");
		if (policy && *policy && policy[strlen(policy) - 1] != '\n')
			fputc('\n', f);
	}
	if (!f || fclose(f) != 0 || !policy)
		kn_say(&r->voice, "--dry-run: out of memory");
	else if (kn_say_out(&r->voice, text, n) == 0)
		rc = KN_EXIT_OK;
	free(policy);
	free(text);
	kn_sup_close(s);
	return rc;
}

/* ---- the verb ---- */

static int
prepare(struct kn_run *r, struct kn_err *e)
{
	if (choose_debug(r, e) < 0)
		return -1;
	r->sup.log_json = r->opt.log_json;
	r->sup.handle_signals = true;
	if (kn_policy_load(r->opt.src, r->opt.src_n, &r->policy, e) < 0 ||
	    check_kind(r, e) < 0 || choose_steal(r, e) < 0 ||
	    kn_host_probe(&r->host, e) < 0 ||
	    kn_env_build(&r->env, r->policy, (const char *const *)environ, e) < 0)
		return -1;
	return r->opt.dry_run ? 0 : open_outputs(r, e);
}

static int
help(const struct kn_voice *v)
{
	char *text = kn_opt_help();
	int rc =
	    text && kn_say_out(v, text, strlen(text)) == 0 ? KN_EXIT_OK : KN_EXIT_OURS;

	free(text);
	return rc;
}

/* Options that are wrong are told as was asked, wherever that stands. */
static int
usage(int argc, char **argv, const struct kn_err *e)
{
	struct kn_voice v = { 0 };

	for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++)
		v.json |= strcmp(argv[i], "--log-json") == 0;
	return kn_say_error(&v, e);
}

static int
run(struct kn_run *r, int argc, char **argv)
{
	struct kn_err e = { 0 };

	if (kn_opt_parse(&r->opt, argc, argv, &e) < 0)
		return usage(argc, argv, &e);
	r->voice = (struct kn_voice){ .json = r->opt.log_json, .quiet = r->opt.quiet };
	if (r->opt.help)
		return help(&r->voice);
	if (kn_delegate(r->opt.delegate, argv, r->closed, &e) < 0 || prepare(r, &e) < 0)
		return kn_say_error(&r->voice, &e);
	if (r->opt.dry_run)
		return dry_run(r);
	if (r->opt.tasks)
		return kn_run_batch(r);
	return r->opt.call ? kn_run_call(r) : kn_run_single(r);
}

int
kn_cmd_run(int argc, char **argv, unsigned closed)
{
	struct kn_run r = { .closed = closed, .trace_fd = -1, .report_fd = -1 };
	int rc = run(&r, argc, argv);

	if (r.report_fd != STDOUT_FILENO)
		kn_fd_close(&r.report_fd);
	kn_fd_close(&r.trace_fd);
	kn_env_fini(&r.env);
	kn_policy_free(r.policy);
	kn_opt_fini(&r.opt);
	return rc;
}
