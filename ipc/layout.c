/* ipc/layout.c: the arena's geometry as one pure function. */
#include "ipc/layout.h"

#include <stdbool.h>

/* A payload's offset is 32 bits wide in the slot header, so an area is at most 4 GiB.
 */
#define AREA_MAX (1ull << 32)

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
	if (submit_area_bytes > AREA_MAX || return_area_bytes > AREA_MAX)
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

uint64_t
kn_layout_slice_off(const struct kn_layout *l, uint32_t worker)
{
	return KN_PAGE + worker * l->slice_bytes;
}
