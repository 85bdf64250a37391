/* cmd/bench_pool.c: our own pool in this process: so many tasks, timed. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/bench.h"
#include "ipc/clock.h"
#include "sandbox/policy.h"
#include "supervisor/sup.h"

enum { ARGV_MAX = 4 };

struct session {
	struct kn_bench *b;
	struct kn_bench_pool *p;
	struct kn_sup *sup;
	int next;	    /* index of the next task; below 0: of the warm-up */
	int warm, answered; /* tasks of the warm-up, of both */
	uint64_t t0_ns, t1_ns;
	uint64_t *sent_ns;
	bool broken;
	struct kn_err err;
};

/* ---- tasks ---- */

static char **
copy(const char *const *v, size_t n)
{
	char **out = calloc(n + 1, sizeof *out);

	for (size_t i = 0; out && i < n; i++)
		if (!(out[i] = strdup(v[i])))
			return NULL;
	return out;
}

static struct kn_task *
make_task(struct session *s, int i)
{
	const struct kn_task_ask nothing = { 0 };
	const char *argv[ARGV_MAX] = { NULL };
	struct kn_task *t = kn_task_new();
	uint32_t hard_ms;
	size_t n = 0;

	if (!t)
		return NULL;
	hard_ms = s->p->task(s->p->ctx, i < 0 ? -1 : i, argv);
	while (n < ARGV_MAX && argv[n])
		n++;
	t->id = strdup("bench");
	t->argv = copy(argv, n);
	t->argv_n = t->argv ? n : 0;
	t->env = copy((const char *const *)s->b->env.v, s->b->env.n);
	t->env_n = t->env ? s->b->env.n : 0;
	t->stdio = KN_STDIO_CAPTURE;
	if (!t->id || !t->argv || !t->env ||
	    kn_policy_tighten(
		s->p->policy, &nothing, &t->limits, &t->timeouts, &s->err) < 0) {
		kn_task_free(t);
		return NULL;
	}
	if (hard_ms)
		t->timeouts.hard_ms = hard_ms;
	return t;
}

/* ---- the run ---- */

static void
give_up(struct session *s)
{
	if (s->broken)
		return;
	s->broken = true;
	if (s->err.kind == KN_EK_NONE)
		kn_err_set(&s->err, KN_EK_HOST, "out of memory");
	kn_sup_stop(s->sup, true);
}

/* True: it is in. */
static bool
submit(struct session *s, int i)
{
	struct kn_task *t = make_task(s, i);
	intptr_t user = i;
	int rc = -1;

	if (t) {
		memcpy(&t->user, &user, sizeof t->user);
		if (i >= 0)
			s->sent_ns[i] = kn_clock_now();
		rc = kn_sup_submit(s->sup, t, &s->err);
	}
	if (rc == 0)
		return true;
	kn_task_free(t);
	if (rc < 0)
		give_up(s);
	return false;
}

/* Whether task 0 may start the clock: all before it is over and all workers serve. If
 * one does not yet, the warm-up goes on. */
static bool
is_warm(struct session *s)
{
	struct kn_sup_counts c;

	if (s->answered < s->warm)
		return false;
	kn_sup_count(s->sup, &c);
	if (c.workers >= s->p->workers)
		return true;
	s->warm++;
	(void)submit(s, -1);
	return false;
}

static void
fill(struct session *s)
{
	while (!s->broken && s->next < s->p->n) {
		if (s->next == 0 && !is_warm(s))
			return;
		if (s->p->one_by_one && s->next > 0 && s->answered < s->warm + s->next)
			return;
		if (!submit(s, s->next))
			return;
		if (s->next == 0)
			s->t0_ns = s->sent_ns[0];
		s->next++;
	}
	if (s->next == s->p->n)
		kn_sup_drain(s->sup);
}

static void
on_answer(void *ctx, struct kn_task *t, struct kn_outcome *o)
{
	struct session *s = ctx;
	uint64_t now = kn_clock_now();
	int i = (int)(intptr_t)t->user;

	kn_task_free(t);
	s->answered++;
	if (i >= 0 && s->p->answer) {
		s->p->answer(s->p->ctx, i, o, (double)(now - s->sent_ns[i]) / 1e3);
	} else if (o->verdict != KN_V_OK && !s->broken) {
		kn_err_set(&s->err, KN_EK_TASK, "a task ended %s%s%s",
		    kn_verdict_name(o->verdict), o->error[0] ? ": " : "", o->error);
		give_up(s);
	}
	s->t1_ns = now;
	fill(s);
}

static void
on_room(void *ctx)
{
	fill(ctx);
}

static int
run(struct session *s, struct kn_err *e)
{
	struct kn_sup_counts c;
	int signo = 0, rc;

	fill(s);
	rc = kn_sup_run(s->sup, &signo, e);
	if (signo && !s->b->signal)
		s->b->signal = signo;
	if (signo)
		return kn_err_set(e, KN_EK_HOST, "stopped by a signal");
	if (s->broken) {
		*e = s->err;
		return -1;
	}
	if (rc < 0)
		return -1;
	kn_sup_count(s->sup, &c);
	s->p->stolen = c.stolen;
	s->p->had_cgroups =
	    kn_sup_layers(s->sup)->state[KN_LAYER_CG_MEMORY] == KN_LAYER_ENFORCED;
	s->p->ms = (double)(s->t1_ns - s->t0_ns) / 1e6;
	return 0;
}

int
kn_bench_pool(struct kn_bench *b, struct kn_bench_pool *p, struct kn_err *e)
{
	struct session s = { .b = b, .p = p, .next = -p->warm, .warm = p->warm };
	const struct kn_sup_callbacks cb = {
		.ctx = &s, .answer = on_answer, .room = on_room
	};
	struct kn_sup_options o = {
		.workers = p->workers, .handle_signals = true, .no_steal = p->no_steal
	};
	struct kn_host host = b->host;
	int rc = -1;

	host.no_cgroups = p->no_cgroups;
	s.sent_ns = calloc((size_t)p->n, sizeof *s.sent_ns);
	if (!s.sent_ns)
		return kn_err_sys(e, KN_EK_HOST, "a table of tasks");
	if (kn_sup_open(p->policy, &host, &o, &cb, &s.sup, e) == 0)
		rc = run(&s, e);
	kn_sup_close(s.sup);
	free(s.sent_ns);
	return rc;
}
