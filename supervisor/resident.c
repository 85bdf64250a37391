/* supervisor/resident.c: one worker of kind module: stub, resident, and the way from
 * one to the next; see resident.h.
 *
 * Order of a start: launch, BOOT, a ping in the stub's lane; its echo; then the job
 * RESIDENT with its descriptors, and a ping in the resident's own lane, whose echo is
 * READY. The bytes of the slice are made anew only when the stub has said that the
 * former resident is reaped.
 */
#include "supervisor/resident.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ipc/bell.h"
#include "ipc/clock.h"
#include "ipc/fd.h"
#include "supervisor/inner.h"

enum { SPIN_US = 50 }; /* of an only worker: it is what everybody waits for */

uint32_t
kn_resident_slice(const struct kn_sup *s, uint32_t w)
{
	return s->worker_n + w;
}

/* ---- start ---- */

/* All that is one resident's and not the stub's. */
static void
reset(struct kn_wk *w)
{
	struct kn_resident_wk *r = &w->res;

	kn_arena_slice(&w->sup->arena, kn_resident_slice(w->sup, w->index), &w->slice);
	kn_submit_init(&w->tx);
	w->rx = (struct kn_return_rx){ 0 };
	w->staged = w->untold_n = w->host_cpu = w->unproved = 0;
	kn_payload_init(&w->pay, w->slice.submit_area_bytes);
	r->running = r->ended = r->load_failed = r->over = false;
	r->kill_by_ns = 0;
	r->killed = KN_CAUSE_NONE;
	memset(&r->ids, 0, sizeof r->ids);
	memset(&r->cpu, 0, sizeof r->cpu);
	r->rested = false;
	r->rest_ns = 0;
	r->backed = r->returned = r->payload_ns = 0;
}

void
kn_resident_fresh(struct kn_wk *w)
{
	struct kn_resident_wk *r = &w->res;

	memset(r, 0, sizeof *r);
	r->bell_fd = r->out.fd = r->err.fd = -1;
	r->w_bell.fd = r->out.w.fd = r->err.w.fd = -1;
	r->launch = w->incarnation;
	kn_arena_slice(&w->sup->arena, w->index, &r->slice);
	kn_submit_init(&r->tx);
	kn_payload_init(&r->pay, r->slice.submit_area_bytes);
	reset(w);
}

int
kn_resident_ping(struct kn_wk *w, struct kn_err *e)
{
	struct kn_resident_wk *r = &w->res;
	struct kn_slot_head head = { .kind = KN_REQ_PING,
		.task = KN_NO_ENTRY,
		.gen = r->launch,
		.area = KN_AREA_INLINE,
		.payload_len = sizeof r->ping_nonce };
	struct kn_msg msg = {
		.type = KN_MSG_TASK, .task = KN_NO_ENTRY, .gen = r->launch
	};

	if (getrandom(&r->ping_nonce, sizeof r->ping_nonce, 0) !=
	    (ssize_t)sizeof r->ping_nonce)
		return kn_err_sys(e, KN_EK_HOST, "random bytes for the ping");
	r->ping_slot = kn_submit_free(&r->tx, &r->slice);
	if (r->ping_slot < 0)
		return kn_err_set(e, KN_EK_PROTOCOL, "a fresh lane has no free slot");
	kn_submit_publish(&r->tx, &r->slice, r->ping_slot, &head, &r->ping_nonce);
	msg.arg = (uint32_t)r->ping_slot;
	if (kn_fd_send(w->lw.sock, &msg, sizeof msg, NULL, 0, 1) < 0)
		return kn_err_sys(e, KN_EK_LAUNCH, "send the first ping");
	return 0;
}

static void
on_bell(struct kn_watch *wt, uint32_t events)
{
	struct kn_wk *w = wt->ctx;

	(void)events; /* edge-triggered: the counter need not be read */
	w->rang = true;
}

/* Bell and streams. child: the resident's ends. */
static int
open_ends(struct kn_wk *w, int child[2], struct kn_err *e)
{
	struct kn_resident_wk *r = &w->res;
	int out[2], err[2];

	r->bell_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (r->bell_fd < 0)
		return kn_err_sys(e, KN_EK_HOST, "make an eventfd");
	if (pipe2(out, O_CLOEXEC) < 0)
		return kn_err_sys(e, KN_EK_HOST, "make a pipe");
	child[0] = out[1];
	if (pipe2(err, O_CLOEXEC) < 0) {
		kn_fd_close(&out[0]);
		return kn_err_sys(e, KN_EK_HOST, "make a pipe");
	}
	child[1] = err[1];
	if (kn_say_open(w, &r->out, out[0], e) < 0) {
		kn_fd_close(&err[0]);
		return -1;
	}
	if (kn_say_open(w, &r->err, err[0], e) < 0)
		return -1;
	return kn_loop_add(
	    &w->sup->loop, &r->w_bell, r->bell_fd, EPOLLIN | EPOLLET, on_bell, w, e);
}

static void
fill_job(const struct kn_sup *s, struct kn_job *j)
{
	static const char *const argv[] = { "knit-worker-module", NULL };
	const struct kn_policy *p = s->policy;
	const struct kn_task_limits *l = &p->task;

	*j = (struct kn_job){ .flags = KN_JOB_RESIDENT,
		.argv = argv,
		.argv_n = 1,
		.env = (const char *const *)s->module->env.v,
		.env_n = (uint32_t)s->module->env.n,
		.cwd = s->opt.cwd ? s->opt.cwd : "/task",
		.limits = { .memory = l->memory,
		    .pids = l->pids,
		    .nofile = l->nofile,
		    .fsize = l->fsize,
		    .stack = l->stack,
		    .core = l->core,
		    .grace_ms = p->timeouts.grace_ms } };
}

/* Encode the job into the stub's lane. */
static int
place_job(struct kn_wk *w, struct kn_slot_head *head, uint8_t buf[KN_INLINE_MAX],
    struct kn_err *e)
{
	struct kn_resident_wk *r = &w->res;
	struct kn_job job;
	uint64_t off = 0;
	size_t n;

	fill_job(w->sup, &job);
	n = kn_job_encode(&job, NULL, 0);
	head->payload_len = (uint32_t)n;
	head->area = KN_AREA_INLINE;
	r->job_area = -1;
	if (n <= KN_INLINE_MAX) {
		(void)kn_job_encode(&job, buf, KN_INLINE_MAX);
		return 0;
	}
	r->job_area =
	    kn_payload_alloc(&r->pay, &r->slice.control->submit_freed, n, &off);
	if (r->job_area < 0)
		return kn_err_set(e, KN_EK_LAUNCH, "no room for a job of %zu bytes", n);
	if (kn_arena_back_submit(&w->sup->arena, w->index, off, n, e) < 0) {
		kn_payload_undo(&r->pay, r->job_area);
		return -1;
	}
	(void)kn_job_encode(&job, r->slice.submit_area + off, n);
	head->area = (uint32_t)r->job_area;
	head->payload_off = (uint32_t)off;
	return 0;
}

static int
send_job(struct kn_wk *w, const int child[2], int record_fd, struct kn_err *e)
{
	const struct kn_sup *s = w->sup;
	struct kn_resident_wk *r = &w->res;
	const int fds[] = { s->module->null_fd, child[0], child[1], s->module->exe_fd,
		s->arena.fd, r->bell_fd, record_fd, s->share ? s->share->ro_fd : -1 };
	enum { FD_MAX = sizeof fds / sizeof fds[0] };
	_Static_assert(FD_MAX == 3 + KN_RESIDENT_FD_END - KN_RESIDENT_EXE,
	    "stdio, and what enum kn_resident_fd names");
	const int fd_n = s->share ? FD_MAX : FD_MAX - 1;
	struct kn_slot_head head = { .kind = KN_REQ_EXEC,
		.task = KN_RESIDENT_TASK,
		.gen = w->incarnation,
		.fd_n = (uint32_t)fd_n };
	struct kn_msg msg = {
		.type = KN_MSG_TASK, .task = KN_RESIDENT_TASK, .gen = w->incarnation
	};
	uint8_t buf[KN_INLINE_MAX];
	bool bad = false;

	(void)kn_submit_claimed(&r->tx, &r->slice, &bad);
	r->job_slot = kn_submit_free(&r->tx, &r->slice);
	if (r->job_slot < 0)
		return kn_err_set(e, KN_EK_PROTOCOL, "the stub's lane has no slot");
	if (place_job(w, &head, buf, e) < 0)
		return -1;
	r->job_gen = w->incarnation;
	kn_submit_publish(&r->tx, &r->slice, r->job_slot, &head, buf);
	msg.arg = (uint32_t)r->job_slot;
	if (kn_fd_send(w->lw.sock, &msg, sizeof msg, fds, fd_n, 1) < 0)
		return kn_err_sys(e, KN_EK_LAUNCH, "send the module's process");
	r->running = true;
	return 0;
}

static int
start(struct kn_wk *w, struct kn_err *e)
{
	struct kn_sup *s = w->sup;
	const struct kn_policy *p = s->policy;
	struct kn_resident rec = { .layout = s->arena.layout,
		.slice = kn_resident_slice(s, w->index),
		.spin_us = s->worker_n == 1 ? SPIN_US : 0,
		.need_mseal = kn_launcher_layers(s->launcher)->state[KN_LAYER_MSEAL] ==
			      KN_LAYER_ENFORCED,
		.may_place = s->worker_n == 1 && s->filter.may_place,
		.may_name = s->filter.may_name,
		.payload_max = p->payload_max ? p->payload_max : p->payload_area,
		.module = p->pool.module_at,
		.init = p->pool.init };
	int child[2] = { -1, -1 }, record = -1, rc = -1;

	if (s->share) {
		rec.claim = s->share->how;
		rec.region_lanes = s->share->width;
	}
	memcpy(rec.pool_id, s->pool_id, sizeof rec.pool_id);
	if (kn_arena_reset_slice(&s->arena, rec.slice, e) == 0 &&
	    kn_resident_seal(&rec, &record, e) == 0 && open_ends(w, child, e) == 0 &&
	    kn_publish_ping(w, e) == 0) {
		if (s->share)
			kn_share_join(w);
		rc = send_job(w, child, record, e);
	}
	kn_fd_close(&child[0]);
	kn_fd_close(&child[1]);
	kn_fd_close(&record);
	return rc;
}

int
kn_resident_again(struct kn_wk *w, uint32_t incarnation, struct kn_err *e)
{
	w->incarnation = incarnation;
	w->ready = w->stopping = w->stop_acked = w->rang = w->late = false;
	w->bad = NULL;
	w->bad_fed = false;
	w->results = w->idle_rings = 0;
	w->outstanding = 0;
	w->spawned_ns = kn_clock_now();
	reset(w);
	if (start(w, e) < 0) {
		kn_resident_close(w);
		w->res.bad = true;
		return -1;
	}
	w->live = true;
	KN_LOG(&w->sup->log, KN_NS_LIFECYCLE, (int)w->index,
	    "resident incarnation=%u in the sandbox of %u", incarnation, w->res.launch);
	return 0;
}

/* ---- the stub's lane ---- */

static void
stub_lies(struct kn_wk *w, const char *field)
{
	w->res.bad = true;
	kn_view_violation(w, field);
}

static void
on_pong(struct kn_wk *w, const struct kn_slot_head *h, const uint8_t *bytes)
{
	struct kn_resident_wk *r = &w->res;
	struct kn_err e;

	if (r->ready || h->task != KN_NO_ENTRY || h->gen != r->launch ||
	    h->area != KN_AREA_INLINE || h->payload_len != sizeof r->ping_nonce ||
	    memcmp(bytes, &r->ping_nonce, sizeof r->ping_nonce) != 0) {
		stub_lies(w, "stub.ping");
		return;
	}
	kn_view_listening(w);
	if (w->bad) {
		r->bad = true;
		return;
	}
	r->ready = w->lw.up = true;
	KN_LOG(&w->sup->log, KN_NS_LIFECYCLE, (int)w->index,
	    "sandbox pid=%d after=%lluus", (int)w->lw.proc.pid,
	    (unsigned long long)((kn_clock_now() - w->spawned_ns) / 1000));
	kn_err_clear(&e);
	if (start(w, &e) == 0)
		return;
	r->load_failed = true;
	r->load_err = e;
	kn_launch_kill(w->sup->launcher, w->index, &w->lw);
}

static void
on_end(struct kn_wk *w, const struct kn_slot_head *h, const uint8_t *bytes)
{
	struct kn_resident_wk *r = &w->res;
	const char *bad = NULL;

	if (!r->running || h->task != KN_RESIDENT_TASK || h->gen != r->job_gen)
		bad = "stub.task";
	else if (h->flags || h->type || h->fd_n || h->area != KN_AREA_INLINE ||
		 h->payload_off || h->payload_len == 0 ||
		 h->payload_len > KN_JOB_RESULT_MAX)
		bad = "stub.head";
	else if (kn_job_result_decode(bytes, h->payload_len, &r->end, &bad) < 0)
		bad = bad ? bad : "stub.result";
	else if (kn_cause_by_request(r->end.cause) && r->killed != r->end.cause &&
		 !w->stopping)
		bad = "stub.cause";
	else if (r->end.file_n)
		bad = "stub.file_n";
	if (bad) {
		stub_lies(w, bad);
		return;
	}
	r->running = false;
	r->ended = true;
	KN_LOG(&w->sup->log, KN_NS_LIFECYCLE, (int)w->index,
	    "resident ended status=%#x cause=%d step=%d", (unsigned)r->end.wait_status,
	    (int)r->end.cause, (int)r->end.step);
}

unsigned
kn_resident_look(struct kn_wk *w)
{
	struct kn_resident_wk *r = &w->res;
	uint8_t bytes[KN_INLINE_MAX];
	struct kn_slot_head head;
	bool bad = false;
	unsigned n = 0;
	int slot;

	while (!r->bad && n < KN_SLOTS &&
	       (slot = kn_return_peek(&r->rx, &r->slice, &head, bytes)) >= 0) {
		kn_return_retire(&r->rx, &r->slice, slot);
		n++;
		(void)kn_submit_claimed(&r->tx, &r->slice, &bad);
		if (bad)
			stub_lies(w, "stub.claimed");
		else if (head.kind == KN_REQ_PING)
			on_pong(w, &head, bytes);
		else if (head.kind == KN_REQ_EXEC)
			on_end(w, &head, bytes);
		else
			stub_lies(w, "stub.kind");
	}
	return n;
}
