/* supervisor/count.c: what can be asked of a pool while it runs. */
#include <string.h>

#include "supervisor/inner.h"

void
kn_sup_count(const struct kn_sup *s, struct kn_sup_counts *out)
{
	struct kn_pool_counts c;

	kn_pool_count(s->pool, &c);
	*out = (struct kn_sup_counts){
		.workers = s->most_ready,
		.running = c.running,
		.queued = c.queued + c.published,
		.answered = s->answered,
		.worker_spawned = c.spawned,
		.worker_lost = c.lost,
		.failed_launches = c.failed_launches,
		.stolen = c.stolen,
		.doorbell_missed = s->doorbell_missed,
		.fds_most = s->fds_most,
		.bugs = kn_pool_bugs(s->pool),
	};
}

const char *
kn_sup_remark(const struct kn_sup *s)
{
	return s->remark;
}

const char *
kn_sup_steal(const struct kn_sup *s, const char **out_why)
{
	if (out_why)
		*out_why = s->steal_why;
	return kn_steal_name(s->steal);
}

bool
kn_sup_shares(const struct kn_sup *s)
{
	return s->share != NULL;
}

void
kn_sup_note(const struct kn_sup *s, const char *ns, const char *text)
{
	for (unsigned i = 0; i < KN_NS_N; i++) {
		if (strcmp(ns, kn_log_ns_name((enum kn_log_ns)i)) == 0)
			KN_LOG(&s->log, i, KN_LOG_POOL, "%s", text);
	}
}

const char *
kn_sup_launcher(const struct kn_sup *s)
{
	return kn_launcher_program(s->launcher);
}

const char *
kn_sup_lacks(const struct kn_sup *s, enum kn_layer layer)
{
	return kn_launcher_lacks(s->launcher, layer);
}

const struct kn_layers *
kn_sup_layers(const struct kn_sup *s)
{
	return kn_launcher_layers(s->launcher);
}
