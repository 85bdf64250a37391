/* supervisor/share_open.c: how waiting tasks get to idle workers: off, brokered or
 * shared, and why; and the banks of a pool that shares. See share.h.
 *
 * A worker that maps a bank can read the arguments of all tasks that pass through it.
 * Who runs there is the module's code, not ours: so workers share memory only where the
 * policy says that its tasks trust each other that far ("steal": "shared").
 */
#include <stdlib.h>

#include "ipc/fd.h"
#include "supervisor/inner.h"

_Static_assert((int)KN_CLAIMS_N == (int)KN_CLAIM_HOW_N &&
		   (int)KN_CLAIMS_CAS_MASK == (int)KN_CLAIM_CAS_MASK,
    "a policy's words are those of ipc");

int
kn_share_choose(struct kn_sup *s, uint32_t workers, struct kn_err *e)
{
	enum kn_steal want =
	    s->opt.steal_set ? (enum kn_steal)s->opt.steal : s->policy->pool.steal;
	bool module = s->module != NULL;

	if (s->opt.no_steal)
		want = KN_STEAL_OFF;
	s->steal = KN_STEAL_BROKERED;
	s->steal_why = "asked for";
	if (want == KN_STEAL_SHARED && !module)
		return kn_err_set(e, KN_EK_CONFIG,
		    "steal shared: a command's descriptors go to one worker by its "
		    "socket; use brokered, or kind module");
	if (want == KN_STEAL_OFF) {
		s->steal = KN_STEAL_OFF;
	} else if (workers == 1) {
		s->steal = KN_STEAL_OFF;
		s->steal_why = "there is one worker";
	} else if (want == KN_STEAL_SHARED) {
		s->steal = KN_STEAL_SHARED;
		s->steal_why = "the policy lets workers see each other's arguments";
	} else if (want == KN_STEAL_AUTO) {
		s->steal_why = module
				   ? "no policy lets workers see each other's arguments"
				   : "descriptors go to one worker by its socket";
	}
	return 0;
}

const char *
kn_sup_claim(const struct kn_sup *s, const char **out_why, uint32_t *out_region_lanes)
{
	if (!s->share)
		return NULL;
	*out_why = s->claim != KN_CLAIM_AUTO ? "asked for"
		   : s->share->how == KN_CLAIM_DEKKER
		       ? "no worker writes what another one writes, and it is no slower"
		       : "it is the faster one here";
	*out_region_lanes = s->share->width;
	return kn_claim_how_name(s->share->how);
}

/* As kn_layout_share() has it. */
static uint32_t
bank_size(uint32_t n)
{
	uint32_t banks = (n + KN_CLAIMANTS - 1) / KN_CLAIMANTS;

	return (n + banks - 1) / banks;
}

void
kn_share_configure(struct kn_pool_config *c)
{
	/* A spare would claim as the others do. There is no need of one: what lies in
	 * a bank does not wait for the worker that died. */
	c->spares = 0;
	c->bank_size = bank_size(kn_pool_workers(c));
	c->offer_max = KN_SLOTS / c->bank_size;
}

int
kn_share_lay_out(struct kn_sup *s, struct kn_layout *l, struct kn_err *e)
{
	uint64_t area = s->policy->payload_area;

	if (s->steal != KN_STEAL_SHARED)
		return 0;
	/* The room that each of its workers would have had: a call keeps its own until
	 * it returns, and all of them may be at long ones. */
	area *= bank_size(s->worker_n);
	if (area > KN_AREA_MAX)
		area = KN_AREA_MAX;
	if (kn_layout_share(l, s->worker_n, area) < 0)
		return kn_err_set(e, KN_EK_CONFIG,
		    "submit banks for %u workers with a payload area of %llu bytes do "
		    "not fit",
		    s->worker_n, (unsigned long long)area);
	return 0;
}

int
kn_share_open(struct kn_sup *s, struct kn_err *e)
{
	const struct kn_layout *l = &s->arena.layout;
	struct kn_share *h;

	if (s->steal != KN_STEAL_SHARED)
		return 0;
	h = calloc(1, sizeof *h + l->bank_n * sizeof h->bank[0]);
	if (!h)
		return kn_err_set(e, KN_EK_HOST, "out of memory");
	s->share = h;
	h->ro_fd = -1;
	h->bank_n = l->bank_n;
	h->bank_size = l->bank_claimants;
	h->how = kn_claim_how_of((enum kn_claim_how)s->claim);
	h->width = kn_claim_width(l->bank_claimants, s->policy->pool.region_lanes);
	for (uint32_t i = 0; i < h->bank_n; i++) {
		struct kn_share_bank *b = &h->bank[i];
		struct kn_bank view;

		b->index = i;
		b->first = i * h->bank_size;
		b->shelf_head = KN_NO_ENTRY;
		kn_arena_bank(&s->arena, i, &view);
		if (kn_offer_init(&b->offer, &view, h->how, h->width) < 0)
			return kn_err_set(e, KN_EK_CONFIG,
			    "region_lanes %u: it must be a power of two",
			    s->policy->pool.region_lanes);
	}
	return kn_arena_readonly(&s->arena, &h->ro_fd, e);
}

void
kn_share_close(struct kn_sup *s)
{
	if (!s->share)
		return;
	kn_fd_close(&s->share->ro_fd);
	free(s->share);
	s->share = NULL;
}
