/* lib/pool.c: open a pool; submit, cancel, look, drain and stop. */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>

#include "ipc/fd.h"
#include "lib/lib.h"

extern char **environ;

enum { JOBS_MAX = 1 << 20 };

/* ---- open ---- */

void
knit_pool_options_init(struct knit_pool_options *o, size_t size)
{
	const struct knit_pool_options fresh = {
		.jobs_max = JOBS_MAX, .debug_fd = -1, .trace_fd = -1
	};

	if (!o || size < sizeof o->size)
		return;
	memset(o, 0, size);
	memcpy(o, &fresh, size < sizeof fresh ? size : sizeof fresh);
	o->size = size;
}

/* A caller that was built with another version has a struct of another size. What we do
 * not know must be as it was made: zero. */
static int
read_options(const struct knit_pool_options *from, struct knit_pool_options *to,
    struct knit_error *e)
{
	const char *bytes = (const char *)from;
	const unsigned known = 2 * KNIT_POOL_WARM - 1;

	knit_pool_options_init(to, sizeof *to);
	if (!from)
		return 0;
	if (from->size < sizeof from->size || from->size > 4096)
		return kn_lib_fail(e, KNIT_E_USAGE,
		    "options that knit_pool_options_init() has not filled");
	for (size_t i = sizeof *to; i < from->size; i++) {
		if (bytes[i])
			return kn_lib_fail(e, KNIT_E_USAGE,
			    "an option of a newer libknit than this one");
	}
	memcpy(to, from, from->size < sizeof *to ? from->size : sizeof *to);
	if (to->flags & ~known)
		return kn_lib_fail(
		    e, KNIT_E_USAGE, "unknown flags: %#x", to->flags & ~known);
	if (to->jobs_max == 0)
		to->jobs_max = JOBS_MAX;
	return 0;
}

static void
on_answer(void *ctx, struct kn_task *t, struct kn_outcome *o)
{
	struct knit_pool *p = ctx;
	struct knit_job *job = t->user;

	kn_lib_outcome_fill(job->outcome, o);
	kn_lib_outcome_passed(job->outcome, t);
	kn_lib_job_answered(job);
	kn_list_add(&p->fresh, job);
}

static void
on_room(void *ctx)
{
	(void)ctx; /* never more is given than there is room for */
}

static void
on_say(void *ctx, uint32_t worker, const char *line)
{
	struct knit_pool *p = ctx;

	if (p->say)
		p->say(p->say_ctx, worker, line);
}

static void
on_lost(void *ctx, struct kn_task *t, int sys)
{
	struct knit_job *job = t->user;

	(void)ctx;
	__atomic_store_n(&job->lost, sys, __ATOMIC_RELEASE);
}

static void
on_wake(void *ctx, int fd, short revents)
{
	struct knit_pool *p = ctx;
	uint64_t n;

	(void)revents;
	pthread_mutex_lock(&p->lock);
	if (read(fd, &n, sizeof n) == (ssize_t)sizeof n)
		p->woken = false;
	pthread_mutex_unlock(&p->lock);
}

static void
raise_nofile(void)
{
	struct rlimit now;

	if (getrlimit(RLIMIT_NOFILE, &now) < 0)
		return;
	now.rlim_cur = now.rlim_max;
	(void)setrlimit(RLIMIT_NOFILE, &now);
}

static uint32_t
workers_at_most(const struct knit_pool *p, const struct knit_pool_options *o)
{
	uint32_t n = o->workers ? o->workers : kn_lib_policy(p->policy)->pool.workers;

	if (n == 0)
		n = p->host.cpus ? p->host.cpus : 1;
	return n > 128 ? 256 : 2 * n; /* spares at most double them */
}

static int
read_steal(
    const struct knit_pool_options *o, struct kn_sup_options *so, struct knit_error *e)
{
	so->steal_set = o->steal != NULL;
	so->claim_set = o->claim != NULL;
	if (o->steal && (so->steal = kn_steal_parse(o->steal)) < 0)
		return kn_lib_fail(
		    e, KNIT_E_USAGE, "steal: \"%.40s\" is not supported", o->steal);
	if (o->claim && (so->claim = kn_claims_parse(o->claim)) < 0)
		return kn_lib_fail(
		    e, KNIT_E_USAGE, "claim: \"%.40s\" is not supported", o->claim);
	return 0;
}

static int
open_sup(struct knit_pool *p, const struct knit_pool_options *o, struct knit_error *e)
{
	const struct kn_sup_callbacks cb = {
		.ctx = p,
		.answer = on_answer,
		.room = on_room,
		.say = on_say,
		.lost = on_lost,
	};
	struct kn_sup_options so = {
		.workers = o->workers,
		.window = o->window,
		.no_steal = o->flags & KNIT_POOL_NO_STEAL,
		.embedded = true,
		.env = (const char *const *)p->env.v,
		.env_n = p->env.n,
		.cwd = p->cwd,
		.single = o->flags & KNIT_POOL_ONE_JOB,
		.eager = o->flags & KNIT_POOL_WARM,
		.trace_on = o->trace_fd >= 0,
		.trace_fd = o->trace_fd,
		.debug_fd = o->debug_fd,
		.fds_beside = o->descriptors,
		.log_json = o->flags & KNIT_POOL_DEBUG_JSON,
	};
	const struct kn_policy *policy = kn_lib_policy(p->policy);
	struct kn_quiet q = { 0 };
	struct kn_err err = { 0 };
	int rc;

	if (o->workers > 256)
		return kn_lib_fail(e, KNIT_E_USAGE, "more than 256 workers");
	if (o->debug && kn_lib_debug_mask(o->debug, &so.debug, e) < 0)
		return -1;
	if (o->debug_fd < 0)
		so.debug = 0;
	if (read_steal(o, &so, e) < 0)
		return -1;
	kn_quiet_begin(&q);
	rc = kn_sup_open(policy, &p->host, &so, &cb, &p->sup, &err);
	if (rc == 0)
		rc = kn_sup_watch(p->sup, p->wake_fd, POLLIN, on_wake, p, &err);
	kn_quiet_end(&q);
	if (rc < 0)
		return kn_lib_pass(e, &err);
	p->window = kn_sup_window(p->sup);
	kn_sup_count(p->sup, &p->counts);
	return 0;
}

static int
prepare(struct knit_pool *p, struct knit_policy *policy,
    const struct knit_pool_options *o, struct knit_error *e)
{
	const char *const *env = o->env ? o->env : (const char *const *)environ;
	struct kn_err err = { 0 };

	p->policy = kn_lib_policy_hold(policy, e);
	if (!p->policy)
		return -1;
	if (kn_host_probe(&p->host, &err) < 0 ||
	    kn_env_build(&p->env, kn_lib_policy(p->policy), env, &err) < 0)
		return kn_lib_pass(e, &err);
	p->own_process = o->flags & KNIT_POOL_OWN_PROCESS;
	p->host.embedded = !p->own_process;
	p->host.stay = !(o->flags & KNIT_POOL_MOVE_CGROUP);
	if (kn_ids_take(&p->host, workers_at_most(p, o), &p->ids, e) < 0)
		return -1;
	p->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (p->wake_fd < 0) {
		kn_err_sys(&err, KN_EK_HOST, "make an eventfd");
		return kn_lib_pass(e, &err);
	}
	if (o->flags & KNIT_POOL_RAISE_NOFILE)
		raise_nofile();
	if (o->cwd && !(p->cwd = strdup(o->cwd)))
		return kn_lib_nomem(e);
	p->lazy = o->flags & KNIT_POOL_LAZY;
	p->jobs_max = o->jobs_max;
	p->say = o->say;
	p->say_ctx = o->say_ctx;
	return 0;
}

int
knit_pool_open(struct knit_policy *policy, const struct knit_pool_options *o,
    struct knit_pool **out, struct knit_error *e)
{
	struct knit_pool_options options;
	struct knit_pool *p;

	if (!out || !policy)
		return kn_lib_fail(e, KNIT_E_USAGE, "open: NULL");
	if (read_options(o, &options, e) < 0)
		return -1;
	p = calloc(1, sizeof *p);
	if (!p)
		return kn_lib_nomem(e);
	pthread_mutex_init(&p->lock, NULL);
	pthread_cond_init(&p->left, NULL);
	p->refs = 1;
	p->pid = getpid();
	p->wake_fd = -1;
	if (prepare(p, policy, &options, e) < 0 || open_sup(p, &options, e) < 0) {
		kn_lib_dismantle(p);
		kn_lib_unref(p);
		return -1;
	}
	*out = p;
	return 0;
}

/* ---- jobs ---- */

static int
may_stream(const struct knit_pool *p, const struct knit_job *job, struct knit_error *e)
{
	if (p->streamer)
		return kn_lib_fail(
		    e, KNIT_E_USAGE, "one job at a time can have the caller's streams");
	if (job->task->pty && !p->own_process)
		return kn_lib_fail(
		    e, KNIT_E_USAGE, "a terminal: only with KNIT_POOL_OWN_PROCESS");
	return 0;
}

int
kn_lib_accept(struct knit_pool *p, struct knit_job *job, struct knit_error *e)
{
	if (p->fail.kind != KN_EK_NONE)
		return kn_lib_pass(e, &p->fail);
	if (p->closed || p->drain || p->stop || p->over)
		return kn_lib_fail(e, KNIT_E_CLOSED, "the pool takes no more jobs");
	if (job->has_streams && may_stream(p, job, e) < 0)
		return -1;
	if (job->has_streams)
		p->streamer = job;
	job->pool = p;
	job->state = KN_JOB_WAITING;
	p->refs++;
	p->unfinished++;
	p->submitted_n++;
	kn_list_add(&p->inbox, job);
	return 0;
}

/* Somebody leads: he is told. Nobody: it is done at once, by us, except for callbacks.
 */
void
kn_lib_set_going(struct knit_pool *p, struct kn_quiet *q)
{
	if (p->leading || p->lazy) {
		kn_pool_ring(p);
		return;
	}
	p->users++;
	kn_quiet_begin(q);
	kn_lib_work(p);
	kn_lib_hand_over(p);
	if (--p->users == 0)
		pthread_cond_broadcast(&p->left);
}

/* Who submits can come again. A batch cannot refuse a line that it has taken: it waits
 * by itself while there are as many, kn_lib_batch_submit(). */
static int
has_place(const struct knit_pool *p, struct knit_error *e)
{
	if (p->unfinished < p->jobs_max || p->closed || p->drain || p->stop || p->over)
		return 0;
	return kn_lib_fail(
	    e, KNIT_E_FULL, "%zu jobs are not finished yet", p->unfinished);
}

int
knit_pool_submit(struct knit_pool *p, struct knit_job *job, struct knit_error *e)
{
	struct kn_quiet q = { 0 };
	int rc;

	if (!p || !job)
		return kn_lib_fail(e, KNIT_E_USAGE, "submit: NULL");
	if (job->state != KN_JOB_NEW)
		return kn_lib_fail(e, KNIT_E_USAGE, "the job was submitted before");
	if (kn_lib_job_ready(job, kn_lib_policy(p->policy), &p->env, e) < 0)
		return -1;
	if (!job->outcome && !(job->outcome = kn_lib_outcome_new()))
		return kn_lib_nomem(e);
	if (kn_lib_enter(p, NULL, e) < 0)
		return -1;
	rc = has_place(p, e) < 0 ? -1 : kn_lib_accept(p, job, e);
	if (rc == 0)
		kn_lib_set_going(p, &q);
	pthread_mutex_unlock(&p->lock);
	kn_quiet_end(&q);
	return rc;
}

void
kn_lib_ask_cancel(struct knit_pool *p, struct knit_job *job)
{
	if (job->cancel)
		return;
	job->cancel = true;
	if (job->state == KN_JOB_GIVEN) {
		job->cancel_next = p->cancels;
		p->cancels = job;
	}
}

int
knit_job_cancel(struct knit_job *job, struct knit_error *e)
{
	struct kn_quiet q = { 0 };
	struct knit_pool *p;

	if (!job || !job->pool)
		return kn_lib_fail(
		    e, KNIT_E_USAGE, "cancel: the job was not submitted");
	p = job->pool;
	if (kn_lib_enter(p, NULL, e) < 0)
		return -1;
	if (job->state != KN_JOB_DONE && !job->cancel) {
		kn_lib_ask_cancel(p, job);
		kn_lib_set_going(p, &q);
	}
	pthread_mutex_unlock(&p->lock);
	kn_quiet_end(&q);
	return 0;
}

const struct knit_outcome *
knit_job_outcome(const struct knit_job *job)
{
	bool done;

	if (job && !job->pool && job->state == KN_JOB_DONE) /* given up */
		return kn_lib_outcome_of(job->outcome);
	if (!job || !job->pool || !kn_lib_is_ours(job->pool))
		return NULL;
	pthread_mutex_lock(&job->pool->lock);
	done = job->state == KN_JOB_DONE;
	pthread_mutex_unlock(&job->pool->lock);
	return done ? kn_lib_outcome_of(job->outcome) : NULL;
}

void
knit_job_free(struct knit_job *job)
{
	struct knit_pool *p = job ? job->pool : NULL;
	bool whole = true;

	if (!job || (p && !kn_lib_is_ours(p)))
		return;
	if (p) {
		pthread_mutex_lock(&p->lock);
		whole = job->state == KN_JOB_DONE;
		if (whole)
			kn_list_leave(job);
		else
			job->orphan = true;
		pthread_mutex_unlock(&p->lock);
	}
	if (!whole)
		return;
	kn_lib_job_end(job);
	if (p)
		kn_lib_unref(p);
}

/* ---- ending ---- */

static int
end_with(struct knit_pool *p, int stop, struct knit_error *e)
{
	struct kn_quiet q = { 0 };

	if (!p)
		return kn_lib_fail(e, KNIT_E_USAGE, "NULL is no pool");
	if (kn_lib_enter(p, NULL, e) < 0)
		return -1;
	p->drain = true;
	if (p->stop < stop)
		p->stop = stop;
	kn_lib_set_going(p, &q);
	pthread_mutex_unlock(&p->lock);
	kn_quiet_end(&q);
	return 0;
}

int
knit_pool_drain(struct knit_pool *p, struct knit_error *e)
{
	return end_with(p, 0, e);
}

int
knit_pool_stop(struct knit_pool *p, struct knit_error *e)
{
	return end_with(p, 1, e);
}

int
knit_pool_kill(struct knit_pool *p, struct knit_error *e)
{
	return end_with(p, 2, e);
}
