/* tests/sim/trace.c: what happened, in words: a ring of the last lines, printed when a
 * seed fails, or all of them with --transcript. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "tests/sim/sim.h"

void
trace_line_event(char *buf, size_t n, const struct kn_event *ev)
{
	const char *name = kn_event_name(ev->type);

	if (ev->type == KN_EV_SUBMIT)
		snprintf(buf, n, "%s t%u hard %u queue %u retries %u", name, ev->task,
		    ev->submit.hard_ms, ev->submit.queue_ms, ev->submit.retries);
	else if (ev->type == KN_EV_CANCEL)
		snprintf(buf, n, "%s t%u", name, ev->task);
	else if (ev->type >= KN_EV_TIMER)
		snprintf(buf, n, "%s", name);
	else if (ev->type >= KN_EV_PUBLISHED && ev->type <= KN_EV_RESULT)
		snprintf(buf, n, "%s t%u.%u w%u.%u%s%s", name, ev->task, ev->gen,
		    ev->worker, ev->incarnation, ev->infra_fail ? " infra" : "",
		    ev->moved ? " moved" : "");
	else
		snprintf(buf, n, "%s w%u.%u%s", name, ev->worker, ev->incarnation,
		    ev->fatal ? " fatal" : "");
}

void
trace_line_action(char *buf, size_t n, const struct kn_action *a)
{
	const char *name = kn_action_name(a->type);

	switch (a->type) {
	case KN_ACT_SPAWN:
	case KN_ACT_STOP_WORKER:
		snprintf(buf, n, "%s w%u.%u", name, a->worker, a->incarnation);
		break;
	case KN_ACT_KILL_WORKER:
		snprintf(buf, n, "%s w%u.%u %s", name, a->worker, a->incarnation,
		    kn_why_name(a->why));
		break;
	case KN_ACT_PUBLISH:
		snprintf(buf, n, "%s t%u.%u to w%u attempt %u", name, a->task, a->gen,
		    a->worker, a->attempt);
		break;
	case KN_ACT_TAKE_BACK:
	case KN_ACT_LOOK_BEGUN:
	case KN_ACT_LOOK_OVER:
		snprintf(buf, n, "%s t%u.%u w%u", name, a->task, a->gen, a->worker);
		break;
	case KN_ACT_KILL_TASK:
		snprintf(buf, n, "%s t%u.%u w%u %s", name, a->task, a->gen, a->worker,
		    a->arg == KN_CORE_CAUSE_CANCEL ? "cancel"
		    : a->arg == KN_CORE_CAUSE_STOP ? "stop"
						   : "?");
		break;
	case KN_ACT_ANSWER:
		snprintf(buf, n, "%s t%u.%u %s attempt %u", name, a->task, a->gen,
		    kn_how_name(a->how), a->attempt);
		break;
	case KN_ACT_POOL_FAILED:
		snprintf(buf, n, "%s %s", name, kn_why_name(a->why));
		break;
	case KN_ACT_ENDED:
	case KN_ACT_N:
		snprintf(buf, n, "%s", name);
		break;
	}
}

static void
print(const struct sim *s, const struct entry *e)
{
	char line[160];

	if (e->action)
		trace_line_action(line, sizeof line, &e->act);
	else
		trace_line_event(line, sizeof line, &e->ev);
	printf("+%.3fms %s %s\n", (double)(e->now_ns - s->epoch_ns) / 1e6,
	    e->action ? "      " : ">", line);
}

static struct entry *
next(struct sim *s)
{
	struct entry *e = &s->ring[s->ring_n++ % RING];

	e->now_ns = s->now_ns;
	return e;
}

void
trace_event(struct sim *s, const struct kn_event *ev)
{
	struct entry *e = next(s);

	e->action = false;
	e->ev = *ev;
	if (s->transcript)
		print(s, e);
}

void
trace_action(struct sim *s, const struct kn_action *a)
{
	struct entry *e = next(s);

	e->action = true;
	e->act = *a;
	if (s->transcript)
		print(s, e);
}

void
trace_dump(const struct sim *s)
{
	uint64_t i = s->ring_n > RING ? s->ring_n - RING : 0;

	for (; !s->transcript && i < s->ring_n; i++)
		print(s, &s->ring[i % RING]);
}

void
sim_fail(struct sim *s, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(s->message, sizeof s->message, fmt, ap);
	va_end(ap);
	longjmp(s->failed_at, 1);
}
