/* supervisor/report_workers.c: the workers of a pool as JSON, for who watches it: what
 * each does, for how long, and what it uses where the kernel counts that.
 */
#include <jansson.h>
#include <stdio.h>

#include "ipc/clock.h"
#include "supervisor/inner.h"

enum { TASKS_SHOWN = 8 }; /* of one worker; a module may have claimed many */

static void
set(json_t *o, const char *key, json_t *v)
{
	(void)json_object_set_new(o, key, v);
}

static void
number(json_t *o, const char *key, uint64_t n)
{
	set(o, key, json_integer((json_int_t)n));
}

static uint64_t
ms_since(uint64_t now, uint64_t then)
{
	return then && then < now ? (now - then) / KN_MS_NS : 0;
}

static json_t *
task(const struct kn_entry *e, uint64_t now)
{
	json_t *o = json_object(), *id = json_string(e->task->id ? e->task->id : "-");

	set(o, "id", id ? id : json_string("?")); /* no UTF-8 */
	number(o, "ms", ms_since(now, e->begun_ns ? e->begun_ns : e->published_ns));
	number(o, "attempt", e->attempt);
	return o;
}

static const char *
state(const struct kn_wk *w, size_t running)
{
	if (!w->live)
		return "down";
	if (!w->ready)
		return "starting";
	if (w->stopping)
		return "stopping";
	return running > 0 ? "busy" : "idle";
}

static json_t *
worker(struct kn_sup *s, struct kn_wk *w, uint64_t now)
{
	json_t *o = json_object(), *list = json_array();
	uint64_t cpu_ns, memory;
	size_t running = 0, waiting = 0;
	char name[16];

	for (uint32_t i = 0; i < s->task_max; i++) {
		const struct kn_entry *e = &s->entry[i];

		if (e->state != KN_ENTRY_PLACED || e->worker != (int)w->index)
			continue;
		if (!e->claimed)
			waiting++;
		else if (running++ < TASKS_SHOWN)
			(void)json_array_append_new(list, task(e, now));
	}
	snprintf(name, sizeof name, "w%u", w->index);
	set(o, "worker", json_string(name));
	set(o, "state", json_string(state(w, running)));
	if (w->live) {
		number(o, "pid", w->lw.proc.pid > 0 ? (uint64_t)w->lw.proc.pid : 0);
		number(o, "age_ms", ms_since(now, w->spawned_ns));
		number(o, "answered", w->results);
		memory = kn_launch_memory_now(s->launcher, w->index);
		if (memory > 0)
			number(o, "memory", memory);
		if (kn_launch_cpu_now(s->launcher, w->index, &w->lw, &cpu_ns) == 0)
			number(o, "cpu_ms", cpu_ns / KN_MS_NS);
	}
	number(o, "running", running);
	number(o, "waiting", waiting);
	set(o, "tasks", list);
	return o;
}

char *
kn_sup_shown(struct kn_sup *s)
{
	uint64_t now = kn_clock_now();
	json_t *all = json_array();
	char *text;

	for (uint32_t i = 0; i < s->worker_n; i++)
		(void)json_array_append_new(all, worker(s, &s->wk[i], now));
	text = json_dumps(all, JSON_COMPACT);
	json_decref(all);
	return text;
}
