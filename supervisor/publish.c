/* supervisor/publish.c: putting a task into a worker's lane, and out again.
 *
 * Order of a publication: pipes, payload, slot (P1), then the message that carries the
 * descriptors and wakes the worker. If the message cannot be sent the slot is taken
 * back at once: a task is either all there or not at all.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/random.h>
#include <unistd.h>

#include "ipc/clock.h"
#include "ipc/fd.h"
#include "ipc/job.h"
#include "supervisor/inner.h"

static const char *const *
strings(char **v)
{
	return (const char *const *)v;
}

static void
limits_of(const struct kn_task *t, struct kn_job_limits *l)
{
	l->memory = t->limits.memory;
	l->cpu_ms = t->limits.cpu_ms;
	l->pids = t->limits.pids;
	l->nofile = t->limits.nofile;
	l->fsize = t->limits.fsize;
	l->stack = t->limits.stack;
	l->core = t->limits.core;
	l->task_ms = t->timeouts.task_ms;
	l->hard_ms = t->timeouts.hard_ms;
	l->grace_ms = t->timeouts.grace_ms;
}

static int
job_files(struct kn_entry *e, struct kn_job *j, int *fds, int *out_fd_n)
{
	struct kn_sup *s = e->sup;
	const struct kn_task *t = e->task;
	int fd_n = 0;

	if (t->file_n > s->job_file_room) {
		struct kn_job_file *v = realloc(s->job_files, t->file_n * sizeof *v);

		if (!v)
			return -1;
		s->job_files = v;
		s->job_file_room = t->file_n;
	}
	for (size_t i = 0; i < t->file_n; i++) {
		const struct kn_task_file *f = &t->files[i];
		struct kn_job_file *g = &s->job_files[i];

		*g = (struct kn_job_file){ .path = f->path,
			.mode = f->mode & 0777,
			.bytes = f->bytes,
			.byte_n = f->byte_n,
			.fd_index = -1 };
		if (f->fd < 0)
			continue;
		if (fd_n == KN_TASK_FDS_MAX)
			return -1;
		g->bytes = NULL;
		g->byte_n = 0;
		g->fd_index = fd_n;
		fds[fd_n++] = f->fd;
	}
	j->files = s->job_files;
	j->file_n = (uint32_t)t->file_n;
	*out_fd_n = fd_n;
	return 0;
}

int
kn_publish_job(struct kn_entry *e, struct kn_job *out, int *fds, int *out_fd_n)
{
	const struct kn_task *t = e->task;
	struct winsize ws;

	memset(out, 0, sizeof *out);
	out->argv = strings(t->argv);
	out->argv_n = (uint32_t)t->argv_n;
	out->env = strings(t->env);
	out->env_n = (uint32_t)t->env_n;
	out->cwd = t->cwd ? t->cwd : "/task";
	out->keep = strings(t->keep);
	out->keep_n = (uint32_t)t->keep_n;
	out->collect = strings(t->collect);
	out->collect_n = (uint32_t)t->collect_n;
	limits_of(t, &out->limits);
	if (t->pty) {
		out->flags |= KN_JOB_PTY;
		if (ioctl(STDIN_FILENO, TIOCGWINSZ, &ws) == 0) {
			out->rows = ws.ws_row;
			out->cols = ws.ws_col;
		}
	}
	return job_files(e, out, fds, out_fd_n);
}

/* Encode into the slot's inline room or a payload area. Returns the payload area, or
 * KN_AREA_INLINE with the bytes in buf; false: no room in the worker's area now. */
static bool
put_payload(struct kn_wk *w, const struct kn_entry *e, const struct kn_job *j,
    struct kn_slot_head *head, uint8_t buf[KN_INLINE_MAX])
{
	uint64_t off;
	int area;

	head->payload_len = (uint32_t)e->job_bytes;
	head->area = KN_AREA_INLINE;
	if (e->job_bytes <= KN_INLINE_MAX)
		return kn_job_encode(j, buf, KN_INLINE_MAX) == e->job_bytes;
	area = kn_payload_alloc(
	    &w->pay, &w->slice.control->submit_freed, e->job_bytes, &off);
	if (area < 0) {
		/* an honest worker frees an area when it claims the slot */
		if (w->outstanding == 0)
			kn_view_violation(w, "submit_freed");
		return false;
	}
	/* only written, never read back: the worker may scribble on it meanwhile */
	if (kn_arena_back_submit(&w->sup->arena, w->index, off, e->job_bytes, NULL) <
		0 ||
	    kn_job_encode(j, w->slice.submit_area + off, e->job_bytes) !=
		e->job_bytes) {
		kn_payload_undo(&w->pay, area);
		return false;
	}
	head->area = (uint32_t)area;
	head->payload_off = (uint32_t)off;
	return true;
}

static bool
send_task(struct kn_wk *w, struct kn_entry *e, const int child[3], const int *file_fds,
    int file_fd_n)
{
	int fds[KN_MSG_FDS_MAX], n = 0;

	if (!e->task->pty) {
		for (int i = 0; i < 3; i++)
			fds[n++] = child[i];
	}
	for (int i = 0; i < file_fd_n; i++)
		fds[n++] = file_fds[i];
	if (kn_act_message(w, KN_MSG_TASK, e, (uint32_t)e->slot, fds, n) == 0)
		return true;
	if (!kn_submit_take_back(&w->tx, &w->slice, e->slot))
		/* nobody told it of the task, and yet it took it */
		kn_view_violation(w, "submit_claimed");
	return false;
}

static bool
publish(struct kn_wk *w, struct kn_entry *e, const int child[3])
{
	struct kn_slot_head head = { .kind = KN_REQ_EXEC };
	uint8_t buf[KN_INLINE_MAX];
	int fds[KN_TASK_FDS_MAX], fd_n = 0;
	struct kn_job job;

	if (kn_publish_job(e, &job, fds, &fd_n) < 0 ||
	    !put_payload(w, e, &job, &head, buf))
		return false;
	head.task = e->index;
	head.gen = e->gen;
	head.fd_n = (uint32_t)fd_n + (e->task->pty ? 0 : 3);
	e->published_ns = kn_clock_now();
	if (e->task->timeouts.hard_ms)
		head.deadline_ns =
		    kn_clock_after_ms(e->published_ns, e->task->timeouts.hard_ms);
	e->area = head.area == KN_AREA_INLINE ? -1 : (int)head.area;
	kn_submit_publish(&w->tx, &w->slice, e->slot, &head, buf);
	if (send_task(w, e, child, fds, fd_n))
		return true;
	if (e->area >= 0)
		kn_payload_undo(&w->pay, e->area);
	return false;
}

bool
kn_publish(struct kn_wk *w, struct kn_entry *e)
{
	int child[3], slot;
	bool ok = false;

	kn_view_look_claims(w); /* claimed slots are free ones */
	slot = kn_submit_free(&w->tx, &w->slice);
	if (slot < 0)
		return false;
	if (kn_stream_open(e, child) < 0) {
		KN_LOG(&e->sup->log, KN_NS_LIFECYCLE, (int)w->index,
		    "no pipes for task %s: %s", e->task->id, strerror(errno));
		return false;
	}
	e->slot = slot;
	ok = publish(w, e, child);
	for (int i = 0; i < 3; i++)
		kn_fd_close(&child[i]);
	if (!ok) {
		kn_stream_close(e);
		return false;
	}
	w->slot_task[slot] = e->index;
	w->slot_gen[slot] = e->gen;
	w->outstanding++;
	e->state = KN_ENTRY_PLACED;
	e->worker = (int)w->index;
	e->incarnation = w->incarnation;
	kn_egress_task(w, e);
	kn_stream_start(e);
	return true;
}

int
kn_publish_ping(struct kn_wk *w, struct kn_err *e)
{
	struct kn_slot_head head = { .kind = KN_REQ_PING,
		.flags = w->sup->module && w->sup->log.mask & 1u << KN_NS_IMPORTS
			     ? KN_PING_TELL
			     : 0,
		.task = KN_NO_ENTRY,
		.gen = w->incarnation,
		.area = KN_AREA_INLINE,
		.payload_len = sizeof w->ping_nonce };
	struct kn_msg msg = {
		.type = KN_MSG_TASK, .task = KN_NO_ENTRY, .gen = w->incarnation
	};

	if (getrandom(&w->ping_nonce, sizeof w->ping_nonce, 0) !=
	    (ssize_t)sizeof w->ping_nonce)
		return kn_err_sys(e, KN_EK_HOST, "random bytes for the ping");
	w->ping_slot = kn_submit_free(&w->tx, &w->slice);
	if (w->ping_slot < 0)
		return kn_err_set(e, KN_EK_PROTOCOL, "a fresh lane has no free slot");
	w->slot_task[w->ping_slot] = KN_NO_ENTRY;
	w->slot_gen[w->ping_slot] = w->incarnation;
	kn_submit_publish(&w->tx, &w->slice, w->ping_slot, &head, &w->ping_nonce);
	if (w->sup->module)
		return 0; /* its process looks by itself when it begins */
	msg.arg = (uint32_t)w->ping_slot;
	if (kn_fd_send(w->lw.sock, &msg, sizeof msg, NULL, 0, 1) < 0)
		return kn_err_sys(e, KN_EK_LAUNCH, "send the first ping");
	return 0;
}

void
kn_publish_forget(struct kn_entry *e)
{
	struct kn_wk *w;

	if (e->state != KN_ENTRY_PLACED || e->worker < 0)
		return;
	w = &e->sup->wk[e->worker];
	if (w->incarnation == e->incarnation && w->outstanding > 0)
		w->outstanding--;
	if (w->incarnation == e->incarnation && w->sup->module)
		kn_call_forget(w, e);
	if (w->incarnation == e->incarnation)
		kn_egress_task_end(w, e);
	e->state = KN_ENTRY_KNOWN;
}
