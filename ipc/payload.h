/* ipc/payload.h: payloads larger than a slot: at most KN_AREAS live areas in a
 * direction's payload area.
 *
 * The producer owns the allocator: all of its state is private. The consumer frees an
 * area by one atomic xor of its bit in the direction's freed word (never by storing a
 * cached word: two callers would overwrite each other). Labels A1, A2 in layout.h.
 */
#ifndef KN_IPC_PAYLOAD_H
#define KN_IPC_PAYLOAD_H

#include <stdint.h>

struct kn_payload {
	uint64_t area_bytes;
	uint32_t live;	/* bit set: area in use */
	uint32_t freed; /* our copy of the freed word at the last look */
	uint64_t off[32], len[32];
	uint64_t high; /* end of the highest area since kn_payload_idle() */
};

void kn_payload_init(struct kn_payload *p, uint64_t area_bytes);
/* Reserve n bytes (rounded to a line), lowest warm offset first. Returns the area index
 * and *out_off, or -1 if no index or no room. Looks at *freed_word first. */
int kn_payload_alloc(
    struct kn_payload *p, const uint32_t *freed_word, uint64_t n, uint64_t *out_off);
/* Producer side: if no area is live, the end of all that was used since this was last
 * the case: pages below it may be given back to the system. 0: some area is live, or
 * nothing was used. Looks at *freed_word first. */
uint64_t kn_payload_idle(struct kn_payload *p, const uint32_t *freed_word);
/* Producer side: give back an area whose slot was never published or was taken back. */
void kn_payload_undo(struct kn_payload *p, int area);
/* Consumer side: free area. Call once per area. */
void kn_payload_free(uint32_t *freed_word, int area);

#endif
