/* supervisor/call.c: kind module: one call into a worker's lane, and its result out of
 * it. No system call and no allocation for a call that fits its slot.
 */
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ipc/clock.h"
#include "ipc/park.h"
#include "supervisor/inner.h"

enum { MEMORY_LOOKS = 16 };
/* Of a burst, offered together: as few stores to the word that the worker looks at, and
 * yet it does not wait for the whole burst. */
enum { FLUSH_AT = 8 };
enum { ERROR_MAX = 64 * 1024 }; /* an encoded error may be larger than payload.max */

/* ---- abort ids ---- */

/* Of a bank there is one bitmap for all of its workers: nobody knows yet who will run
 * the call. */
static struct kn_abort_ids *
ids_of(struct kn_wk *w)
{
	return w->sup->share ? &kn_share_bank_of(w)->ids : &w->res.ids;
}

static uint32_t *
words_of(struct kn_wk *w)
{
	return w->sup->share ? kn_share_bank_of(w)->offer.bank.head->abort
			     : w->slice.control->abort;
}

uint32_t
kn_call_take_abort(struct kn_wk *w)
{
	struct kn_abort_ids *ids = ids_of(w);
	uint32_t asked = w->sup->policy->pool.abort_ids;
	uint32_t end = asked ? asked : KN_ABORT_BITS;

	for (uint32_t i = 0; i <= KN_ABORT_WORDS; i++) {
		uint32_t at = (ids->at / 32 + i) % KN_ABORT_WORDS, id;

		if (ids->used[at] == UINT32_MAX)
			continue;
		id = at * 32 + (uint32_t)__builtin_ctz(~ids->used[at]);
		if (id >= end)
			continue;
		ids->used[at] |= 1u << id % 32;
		if (ids->set[at] & 1u << id % 32) { /* of one before */
			ids->set[at] &= ~(1u << id % 32);
			kn_abort_clear(words_of(w), id);
		}
		ids->at = id;
		return id;
	}
	return KN_NO_ABORT;
}

void
kn_call_forget(struct kn_wk *w, struct kn_entry *e)
{
	if (e->abort != KN_NO_ABORT)
		ids_of(w)->used[e->abort / 32] &= ~(1u << e->abort % 32);
	e->abort = KN_NO_ABORT;
	if (w->sup->share)
		kn_share_forget(w, e);
}

void
kn_call_abort(struct kn_wk *w, struct kn_entry *e)
{
	e->aborted = true;
	if (e->abort == KN_NO_ABORT)
		return;
	ids_of(w)->set[e->abort / 32] |= 1u << e->abort % 32;
	kn_abort_set(words_of(w), e->abort);
}

/* ---- publication ---- */

static bool
is_known(const struct kn_wk *w, uint32_t fn)
{
	return fn < w->res.known_n && w->res.known[fn] == w->incarnation;
}

/* It has answered a call of fn: it needs its name no more. */
static void
know(struct kn_wk *w, uint32_t fn)
{
	struct kn_resident_wk *r = &w->res;

	if (fn == KN_FN_OTHER)
		return;
	if (fn >= r->known_n) {
		uint32_t n = w->sup->module->name_room;
		uint32_t *v = fn < n ? realloc(r->known, n * sizeof *v) : NULL;

		if (!v)
			return; /* it is told again */
		memset(v + r->known_n, 0, (n - r->known_n) * sizeof *v);
		r->known = v;
		r->known_n = n;
	}
	r->known[fn] = w->incarnation;
}

bool
kn_call_publish(struct kn_wk *w, struct kn_entry *e)
{
	const struct kn_task *t = e->task;
	struct kn_slot_head head = { .kind = KN_REQ_CALL,
		.task = e->index,
		.gen = e->gen,
		.area = KN_AREA_INLINE,
		.type = t->call.arg.type,
		.fn = t->call.fn,
		.soft_ms = t->timeouts.task_ms };
	const struct kn_call_room room = { .pay = &w->pay,
		.freed = &w->slice.control->submit_freed,
		.area = w->slice.submit_area,
		.backed = &w->res.backed,
		.index = kn_resident_slice(w->sup, w->index) };
	uint8_t buf[KN_INLINE_MAX];
	int slot;

	if (w->sup->share)
		return kn_share_publish(w, e);
	slot = kn_submit_next(&w->tx);
	if (slot < 0) {
		kn_view_look_claims(w); /* claimed slots are free ones */
		slot = kn_submit_next(&w->tx);
	}
	if (slot < 0)
		return false;
	if (!is_known(w, head.fn))
		head.name_n = (uint32_t)strlen(kn_call_name(e));
	if (kn_call_put(w->sup, &room, e, &head, buf) != KN_PUT_DONE)
		return false;
	e->abort = head.abort = kn_call_take_abort(w);
	e->aborted = e->died = false;
	e->broken = NULL;
	e->published_ns = w->sup->step_ns;
	if (t->timeouts.hard_ms)
		head.deadline_ns =
		    kn_clock_after_ms(e->published_ns, t->timeouts.hard_ms);
	e->slot = slot;
	e->area = head.area == KN_AREA_INLINE ? -1 : (int)head.area;
	if (e->area >= 0)
		w->res.payload_ns = e->published_ns;
	w->sup->long_bytes = e->area >= 0 ? head.payload_len : 0;
	kn_submit_stage(&w->tx, &w->slice, slot, &head, buf);
	w->to_wake = true;
	if (++w->staged >= FLUSH_AT || w->outstanding == 0)
		kn_call_flush(w);
	w->slot_task[slot] = e->index;
	w->slot_gen[slot] = e->gen;
	w->outstanding++;
	e->state = KN_ENTRY_PLACED;
	e->worker = (int)w->index;
	e->incarnation = w->incarnation;
	return true;
}

void
kn_call_flush(struct kn_wk *w)
{
	w->staged = 0;
	kn_submit_flush(&w->tx, &w->slice);
}

static void
tell_cpu(struct kn_wk *w)
{
	uint32_t here = (uint32_t)sched_getcpu() + 1;

	if (here == w->host_cpu)
		return;
	w->host_cpu = here;
	kn_park_host_is_on(w->slice.control, here);
}

void
kn_call_wake(struct kn_sup *s)
{
	if (s->share)
		kn_share_flush(s);
	for (uint32_t i = 0; i < s->worker_n; i++) {
		struct kn_wk *w = &s->wk[i];

		if (!w->to_wake)
			continue;
		w->to_wake = false;
		if (!w->live)
			continue;
		kn_call_flush(w);
		kn_rest_end(w);
		tell_cpu(w);
		(void)kn_park_wake(w->slice.control);
	}
}

/* ---- results ---- */

static const char *
check_head(const struct kn_wk *w, const struct kn_slot_head *h)
{
	uint64_t max = w->sup->policy->payload_max;
	uint32_t all = KN_CALL_FAILED | KN_CALL_NOT_FOUND | KN_CALL_GAVE_UP;
	bool failed = h->flags & KN_CALL_FAILED;

	if (!max || max > w->slice.return_area_bytes)
		max = w->slice.return_area_bytes;
	if ((h->flags & ~all) || ((h->flags & KN_CALL_NOT_FOUND) && !failed))
		return "result.flags";
	if (failed != (h->type == KN_TYPE_ERROR))
		return "result.type";
	if (failed && max < ERROR_MAX)
		max = ERROR_MAX;
	if (h->fd_n)
		return "result.fd_n";
	if (h->payload_len > max)
		return "result.payload_len";
	if (h->area == KN_AREA_INLINE)
		return h->payload_len > KN_INLINE_MAX ? "result.payload_len" : NULL;
	if (h->area >= KN_AREAS)
		return "result.area";
	if (h->payload_off > w->slice.return_area_bytes ||
	    h->payload_len > w->slice.return_area_bytes - h->payload_off)
		return "result.payload_off";
	return NULL;
}

/* A private copy, once: of a slot's bytes there is one already. */
static const uint8_t *
copy(struct kn_wk *w, const struct kn_slot_head *h, const uint8_t *bytes)
{
	struct kn_module *m = w->sup->module;
	struct kn_resident_wk *r = &w->res;
	uint64_t end = (uint64_t)h->payload_off + h->payload_len;

	if (h->area == KN_AREA_INLINE)
		return bytes;
	if (h->payload_len > m->value_room) {
		uint8_t *v = malloc(h->payload_len);

		if (!v) {
			kn_payload_free(&w->slice.control->return_freed, (int)h->area);
			return NULL;
		}
		free(m->value);
		m->value = v;
		m->value_room = h->payload_len;
	}
	if (h->payload_len)
		memcpy(m->value, w->slice.return_area + h->payload_off, h->payload_len);
	kn_payload_free(&w->slice.control->return_freed, (int)h->area);
	r->returned = end > r->returned ? end : r->returned;
	r->payload_ns = kn_clock_now();
	return m->value;
}

/* The module could not be loaded, or its init hook failed. */
static void
on_no_pong(struct kn_wk *w, const struct kn_slot_head *h, const uint8_t *bytes)
{
	struct kn_resident_wk *r = &w->res;
	struct kn_call_error err;
	char text[400], *at = text;
	size_t left = sizeof text;

	if (kn_call_error_decode(bytes, h->payload_len, &err) < 0) {
		kn_view_violation(w, "ping.error");
		return;
	}
	text[0] = '\0';
	for (uint32_t i = 0; i < err.n && left > 64; i++) {
		int n;

		if (i > 0)
			n = snprintf(at, left, "; because of ");
		else
			n = 0;
		at += n;
		left -= (size_t)n;
		n = kn_err_printable(at, (int)left, err.link[i].message,
		    (int)strlen(err.link[i].message));
		at += n;
		left -= (size_t)n;
	}
	r->load_failed = true;
	kn_err_set(&r->load_err, KN_EK_CONFIG, "%s", text);
	KN_LOG(&w->sup->log, KN_NS_LIFECYCLE, (int)w->index, "not loaded: %s", text);
	/* It would go on and answer every call like that. */
	if (!kn_resident_kill(w, KN_CAUSE_STOP))
		kn_launch_kill(w->sup->launcher, w->index, &w->lw);
}

/* What a module's process says that it loaded, if it was asked. */
static void
tell_imports(struct kn_wk *w, const struct kn_slot_head *h, const uint8_t *bytes)
{
	size_t n = h->payload_len - sizeof w->ping_nonce;

	if (n > 0)
		KN_LOG(&w->sup->log, KN_NS_IMPORTS, (int)w->index, "%.*s", (int)n,
		    (const char *)bytes + sizeof w->ping_nonce);
}

static bool
is_echo(const struct kn_wk *w, const struct kn_slot_head *h, const uint8_t *bytes)
{
	bool asked = w->sup->log.mask & 1u << KN_NS_IMPORTS;
	size_t n = sizeof w->ping_nonce, most = asked ? KN_INLINE_MAX : n;

	return h->area == KN_AREA_INLINE && h->payload_len >= n &&
	       h->payload_len <= most && memcmp(bytes, &w->ping_nonce, n) == 0;
}

static void
on_pong(struct kn_wk *w, const struct kn_slot_head *h, const uint8_t *bytes)
{
	bool failed = h->flags & KN_CALL_FAILED;

	if (w->ready || w->res.load_failed || h->task != KN_NO_ENTRY ||
	    h->gen != w->incarnation)
		kn_view_violation(w, "ping.task");
	else if (!failed && !is_echo(w, h, bytes))
		kn_view_violation(w, "ping.payload");
	else if (w->tx.offered & 1u << w->ping_slot)
		kn_view_violation(w, "ping.claimed");
	else if (failed)
		on_no_pong(w, h, bytes);
	else {
		tell_imports(w, h, bytes);
		kn_view_ready(w);
	}
}

static void
hold_times(struct kn_entry *e, const struct kn_slot_head *h, uint64_t now)
{
	uint64_t begun = h->begun_ns, ended = h->deadline_ns;

	if (begun < e->published_ns)
		begun = e->published_ns;
	if (begun > now)
		begun = now;
	if (ended < begun)
		ended = begun;
	if (ended > now)
		ended = now;
	e->begun_ns = begun;
	e->ended_ns = ended;
}

/* Of a result that is not believed the claim stands: who lies about a call has begun
 * it, and another worker must not be next. */
static void
tell_claim(struct kn_wk *w, struct kn_event *ev)
{
	if (!ev->claimed)
		return;
	ev->type = KN_EV_CLAIMED;
	ev->claimed = 0;
	kn_turn_feed(w->sup, ev);
}

/* Out of a bank: false: another one has it, and this one was lied to. */
static bool
is_its(struct kn_wk *w, const struct kn_slot_head *h, struct kn_event *ev,
    const char **out_bad)
{
	enum kn_answer whose = kn_share_answer(w, h->task, h->gen, ev);

	if (whose == KN_ANSWER_LIE)
		*out_bad = "result.task";
	return whose != KN_ANSWER_DROP;
}

/* What a result says of its call. */
static void
note(struct kn_wk *w, struct kn_entry *e, const struct kn_slot_head *h,
    const uint8_t *bytes)
{
	if (!(h->flags & KN_CALL_NOT_FOUND) && !is_known(w, e->task->call.fn))
		know(w, e->task->call.fn);
	e->flags = h->flags;
	e->value = (struct kn_value){ .type = h->type,
		.borrowed = true,
		.bytes = (void *)(uintptr_t)bytes,
		.n = h->payload_len };
	if (!bytes) { /* ours, and no reason to run it again, nor to end its worker */
		e->broken = "result";
		e->broken_sys = ENOMEM;
	}
	e->has_result = true;
	w->results++;
}

void
kn_call_result(
    struct kn_wk *w, const struct kn_slot_head *h, const uint8_t *inline_bytes)
{
	struct kn_event ev = { .type = KN_EV_RESULT,
		.now_ns = w->sup->look_ns,
		.worker = w->index,
		.incarnation = w->incarnation,
		.task = h->task,
		.gen = h->gen };
	struct kn_sup *s = w->sup;
	const uint8_t *bytes = NULL;
	const char *bad;
	struct kn_entry *e;

	/* A pong has no type; all else of its head is as hostile as that of a result.
	 */
	bad = h->kind == KN_REQ_PING && !(h->flags & KN_CALL_FAILED)
		  ? h->area == KN_AREA_INLINE ? NULL : "ping.area"
		  : check_head(w, h);
	if (!bad)
		bytes = copy(w, h, inline_bytes); /* NULL: no memory for it */
	if (!bad && h->kind == KN_REQ_PING) {
		kn_view_look_claims(w);
		on_pong(w, h, bytes);
		return;
	}
	if (!bad && (h->kind != KN_REQ_CALL || !w->ready))
		bad = "result.kind";
	if (!bad && s->share && !is_its(w, h, &ev, &bad))
		return;
	e = bad ? NULL : kn_view_entry(w, h->task, h->gen);
	if (e && !e->claimed)
		ev.claimed = kn_view_is_claimed(w, e);
	if (s->mute)
		ev.claimed = e && e->claimed; /* told again, if it was */
	if (!bad && !e)
		bad = "result.task";
	else if (!bad && !e->claimed)
		bad = "result.claimed";
	if (!bad && bytes && !kn_value_check(h->type, bytes, h->payload_len))
		bad = "result.value";
	if (bad)
		kn_view_violation(w, bad);
	if (w->bad) {
		tell_claim(w, &ev);
		return;
	}
	hold_times(e, h, ev.now_ns);
	if (s->watchdog_hit && !w->rang &&
	    ev.now_ns - e->ended_ns > KN_DOORBELL_MS * KN_MS_NS / 2)
		s->doorbell_missed++; /* nobody rang, and it lay there */
	note(w, e, h, bytes);
	/* A system call or two: now and then is enough. */
	if (s->policy->pool.recycle_memory && w->results % MEMORY_LOOKS == 0)
		ev.memory = kn_launcher_idle_memory(s->launcher, w->index);
	kn_publish_forget(e);
	kn_turn_feed(s, &ev);
}
