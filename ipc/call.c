/* ipc/call.c: values and errors of calls, and the record of a resident module. */
#include "ipc/call.h"

#include <stdlib.h>
#include <string.h>

#include "ipc/blob.h"
#include "ipc/err.h"
#include "ipc/fd.h"

const char *
kn_type_name(enum kn_type t)
{
	static const char *const name[KN_TYPE_N] = {
		[KN_TYPE_NULL] = "null",
		[KN_TYPE_BOOL] = "bool",
		[KN_TYPE_I64] = "i64",
		[KN_TYPE_F64] = "f64",
		[KN_TYPE_TEXT] = "text",
		[KN_TYPE_BYTES] = "bytes",
		[KN_TYPE_JSON] = "json",
		[KN_TYPE_I32S] = "i32 array",
		[KN_TYPE_I64S] = "i64 array",
		[KN_TYPE_U64S] = "u64 array",
		[KN_TYPE_F64S] = "f64 array",
		[KN_TYPE_ERROR] = "error",
	};

	return t > 0 && t < KN_TYPE_N ? name[t] : "unknown type";
}

/* Bytes of the sequence that starts at p (RFC 3629: shortest form, no surrogates,
 * nothing above U+10FFFF), 0 if there is none. */
static size_t
utf8_at(const uint8_t *p, size_t left)
{
	uint8_t low = 0x80, high = 0xbf;
	size_t n;

	if (p[0] < 0x80)
		return 1;
	if (p[0] >= 0xc2 && p[0] <= 0xdf)
		n = 2;
	else if (p[0] >= 0xe0 && p[0] <= 0xef)
		n = 3;
	else if (p[0] >= 0xf0 && p[0] <= 0xf4)
		n = 4;
	else
		return 0;
	if (left < n)
		return 0;
	if (p[0] == 0xe0)
		low = 0xa0;
	else if (p[0] == 0xed)
		high = 0x9f;
	else if (p[0] == 0xf0)
		low = 0x90;
	else if (p[0] == 0xf4)
		high = 0x8f;
	if (p[1] < low || p[1] > high)
		return 0;
	for (size_t i = 2; i < n; i++) {
		if ((p[i] & 0xc0) != 0x80)
			return 0;
	}
	return n;
}

static bool
is_utf8(const uint8_t *p, size_t n)
{
	size_t at = 0;

	while (at < n) {
		uint64_t eight;
		size_t step;

		/* Most of most texts is ASCII. */
		if (n - at >= sizeof eight) {
			memcpy(&eight, p + at, sizeof eight);
			if (!(eight & 0x8080808080808080ull)) {
				at += sizeof eight;
				continue;
			}
		}
		step = utf8_at(p + at, n - at);
		if (step == 0)
			return false;
		at += step;
	}
	return true;
}

bool
kn_value_check(uint32_t type, const void *bytes, size_t n)
{
	const uint8_t *p = bytes;

	switch (type) {
	case KN_TYPE_NULL:
		return n == 0;
	case KN_TYPE_BOOL:
		return n == 1 && p[0] <= 1;
	case KN_TYPE_I64:
	case KN_TYPE_F64:
		return n == 8;
	case KN_TYPE_TEXT:
	case KN_TYPE_JSON:
		return is_utf8(p, n);
	case KN_TYPE_BYTES:
		return true;
	case KN_TYPE_I32S:
		return n % 4 == 0;
	case KN_TYPE_I64S:
	case KN_TYPE_U64S:
	case KN_TYPE_F64S:
		return n % 8 == 0;
	case KN_TYPE_ERROR: {
		struct kn_call_error e;

		return kn_call_error_decode(bytes, n, &e) == 0;
	}
	default:
		return false;
	}
}

/* ---- errors ---- */

/* The longest beginning of at most KN_CALL_ERROR_TEXT bytes that does not end within a
 * character; what is not UTF-8 ends the text there. */
static size_t
text_n(const char *s)
{
	const uint8_t *p = (const uint8_t *)s;
	size_t n = strnlen(s, KN_CALL_ERROR_TEXT), at = 0;

	while (at < n) {
		size_t step = utf8_at(p + at, n - at);

		if (step == 0)
			break;
		at += step;
	}
	return at;
}

static void
put_text(struct kn_blob_w *w, const char *s)
{
	char text[KN_CALL_ERROR_TEXT + 1];
	size_t n = s ? text_n(s) : 0;

	if (n > 0)
		memcpy(text, s, n);
	text[n] = '\0';
	kn_blob_str(w, text);
}

size_t
kn_call_error_encode(const struct kn_call_error *e, void *buf, size_t cap)
{
	struct kn_blob_w w = { .p = buf, .cap = cap };
	uint32_t n = e->n < KN_CALL_CAUSES ? e->n : KN_CALL_CAUSES;

	kn_blob_u32(&w, n);
	for (uint32_t i = 0; i < n; i++) {
		put_text(&w, e->link[i].name);
		put_text(&w, e->link[i].message);
		put_text(&w, e->link[i].detail);
	}
	return w.n;
}

static const char *
get_text(struct kn_blob_r *r)
{
	const char *s = kn_blob_get_str(r);
	size_t n = strlen(s);

	if (n > KN_CALL_ERROR_TEXT || !is_utf8((const uint8_t *)s, n))
		r->bad = true;
	return s;
}

int
kn_call_error_decode(const void *buf, size_t n, struct kn_call_error *out)
{
	struct kn_blob_r r = { .p = buf, .n = n };

	out->n = kn_blob_get_count(&r, 3 * sizeof(uint32_t));
	if (out->n < 1 || out->n > KN_CALL_CAUSES)
		return -1;
	for (uint32_t i = 0; i < out->n; i++) {
		out->link[i].name = get_text(&r);
		out->link[i].message = get_text(&r);
		out->link[i].detail = get_text(&r);
	}
	return kn_blob_done(&r) ? 0 : -1;
}

/* ---- the resident's record ---- */

static void
put_resident(struct kn_blob_w *w, const struct kn_resident *r)
{
	kn_layout_put(w, &r->layout);
	kn_blob_bytes(w, r->pool_id, sizeof r->pool_id);
	kn_blob_u32(w, r->slice);
	kn_blob_u32(w, r->spin_us);
	kn_blob_u32(w, r->need_mseal);
	kn_blob_u32(w, r->claim);
	kn_blob_u32(w, r->region_lanes);
	kn_blob_u32(w, r->may_place);
	kn_blob_u32(w, r->may_name);
	kn_blob_u64(w, r->payload_max);
	kn_blob_str(w, r->module);
	kn_blob_str(w, r->init);
}

int
kn_resident_decode(const void *buf, size_t n, struct kn_resident *out)
{
	struct kn_blob_r r = { .p = buf, .n = n };
	const void *id;
	size_t id_n = 0;

	memset(out, 0, sizeof *out);
	if (kn_layout_get(&r, &out->layout) < 0)
		return -1;
	id = kn_blob_get_bytes(&r, &id_n);
	out->slice = kn_blob_get_u32(&r);
	out->spin_us = kn_blob_get_u32(&r);
	out->need_mseal = kn_blob_get_u32(&r);
	out->claim = kn_blob_get_u32(&r);
	out->region_lanes = kn_blob_get_u32(&r);
	out->may_place = kn_blob_get_u32(&r);
	out->may_name = kn_blob_get_u32(&r);
	out->payload_max = kn_blob_get_u64(&r);
	out->module = kn_blob_get_str(&r);
	out->init = kn_blob_get_str(&r);
	if (!kn_blob_done(&r) || id_n != sizeof out->pool_id ||
	    out->slice >= out->layout.worker_n)
		return -1;
	memcpy(out->pool_id, id, id_n);
	return 0;
}

int
kn_resident_seal(const struct kn_resident *r, int *out_fd, struct kn_err *e)
{
	struct kn_blob_w w = { NULL, 0, 0 };
	void *buf;
	int fd;

	put_resident(&w, r); /* measures */
	buf = malloc(w.n);
	if (!buf)
		return kn_err_sys(e, KN_EK_HOST, "memory for a module's record");
	w = (struct kn_blob_w){ buf, w.n, 0 };
	put_resident(&w, r);
	fd = kn_fd_sealed("knit-resident", buf, w.n, 0, e);
	free(buf);
	if (fd < 0)
		return kn_err_wrap(e, "record of a module");
	*out_fd = fd;
	return 0;
}
