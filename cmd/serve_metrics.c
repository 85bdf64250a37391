/* cmd/serve_metrics.c: the numbers of a server, as Prometheus reads them.
 *
 * At every moment accepted = answered + abandoned + live: each task that was taken is
 * in exactly one of them.
 */
#include <stdio.h>
#include <stdlib.h>

#include "cmd/serve_int.h"

const char *
kn_serve_state_name(const struct kn_serve *s)
{
	switch (s->state) {
	case KN_SERVE_STARTING:
		return "starting";
	case KN_SERVE_SERVING:
		return "serving";
	case KN_SERVE_DRAINING:
	case KN_SERVE_KILLING:
		break;
	}
	return "draining";
}

static void
metric(FILE *f, const char *name, const char *type, const char *help, uint64_t value)
{
	fprintf(f, "# HELP %s %s\n# TYPE %s %s\n%s %llu\n", name, help, name, type,
	    name, (unsigned long long)value);
}

void
kn_serve_sum(const struct kn_serve *s, struct kn_serve_sums *sum)
{
	sum->t = s->totals;
	sum->accepted = s->totals.accepted;
	for (const struct kn_client *c = s->clients; c; c = c->next) {
		struct knit_batch_counts n = { .size = sizeof n };

		if (knit_batch_count(c->batch, &n, NULL) < 0)
			continue;
		sum->accepted += n.accepted;
		sum->live += n.accepted - n.answered;
	}
	for (const struct kn_serve_pool *p = s->pools; p; p = p->next) {
		struct knit_pool_counts n = { .size = sizeof n };

		if (knit_pool_count(p->pool, &n, NULL) < 0)
			continue;
		sum->pools++;
		sum->running += n.running;
		sum->workers += n.workers;
		sum->t.stolen += n.stolen;
		sum->t.workers_started += n.workers_started;
		sum->t.workers_lost += n.workers_lost;
		sum->t.failed_launches += n.failed_launches;
	}
}

static void
print_tasks(FILE *f, const struct kn_serve_sums *v)
{
	metric(f, "knit_tasks_accepted_total", "counter", "Task lines that were taken.",
	    v->accepted);
	fputs(
	    "# HELP knit_tasks_answered_total Result lines, by verdict; also of lines "
	    "that were no task.\n"
	    "# TYPE knit_tasks_answered_total counter\n",
	    f);
	for (int i = 0; i < KNIT_VERDICT_N; i++)
		fprintf(f, "knit_tasks_answered_total{verdict=\"%s\"} %llu\n",
		    knit_verdict_name((enum knit_verdict)i),
		    (unsigned long long)v->t.verdicts[i]);
	metric(f, "knit_tasks_abandoned_total", "counter",
	    "Tasks that were cancelled because their client had gone.", v->t.abandoned);
	metric(f, "knit_tasks_live", "gauge", "Taken and not answered yet.", v->live);
	metric(f, "knit_tasks_running", "gauge", "Of these, running now.", v->running);
	metric(f, "knit_tasks_stolen_total", "counter",
	    "Tasks that an idle worker took over from a busy one.", v->t.stolen);
}

static const char *
fact(const struct knit_pool *pool, const char *name)
{
	const char *v = knit_pool_fact(pool, name);

	return v ? v : "";
}

/* Of the pool that new connections get. */
static void
print_pool(FILE *f, const struct kn_serve_pool *p)
{
	fprintf(f,
	    "# HELP knit_policy_info The policy of new connections.\n"
	    "# TYPE knit_policy_info gauge\n"
	    "knit_policy_info{hash=\"%s\"} 1\n",
	    knit_policy_hash(p->policy));
	fprintf(f,
	    "# HELP knit_steal_info How waiting tasks get to idle workers, and why.\n"
	    "# TYPE knit_steal_info gauge\n"
	    "knit_steal_info{mode=\"%s\",reason=\"%s\",claim=\"%s\","
	    "region_lanes=\"%s\"} 1\n",
	    fact(p->pool, "steal"), fact(p->pool, "steal-why"), fact(p->pool, "claim"),
	    fact(p->pool, "region-lanes"));
}

char *
kn_serve_metrics(struct kn_serve *s, size_t *out_n)
{
	struct kn_serve_fds fds;
	struct kn_serve_sums v = { 0 };
	char *text = NULL;
	FILE *f = open_memstream(&text, out_n);

	if (!f)
		return NULL;
	kn_serve_sum(s, &v);
	metric(f, "knit_serving", "gauge", "1 while tasks are taken.",
	    s->state == KN_SERVE_SERVING);
	print_tasks(f, &v);
	metric(f, "knit_clients", "gauge", "Connections now.", s->client_n);
	metric(f, "knit_clients_total", "counter", "Connections since the start.",
	    v.t.clients);
	metric(f, "knit_workers", "gauge", "The most that were ready at one time.",
	    v.workers);
	metric(f, "knit_workers_started_total", "counter", "Workers that became ready.",
	    v.t.workers_started);
	metric(f, "knit_workers_lost_total", "counter",
	    "Workers that ended though nobody had told them to.", v.t.workers_lost);
	metric(f, "knit_launches_failed_total", "counter",
	    "Workers that never became ready.", v.t.failed_launches);
	metric(f, "knit_pools", "gauge",
	    "Pools: more than one while connections of an older policy last.", v.pools);
	metric(f, "knit_reloads_total", "counter", "Policies that were read again.",
	    v.t.reloads);
	metric(f, "knit_reloads_failed_total", "counter",
	    "Policies that were found wrong when they were to be read again.",
	    v.t.failed_reloads);
	kn_serve_fds(s, &fds);
	metric(f, "process_open_fds", "gauge", "Open file descriptors.", fds.open);
	metric(f, "process_max_fds", "gauge", "As many may be open.", fds.limit);
	metric(f, "knit_descriptors_kept", "gauge",
	    "Of these, kept for pools and health, used or not.", fds.kept);
	if (s->pools)
		print_pool(f, s->pools);
	if (fclose(f) != 0) {
		free(text);
		return NULL;
	}
	return text;
}
