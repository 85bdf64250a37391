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
#include "cmd/report.h"
#include "cmd/run_int.h"
#include "ipc/fd.h"
#include "sandbox/policy.h"

struct single {
	struct kn_run *r;
	struct kn_sup *sup;
	int out_dir;
	bool answered;
	enum kn_verdict verdict;
	char error[320];
	int exit_code;
	struct {
		uint64_t cap, total;
	} cut[2]; /* of stdout and stderr; total 0: nothing was cut */
};

/* ---- what the end means ---- */

int
kn_run_exit_of(const struct kn_outcome *o)
{
	switch (o->verdict) {
	case KN_V_OK:
	case KN_V_EXIT:
		return o->exit_code >= 0 ? o->exit_code : KN_EXIT_OURS;
	case KN_V_SIGNAL:
	case KN_V_DENIED:
		return o->signal > 0 ? KN_EXIT_SIGNAL + o->signal
				     : KN_EXIT_SIGNAL + SIGSYS;
	case KN_V_TIMEOUT:
	case KN_V_SOFT_TIMEOUT:
	case KN_V_CPU_TIMEOUT:
	case KN_V_QUEUE_TIMEOUT:
		return KN_EXIT_TIMEOUT;
	case KN_V_MEMORY:
		return KN_EXIT_MEMORY;
	case KN_V_NOT_FOUND:
		return KN_EXIT_NOT_FOUND;
	case KN_V_NOT_EXECUTABLE:
		return KN_EXIT_NOT_EXECUTABLE;
	case KN_V_OUTPUT_LIMIT:
	case KN_V_TOO_LARGE:
	case KN_V_CANCELLED:
	case KN_V_SKIPPED:
	case KN_V_WORKER_LOST:
	case KN_V_LAUNCH_FAILED:
	case KN_V_INVALID:
	case KN_V_PROTOCOL_VIOLATION:
	case KN_V_INTERNAL:
	case KN_V_N:
		break;
	}
	return KN_EXIT_OURS;
}

/* What a first user meets most: his files are not in there. NULL: nothing to add. */
static const char *
hint_of(const struct single *s)
{
	const struct kn_run_opts *o = &s->r->opt;

	if (s->verdict == KN_V_NOT_FOUND)
		return strchr(o->argv[0], '/')
			   ? "your files are in there only if bound: --ro-bind "
			     "SRC[:DST], --workdir DIR"
			   : "it must be in the PATH inside; a program of yours needs "
			     "a "
			     "bind: --ro-bind SRC[:DST]";
	if (s->verdict == KN_V_INVALID && o->workdir)
		return "--workdir is a directory inside: bind one there with "
		       "--bind SRC:DIR, or leave it out for /task";
	if (s->verdict == KN_V_DENIED)
		return "the kernel's log has the number of the call (dmesg: type=1326 "
		       "... syscall=); see WHAT WAS REFUSED in knit-policy(5)";
	return NULL;
}

static void
tell_cut(const struct single *s)
{
	static const char *const name[] = { "stdout", "stderr" };

	for (int i = 0; i < 2; i++) {
		if (s->cut[i].total)
			kn_say(&s->r->voice,
			    "%s was cut: %llu of %llu bytes (/limits/task/%s)", name[i],
			    (unsigned long long)s->cut[i].cap,
			    (unsigned long long)s->cut[i].total, name[i]);
	}
}

/* How a command ends by itself is its own business; anything else gets a line. */
static void
tell(const struct single *s)
{
	const struct kn_voice *v = &s->r->voice;
	const char *hint = hint_of(s);

	if (!v->quiet && s->verdict != KN_V_OUTPUT_LIMIT)
		tell_cut(s);
	if (s->verdict == KN_V_OK || s->verdict == KN_V_EXIT ||
	    s->verdict == KN_V_SIGNAL)
		return;
	if (v->quiet && s->exit_code != KN_EXIT_OURS)
		return;
	kn_say(v, "%s%s%s", kn_verdict_name(s->verdict), s->error[0] ? ": " : "",
	    s->error);
	if (hint && !v->quiet)
		kn_say_hint(v, hint);
}

static int
write_report(struct single *s, const struct kn_outcome *o)
{
	struct kn_report how = { 0 };
	size_t n = 0;
	char *text;

	if (s->r->report_fd < 0)
		return 0;
	how.policy = kn_policy_hash(s->r->policy);
	how.ascii = s->r->report_fd == STDOUT_FILENO && isatty(STDOUT_FILENO);
	text = kn_report_result(&how, "command", 0, o, &n);
	return kn_run_report(s->r, text, n);
}

static void
on_answer(void *ctx, struct kn_task *t, struct kn_outcome *o)
{
	struct single *s = ctx;

	s->answered = true;
	s->exit_code = kn_run_exit_of(o);
	s->verdict = o->verdict;
	memcpy(s->error, o->error, sizeof s->error);
	if (o->out.truncated) {
		s->cut[0].cap = t->limits.stdout_bytes;
		s->cut[0].total = o->out.total;
	}
	if (o->err.truncated) {
		s->cut[1].cap = t->limits.stderr_bytes;
		s->cut[1].total = o->err.total;
	}
	if (s->out_dir >= 0 && kn_collect(s->out_dir, o, &s->r->voice) > 0)
		s->exit_code = KN_EXIT_OURS;
	if (write_report(s, o) < 0)
		s->exit_code = KN_EXIT_OURS;
	kn_task_free(t);
}

static void
on_room(void *ctx)
{
	(void)ctx; /* there is one task, and it is in */
}

/* What happened before there could be an answer stands in the report as well. */
static int
failed(struct single *s, const struct kn_err *e)
{
	struct kn_outcome o = {
		.verdict = KN_V_LAUNCH_FAILED, .exit_code = -1, .worker = -1
	};

	kn_say_error(&s->r->voice, e);
	strncpy(o.error, e->msg, sizeof o.error - 1);
	(void)write_report(s, &o);
	return KN_EXIT_OURS;
}

/* ---- the task ---- */

static char **
copy_list(const char *const *v, size_t n)
{
	char **out = calloc(n + 1, sizeof *out);

	for (size_t i = 0; out && i < n; i++) {
		out[i] = strdup(v[i]);
		if (out[i])
			continue;
		while (i-- > 0)
			free(out[i]);
		free(out);
		return NULL;
	}
	return out;
}

static int
fill_task(struct kn_task *t, struct kn_run *r, struct kn_err *e)
{
	const struct kn_task_ask nothing = { 0 };
	const struct kn_run_opts *o = &r->opt;

	t->id = strdup("command");
	t->argv = copy_list((const char *const *)o->argv, (size_t)o->argc);
	t->argv_n = t->argv ? (size_t)o->argc : 0;
	t->env = copy_list((const char *const *)r->env.v, r->env.n);
	t->env_n = t->env ? r->env.n : 0;
	t->collect = copy_list(o->collect, o->collect_n);
	t->collect_n = t->collect ? o->collect_n : 0;
	t->cwd = o->workdir ? strdup(o->workdir) : NULL;
	if (!t->id || !t->argv || !t->env || !t->collect || (o->workdir && !t->cwd))
		return kn_err_set(e, KN_EK_HOST, "out of memory");
	if (kn_policy_tighten(r->policy, &nothing, &t->limits, &t->timeouts, e) < 0)
		return -1;
	/* A relayed stream is cut only where somebody asked for it. */
	if (!kn_policy_named(r->policy, "/limits/task/stdout"))
		t->limits.stdout_bytes = UINT64_MAX;
	if (!kn_policy_named(r->policy, "/limits/task/stderr"))
		t->limits.stderr_bytes = UINT64_MAX;
	t->retries = r->policy->pool.retries;
	t->stdio = KN_STDIO_RELAY;
	/* A terminal only where both ends are one: a file that stdout was sent to must
	 * not get a terminal's line ends. */
	t->pty = !o->stdin_path && isatty(STDIN_FILENO) && isatty(STDOUT_FILENO);
	return 0;
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
	KN_OWN_FD int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);

	if (fd < 0)
		return kn_err_sys(e, KN_EK_USAGE, "--stdin: open %s", path);
	if (is_directory(fd))
		return kn_opt_refuse(e, "to show a directory: --ro-bind SRC[:DST]",
		    "--stdin: %s is a directory", path);
	if (dup2(fd, STDIN_FILENO) < 0)
		return kn_err_sys(e, KN_EK_USAGE, "--stdin: %s", path);
	return 0;
}

static int
submit(struct single *s, struct kn_err *e)
{
	struct kn_task *t = kn_task_new();

	if (!t)
		return kn_err_set(e, KN_EK_HOST, "out of memory");
	if (fill_task(t, s->r, e) < 0 || kn_sup_submit(s->sup, t, e) != 0) {
		kn_task_free(t);
		return -1;
	}
	kn_sup_drain(s->sup);
	return 0;
}

static int
go(struct single *s)
{
	struct kn_run *r = s->r;
	const struct kn_sup_callbacks cb = {
		.ctx = s, .answer = on_answer, .room = on_room
	};
	struct kn_err e = { 0 };
	int signo = 0, rc;

	r->sup.forward_signals = true;
	/* One task needs one worker, unless somebody asked for more by name. */
	r->sup.workers = kn_policy_named(r->policy, "/pool/workers") ? 0 : 1;
	if (r->opt.stdin_path && take_stdin(r->opt.stdin_path, &e) < 0)
		return kn_say_error(&r->voice, &e);
	if (!r->opt.stdin_path && is_directory(STDIN_FILENO)) {
		kn_opt_refuse(&e, "give it a file, or </dev/null",
		    "standard input is a directory");
		return kn_say_error(&r->voice, &e);
	}
	if (r->opt.out_dir && (s->out_dir = kn_collect_open(r->opt.out_dir, &e)) < 0)
		return kn_say_error(&r->voice, &e);
	kn_run_hold_signals(r); /* to the end: nothing waits after it */
	if (kn_sup_open(r->policy, &r->host, &r->sup, &cb, &s->sup, &e) < 0)
		return failed(s, &e);
	kn_run_tell_layers(r, kn_sup_layers(s->sup));
	if (submit(s, &e) < 0)
		return failed(s, &e);
	rc = kn_sup_run(s->sup, &signo, &e);
	if (rc < 0 && !s->answered)
		return failed(s, &e);
	if (rc < 0)
		return kn_say_error(&r->voice, &e);
	tell(s);
	return signo ? KN_EXIT_SIGNAL + signo : s->exit_code;
}

int
kn_run_single(struct kn_run *r)
{
	struct single s = { .r = r, .out_dir = -1, .exit_code = KN_EXIT_OURS };
	int rc = go(&s);

	kn_sup_close(s.sup);
	kn_fd_close(&s.out_dir);
	return rc;
}
