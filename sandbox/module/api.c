/* sandbox/module/api.c: of knit/task.h, results, time, memory. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ipc/clock.h"
#include "ipc/park.h"
#include "ipc/shm.h"
#include "sandbox/module/module.h"

enum { CHUNK_BYTES = 64 * 1024 };

/* The numbers of the public header are the wire's. */
_Static_assert((int)KNIT_NULL == (int)KN_TYPE_NULL, "null");
_Static_assert((int)KNIT_BOOL == (int)KN_TYPE_BOOL, "bool");
_Static_assert((int)KNIT_I64 == (int)KN_TYPE_I64, "i64");
_Static_assert((int)KNIT_F64 == (int)KN_TYPE_F64, "f64");
_Static_assert((int)KNIT_TEXT == (int)KN_TYPE_TEXT, "text");
_Static_assert((int)KNIT_BYTES == (int)KN_TYPE_BYTES, "bytes");
_Static_assert((int)KNIT_JSON == (int)KN_TYPE_JSON, "json");
_Static_assert((int)KNIT_I32S == (int)KN_TYPE_I32S, "i32s");
_Static_assert((int)KNIT_I64S == (int)KN_TYPE_I64S, "i64s");
_Static_assert((int)KNIT_U64S == (int)KN_TYPE_U64S, "u64s");
_Static_assert((int)KNIT_F64S == (int)KN_TYPE_F64S, "f64s");

/* ---- results ---- */

static int
set(struct knit_call *call, uint32_t type, const void *bytes, size_t n)
{
	/* What is being returned may lie in a result that was set before: its room is
	 * given up first, since there may be none for both, and its bytes stay as they
	 * are until something is written there, which is done here at once. */
	void *room = kn_mod_result_room(&kn_mod, call, type, n);

	if (room && n > 0)
		memmove(room, bytes, n);
	return room ? kn_mod_result_take(&kn_mod, call, type, n) : -1;
}

/* Elements to bytes; what overflows is more than any cap. */
static int
set_array(
    struct knit_call *call, uint32_t type, const void *v, size_t n, size_t element)
{
	size_t bytes;

	if (__builtin_mul_overflow(n, element, &bytes))
		bytes = SIZE_MAX;
	return set(call, type, v, bytes);
}

int
knit_result_null(struct knit_call *call)
{
	return set(call, KN_TYPE_NULL, NULL, 0);
}

int
knit_result_bool(struct knit_call *call, bool value)
{
	uint8_t byte = value ? 1 : 0;

	return set(call, KN_TYPE_BOOL, &byte, 1);
}

int
knit_result_i64(struct knit_call *call, int64_t value)
{
	return set(call, KN_TYPE_I64, &value, sizeof value);
}

int
knit_result_f64(struct knit_call *call, double value)
{
	return set(call, KN_TYPE_F64, &value, sizeof value);
}

int
knit_result_text(struct knit_call *call, const char *text, size_t n)
{
	return set(call, KN_TYPE_TEXT, text, n);
}

int
knit_result_str(struct knit_call *call, const char *text)
{
	return set(call, KN_TYPE_TEXT, text, strlen(text));
}

int
knit_result_json(struct knit_call *call, const char *text, size_t n)
{
	return set(call, KN_TYPE_JSON, text, n);
}

int
knit_result_bytes(struct knit_call *call, const void *bytes, size_t n)
{
	return set(call, KN_TYPE_BYTES, bytes, n);
}

int
knit_result_i32s(struct knit_call *call, const int32_t *v, size_t n)
{
	return set_array(call, KN_TYPE_I32S, v, n, sizeof *v);
}

int
knit_result_i64s(struct knit_call *call, const int64_t *v, size_t n)
{
	return set_array(call, KN_TYPE_I64S, v, n, sizeof *v);
}

int
knit_result_u64s(struct knit_call *call, const uint64_t *v, size_t n)
{
	return set_array(call, KN_TYPE_U64S, v, n, sizeof *v);
}

int
knit_result_f64s(struct knit_call *call, const double *v, size_t n)
{
	return set_array(call, KN_TYPE_F64S, v, n, sizeof *v);
}

void *
knit_result_reserve(struct knit_call *call, enum knit_type type, size_t n)
{
	void *room;

	if ((int)type < 1 || (int)type >= KN_TYPE_ERROR) {
		kn_mod_result_clear(&kn_mod, call);
		call->spoilt = true;
		kn_mod_error_set(&call->error, "KNT_ERROR_3",
		    "Results have no type of number %d.", (int)type);
		return NULL;
	}
	room = kn_mod_result_room(&kn_mod, call, (uint32_t)type, n);
	if (room)
		call->reserved = (uint32_t)type;
	return room;
}

int
knit_result_commit(struct knit_call *call, size_t n)
{
	if (!call->reserved || n > call->room) {
		bool none = !call->reserved;
		size_t room = call->room;

		kn_mod_result_clear(&kn_mod, call);
		call->spoilt = true;
		kn_mod_error_set(&call->error, "ResultError",
		    none ? "nothing was reserved for a result of %zu bytes"
			 : "a result of %zu bytes was committed, reserved were %zu",
		    n, room);
		return -1;
	}
	return kn_mod_result_take(&kn_mod, call, call->reserved, n);
}

size_t
knit_result_max(const struct knit_call *call)
{
	(void)call;
	return kn_mod.record.payload_max;
}

/* ---- errors ---- */

int
knit_fail(struct knit_call *call, const char *name, const char *format, ...)
{
	va_list ap;

	kn_mod_error_clear(&call->error);
	va_start(ap, format);
	(void)kn_mod_error_add(&call->error, name, format, ap);
	va_end(ap);
	return -1;
}

int
knit_fail_cause(struct knit_call *call, const char *name, const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	(void)kn_mod_error_add(&call->error, name, format, ap);
	va_end(ap);
	return -1;
}

int
knit_fail_detail(struct knit_call *call, const char *format, ...)
{
	struct kn_mod_error *e = &call->error;
	va_list ap;

	if (e->e.n == 0)
		kn_mod_error_set(e, "Error", "%s", "");
	va_start(ap, format);
	(void)vsnprintf(
	    e->text[e->e.n - 1][2], sizeof e->text[e->e.n - 1][2], format, ap);
	va_end(ap);
	return -1;
}

/* ---- while it runs ---- */

bool
knit_aborted(void)
{
	struct kn_mod *m = &kn_mod;
	struct kn_mod_abort *a = &m->abort;
	uint64_t turn = kn_shm_load64_acquire(&a->turn);	/* U2 */
	uint32_t id = kn_shm_load32_acquire(&a->abort_id);	/* U2 */
	uint64_t until = kn_shm_load64_acquire(&a->give_up_ns); /* U2 */
	uint64_t told;

	if (!kn_abort_test(m->abort_words, id) &&
	    (until == 0 || kn_clock_now() < until))
		return false;
	told = kn_shm_load64_acquire(&a->gave_up);			      /* U4 */
	while (told < turn && !kn_shm_cas64_acqrel(&a->gave_up, &told, turn)) /* U3 */
		;
	return true;
}

uint64_t
knit_now_ns(void)
{
	return kn_clock_now();
}

void *
knit_alloc(struct knit_call *call, size_t n)
{
	struct kn_mod_chunk *c = call->chunk;
	size_t want = n < CHUNK_BYTES ? CHUNK_BYTES : n;

	if (n <= SIZE_MAX - 15)
		n = (n + 15) & ~(size_t)15;
	if (c && n <= c->n - c->at) {
		c->at += n;
		return c->bytes + c->at - n;
	}
	/* The first one stays for good: an ordinary one. */
	if (!c && want > CHUNK_BYTES) {
		if (!knit_alloc(call, 1))
			return NULL;
		return knit_alloc(call, n);
	}
	want = (want + 15) & ~(size_t)15;
	c = want > SIZE_MAX - sizeof *c - 15 ? NULL : malloc(sizeof *c + want);
	if (!c) {
		kn_mod_error_set(
		    &call->error, "MemoryError", "no memory for %zu bytes", n);
		return NULL;
	}
	c->next = call->chunk;
	c->n = want;
	c->at = n;
	call->chunk = c;
	return c->bytes;
}

const char *
knit_task_name(const struct knit_call *call)
{
	return call->fn->name;
}

const char *
knit_type_name(enum knit_type type)
{
	return kn_type_name((enum kn_type)type);
}
