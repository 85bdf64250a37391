/* cmd/run_call.c: one call of a module: its value to stdout, its end our exit status.
 *
 * Text and bytes come out as they are (on a terminal with a newline after text that has
 * none, or the prompt would stand behind it); everything else as JSON with a newline.
 * An error that the task returned is told with all its causes, and is exit status 1.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd/run_int.h"
#include "ipc/fd.h"

struct call {
	struct kn_run *r;
	struct knit_job *job;
	const struct knit_outcome *o; /* NULL: not yet */
	int exit_code;
};

/* ---- the answer ---- */

int
kn_run_call_value(
    const struct kn_run *r, enum knit_type type, const char *bytes, size_t n)
{
	const struct kn_voice *v = &r->voice;
	bool line = type != KNIT_TEXT && type != KNIT_BYTES;

	if (type == KNIT_TEXT && n > 0 && bytes[n - 1] != '\n')
		line = isatty(STDOUT_FILENO);
	if ((n > 0 && kn_say_out(v, bytes, n) < 0) ||
	    (line && kn_say_out(v, "\n", 1) < 0))
		return -1;
	return 0;
}

void
kn_run_call_cause(const struct kn_run *r, size_t i, const struct knit_cause *e)
{
	kn_say(&r->voice, "%s%s%s%s", i > 0 ? "because of " : "", e->name,
	    e->name[0] && e->message[0] ? ": " : "", e->message);
	if (e->detail[0])
		kn_say(&r->voice, "  %s", e->detail);
}

void
kn_run_call_tell(const struct kn_run *r, const struct knit_outcome *o)
{
	if (!r->voice.quiet || kn_run_call_exit_of(o) == KN_EXIT_OURS)
		kn_say(&r->voice, "%s%s%s", knit_verdict_name(o->verdict),
		    o->error[0] ? ": " : "", o->error);
}

int
kn_run_call_exit_of(const struct knit_outcome *o)
{
	if (o->verdict == KNIT_OK)
		return KN_EXIT_OK;
	if (o->verdict ==
	    KNIT_EXIT) /* its own error, or an exit() in place of a value */
		return o->exit_code > 0 ? o->exit_code : 1;
	return kn_run_exit_of(o);
}

static int
print_value(const struct call *c)
{
	const struct knit_outcome *o = c->o;
	char *text;
	int rc;

	if (o->value_type == KNIT_TEXT || o->value_type == KNIT_BYTES)
		return kn_run_call_value(c->r, o->value_type, o->value, o->value_n);
	text = knit_outcome_value_text(o);
	if (!text) {
		kn_say(&c->r->voice, "print the value: out of memory");
		return -1;
	}
	rc = kn_run_call_value(c->r, o->value_type, text, strlen(text));
	free(text);
	return rc;
}

static void
answered(struct call *c)
{
	const struct knit_outcome *o = c->o;

	c->exit_code = kn_run_call_exit_of(o);
	if (o->verdict == KNIT_OK && print_value(c) < 0)
		c->exit_code = KN_EXIT_OURS;
	for (size_t i = 0; i < o->cause_n; i++)
		kn_run_call_cause(c->r, i, knit_outcome_cause(o, i));
	if (o->verdict != KNIT_OK && o->cause_n == 0)
		kn_run_call_tell(c->r, o);
	if (kn_run_report_job(c->r, c->job) < 0)
		c->exit_code = KN_EXIT_OURS;
}

/* ---- the call ---- */

static int
read_file(struct call *c, const char *path, struct kn_err *e)
{
	KN_OWN_FD int own = -1;
	int fd = STDIN_FILENO;
	char *bytes = NULL;
	uint64_t max = 0;
	size_t n = 0;

	if (strcmp(path, "-") != 0) {
		fd = own = kn_opt_open("--input", path, e);
		if (own < 0)
			return -1;
	}
	(void)knit_policy_number(c->r->policy, "/payload/max", &max);
	/* One byte more: the pool says that it is too large, with its code. */
	if (kn_fd_read_all(fd, max ? (size_t)max + 1 : SIZE_MAX / 2, &bytes, &n, e) < 0)
		return kn_err_wrap(e, "--input: %s", path);
	knit_job_set_arg(c->job, KNIT_BYTES, bytes, n);
	free(bytes);
	return 0;
}

static int
read_input(struct call *c, struct kn_err *e)
{
	const char *v = c->r->opt.input;

	if (!v)
		return 0;
	if (v[0] == '@' && v[1] != '@')
		return read_file(c, v + 1, e);
	if (v[0] == '@')
		v++;
	return knit_job_set_arg_text(c->job, v) < 0
		   ? kn_err_set(e, KN_EK_USAGE, "--input: %s", knit_job_refusal(c->job))
		   : 0;
}

/* Until the pool has ended. 0, or -1 with e. */
static int
run(struct call *c, struct kn_err *e)
{
	struct knit_error err = KNIT_ERROR_NONE;
	int rc;

	for (;;) {
		rc = knit_pool_wait_end(c->r->pool, 0, &err);
		if (!c->o && (c->o = knit_job_outcome(c->job)))
			answered(c);
		if (rc != 0)
			break;
		kn_run_wait(c->r, NULL, 0, 0);
	}
	return rc < 0 ? kn_say_take(e, &err) : 0;
}

static int
go(struct call *c)
{
	struct kn_run *r = c->r;
	struct kn_err e = { 0 };
	int rc;

	r->how.cwd = r->opt.workdir;
	r->how.workers = knit_policy_named(r->policy, "/pool/workers") ? 0 : 1;
	c->job = knit_job_call(r->opt.call);
	if (!c->job)
		kn_err_set(&e, KN_EK_HOST, "out of memory");
	if (!c->job || read_input(c, &e) < 0)
		return kn_say_error(&r->voice, &e);
	knit_job_set_id(c->job, "call");
	if (kn_run_hold_signals(r, &e) < 0 || kn_run_open(r, &e) < 0 ||
	    kn_run_submit(r, c->job, &e) < 0)
		return kn_run_failed(r, c->job, &e);
	rc = run(c, &e);
	if (rc < 0 && !c->o)
		return kn_run_failed(r, c->job, &e);
	if (r->signo)
		return KN_EXIT_SIGNAL + r->signo;
	return c->exit_code;
}

int
kn_run_call(struct kn_run *r)
{
	struct call c = { .r = r, .exit_code = KN_EXIT_OURS };
	int rc = go(&c);

	kn_run_close(r);
	knit_job_free(c.job);
	return rc;
}
