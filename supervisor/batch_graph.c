/* supervisor/batch_graph.c: the tasks that are accepted and not answered: who waits
 * for whom, what their ends mean for the others.
 *
 * What has ended lives on only in the ledger, as one byte per id.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "supervisor/batch_int.h"
#include "supervisor/ledger.h"

/* Ledger states: 1 accepted and not ended, 2 + verdict ended. */
enum { LEDGER_LIVE = 1, LEDGER_ENDED = 2 };
/* What a worker hands over of one task, at most (sandbox/launch_boot.c). */
enum { FILES_BYTES = 64 << 20 };
/* A call's result is written out when it comes, and most are small. */
enum { CALL_BYTES = 64 << 10 };

/* ---- ids ---- */

static struct kn_node **
bucket(struct kn_batch *b, const char *id)
{
	uint32_t h = 2166136261u;

	for (; *id; id++)
		h = (h ^ (unsigned char)*id) * 16777619u;
	return &b->buckets[h % KN_BATCH_BUCKETS];
}

static struct kn_node *
find_live(struct kn_batch *b, const char *id)
{
	struct kn_node *n = *bucket(b, id);

	while (n && strcmp(n->line.id, id) != 0)
		n = n->hash_next;
	return n;
}

static uint8_t
look_up(struct kn_batch *b, const char *id)
{
	struct kn_err e = { 0 };
	uint8_t state = KN_LEDGER_UNKNOWN;

	if (kn_ledger_get(b->ledger, id, strlen(id), &state, &e) < 0)
		kn_batch_fail(b, &e);
	return state;
}

static void
remember(struct kn_batch *b, const char *id, uint8_t state)
{
	struct kn_err e = { 0 };

	if (kn_ledger_put(b->ledger, id, strlen(id), state, &e) < 0)
		kn_batch_fail(b, &e);
}

/* A name for a line that has none of its own. */
static char *
line_id(struct kn_batch *b)
{
	char id[64];
	size_t n = (size_t)snprintf(
	    id, sizeof id, "line-%llu", (unsigned long long)b->line_no);

	while (look_up(b, id) != KN_LEDGER_UNKNOWN && n + 1 < sizeof id) {
		id[n++] = '+';
		id[n] = '\0';
	}
	return strdup(id);
}

/* ---- nodes ---- */

static void
unref(struct kn_node *n)
{
	if (n->refs > 0 || n->state != KN_NODE_ENDED)
		return;
	kn_line_fini(&n->line);
	free(n->then);
	free(n->doom);
	free(n);
}

static void
queue(struct kn_node_queue *q, struct kn_node *n)
{
	n->refs++;
	n->queue_next = NULL;
	*q->tail = n;
	q->tail = &n->queue_next;
}

static struct kn_node *
unqueue(struct kn_node_queue *q)
{
	struct kn_node *n = q->head;

	if (!n)
		return NULL;
	q->head = n->queue_next;
	if (!q->head)
		q->tail = &q->head;
	n->refs--;
	return n;
}

struct kn_node *
kn_batch_pop_ready(struct kn_batch *b)
{
	struct kn_node *n;

	while ((n = unqueue(&b->ready)) && n->state != KN_NODE_READY)
		unref(n); /* cancelled while it was queued */
	return n;
}

void
kn_batch_unpop(struct kn_batch *b, struct kn_node *n)
{
	n->refs++;
	n->queue_next = b->ready.head;
	if (!b->ready.head)
		b->ready.tail = &n->queue_next;
	b->ready.head = n;
}

/* Of a stream without a cap we assume no more than of files. */
static uint64_t
at_most(uint64_t bytes)
{
	return bytes < FILES_BYTES ? bytes : FILES_BYTES;
}

void
kn_batch_running(struct kn_batch *b, struct kn_node *n)
{
	const struct kn_task *t = n->task;

	n->state = KN_NODE_RUNNING;
	n->result_bytes = at_most(t->limits.stdout_bytes) +
			  at_most(t->limits.stderr_bytes) +
			  (t->collect_n ? FILES_BYTES : 0);
	if (t->call.name)
		n->result_bytes = CALL_BYTES + t->call.arg.n;
	b->running_n++;
	b->running_bytes += n->result_bytes;
}

void
kn_batch_not_running(struct kn_batch *b, struct kn_node *n)
{
	b->running_n--;
	b->running_bytes -= n->result_bytes;
}

static void
link_live(struct kn_batch *b, struct kn_node *n)
{
	struct kn_node **slot = bucket(b, n->line.id);

	n->hash_next = *slot;
	*slot = n;
	n->live_prev = b->live_last;
	if (b->live_last)
		b->live_last->live_next = n;
	else
		b->live_first = n;
	b->live_last = n;
	b->live_n++;
	b->live_bytes += n->line.bytes;
}

static void
unlink_live(struct kn_batch *b, struct kn_node *n)
{
	struct kn_node **slot = bucket(b, n->line.id);

	while (*slot != n)
		slot = &(*slot)->hash_next;
	*slot = n->hash_next;
	if (n->live_prev)
		n->live_prev->live_next = n->live_next;
	else
		b->live_first = n->live_next;
	if (n->live_next)
		n->live_next->live_prev = n->live_prev;
	else
		b->live_last = n->live_prev;
	b->live_n--;
	b->live_bytes -= n->line.bytes;
}

/* ---- ends ---- */

static void
tell(struct kn_batch *b, const char *id, uint64_t seq, uint64_t line_no,
    struct kn_outcome *o)
{
	const struct kn_batch_result r = {
		.id = id,
		.seq = seq,
		.line = o->verdict == KN_V_INVALID ? line_no : 0,
		.outcome = o,
	};

	b->answered++;
	b->ops.result(b->ops.ctx, &r);
}

static void
outcome_of(struct kn_outcome *o, enum kn_verdict v, const char *why)
{
	*o = (struct kn_outcome){ .verdict = v, .exit_code = -1, .worker = -1 };
	snprintf(o->error, sizeof o->error, "%s", why);
}

void
kn_batch_invalid(struct kn_batch *b, const char *id, const char *why)
{
	struct kn_outcome o;
	char *name;

	/* A line that repeats an id must not look like that id's answer. */
	if (id && look_up(b, id) == KN_LEDGER_UNKNOWN)
		name = strdup(id);
	else
		name = line_id(b);
	if (!name) {
		struct kn_err e;

		kn_err_set(&e, KN_EK_HOST, "read tasks: out of memory");
		kn_batch_fail(b, &e);
		return;
	}
	remember(b, name, LEDGER_ENDED + KN_V_INVALID);
	outcome_of(&o, KN_V_INVALID, why);
	tell(b, name, b->seq++, b->line_no, &o);
	free(name);
}

static void
doom(struct kn_batch *b, struct kn_node *n, const char *after, enum kn_verdict v)
{
	char shown[96], text[200];

	kn_err_printable(shown, sizeof shown, after, (int)strlen(after));
	snprintf(text, sizeof text, "comes after %s, which ended: %s", shown,
	    kn_verdict_name(v));
	n->doom = strdup(text);
	n->state = KN_NODE_DOOMED;
	queue(&b->doomed, n);
}

static void
release_followers(struct kn_batch *b, struct kn_node *n, enum kn_verdict v)
{
	for (size_t i = 0; i < n->then_n; i++) {
		struct kn_node *next = n->then[i];

		next->refs--;
		if (next->state == KN_NODE_WAITING && v != KN_V_OK) {
			doom(b, next, n->line.id, v);
		} else if (next->state == KN_NODE_WAITING && --next->pending == 0) {
			next->state = KN_NODE_READY;
			queue(&b->ready, next);
		}
		unref(next);
	}
	n->then_n = 0;
}

void
kn_batch_end(struct kn_batch *b, struct kn_node *n, struct kn_outcome *o,
    enum kn_verdict v, const char *why)
{
	struct kn_outcome own;

	if (!o) {
		outcome_of(&own, v, why);
		o = &own;
	} else {
		kn_batch_store(b, n, o);
	}
	n->state = KN_NODE_ENDED;
	n->refs++; /* until the end of this function */
	remember(b, n->line.id, (uint8_t)(LEDGER_ENDED + v));
	unlink_live(b, n);
	release_followers(b, n, v);
	tell(b, n->line.id, n->seq, n->line_no, o);
	kn_task_free(n->task);
	n->task = NULL;
	n->refs--;
	unref(n);
}

void
kn_batch_skip_doomed(struct kn_batch *b)
{
	struct kn_node *n;

	while ((n = unqueue(&b->doomed))) {
		if (n->state == KN_NODE_DOOMED)
			kn_batch_end(b, n, NULL, KN_V_SKIPPED,
			    n->doom ? n->doom : "comes after a failed task");
		else
			unref(n);
	}
}

void
kn_batch_end_all(struct kn_batch *b, enum kn_verdict v, const char *why)
{
	struct kn_node *n = b->live_first;

	while (n) {
		if (n->state == KN_NODE_RUNNING) {
			n = n->live_next;
			continue;
		}
		kn_batch_end(b, n, NULL, v, why);
		n = b->live_first; /* anything may have changed */
	}
	/* Those that ended while they were queued for room: after a stop nobody asks
	 * the queue again. */
	n = kn_batch_pop_ready(b);
	if (n)
		kn_batch_unpop(b, n);
}

void
kn_batch_drop_running(struct kn_batch *b)
{
	struct kn_node *n;

	while ((n = b->live_first)) {
		b->ops.drop(b->ops.ctx, n->task);
		n->task = NULL;
		n->state = KN_NODE_ENDED;
		kn_batch_not_running(b, n);
		unlink_live(b, n);
		n->refs++;
		release_followers(b, n, KN_V_CANCELLED);
		n->refs--;
		unref(n);
	}
}

/* ---- accepting ---- */

static int
add_follower(struct kn_node *before, struct kn_node *n)
{
	if (before->then_n == before->then_room) {
		size_t room = before->then_room ? before->then_room * 2 : 4;
		struct kn_node **v = realloc(before->then, room * sizeof(*v));

		if (!v)
			return -1;
		before->then = v;
		before->then_room = room;
	}
	before->then[before->then_n++] = n;
	n->refs++;
	n->pending++;
	return 0;
}

/* Every id of `after` must have been seen. False: the line was answered as invalid. */
static bool
check_after(struct kn_batch *b, const struct kn_line *l)
{
	char why[300], shown[128];

	for (size_t i = 0; i < l->after_n; i++) {
		if (look_up(b, l->after[i]) != KN_LEDGER_UNKNOWN)
			continue;
		kn_err_printable(
		    shown, sizeof shown, l->after[i], (int)strlen(l->after[i]));
		snprintf(why, sizeof why,
		    "/after/%zu: no earlier line has the id \"%s\"", i, shown);
		kn_batch_invalid(b, l->id, why);
		return false;
	}
	return true;
}

static void
place(struct kn_batch *b, struct kn_node *n)
{
	for (size_t i = 0; i < n->line.after_n; i++) {
		const char *id = n->line.after[i];
		struct kn_node *before = find_live(b, id);
		uint8_t state = before ? LEDGER_LIVE : look_up(b, id);

		if (before && before != n) {
			if (add_follower(before, n) < 0)
				doom(b, n, id, KN_V_INTERNAL);
		} else if (state != LEDGER_ENDED + KN_V_OK) {
			doom(b, n, id,
			    state >= LEDGER_ENDED
				? (enum kn_verdict)(state - LEDGER_ENDED)
				: KN_V_INTERNAL);
		}
		if (n->state == KN_NODE_DOOMED)
			return;
	}
	if (n->pending == 0) {
		n->state = KN_NODE_READY;
		queue(&b->ready, n);
	}
}

void
kn_batch_accept(struct kn_batch *b, struct kn_line *l)
{
	struct kn_node *n;
	char why[200], shown[128];

	if (l->id && look_up(b, l->id) != KN_LEDGER_UNKNOWN) {
		kn_err_printable(shown, sizeof shown, l->id, (int)strlen(l->id));
		snprintf(why, sizeof why,
		    "/id: \"%s\" was used by an earlier line already", shown);
		kn_batch_invalid(b, l->id, why);
		return;
	}
	if (!check_after(b, l))
		return;
	n = calloc(1, sizeof *n);
	if (n && !l->id)
		l->id = line_id(b);
	if (!n || !l->id || !(l->task->id = strdup(l->id))) {
		free(n);
		kn_batch_invalid(b, NULL, "out of memory");
		return;
	}
	n->line = *l;
	*l = (struct kn_line){ 0 };
	n->task = n->line.task;
	n->line.task = NULL;
	n->task->user = n;
	n->seq = b->seq++;
	n->line_no = b->line_no;
	remember(b, n->line.id, LEDGER_LIVE);
	place(b, n);
	link_live(b, n);
}

void
kn_batch_cancel(struct kn_batch *b, const char *id)
{
	struct kn_node *n = find_live(b, id);
	char why[200], shown[128];

	if (n && n->state == KN_NODE_RUNNING) {
		n->cancel_asked = true;
		b->ops.cancel(b->ops.ctx, n->task);
	} else if (n) {
		kn_batch_end(b, n, NULL, KN_V_CANCELLED, "cancelled before it began");
	} else if (look_up(b, id) == KN_LEDGER_UNKNOWN) {
		kn_err_printable(shown, sizeof shown, id, (int)strlen(id));
		snprintf(why, sizeof why, "/cancel: no earlier line has the id \"%s\"",
		    shown);
		kn_batch_invalid(b, NULL, why);
	}
}
