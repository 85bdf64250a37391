/* sandbox/stub/overlay.h: directories that a task sees and may write to, whose files
 * stay as they are: what it writes goes to a tmpfs of its own, by overlayfs.
 *
 * The launcher shows such a directory read-only; each cell puts an overlay upon it.
 * What is denied in there is white in the layer: a device 0/0, by which overlayfs shows
 * nothing of that name. A mask would be no wall, as an overlay shows a directory
 * without what is mounted in it, nor does the kernel allow that.
 */
#ifndef KN_STUB_OVERLAY_H
#define KN_STUB_OVERLAY_H

#include <stdbool.h>
#include <stdint.h>

#include "ipc/control.h"
#include "sandbox/stub/mounts.h"

/* In the tmpfs of a layer: what was written. */
#define KN_OVERLAY_UPPER "upper"
enum { KN_OVERLAY_MAX = 8, KN_OVERLAY_AT = 256 };
enum { KN_OVERLAY_WHITE_MAX = 500, KN_OVERLAY_WHITE_BYTES = 48 * 1024 };
struct kn_overlay {
	char at[KN_OVERLAY_AT];
	char opts[KN_MOUNT_OPTS]; /* of the tmpfs */
};
struct kn_overlays {
	struct kn_overlay v[KN_OVERLAY_MAX];
	uint32_t n;
	char text[KN_OVERLAY_WHITE_BYTES];
	const char *white[KN_OVERLAY_WHITE_MAX]; /* paths inside, a parent first */
	uint32_t white_n;
	int out; /* the one whose layer is brought out, or -1 */
	uint64_t out_bytes, out_inodes;
	int layer_fd; /* its tmpfs, detached, while there is a cell; or -1 */
};

/* From the boot record. -E2BIG: too many, or a path that is too long. */
int kn_overlays_find(const struct kn_boot *b, struct kn_overlays *out);
/* In the template: one of each, made and taken away: does this kernel allow it? */
int kn_overlays_try(const struct kn_overlays *l, const char **out_at);
/* Before a cell: the tmpfs of the layer that outlives it; and when its files are out.
 */
int kn_overlays_begin(struct kn_overlays *o);
void kn_overlays_end(struct kn_overlays *o);
/* In a cell, before it has a /tmp of its own. */
int kn_overlays_cell(const struct kn_overlays *l, const char **out_at);

#endif
