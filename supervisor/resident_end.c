/* supervisor/resident_end.c: how a resident ends, and what that means for the call that
 * it was at and for the sandbox around it; see resident.h.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "ipc/clock.h"
#include "ipc/fd.h"
#include "supervisor/inner.h"

bool
kn_resident_kill(struct kn_wk *w, enum kn_cause cause)
{
	struct kn_resident_wk *r = &w->res;
	struct kn_msg msg = { .type = KN_MSG_KILL,
		.task = KN_RESIDENT_TASK,
		.gen = r->job_gen,
		.arg = cause };

	if (r->ended || (r->over && r->kill_by_ns))
		return true; /* it is over, and GONE is on its way */
	if (!r->running || r->bad || w->bad || r->kill_by_ns)
		return false;
	r->killed = cause;
	r->killed_ns = kn_clock_now();
	r->kill_by_ns = kn_clock_after_ms(r->killed_ns,
	    (uint64_t)KN_RESIDENT_KILL_MS + w->sup->policy->timeouts.grace_ms);
	return kn_fd_send(w->lw.sock, &msg, sizeof msg, NULL, 0, 1) == 0;
}

/* The call that its processor time was all used up by, if that one has not been
 * answered yet: also where its process says that it was at another one, or at none. */
static struct kn_entry *
guilty(struct kn_wk *w)
{
	struct kn_resident_wk *r = &w->res;
	struct kn_entry *e = r->cpu.over && r->killed == KN_CAUSE_CPU
				 ? kn_view_entry(w, r->cpu.task, r->cpu.gen)
				 : NULL;

	if (!e || !e->claimed)
		return NULL;
	if (!r->ended) /* the stub went with it; it is we who know why */
		r->end = (struct kn_job_result){ .cause = KN_CAUSE_CPU,
			.step = KN_EXEC_STARTED,
			.wait_status = SIGKILL,
			.ended_ns = kn_clock_now() };
	r->ended = true;
	return e;
}

/* It was ended for another call than e, which had begun meanwhile: that one ended just
 * before the kill came, and its result is there, or it is the core's to answer. */
static bool
is_anothers_end(const struct kn_resident_wk *r, const struct kn_entry *e, uint64_t ns)
{
	uint64_t hard_ns = e->task->timeouts.hard_ms * KN_MS_NS;

	if (r->end.cause == KN_CAUSE_HARD)
		return !hard_ns || ns - e->begun_ns < hard_ns;
	if (r->end.cause == KN_CAUSE_CANCEL)
		return !e->aborted;
	return r->end.cause == KN_CAUSE_OUTPUT && e->begun_ns >= r->killed_ns;
}

/* The stub counts from the resident's start: a child that a call left may have met the
 * limit long ago. It is this call's end if it was the process itself, or if there was
 * no other call. */
static bool
is_end_by_memory(const struct kn_wk *w)
{
	const struct kn_job_result *end = &w->res.end;

	return w->results == 0 ||
	       (end->cause == KN_CAUSE_NONE && WIFSIGNALED(end->wait_status) &&
		   WTERMSIG(end->wait_status) == SIGKILL);
}

/* How the resident ended is how e did. */
static void
take_end(struct kn_wk *w, struct kn_entry *e, uint64_t ended_ns)
{
	e->ended_ns = ended_ns;
	e->result = w->res.end;
	e->result.begun_ns = e->begun_ns;
	e->result.ended_ns = e->ended_ns;
	e->result.user_us = e->result.system_us =
	    0; /* the resident's, not the call's */
	if (!is_end_by_memory(w))
		e->result.oom_kills = e->result.oom_outside = 0;
	e->has_result = e->died = true;
}

/* What it was at, by its own word, which costs nobody but itself; how it ended, by the
 * stub's. */
void
kn_resident_answer(struct kn_wk *w)
{
	struct kn_resident_wk *r = &w->res;
	struct kn_event ev = { .type = KN_EV_RESULT,
		.now_ns = kn_clock_now(),
		.worker = w->index,
		.incarnation = w->incarnation };
	struct kn_entry *e, *over;
	uint32_t task, gen;
	uint64_t ns = 0, ended_ns;

	if (w->bad || !w->ready)
		return;
	over = guilty(w);
	e = kn_control_begun(w->slice.control, &task, &gen, &ns)
		? kn_view_entry(w, task, gen)
		: NULL;
	if (over && over != e) {
		e = over;
		ns = 0;
	}
	if (!e || !e->claimed)
		return;
	if (ns < e->published_ns)
		ns = e->published_ns;
	e->begun_ns = ns < ev.now_ns ? ns : ev.now_ns;
	ev.task = e->index;
	ev.gen = e->gen;
	ended_ns = r->end.ended_ns > e->begun_ns && r->end.ended_ns <= ev.now_ns
		       ? r->end.ended_ns
		       : ev.now_ns;
	/* Its end is not known where the stub went too, and not its own where the
	 * resident was stopped for a reason that is not this call's. It is lost, and
	 * not to be run again unasked. */
	if (!r->ended || r->killed == KN_CAUSE_STOP ||
	    (r->killed == KN_CAUSE_CPU && !over) || is_anothers_end(r, e, ended_ns)) {
		ev.type = KN_EV_BEGUN;
		ev.begun_ns = e->begun_ns;
		e->why =
		    r->ended ? "it was ended for another reason than this call" : NULL;
		kn_turn_feed(w->sup, &ev);
		return;
	}
	take_end(w, e, ended_ns);
	kn_publish_forget(e);
	kn_turn_feed(w->sup, &ev);
}

bool
kn_resident_explain(struct kn_wk *w, struct kn_err *e)
{
	const struct kn_resident_wk *r = &w->res;
	const char *file = w->sup->policy->pool.module;
	int st = r->end.wait_status;

	if (r->load_failed) {
		*e = r->load_err;
		return true;
	}
	if (!r->ended)
		return false;
	if (r->end.step != KN_EXEC_STARTED)
		kn_err_set(e, KN_EK_LAUNCH, "the module's process: %s%s%s: %s",
		    kn_exec_step_name(r->end.step), r->end.detail[0] ? ": " : "",
		    r->end.detail, strerror((int)r->end.sys));
	else if (r->end.oom_outside)
		kn_err_set(e, KN_EK_LAUNCH,
		    "%s: killed for want of memory while it was loaded: the machine, "
		    "or a control group around us, had none left",
		    file);
	else if (r->end.oom_kills)
		kn_err_set(e, KN_EK_LAUNCH,
		    "%s: loading it took more than its memory limit", file);
	else if (WIFSIGNALED(st))
		kn_err_set(e, KN_EK_LAUNCH,
		    "%s: ended by signal %d (%s) while it was "
		    "loaded",
		    file, WTERMSIG(st), strsignal(WTERMSIG(st)));
	else
		kn_err_set(e, KN_EK_LAUNCH,
		    "%s: ended with status %d while it was "
		    "loaded",
		    file, WEXITSTATUS(st));
	return true;
}

void
kn_resident_close(struct kn_wk *w)
{
	struct kn_resident_wk *r = &w->res;

	kn_say_close(w, &r->out);
	kn_say_close(w, &r->err);
	kn_loop_del(&w->sup->loop, &r->w_bell);
	kn_fd_close(&r->bell_fd);
}

void
kn_resident_free(struct kn_wk *w)
{
	kn_resident_close(w);
	free(w->res.known);
	w->res.known = NULL;
	w->res.known_n = 0;
	w->res.up = w->res.ready = w->res.running = false;
}

void
kn_resident_gone(struct kn_wk *w, uint64_t now_ns)
{
	struct kn_sup *s = w->sup;
	struct kn_resident_wk *r = &w->res;

	if (!r->up)
		return;
	if (kn_view_launcher_gone(w, now_ns)) {
		(void)kn_resident_look(w);
		if (w->live)
			kn_view_finish(w, false);
		else
			kn_act_release(w);
		return;
	}
	if (w->exited || !w->live || !r->ended)
		return;
	/* A stub that is no more needed, or not to be trusted, ends first. */
	if (r->bad || w->bad || w->sock_eof || s->draining || s->stop_level)
		kn_launch_kill(s->launcher, w->index, &w->lw);
	else
		kn_view_finish(w, true);
}

uint64_t
kn_resident_due(const struct kn_wk *w)
{
	const struct kn_resident_wk *r = &w->res;
	uint64_t due = kn_say_due(r), quiet = 0;

	if (!w->live)
		return 0;
	if (r->payload_ns && !kn_wk_owes(w))
		quiet = r->payload_ns + KN_RESIDENT_QUIET_MS * KN_MS_NS;
	if (quiet && (!due || quiet < due))
		due = quiet;
	if (r->kill_by_ns && (!due || r->kill_by_ns < due))
		due = r->kill_by_ns;
	return due;
}

/* Pages that large payloads took, once nothing has used them for a while. */
static void
give_back(struct kn_wk *w)
{
	struct kn_resident_wk *r = &w->res;
	const struct kn_layout *l = &w->sup->arena.layout;
	uint64_t at = kn_layout_slice_off(l, kn_resident_slice(w->sup, w->index));
	int mode = FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE;

	r->payload_ns = 0;
	if (r->backed)
		(void)fallocate(w->sup->arena.fd, mode,
		    (off_t)(at + l->submit_area_off), (off_t)r->backed);
	if (r->returned)
		(void)fallocate(w->sup->arena.fd, mode,
		    (off_t)(at + l->return_area_off), (off_t)r->returned);
	r->backed = r->returned = 0;
	free(w->sup->module->value);
	w->sup->module->value = NULL;
	w->sup->module->value_room = 0;
}

/* It was to be gone by now, and nothing of it runs any more: what is left to do takes
 * the stub its time, which is given to it once. */
static bool
is_over(struct kn_wk *w, uint64_t now_ns)
{
	struct kn_resident_wk *r = &w->res;
	uint32_t more_ms = w->sup->policy->timeouts.teardown_ms;

	if (r->over || more_ms == 0 ||
	    !kn_control_is_over(r->slice.control, KN_RESIDENT_TASK, r->job_gen))
		return false;
	r->over = true;
	r->kill_by_ns = kn_clock_after_ms(now_ns, more_ms);
	return true;
}

void
kn_resident_timer(struct kn_wk *w, uint64_t now_ns)
{
	struct kn_resident_wk *r = &w->res;

	if (!w->live)
		return;
	if (r->kill_by_ns && r->kill_by_ns <= now_ns && !is_over(w, now_ns)) {
		r->kill_by_ns = 0;
		KN_LOG(&w->sup->log, KN_NS_LIFECYCLE, (int)w->index,
		    "the resident outlives its kill");
		kn_launch_kill(w->sup->launcher, w->index, &w->lw);
	}
	kn_say_timer(w, now_ns);
	if (r->payload_ns && !kn_wk_owes(w) &&
	    r->payload_ns + KN_RESIDENT_QUIET_MS * KN_MS_NS <= now_ns)
		give_back(w);
}
