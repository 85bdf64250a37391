/* supervisor/submit.c: what a submitter does: submit, cancel, drain, stop, and watch
 * its own descriptors and the time on our loop.
 */
#include <poll.h>
#include <string.h>

#include "ipc/clock.h"
#include "ipc/job.h"
#include "supervisor/inner.h"

/* ---- tasks ---- */

static void
refuse(struct kn_entry *e, enum kn_verdict v, const char *why)
{
	struct kn_sup *s = e->sup;

	e->state = KN_ENTRY_REFUSED;
	e->refusal = v;
	e->why = why;
	e->next = s->refused_head;
	s->refused_head = e->index;
}

/* Too large is decided before a slot is taken. True: it goes to the core. */
static bool
admit(struct kn_entry *e)
{
	const struct kn_sup *s = e->sup;
	int fds[KN_TASK_FDS_MAX], fd_n;
	struct kn_job job;

	if (kn_publish_job(e, &job, fds, &fd_n) < 0) {
		refuse(e, KN_V_TOO_LARGE,
		    "more files by descriptor than one task can take (KNT_ERROR_3)");
		return false;
	}
	e->job_bytes = kn_job_encode(&job, NULL, 0);
	if (s->policy->payload_max && e->job_bytes > s->policy->payload_max) {
		refuse(e, KN_V_TOO_LARGE,
		    "the task with its files is larger than /payload/max "
		    "(KNT_ERROR_3)");
		return false;
	}
	return true;
}

static bool
admit_call(struct kn_entry *e)
{
	struct kn_sup *s = e->sup;
	struct kn_call *c = &e->task->call;
	uint64_t max = s->policy->payload_max;

	/* its name travels with it, at first */
	if (c->arg.n + strlen(c->name) > s->arena.layout.submit_area_bytes) {
		refuse(e, KN_V_TOO_LARGE,
		    "the value is larger than /payload/area (KNT_ERROR_3)");
		return false;
	}
	if (max && c->arg.n > max) {
		refuse(e, KN_V_TOO_LARGE,
		    "the value is larger than /payload/max (KNT_ERROR_3)");
		return false;
	}
	if (!c->fn)
		c->fn = kn_module_function(s->module, c->name);
	/* Whoever submits may have used them up with names that no task has. */
	if (!c->fn)
		c->fn = KN_FN_OTHER;
	return true;
}

static struct kn_entry *
take_entry(struct kn_sup *s, struct kn_task *t)
{
	struct kn_entry *e = &s->entry[s->free_head];

	s->free_head = e->next;
	s->used_n++;
	e->task = t;
	e->state = KN_ENTRY_KNOWN;
	e->serial = ++s->serial;
	e->worker = -1;
	e->attempt = 0;
	e->gen = 0;
	e->claimed = e->input_used = e->has_result = e->cancel_sent = false;
	e->aborted = e->died = false;
	e->abort = KN_NO_ABORT;
	e->value = (struct kn_value){ 0 };
	e->published_ns = e->begun_ns = e->ended_ns = e->taken_ns = 0;
	/* A call that follows from an answer: the clock was read for that. */
	e->accepted_ns = s->module && s->pumping ? s->step_ns : kn_clock_now();
	return e;
}

int
kn_sup_submit(struct kn_sup *s, struct kn_task *t, struct kn_err *err)
{
	bool relay = t->stdio == KN_STDIO_RELAY;
	struct kn_event ev = { .type = KN_EV_SUBMIT };
	struct kn_entry *e;

	if (s->draining)
		return kn_err_set(err, KN_EK_BUG, "submitted after the drain");
	if (s->stop_level)
		return 1; /* nothing more is accepted; room() will not be called */
	if (s->free_head == KN_NO_ENTRY) {
		s->want_room = true;
		return 1;
	}
	if (!s->module && t->argv_n == 0)
		return kn_err_set(err, KN_EK_BUG, "a task without a command");
	if (s->module && !t->call.name && !t->call.fn)
		return kn_err_set(err, KN_EK_BUG, "a call without a name");
	e = take_entry(s, t);
	if (relay && kn_relay_open(s, e, err) < 0) {
		e->task = NULL;
		e->state = KN_ENTRY_FREE;
		e->next = s->free_head;
		s->free_head = e->index;
		s->used_n--;
		return -1;
	}
	if (s->module ? !admit_call(e) : !admit(e))
		return 0;
	ev.now_ns = e->accepted_ns;
	ev.task = e->index;
	ev.submit.queue_ms = t->timeouts.queue_ms;
	ev.submit.hard_ms = t->timeouts.hard_ms;
	/* streams that were handed on cannot be handed on again */
	ev.submit.retries = relay ? 0 : t->retries;
	kn_turn_queue(s, &ev);
	return 0;
}

void
kn_sup_cancel(struct kn_sup *s, struct kn_task *t)
{
	struct kn_event ev = { .type = KN_EV_CANCEL, .now_ns = kn_clock_now() };

	for (uint32_t i = 0; i < s->task_max; i++) {
		struct kn_entry *e = &s->entry[i];

		if (e->task != t || e->cancel_sent ||
		    (e->state != KN_ENTRY_KNOWN && e->state != KN_ENTRY_PLACED &&
			e->state != KN_ENTRY_ENDING))
			continue;
		e->cancel_sent = true;
		if (e->state == KN_ENTRY_ENDING) { /* its reader may be stuck */
			kn_relay_abandon(s);
			return;
		}
		ev.task = i;
		kn_turn_queue(s, &ev);
		return;
	}
}

bool
kn_sup_signal(struct kn_sup *s, const struct kn_task *t, int signo)
{
	/* A call has no process of its own. */
	for (uint32_t i = 0; i < s->task_max && !s->module; i++) {
		struct kn_entry *e = &s->entry[i];

		if (e->task != t || e->state != KN_ENTRY_PLACED || !kn_act_hears(e))
			continue;
		KN_LOG(&s->log, KN_NS_SIGNALS, e->worker, "signal %d to task %s", signo,
		    t->id ? t->id : "-");
		return kn_act_message(&s->wk[e->worker], KN_MSG_SIGNAL, e,
			   (uint32_t)signo, NULL, 0) == 0;
	}
	return false;
}

void
kn_sup_terminal(struct kn_sup *s, enum kn_sup_term what)
{
	if (what == KN_TERM_RESIZE)
		kn_relay_resize(s);
	else if (what == KN_TERM_SUSPEND)
		kn_relay_suspend(s);
	else
		kn_relay_resume(s);
}

void
kn_sup_drain(struct kn_sup *s)
{
	struct kn_event ev = { .type = KN_EV_DRAIN, .now_ns = kn_clock_now() };

	if (s->draining)
		return;
	s->draining = true;
	kn_turn_queue(s, &ev);
}

void
kn_sup_stop(struct kn_sup *s, bool now)
{
	kn_turn_stop(s, now, 0);
}

/* ---- descriptors and time of the submitter ---- */

static void
on_user_fd(struct kn_watch *w, uint32_t events)
{
	struct kn_sup_watch *u = w->ctx;
	short revents = 0;

	if (events & EPOLLIN)
		revents |= POLLIN;
	if (events & EPOLLOUT)
		revents |= POLLOUT;
	if (events & EPOLLERR)
		revents |= POLLERR;
	if (events & EPOLLHUP)
		revents |= POLLHUP;
	u->ready(u->ctx, u->fd, revents);
}

int
kn_sup_watch(struct kn_sup *s, int fd, short events,
    void (*ready)(void *ctx, int fd, short revents), void *ctx, struct kn_err *e)
{
	struct kn_sup_watch *u = NULL, *spare = NULL;
	uint32_t ep = 0;

	for (int i = 0; i < KN_WATCH_MAX; i++) {
		if (s->user_watch[i].fd == fd)
			u = &s->user_watch[i];
		else if (s->user_watch[i].fd < 0)
			spare = &s->user_watch[i];
	}
	if (u) { /* the reader of a closed pipe must not be woken for ever: remove */
		kn_loop_del(&s->loop, &u->w);
		u->fd = -1;
	}
	if (!events)
		return 0;
	u = u ? u : spare;
	if (!u)
		return kn_err_set(e, KN_EK_BUG, "too many watched descriptors");
	if (events & POLLIN)
		ep |= EPOLLIN;
	if (events & POLLOUT)
		ep |= EPOLLOUT;
	u->ready = ready;
	u->ctx = ctx;
	if (kn_loop_add(&s->loop, &u->w, fd, ep, on_user_fd, u, e) < 0)
		return -1;
	u->fd = fd;
	return 0;
}

void
kn_sup_every(struct kn_sup *s, uint32_t ms, void (*tick)(void *ctx), void *ctx)
{
	s->tick = tick;
	s->tick_ctx = ctx;
	s->tick_every_ns = (uint64_t)ms * KN_MS_NS;
	s->tick_ns = ms ? kn_clock_now() + s->tick_every_ns : 0;
}
