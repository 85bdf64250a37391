/* cmd/serve_view.c: GET /workers: what a server does right now, as JSON, for `top`.
 *
 * It has the ids of everybody's tasks, so it is told on unix sockets only, whose
 * permissions say who may ask: a loopback port is open to all users of the machine.
 */
#include <jansson.h>
#include <stdlib.h>
#include <unistd.h>

#include "cmd/serve_int.h"
#include "ipc/clock.h"

enum { CLIENTS_SHOWN = 256 };

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

static json_t *
client(const struct kn_client *c)
{
	struct knit_batch_counts n = { .size = sizeof n };
	json_t *o = json_object();

	(void)knit_batch_count(c->batch, &n, NULL);
	number(o, "client", c->number);
	number(o, "accepted", n.accepted);
	number(o, "answered", n.answered);
	number(o, "waiting", n.waiting);
	number(o, "running", n.running);
	number(o, "unsent_bytes", c->out.end - c->out.at);
	set(o, "draining", json_boolean(!c->reading));
	return o;
}

static json_t *
pool(const struct kn_serve *s, const struct kn_serve_pool *p)
{
	char *workers = knit_pool_workers(p->pool);
	const char *hash = knit_policy_hash(p->policy);
	json_t *o = json_object(),
	       *list = workers ? json_loads(workers, 0, NULL) : NULL;

	free(workers);
	set(o, "policy", json_string(hash ? hash : ""));
	set(o, "current", json_boolean(p == s->pools));
	number(o, "clients", p->clients);
	set(o, "workers", list ? list : json_array());
	return o;
}

static json_t *
tasks(const struct kn_serve_sums *v)
{
	json_t *o = json_object(), *by = json_object();
	uint64_t answered = 0;

	for (int i = 0; i < KNIT_VERDICT_N; i++) {
		answered += v->t.verdicts[i];
		if (v->t.verdicts[i] > 0)
			number(by, knit_verdict_name((enum knit_verdict)i),
			    v->t.verdicts[i]);
	}
	number(o, "accepted", v->accepted);
	number(o, "answered", answered);
	number(o, "abandoned", v->t.abandoned);
	number(o, "live", v->live);
	number(o, "running", v->running);
	number(o, "stolen", v->t.stolen);
	set(o, "verdicts", by);
	return o;
}

char *
kn_serve_view(const struct kn_serve *s, size_t *out_n)
{
	json_t *o = json_object(), *pools = json_array(), *clients = json_array();
	struct kn_serve_sums v = { 0 };
	unsigned shown = 0;
	char *text;

	kn_serve_sum(s, &v);
	set(o, "state", json_string(kn_serve_state_name(s)));
	number(o, "pid", (uint64_t)getpid());
	number(o, "uptime_ms", (kn_clock_now() - s->start_ns) / 1000000);
	set(o, "tasks", tasks(&v));
	number(o, "workers_started", v.t.workers_started);
	number(o, "workers_lost", v.t.workers_lost);
	number(o, "launches_failed", v.t.failed_launches);
	number(o, "connections", s->client_n);
	for (const struct kn_client *c = s->clients; c && shown < CLIENTS_SHOWN;
	     c = c->next, shown++)
		(void)json_array_append_new(clients, client(c));
	set(o, "clients", clients);
	for (const struct kn_serve_pool *p = s->pools; p; p = p->next)
		(void)json_array_append_new(pools, pool(s, p));
	set(o, "pools", pools);
	text = json_dumps(o, JSON_COMPACT);
	json_decref(o);
	*out_n = text ? __builtin_strlen(text) : 0;
	return text;
}
