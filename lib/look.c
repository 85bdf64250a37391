/* lib/look.c: what can be asked of a pool, and of this machine. */
#include <string.h>

#include "lib/lib.h"
#include "sandbox/cgroup_delegated.h"
#include "supervisor/egress.h"
#include "supervisor/log.h"
#include "supervisor/report_net.h"

int
knit_pool_poll_fd(const struct knit_pool *p)
{
	struct knit_pool *own = (struct knit_pool *)(uintptr_t)p;

	if (!p)
		return -1;
	if (kn_lib_enter(own, NULL, NULL) == 0) {
		own->polled = true;
		kn_lib_hand_over(own);
		pthread_mutex_unlock(&own->lock);
	}
	return kn_sup_poll_fd(p->sup);
}

int
knit_pool_count(struct knit_pool *p, struct knit_pool_counts *out, struct knit_error *e)
{
	struct knit_pool_counts c;
	size_t size = out ? out->size : 0;

	if (!p || size < sizeof out->size || size > 4096)
		return kn_lib_fail(e, KNIT_E_USAGE, "counts: their size is not set");
	if (kn_lib_enter(p, NULL, e) < 0)
		return -1;
	c = (struct knit_pool_counts){
		.size = size,
		.submitted = p->submitted_n,
		.finished = p->finished_n,
		.workers = p->counts.workers,
		.running = p->counts.running,
		.queued = p->counts.queued + (unsigned)p->inbox.n,
		.workers_started = p->counts.worker_spawned,
		.workers_lost = p->counts.worker_lost,
		.failed_launches = p->counts.failed_launches,
		.stolen = p->counts.stolen,
		.window = (unsigned)p->window,
		.doorbell_missed = p->counts.doorbell_missed,
		.descriptors = p->counts.fds_most,
	};
	pthread_mutex_unlock(&p->lock);
	memset(out, 0, size);
	memcpy(out, &c, size < sizeof c ? size : sizeof c);
	return 0;
}

const char *
knit_pool_remark(const struct knit_pool *p)
{
	return p ? kn_sup_remark(p->sup) : "";
}

const char *
knit_pool_layer(const struct knit_pool *p, const char *layer)
{
	int at = p && layer ? kn_layer_by_name(layer) : -1;

	return at < 0 ? NULL : kn_layer_state_name(kn_sup_layers(p->sup)->state[at]);
}

/* Widths are powers of two, 32 at most: fixed texts, whoever keeps them. */
static const char *
claim(const struct knit_pool *p, const char *name)
{
	static const char *const width[] = { "1", "2", "4", "8", "16", "32" };
	uint32_t lanes = 0;
	const char *why, *how = kn_sup_claim(p->sup, &why, &lanes);

	if (!how || strcmp(name, "claim") == 0)
		return how;
	return strcmp(name, "claim-why") == 0 ? why : width[__builtin_ctz(lanes)];
}

const char *
knit_pool_fact(const struct knit_pool *p, const char *name)
{
	if (!p || !name)
		return NULL;
	if (strcmp(name, "launcher") == 0)
		return kn_sup_launcher(p->sup);
	if (strncmp(name, "lacks-", strlen("lacks-")) == 0) {
		int at = kn_layer_by_name(name + strlen("lacks-"));

		return at < 0 ? NULL : kn_sup_lacks(p->sup, (enum kn_layer)at);
	}
	if (strcmp(name, "steal") == 0)
		return kn_sup_steal(p->sup, NULL);
	if (strcmp(name, "steal-why") == 0) {
		const char *why;

		(void)kn_sup_steal(p->sup, &why);
		return why;
	}
	if (strcmp(name, "claim") == 0 || strcmp(name, "claim-why") == 0 ||
	    strcmp(name, "region-lanes") == 0)
		return claim(p, name);
	if (strcmp(name, "lanes") == 0)
		return kn_sup_shares(p->sup) ? "shared" : "private";
	return strcmp(name, "policy") == 0 ? knit_policy_hash(p->policy) : NULL;
}

char *
knit_pool_network(struct knit_pool *p)
{
	const struct kn_net_tally *t;
	char *text = NULL;

	if (!p || kn_lib_enter(p, NULL, NULL) < 0)
		return NULL;
	t = p->leading ? NULL : kn_egress_total(p->sup);
	if (t)
		text = kn_report_net_text(t);
	pthread_mutex_unlock(&p->lock);
	return text;
}

char *
knit_pool_workers(struct knit_pool *p)
{
	char *text;

	if (!p || kn_lib_enter(p, NULL, NULL) < 0)
		return NULL;
	text = p->leading ? NULL : kn_sup_shown(p->sup);
	pthread_mutex_unlock(&p->lock);
	return text;
}

void
knit_pool_note(struct knit_pool *p, const char *ns, const char *text)
{
	if (p && ns && text && kn_lib_is_ours(p))
		kn_sup_note(p->sup, ns, text);
}

/* ---- without a pool ---- */

int
kn_lib_debug_mask(const char *list, uint32_t *out, struct knit_error *e)
{
	const char *bad = "";
	int bad_n = 0;

	if (kn_log_mask(list, out, &bad, &bad_n) == 0)
		return 0;
	if (e)
		kn_lib_fail(e, KNIT_E_USAGE, "unknown namespace \"%.*s\"", bad_n, bad);
	if (e)
		memccpy(e->hint,
		    "namespaces: host, lifecycle, signals, imports, sandbox, policy, "
		    "or * "
		    "for all",
		    '\0', sizeof e->hint);
	return -1;
}

int
knit_debug_check(const char *list, struct knit_error *e)
{
	uint32_t mask;

	if (!list)
		return kn_lib_fail(e, KNIT_E_USAGE, "debug: NULL");
	return kn_lib_debug_mask(list, &mask, e);
}

int
knit_host_delegated(struct knit_error *e)
{
	struct kn_err err = { 0 };

	return kn_cgroup_delegated(&err) < 0 ? kn_lib_pass(e, &err) : 0;
}
