/* ipc/payload.c: the allocator of a direction's payload area, private to its producer.
 */
#include "ipc/payload.h"

#include <string.h>

#include "ipc/layout.h"
#include "ipc/shm.h"

void
kn_payload_init(struct kn_payload *p, uint64_t area_bytes)
{
	memset(p, 0, sizeof *p);
	p->area_bytes = area_bytes;
}

/* Take in what the consumer freed. A bit that flips without a live area behind it is a
 * lie that frees nothing; one that flips early costs the liar its own payload. */
static void
collect(struct kn_payload *p, const uint32_t *freed_word)
{
	uint32_t now = kn_shm_load32_acquire(freed_word); /* A2 */

	p->live &= ~(now ^ p->freed);
	p->freed = now;
}

/* The lowest offset where n bytes fit between the live areas: low offsets are the warm
 * ones. Returns area_bytes if there is none. Each step jumps to the end of an area, so
 * it ends after at most KN_AREAS of them. */
static uint64_t
lowest_gap(const struct kn_payload *p, uint64_t n)
{
	uint64_t at = 0;

	for (uint32_t i = 0; i < KN_AREAS;) {
		bool hit = (p->live >> i & 1) && p->off[i] < at + n &&
			   at < p->off[i] + p->len[i];
		if (!hit) {
			i++;
			continue;
		}
		at = p->off[i] + p->len[i];
		i = 0;
	}
	return at <= p->area_bytes && n <= p->area_bytes - at ? at : p->area_bytes;
}

int
kn_payload_alloc(
    struct kn_payload *p, const uint32_t *freed_word, uint64_t n, uint64_t *out_off)
{
	uint64_t at;
	int area;

	collect(p, freed_word);
	if (n == 0 || n > p->area_bytes || p->live == UINT32_MAX)
		return -1;
	n = (n + KN_LINE - 1) & ~(uint64_t)(KN_LINE - 1);
	at = lowest_gap(p, n);
	if (at >= p->area_bytes)
		return -1;
	area = __builtin_ctz(~p->live);
	p->live |= 1u << area;
	p->off[area] = at;
	p->len[area] = n;
	if (at + n > p->high)
		p->high = at + n;
	*out_off = at;
	return area;
}

uint64_t
kn_payload_idle(struct kn_payload *p, const uint32_t *freed_word)
{
	uint64_t high = p->high;

	collect(p, freed_word);
	if (p->live)
		return 0;
	p->high = 0;
	return high;
}

void
kn_payload_undo(struct kn_payload *p, int area)
{
	if (area >= 0 && area < KN_AREAS)
		p->live &= ~(1u << area);
}

void
kn_payload_free(uint32_t *freed_word, int area)
{
	if (area >= 0 && area < KN_AREAS)
		kn_shm_xor32_release(freed_word, 1u << area); /* A1 */
}
