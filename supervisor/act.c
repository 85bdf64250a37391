/* supervisor/act.c: actions of the core -> the world. One small handler each; what an
 * action is answered by goes to the reply queue, which the core sees next (see
 * core/event.h for the order that is promised).
 */
#include <stdbool.h>

#include <errno.h>
#include <string.h>

#include "ipc/clock.h"
#include "ipc/fd.h"
#include "supervisor/inner.h"

_Static_assert((int)KN_CORE_CAUSE_CANCEL == (int)KN_CAUSE_CANCEL &&
		   (int)KN_CORE_CAUSE_STOP == (int)KN_CAUSE_STOP,
    "the core's causes are the wire's");

static void
reply(struct kn_sup *s, const struct kn_action *a, enum kn_event_type type)
{
	struct kn_event ev = { .type = type,
		.now_ns = s->module ? s->step_ns : kn_clock_now(),
		.worker = a->worker,
		.incarnation = a->incarnation,
		.task = a->task,
		.gen = a->gen };

	kn_turn_reply(s, &ev);
}

int
kn_act_message(struct kn_wk *w, enum kn_msg_type type, const struct kn_entry *e,
    uint32_t arg, const int *fds, int fd_n)
{
	struct kn_msg m = { .type = type, .arg = arg };

	if (e) {
		m.task = e->index;
		m.gen = e->gen;
	}
	if (w->lw.sock < 0) {
		errno = ENOTCONN;
		return -1;
	}
	return kn_fd_send(w->lw.sock, &m, sizeof m, fds, fd_n, 1);
}

bool
kn_act_hears(const struct kn_entry *e)
{
	struct kn_wk *w = &e->sup->wk[e->worker];
	uint32_t task, gen;
	uint64_t ns;

	return w->live && !w->bad &&
	       kn_control_begun(w->slice.control, &task, &gen, &ns) &&
	       task == e->index && gen == e->gen &&
	       !kn_control_is_over(w->slice.control, task, gen);
}

/* ---- launching ---- */

static void
fresh(struct kn_wk *w, uint32_t incarnation)
{
	struct kn_sup *s = w->sup;
	uint32_t index = w->index;

	memset(w, 0, sizeof *w);
	w->sup = s;
	w->index = index;
	w->incarnation = incarnation;
	w->lw = (struct kn_launched)KN_LAUNCHED_NONE;
	w->listener.fd = -1;
	w->w_sock.fd = w->w_pid.fd = w->w_err.fd = w->w_bell.fd = -1;
	if (s->module) {
		kn_resident_fresh(w);
		return;
	}
	kn_arena_slice(&s->arena, index, &w->slice);
	kn_submit_init(&w->tx);
	kn_payload_init(&w->pay, w->slice.submit_area_bytes);
}

/* Trying again cannot help where a program is missing or a policy cannot be compiled;
 * it can where the machine is short of processes, memory or descriptors. */
static bool
is_fatal(const struct kn_err *e)
{
	return e->sys != EAGAIN && e->sys != ENOMEM && e->sys != EMFILE &&
	       e->sys != ENFILE && e->sys != EINTR;
}

static int
boot(struct kn_wk *w, struct kn_err *e)
{
	struct kn_sup *s = w->sup;
	enum kn_layer_state memory =
	    kn_launcher_layers(s->launcher)->state[KN_LAYER_CG_MEMORY];

	/* All this is done while the launcher starts: the stub waits for the record,
	 * and has no descriptor of the arena before it comes. */
	if (kn_arena_reset_slice(&s->arena, w->index, e) < 0)
		return -1;
	/* once for all workers */
	if (!s->filter_built) {
		if (kn_refused_filter(s, memory == KN_LAYER_DEGRADED, e) < 0)
			return kn_err_wrap(e, "system call filter");
		s->filter_built = true;
		KN_LOG(&s->log, KN_NS_POLICY, KN_LOG_POOL,
		    "filter worker=%u cell=%u instructions", s->filter.worker_n,
		    s->filter.cell_n);
	}
	if (kn_launch_boot(s->launcher, w->index, w->incarnation, &s->filter,
		s->arena.fd, &w->lw, e) < 0)
		return -1;
	return s->module ? kn_resident_ping(w, e) : kn_publish_ping(w, e);
}

static int
launch(struct kn_wk *w, struct kn_err *e)
{
	struct kn_sup *s = w->sup;
	bool watched;

	w->spawned_ns = kn_clock_now(); /* what "after=" in the log counts from */
	if (kn_launch_start(s->launcher, w->index, w->incarnation, &w->lw, e) < 0)
		return -1;
	w->live = true;
	w->res.up = s->module != NULL;
	KN_LOG(&s->log, KN_NS_LIFECYCLE, (int)w->index, "spawned pid=%d incarnation=%u",
	    (int)w->lw.proc.pid, w->incarnation);
	watched = kn_view_open(w, e) == 0;
	/* one that has ended already says why on its stderr and by its status */
	if (watched && (boot(w, e) == 0 || e->sys == EPIPE || e->sys == ECONNRESET))
		return 0;
	kn_launch_kill(s->launcher, w->index, &w->lw);
	if (watched && (s->most_ready > 0 || !is_fatal(e))) {
		/* Others are at work: its end is awaited as any worker's. */
		w->unborn = w->boot_failed = true;
		w->boot_err = *e;
		return 0;
	}
	kn_proc_close(&w->lw.proc);
	kn_launch_await_gone(&w->lw);
	kn_act_release(w);
	return -1;
}

/* Kind module: in the sandbox that is there. If that fails its end is awaited as any
 * worker's, and the next try begins from the start. */
static void
spawn_again(struct kn_sup *s, const struct kn_action *a, struct kn_wk *w)
{
	struct kn_err e;

	kn_err_set(&e, KN_EK_LAUNCH, "its sandbox is ending");
	if (w->exited || w->res.bad || kn_resident_again(w, a->incarnation, &e) < 0) {
		kn_launch_kill(s->launcher, w->index, &w->lw);
		w->incarnation = a->incarnation;
		w->ready = w->stopping = w->bad_fed = w->res.ended = false;
		w->bad = NULL;
		w->live = w->unborn = w->boot_failed = true;
		w->boot_err = e;
	}
	reply(s, a, KN_EV_SPAWNED);
}

static void
act_spawn(struct kn_sup *s, const struct kn_action *a)
{
	struct kn_wk *w = &s->wk[a->worker];
	struct kn_event ev = { .type = KN_EV_SPAWNED,
		.worker = a->worker,
		.incarnation = a->incarnation };
	struct kn_err e;
	int held;

	kn_err_clear(&e);
	if (s->module && w->res.up) {
		spawn_again(s, a, w);
		return;
	}
	if (w->held_sock >= 0 && kn_fd_hung_up(w->held_sock))
		kn_fd_close(&w->held_sock); /* gone in the meantime */
	held = w->held_sock;
	fresh(w, a->incarnation);
	w->held_sock = held;
	if (held >= 0)
		kn_err_set(&e, KN_EK_LAUNCH,
		    "a process of the one before it still holds its memory");
	if (held >= 0 || launch(w, &e) < 0) {
		if (strncmp(e.msg, "worker ", 7) != 0) /* a launch has said it */
			kn_err_wrap(&e, "worker %u", w->index);
		KN_LOG(
		    &s->log, KN_NS_LIFECYCLE, (int)w->index, "spawn failed: %s", e.msg);
		kn_turn_fail(s, &e);
		ev.type = KN_EV_SPAWN_FAILED;
		ev.fatal = is_fatal(&e);
	}
	ev.now_ns = kn_clock_now();
	kn_turn_reply(s, &ev);
}

void
kn_act_release(struct kn_wk *w)
{
	kn_view_close(w);
	kn_egress_release(w);
	kn_refused_end(w);
	if (w->sup->module)
		kn_resident_free(w);
	w->live = false;
	kn_launch_release(w->sup->launcher, w->index, &w->lw);
	kn_fd_close(&w->lw.sock);
	kn_fd_close(&w->lw.err_fd);
	kn_fd_close(&w->lw.bell_fd);
}

/* ---- tasks ---- */

static void
act_publish(struct kn_sup *s, const struct kn_action *a)
{
	struct kn_entry *e = &s->entry[a->task];
	struct kn_wk *w = &s->wk[a->worker];

	if (!s->module)
		kn_files_drop(e);
	else if (e->task->limits.cpu_ms)
		s->cpu_limits = true;
	if (e->heard) /* of an attempt that was lost */
		kn_refused_forget(e);
	e->gen = a->gen;
	e->attempt = a->attempt;
	e->claimed = e->has_result = e->told_to_end = false;
	e->begun_ns = e->ended_ns = 0;
	e->why = NULL;
	if (!w->live || w->bad || w->sock_eof ||
	    !(s->module ? kn_call_publish(w, e) : kn_publish(w, e))) {
		reply(s, a, KN_EV_PUBLISH_FAILED);
		return;
	}
	KN_LOG(&s->log, KN_NS_LIFECYCLE, (int)w->index, "task %s slot=%d attempt=%u",
	    e->task->id ? e->task->id : "-", e->slot, e->attempt);
	if (!s->module) /* of calls it is taken for granted */
		reply(s, a, KN_EV_PUBLISHED);
}

struct kn_event
kn_act_taken_back(struct kn_wk *w, struct kn_entry *e)
{
	struct kn_sup *s = w->sup;

	kn_publish_forget(e);
	kn_stream_close(e);
	e->taken_from = (int)w->index;
	e->taken_ns = kn_clock_now();
	kn_trace_instant(
	    &s->trace, "taken back", e->task->id, e->taken_from, e->taken_ns);
	KN_LOG(&s->log, KN_NS_LIFECYCLE, (int)w->index, "task %s taken back",
	    e->task->id ? e->task->id : "-");
	return (struct kn_event){ .type = KN_EV_TAKEN_BACK,
		.now_ns = e->taken_ns,
		.worker = w->index,
		.incarnation = w->incarnation,
		.task = e->index,
		.gen = e->gen,
		.waited = e->waited };
}

static void
act_take_back(struct kn_sup *s, const struct kn_action *a)
{
	struct kn_wk *w = &s->wk[a->worker];
	struct kn_entry *e = kn_view_entry(w, a->task, a->gen);
	struct kn_event ev;

	if (s->share &&
	    (!e || (!e->claimed && kn_share_take_back(w, e) != KN_BACK_OURS)))
		return; /* that it was claimed is told, or will be */
	if (!e || e->claimed || e->input_used ||
	    (!s->share && !kn_submit_take_back(&w->tx, &w->slice, e->slot))) {
		if (e)
			e->claimed = true; /* the answer says so; once is enough */
		reply(s, a, KN_EV_TAKE_FAILED);
		return;
	}
	if (e->area >= 0)
		kn_payload_undo(&w->pay, e->area);
	ev = kn_act_taken_back(w, e);
	kn_turn_reply(s, &ev);
}

static void
act_kill_task(struct kn_sup *s, const struct kn_action *a)
{
	struct kn_wk *w = &s->wk[a->worker];
	struct kn_entry *e = kn_view_entry(w, a->task, a->gen);

	if (!e || !w->live)
		return;
	KN_LOG(&s->log, KN_NS_LIFECYCLE, (int)w->index, "task %s kill cause=%u",
	    e->task->id ? e->task->id : "-", a->arg);
	if (s->module) {
		kn_call_abort(w, e);
		return;
	}
	e->told_to_end = true;
	if (kn_act_message(w, KN_MSG_KILL, e, a->arg, NULL, 0) == 0)
		return;
	/* A stub whose socket is full reads nothing: the task would go on. */
	KN_LOG(&s->log, KN_NS_LIFECYCLE, (int)w->index, "kill not delivered: %s",
	    strerror(errno));
	kn_launch_kill(s->launcher, w->index, &w->lw);
}

static void
act_look_begun(struct kn_sup *s, const struct kn_action *a)
{
	struct kn_wk *w = &s->wk[a->worker];
	struct kn_entry *e = kn_view_entry(w, a->task, a->gen);
	struct kn_event ev = { .type = KN_EV_BEGUN,
		.now_ns = kn_clock_now(),
		.worker = a->worker,
		.incarnation = a->incarnation,
		.task = a->task,
		.gen = a->gen };

	if (!e || !w->live || w->bad)
		return;
	kn_view_look_claims(w);
	kn_view_tell_claims(w);
	if (!e->claimed || !kn_view_begun(w, e))
		return;
	ev.begun_ns = e->begun_ns;
	kn_turn_reply(s, &ev);
}

static void
act_look_over(struct kn_sup *s, const struct kn_action *a)
{
	struct kn_wk *w = &s->wk[a->worker];

	if (!w->live || w->bad || s->module ||
	    !kn_control_is_over(w->slice.control, a->task, a->gen))
		return;
	KN_LOG(&s->log, KN_NS_LIFECYCLE, (int)w->index,
	    "task %s is over, its cell is being taken down",
	    s->entry[a->task].task->id ? s->entry[a->task].task->id : "-");
	reply(s, a, KN_EV_OVER);
}

/* ---- workers ---- */

static void
act_stop_worker(struct kn_sup *s, const struct kn_action *a)
{
	struct kn_wk *w = &s->wk[a->worker];

	if (!w->live)
		return;
	w->stopping = true;
	KN_LOG(&s->log, KN_NS_LIFECYCLE, (int)w->index, "stop");
	/* The worker of a single command has nothing left to end in order, and somebody
	 * waits for us: its sandbox and its launcher end side by side. */
	if (s->opt.single && w->outstanding == 0) {
		kn_launch_kill(s->launcher, w->index, &w->lw);
		return;
	}
	kn_control_stop(w->slice.control);
	if (s->module) {
		w->to_wake = true;
		return;
	}
	/* Lost to a full socket, it costs the stop_ack deadline and then the worker. */
	(void)kn_act_message(w, KN_MSG_WAKE, NULL, 0, NULL, 0);
}

/* Kind module: where the sandbox around the resident is not in doubt. */
static bool
kill_resident(struct kn_wk *w, enum kn_why why)
{
	if (why == KN_WHY_HARD)
		return kn_resident_kill(w, KN_CAUSE_HARD);
	if (why == KN_WHY_NO_END)
		return kn_resident_kill(w, KN_CAUSE_CANCEL);
	if (why == KN_WHY_NO_STOP_ACK || why == KN_WHY_NOT_CLAIMED)
		return kn_resident_kill(w, KN_CAUSE_STOP);
	return false;
}

static void
act_kill_worker(struct kn_sup *s, const struct kn_action *a)
{
	struct kn_wk *w = &s->wk[a->worker];

	if (!w->live)
		return;
	w->late = w->late || a->why == KN_WHY_NOT_READY;
	KN_LOG(&s->log, KN_NS_LIFECYCLE, (int)w->index, "kill why=%s",
	    kn_why_name(a->why));
	kn_trace_instant(
	    &s->trace, "killed", kn_why_name(a->why), (int)w->index, kn_clock_now());
	if (s->module && kill_resident(w, a->why))
		return;
	kn_launch_kill(s->launcher, w->index, &w->lw);
}

static void
act_answer(struct kn_sup *s, const struct kn_action *a)
{
	struct kn_entry *e = &s->entry[a->task];

	e->attempt = a->attempt;
	e->how = a->how;
	kn_publish_forget(e);
	e->state = KN_ENTRY_ENDING;
	if (e->task->stdio != KN_STDIO_RELAY || kn_relay_finish(e))
		kn_outcome_answer(e);
	else if (e->cancel_sent) /* what its reader did not take at once is lost */
		kn_relay_abandon(s);
	/* else it is answered when the caller has taken its output */
}

static void
act_pool_failed(struct kn_sup *s, const struct kn_action *a)
{
	struct kn_err e;

	s->pool_failed = true;
	KN_LOG(&s->log, KN_NS_LIFECYCLE, KN_LOG_POOL, "pool failed why=%s",
	    kn_why_name(a->why));
	kn_err_set(
	    &e, KN_EK_LAUNCH, "no worker could be started (%s)", kn_why_name(a->why));
	if (!s->has_fail)
		kn_turn_fail(s, &e);
}

void
kn_act_do(struct kn_sup *s, const struct kn_action *a)
{
	switch (a->type) {
	case KN_ACT_SPAWN:
		act_spawn(s, a);
		break;
	case KN_ACT_PUBLISH:
		act_publish(s, a);
		break;
	case KN_ACT_TAKE_BACK:
		act_take_back(s, a);
		break;
	case KN_ACT_KILL_TASK:
		act_kill_task(s, a);
		break;
	case KN_ACT_STOP_WORKER:
		act_stop_worker(s, a);
		break;
	case KN_ACT_KILL_WORKER:
		act_kill_worker(s, a);
		break;
	case KN_ACT_LOOK_BEGUN:
		act_look_begun(s, a);
		break;
	case KN_ACT_LOOK_OVER:
		act_look_over(s, a);
		break;
	case KN_ACT_ANSWER:
		act_answer(s, a);
		break;
	case KN_ACT_POOL_FAILED:
		act_pool_failed(s, a);
		break;
	case KN_ACT_ENDED:
		s->ended = true;
		break;
	case KN_ACT_N:
		break;
	}
}
