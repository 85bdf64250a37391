/* cmd/run_call.c: one call of a module: its value to stdout, its end our exit status.
 *
 * Text and bytes come out as they are (on a terminal with a newline after text that has
 * none, or the prompt would stand behind it); everything else as JSON with a newline.
 * An error that the task returned is told with all its causes, and is exit status 1.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd/report.h"
#include "cmd/run_int.h"
#include "ipc/fd.h"
#include "sandbox/policy.h"
#include "supervisor/value.h"

struct call {
	struct kn_run *r;
	struct kn_sup *sup;
	struct kn_value arg;
	bool answered;
	int exit_code;
};

/* ---- the answer ---- */

static int
print_value(const struct call *c, const struct kn_value *v)
{
	char *text;
	int rc;

	if (v->type == KN_TYPE_TEXT || v->type == KN_TYPE_BYTES) {
		rc = v->n ? kn_say_out(&c->r->voice, v->bytes, v->n) : 0;
		if (rc == 0 && v->type == KN_TYPE_TEXT && v->n &&
		    ((const char *)v->bytes)[v->n - 1] != '\n' && isatty(STDOUT_FILENO))
			rc = kn_say_out(&c->r->voice, "\n", 1);
		return rc;
	}
	text = kn_value_to_text(v);
	if (!text) {
		kn_say(&c->r->voice, "print the value: out of memory");
		return -1;
	}
	rc = kn_say_out(&c->r->voice, text, strlen(text)) < 0 ||
		     kn_say_out(&c->r->voice, "\n", 1) < 0
		 ? -1
		 : 0;
	free(text);
	return rc;
}

/* One line for each cause, and its detail. */
static void
tell_error(const struct call *c, const struct kn_value *v)
{
	struct kn_call_error e;

	if (kn_call_error_decode(v->bytes, v->n, &e) < 0)
		return;
	for (uint32_t i = 0; i < e.n; i++) {
		kn_say(&c->r->voice, "%s%s%s%s", i > 0 ? "because of " : "",
		    e.link[i].name,
		    e.link[i].name[0] && e.link[i].message[0] ? ": " : "",
		    e.link[i].message);
		if (e.link[i].detail[0])
			kn_say(&c->r->voice, "  %s", e.link[i].detail);
	}
}

static int
exit_of(const struct kn_outcome *o)
{
	if (o->verdict == KN_V_OK)
		return KN_EXIT_OK;
	if (o->verdict ==
	    KN_V_EXIT) /* its own error, or an exit() in place of a value */
		return o->exit_code > 0 ? o->exit_code : 1;
	return kn_run_exit_of(o);
}

static int
write_report(const struct call *c, const struct kn_outcome *o)
{
	struct kn_report how = { .calls = true };
	size_t n = 0;
	char *text;

	if (c->r->report_fd < 0)
		return 0;
	how.policy = kn_policy_hash(c->r->policy);
	how.ascii = c->r->report_fd == STDOUT_FILENO && isatty(STDOUT_FILENO);
	text = kn_report_result(&how, "call", 0, o, &n);
	return kn_run_report(c->r, text, n);
}

static void
on_answer(void *ctx, struct kn_task *t, struct kn_outcome *o)
{
	struct call *c = ctx;

	c->answered = true;
	c->exit_code = exit_of(o);
	if (o->verdict == KN_V_OK) {
		if (print_value(c, &o->value) < 0)
			c->exit_code = KN_EXIT_OURS;
	} else if (o->value.type == KN_TYPE_ERROR) {
		tell_error(c, &o->value);
	} else if (!c->r->voice.quiet || c->exit_code == KN_EXIT_OURS) {
		kn_say(&c->r->voice, "%s%s%s", kn_verdict_name(o->verdict),
		    o->error[0] ? ": " : "", o->error);
	}
	if (write_report(c, o) < 0)
		c->exit_code = KN_EXIT_OURS;
	kn_task_free(t);
}

static void
on_room(void *ctx)
{
	(void)ctx; /* there is one task, and it is in */
}

static int
failed(const struct call *c, const struct kn_err *e)
{
	struct kn_outcome o = {
		.verdict = KN_V_LAUNCH_FAILED, .exit_code = -1, .worker = -1
	};

	kn_say_error(&c->r->voice, e);
	strncpy(o.error, e->msg, sizeof o.error - 1);
	(void)write_report(c, &o);
	return KN_EXIT_OURS;
}

/* ---- the call ---- */

static int
read_file(struct call *c, const char *path, struct kn_err *e)
{
	uint64_t max = c->r->policy->payload_max;
	KN_OWN_FD int own = -1;
	int fd = STDIN_FILENO;
	char *bytes = NULL;

	if (strcmp(path, "-") != 0) {
		own = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
		if (own < 0)
			return kn_err_sys(e, KN_EK_USAGE, "--input: open %s", path);
		fd = own;
	}
	/* One byte more: the supervisor says that it is too large, with its code. */
	if (kn_fd_read_all(
		fd, max ? (size_t)max + 1 : SIZE_MAX / 2, &bytes, &c->arg.n, e) < 0)
		return kn_err_wrap(e, "--input: %s", path);
	c->arg.type = KN_TYPE_BYTES;
	c->arg.bytes = bytes;
	return 0;
}

static int
read_input(struct call *c, struct kn_err *e)
{
	const char *v = c->r->opt.input, *why;

	c->arg.type = KN_TYPE_NULL;
	if (!v)
		return 0;
	if (v[0] == '@' && v[1] != '@')
		return read_file(c, v + 1, e);
	if (v[0] == '@')
		v++;
	return kn_value_from_text(v, &c->arg, &why) < 0
		   ? kn_err_set(e, KN_EK_USAGE, "--input: %s", why)
		   : 0;
}

static int
submit(struct call *c, struct kn_err *e)
{
	const struct kn_task_ask nothing = { 0 };
	struct kn_task *t = kn_task_new();

	if (t) {
		t->id = strdup("call");
		t->call.name = strdup(c->r->opt.call);
	}
	if (!t || !t->id || !t->call.name) {
		kn_task_free(t);
		return kn_err_set(e, KN_EK_HOST, "out of memory");
	}
	t->call.arg = c->arg;
	c->arg = (struct kn_value){ 0 };
	t->retries = c->r->policy->pool.retries;
	if (kn_policy_tighten(c->r->policy, &nothing, &t->limits, &t->timeouts, e) <
		0 ||
	    kn_sup_submit(c->sup, t, e) != 0) {
		kn_task_free(t);
		return -1;
	}
	kn_sup_drain(c->sup);
	return 0;
}

static int
go(struct call *c)
{
	struct kn_run *r = c->r;
	const struct kn_sup_callbacks cb = {
		.ctx = c, .answer = on_answer, .room = on_room
	};
	struct kn_err e = { 0 };
	int signo = 0, rc;

	r->sup.cwd = r->opt.workdir;
	r->sup.workers = kn_policy_named(r->policy, "/pool/workers") ? 0 : 1;
	if (read_input(c, &e) < 0)
		return kn_say_error(&r->voice, &e);
	kn_run_hold_signals(r); /* to the end: nothing waits after it */
	if (kn_sup_open(r->policy, &r->host, &r->sup, &cb, &c->sup, &e) < 0)
		return failed(c, &e);
	kn_run_tell_layers(r, kn_sup_layers(c->sup));
	if (submit(c, &e) < 0)
		return failed(c, &e);
	rc = kn_sup_run(c->sup, &signo, &e);
	if (rc < 0 && !c->answered)
		return failed(c, &e);
	if (signo)
		return KN_EXIT_SIGNAL + signo;
	return c->exit_code;
}

int
kn_run_call(struct kn_run *r)
{
	struct call c = { .r = r, .exit_code = KN_EXIT_OURS };
	int rc = go(&c);

	kn_sup_close(c.sup);
	kn_value_fini(&c.arg);
	return rc;
}
