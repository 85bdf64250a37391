/* supervisor/call_put.c: kind module: the bytes of a call, into its slot or where there
 * is more room, a worker's own or a bank's.
 */
#include <string.h>

#include "ipc/layout.h"
#include "supervisor/inner.h"

/* Pages that were used before have a backing; the others get one before they are
 * written, where lack of memory is no signal yet. Areas begin at lines of the cache, so
 * up to there one counts as backed: or the next would lie behind a gap, be backed anew
 * each time and never be given back. */
static bool
back(struct kn_sup *s, const struct kn_call_room *r, uint64_t off, uint64_t n)
{
	uint64_t end = (off + n + KN_LINE - 1) & ~(uint64_t)(KN_LINE - 1);

	if (off + n <= *r->backed)
		return true;
	if ((r->offer ? kn_arena_back_bank : kn_arena_back_submit)(
		&s->arena, r->index, off, n, NULL) < 0)
		return false;
	if (off <= *r->backed && end > *r->backed)
		*r->backed = end;
	return true;
}

enum kn_put
kn_call_put(struct kn_sup *s, const struct kn_call_room *r, const struct kn_entry *e,
    struct kn_slot_head *h, uint8_t buf[KN_INLINE_MAX])
{
	const struct kn_value *arg = &e->task->call.arg;
	uint8_t *to = buf; /* only written, never read back */
	uint64_t off;
	int area;

	h->payload_len = (uint32_t)arg->n + h->name_n;
	if (h->payload_len > KN_INLINE_MAX) {
		area = r->offer
			   ? kn_offer_area(r->offer, h->payload_len, &off)
			   : kn_payload_alloc(r->pay, r->freed, h->payload_len, &off);
		if (area < 0)
			return KN_PUT_NO_ROOM;
		if (!back(s, r, off, h->payload_len)) {
			kn_payload_undo(r->offer ? &r->offer->pay : r->pay, area);
			return KN_PUT_NO_MEMORY;
		}
		h->area = (uint32_t)area;
		h->payload_off = (uint32_t)off;
		to = r->area + off;
	}
	if (arg->n)
		memcpy(to, arg->bytes, arg->n);
	if (h->name_n)
		memcpy(to + arg->n, kn_call_name(e), h->name_n);
	return KN_PUT_DONE;
}
