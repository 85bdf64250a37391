/* supervisor/sock.c: one worker's private socket, pidfd, bell and stderr -> events.
 *
 * What the stub may say, and when, stands in ipc/control.h; anything else is a
 * violation. A worker is gone when its launcher is reaped and the last holder of the
 * socket's other end has closed it: the launcher alone may die before what it started,
 * which could still write into the slice.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ipc/clock.h"
#include "ipc/fd.h"
#include "supervisor/inner.h"

enum { MESSAGES_PER_EVENT = 64, STDERR_MAX = 64 * 1024 };

/* The stub's word that it is up. */
static bool
booted(const struct kn_wk *w)
{
	return w->sup->module ? w->res.ready : w->ready;
}

static void
on_boot_fail(struct kn_wk *w, const struct kn_msg *m, const uint8_t *body)
{
	char text[160] = "";

	if (booted(w) || w->boot_failed) {
		kn_view_violation(w, "socket.boot_fail");
		return;
	}
	w->boot_failed = true;
	kn_err_printable(text, sizeof text, (const char *)body,
	    m->bytes > 120 ? 120 : (int)m->bytes);
	kn_err_set(&w->boot_err, KN_EK_LAUNCH, "%s%s%s: %s",
	    kn_boot_step_name((enum kn_boot_step)m->arg), text[0] ? ": " : "", text,
	    m->sys ? strerror((int)m->sys) : "failed");
	w->boot_err.sys = (int)m->sys;
	if (m->arg == KN_BSTEP_WHO)
		kn_err_hint(&w->boot_err, "a call was answered that did nothing: "
					  "--launcher bwrap asks fewer");
	if (m->arg == KN_BSTEP_NEST)
		kn_err_hint(&w->boot_err,
		    "knit-sandbox doctor says what keeps user namespaces from being "
		    "made");
	if (m->arg == KN_BSTEP_RUN)
		kn_err_hint(&w->boot_err,
		    m->sys == ETXTBSY
			? "a task could write to it: show it read-only, by "
			  "/filesystem/read"
			: "a path inside, or a name along PATH of /environment/set");
}

static void
on_files(struct kn_wk *w, const struct kn_msg *m, const uint8_t *body, int *fds, int n,
    bool cut)
{
	const char *bad = NULL;
	struct kn_entry *e;

	kn_view_look_claims(w);
	e = kn_view_entry(w, m->task, m->gen);
	if (!e || !e->claimed)
		bad = "files.task";
	else if (kn_files_take(e, body, m->bytes, fds, n, cut, &bad) == 0)
		bad = NULL;
	if (bad)
		kn_view_violation(w, bad);
}

static void
on_pty(struct kn_wk *w, const struct kn_msg *m, int *fds, int n)
{
	struct kn_entry *e;

	kn_view_look_claims(w);
	e = kn_view_entry(w, m->task, m->gen);
	if (!e || !e->claimed || !e->task->pty || n != 1 || m->bytes)
		kn_view_violation(w, "pty.task");
	else if (kn_relay_master(e, kn_fd_take(&fds[0])) < 0)
		kn_view_violation(w, "pty.descriptor");
}

/* Before it is ready, and so before any task: the stub keeps no copy of it. */
static void
on_egress(struct kn_wk *w, const struct kn_msg *m, int *fds, int n)
{
	const char *bad = NULL;

	if (!w->sup->egress || n != 1 || m->bytes)
		bad = "egress";
	else
		(void)kn_egress_listener(w, kn_fd_take(&fds[0]), &bad);
	if (bad)
		kn_view_violation(w, bad);
}

static void
on_listener(struct kn_wk *w, const struct kn_msg *m, int *fds, int n)
{
	const char *bad =
	    n == 1 && !m->bytes ? kn_refused_take(w, kn_fd_take(&fds[0])) : "listener";

	if (bad)
		kn_view_violation(w, bad);
}

static void
on_message(struct kn_wk *w, size_t got, int *fds, int fd_n, bool cut)
{
	uint32_t allowed = booted(w) ? 1u << KN_MSG_PTY | 1u << KN_MSG_FILES
				     : 1u << KN_MSG_BOOT_FAIL | 1u << KN_MSG_EGRESS |
					   1u << KN_MSG_LISTENER;
	const uint8_t *body;
	struct kn_msg m;

	body = kn_msg_check(w->sup->msg, got, allowed, &m);
	if (!body)
		kn_view_violation(w, "socket.type");
	else if (m.type == KN_MSG_BOOT_FAIL)
		on_boot_fail(w, &m, body);
	else if (m.type == KN_MSG_EGRESS)
		on_egress(w, &m, fds, fd_n);
	else if (m.type == KN_MSG_LISTENER)
		on_listener(w, &m, fds, fd_n);
	else if (m.type == KN_MSG_FILES)
		on_files(w, &m, body, fds, fd_n, cut);
	else
		on_pty(w, &m, fds, fd_n);
	for (int i = 0; i < fd_n; i++)
		kn_fd_close(&fds[i]);
}

void
kn_view_socket(struct kn_wk *w)
{
	struct kn_sup *s = w->sup;

	for (int i = 0; i < MESSAGES_PER_EVENT && w->lw.sock >= 0 && !w->sock_eof;
	     i++) {
		int fds[KN_MSG_FDS_MAX], fd_n = 0, cut = 0;
		ssize_t n = kn_fd_recv_some(w->lw.sock, s->msg, sizeof s->msg, fds,
		    KN_MSG_FDS_MAX, &fd_n, &cut);

		if (n > 0 && (w->bad || w->unborn)) {
			for (int k = 0; k < fd_n; k++)
				kn_fd_close(&fds[k]);
			continue;
		}
		if (n > 0) {
			on_message(w, (size_t)n, fds, fd_n, cut);
			continue;
		}
		if (n < 0 && errno == EAGAIN)
			return;
		/* A reset is told once, before what the stub had said until then: a
		 * stub that gives up with words of ours unread has said why. */
		if (n < 0 &&
		    (errno == EINTR || errno == ENOMEM || errno == ENOBUFS ||
			errno == ECONNRESET) &&
		    i < MESSAGES_PER_EVENT - 1)
			continue;
		if (n < 0 && errno == EMSGSIZE) {
			kn_view_violation(w, "socket.descriptors");
			continue;
		}
		/* an empty datagram and the end of the socket look alike */
		if (n == 0 && !kn_fd_hung_up(w->lw.sock)) {
			kn_view_violation(w, "socket.empty");
			continue;
		}
		if (n < 0 && errno != ECONNRESET) {
			w->unread = true;
			kn_launch_kill(s->launcher, w->index, &w->lw);
		}
		w->sock_eof = true;
		if (!w->reaped)
			w->gone_by_ns = kn_clock_after_ms(
			    kn_clock_now(), kn_launcher_end_ms(s->launcher));
		kn_loop_del(&s->loop, &w->w_sock);
	}
}

static void
on_sock(struct kn_watch *wt, uint32_t events)
{
	(void)events;
	kn_view_socket(wt->ctx);
}

static void
on_bell(struct kn_watch *wt, uint32_t events)
{
	struct kn_wk *w = wt->ctx;

	(void)events; /* edge-triggered: the counter need not be read */
	w->rang = true;
}

static void
on_pid(struct kn_watch *wt, uint32_t events)
{
	struct kn_wk *w = wt->ctx;

	(void)events;
	kn_loop_del(&w->sup->loop, &w->w_pid);
	w->exited = true;
}

static void
read_err(struct kn_wk *w)
{
	char buf[1024];
	ssize_t n;

	if (w->lw.err_fd < 0 || !w->w_err.fn)
		return;
	for (int i = 0; i < 4; i++) {
		size_t room = sizeof w->err_text - 1 - w->err_n;

		n = read(w->lw.err_fd, buf, sizeof buf);
		if (n <= 0)
			break;
		KN_LOG(&w->sup->log, KN_NS_SANDBOX, (int)w->index, "stderr: %.*s",
		    (int)(n > 400 ? 400 : n), buf);
		if (room > (size_t)n)
			room = (size_t)n;
		w->err_total += (size_t)n;
		memcpy(w->err_text + w->err_n, buf, room);
		w->err_n += room;
		w->err_text[w->err_n] = '\0';
	}
	/* who talks without end waits for ever, and not we for it */
	if (n == 0 || w->err_total > STDERR_MAX)
		kn_loop_del(&w->sup->loop, &w->w_err);
}

static void
on_err(struct kn_watch *wt, uint32_t events)
{
	(void)events;
	read_err(wt->ctx);
}

int
kn_view_open(struct kn_wk *w, struct kn_err *e)
{
	struct kn_loop *l = &w->sup->loop;

	if (kn_loop_add(l, &w->w_sock, w->lw.sock, EPOLLIN, on_sock, w, e) < 0 ||
	    kn_loop_add(l, &w->w_pid, w->lw.proc.pidfd, EPOLLIN, on_pid, w, e) < 0 ||
	    kn_loop_add(l, &w->w_err, w->lw.err_fd, EPOLLIN, on_err, w, e) < 0 ||
	    kn_loop_add(
		l, &w->w_bell, w->lw.bell_fd, EPOLLIN | EPOLLET, on_bell, w, e) < 0)
		return kn_err_wrap(e, "worker %u", w->index);
	return 0;
}

void
kn_view_close(struct kn_wk *w)
{
	struct kn_loop *l = &w->sup->loop;

	kn_loop_del(l, &w->w_sock);
	kn_loop_del(l, &w->w_pid);
	kn_loop_del(l, &w->w_err);
	kn_loop_del(l, &w->w_bell);
}

/* ---- the end of a worker ---- */

static void
status_text(int st, char buf[40])
{
	if (WIFSIGNALED(st))
		snprintf(buf, 40, "signal %d", WTERMSIG(st));
	else
		snprintf(buf, 40, "status %d", WEXITSTATUS(st));
}

/* It ended before it was ready: say why, for the user and for the tasks. */
static void
explain(struct kn_wk *w)
{
	struct kn_err e;

	kn_err_clear(&e);
	if (w->boot_failed)
		e = w->boot_err;
	else if (w->late)
		kn_err_set(&e, KN_EK_LAUNCH, "not ready within %u ms",
		    w->sup->policy->timeouts.start_ms);
	else if (!w->sup->module || !kn_resident_explain(w, &e))
		kn_launch_explain(w->sup->launcher, w->err_text, w->wait_status, &e);
	if (e.kind == KN_EK_NONE)
		kn_err_set(&e, KN_EK_LAUNCH, "ended before it was ready");
	kn_err_wrap(&e, "worker %u", w->index);
	KN_LOG(
	    &w->sup->log, KN_NS_LIFECYCLE, (int)w->index, "launch failed: %s", e.msg);
	kn_turn_fail(w->sup, &e);
}

/* A relayed task that has taken input cannot be run again: the input is gone. */
static void
claim_used_input(struct kn_wk *w)
{
	struct kn_sup *s = w->sup;

	for (uint32_t i = 0; i < s->task_max; i++) {
		struct kn_entry *e = &s->entry[i];
		struct kn_event ev = { .type = KN_EV_CLAIMED,
			.now_ns = kn_clock_now(),
			.worker = w->index,
			.incarnation = w->incarnation,
			.task = i,
			.gen = e->gen };

		if (kn_view_entry(w, i, e->gen) && !e->claimed && e->input_used) {
			e->claimed = true;
			kn_turn_feed(s, &ev);
		}
	}
}

static void
lose_tasks(struct kn_wk *w)
{
	struct kn_sup *s = w->sup;

	for (uint32_t i = 0; w->outstanding && i < s->task_max; i++) {
		if (kn_view_entry(w, i, s->entry[i].gen))
			kn_publish_forget(&s->entry[i]);
	}
}

/* What it was given and what it left: all is read that will be, and the next one that
 * has the slice may be long in coming. The one of a single command does not come. */
static void
empty_areas(struct kn_wk *w)
{
	struct kn_sup *s = w->sup;
	uint32_t slice = s->module ? kn_resident_slice(s, w->index) : w->index;

	if (!s->opt.single)
		(void)kn_arena_empty_areas(&s->arena, slice, NULL);
}

void
kn_view_finish(struct kn_wk *w, bool keep)
{
	struct kn_sup *s = w->sup;
	struct kn_event ev = {
		.type = KN_EV_GONE, .worker = w->index, .incarnation = w->incarnation
	};
	char how[40];

	read_err(w);
	kn_view_socket(w);
	while (kn_view_look(w))
		;
	if (s->module) {
		kn_view_look_claims(w);
		kn_view_tell_claims(w);
		if (!s->share || w->joined) /* once, however often it tries to go */
			kn_resident_answer(w);
	}
	claim_used_input(w);
	kn_view_tell_bad(w);
	if (s->share && !kn_share_leave(w))
		return; /* once more, soon */
	status_text(w->wait_status, how);
	KN_LOG(&s->log, KN_NS_LIFECYCLE, (int)w->index, "gone %s ready=%d tasks=%llu",
	    how, w->ready, (unsigned long long)w->results);
	if (!w->ready && s->stop_level < 2 && !s->ended)
		explain(w);
	lose_tasks(w);
	empty_areas(w);
	w->live = false;
	if (keep)
		kn_resident_close(w);
	else
		kn_act_release(w);
	ev.now_ns = kn_clock_now();
	kn_turn_feed(s, &ev);
}

void
kn_view_tell_bad(struct kn_wk *w)
{
	struct kn_event ev = { .type = KN_EV_VIOLATION,
		.worker = w->index,
		.incarnation = w->incarnation };

	if (!w->bad || w->bad_fed)
		return;
	kn_view_tell_claims(w);
	w->bad_fed = true;
	ev.now_ns = kn_clock_now();
	kn_turn_feed(w->sup, &ev);
}

/* It ends with its socket, or there is nobody to whom it would answer. */
static void
kill_deaf(struct kn_wk *w, uint64_t now_ns)
{
	if (w->exited || !w->sock_eof || !w->gone_by_ns || now_ns < w->gone_by_ns)
		return;
	KN_LOG(&w->sup->log, KN_NS_LIFECYCLE, (int)w->index, "kill why=deaf");
	kn_launch_kill(w->sup->launcher, w->index, &w->lw);
	w->gone_by_ns = 0;
}

bool
kn_view_launcher_gone(struct kn_wk *w, uint64_t now_ns)
{
	kill_deaf(w, now_ns);
	if (!w->exited)
		return false;
	if (!w->reaped) {
		/* What the launcher leaves behind must not outlive it; before the reap,
		 * while its number still names its group. */
		kn_launch_kill(w->sup->launcher, w->index, &w->lw);
		if (kn_proc_reap(&w->lw.proc, &w->wait_status) == 0)
			return false;
		w->reaped = true;
		w->gone_by_ns = now_ns + KN_GONE_MS * KN_MS_NS;
	}
	kn_view_socket(w);
	if (!w->sock_eof && now_ns < w->gone_by_ns)
		return false;
	if (!w->sock_eof) {
		kn_loop_del(&w->sup->loop, &w->w_sock);
		w->held_sock = kn_fd_take(&w->lw.sock);
	}
	return true;
}

void
kn_view_gone(struct kn_wk *w, uint64_t now_ns)
{
	if (w->sup->module)
		kn_resident_gone(w, now_ns);
	else if (w->live && kn_view_launcher_gone(w, now_ns))
		kn_view_finish(w, false);
}
