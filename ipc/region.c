/* ipc/region.c: the shape of a bank, the names and widths of claims. */
#include "ipc/region.h"

#include <string.h>

void
kn_bank_at(void *base, const struct kn_layout *l, uint32_t bank, struct kn_bank *out)
{
	uint8_t *p = base;
	uint32_t first = bank * l->bank_claimants;

	out->head = (void *)p;
	out->owners = (void *)(p + KN_BANK_OWNERS_OFF);
	out->slots = (void *)(p + KN_BANK_SLOTS_OFF);
	out->own_pages = p + KN_BANK_OWN_OFF;
	out->area = p + kn_layout_bank_area_off(l);
	out->area_bytes = l->bank_area_bytes;
	out->claimant_n = l->claimant_n - first < l->bank_claimants
			      ? l->claimant_n - first
			      : l->bank_claimants;
}

static const char *const how_names[] = {
	[KN_CLAIM_AUTO] = "auto",
	[KN_CLAIM_DEKKER] = "dekker",
	[KN_CLAIM_CAS_MASK] = "cas-mask",
};
_Static_assert(sizeof how_names / sizeof *how_names == KN_CLAIM_HOW_N, "a name each");

const char *
kn_claim_how_name(enum kn_claim_how how)
{
	return (unsigned)how < KN_CLAIM_HOW_N ? how_names[how] : "unknown";
}

int
kn_claim_how_parse(const char *name)
{
	for (int i = 0; i < KN_CLAIM_HOW_N; i++)
		if (strcmp(name, how_names[i]) == 0)
			return i;
	return -1;
}

enum kn_claim_how
kn_claim_how_of(enum kn_claim_how how)
{
	return how == KN_CLAIM_AUTO ? KN_CLAIM_DEKKER : how;
}

static bool
power_of_two(uint32_t n)
{
	return n && !(n & (n - 1));
}

uint32_t
kn_claim_width(uint32_t claimants, uint32_t asked)
{
	uint32_t widest = KN_SLOTS;

	if (asked && !power_of_two(asked))
		return 0;
	while (widest > 1 && KN_SLOTS / widest < claimants + 1)
		widest /= 2;
	return asked && asked < widest ? asked : widest;
}

bool
kn_claim_fits(enum kn_claim_how how, uint32_t claimants, uint32_t width)
{
	if (claimants < 1 || claimants > KN_CLAIMANTS || !power_of_two(width) ||
	    width > KN_SLOTS)
		return false;
	return kn_claim_how_of(how) == KN_CLAIM_CAS_MASK ||
	       KN_SLOTS / width >= claimants;
}
