/* supervisor/view.c: what one worker's slice says -> events.
 *
 * The worker is an adversary. Each field is copied once by ipc/ and held against our
 * own records here: which slots we offered, to which incarnation we handed which task,
 * what was claimed. The first thing that does not fit is named, ends the worker, and
 * nothing more of it is believed.
 */
#include <string.h>

#include "ipc/bell.h"
#include "ipc/clock.h"
#include "supervisor/inner.h"

enum { FILE_LOOKS = 32 };

static struct kn_event
event(const struct kn_wk *w, enum kn_event_type type)
{
	return (struct kn_event){ .type = type,
		.now_ns = kn_clock_now(),
		.worker = w->index,
		.incarnation = w->incarnation };
}

void
kn_view_violation(struct kn_wk *w, const char *field)
{
	if (w->bad)
		return;
	w->bad = field;
	KN_LOG(
	    &w->sup->log, KN_NS_LIFECYCLE, (int)w->index, "violation field=%s", field);
}

/* The task that (task, gen) names, if this incarnation of this worker has it. */
struct kn_entry *
kn_view_entry(struct kn_wk *w, uint32_t task, uint32_t gen)
{
	struct kn_entry *e;

	if (task >= w->sup->task_max)
		return NULL;
	e = &w->sup->entry[task];
	if (e->state != KN_ENTRY_PLACED || e->worker != (int)w->index ||
	    e->incarnation != w->incarnation || e->gen != gen)
		return NULL;
	return e;
}

static void
feed_claim(struct kn_wk *w, uint32_t task, uint32_t gen)
{
	struct kn_event ev = { .type = KN_EV_CLAIMED,
		.now_ns = w->sup->module ? w->sup->step_ns : kn_clock_now(),
		.worker = w->index,
		.incarnation = w->incarnation,
		.task = task,
		.gen = gen };

	if (w->sup->pumping)
		kn_turn_reply(w->sup, &ev);
	else
		kn_turn_feed(w->sup, &ev);
}

static void
tell_claim(struct kn_wk *w, uint32_t task, uint32_t gen)
{
	struct kn_entry *e = kn_view_entry(w, task, gen);

	if (!e || e->claimed)
		return;
	e->claimed = true;
	if (e == w->quiet)
		return;
	if (w->sup->mute && !w->sup->pumping && !w->sup->full_look) {
		if (w->untold_n == KN_UNTOLD_MAX)
			kn_view_tell_claims(w);
		w->untold[w->untold_n++] = (struct kn_untold){ task, gen };
		return;
	}
	feed_claim(w, task, gen);
}

/* Of a single worker's calls the claim is told with the result, which makes one step of
 * the core of two; what has none yet is told before anything depends on it. */
void
kn_view_tell_claims(struct kn_wk *w)
{
	uint32_t n = w->untold_n;

	w->untold_n = 0;
	for (uint32_t i = 0; i < n; i++) {
		const struct kn_untold c = w->untold[i];
		struct kn_entry *e = kn_view_entry(w, c.task, c.gen);

		if (e && e->claimed)
			feed_claim(w, c.task, c.gen);
	}
}

void
kn_view_look_claims(struct kn_wk *w)
{
	uint32_t task[KN_SLOTS], gen[KN_SLOTS], mask;
	bool bad = false;

	if (w->sup->share && w->ready) {
		kn_share_look(w); /* in its own lane there was the ping only */
		return;
	}
	/* Until its stub is up a resident's slice is that of the one before. */
	if (w->sup->module && !w->res.ready)
		return;
	mask = kn_submit_claimed(&w->tx, &w->slice, &bad);
	if (bad)
		kn_view_violation(w, "submit_claimed");
	if (w->unproved & ~mask)
		kn_view_violation(w, "result.claimed");
	w->unproved = 0;
	if (!mask)
		return;
	/* a claimed slot is free: telling of one may fill another anew */
	memcpy(task, w->slot_task, sizeof task);
	memcpy(gen, w->slot_gen, sizeof gen);
	for (; mask; mask &= mask - 1) {
		int slot = __builtin_ctz(mask);

		tell_claim(w, task[slot], gen[slot]);
	}
}

/* Of an only worker's call that is answered the claim is taken for granted for a
 * moment: to look for it takes the line from the worker that claims next. At the next
 * look at claims, which comes before each sleep and before a slot is used again, it is
 * there, or was a lie. */
bool
kn_view_is_claimed(struct kn_wk *w, struct kn_entry *e)
{
	uint32_t bit = 1u << e->slot;

	/* Of many it is one look for several answers. */
	if (w->sup->mute && kn_call_is_few(w->sup) &&
	    (w->tx.offered & ~w->unproved & bit)) {
		w->unproved |= bit;
		e->claimed = true;
		return true;
	}
	w->quiet = e;
	kn_view_look_claims(w);
	w->quiet = NULL;
	return e->claimed;
}

/* The begun word, if it names e. The worker's time is held within what we saw. */
bool
kn_view_begun(struct kn_wk *w, struct kn_entry *e)
{
	uint32_t task, gen;
	uint64_t ns, now;

	if (!kn_control_begun(w->slice.control, &task, &gen, &ns) || task != e->index ||
	    gen != e->gen)
		return false;
	now = kn_clock_now();
	e->begun_ns = ns < e->published_ns ? e->published_ns : ns > now ? now : ns;
	return true;
}

/* ---- results ---- */

/* How many workers served at one time: what a run had, also when asked at its end. */
static void
count_ready(struct kn_sup *s)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < s->worker_n; i++)
		n += s->wk[i].live && s->wk[i].ready;
	if (n > s->most_ready)
		s->most_ready = n;
}

void
kn_view_ready(struct kn_wk *w)
{
	struct kn_event ev = event(w, KN_EV_READY);

	w->ready = w->ready_untold = w->lw.up = true;
	count_ready(w->sup);
	KN_LOG(&w->sup->log, KN_NS_LIFECYCLE, (int)w->index,
	    "ready pid=%d after=%lluus", (int)w->lw.proc.pid,
	    (unsigned long long)((ev.now_ns - w->spawned_ns) / 1000));
	kn_turn_feed(w->sup, &ev);
}

/* It was sent before the answer to the ping. */
void
kn_view_listening(struct kn_wk *w)
{
	if (!w->sup->tell || w->listener.fd >= 0 || w->bad)
		return;
	kn_view_socket(w);
	if (w->listener.fd < 0)
		kn_view_violation(w, "listener.missing");
}

static void
on_pong(struct kn_wk *w, const struct kn_slot_head *h, const uint8_t *bytes)
{
	if (w->ready || h->task != KN_NO_ENTRY || h->gen != w->incarnation)
		kn_view_violation(w, "ping.task");
	else if (h->area != KN_AREA_INLINE || h->payload_len != sizeof w->ping_nonce)
		kn_view_violation(w, "ping.payload_len");
	else if (memcmp(bytes, &w->ping_nonce, sizeof w->ping_nonce) != 0)
		kn_view_violation(w, "ping.payload");
	else if (w->tx.offered & 1u << w->ping_slot)
		kn_view_violation(w, "ping.claimed");
	/* its way out was sent before the answer to the ping */
	if (!w->bad && w->sup->egress && !w->egress)
		kn_view_socket(w);
	if (!w->bad && w->sup->egress && !w->egress)
		kn_view_violation(w, "egress.missing");
	kn_view_listening(w);
	if (!w->bad)
		kn_view_ready(w);
}

static const char *
check_head(const struct kn_slot_head *h)
{
	if (h->flags)
		return "result.flags";
	if (h->type)
		return "result.type";
	if (h->fd_n)
		return "result.fd_n";
	if (h->area != KN_AREA_INLINE)
		return "result.area";
	if (h->payload_off)
		return "result.payload_off";
	if (h->payload_len == 0 || h->payload_len > KN_JOB_RESULT_MAX)
		return "result.payload_len";
	return NULL;
}

static void
hold_times(struct kn_entry *e, struct kn_job_result *r, uint64_t now)
{
	uint64_t low = e->published_ns;

	if (r->begun_ns < low)
		r->begun_ns = low;
	if (r->begun_ns > now)
		r->begun_ns = now;
	if (r->ended_ns < r->begun_ns)
		r->ended_ns = r->begun_ns;
	if (r->ended_ns > now)
		r->ended_ns = now;
	e->begun_ns = r->begun_ns;
	e->ended_ns = r->ended_ns;
}

/* The cell could not be built, and nobody ended it: another try may do better. */
static bool
infra_failed(const struct kn_job_result *r)
{
	return r->cause == KN_CAUSE_NONE && !r->oom_kills &&
	       (r->step == KN_EXEC_CELL || r->step == KN_EXEC_LIMITS ||
		   r->step == KN_EXEC_WALL);
}

/* What came with it by the socket was sent before it, and the socket is looked at after
 * the lane: files, at worst in as many messages, of which a look takes some, and the
 * terminal, without which what the task wrote would not be heard. False: we could not
 * read it. */
static bool
hear_all(struct kn_wk *w, const struct kn_entry *e, const struct kn_job_result *r,
    const char **out_bad)
{
	bool ran = r->step == KN_EXEC_STARTED && r->cause == KN_CAUSE_NONE;

	if (kn_relay_lacks_master(e))
		kn_view_socket(w);
	for (int i = 0; i < FILE_LOOKS && r->file_n != e->file_n && !w->bad; i++)
		kn_view_socket(w);
	if (w->unread && (r->file_n != e->file_n || kn_relay_lacks_master(e)))
		return false;
	if (r->file_n != e->file_n)
		*out_bad = "result.file_n";
	else if (ran && kn_relay_lacks_master(e))
		*out_bad = "result.terminal";
	return true;
}

static void
on_result(struct kn_wk *w, const struct kn_slot_head *h, const uint8_t *bytes)
{
	struct kn_event ev = event(w, KN_EV_RESULT);
	struct kn_sup *s = w->sup;
	const char *bad = check_head(h);
	struct kn_job_result r;
	struct kn_entry *e;

	kn_view_look_claims(w);
	e = kn_view_entry(w, h->task, h->gen);
	if (!bad && !e)
		bad = "result.task";
	if (!bad && !e->claimed)
		bad = "result.claimed";
	if (!bad && kn_job_result_decode(bytes, h->payload_len, &r, &bad) < 0)
		bad = bad ? bad : "result";
	if (!bad && kn_cause_by_request(r.cause) && !e->told_to_end && !w->stopping)
		bad = "result.cause";
	if (!bad && !hear_all(w, e, &r, &bad))
		return; /* our failure: it is lost with its worker */
	if (bad)
		kn_view_violation(w, bad);
	if (w->bad)
		return;
	hold_times(e, &r, ev.now_ns);
	if (s->watchdog_hit && !w->rang &&
	    ev.now_ns - r.ended_ns > KN_DOORBELL_MS * KN_MS_NS / 2)
		s->doorbell_missed++; /* nobody rang, and it lay there */
	e->result = r;
	e->has_result = true;
	w->results++;
	ev.task = h->task;
	ev.gen = h->gen;
	/* (a second attempt would find its input gone) */
	ev.infra_fail = infra_failed(&r) && !e->input_used;
	if (s->policy->pool.recycle_memory)
		ev.memory = kn_launcher_idle_memory(s->launcher, w->index);
	kn_publish_forget(e);
	kn_turn_feed(s, &ev);
}

/* One slot of the return lane. False: nothing there. */
static bool
take_one(struct kn_wk *w)
{
	uint8_t bytes[KN_INLINE_MAX];
	struct kn_slot_head head;
	int slot = kn_return_peek(&w->rx, &w->slice, &head, bytes);

	if (slot < 0)
		return false;
	kn_return_retire(&w->rx, &w->slice, slot); /* head and bytes are copies */
	if (w->sup->module) {
		kn_call_result(w, &head, bytes);
	} else if (head.kind == KN_REQ_PING) {
		kn_view_look_claims(w);
		on_pong(w, &head, bytes);
	} else if (head.kind == KN_REQ_EXEC && w->ready) {
		on_result(w, &head, bytes);
	} else {
		kn_view_violation(w, "result.kind");
	}
	return true;
}

static void
judge_rings(struct kn_wk *w, unsigned found)
{
	if (!w->rang)
		return;
	w->rang = false;
	if (!found && ++w->idle_rings > w->results + KN_IDLE_RINGS)
		kn_view_violation(w, "bell");
}

unsigned
kn_view_look(struct kn_wk *w)
{
	unsigned n = 0;

	if (w->unborn)
		return 0;
	if (w->sup->module)
		n += kn_resident_look(w);
	if (w->bad || (w->sup->module && !w->res.ready))
		return n;
	/* Once for all that lies there: the clock costs as much as taking a result. */
	if (w->sup->module && kn_return_pending(&w->rx, &w->slice)) {
		w->sup->look_ns = w->sup->round_ns;
		/* It is asked for next. */
		if (!w->sup->mute || !kn_call_is_few(w->sup))
			__builtin_prefetch(&w->slice.control->submit_claimed);
	}
	for (unsigned i = 0; !w->bad && i < 2 * KN_SLOTS && take_one(w); i++)
		n++;
	if (w->staged > 0 && !w->bad)
		kn_call_flush(w); /* it may be waiting for what followed */
	/* The claim word is what a worker that takes calls writes all the time: each
	 * look fetches its line. What was claimed matters with a result, and before a
	 * sleep.
	 */
	if (!w->bad &&
	    ((n > 0 && !w->sup->mute) || !w->sup->module || w->sup->full_look))
		kn_view_look_claims(w);
	if (w->untold_n > 0 && w->sup->full_look)
		kn_view_tell_claims(w);
	if (!w->bad && w->stopping && !w->stop_acked &&
	    kn_control_stop_acked(w->slice.control)) {
		struct kn_event ev = event(w, KN_EV_STOP_ACKED);

		/* What it claimed until then, and its answers, are there now. */
		if (w->sup->share)
			kn_share_look(w);
		for (unsigned i = 0;
		     w->sup->share && !w->bad && i < 2 * KN_SLOTS && take_one(w); i++)
			n++;
		w->stop_acked = true;
		kn_turn_feed(w->sup, &ev);
		n++;
	}
	judge_rings(w, n);
	return n;
}
