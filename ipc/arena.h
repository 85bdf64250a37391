/* ipc/arena.h: the memfd arena: create, seal, carve, map.
 *
 * The supervisor creates it once and maps all of it; a stub maps exactly its slice.
 * Sealed SHRINK | GROW | SEAL before the first worker starts and verified with
 * F_GET_SEALS, so no peer can turn an access into SIGBUS. Sparse: pages appear when
 * touched.
 */
#ifndef KN_IPC_ARENA_H
#define KN_IPC_ARENA_H

#include <stdbool.h>

#include "ipc/fd.h"
#include "ipc/layout.h"

struct kn_bank;

struct kn_arena {
	int fd;
	struct kn_map map; /* all of it */
	struct kn_layout layout;
	uint8_t pool_id[16];
};

/* One worker's part, as pointers into a mapping the caller owns. */
struct kn_slice {
	struct kn_control *control;
	struct kn_slot *submit_slots; /* KN_SLOTS of them */
	struct kn_slot *return_slots;
	uint8_t *submit_area, *return_area;
	uint64_t submit_area_bytes, return_area_bytes;
};

int kn_arena_open(struct kn_arena *a, const struct kn_layout *l,
    const uint8_t pool_id[16], struct kn_err *e);
void kn_arena_close(struct kn_arena *a);
/* Supervisor side view of slice w. */
void kn_arena_slice(const struct kn_arena *a, uint32_t w, struct kn_slice *out);
/* View of a mapping that starts at the slice (stub side). */
void kn_slice_at(void *base, const struct kn_layout *l, struct kn_slice *out);
/* Zero control page and slots of slice w and punch out its areas. Only while no
 * process has it mapped (before launch, after the reap). */
int kn_arena_reset_slice(struct kn_arena *a, uint32_t w, struct kn_err *e);
/* Give the pages of its areas back: what is there is of no use to anybody any more. */
int kn_arena_empty_areas(struct kn_arena *a, uint32_t w, struct kn_err *e);
/* Give n bytes at off of w's submit area a backing before they are written: lack of
 * memory is then an error here and not SIGBUS at the write. Cheap where it is backed.
 */
int kn_arena_back_submit(
    struct kn_arena *a, uint32_t w, uint64_t off, uint64_t n, struct kn_err *e);
/* Stub side: check the header of the arena behind fd against l and pool_id, map slice
 * w read-write, mark it DONTFORK and DONTDUMP, mseal it. *out_sealed: 1 if mseal took
 * hold, 0 if this kernel has none. The caller closes fd. */
int kn_arena_map_slice(int fd, const struct kn_layout *l, const uint8_t pool_id[16],
    uint32_t w, struct kn_map *out, int *out_sealed, struct kn_err *e);

/* ---- the submit region, if the layout has one ---- */

/* Supervisor side view of a bank. */
void kn_arena_bank(const struct kn_arena *a, uint32_t bank, struct kn_bank *out);
/* As kn_arena_back_submit(), in the area of a bank. */
int kn_arena_back_bank(
    struct kn_arena *a, uint32_t bank, uint64_t off, uint64_t n, struct kn_err *e);
/* The arena once more, for claimants: a descriptor that cannot write. */
int kn_arena_readonly(const struct kn_arena *a, int *out_fd, struct kn_err *e);
/* Claimant side: check the arena, map the bank of worker w read-only from ro_fd, and
 * from fd what it may write: its own words, for cas-mask also the owners page.
 * DONTFORK, DONTDUMP, mseal. kn_bank_at() makes a view of it, as claimant w %
 * bank_claimants of bank w / bank_claimants. The caller closes both descriptors. */
int kn_arena_map_bank(int fd, int ro_fd, const struct kn_layout *l,
    const uint8_t pool_id[16], uint32_t w, bool cas_mask, struct kn_map *out,
    int *out_sealed, struct kn_err *e);

#endif
