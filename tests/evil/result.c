/* tests/evil/result.c: results whose head or body is not what it should be. The task is
 * run honestly, and then this is said of it. */
#include <string.h>

#include "evil.h"
#include "ipc/blob.h"

/* ---- the head: one field at a time ---- */

#define HEAD(what, change) \
	static void head_##what(struct kn_slot_head *h, uint8_t bytes[KN_INLINE_MAX]) \
	{ \
		(void)bytes; \
		change; \
	} \
	static void tell_head_##what(struct kn_stub *s) \
	{ \
		(void)s; \
		evil.head = head_##what; \
	}
HEAD(kind, h->kind = 77)
HEAD(ping, h->kind = KN_REQ_PING)
HEAD(flags, h->flags = 1)
HEAD(type, h->type = 1)
HEAD(fd_n, h->fd_n = 3)
HEAD(area, h->area = 0)
HEAD(area_high, h->area = 31; h->payload_off = UINT32_MAX; h->payload_len = 64)
HEAD(off, h->payload_off = 0xfffffff0)
HEAD(len_none, h->payload_len = 0)
HEAD(len_much, h->payload_len = UINT32_MAX)
HEAD(len_more, h->payload_len = KN_INLINE_MAX + 1)
HEAD(len_less, h->payload_len--)
HEAD(gen, h->gen++)
HEAD(task, h->task ^= 1)

static void
head_noise(struct kn_slot_head *h, uint8_t bytes[KN_INLINE_MAX])
{
	(void)h;
	for (int i = 0; i < KN_INLINE_MAX; i++)
		bytes[i] = (uint8_t)evil_random();
}
static void
tell_head_noise(struct kn_stub *s)
{
	(void)s;
	evil.head = head_noise;
}

/* ---- the body ---- */

/* The encoder would make a detail printable; put one in that is not. */
static void
head_detail(struct kn_slot_head *h, uint8_t bytes[KN_INLINE_MAX])
{
	enum { DETAIL_AT = 16, EMPTY_BYTES = 4 + 1 };
	uint8_t rest[KN_INLINE_MAX];
	size_t rest_n = h->payload_len - DETAIL_AT - EMPTY_BYTES;
	struct kn_blob_w w = { .p = bytes, .cap = KN_INLINE_MAX, .n = DETAIL_AT };

	memcpy(rest, bytes + DETAIL_AT + EMPTY_BYTES, rest_n);
	kn_blob_str(&w, "\033[2J\n{\"id\":\"x\"}");
	memcpy(bytes + w.n, rest, rest_n);
	h->payload_len = (uint32_t)(w.n + rest_n);
}
static void
tell_result_detail(struct kn_stub *s)
{
	(void)s;
	evil.head = head_detail;
}

#define RESULT(what, change) \
	static void result_##what(struct kn_job_result *r) \
	{ \
		change; \
	} \
	static void tell_result_##what(struct kn_stub *s) \
	{ \
		(void)s; \
		evil.result = result_##what; \
	}
RESULT(cause, r->cause = (enum kn_cause)99)
RESULT(step, r->step = (enum kn_exec_step)99)
RESULT(status, r->wait_status = 0x7f) /* "stopped" is no end */
RESULT(status_wild, r->wait_status = (int32_t)0xdeadbeef)
RESULT(times, r->ended_ns = r->begun_ns - 1)
RESULT(detail_endless, memset(r->detail, 'x', sizeof r->detail))
RESULT(files, r->file_n++)
RESULT(files_many, r->file_n = UINT32_MAX)
/* No lie that can be seen: numbers that nobody else knows. They must stay numbers. */
RESULT(huge, r->begun_ns = 0; r->ended_ns = UINT64_MAX; r->user_us = UINT64_MAX;
       r->system_us = UINT64_MAX; r->max_rss = UINT64_MAX; r->memory_peak = UINT64_MAX;
       r->pids_peak = UINT64_MAX; r->oom_kills = UINT32_MAX)
RESULT(outside, r->oom_outside = 1)
RESULT(errno, r->step = KN_EXEC_CELL; r->sys = UINT32_MAX)
/* Of its own task it may say so; it costs that task and no other. */
RESULT(hard, r->cause = KN_CAUSE_HARD)
/* Of what was asked for by request somebody else knows. */
RESULT(cancelled, r->cause = KN_CAUSE_CANCEL)
RESULT(stopped, r->cause = KN_CAUSE_STOP)

const struct evil_lie evil_result_lies[] = {
	{ "head-kind", EVIL_SERVE, tell_head_kind },
	{ "head-ping", EVIL_SERVE, tell_head_ping },
	{ "head-flags", EVIL_SERVE, tell_head_flags },
	{ "head-type", EVIL_SERVE, tell_head_type },
	{ "head-fd_n", EVIL_SERVE, tell_head_fd_n },
	{ "head-area", EVIL_SERVE, tell_head_area },
	{ "head-area-high", EVIL_SERVE, tell_head_area_high },
	{ "head-off", EVIL_SERVE, tell_head_off },
	{ "head-len-none", EVIL_SERVE, tell_head_len_none },
	{ "head-len-much", EVIL_SERVE, tell_head_len_much },
	{ "head-len-more", EVIL_SERVE, tell_head_len_more },
	{ "head-len-less", EVIL_SERVE, tell_head_len_less },
	{ "head-gen", EVIL_SERVE, tell_head_gen },
	{ "head-task", EVIL_SERVE, tell_head_task },
	{ "head-noise", EVIL_SERVE, tell_head_noise },
	{ "result-cause", EVIL_SERVE, tell_result_cause },
	{ "result-step", EVIL_SERVE, tell_result_step },
	{ "result-status", EVIL_SERVE, tell_result_status },
	{ "result-status-wild", EVIL_SERVE, tell_result_status_wild },
	{ "result-times", EVIL_SERVE, tell_result_times },
	{ "result-detail", EVIL_SERVE, tell_result_detail },
	{ "result-detail-endless", EVIL_SERVE, tell_result_detail_endless },
	{ "result-files", EVIL_SERVE, tell_result_files },
	{ "result-files-many", EVIL_SERVE, tell_result_files_many },
	{ "result-huge", EVIL_SERVE, tell_result_huge },
	{ "result-outside", EVIL_SERVE, tell_result_outside },
	{ "result-errno", EVIL_SERVE, tell_result_errno },
	{ "result-other-cause", EVIL_SERVE, tell_result_hard },
	{ "result-cancelled", EVIL_SERVE, tell_result_cancelled },
	{ "result-stopped", EVIL_SERVE, tell_result_stopped },
	{ NULL, EVIL_START, NULL },
};
