/* sandbox/module/result.c: from what a task sets to a published answer.
 *
 * Up to KN_INLINE_MAX bytes wait in the call, and are copied into the slot; more are
 * written into the return area at once, where the supervisor reads them.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ipc/shm.h"
#include "sandbox/module/module.h"

/* ---- errors ---- */

void
kn_mod_error_clear(struct kn_mod_error *e)
{
	e->e.n = 0;
}

KNIT_PRINTF(2, 0)
static void
put(char *to, const char *format, va_list ap)
{
	if (vsnprintf(to, KN_CALL_ERROR_TEXT + 1, format, ap) < 0)
		to[0] = '\0';
}

bool
kn_mod_error_add(
    struct kn_mod_error *e, const char *name, const char *format, va_list ap)
{
	uint32_t i = e->e.n;

	if (i >= KN_CALL_CAUSES)
		return false;
	snprintf(e->text[i][0], sizeof e->text[i][0], "%s", name ? name : "Error");
	put(e->text[i][1], format, ap);
	e->text[i][2][0] = '\0';
	e->e.link[i].name = e->text[i][0];
	e->e.link[i].message = e->text[i][1];
	e->e.link[i].detail = e->text[i][2];
	e->e.n++;
	return true;
}

void
kn_mod_error_set(struct kn_mod_error *e, const char *name, const char *format, ...)
{
	va_list ap;

	kn_mod_error_clear(e);
	va_start(ap, format);
	(void)kn_mod_error_add(e, name, format, ap);
	va_end(ap);
}

/* ---- room ---- */

void
kn_mod_result_clear(struct kn_mod *m, struct knit_call *call)
{
	if (call->area >= 0)
		kn_payload_undo(&m->pay, call->area);
	call->area = -1;
	call->type = call->reserved = 0;
	call->n = call->room = 0;
}

static bool
is_too_much(struct kn_mod *m, struct knit_call *call, uint32_t type, size_t n)
{
	size_t max = m->record.payload_max;

	if (n > max)
		kn_mod_error_set(&call->error, "KNT_ERROR_3",
		    "Dynamic payload exceeds maxPayloadBytes. limit=%zu; actual=%zu; "
		    "type=%s.",
		    max, n, kn_type_name((enum kn_type)type));
	else if (n > KN_INLINE_MAX && n > m->slice.return_area_bytes)
		kn_mod_error_set(&call->error, "KNT_ERROR_3",
		    "Dynamic payload buffer capacity exceeded. limit=%llu; actual=%zu; "
		    "type=%s.",
		    (unsigned long long)m->slice.return_area_bytes, n,
		    kn_type_name((enum kn_type)type));
	else
		return false;
	call->spoilt = true;
	return true;
}

/* n bytes of the return area, however long it takes. */
static uint8_t *
area_room(struct kn_mod *m, struct knit_call *call, size_t n)
{
	const uint32_t *freed = &m->slice.control->return_freed;

	for (unsigned round = 0;; round++) {
		call->area = kn_payload_alloc(&m->pay, freed, n, &call->off);
		if (call->area >= 0)
			return m->slice.return_area + call->off;
		kn_mod_wait_for_room(m, round);
	}
}

void *
kn_mod_result_room(struct kn_mod *m, struct knit_call *call, uint32_t type, size_t n)
{
	kn_mod_result_clear(m, call);
	if (is_too_much(m, call, type, n))
		return NULL;
	call->room = n;
	return n <= KN_INLINE_MAX ? call->inline_bytes : area_room(m, call, n);
}

static uint8_t *
bytes_of(struct kn_mod *m, struct knit_call *call)
{
	return call->area >= 0 ? m->slice.return_area + call->off : call->inline_bytes;
}

int
kn_mod_result_take(struct kn_mod *m, struct knit_call *call, uint32_t type, size_t n)
{
	if (!kn_value_check(type, bytes_of(m, call), n)) {
		kn_mod_result_clear(m, call);
		call->spoilt = true;
		if (type == KN_TYPE_TEXT || type == KN_TYPE_JSON)
			kn_mod_error_set(&call->error, "KNT_ERROR_2",
			    "The result is not valid UTF-8. actual=%zu; type=%s.", n,
			    kn_type_name((enum kn_type)type));
		else
			kn_mod_error_set(&call->error, "KNT_ERROR_3",
			    "%zu bytes are no value of type %s.", n,
			    kn_type_name((enum kn_type)type));
		return -1;
	}
	call->type = type;
	call->n = n;
	call->reserved = 0;
	call->spoilt = false;
	return 0;
}

/* ---- answers ---- */

static void
kn_mod_answer(struct kn_mod *m, struct knit_call *call, uint32_t flags, uint64_t ended)
{
	const struct kn_slot_head *req = call->head;
	struct kn_slot_head h = {
		.kind = req->kind,
		.flags = (uint16_t)flags,
		.task = req->task,
		.gen = req->gen,
		.area = KN_AREA_INLINE,
		.payload_len = (uint32_t)call->n,
		.type = call->type,
		.deadline_ns = ended,
		.fn = req->fn,
		.abort = req->abort,
		.begun_ns = call->begun_ns,
	};

	if (m->abort.turn &&
	    kn_shm_load64_acquire(&m->abort.gave_up) == m->abort.turn) /* U4 */
		h.flags |= KN_CALL_GAVE_UP;
	if (call->area >= 0) {
		h.area = (uint32_t)call->area;
		h.payload_off = (uint32_t)call->off;
	}
	kn_mod_publish(m, &h, call->inline_bytes);
	call->area = -1; /* the supervisor's now */
}

void
kn_mod_answer_value(struct kn_mod *m, struct knit_call *call, uint64_t ended_ns)
{
	if (call->type == 0)
		call->type = KN_TYPE_NULL;
	kn_mod_answer(m, call, 0, ended_ns);
}

void
kn_mod_answer_error(struct kn_mod *m, struct knit_call *call,
    const struct kn_mod_error *e, uint32_t flags, uint64_t ended_ns)
{
	struct kn_call_error chain = e->e;
	size_t n = kn_call_error_encode(&chain, NULL, 0);

	/* A small area may not have room for all of it: the causes go before the rest.
	 */
	while (n > KN_INLINE_MAX && n > m->slice.return_area_bytes && chain.n > 1) {
		chain.n--;
		n = kn_call_error_encode(&chain, NULL, 0);
	}
	if (n > KN_INLINE_MAX && n > m->slice.return_area_bytes) {
		chain.link[0].message = "an error whose text is too long to be sent";
		chain.link[0].detail = "";
		chain.link[0].name = "Error";
		n = kn_call_error_encode(&chain, NULL, 0);
	}
	kn_mod_result_clear(m, call);
	if (n <= KN_INLINE_MAX)
		(void)kn_call_error_encode(&chain, call->inline_bytes, n);
	else
		(void)kn_call_error_encode(&chain, area_room(m, call, n), n);
	call->type = KN_TYPE_ERROR;
	call->n = n;
	kn_mod_answer(m, call, KN_CALL_FAILED | flags, ended_ns);
}

/* ---- the end of a call ---- */

void
kn_mod_call_clear(struct knit_call *call)
{
	/* The oldest piece stays for the next call. */
	while (call->chunk && call->chunk->next) {
		struct kn_mod_chunk *c = call->chunk;

		call->chunk = c->next;
		free(c);
	}
	if (call->chunk)
		call->chunk->at = 0;
	kn_mod_error_clear(&call->error);
	call->type = call->reserved = 0;
	call->n = call->room = 0;
	call->spoilt = false;
}
