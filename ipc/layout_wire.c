/* ipc/layout_wire.c: a layout in a record: the numbers that it is computed from. */
#include "ipc/blob.h"
#include "ipc/layout.h"

void
kn_layout_put(struct kn_blob_w *w, const struct kn_layout *l)
{
	kn_blob_u32(w, KN_LAYOUT_VERSION);
	kn_blob_u32(w, l->worker_n);
	kn_blob_u64(w, l->submit_area_bytes);
	kn_blob_u64(w, l->return_area_bytes);
	kn_blob_u32(w, l->claimant_n);
	kn_blob_u64(w, l->bank_area_bytes);
}

int
kn_layout_get(struct kn_blob_r *r, struct kn_layout *out)
{
	uint32_t version = kn_blob_get_u32(r), slice_n = kn_blob_get_u32(r);
	uint64_t submit = kn_blob_get_u64(r), ret = kn_blob_get_u64(r);
	uint32_t claimant_n = kn_blob_get_u32(r);
	uint64_t area = kn_blob_get_u64(r);

	if (r->bad || version != KN_LAYOUT_VERSION ||
	    kn_layout_of(slice_n, submit, ret, out) < 0)
		return -1;
	return claimant_n ? kn_layout_share(out, claimant_n, area) : 0;
}
