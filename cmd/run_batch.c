/* cmd/run_batch.c: many tasks: lines in, result lines out, progress and a table. */
#include <errno.h>
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

enum { PROGRESS_MS = 250 };

struct batch {
	struct kn_run *r;
	struct knit_batch *lines;
	struct kn_out out;
	struct kn_progress progress;
	unsigned json; /* enum knit_json_flag */
	int in;
	bool calls, reading, stopped, out_of_memory, failed;
	struct kn_err reading_failed; /* kind NONE: it did not */
};

/* ---- stopping ---- */

/* Take nothing more; what runs has the policy's grace. */
static void
stop(struct batch *b)
{
	if (b->stopped)
		return;
	b->stopped = true;
	kn_run_stop(b->r, false, 0);
	knit_batch_stop(b->lines);
}

/* ---- results ---- */

/* Results that wait in order fill the output as well, and the one they wait for may be
 * ready: if nothing runs it has to begin. */
static void
pace(struct batch *b)
{
	struct knit_batch_counts c = { .size = sizeof c };
	bool room = kn_out_room(&b->out);

	if (!room && kn_out_only_held(&b->out) &&
	    knit_batch_count(b->lines, &c, NULL) == 0)
		room = c.running == 0;
	knit_batch_pause(b->lines, !room);
}

static void
on_result(void *ctx, const struct knit_batch_result *res)
{
	struct batch *b = ctx;
	size_t n = 0;
	char *text = knit_batch_json(b->lines, res, b->json, &n);

	kn_progress_count(&b->progress, res->outcome);
	if (!text) {
		b->out_of_memory = true;
		stop(b);
		return;
	}
	if (b->json & KNIT_JSON_ASCII) /* both on the terminal: not into the line */
		kn_progress_clear(&b->progress);
	kn_out_put(&b->out, res->seq, text, n);
	pace(b);
	if (b->out.broken || (b->r->opt.fail_fast && res->outcome->verdict != KNIT_OK))
		stop(b);
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
	b->in = kn_opt_open("--tasks", path, e);
	return b->in < 0 ? -1 : 0;
}

static int
open_lines(struct batch *b, struct kn_err *e)
{
	struct knit_error err = KNIT_ERROR_NONE;
	struct knit_batch_options o;

	knit_batch_options_init(&o, sizeof o);
	o.cwd = b->r->opt.workdir;
	o.keep_dir = b->r->opt.keep_dir;
	o.result = on_result;
	o.ctx = b;
	if (knit_batch_open(b->r->pool, &o, &b->lines, &err) == 0)
		return 0;
	kn_say_take(e, &err);
	if (!b->r->opt.keep_dir)
		return -1;
	kn_opt_hint_file(e, b->r->opt.keep_dir);
	return kn_err_wrap(e, "--keep");
}

static int
open_all(struct batch *b, struct kn_err *e)
{
	struct kn_run *r = b->r;

	if (kn_run_hold_signals(r, e) < 0 ||
	    kn_out_open(&b->out, STDOUT_FILENO, r->opt.ordered, e) < 0)
		return -1;
	r->how.cwd = r->opt.workdir; /* of a module; tasks have their own */
	if (kn_run_open(r, e) < 0)
		return -1;
	if (knit_pool_remark(r->pool)[0] && !r->voice.quiet)
		kn_say(&r->voice, "%s", knit_pool_remark(r->pool));
	return open_lines(b, e);
}

/* No more lines can be taken. */
static void
reading_fails(struct batch *b, const struct knit_error *err)
{
	b->reading = false;
	if (err->kind == KNIT_E_NONE || b->reading_failed.kind != KN_EK_NONE)
		return;
	kn_say_take(&b->reading_failed, err);
	kn_err_wrap(&b->reading_failed, "--tasks %s", b->r->opt.tasks);
}

static void
read_lines(struct batch *b)
{
	struct knit_error err = KNIT_ERROR_NONE;

	if (b->reading && knit_batch_read(b->lines, b->in, &err) < 0)
		reading_fails(b, &err);
}

static void
work(struct batch *b)
{
	struct knit_error err = KNIT_ERROR_NONE;

	kn_out_cork(&b->out, true);
	if (knit_batch_work(b->lines, &err) < 0)
		reading_fails(b, &err);
	kn_out_cork(&b->out, false);
	if (b->out.broken)
		stop(b);
}

/* What there is to do, then a wait for more. */
static void
wait_for_all(struct batch *b)
{
	struct pollfd v[2] = {
		{ .fd = -1, .events = POLLIN },
		{ .fd = b->out.fd },
	};
	uint64_t by = 0;
	int events = kn_out_events(&b->out);

	if (b->reading && knit_batch_wants(b->lines))
		v[0].fd = b->in;
	if (events < 0)
		v[1].fd = -1;
	else
		v[1].events = (short)events;
	if (b->progress.line)
		by = b->progress.shown_ns + PROGRESS_MS * KN_MS_NS;
	kn_run_wait(b->r, v, 2, by);
	kn_out_ready(&b->out, v[1].revents);
	if (b->out.broken || b->r->stop_level > 0)
		stop(b);
	if (v[0].revents)
		read_lines(b);
}

/* For the batch a task runs when it is handed over; most of those only lie in the lanes
 * of busy workers. */
static void
show_progress(struct batch *b, const struct knit_batch_counts *c)
{
	struct knit_pool_counts p = { .size = sizeof p };
	uint64_t live = c->waiting + c->running, running;

	if (!b->progress.line ||
	    kn_clock_now() < b->progress.shown_ns + PROGRESS_MS * KN_MS_NS)
		return;
	(void)knit_pool_count(b->r->pool, &p, NULL);
	running = p.running < live ? p.running : live;
	kn_progress_show(&b->progress, running, live - running);
}

/* Until the pool has ended. 0, or -1 with e. */
static int
run(struct batch *b, struct kn_err *e)
{
	struct knit_batch_counts c = { .size = sizeof c };
	struct knit_error err = KNIT_ERROR_NONE;
	bool drained = false, no_more;
	int rc;

	b->reading = true;
	for (;;) {
		rc = knit_pool_wait_end(b->r->pool, 0, &err);
		pace(b);
		work(b);
		if (rc != 0)
			break;
		knit_batch_count(b->lines, &c, NULL);
		no_more = c.ended || b->reading_failed.kind != KN_EK_NONE;
		if (no_more && c.waiting == 0 && !drained) {
			drained = true; /* workers may end while the last task runs */
			knit_pool_drain(b->r->pool, NULL);
			continue;
		}
		show_progress(b, &c);
		wait_for_all(b);
	}
	return rc < 0 ? kn_say_take(e, &err) : 0;
}

static int
summary_report(struct batch *b, const struct knit_pool_counts *c, const char *error)
{
	const struct kn_run *r = b->r;
	char *network = r->report_fd < 0 ? NULL : knit_pool_network(r->pool);
	const struct kn_report_batch sum = {
		.network = network,
		.verdicts = b->progress.verdicts,
		.wall_ms = (kn_clock_now() - b->progress.start_ns) / KN_MS_NS,
		.cpu_ms = b->progress.cpu_us / 1000,
		.workers = c->workers,
		.workers_lost = c->workers_lost,
		.failed_launches = c->failed_launches,
		.doorbell_missed = c->doorbell_missed,
		.pool = r->pool,
		.policy = knit_policy_hash(r->policy),
		.signal = r->signo,
		.error = error,
		.calls = b->calls,
		.ascii = (b->json & KNIT_JSON_ASCII) != 0,
	};
	size_t n = 0;
	char *text;

	if (r->report_fd < 0)
		return 0;
	text = kn_report_summary(&sum, &n);
	free(network);
	return kn_run_report(b->r, text, n);
}

static int
exit_of(const struct batch *b)
{
	if (b->out.broken == EPIPE)
		return KN_EXIT_SIGNAL + SIGPIPE;
	if (b->r->signo)
		return KN_EXIT_SIGNAL + b->r->signo;
	if (b->failed || b->out.broken || b->out_of_memory)
		return KN_EXIT_OURS;
	return kn_progress_total(&b->progress) == b->progress.verdicts[KNIT_OK]
		   ? KN_EXIT_OK
		   : KN_EXIT_NOT_ALL_OK;
}

/* The last lines may wait for their reader: by now nothing runs any more. */
static void
finish_output(struct batch *b)
{
	if (kn_out_finish(&b->out) == 0 || b->out.broken == EPIPE)
		return;
	kn_progress_clear(&b->progress);
	kn_say(&b->r->voice, "write results to stdout: %s", strerror(b->out.broken));
}

/* Who stops a batch sees of its lines only those that were accepted. */
static void
tell_unread(const struct batch *b, const struct knit_batch_counts *c)
{
	if (!c->ended && !b->out.broken && !b->r->voice.quiet)
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
	struct knit_pool_counts c = { .size = sizeof c };
	struct knit_batch_counts lines = { .size = sizeof lines };

	if (open_input(b, &e) < 0)
		return kn_say_error(&r->voice, &e);
	b->failed = open_all(b, &e) < 0 || run(b, &e) < 0;
	if (!b->failed && b->reading_failed.kind != KN_EK_NONE) {
		e = b->reading_failed;
		b->failed = true;
	}
	lines.ended = knit_batch_count(b->lines, &lines, NULL) < 0 || lines.ended;
	(void)knit_pool_count(r->pool, &c, NULL);
	kn_progress_clear(&b->progress);
	if (b->failed)
		kn_say_error(&r->voice, &e);
	if (b->out_of_memory)
		kn_say(&r->voice, "results: out of memory");
	if (summary_report(b, &c, b->failed ? e.msg : "") < 0)
		b->failed = true;
	knit_batch_close(b->lines);
	b->lines = NULL;
	kn_run_close(r);
	kn_run_free_signals(r); /* a reader that never comes is the caller's to end */
	finish_output(b);
	if (!r->voice.quiet && !b->failed)
		kn_progress_summary(&b->progress, &c);
	if (!b->failed)
		tell_unread(b, &lines);
	return exit_of(b);
}

int
kn_run_batch(struct kn_run *r)
{
	struct batch b = { .r = r, .in = -1, .out = { .fd = -1 } };
	char *kind;
	int rc;

	b.json = KNIT_JSON_STREAMS | KNIT_JSON_FILES;
	if (isatty(STDOUT_FILENO))
		b.json |= KNIT_JSON_ASCII;
	kind = knit_policy_word(r->policy, "/pool/kind");
	b.calls = kind && strcmp(kind, "module") == 0;
	free(kind);
	kn_progress_open(&b.progress, r->voice.quiet, r->voice.json, b.calls);
	rc = go(&b);
	kn_out_close(&b.out);
	if (b.in > STDERR_FILENO)
		kn_fd_close(&b.in);
	return rc;
}
