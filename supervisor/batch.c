/* supervisor/batch.c: takes lines, and only as many as there is room for; see batch.h.
 */
#include "supervisor/batch.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "supervisor/batch_int.h"
#include "supervisor/batch_keep.h"
#include "supervisor/ledger.h"

/* A "line" that goes on for so long is no batch (/dev/zero): stop reading. */
#define ENDLESS_LINE (1ull << 30)

static void pump(struct kn_batch *b);

void
kn_batch_fail(struct kn_batch *b, const struct kn_err *e)
{
	if (!b->failed)
		b->error = *e;
	b->failed = true;
	/* What was accepted still runs and is answered; what was only read is not. */
	b->eof = true;
	b->at = b->end;
	b->discarding = false;
}

/* ---- lines ---- */

static void
one_line(struct kn_batch *b, const char *text, size_t n)
{
	struct kn_err e = { 0 };
	struct kn_line l;

	b->line_no++;
	if (b->line_no == 1 && n >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0) {
		text += 3; /* a byte order mark is no part of the first line */
		n -= 3;
	}
	if (kn_line_parse(&b->rules, text, n, b->line_no, &l, &e) < 0)
		kn_batch_invalid(b, l.id, e.msg);
	else if (l.kind == KN_LINE_CANCEL)
		kn_batch_cancel(b, l.id);
	else if (l.kind == KN_LINE_TASK)
		kn_batch_accept(b, &l);
	kn_line_fini(&l);
}

static void
over_long(struct kn_batch *b)
{
	b->line_no++;
	b->discarding = false;
	b->line_discarded = 0;
	kn_batch_invalid(b, NULL, "line is longer than 16 MiB");
}

static void
compact(struct kn_batch *b)
{
	if (b->at == b->end && b->room > 4 * KN_BATCH_CHUNK) {
		free(b->buf); /* one long line must not be paid for ever */
		b->buf = NULL;
		b->room = 0;
	}
	if (b->at > 0 && b->buf)
		memmove(b->buf, b->buf + b->at, b->end - b->at);
	b->end -= b->at;
	b->scanned = b->scanned > b->at ? b->scanned - b->at : 0;
	b->at = 0;
}

/* Use up one buffered line. False if there is none that is complete. */
static bool
next_line(struct kn_batch *b)
{
	size_t from = b->scanned > b->at ? b->scanned : b->at;
	char *nl = b->end > from ? memchr(b->buf + from, '\n', b->end - from) : NULL;
	size_t start = b->at;

	if (!nl && !(b->eof && (b->end > b->at || b->discarding))) {
		b->scanned = b->end;
		if (b->discarding || b->end - b->at > KN_LINE_BYTES_MAX) {
			b->discarding = true;
			b->line_discarded += b->end - b->at;
			b->at = b->end;
		}
		return false;
	}
	b->at = nl ? (size_t)(nl - b->buf) + 1 : b->end;
	if (b->discarding || b->at - start > KN_LINE_BYTES_MAX)
		over_long(b);
	else
		one_line(b, b->buf + start, b->at - start - (nl != NULL));
	return true;
}

static int
make_room(struct kn_batch *b)
{
	size_t room = b->room ? b->room : KN_BATCH_CHUNK;
	char *p;

	compact(b);
	while (room - b->end < KN_BATCH_CHUNK / 2)
		room *= 2;
	if (room == b->room && b->buf)
		return 0;
	p = realloc(b->buf, room);
	if (!p)
		return -1;
	b->buf = p;
	b->room = room;
	return 0;
}

static int
no_memory(struct kn_batch *b)
{
	struct kn_err e = { 0 };

	kn_err_set(&e, KN_EK_HOST, "read tasks: out of memory");
	kn_batch_fail(b, &e);
	return -1;
}

/* n bytes were put behind b->end. */
static int
came(struct kn_batch *b, size_t n)
{
	struct kn_err e = { 0 };

	b->end += n;
	if (b->line_discarded > ENDLESS_LINE) {
		kn_err_set(&e, KN_EK_USAGE,
		    "read tasks: line %llu does not end within 1 GiB",
		    (unsigned long long)b->line_no + 1);
		kn_batch_fail(b, &e);
	}
	pump(b);
	return b->failed ? -1 : 0;
}

int
kn_batch_feed(struct kn_batch *b, const void *bytes, size_t n)
{
	const char *p = bytes;

	while (n > 0 && !b->eof && !b->stopping) {
		size_t most;

		if (make_room(b) < 0)
			return no_memory(b);
		most = b->room - b->end < n ? b->room - b->end : n;
		memcpy(b->buf + b->end, p, most);
		p += most;
		n -= most;
		if (came(b, most) < 0)
			return -1;
	}
	return b->failed ? -1 : 0;
}

int
kn_batch_read(struct kn_batch *b, int fd)
{
	struct kn_err e = { 0 };
	ssize_t r;

	if (b->eof || b->stopping)
		return -1;
	if (make_room(b) < 0)
		return no_memory(b);
	r = read(fd, b->buf + b->end, b->room - b->end);
	if (r < 0 && (errno == EINTR || errno == EAGAIN))
		return 0;
	if (r > 0)
		return came(b, (size_t)r) < 0 ? -1 : 1;
	if (r < 0) {
		kn_err_sys(&e, KN_EK_USAGE, "read tasks");
		kn_batch_fail(b, &e);
	}
	kn_batch_no_more(b);
	return -1;
}

void
kn_batch_no_more(struct kn_batch *b)
{
	b->eof = true;
	pump(b);
}

/* ---- pace ---- */

static bool
may_accept(const struct kn_batch *b)
{
	return !b->stopping && !b->failed && !b->ready.head &&
	       b->live_n < KN_BATCH_LIVE_MAX &&
	       (b->live_bytes < KN_BATCH_LIVE_BYTES || b->live_n == 0) &&
	       b->ops.room(b->ops.ctx);
}

/* Results that nobody takes must not pile up: while the output is full nothing is
 * begun, not even one at a time (thousands may be ready at once, when what all of them
 * come after has ended), and no more at one time than there is room for if each hands
 * back all it may. */
static bool
may_begin(const struct kn_batch *b)
{
	return b->stopping ||
	       (b->ops.room(b->ops.ctx) &&
		   (b->running_n == 0 || b->running_bytes < KN_BATCH_RESULT_BYTES));
}

/* Hand ready tasks over until there is no more room. */
static void
submit_ready(struct kn_batch *b)
{
	struct kn_node *n;

	while (!b->full && may_begin(b) && (n = kn_batch_pop_ready(b))) {
		struct kn_err e = { 0 };
		enum kn_verdict v = KN_V_TOO_LARGE;
		int r;

		if (b->stopping) {
			kn_batch_end(b, n, NULL, KN_V_CANCELLED, "stopped");
			continue;
		}
		r = kn_batch_files(b, n, &v, &e);
		if (r == 0) {
			/* Set before: an answer may come from inside the call. */
			kn_batch_running(b, n);
			v = KN_V_INTERNAL;
			r = b->ops.submit(b->ops.ctx, n->task, n, &v, &e);
			if (r == 0)
				continue;
			kn_batch_not_running(b, n);
			n->state = KN_NODE_READY;
		}
		if (r > 0) {
			b->full = true; /* until an answer, or room() */
			kn_batch_unpop(b, n);
		} else {
			kn_batch_end(b, n, NULL, v, e.msg);
		}
	}
}

static void
pump_once(struct kn_batch *b)
{
	kn_batch_skip_doomed(b);
	submit_ready(b);
	while (may_accept(b) && next_line(b)) {
		kn_batch_skip_doomed(b);
		submit_ready(b);
	}
	kn_batch_skip_doomed(b);
}

/* Do whatever can be done now. Callbacks that come from inside only ask for another
 * round, so that nothing is changed under somebody's feet. */
static void
pump(struct kn_batch *b)
{
	b->again = true;
	if (b->pumping)
		return;
	b->pumping = true;
	while (b->again) {
		b->again = false;
		pump_once(b);
	}
	b->pumping = false;
}

void
kn_batch_answer(struct kn_batch *b, struct kn_node *n, struct kn_outcome *o)
{
	kn_batch_not_running(b, n);
	b->full = false;
	if (o->verdict == KN_V_CANCELLED && !n->cancel_asked)
		b->stopping = true; /* a signal: nobody here asked for it */
	kn_batch_end(b, n, o, o->verdict, NULL);
	if (b->stopping)
		kn_batch_end_all(b, KN_V_CANCELLED, "stopped before it began");
	pump(b);
}

bool
kn_batch_wants(const struct kn_batch *b)
{
	return !b->eof && may_accept(b);
}

/* ---- life ---- */

int
kn_batch_open(const struct kn_batch_options *o, const struct kn_batch_ops *ops,
    struct kn_batch **out, struct kn_err *e)
{
	struct kn_batch *b = calloc(1, sizeof *b);

	if (!b)
		return kn_err_set(e, KN_EK_HOST, "out of memory");
	b->o = *o;
	b->ops = *ops;
	b->ready.tail = &b->ready.head;
	b->doomed.tail = &b->doomed.head;
	b->rules = (struct kn_line_rules){
		.policy = o->policy,
		.env = o->env,
		.env_n = o->env_n,
		.cwd = o->cwd,
		.retries = o->retries,
	};
	if (!o->keep_dir && !o->swept)
		kn_keep_sweep();
	if (kn_ledger_open(&b->ledger, e) < 0 ||
	    kn_keep_open(o->keep_dir, &b->keep, e) < 0) {
		kn_batch_close(b);
		return -1;
	}
	*out = b;
	return 0;
}

void
kn_batch_wake(struct kn_batch *b)
{
	b->full = false;
	pump(b);
}

void
kn_batch_stop(struct kn_batch *b)
{
	if (b->stopping)
		return;
	b->stopping = true;
	kn_batch_end_all(b, KN_V_CANCELLED, "stopped before it began");
	pump(b);
}

void
kn_batch_finish(struct kn_batch *b, enum kn_verdict v, const char *why)
{
	b->stopping = true;
	kn_batch_end_all(b, v, why);
	kn_batch_skip_doomed(b);
}

const struct kn_err *
kn_batch_error(const struct kn_batch *b)
{
	return b->failed ? &b->error : NULL;
}

void
kn_batch_close(struct kn_batch *b)
{
	if (!b)
		return;
	if (b->ledger) {
		kn_batch_finish(b, KN_V_CANCELLED, "stopped");
		kn_batch_drop_running(b);
	}
	kn_batch_files_close(b);
	kn_keep_close(b->keep);
	kn_ledger_close(b->ledger);
	free(b->buf);
	free(b);
}

void
kn_batch_count(const struct kn_batch *b, struct kn_batch_counts *out)
{
	*out = (struct kn_batch_counts){
		.accepted = b->seq,
		.answered = b->answered,
		.waiting = b->live_n - b->running_n,
		.running = b->running_n,
		.held = b->live_bytes + (b->end - b->at),
		.eof = b->eof && !b->failed && b->at == b->end && !b->discarding,
		.over = b->live_n == 0 &&
			(b->stopping || (b->eof && b->at == b->end && !b->discarding)),
	};
}
