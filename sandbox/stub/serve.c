/* sandbox/stub/serve.c: the stub's conversation: messages in, answers out, one task at
 * a time in the order they were told.
 *
 * Idle, it waits in recvmsg and nothing wakes it. While a cell runs, sandbox/stub/run.c
 * waits for the cell and for messages at once and calls back here. The end of the
 * socket means that the supervisor is gone: then nothing of ours may go on.
 */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>

#include "ipc/bell.h"
#include "ipc/clock.h"
#include "ipc/payload.h"
#include "sandbox/stub/stub.h"
#include "sandbox/stub/sys.h"

/* How long to wait between looks at a return lane that is full. */
enum {
	LANE_FULL_MS = 1,
	REST_FIRST_NS = 100 * 1000, /* between looks at a cgroup; doubles each time */
	REST_MOST_NS = 2 * 1000 * 1000,
	REST_MS = 600, /* less than claim_ms, by which the next task is due */
};

static void
close_all(int *fds, int n)
{
	for (int i = 0; i < n; i++)
		kn_sys_close_at(&fds[i]);
}

void
kn_serve_abandon(struct kn_stub *s)
{
	/* We are PID 1 of the sandbox: this reaches all of it but us, and our own end
	 * takes whatever would be left. Without namespaces, what a domain has; or else
	 * the cell's init hears that we have ended. */
	if (!s->direct.place || s->direct.scoped)
		(void)kn_sys_kill(-1, SIGKILL);
	kn_sys_exit(0);
}

bool
kn_serve_stopping(struct kn_stub *s)
{
	if (s->stopping || !kn_control_stopping(s->slice.control))
		return s->stopping;
	s->stopping = true;
	kn_control_ack_stop(s->slice.control);
	while (s->waiting_n > 0) {
		struct kn_waiting *w = &s->waiting[s->waiting_at];

		close_all(w->fds, w->fd_n);
		s->waiting_at = (s->waiting_at + 1) % KN_SLOTS;
		s->waiting_n--;
	}
	return true;
}

/* ---- messages ---- */

/* A slot that is used again while we still hold word of it was taken back: let go of
 * that one's descriptors. So there are never more entries than slots. */
static void
drop_stale(struct kn_stub *s, uint32_t slot)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < s->waiting_n; i++) {
		struct kn_waiting *w = &s->waiting[(s->waiting_at + i) % KN_SLOTS];

		if (w->slot == slot)
			close_all(w->fds, w->fd_n);
		else
			s->waiting[(s->waiting_at + kept++) % KN_SLOTS] = *w;
	}
	s->waiting_n = kept;
}

static void
enqueue(struct kn_stub *s, const struct kn_msg *m, int *fds, int fd_n)
{
	struct kn_waiting *w;

	if (s->stopping) {
		close_all(fds, fd_n);
		return;
	}
	if (m->arg >= KN_SLOTS)
		kn_serve_abandon(s);
	drop_stale(s, m->arg);
	w = &s->waiting[(s->waiting_at + s->waiting_n) % KN_SLOTS];
	*w = (struct kn_waiting){
		.slot = m->arg, .task = m->task, .gen = m->gen, .fd_n = fd_n
	};
	memcpy(w->fds, fds, sizeof *fds * (size_t)fd_n);
	s->waiting_n++;
}

static void
take_orders(struct kn_stub *s, const struct kn_msg *m, struct kn_order *out)
{
	if (m->type == KN_MSG_KILL) {
		if (m->arg == KN_CAUSE_NONE || m->arg >= KN_CAUSE_N)
			kn_serve_abandon(s);
		out->kill = (enum kn_cause)m->arg;
	} else {
		if (m->arg == 0 || m->arg > 64)
			kn_serve_abandon(s);
		out->signo = (int)m->arg;
	}
}

void
kn_serve_message(
    struct kn_stub *s, bool wait, uint32_t task, uint32_t gen, struct kn_order *out)
{
	const uint32_t allowed = 1u << KN_MSG_TASK | 1u << KN_MSG_KILL |
				 1u << KN_MSG_SIGNAL | 1u << KN_MSG_WAKE;
	uint8_t buf[sizeof(struct kn_msg) + 64];
	int fds[KN_MSG_FDS_MAX], fd_n = 0;
	struct kn_msg m;
	ssize_t n =
	    kn_fd_recv(s->sock, buf, sizeof buf, fds, KN_MSG_FDS_MAX, &fd_n, !wait);

	if (n < 0 && errno == EAGAIN)
		return;
	if (n <= 0 || !kn_msg_check(buf, (size_t)n, allowed, &m))
		kn_serve_abandon(s);
	if (m.type == KN_MSG_TASK) {
		enqueue(s, &m, fds, fd_n);
		return;
	}
	close_all(fds, fd_n);
	if (m.type != KN_MSG_WAKE && m.task == task && m.gen == gen && gen != 0)
		take_orders(s, &m, out);
}

/* ---- answers ---- */

void
kn_serve_answer(struct kn_stub *s, const struct kn_slot_head *head, const void *bytes)
{
	struct timespec t = { 0, LANE_FULL_MS * 1000000 };
	struct pollfd p = { .fd = s->sock, .events = 0 };

	/* The lane holds as many answers as tasks can be with us, so it is full only
	 * while the supervisor is behind; if it is gone, the socket says so. */
	while (!kn_return_publish(&s->tx, &s->slice, head, bytes)) {
		if (kn_sys_ppoll(&p, 1, &t) > 0 && (p.revents & (POLLHUP | POLLERR)))
			kn_serve_abandon(s);
	}
	(void)kn_bell_ring(s->slice.control, s->bell);
}

static void
answer_ping(struct kn_stub *s, const struct kn_slot_head *head, const void *bytes)
{
	struct kn_slot_head h = *head;

	if (h.area != KN_AREA_INLINE || h.payload_len > KN_INLINE_MAX)
		kn_serve_abandon(s);
	kn_serve_answer(s, &h, bytes);
}

/* ---- one task after the other ---- */

static void
take_next(struct kn_stub *s)
{
	struct kn_waiting w = s->waiting[s->waiting_at];
	uint8_t bytes[KN_INLINE_MAX];
	struct kn_slot_head head;

	s->waiting_at = (s->waiting_at + 1) % KN_SLOTS;
	s->waiting_n--;
	if (!kn_submit_claim_task(
		&s->slice, (int)w.slot, w.task, w.gen, &head, bytes)) {
		close_all(w.fds, w.fd_n); /* taken back */
		return;
	}
	if (head.kind == KN_REQ_EXEC) {
		kn_run(s, &head, bytes, w.fds, w.fd_n);
		return;
	}
	close_all(w.fds, w.fd_n);
	if (head.kind != KN_REQ_PING)
		kn_serve_abandon(s);
	answer_ping(s, &head, bytes);
}

void
kn_serve_rest(struct kn_stub *s, bool gave_files)
{
	uint64_t until = kn_clock_after_ms(kn_clock_now(), REST_MS);
	struct pollfd p = { .fd = s->sock, .events = POLLIN };
	struct kn_order none = { KN_CAUSE_NONE, 0 };
	long ns = REST_FIRST_NS;

	while (!kn_cg_at_rest(&s->cg) && !kn_serve_stopping(s)) {
		struct timespec t = { 0, ns };
		uint64_t now = kn_clock_now();

		/* It cannot have read them, and its claim_ms has not begun. */
		if (gave_files && !kn_return_is_taken(&s->tx, &s->slice))
			until = kn_clock_after_ms(now, REST_MS);
		/* A new worker has a new cgroup. What waits here goes to that one. */
		if (now >= until && gave_files)
			kn_serve_abandon(s);
		if (now >= until)
			return;
		if (kn_sys_ppoll(&p, 1, &t) > 0)
			kn_serve_message(s, false, 0, 0, &none);
		ns = 2 * ns < REST_MOST_NS ? 2 * ns : REST_MOST_NS;
	}
}

void
kn_serve(struct kn_stub *s)
{
	struct kn_order none = { KN_CAUSE_NONE, 0 };

	while (!kn_serve_stopping(s)) {
		if (s->waiting_n > 0)
			take_next(s);
		else
			kn_serve_message(s, true, 0, 0, &none);
	}
}
