/* cmd/run.c: knit-sandbox run: options, policy and pool, then run_single.c, run_call.c
 * or run_batch.c.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cmd/delegate.h"
#include "cmd/run_int.h"
#include "ipc/fd.h"

/* What was asked for and what the policies say must be of one kind. */
static int
check_kind(const struct kn_run *r, struct kn_err *e)
{
	char *kind = knit_policy_word(r->policy, "/pool/kind");
	bool module = kind && strcmp(kind, "module") == 0;

	free(kind);
	if (r->opt.call && !module)
		return kn_opt_refuse(
		    e, "add --module FILE.so", "--call: there is no module to call");
	if (r->opt.argv && module)
		return kn_opt_refuse(e, "use --call NAME or --tasks FILE",
		    "run: a policy of kind module runs calls, not commands");
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
	char *module;
	bool same;

	if (!S_ISREG(st->st_mode))
		return NULL;
	if (is_file(st, o->tasks))
		return "--tasks";
	if (is_file(st, o->stdin_path))
		return "--stdin";
	if (o->input && o->input[0] == '@' && is_file(st, o->input + 1))
		return "--input";
	module = knit_policy_word(r->policy, "/pool/module");
	same = is_file(st, module);
	free(module);
	if (same)
		return "the module";
	for (size_t i = 0; i < o->src_n; i++) {
		if (o->src[i].type == KN_OPT_NAMED && is_file(st, o->src[i].text))
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
	if (*out_fd < 0 || fstat(*out_fd, &st) < 0) {
		kn_err_sys(e, KN_EK_USAGE, "%s: open %s", option, path);
		kn_opt_hint_file(e, path);
		return -1;
	}
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
		r->how.trace_fd = r->trace_fd;
	}
	if (r->opt.report && strcmp(r->opt.report, "-") == 0)
		r->report_fd = STDOUT_FILENO;
	else if (r->opt.report &&
		 open_output(r, "--report", r->opt.report, &r->report_fd, e) < 0)
		return -1;
	return 0;
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

int
kn_run_report_job(struct kn_run *r, const struct knit_job *job)
{
	unsigned flags = r->report_fd == STDOUT_FILENO && isatty(STDOUT_FILENO)
			     ? KNIT_JSON_ASCII
			     : 0;
	size_t n = 0;
	char *text;

	if (r->report_fd < 0)
		return 0;
	text = knit_job_json(job, r->policy, flags, &n);
	return kn_run_report(r, text, n);
}

int
kn_run_failed(struct kn_run *r, struct knit_job *job, const struct kn_err *e)
{
	kn_say_error(&r->voice, e);
	if (job && (knit_job_outcome(job) ||
		       knit_job_give_up(job, KNIT_LAUNCH_FAILED, e->msg) == 0))
		(void)kn_run_report_job(r, job);
	return KN_EXIT_OURS;
}

/* ---- the pool ---- */

int
kn_run_open(struct kn_run *r, struct kn_err *e)
{
	struct knit_error err = KNIT_ERROR_NONE;

	r->how.say = kn_module_say;
	r->how.say_ctx = &r->module_voice;
	r->how.flags |= KNIT_POOL_RAISE_NOFILE | KNIT_POOL_LAZY |
			KNIT_POOL_MOVE_CGROUP | KNIT_POOL_OWN_PROCESS;
	if (knit_pool_open(r->policy, &r->how, &r->pool, &err) < 0) {
		r->pool = NULL;
		kn_say_take(e, &err);
		kn_opt_hint_sources(&r->opt, e);
		return -1;
	}
	kn_say_layers(&r->voice, r->pool);
	return 0;
}

void
kn_run_close(struct kn_run *r)
{
	(void)knit_pool_close(r->pool);
	r->pool = NULL;
}

int
kn_run_submit(struct kn_run *r, struct knit_job *job, struct kn_err *e)
{
	struct knit_error err = KNIT_ERROR_NONE;

	if (knit_pool_submit(r->pool, job, &err) < 0 ||
	    knit_pool_drain(r->pool, &err) < 0)
		return kn_say_take(e, &err);
	return 0;
}

/* ---- dry run ---- */

static int
dry_run(struct kn_run *r)
{
	struct knit_error err = KNIT_ERROR_NONE;
	struct kn_err e = { 0 };
	const char **argv = knit_policy_command(r->policy, &err);
	char *text = NULL, *policy;
	size_t n = 0;
	FILE *f;
	int rc = KN_EXIT_OURS;

	if (!argv) {
		kn_say_take(&e, &err);
		return kn_say_error(&r->voice, &e);
	}
	policy = knit_policy_text(r->policy);
	f = open_memstream(&text, &n);
	if (f) {
		for (size_t i = 0; argv[i]; i++) {
			if (i > 0)
				fputc(' ', f);
			kn_say_word(f, argv[i]);
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
	free(argv);
	return rc;
}

/* ---- the verb ---- */

static int
prepare(struct kn_run *r, struct kn_err *e)
{
	knit_pool_options_init(&r->how, sizeof r->how);
	if (kn_opt_debug(&r->opt, &r->voice, &r->how, e) < 0)
		return -1;
	r->policy = kn_opt_policy(&r->opt, e);
	if (!r->policy || check_kind(r, e) < 0 ||
	    kn_opt_steal(r->policy, &r->how, e) < 0)
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
	if (r->opt.connect)
		return kn_run_connect(r);
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
	struct kn_run r = {
		.closed = closed, .trace_fd = -1, .report_fd = -1, .sig_fd = -1
	};
	int rc = run(&r, argc, argv);

	if (r.report_fd != STDOUT_FILENO)
		kn_fd_close(&r.report_fd);
	kn_fd_close(&r.trace_fd);
	kn_fd_close(&r.sig_fd);
	knit_policy_free(r.policy);
	kn_opt_fini(&r.opt);
	return rc;
}
