/* ipc/blob.h: a flat byte encoding for variable records (boot record, job, result).
 *
 * Little-endian integers, byte strings with a 32-bit length. The writer appends to a
 * buffer of the caller's and remembers overflow; the reader works on a private copy,
 * checks every bound, and remembers the first failure, so callers test once at the end.
 */
#ifndef KN_IPC_BLOB_H
#define KN_IPC_BLOB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct kn_blob_w {
	uint8_t *p;
	size_t cap, n; /* n goes on counting past cap: the size that was needed */
};
void kn_blob_u32(struct kn_blob_w *w, uint32_t v);
void kn_blob_u64(struct kn_blob_w *w, uint64_t v);
void kn_blob_bytes(struct kn_blob_w *w, const void *p, size_t n);
void kn_blob_str(struct kn_blob_w *w, const char *s); /* with its NUL; NULL as "" */
bool kn_blob_fits(const struct kn_blob_w *w);

struct kn_blob_r {
	const uint8_t *p;
	size_t n, at;
	bool bad;
};
uint32_t kn_blob_get_u32(struct kn_blob_r *r); /* 0 once bad */
uint64_t kn_blob_get_u64(struct kn_blob_r *r);
/* Pointer into the blob, NULL once bad. */
const void *kn_blob_get_bytes(struct kn_blob_r *r, size_t *out_n);
/* A NUL-terminated string without inner NULs, "" once bad. Never NULL. */
const char *kn_blob_get_str(struct kn_blob_r *r);
/* A count of elements that each take at least min_bytes: bad if they cannot fit. */
uint32_t kn_blob_get_count(struct kn_blob_r *r, size_t min_bytes);
bool kn_blob_done(const struct kn_blob_r *r); /* all read and nothing bad */

#endif
