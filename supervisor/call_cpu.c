/* supervisor/call_cpu.c: kind module: the limit of one call's processor time.
 *
 * A call is no process, and what its process has used says nothing about it: but a
 * worker is at one call at a time, so what all of its processes use between two answers
 * is the call's that gives the second one. The clocks are read from outside, where a
 * module cannot lie. Not for each call, which would cost a system call or two: a call
 * is first looked at when it has taken a while, and counted from then on; the next look
 * is at the earliest moment at which it can have used what is left. So short calls cost
 * nothing, an idle pool is not woken, and a call has its limit and some milliseconds.
 */
#include "ipc/clock.h"
#include "ipc/control.h"
#include "sandbox/host.h"
#include "supervisor/inner.h"

#define FIRST_NS (2 * KN_MS_NS)
#define LEAST_NS (4 * KN_MS_NS)
#define UNCLAIMED_NS (50 * KN_MS_NS) /* claim_ms is what such a worker has to fear */

uint64_t
kn_call_cpu_due(struct kn_wk *w, uint64_t now_ns)
{
	struct kn_call_cpu *c = &w->res.cpu;

	if (!w->sup->cpu_limits || !w->ready || c->over || w->outstanding == 0) {
		c->on = false;
		return 0;
	}
	if (!c->on || c->results != w->results)
		*c = (struct kn_call_cpu){
			.on = true, .results = w->results, .due_ns = now_ns + FIRST_NS
		};
	return c->due_ns;
}

/* By its own word, or else the one that came first: it has claimed it, and has not
 * answered. */
static struct kn_entry *
at_work(struct kn_wk *w)
{
	struct kn_sup *s = w->sup;
	struct kn_entry *first = NULL, *e;
	uint32_t task, gen;
	uint64_t ns;

	if (kn_control_begun(w->slice.control, &task, &gen, &ns)) {
		e = kn_view_entry(w, task, gen);
		if (e && e->claimed)
			return e;
	}
	for (uint32_t i = 0; i < s->task_max; i++) {
		e = &s->entry[i];
		if (e->state == KN_ENTRY_PLACED && e->worker == (int)w->index &&
		    e->claimed && (!first || e->published_ns < first->published_ns))
			first = e;
	}
	return first;
}

static void
end(struct kn_wk *w, const struct kn_entry *e, uint64_t used_ns)
{
	struct kn_call_cpu *c = &w->res.cpu;

	c->over = true;
	c->task = e->index;
	c->gen = e->gen;
	KN_LOG(&w->sup->log, KN_NS_LIFECYCLE, (int)w->index,
	    "task %s kill cause=cpu used=%llums", e->task->id ? e->task->id : "-",
	    (unsigned long long)(used_ns / KN_MS_NS));
	if (!kn_resident_kill(w, KN_CAUSE_CPU))
		kn_launch_kill(w->sup->launcher, w->index, &w->lw);
}

static void
judge(struct kn_wk *w, const struct kn_entry *e, uint64_t now_ns)
{
	struct kn_call_cpu *c = &w->res.cpu;
	uint64_t limit_ns = e->task->limits.cpu_ms * KN_MS_NS, read_ns, used_ns, in_ns;

	if (kn_launch_cpu_now(w->sup->launcher, w->index, &w->lw, &read_ns) < 0) {
		c->due_ns = now_ns + LEAST_NS;
		return;
	}
	if (!c->based || read_ns < c->base_ns)
		c->base_ns = read_ns;
	c->based = true;
	used_ns = read_ns - c->base_ns;
	if (used_ns >= limit_ns) {
		end(w, e, used_ns);
		return;
	}
	in_ns = (limit_ns - used_ns) / w->sup->host->cpus;
	c->due_ns = now_ns + (in_ns > LEAST_NS ? in_ns : LEAST_NS);
}

void
kn_call_cpu_timer(struct kn_wk *w, uint64_t now_ns)
{
	struct kn_call_cpu *c = &w->res.cpu;
	const struct kn_entry *e;

	uint64_t due_ns;

	if (!w->live || w->bad)
		return;
	due_ns = kn_call_cpu_due(w, now_ns); /* nobody may have slept since it began */
	if (!due_ns || due_ns > now_ns)
		return;
	kn_view_look_claims(w);
	if (w->bad || c->results != w->results)
		return; /* answers have come: it is another one's time */
	e = at_work(w);
	if (!e)
		c->due_ns = now_ns + UNCLAIMED_NS;
	else if (e->task->limits.cpu_ms == 0)
		c->due_ns = 0;
	else
		judge(w, e, now_ns);
}
