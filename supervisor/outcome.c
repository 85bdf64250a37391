/* supervisor/outcome.c: an entry that is decided -> the outcome that is answered.
 *
 * Exactly once per accepted task: the answer frees the entry, and an entry is freed
 * nowhere else.
 */
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "ipc/clock.h"
#include "sandbox/lack.h"
#include "supervisor/inner.h"
#include "supervisor/verdict.h"

static void
free_entry(struct kn_entry *e)
{
	struct kn_sup *s = e->sup;

	if (!s->module) {
		kn_stream_reset(e);
		kn_files_drop(e);
	}
	kn_net_tally_fini(&e->net);
	if (e->heard)
		kn_refused_forget(e);
	e->task = NULL;
	e->state = KN_ENTRY_FREE;
	e->worker = -1;
	e->next = s->free_head;
	s->free_head = e->index;
	s->used_n--;
}

static uint64_t
span_us(uint64_t from, uint64_t to)
{
	return to > from ? (to - from) / 1000 : 0;
}

/* A task that lay in a lane and was never taken from it has waited, not run. */
static bool
was_begun(const struct kn_entry *e)
{
	return e->worker >= 0 && (e->claimed || e->how == KN_HOW_RESULT);
}

static void
fill_usage(const struct kn_entry *e, uint64_t now, struct kn_outcome *o)
{
	const struct kn_job_result *r = &e->result;
	uint64_t begun = e->begun_ns ? e->begun_ns : e->published_ns;

	if (e->how == KN_HOW_RESULT && e->sup->module && !e->died) {
		o->wall_us = span_us(begun, e->ended_ns);
	} else if (e->how == KN_HOW_RESULT && e->has_result) {
		o->wall_us = span_us(r->begun_ns, r->ended_ns);
		o->user_us = r->user_us;
		o->system_us = r->system_us;
		o->cpu_us = r->user_us + r->system_us;
		o->max_rss = r->max_rss;
		o->memory_peak = r->memory_peak;
		o->pids_peak = r->pids_peak;
	} else if (was_begun(e) && e->how != KN_HOW_QUEUE_TIMEOUT) {
		o->wall_us = span_us(begun, now);
	}
	o->queue_us = span_us(e->accepted_ns, was_begun(e) ? begun : now);
}

static void
judge_call(const struct kn_entry *e, struct kn_verdict_in *in, struct kn_outcome *o)
{
	const struct kn_call *c = &e->task->call;
	struct kn_call_in call = { .died = e->died,
		.aborted = e->aborted,
		.flags = e->flags,
		.value = &e->value,
		.soft_default = &c->soft_default };

	in->program = kn_call_name(e);
	kn_verdict_of_call(in, &call, o);
}

static void
judge(const struct kn_entry *e, struct kn_outcome *o)
{
	const struct kn_sup *s = e->sup;
	const struct kn_task *t = e->task;
	const struct kn_wk *w = e->worker >= 0 ? &s->wk[e->worker] : NULL;
	struct kn_verdict_in in = { .how = e->how,
		.result = &e->result,
		.limits = &t->limits,
		.timeouts = &t->timeouts,
		.program = t->argv_n ? t->argv[0] : "",
		.cwd = t->cwd,
		.wall_ns = o->wall_us * 1000,
		.over = e->over,
		.broken = e->broken,
		.broken_sys = e->broken_sys,
		.run_only = s->policy->run.n > 0,
		.stopping = s->stop_level > 0 };

	if (e->over)
		in.over_cap = strcmp(e->over, "stdout") == 0 ? t->limits.stdout_bytes
							     : t->limits.stderr_bytes;
	if (e->how == KN_HOW_RESULT && e->result.step == KN_EXEC_FILES)
		in.behind = kn_lack_openat2_text((int)e->result.sys);
	if (e->how == KN_HOW_LAUNCH_FAILED && s->has_fail)
		in.note = s->fail.msg;
	if (e->how == KN_HOW_WORKER_LOST)
		in.note = e->why;
	if (e->how == KN_HOW_VIOLATION && w && w->incarnation == e->incarnation)
		in.note = w->bad;
	if (e->how == KN_HOW_RESULT && !e->has_result)
		in.how =
		    KN_HOW_WORKER_LOST; /* cannot be; never "ok" without a result */
	if (t->call.name || t->call.fn)
		judge_call(e, &in, o);
	else
		kn_verdict_of(&in, o);
}

static void
trace(const struct kn_entry *e, const struct kn_outcome *o, uint64_t now)
{
	struct kn_sup *s = e->sup;
	uint64_t begun = e->begun_ns ? e->begun_ns : e->published_ns;
	uint64_t ended = e->ended_ns ? e->ended_ns : now;

	if (s->trace.fd < 0)
		return;
	if (o->worker < 0) {
		kn_trace_queued(&s->trace, e->task->id, e->serial, e->accepted_ns, now);
		return;
	}
	kn_trace_queued(&s->trace, e->task->id, e->serial, e->accepted_ns, begun);
	kn_trace_ran(&s->trace, e->task->id, o->worker, begun, ended,
	    kn_verdict_name(o->verdict));
	/* It ends where the task began, or viewers find nothing there to point at. */
	if (e->taken_ns && e->taken_from != o->worker)
		kn_trace_moved(&s->trace, e->task->id, e->serial, e->taken_from,
		    o->worker, e->taken_ns < begun ? e->taken_ns : begun, begun);
}

void
kn_outcome_answer(struct kn_entry *e)
{
	struct kn_sup *s = e->sup;
	struct kn_task *t = e->task;
	uint64_t now = s->module ? s->step_ns : kn_clock_now();
	struct kn_outcome o;

	memset(&o, 0, offsetof(struct kn_outcome, error));
	o.error[0] = '\0';
	o.worker = was_begun(e) ? e->worker : -1;
	o.attempt = e->attempt;
	o.exit_code = -1;
	o.layers = *kn_launcher_layers(s->launcher);
	for (unsigned i = 0; i < KN_LAYER_N; i++)
		o.lacks[i] = kn_launcher_lacks(s->launcher, (enum kn_layer)i);
	if (e->state == KN_ENTRY_REFUSED) {
		o.verdict = e->refusal;
		snprintf(o.error, sizeof o.error, "%s", e->why);
	} else {
		if (!s->module)
			kn_stream_drain(e);
		fill_usage(e, now, &o);
		judge(e, &o);
		if (o.verdict == KN_V_DENIED)
			kn_refused_name_killers(s, &o);
	}
	if (!s->module) {
		kn_cap_take(&e->io.cap_out, &o.out);
		kn_cap_take(&e->io.cap_err, &o.err);
	}
	if (t->stdio == KN_STDIO_RELAY) {
		o.out.total = e->io.relayed[0];
		o.err.total = e->io.relayed[1];
		o.out.passed = e->io.handed[0];
		o.err.passed = e->io.handed[1];
		o.out.truncated = o.out.total > t->limits.stdout_bytes;
		o.err.truncated = o.err.total > t->limits.stderr_bytes;
	}
	if (e->heard)
		kn_refused_fill(e, &o);
	o.files = e->files;
	o.file_n = e->file_n;
	e->files = NULL;
	e->file_n = e->file_room = 0;
	if (o.file_n > 0 && !s->module)
		kn_out_bring(s, t->id, &o);
	o.has_net = s->egress && o.worker >= 0;
	o.net = e->net;
	e->net = (struct kn_net_tally){ 0 };
	trace(e, &o, now);
	KN_LOG(&s->log, KN_NS_LIFECYCLE, o.worker, "answer %s %s", t->id ? t->id : "-",
	    kn_verdict_name(o.verdict));
	free_entry(e); /* before the call: it may submit the next task */
	s->answered++;
	s->cb.answer(s->cb.ctx, t, &o);
	kn_outcome_fini(&o);
}
