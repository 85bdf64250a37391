/* ipc/blob.c: the flat byte encoding of records; every bound is checked here, once. */
#include "ipc/blob.h"

#include <string.h>

/* ---- writing ---- */

/* Room for n more bytes, or NULL; n is counted either way. */
static uint8_t *
grow(struct kn_blob_w *w, size_t n)
{
	size_t at = w->n;

	if (n > SIZE_MAX - at) {
		w->n = SIZE_MAX; /* stays above any cap */
		return NULL;
	}
	w->n = at + n;
	return w->n <= w->cap ? w->p + at : NULL;
}

static void
put_le(struct kn_blob_w *w, uint64_t v, unsigned bytes)
{
	uint8_t *p = grow(w, bytes);

	for (unsigned i = 0; p && i < bytes; i++)
		p[i] = (uint8_t)(v >> (8 * i));
}

void
kn_blob_u32(struct kn_blob_w *w, uint32_t v)
{
	put_le(w, v, 4);
}

void
kn_blob_u64(struct kn_blob_w *w, uint64_t v)
{
	put_le(w, v, 8);
}

void
kn_blob_bytes(struct kn_blob_w *w, const void *p, size_t n)
{
	uint8_t *to;

	if (n > UINT32_MAX) {
		w->n = SIZE_MAX;
		return;
	}
	kn_blob_u32(w, (uint32_t)n);
	to = grow(w, n);
	if (to && n)
		memcpy(to, p, n);
}

void
kn_blob_str(struct kn_blob_w *w, const char *s)
{
	if (!s)
		s = "";
	kn_blob_bytes(w, s, strlen(s) + 1);
}

bool
kn_blob_fits(const struct kn_blob_w *w)
{
	return w->n <= w->cap;
}

/* ---- reading ---- */

/* The next n bytes, or NULL and bad for good. */
static const uint8_t *
take(struct kn_blob_r *r, size_t n)
{
	const uint8_t *p;

	if (r->bad || r->at > r->n || n > r->n - r->at) {
		r->bad = true;
		return NULL;
	}
	p = r->p + r->at;
	r->at += n;
	return p;
}

static uint64_t
get_le(struct kn_blob_r *r, unsigned bytes)
{
	const uint8_t *p = take(r, bytes);
	uint64_t v = 0;

	for (unsigned i = 0; p && i < bytes; i++)
		v |= (uint64_t)p[i] << (8 * i);
	return v;
}

uint32_t
kn_blob_get_u32(struct kn_blob_r *r)
{
	return (uint32_t)get_le(r, 4);
}

uint64_t
kn_blob_get_u64(struct kn_blob_r *r)
{
	return get_le(r, 8);
}

const void *
kn_blob_get_bytes(struct kn_blob_r *r, size_t *out_n)
{
	size_t n = kn_blob_get_u32(r);
	const uint8_t *p = take(r, n);

	*out_n = p ? n : 0;
	return p;
}

const char *
kn_blob_get_str(struct kn_blob_r *r)
{
	size_t n;
	const char *s = kn_blob_get_bytes(r, &n);

	if (!s)
		return "";
	if (n == 0 || memchr(s, '\0', n) != s + n - 1) {
		r->bad = true;
		return "";
	}
	return s;
}

uint32_t
kn_blob_get_count(struct kn_blob_r *r, size_t min_bytes)
{
	uint32_t count = kn_blob_get_u32(r);

	/* A huge count with nothing behind it must not size an array. */
	if (!r->bad && min_bytes && count > (r->n - r->at) / min_bytes)
		r->bad = true;
	return r->bad ? 0 : count;
}

bool
kn_blob_done(const struct kn_blob_r *r)
{
	return !r->bad && r->at == r->n;
}
