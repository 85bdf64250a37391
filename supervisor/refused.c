/* supervisor/refused.c: calls that a worker's filter refuses -> answers, and what is
 * told of them with the result (/seccomp/explain).
 *
 * The filter asks; the caller waits until it is answered, as the policy says and at
 * once. Whose call it was: a worker runs one task at a time, says which, and nothing of
 * a task is left when it says that it has begun another. So if it names the same task
 * before and after the kernel has said that the caller still waits, that task made the
 * call. A worker that lies about it lies about its own tasks only.
 *
 * A task that makes refused calls without end is slowed down, nobody else: after a few
 * its worker's listener rests between a few more, the longer the more of them do so.
 * What comes during a rest is taken at once all the same, and answered after it: a call
 * that was taken waits for its answer, where one that was not ends with EINTR as soon
 * as its caller gets a signal.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ipc/clock.h"
#include "ipc/fd.h"
#include "sandbox/host.h"
#include "sandbox/listener.h"
#include "sandbox/stub_text.h"
#include "supervisor/inner.h"

enum {
	KINDS = 16,	     /* of refused calls that a result lists */
	KINDS_LEARNT = 2048, /* that learning does */
	AT_ONCE = 64,	     /* calls of a task that are answered without a rest */
	BATCH = 32,	     /* answered in one turn */
	REST_MS = 4,	     /* between batches */
	LOOSE_SHOWN = 16,    /* lines about calls of a worker outside of any task */
};

/* What was heard of one task. */
struct kn_heard {
	uint32_t n;
	uint64_t calls, more;
	struct {
		struct kn_told_call call;
		uint64_t key, count;
		unsigned errno_ret;
		bool let;
	} v[];
};

static uint32_t
kinds(const struct kn_sup *s)
{
	return s->opt.learn ? KINDS_LEARNT : KINDS;
}

/* ---- the pool ---- */

int
kn_refused_open(struct kn_sup *s, struct kn_err *e)
{
	bool named = kn_policy_named(s->policy, "/seccomp/explain");
	struct kn_err why;

	kn_err_clear(&why);
	if (!s->policy->seccomp.explain && !s->opt.learn)
		return 0;
	/* Inside of another program nobody answers until it turns us. */
	if (s->host->embedded && !named)
		return 0;
	if (kn_listener_can(&why) == 0) {
		s->tell = true;
		return 0;
	}
	if (named || s->opt.learn) {
		*e = why;
		return kn_err_wrap(e, "/seccomp/explain");
	}
	KN_LOG(&s->log, KN_NS_POLICY, KN_LOG_POOL, "refused calls are not told of: %s",
	    why.msg);
	return 0;
}

int
kn_refused_filter(struct kn_sup *s, bool watched, struct kn_err *e)
{
	struct kn_filter_how how = { .watched = watched, .tell = s->tell };

	if (s->tell && (kn_stub_text(&how.stub_from, &how.stub_to, e) < 0 ||
			   kn_told_open(s->policy, watched, &s->told, e) < 0))
		return -1;
	return kn_filter_build_how(s->policy, &how, &s->filter, e);
}

void
kn_refused_close(struct kn_sup *s)
{
	if (s->filter_built)
		kn_filter_fini(&s->filter);
	kn_told_close(s->told);
	s->told = NULL;
}

/* ---- whose call ---- */

/* NULL: of no task, or its caller is gone and it cannot be known. */
static struct kn_entry *
whose(struct kn_wk *w, uint64_t id)
{
	uint32_t task[2], gen[2];
	uint64_t ns;

	if (!w->live || w->bad ||
	    !kn_control_begun(w->slice.control, &task[0], &gen[0], &ns) ||
	    !kn_listener_waits(w->listener.fd, id) ||
	    !kn_control_begun(w->slice.control, &task[1], &gen[1], &ns) ||
	    task[0] != task[1] || gen[0] != gen[1])
		return NULL;
	return kn_view_entry(w, task[0], gen[0]);
}

/* Where it is counted; NULL: there is no room for another kind of call. */
static uint64_t *
counter(struct kn_entry *t, const struct kn_told_call *c,
    const struct kn_told_answer *a, bool let)
{
	struct kn_heard *h = t->heard;
	uint32_t n = h->n;

	for (uint32_t i = 0; i < n; i++)
		if (h->v[i].key == a->key && h->v[i].call.nr == c->nr)
			return &h->v[i].count;
	if (n == kinds(t->sup))
		return NULL;
	h->n++;
	h->v[n].call = *c;
	h->v[n].key = a->key;
	h->v[n].count = 0;
	h->v[n].errno_ret = a->errno_ret;
	h->v[n].let = let;
	return &h->v[n].count;
}

/* False: it could not be noted. */
static bool
note(struct kn_entry *t, const struct kn_told_call *c, const struct kn_told_answer *a,
    bool let)
{
	uint64_t *count;

	if (!t->heard)
		t->heard =
		    calloc(1, sizeof *t->heard + kinds(t->sup) * sizeof t->heard->v[0]);
	if (!t->heard)
		return false;
	t->heard->calls++;
	count = counter(t, c, a, let);
	if (count)
		++*count;
	else
		t->heard->more++;
	return count != NULL;
}

/* ---- of no task ---- */

static void
tell_loose(struct kn_wk *w, const struct kn_told_call *c)
{
	struct kn_told_text x;
	char line[400];
	int n = 0;

	if (++w->listener.loose > LOOSE_SHOWN || kn_told_text(w->sup->told, c, &x) < 0)
		return;
	n = snprintf(line, sizeof line, "outside of a call, refused: %s(", x.name);
	for (unsigned i = 0; i < x.arg_n; i++)
		n += snprintf(line + n, sizeof line - (size_t)n, "%s%lld",
		    i ? ", " : "", (long long)x.args[i]);
	snprintf(line + n, sizeof line - (size_t)n, "): %s", x.by);
	KN_LOG(&w->sup->log, KN_NS_SANDBOX, (int)w->index, "%s", line);
	if (w->sup->module)
		kn_say_note(w, line);
	kn_told_text_fini(&x);
}

/* ---- the listener ---- */

static bool
is_granted(const struct kn_sup *s, const struct kn_told_call *c)
{
	const struct kn_sup_learn *l = s->opt.learn;
	struct kn_told_text x;
	bool granted = false;

	if (l->grant_n == 0 || kn_told_text(s->told, c, &x) < 0)
		return false;
	for (size_t i = 0; x.allow && i < l->grant_n; i++)
		granted |= strcmp(l->grant[i], x.name) == 0;
	kn_told_text_fini(&x);
	return granted;
}

static void
refuse(struct kn_wk *w, uint64_t id, unsigned errno_ret)
{
	struct kn_refused_wk *r = &w->listener;

	if (!r->rest_ns) {
		kn_listener_refuse(r->fd, id, errno_ret);
		return;
	}
	r->held[r->held_n].id = id;
	r->held[r->held_n++].errno_ret = errno_ret;
	if (r->held_n == KN_UNANSWERED_MAX)
		kn_loop_mod(&w->sup->loop, &r->w, 0);
}

/* One call. Returns how many its task has made. */
static uint64_t
serve_one(struct kn_wk *w, const struct kn_listened *l)
{
	struct kn_sup *s = w->sup;
	struct kn_entry *t = whose(w, l->id);
	struct kn_told_answer a;
	bool let;

	kn_told_look(s->told, &l->call, &a);
	let = s->opt.learn && (a.unlisted || is_granted(s, &l->call));
	/* What could not be noted is not let through: nobody would know. */
	if (t && !note(t, &l->call, &a, let))
		let = false;
	if (!t)
		tell_loose(w, &l->call);
	if (let && t)
		kn_listener_let(w->listener.fd, l->id);
	else
		refuse(w, l->id, a.errno_ret);
	return t && t->heard ? t->heard->calls : w->listener.loose;
}

static void
rest(struct kn_wk *w)
{
	struct kn_sup *s = w->sup;

	if (w->listener.rest_ns)
		return;
	s->listener_rests++;
	w->listener.rest_ns =
	    kn_clock_now() + (uint64_t)REST_MS * s->listener_rests * KN_MS_NS;
}

static void
on_listener(struct kn_watch *wt, uint32_t events)
{
	struct kn_wk *w = wt->ctx;
	struct kn_listened l;
	uint64_t calls = 0;
	int r = 0, i;

	for (i = 0; i < BATCH && w->listener.held_n < KN_UNANSWERED_MAX; i++) {
		r = kn_listener_take(w->listener.fd, &l);
		if (r <= 0)
			break;
		calls = serve_one(w, &l);
	}
	/* Nobody with that filter is left; or it cannot be read: then who waits is
	 * answered by the kernel, with ENOSYS. */
	if (r < 0 || (i == 0 && (events & (EPOLLHUP | EPOLLERR))))
		kn_refused_end(w);
	else if (i > 0 && calls > AT_ONCE && !w->sup->opt.learn)
		rest(w);
}

static void
wake(struct kn_wk *w)
{
	struct kn_refused_wk *r = &w->listener;

	if (!r->rest_ns)
		return;
	w->sup->listener_rests--;
	r->rest_ns = 0;
	for (unsigned i = 0; i < r->held_n; i++)
		kn_listener_refuse(r->fd, r->held[i].id, r->held[i].errno_ret);
	r->held_n = 0;
	kn_loop_mod(&w->sup->loop, &r->w, EPOLLIN);
}

void
kn_refused_timer(struct kn_wk *w, uint64_t now_ns)
{
	if (w->listener.rest_ns && w->listener.rest_ns <= now_ns)
		wake(w);
}

const char *
kn_refused_take(struct kn_wk *w, int fd_own)
{
	struct kn_sup *s = w->sup;
	struct kn_err e;
	KN_OWN_FD int fd = fd_own;

	kn_err_clear(&e);
	if (!s->tell || w->listener.fd >= 0 || !kn_listener_is(fd))
		return "listener";
	if (kn_loop_add(&s->loop, &w->listener.w, fd, EPOLLIN, on_listener, w, &e) <
	    0) {
		KN_LOG(&s->log, KN_NS_SANDBOX, (int)w->index, "listener: %s", e.msg);
		return "listener.watch";
	}
	w->listener.fd = kn_fd_take(&fd);
	return NULL;
}

void
kn_refused_end(struct kn_wk *w)
{
	wake(w);
	kn_loop_del(&w->sup->loop, &w->listener.w);
	kn_fd_close(&w->listener.fd);
}

/* ---- with the result ---- */

void
kn_refused_forget(struct kn_entry *e)
{
	free(e->heard);
	e->heard = NULL;
}

static int
put_text(const struct kn_sup *s, const struct kn_told_call *c, struct kn_refused *r)
{
	struct kn_told_text x;

	if (kn_told_text(s->told, c, &x) < 0)
		return -1;
	snprintf(r->name, sizeof r->name, "%s", x.name);
	r->arg_n = x.arg_n;
	memcpy(r->args, x.args, sizeof r->args);
	r->allow = x.allow;
	x.allow = NULL;
	r->by = strdup(x.by);
	kn_told_text_fini(&x);
	return r->by ? 0 : -1;
}

void
kn_refused_fill(struct kn_entry *e, struct kn_outcome *o)
{
	const struct kn_heard *h = e->heard;

	if (!h)
		return;
	o->refused_more = h->more;
	o->refused = calloc(h->n, sizeof *o->refused);
	for (uint32_t i = 0; i < h->n; i++) {
		struct kn_refused *r = o->refused ? &o->refused[o->refused_n] : NULL;

		if (!r || put_text(e->sup, &h->v[i].call, r) < 0) {
			o->refused_more += h->v[i].count;
			continue;
		}
		r->count = h->v[i].count;
		r->errno_ret = h->v[i].errno_ret;
		r->let = h->v[i].let;
		o->refused_n++;
	}
	kn_refused_forget(e);
}

void
kn_refused_name_killers(const struct kn_sup *s, struct kn_outcome *o)
{
	size_t n = strlen(o->error);
	char names[160];

	if (!s->told || !o->signal)
		return;
	kn_told_killers(s->told, names, sizeof names);
	if (names[0])
		snprintf(o->error + n, sizeof o->error - n, ": %s", names);
}
