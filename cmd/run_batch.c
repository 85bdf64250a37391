/* cmd/run_batch.c: many tasks: lines in, result lines out, progress and a table. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd/out.h"
#include "cmd/progress.h"
#include "cmd/report.h"
#include "cmd/run_int.h"
#include "ipc/clock.h"
#include "ipc/fd.h"
#include "sandbox/policy.h"
#include "supervisor/batch.h"

enum { PROGRESS_MS = 250 };

struct batch {
	struct kn_run *r;
	struct kn_sup *sup;
	struct kn_batch *lines;
	struct kn_out out;
	struct kn_progress progress;
	struct kn_report how;
	int in;
	uint32_t workers; /* the most that were ready at one time */
	bool out_of_memory;
};

/* ---- callbacks ---- */

static void
on_result(void *ctx, const struct kn_batch_result *res)
{
	struct batch *b = ctx;
	size_t n = 0;
	char *text = kn_report_result(&b->how, res->id, res->line, res->outcome, &n);

	kn_progress_count(&b->progress, res->outcome);
	if (b->sup) {
		struct kn_sup_counts c;

		kn_sup_count(b->sup, &c);
		if (c.workers > b->workers)
			b->workers = c.workers;
	}
	if (!text) {
		b->out_of_memory = true;
		kn_batch_stop(b->lines);
		return;
	}
	if (b->how.ascii) /* both on the terminal: do not write into the line */
		kn_progress_clear(&b->progress);
	kn_out_put(&b->out, res->seq, text, n);
}

static bool
has_room(void *ctx)
{
	struct batch *b = ctx;

	return kn_out_room(&b->out);
}

static void
on_out_changed(void *ctx)
{
	struct batch *b = ctx;

	if (b->out.broken)
		kn_batch_stop(b->lines);
	else
		kn_batch_wake(b->lines);
}

static void
on_tick(void *ctx)
{
	struct batch *b = ctx;
	struct kn_batch_counts c;
	struct kn_sup_counts s;
	uint64_t live, running;

	/* For the batch a task runs when it is handed over; most of those only lie
	 * in the lanes of busy workers. */
	kn_batch_count(b->lines, &c);
	kn_sup_count(b->sup, &s);
	live = c.waiting + c.running;
	running = s.running < live ? s.running : live;
	kn_progress_show(&b->progress, running, live - running);
}

/* ---- the run ---- */

static int
open_input(struct batch *b, struct kn_err *e)
{
	const char *path = b->r->opt.tasks;

	if (b->r->closed & 1u << STDOUT_FILENO)
		return kn_opt_refuse(e, "send it somewhere: >results.jsonl",
		    "--tasks: stdout is closed, results have no place");
	if (strcmp(path, "-") == 0) {
		if (b->r->closed & 1u << STDIN_FILENO)
			return kn_opt_refuse(
			    e, "give --tasks FILE", "--tasks: stdin is closed");
		b->in = STDIN_FILENO;
		return 0;
	}
	b->in = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	if (b->in < 0)
		return kn_err_sys(e, KN_EK_USAGE, "--tasks: open %s", path);
	return 0;
}

static int
open_all(struct batch *b, struct kn_err *e)
{
	const struct kn_batch_ops ops = {
		.ctx = b, .result = on_result, .room = has_room
	};
	struct kn_run *r = b->r;
	const struct kn_batch_options o = {
		.fd = b->in,
		.policy = r->policy,
		.env = (const char *const *)r->env.v,
		.env_n = r->env.n,
		.cwd = r->opt.workdir,
		.keep_dir = r->opt.keep_dir,
		.retries = r->policy->pool.retries,
		.fail_fast = r->opt.fail_fast,
	};
	struct kn_sup_callbacks cb;

	if (kn_out_open(&b->out, STDOUT_FILENO, r->opt.ordered, e) < 0)
		return -1;
	if (kn_batch_open(&o, &ops, &b->lines, e) < 0)
		return r->opt.keep_dir ? kn_err_wrap(e, "--keep") : -1;
	r->sup.cwd = r->opt.workdir; /* of a module; tasks have their own */
	kn_batch_callbacks(b->lines, &cb);
	if (kn_sup_open(r->policy, &r->host, &r->sup, &cb, &b->sup, e) < 0)
		return -1;
	kn_run_tell_layers(r, kn_sup_layers(b->sup));
	if (kn_sup_remark(b->sup)[0] && !r->voice.quiet)
		kn_say(&r->voice, "%s", kn_sup_remark(b->sup));
	kn_out_attach(&b->out, b->sup, on_out_changed, b);
	if (b->progress.line)
		kn_sup_every(b->sup, PROGRESS_MS, on_tick, b);
	return kn_batch_start(b->lines, b->sup, e);
}

static int
summary_report(
    struct batch *b, const struct kn_sup_counts *c, int signo, const char *error)
{
	const struct kn_report_batch sum = {
		.verdicts = b->progress.verdicts,
		.wall_ms = (kn_clock_now() - b->progress.start_ns) / KN_MS_NS,
		.cpu_ms = b->progress.cpu_us / 1000,
		.workers = b->workers,
		.workers_lost = c->worker_lost,
		.failed_launches = c->failed_launches,
		.doorbell_missed = c->doorbell_missed,
		.layers = b->sup ? kn_sup_layers(b->sup) : NULL,
		.signal = signo,
		.error = error,
	};
	size_t n = 0;
	char *text;

	if (b->r->report_fd < 0)
		return 0;
	text = kn_report_summary(&b->how, &sum, &n);
	return kn_run_report(b->r, text, n);
}

static int
exit_of(const struct batch *b, bool failed, int signo)
{
	if (b->out.broken == EPIPE)
		return KN_EXIT_SIGNAL + SIGPIPE;
	if (signo)
		return KN_EXIT_SIGNAL + signo;
	if (failed || b->out.broken || b->out_of_memory)
		return KN_EXIT_OURS;
	return kn_progress_total(&b->progress) == b->progress.verdicts[KN_V_OK]
		   ? KN_EXIT_OK
		   : KN_EXIT_NOT_ALL_OK;
}

/* The last lines may wait for their reader: by now nothing runs any more. */
static void
finish_output(struct batch *b)
{
	const struct sigaction ignore = { .sa_handler = SIG_IGN };

	sigaction(SIGPIPE, &ignore, NULL); /* the supervisor has put it back */
	if (kn_out_finish(&b->out) == 0 || b->out.broken == EPIPE)
		return;
	kn_progress_clear(&b->progress);
	kn_say(&b->r->voice, "write results to stdout: %s", strerror(b->out.broken));
}

/* Who stops a batch sees of its lines only those that were accepted. */
static void
tell_unread(const struct batch *b, const struct kn_batch_counts *c)
{
	if (!c->eof && !b->out.broken && !b->r->voice.quiet)
		kn_say(&b->r->voice,
		    "stopped before the last line: %llu were taken, the others not "
		    "even read",
		    (unsigned long long)c->accepted);
}

static int
go(struct batch *b)
{
	struct kn_run *r = b->r;
	struct kn_err e = { 0 };
	struct kn_sup_counts c = { 0 };
	struct kn_batch_counts lines = { .eof = true };
	const struct kn_err *reading;
	bool failed = false;
	int signo = 0;

	if (open_input(b, &e) < 0)
		return kn_say_error(&r->voice, &e);
	kn_run_hold_signals(r);
	if (open_all(b, &e) < 0 || kn_sup_run(b->sup, &signo, &e) < 0)
		failed = true;
	if (b->lines) {
		kn_batch_finish(b->lines, failed ? KN_V_LAUNCH_FAILED : KN_V_CANCELLED,
		    failed ? e.msg : "stopped before it began");
		reading = kn_batch_error(b->lines);
		if (reading && !failed) {
			e = *reading;
			kn_err_wrap(&e, "--tasks %s", r->opt.tasks);
			failed = true;
		}
		kn_batch_count(b->lines, &lines);
	}
	if (b->sup)
		kn_sup_count(b->sup, &c);
	kn_progress_clear(&b->progress);
	if (failed)
		kn_say_error(&r->voice, &e);
	if (b->out_of_memory)
		kn_say(&r->voice, "results: out of memory");
	if (summary_report(b, &c, signo, failed ? e.msg : "") < 0)
		failed = true;
	kn_sup_close(b->sup);
	b->sup = NULL;
	kn_batch_close(b->lines);
	b->lines = NULL;
	kn_run_free_signals(r); /* a reader that never comes is the caller's to end */
	finish_output(b);
	if (!r->voice.quiet && !failed)
		kn_progress_summary(&b->progress, &c);
	if (!failed)
		tell_unread(b, &lines);
	return exit_of(b, failed, signo);
}

int
kn_run_batch(struct kn_run *r)
{
	struct batch b = { .r = r, .in = -1, .out = { .fd = -1 } };
	int rc;

	b.how = (struct kn_report){
		.policy = kn_policy_hash(r->policy),
		.ascii = isatty(STDOUT_FILENO),
		.streams = true,
		.contents = true,
		.calls = r->policy->pool.kind == KN_KIND_MODULE,
	};
	kn_progress_open(&b.progress, r->voice.quiet, r->voice.json, b.how.calls);
	rc = go(&b);
	kn_sup_close(b.sup);
	kn_batch_close(b.lines);
	kn_out_close(&b.out);
	if (b.in > STDERR_FILENO)
		kn_fd_close(&b.in);
	return rc;
}
