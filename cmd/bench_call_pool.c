/* cmd/bench_call_pool.c: calls of a module through our own pool in this process. */
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "cmd/bench_call.h"
#include "ipc/clock.h"
#include "ipc/fd.h"
#include "sandbox/policy.h"
#include "supervisor/sup.h"

/* The module of cmd/bench/module.c, embedded by the linker (Makefile). */
extern const char kn_bench_module_image[], kn_bench_module_image_end[];

enum { NOOPS_UNDER_WAY = 256 };

struct session {
	struct kn_bench *b;
	struct kn_bench_calls *c;
	struct kn_sup *sup;
	struct kn_task **task;
	uint64_t *sent_ns;
	unsigned warm, sent, answered;
	uint64_t t0_ns, t1_ns;
	bool broken;
	struct kn_err err;
};

int
kn_bench_module_file(struct kn_bench *b, char *out, size_t n, struct kn_err *e)
{
	KN_OWN_FD int fd = -1;

	snprintf(out, n, "%s/bench.so", b->dir);
	if (access(out, R_OK) == 0)
		return 0;
	fd = open(out, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	if (fd < 0 || fchmod(fd, 0644) < 0 ||
	    kn_fd_write_all(fd, kn_bench_module_image,
		(size_t)(kn_bench_module_image_end - kn_bench_module_image)) < 0)
		return kn_err_sys(e, KN_EK_HOST, "write %s", out);
	return 0;
}

static int
make_tasks(struct session *s)
{
	const struct kn_bench_calls *c = s->c;

	s->task = calloc(c->depth, sizeof *s->task);
	s->sent_ns = calloc(c->depth, sizeof *s->sent_ns);
	for (uint32_t i = 0; s->task && s->sent_ns && i < c->depth; i++) {
		struct kn_task *t = s->task[i] = kn_task_new();
		size_t n = c->arg ? 8 : c->bytes;

		if (!t || !(t->id = strdup("bench")) ||
		    !(t->call.name = strdup(c->name)))
			return -1;
		t->call.fn = kn_sup_function(s->sup, c->name);
		t->call.arg.type = c->arg ? KN_TYPE_I64
				   : n	  ? KN_TYPE_BYTES
					  : KN_TYPE_NULL;
		t->call.arg.n = n;
		if (n && !(t->call.arg.bytes = malloc(n)))
			return -1;
		if (n)
			memset(t->call.arg.bytes, (int)i, n);
		t->user = &s->sent_ns[i];
	}
	return s->task && s->sent_ns ? 0 : -1;
}

static void
give_up(struct session *s)
{
	if (!s->broken)
		kn_sup_stop(s->sup, true);
	s->broken = true;
}

static void
send(struct session *s, struct kn_task *t)
{
	const struct kn_bench_calls *c = s->c;
	uint64_t *sent_ns = t->user;
	int64_t v;

	if (c->arg) {
		v = c->arg(c->ctx, s->sent < s->warm ? 0 : s->sent - s->warm);
		memcpy(t->call.arg.bytes, &v, sizeof v);
	}
	if (s->sent == s->warm)
		s->t0_ns = kn_clock_now();
	if (c->us)
		*sent_ns = kn_clock_now();
	s->sent++;
	if (kn_sup_submit(s->sup, t, &s->err) != 0)
		give_up(s);
}

/* With fewer under way than workers, some are never asked for. */
static bool
all_serve(struct session *s)
{
	uint32_t want = s->c->workers < s->c->depth ? s->c->workers : s->c->depth;
	struct kn_sup_counts n;

	kn_sup_count(s->sup, &n);
	return n.workers >= want;
}

static void
on_answer(void *ctx, struct kn_task *t, struct kn_outcome *o)
{
	struct session *s = ctx;
	struct kn_bench_calls *c = s->c;
	uint64_t *sent_ns = t->user;

	if (o->verdict != KN_V_OK && !s->broken) {
		kn_err_set(&s->err, KN_EK_TASK, "a call ended %s: %s",
		    kn_verdict_name(o->verdict), o->error);
		give_up(s);
	}
	if (c->us && s->answered >= s->warm)
		kn_series_add(c->us, (double)(kn_clock_now() - *sent_ns) / 1e3);
	s->answered++;
	if (s->broken)
		return;
	if (s->answered == s->warm && !all_serve(s))
		s->warm++; /* the warm-up goes on */
	if (s->answered == s->warm + c->n) {
		s->t1_ns = kn_clock_now();
		kn_sup_drain(s->sup);
	} else if (s->sent < s->warm) {
		send(s, t);
	} else if (s->sent == s->warm && s->answered < s->warm) {
		; /* the clock starts when the warm-up is over */
	} else if (s->sent == s->warm && !c->pace_ms) {
		for (uint32_t i = 0; i < c->depth && s->sent < s->warm + c->n; i++)
			send(s, s->task[i]);
	} else if (s->sent < s->warm + c->n && !c->pace_ms) {
		send(s, t);
	}
}

/* A timer of its own, which nobody has to set again between call and answer. */
static void
on_pace(void *ctx, int fd, short revents)
{
	struct session *s = ctx;
	uint64_t n;

	(void)revents;
	(void)!read(fd, &n, sizeof n);
	if (!s->broken && s->sent >= s->warm && s->sent == s->answered &&
	    s->sent < s->warm + s->c->n)
		send(s, s->task[0]);
}

static void
on_room(void *ctx)
{
	(void)ctx; /* never more under way than the window has room for */
}

static int
run(struct session *s, struct kn_err *e)
{
	struct kn_bench_calls *c = s->c;
	struct kn_sup_counts n;
	KN_OWN_FD int pace = -1;
	int signo = 0, rc;

	if (make_tasks(s) < 0)
		return kn_err_set(e, KN_EK_HOST, "out of memory");
	if (c->pace_ms) {
		const struct timespec every = { 0, (long)c->pace_ms * 1000000 };
		const struct itimerspec its = { every, every };

		pace = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
		if (pace < 0 || timerfd_settime(pace, 0, &its, NULL) < 0)
			return kn_err_sys(e, KN_EK_HOST, "set a timer");
		if (kn_sup_watch(s->sup, pace, POLLIN, on_pace, s, e) < 0)
			return -1;
	}
	for (uint32_t i = 0; i < c->depth && s->sent < c->warm; i++)
		send(s, s->task[i]);
	rc = kn_sup_run(s->sup, &signo, e);
	if (pace >= 0)
		(void)kn_sup_watch(s->sup, pace, 0, NULL, NULL, NULL);
	if (signo && !s->b->signal)
		s->b->signal = signo;
	if (signo)
		return kn_err_set(e, KN_EK_HOST, "stopped by a signal");
	if (s->broken)
		*e = s->err;
	kn_sup_count(s->sup, &n);
	if (!s->broken && (n.bugs || n.doorbell_missed)) {
		kn_err_set(e, KN_EK_BUG,
		    "%llu events that could not be, %llu bells missed",
		    (unsigned long long)n.bugs, (unsigned long long)n.doorbell_missed);
		rc = -1;
	}
	c->ms = (double)(s->t1_ns - s->t0_ns) / 1e6;
	return rc < 0 || s->broken ? -1 : 0;
}

int
kn_bench_calls(struct kn_bench *b, struct kn_bench_calls *c, struct kn_err *e)
{
	char file[96];
	const struct kn_policy_src src[] = {
		{ .type = KN_SRC_VALUE,
		    .pointer = "/pool/kind",
		    .text = "module",
		    .label = "bench" },
		{ .type = KN_SRC_VALUE,
		    .pointer = "/pool/module",
		    .text = file,
		    .label = "bench" },
	};
	struct session s = { .b = b, .c = c, .warm = c->warm };
	const struct kn_sup_callbacks cb = {
		.ctx = &s, .answer = on_answer, .room = on_room
	};
	const struct kn_sup_options o = { .workers = c->workers,
		.window = c->depth > 64 ? c->depth : 64,
		.handle_signals = true,
		.no_steal = c->no_steal,
		.steal_set = c->shared,
		.steal = KN_STEAL_SHARED,
		.claim_set = c->shared,
		.claim = c->claim };
	struct kn_policy *p = NULL;
	int rc = -1;

	if (kn_bench_module_file(b, file, sizeof file, e) == 0 &&
	    kn_policy_load(src, 2, &p, e) == 0 &&
	    kn_sup_open(p, &b->host, &o, &cb, &s.sup, e) == 0)
		rc = run(&s, e);
	kn_sup_close(s.sup);
	for (uint32_t i = 0; s.task && i < c->depth; i++)
		kn_task_free(s.task[i]);
	free(s.task);
	free(s.sent_ns);
	kn_policy_free(p);
	return rc;
}

int
kn_bench_noops(struct kn_bench *b, struct kn_bench_calls c, struct kn_series *out,
    struct kn_err *e)
{
	c.name = "nothing";
	c.depth = c.warm = NOOPS_UNDER_WAY;
	if (b->quick)
		c.n /= 20;
	if (kn_bench_calls(b, &c, e) < 0)
		return -1;
	kn_series_add(out, c.n / c.ms * 1e3);
	return 0;
}
