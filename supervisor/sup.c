/* supervisor/sup.c: the public calls: open, submit, cancel, stop, run, close. */
#include "supervisor/sup.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "ipc/clock.h"
#include "ipc/fd.h"
#include "sandbox/host.h"
#include "supervisor/inner.h"

enum {
	CALL_DEPTH = 64, /* one lane claimed, one on offer */
	CALL_WINDOW = 2048,
	START_MS = 10000,
	BACKOFF_MIN_MS = 10,
	BACKOFF_MAX_MS = 2000,
	CRASH_LOOP = 3,
	CRASH_LOOP_LATER = 10, /* with the back-off above: seconds */
	WINDOW_PER_WORKER = 16,
	WINDOW_MIN = 64,
};

/* ---- open ---- */

static uint32_t
choose_workers(
    const struct kn_policy *p, const struct kn_host *h, const struct kn_sup_options *o)
{
	uint64_t n = o->workers ? o->workers : p->pool.workers, each = p->worker.memory;
	uint64_t memory;

	if (!n) {
		if (!each)
			each = p->task.memory;
		n = h->cpus ? h->cpus : 1;
		memory = each && n > 1 ? kn_host_memory() : 0;
		if (memory && n > memory / each)
			n = memory / each;
	}
	if (n < 1)
		n = 1;
	return (uint32_t)(n < KN_WORKERS_MAX ? n : KN_WORKERS_MAX);
}

_Static_assert((int)KN_BALANCER_N == (int)KN_BALANCE_N &&
		   (int)KN_BALANCER_RANDOM == (int)KN_BALANCE_RANDOM,
    "a policy's words are the core's");

static void
configure(const struct kn_sup *s, uint32_t workers, struct kn_pool_config *c)
{
	const struct kn_policy *p = s->policy;

	*c = (struct kn_pool_config){
		.worker_n = workers,
		.task_max = s->task_max,
		.lane_depth = s->module			   ? CALL_DEPTH
			      : p->network == KN_NET_ALLOW ? 1 /* egress.h */
							   : KN_LANE_DEPTH,
		.start_ms = p->timeouts.start_ms ? p->timeouts.start_ms : START_MS,
		.claim_ms = p->timeouts.claim_ms,
		.hard_slack_ms = s->module ? 0 : p->timeouts.hard_slack_ms,
		.calls = s->module != NULL,
		.teardown_ms = s->module ? 0 : p->timeouts.teardown_ms,
		.grace_ms = p->timeouts.grace_ms,
		.stop_ack_ms = p->timeouts.stop_ack_ms,
		.recycle_tasks = p->pool.recycle_tasks,
		.recycle_s = p->pool.recycle_s,
		.recycle_memory = p->pool.recycle_memory,
		.spares = s->opt.single ? 0 : p->pool.spares,
		.backoff_min_ms = BACKOFF_MIN_MS,
		.backoff_max_ms = BACKOFF_MAX_MS,
		.crash_loop = CRASH_LOOP,
		.crash_loop_later = CRASH_LOOP_LATER,
		.balance = (enum kn_balance)p->pool.balancer,
		.seed = (uint32_t)s->start_ns,
		.broker = s->steal != KN_STEAL_OFF,
		.eager = workers == 1 || s->opt.eager,
	};
	if (s->steal == KN_STEAL_SHARED)
		kn_share_configure(c);
}

static int
alloc_tables(struct kn_sup *s, const struct kn_pool_config *c, struct kn_err *e)
{
	size_t actions = kn_pool_actions_max(c);
	void *room = calloc(1, kn_pool_bytes(c));

	s->worker_n = kn_pool_workers(c);
	s->mute = s->module && s->worker_n == 1 && s->steal != KN_STEAL_SHARED;
	/* answers: one an action, and at most one claim for each task in a lane;
	 * events: a submission and a cancellation each, and the pool's own */
	s->replies.cap = (uint32_t)actions + s->task_max;
	s->events.cap = 2 * s->task_max + 16;
	s->actions = calloc(actions, sizeof *s->actions);
	s->replies.v = calloc(s->replies.cap, sizeof *s->replies.v);
	s->events.v = calloc(s->events.cap, sizeof *s->events.v);
	s->wk = calloc(s->worker_n, sizeof *s->wk);
	s->entry = calloc(s->task_max, sizeof *s->entry);
	if (!room || !s->actions || !s->replies.v || !s->events.v || !s->wk ||
	    !s->entry) {
		free(room);
		return kn_err_set(e, KN_EK_HOST, "out of memory");
	}
	s->pool = kn_pool_init(room, c);
	for (uint32_t i = 0; i < s->worker_n; i++) {
		s->wk[i].sup = s;
		s->wk[i].index = i;
		s->wk[i].lw = (struct kn_launched)KN_LAUNCHED_NONE;
		s->wk[i].held_sock = s->wk[i].listener.fd = -1;
	}
	for (uint32_t i = s->task_max; i-- > 0;) {
		struct kn_entry *n = &s->entry[i];

		*n = (struct kn_entry){ .sup = s, .index = i, .worker = -1 };
		n->io.in_fd = n->io.out_fd = n->io.err_fd = -1;
		n->next = s->free_head;
		s->free_head = i;
	}
	return 0;
}

/* A task takes three descriptors while it runs, and one for each file it hands back.
 * And who sends descriptors is refused when his user has more of them in flight than he
 * may have open: no task of ours may have a higher limit than we (sandbox/stub/boot.c).
 */
static void
raise_nofile(struct kn_sup *s)
{
	struct rlimit want;

	if (s->opt.embedded || getrlimit(RLIMIT_NOFILE, &s->old_nofile) < 0)
		return;
	want = s->old_nofile;
	want.rlim_cur = want.rlim_max;
	if (want.rlim_cur > s->old_nofile.rlim_cur &&
	    setrlimit(RLIMIT_NOFILE, &want) == 0)
		s->nofile_saved = true;
}

static int
open_sandbox(struct kn_sup *s, uint32_t workers, struct kn_err *e)
{
	uint64_t area = s->policy->payload_area;
	uint32_t slices;
	struct kn_pool_config c;
	struct kn_layout layout;

	configure(s, workers, &c);
	if (alloc_tables(s, &c, e) < 0)
		return -1;
	if (getrandom(s->pool_id, sizeof s->pool_id, 0) != (ssize_t)sizeof s->pool_id)
		return kn_err_sys(e, KN_EK_HOST, "random bytes for the pool's id");
	/* A stub answers inline; a module may return as much as it is handed. */
	slices = s->module ? 2 * s->worker_n : s->worker_n;
	if (kn_layout_of(slices, area, s->module ? area : KN_PAGE, &layout) < 0)
		return kn_err_set(e, KN_EK_CONFIG,
		    "%u workers with a payload area of %llu bytes do not fit",
		    s->worker_n, (unsigned long long)area);
	if (kn_share_lay_out(s, &layout, e) < 0)
		return -1;
	if (kn_launcher_new(s->policy, s->host, s->pool_id, s->worker_n, &layout,
		&s->launcher, e) < 0 ||
	    kn_arena_open(&s->arena, &layout, s->pool_id, e) < 0)
		return -1;
	s->arena_open = true;
	s->rests = kn_rest_wanted(s);
	return kn_share_open(s, e);
}

static struct kn_sup *
new_sup(const struct kn_policy *p, const struct kn_host *h,
    const struct kn_sup_options *o, struct kn_err *e)
{
	struct kn_sup *s = calloc(1, sizeof *s);

	if (!s) {
		kn_err_set(e, KN_EK_HOST, "out of memory");
		return NULL;
	}
	s->policy = p;
	s->host = h;
	s->opt = *o;
	s->claim = o->claim_set ? o->claim : (int)p->pool.claim;
	s->start_ns = kn_clock_now();
	s->log = (struct kn_log){ .mask = o->debug,
		.json = o->log_json,
		.fd = o->debug_fd ? o->debug_fd : STDERR_FILENO,
		.start_ns = s->start_ns };
	s->trace.fd = -1;
	s->sig.fd = -1;
	s->arena.fd = -1;
	s->free_head = s->refused_head = KN_NO_ENTRY;
	for (int i = 0; i < KN_WATCH_MAX; i++)
		s->user_watch[i].fd = -1;
	return s;
}

static void
log_host(const struct kn_sup *s, uint32_t workers)
{
	const struct kn_layers *l = kn_launcher_layers(s->launcher);
	const char *why, *claim;
	uint32_t lanes;

	claim = kn_sup_claim(s, &why, &lanes);
	KN_LOG(&s->log, KN_NS_HOST, KN_LOG_POOL,
	    "workers=%u window=%u cpus=%u root=%d launcher=%s lanes=%s steal=%s (%s)",
	    workers, s->task_max, s->host->cpus, s->host->root,
	    kn_launcher_program(s->launcher), s->share ? "shared" : "private",
	    kn_steal_name(s->steal), s->steal_why);
	if (s->share)
		KN_LOG(&s->log, KN_NS_HOST, KN_LOG_POOL,
		    "claim=%s banks=%u claimants=%u region_lanes=%u (%s)", claim,
		    s->share->bank_n, s->share->bank_size, lanes, why);
	for (int i = 0; i < KN_LAYER_N; i++)
		KN_LOG(&s->log, KN_NS_SANDBOX, KN_LOG_POOL, "layer %s %s",
		    kn_layer_name((enum kn_layer)i), kn_layer_state_name(l->state[i]));
	KN_LOG(
	    &s->log, KN_NS_POLICY, KN_LOG_POOL, "policy %s", kn_policy_hash(s->policy));
}

int
kn_sup_open(const struct kn_policy *p, const struct kn_host *h,
    const struct kn_sup_options *o, const struct kn_sup_callbacks *cb,
    struct kn_sup **out, struct kn_err *e)
{
	struct kn_event first = { .type = KN_EV_TIMER };
	struct kn_sup *s = new_sup(p, h, o, e);
	uint32_t workers;

	if (!s)
		return -1;
	s->cb = *cb;
	if (p->pool.kind == KN_KIND_MODULE && kn_module_open(s, e) < 0)
		goto fail;
	workers = choose_workers(p, h, o);
	raise_nofile(s);
	if (kn_refused_open(s, e) < 0 || kn_room_for_workers(s, &workers, e) < 0 ||
	    kn_share_choose(s, workers, e) < 0)
		goto fail;
	s->task_max = o->window ? o->window : workers * WINDOW_PER_WORKER;
	if (s->task_max < WINDOW_MIN && !o->window)
		s->task_max = WINDOW_MIN;
	if (s->task_max < CALL_WINDOW && !o->window && s->module)
		s->task_max = CALL_WINDOW;
	if (s->task_max > 65536)
		s->task_max = 65536;
	if (kn_loop_open(&s->loop, e) < 0)
		goto fail;
	s->loop_open = true;
	if (kn_signals_open(s, e) < 0 || open_sandbox(s, workers, e) < 0)
		goto fail;
	if (p->network == KN_NET_ALLOW && kn_egress_open(s, e) < 0)
		goto fail;
	kn_trace_open(
	    &s->trace, o->trace_on ? o->trace_fd : -1, s->start_ns, s->worker_n);
	log_host(s, workers);
	/* With one worker the launch begins here, while the caller goes on. */
	first.now_ns = kn_clock_now();
	kn_turn_feed(s, &first);
	*out = s;
	return 0;
fail:
	kn_sup_close(s);
	return -1;
}

/* ---- run, close ---- */

/* The loop ended although tasks are owed: each still gets its answer. */
static void
answer_the_rest(struct kn_sup *s)
{
	for (uint32_t i = 0; i < s->task_max; i++) {
		struct kn_entry *e = &s->entry[i];

		if (e->state == KN_ENTRY_FREE)
			continue;
		if (e->state != KN_ENTRY_ENDING && e->state != KN_ENTRY_REFUSED) {
			e->state = KN_ENTRY_REFUSED;
			e->refusal = KN_V_INTERNAL;
			e->why = "the supervisor could not go on";
		}
		kn_outcome_answer(e);
	}
}

static void
run_down(struct kn_sup *s, const struct kn_err *e)
{
	if (e->kind != KN_EK_NONE)
		kn_turn_fail(s, e);
	s->broken = true;
	s->stop_level = 2;
	answer_the_rest(s);
}

int
kn_sup_run(struct kn_sup *s, int *out_signal, struct kn_err *e)
{
	struct kn_err err;
	int rc;

	kn_err_clear(&err);
	rc = kn_turn_run(s, &err);
	if (rc < 0)
		run_down(s, &err);
	if (out_signal)
		*out_signal = s->stop_signal;
	if (rc < 0 || s->pool_failed) {
		*e = s->fail;
		return -1;
	}
	if (kn_trace_close(&s->trace) < 0)
		return kn_err_sys(e, KN_EK_HOST, "write the trace");
	return 0;
}

int
kn_sup_turn(
    struct kn_sup *s, uint64_t until_ns, enum kn_sup_news *out, struct kn_err *e)
{
	enum kn_sup_news news = KN_SUP_ENDED;
	struct kn_err err;
	int rc;

	kn_err_clear(&err);
	rc = kn_turn_step(s, until_ns, &news, &err);
	if (rc < 0)
		run_down(s, &err);
	if (rc < 0 || (news == KN_SUP_ENDED && s->pool_failed)) {
		*e = s->fail;
		return -1;
	}
	if (news == KN_SUP_ENDED && kn_trace_close(&s->trace) < 0)
		return kn_err_sys(e, KN_EK_HOST, "write the trace");
	*out = news;
	return 0;
}

int
kn_sup_poll_fd(const struct kn_sup *s)
{
	return s->loop.epoll_fd;
}

uint32_t
kn_sup_window(const struct kn_sup *s)
{
	return s->task_max;
}

static void
end_workers(struct kn_sup *s)
{
	for (uint32_t i = 0; s->wk && i < s->worker_n; i++) {
		struct kn_wk *w = &s->wk[i];

		kn_fd_close(&w->held_sock);
		if (!w->live && !w->res.up)
			continue;
		kn_launch_kill(s->launcher, i, &w->lw);
		kn_proc_close(&w->lw.proc);
		kn_launch_await_gone(&w->lw);
		kn_act_release(w);
	}
}

static void
close_fds(struct kn_sup *s)
{
	for (uint32_t i = 0; s->entry && i < s->task_max; i++) {
		struct kn_entry *e = &s->entry[i];

		if (e->state == KN_ENTRY_FREE)
			continue;
		kn_stream_reset(e);
		kn_files_drop(e);
		kn_net_tally_fini(&e->net);
		kn_refused_forget(e);
	}
}

void
kn_sup_close(struct kn_sup *s)
{
	if (!s)
		return;
	end_workers(s);
	close_fds(s);
	kn_relay_close(s);
	(void)kn_trace_close(&s->trace);
	for (int i = 0; s->loop_open && i < KN_WATCH_MAX; i++)
		kn_loop_del(&s->loop, &s->user_watch[i].w);
	kn_signals_close(s);
	kn_egress_close(s);
	if (s->loop_open)
		kn_loop_close(&s->loop);
	kn_refused_close(s);
	kn_module_close(s);
	kn_share_close(s);
	if (s->launcher)
		kn_launcher_free(s->launcher);
	if (s->arena_open)
		kn_arena_close(&s->arena);
	if (s->nofile_saved)
		(void)setrlimit(RLIMIT_NOFILE, &s->old_nofile);
	free(s->pool);
	free(s->actions);
	free(s->replies.v);
	free(s->events.v);
	free(s->wk);
	free(s->entry);
	free(s->job_files);
	free(s);
}

/* ---- nothing started ---- */

int
kn_sup_dry_run(const struct kn_policy *p, const struct kn_host *h,
    const char *const **out_argv, struct kn_sup **out, struct kn_err *e)
{
	struct kn_sup_options o = { 0 };
	struct kn_sup *s = new_sup(p, h, &o, e);

	if (!s)
		return -1;
	if (p->pool.kind == KN_KIND_MODULE && kn_module_open(s, e) < 0) {
		kn_sup_close(s);
		return -1;
	}
	s->task_max = WINDOW_MIN;
	if (kn_share_choose(s, 1, e) < 0 || open_sandbox(s, 1, e) < 0) {
		kn_sup_close(s);
		return -1;
	}
	*out_argv = kn_launcher_argv(s->launcher);
	*out = s;
	return 0;
}
