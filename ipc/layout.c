/* ipc/layout.c: the arena's geometry as one pure function. */
#include "ipc/layout.h"

#include <stdbool.h>

static uint64_t
page_up(uint64_t n)
{
	return (n + KN_PAGE - 1) & ~(uint64_t)(KN_PAGE - 1);
}

int
kn_layout_of(uint32_t slice_n, uint64_t submit_area_bytes, uint64_t return_area_bytes,
    struct kn_layout *out)
{
	const uint64_t lane = page_up((uint64_t)KN_SLOTS * KN_SLOT_BYTES);
	struct kn_layout l = { .worker_n = slice_n };

	if (slice_n < 1 || slice_n > KN_SLICES_MAX)
		return -1;
	if (submit_area_bytes > KN_AREA_MAX || return_area_bytes > KN_AREA_MAX)
		return -1;
	l.submit_area_bytes = page_up(submit_area_bytes);
	l.return_area_bytes = page_up(return_area_bytes);
	l.submit_slots_off = KN_PAGE;
	l.return_slots_off = l.submit_slots_off + lane;
	l.submit_area_off = l.return_slots_off + lane;
	l.return_area_off = l.submit_area_off + l.submit_area_bytes;
	l.slice_bytes = l.return_area_off + l.return_area_bytes;
	/* At most 512 * (8 GiB + a little) + a page: no 64-bit sum here can overflow,
	 * but a 32-bit size_t could not map it. */
	l.arena_bytes = KN_PAGE + slice_n * l.slice_bytes;
	if (l.arena_bytes > SIZE_MAX / 2)
		return -1;
	*out = l;
	return 0;
}

int
kn_layout_share(struct kn_layout *l, uint32_t claimant_n, uint64_t area_bytes)
{
	struct kn_layout s = *l;

	if (claimant_n < 1 || claimant_n > KN_WORKERS_MAX || claimant_n > s.worker_n ||
	    area_bytes > KN_AREA_MAX || s.region_bytes)
		return -1;
	s.claimant_n = claimant_n;
	s.bank_n = (claimant_n + KN_CLAIMANTS - 1) / KN_CLAIMANTS;
	s.bank_claimants = (claimant_n + s.bank_n - 1) / s.bank_n;
	s.bank_area_bytes = page_up(area_bytes);
	s.bank_bytes = kn_layout_bank_area_off(&s) + s.bank_area_bytes;
	s.region_bytes = s.bank_n * s.bank_bytes;
	/* At most 9 * (4 GiB + a little) more. */
	s.arena_bytes += s.region_bytes;
	if (s.arena_bytes > SIZE_MAX / 2)
		return -1;
	*l = s;
	return 0;
}

uint64_t
kn_layout_bank_off(const struct kn_layout *l, uint32_t bank)
{
	return KN_PAGE + bank * l->bank_bytes;
}

uint64_t
kn_layout_bank_area_off(const struct kn_layout *l)
{
	return KN_BANK_OWN_OFF + (uint64_t)l->bank_claimants * KN_PAGE;
}

uint64_t
kn_layout_slice_off(const struct kn_layout *l, uint32_t worker)
{
	return KN_PAGE + l->region_bytes + worker * l->slice_bytes;
}
