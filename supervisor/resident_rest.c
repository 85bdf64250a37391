/* supervisor/resident_rest.c: idle residents at rest, where their memory is watched.
 *
 * Without a cgroup the stub looks five times a second what a cell takes: also at that
 * of a module which nobody calls, since whatever it left there (a timer, a signal)
 * could run. A process that is stopped takes nothing, and its cell's init hears when it
 * goes on. So one that has had nothing to do for a while is stopped (by the stub,
 * unless it has threads or processes of its own), and goes on with the next call:
 * nobody is woken in between.
 */
#include <signal.h>

#include "ipc/clock.h"
#include "ipc/fd.h"
#include "supervisor/inner.h"

/* Longer than it waits before it gives its pages back (sandbox/module/serve.c). */
#define REST_NS (1500 * KN_MS_NS)

bool
kn_rest_wanted(const struct kn_sup *s)
{
	return s->module && s->policy->task.memory &&
	       kn_launcher_layers(s->launcher)->state[KN_LAYER_CG_MEMORY] !=
		   KN_LAYER_ENFORCED;
}

static bool
tell(struct kn_wk *w, int signo)
{
	struct kn_msg msg = { .type = KN_MSG_SIGNAL,
		.task = KN_RESIDENT_TASK,
		.gen = w->res.job_gen,
		.arg = (uint32_t)signo };

	return kn_fd_send(w->lw.sock, &msg, sizeof msg, NULL, 0, 1) == 0;
}

static bool
is_idle(const struct kn_wk *w)
{
	const struct kn_resident_wk *r = &w->res;

	return w->live && w->ready && !w->stopping && !w->bad && !r->bad &&
	       r->running && !r->kill_by_ns && !w->to_wake && !kn_wk_owes(w);
}

uint64_t
kn_rest_due(struct kn_wk *w, uint64_t now_ns)
{
	struct kn_resident_wk *r = &w->res;

	if (r->rested || !is_idle(w))
		r->rest_ns = 0;
	else if (!r->rest_ns)
		r->rest_ns = now_ns + REST_NS;
	return r->rest_ns;
}

void
kn_rest_timer(struct kn_wk *w, uint64_t now_ns)
{
	uint64_t due_ns = kn_rest_due(w, now_ns);

	if (!due_ns || due_ns > now_ns)
		return;
	w->res.rested = tell(w, SIGSTOP);
	w->res.rest_ns = 0;
	KN_LOG(&w->sup->log, KN_NS_LIFECYCLE, (int)w->index, "rests");
}

void
kn_rest_end(struct kn_wk *w)
{
	if (!w->res.rested)
		return;
	w->res.rested = false;
	if (!tell(w, SIGCONT)) /* it would hear of nothing any more */
		kn_launch_kill(w->sup->launcher, w->index, &w->lw);
}
