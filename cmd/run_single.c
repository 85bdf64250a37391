/* cmd/run_single.c: one command: its streams are the caller's, its end is our exit
 * status.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cmd/collect.h"
#include "cmd/run_int.h"
#include "ipc/fd.h"

struct single {
	struct kn_run *r;
	struct knit_job *job;
	const struct knit_outcome *o; /* NULL: not yet */
	int out_dir;
	int exit_code;
	bool lost_told;
};

/* ---- what the end means ---- */

int
kn_run_exit_of(const struct knit_outcome *o)
{
	switch (o->verdict) {
	case KNIT_OK:
	case KNIT_EXIT:
		return o->exit_code >= 0 ? o->exit_code : KN_EXIT_OURS;
	case KNIT_SIGNAL:
	case KNIT_DENIED:
		return o->signal > 0 ? KN_EXIT_SIGNAL + o->signal
				     : KN_EXIT_SIGNAL + SIGSYS;
	case KNIT_TIMEOUT:
	case KNIT_SOFT_TIMEOUT:
	case KNIT_CPU_TIMEOUT:
	case KNIT_QUEUE_TIMEOUT:
		return KN_EXIT_TIMEOUT;
	case KNIT_MEMORY:
		return KN_EXIT_MEMORY;
	case KNIT_NOT_FOUND:
		return KN_EXIT_NOT_FOUND;
	case KNIT_NOT_EXECUTABLE:
		return KN_EXIT_NOT_EXECUTABLE;
	case KNIT_OUTPUT_LIMIT:
	case KNIT_TOO_LARGE:
	case KNIT_CANCELLED:
	case KNIT_SKIPPED:
	case KNIT_WORKER_LOST:
	case KNIT_LAUNCH_FAILED:
	case KNIT_INVALID:
	case KNIT_PROTOCOL_VIOLATION:
	case KNIT_INTERNAL:
		break;
	}
	return KN_EXIT_OURS;
}

/* A shell's word, or a line for a shell, in place of a program. */
static const char *
hint_shell(const struct kn_run_opts *opt)
{
	static const char *const builtins[] = { "cd", "export", "source", ".", "alias",
		"ulimit", "umask", "set", "exec", "eval", NULL };
	const char *name = opt->argv[0];

	if (!opt->argv[1] && strpbrk(name, " ;|&<>$"))
		return "a program and its arguments are words of their own: -- ls -l; "
		       "a line for the shell is one word of its: -- sh -c 'ls -l | wc'";
	for (size_t i = 0; builtins[i]; i++)
		if (strcmp(builtins[i], name) == 0)
			return "that is the shell's own: -- sh -c 'cd /tmp && ls'";
	return NULL;
}

/* What a first user meets most: his files are not in there. NULL: nothing to add. */
static const char *
hint_of(const struct kn_run_opts *opt, const struct knit_outcome *o)
{
	bool path = opt->argv && strchr(opt->argv[0], '/');

	if (o->verdict == KNIT_NOT_FOUND && opt->argv && hint_shell(opt))
		return hint_shell(opt);
	if (o->verdict == KNIT_NOT_FOUND && opt->connect)
		return path
			   ? "a server shows the files of its own policy only: serve "
			     "--ro-bind SRC[:DST]; or send it with the task line"
			   : "it must be in the PATH inside, by the server's policy; a "
			     "program of yours needs a bind there: serve --ro-bind "
			     "SRC[:DST]";
	if (o->verdict == KNIT_NOT_FOUND)
		return path ? "your files are in there only if bound: --ro-bind "
			      "SRC[:DST], --workdir DIR"
			    : "it must be in the PATH inside; a program of yours needs "
			      "a bind: --ro-bind SRC[:DST]";
	if (o->verdict == KNIT_INVALID && opt->workdir)
		return "--workdir is a directory inside: bind one there with "
		       "--bind SRC:DIR, or leave it out for /task";
	if (o->verdict == KNIT_DENIED)
		return "the kernel's log has the number of the call (dmesg: type=1326 "
		       "... syscall=); see WHAT WAS REFUSED in knit-policy(5)";
	return NULL;
}

void
kn_run_tell(const struct kn_run *r, const struct knit_outcome *o, int exit_code)
{
	const char *hint = hint_of(&r->opt, o);

	if (o->verdict == KNIT_OK || o->verdict == KNIT_EXIT ||
	    o->verdict == KNIT_SIGNAL)
		return;
	if (r->voice.quiet && exit_code != KN_EXIT_OURS)
		return;
	kn_say(&r->voice, "%s%s%s", knit_verdict_name(o->verdict),
	    o->error[0] ? ": " : "", o->error);
	if (hint && !r->voice.quiet)
		kn_say_hint(&r->voice, hint);
}

static void
tell_cut(const struct kn_voice *v, const char *name, const struct knit_stream *s,
    uint64_t passed)
{
	if (s->truncated)
		kn_say(v, "%s was cut: %llu of %llu bytes (/limits/task/%s)", name,
		    (unsigned long long)passed, (unsigned long long)s->total, name);
}

/* Without one all is cut, as was asked for. */
static bool
has_console(const struct single *s)
{
	char *value = knit_policy_get(s->r->policy, "/permissions/console");
	bool has = !value || strcmp(value, "false") != 0;

	free(value);
	return has;
}

/* How a command ends by itself is its own business; anything else gets a line. */
static void
tell(const struct single *s)
{
	const struct kn_voice *v = &s->r->voice;

	if (!v->quiet && s->o->verdict != KNIT_OUTPUT_LIMIT && has_console(s)) {
		tell_cut(v, "stdout", &s->o->out, s->o->passed);
		tell_cut(v, "stderr", &s->o->err, s->o->passed_err);
	}
	kn_run_tell(s->r, s->o, s->exit_code);
}

/* Once: the outcome is there, while its worker may still be ending. */
static void
answered(struct single *s)
{
	s->exit_code = kn_run_exit_of(s->o);
	if (s->out_dir >= 0 && kn_collect(s->out_dir, s->o, &s->r->voice) > 0)
		s->exit_code = KN_EXIT_OURS;
	kn_collect_tell(s->o, &s->r->voice);
	if (kn_run_report_job(s->r, s->job) < 0)
		s->exit_code = KN_EXIT_OURS;
}

/* ---- the task ---- */

static int
make_job(struct single *s, struct kn_err *e)
{
	const struct kn_run_opts *o = &s->r->opt;
	struct knit_job *job = knit_job_command((const char *const *)o->argv);

	if (!job)
		return kn_err_set(e, KN_EK_HOST, "out of memory");
	s->job = job;
	knit_job_set_id(job, "command");
	for (size_t i = 0; i < o->collect_n; i++)
		knit_job_collect(job, o->collect[i]);
	if (o->workdir)
		knit_job_set_cwd(job, o->workdir);
	knit_job_set_streams(job, STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO);
	/* A terminal only where both ends are one: a file that stdout was sent to must
	 * not get a terminal's line ends. */
	if (!o->stdin_path && isatty(STDIN_FILENO) && isatty(STDOUT_FILENO))
		knit_job_set_terminal(job);
	return 0;
}

/* Instead of a closed stdout there is /dev/null, which would take all output of the
 * command and let it end as if it had been seen. A pipe that nobody reads says so to
 * the command, at its first write and not before. */
static int
refuse_output(struct kn_err *e)
{
	int ends[2];
	int rc;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return kn_err_sys(e, KN_EK_HOST, "pipe");
	rc = dup2(ends[1], STDOUT_FILENO);
	close(ends[0]);
	close(ends[1]);
	return rc < 0 ? kn_err_sys(e, KN_EK_HOST, "stdout") : 0;
}

/* A directory reads as an error that would pass for an end: the command would run, on
 * nothing. */
static bool
is_directory(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 && S_ISDIR(st.st_mode);
}

static int
take_stdin(const char *path, struct kn_err *e)
{
	KN_OWN_FD int fd = kn_opt_open("--stdin", path, e);

	if (fd < 0)
		return -1;
	if (dup2(fd, STDIN_FILENO) < 0)
		return kn_err_sys(e, KN_EK_USAGE, "--stdin: %s", path);
	return 0;
}

/* Who reads our stdout has gone, or it takes no more: that ends the run. */
static void
check_lost(struct single *s)
{
	int sys = knit_job_lost(s->job);

	if (!sys || s->lost_told)
		return;
	s->lost_told = true;
	kn_run_stop(s->r, false, sys == EPIPE ? SIGPIPE : 0);
}

/* Until the pool has ended. 0, or -1 with e. */
static int
run(struct single *s, struct kn_err *e)
{
	struct knit_error err = KNIT_ERROR_NONE;
	int rc;

	for (;;) {
		rc = knit_pool_wait_end(s->r->pool, 0, &err);
		if (!s->o && (s->o = knit_job_outcome(s->job))) {
			answered(s);
			s->r->stop_ns = 0; /* it had ended by then, as it likes */
		}
		if (rc != 0)
			break;
		check_lost(s);
		kn_run_wait(s->r, NULL, 0, 0);
	}
	return rc < 0 ? kn_say_take(e, &err) : 0;
}

static int
open_all(struct single *s, struct kn_err *e)
{
	struct kn_run *r = s->r;

	r->how.flags |= KNIT_POOL_ONE_JOB;
	/* One task needs one worker, unless somebody asked for more by name. */
	r->how.workers = knit_policy_named(r->policy, "/pool/workers") ? 0 : 1;
	if (r->closed & 1u << STDOUT_FILENO && refuse_output(e) < 0)
		return -1;
	if (r->opt.stdin_path && take_stdin(r->opt.stdin_path, e) < 0)
		return -1;
	if (!r->opt.stdin_path && is_directory(STDIN_FILENO))
		return kn_opt_refuse(e, "give it a file, or </dev/null",
		    "standard input is a directory");
	if (r->opt.out_dir) {
		s->out_dir = kn_collect_open(
		    r->opt.out_dir, r->opt.collect, r->opt.collect_n, e);
		if (s->out_dir < 0)
			return -1;
	}
	return make_job(s, e);
}

static int
go(struct single *s)
{
	struct kn_run *r = s->r;
	struct kn_err e = { 0 };
	int rc, lost;

	if (open_all(s, &e) < 0)
		return kn_say_error(&r->voice, &e);
	if (kn_run_hold_signals(r, &e) < 0 || kn_run_open(r, &e) < 0 ||
	    kn_run_submit(r, s->job, &e) < 0)
		return kn_run_failed(r, s->job, &e);
	r->job = s->job;
	rc = run(s, &e);
	if (rc < 0 && !s->o)
		return kn_run_failed(r, s->job, &e);
	if (rc < 0)
		return kn_say_error(&r->voice, &e);
	lost = knit_job_lost(s->job);
	/* Also if the command was faster than the news of it. */
	if (lost == EPIPE && !r->signo)
		r->signo = SIGPIPE;
	if (lost && lost != EPIPE) {
		errno = lost;
		kn_err_sys(&e, KN_EK_HOST, "write to standard output");
		return kn_say_error(&r->voice, &e);
	}
	tell(s);
	return r->signo ? KN_EXIT_SIGNAL + r->signo : s->exit_code;
}

int
kn_run_single(struct kn_run *r)
{
	struct single s = { .r = r, .out_dir = -1, .exit_code = KN_EXIT_OURS };
	int rc = go(&s);

	kn_run_close(r);
	knit_job_free(s.job);
	kn_fd_close(&s.out_dir);
	return rc;
}
