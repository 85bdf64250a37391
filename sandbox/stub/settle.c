/* sandbox/stub/settle.c: a task that is over: its accounts, its files, its answer. */
#include <errno.h>
#include <signal.h>
#include <string.h>

#include "ipc/clock.h"
#include "ipc/err.h"
#include "ipc/payload.h"
#include "sandbox/stub/run_int.h"
#include "sandbox/stub/sys.h"

/* Pages of program files, which max_rss has and a memory limit does not mean. */
#define MAPPED_FILES_BYTES (16ull << 20)

void
kn_run_fail(struct run *r, enum kn_exec_step step, int neg_errno, const char *detail)
{
	r->res.step = step;
	r->res.sys = (uint32_t)-neg_errno;
	if (detail)
		kn_err_printable(r->res.detail, sizeof r->res.detail, detail,
		    (int)strnlen(detail, sizeof r->res.detail));
}

/* What the looks could not see in time, the final accounts tell. */
static void
settle_cause(struct run *r)
{
	const struct kn_job_limits *l = &r->job.limits;
	const struct kn_job_result *res = &r->res;

	if (res->cause != KN_CAUSE_NONE || res->step != KN_EXEC_STARTED)
		return;
	if (r->hard_ns && res->ended_ns >= r->hard_ns)
		r->res.cause = KN_CAUSE_HARD;
	else if (l->cpu_ms && (res->user_us + res->system_us) / 1000 > l->cpu_ms)
		r->res.cause = KN_CAUSE_CPU;
	else if (l->memory && !kn_cg_holds_memory(&r->s->cg) &&
		 res->max_rss > MAPPED_FILES_BYTES &&
		 res->max_rss - MAPPED_FILES_BYTES > l->memory)
		r->res.cause = KN_CAUSE_MEMORY;
}

void
kn_run_settle(struct run *r)
{
	struct kn_cell *c = &r->cell;
	struct kn_job_result *res = &r->res;
	struct kn_cell_usage u = { 0, 0, 0 };
	int err = kn_cell_usage(c, &u);

	/* If it has not said that all of it is reaped, it was ended itself. */
	if (c->direct && !c->over)
		kn_direct_drain(c->direct);
	res->user_us = u.user_us;
	res->system_us = u.system_us;
	res->max_rss = u.max_rss;
	r->unclean = !kn_left_clear(&r->s->left);
	kn_cg_end(&r->s->cg, res);
	kn_cg_add_unwaited(&r->s->cg, res, c->init_cpu_ns);
	kn_watch_add_unwaited(&r->s->watch, res);
	res->wait_status = c->wait_status;
	if (c->begun_ns)
		res->begun_ns = c->begun_ns;
	res->ended_ns = c->ended_ns ? c->ended_ns : kn_clock_now();
	if (c->step != KN_EXEC_STARTED)
		kn_run_fail(r, c->step, -c->sys, c->detail);
	else if (err < 0)
		kn_run_fail(r, KN_EXEC_CELL, err, "reap");
	else if (!c->ended && !c->begun_ns && res->cause == KN_CAUSE_NONE &&
		 res->oom_kills == 0)
		kn_run_fail(r, KN_EXEC_CELL, -EIO, "init was killed");
	/* Once the task has begun, the end of its init is its own SIGKILL: it may have
	 * brought that about, and must not be run again for it. */
	settle_cause(r);
}

void
kn_run_collect(struct run *r)
{
	struct kn_job_result *res = &r->res;

	if ((r->job.keep_n + r->job.collect_n == 0 && r->s->overlays.out < 0) ||
	    res->step != KN_EXEC_STARTED || res->cause == KN_CAUSE_STOP ||
	    res->cause == KN_CAUSE_CANCEL)
		return;
	if (kn_files_collect(r->task_fs, r->s->overlays.layer_fd, &r->job,
		&r->s->collect, r->s->sock, r->head->task, r->head->gen,
		&res->file_n) < 0)
		kn_serve_abandon(r->s);
}

void
kn_run_answer(struct run *r)
{
	uint8_t bytes[KN_JOB_RESULT_MAX];
	struct kn_slot_head h = {
		.kind = KN_REQ_EXEC,
		.task = r->head->task,
		.gen = r->head->gen,
		.area = KN_AREA_INLINE,
	};

	if (r->res.ended_ns < r->res.begun_ns)
		r->res.ended_ns = r->res.begun_ns;
	h.payload_len = (uint32_t)kn_job_result_encode(&r->res, bytes, sizeof bytes);
	if (r->head->area != KN_AREA_INLINE)
		kn_payload_free(&r->s->slice.control->submit_freed, (int)r->head->area);
	kn_serve_answer(r->s, &h, bytes);
}
