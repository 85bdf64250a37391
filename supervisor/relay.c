/* supervisor/relay.c: a single command's streams, handed on as they come.
 *
 * caller's stdin -> task, task -> caller's stdout and stderr, each through one buffer:
 * a side is watched only while it is the one waited for, so a slow reader slows the
 * task and nothing is read ahead by more than a buffer. With a terminal the task has a
 * pty and all three meet in its master.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ipc/clock.h"
#include "ipc/fd.h"
#include "supervisor/caller.h"
#include "supervisor/hasty.h"
#include "supervisor/inner.h"

enum { BUF = 64 * 1024, ROUNDS = 8 /* buffers moved per event */ };

struct chan {
	size_t at, n;
	bool ended; /* its source is at the end */
	char buf[BUF];
};

struct kn_relay {
	struct kn_sup *s;
	struct kn_entry *e; /* NULL: nothing is relayed */
	struct kn_caller from, to[2];
	struct kn_watch w_from, w_to[2];
	struct kn_term term;
	struct kn_hasty hasty; /* for the pty */
	bool finishing;
	bool unread,
	    ctrl_d;	 /* of this attempt: the task reads no more; the end is told */
	bool has_master; /* it came, for this attempt; perhaps closed again */
	struct chan in, out[2];
};

static void pump_in(struct kn_relay *r);
static void pump_out(struct kn_relay *r, int i);
static void end_input(struct kn_relay *r);
static void settle(struct kn_relay *r);

static bool
flushed(const struct kn_relay *r)
{
	return r->out[0].ended && r->out[1].ended && !r->out[0].n && !r->out[1].n;
}

/* ---- events ---- */

static void
after(struct kn_relay *r)
{
	struct kn_entry *e = r->e;

	if (!e)
		return;
	if (!r->finishing || !flushed(r)) {
		settle(r);
		return;
	}
	kn_relay_detach(e);
	kn_outcome_answer(e);
}

static void
on_input(struct kn_watch *w, uint32_t events)
{
	struct kn_relay *r = w->ctx;

	if (w == &r->e->io.in && (events & (EPOLLERR | EPOLLHUP))) {
		r->unread = true; /* do not take it from the caller */
		end_input(r);
	}
	pump_in(r);
	after(r);
}

static void
on_output(struct kn_watch *w, uint32_t events)
{
	struct kn_relay *r = w->ctx;

	if (r->e->task->pty && (events & EPOLLOUT))
		pump_in(r);
	pump_out(r, 0);
	pump_out(r, 1);
	after(r);
}

/* Watch fd for events, or not at all: a hang-up is reported even when not asked for. */
static void
want(struct kn_relay *r, struct kn_watch *w, int fd, uint32_t events, kn_watch_fn fn)
{
	if (w->fd >= 0 && w->fn && (events == 0 || w->fd != fd))
		kn_loop_del(&r->s->loop, w);
	if (events == 0 || fd < 0)
		return;
	if (w->fd >= 0 && w->fn)
		kn_loop_mod(&r->s->loop, w, events);
	else
		(void)kn_loop_add(&r->s->loop, w, fd, events, fn, r, NULL);
}

static bool
takes_input(const struct kn_relay *r)
{
	const struct kn_io *io = &r->e->io;

	return (r->e->task->pty ? io->out_fd : io->in_fd) >= 0;
}

static void
settle(struct kn_relay *r)
{
	struct kn_entry *e = r->e;
	uint32_t out;

	if (!e)
		return;
	out = e->io.out_fd >= 0 && r->out[0].n == 0 ? EPOLLIN : 0;
	if (e->task->pty)
		out |= r->in.n ? EPOLLOUT : 0;
	else /* the end of its readers is an error event */
		want(
		    r, &e->io.in, e->io.in_fd, r->in.n ? EPOLLOUT : EPOLLERR, on_input);
	want(r, &e->io.out, e->io.out_fd, out, on_output);
	want(r, &e->io.err, e->io.err_fd, r->out[1].n == 0 ? EPOLLIN : 0, on_output);
	want(r, &r->w_from, r->from.fd,
	    takes_input(r) && r->in.n == 0 && !r->in.ended && !r->unread ? EPOLLIN : 0,
	    on_input);
	for (int i = 0; i < 2; i++)
		want(
		    r, &r->w_to[i], r->to[i].fd, r->out[i].n ? EPOLLOUT : 0, on_output);
}

/* ---- caller -> task ---- */

static void
end_input(struct kn_relay *r)
{
	struct kn_entry *e = r->e;

	r->in.n = 0;
	kn_loop_del(&r->s->loop, &e->io.in);
	kn_fd_close(&e->io.in_fd);
}

/* A stdin that nobody could read anything from (write-only, as nohup gives, or a
 * directory) is an empty one, and so is a terminal that is not ours; anything else that
 * fails would cut the input short. */
static bool
no_input(const struct kn_relay *r, int sys)
{
	return sys == EBADF || sys == EISDIR || (sys == EIO && isatty(r->from.fd));
}

/* The caller has no more. A terminal has no other way to say that than a character. */
static bool
say_end(struct kn_relay *r)
{
	if (!r->e->task->pty || r->ctrl_d)
		return false;
	r->ctrl_d = true;
	r->in.at = 0;
	r->in.buf[0] = 4;
	r->in.n = 1;
	return true;
}

/* True if there is something in the buffer. */
static bool
fill_in(struct kn_relay *r)
{
	ssize_t n;

	if (r->in.n)
		return true;
	if (r->unread)
		return false;
	if (r->in.ended)
		return say_end(r);
	n = kn_caller_read(&r->from, r->in.buf, BUF);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return false;
	if (n > 0) {
		r->e->input_used = true;
		r->in.at = 0;
		r->in.n = (size_t)n;
		return true;
	}
	r->in.ended = true;
	if (n < 0 && !no_input(r, errno))
		kn_stream_broken(r->e, "stdin", errno);
	return say_end(r);
}

static ssize_t
write_task(struct kn_relay *r, const struct kn_io *io, const char *p, size_t n)
{
	return r->e->task->pty ? kn_hasty_write(&r->hasty, io->out_fd, p, n)
			       : write(io->in_fd, p, n);
}

static void
pump_in(struct kn_relay *r)
{
	for (int i = 0; r->e && i < ROUNDS && takes_input(r) && !r->finishing; i++) {
		struct kn_io *io = &r->e->io;
		ssize_t n;

		if (!fill_in(r)) {
			if ((r->in.ended || r->unread) && !r->e->task->pty)
				end_input(r);
			return;
		}
		n = write_task(r, io, r->in.buf + r->in.at, r->in.n);
		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return;
		if (n < 0 && errno != EPIPE && !r->e->task->pty)
			kn_stream_broken(r->e, "stdin", errno);
		if (n < 0) { /* the task does not read any more */
			r->unread = true;
			end_input(r);
			return;
		}
		r->in.at += (size_t)n;
		r->in.n -= (size_t)n;
	}
}

/* ---- task -> caller ---- */

static void
end_output(struct kn_relay *r, int i)
{
	struct kn_io *io = &r->e->io;

	r->out[i].ended = true;
	kn_loop_del(&r->s->loop, i ? &io->err : &io->out);
	kn_fd_close(i ? &io->err_fd : &io->out_fd);
}

/* The caller takes no more. The task learns it as it would without us: by SIGPIPE at
 * its next write. What else follows is the submitter's to say. */
static void
lost_output(struct kn_relay *r, int i, int sys)
{
	struct kn_sup *s = r->s;

	r->out[i].n = 0;
	end_output(r, i);
	if (i == 1)
		return;
	KN_LOG(
	    &s->log, KN_NS_SIGNALS, KN_LOG_POOL, "standard output: %s", strerror(sys));
	if (s->cb.lost)
		s->cb.lost(s->cb.ctx, r->e->task, sys);
}

/* A pipe's end is ours alone, and does not block. A terminal's master is the worker's
 * too, who could have it block again. */
static ssize_t
read_task(struct kn_relay *r, int fd, char buf[BUF])
{
	return r->e->task->pty ? kn_hasty_read(&r->hasty, fd, buf, BUF)
			       : read(fd, buf, BUF);
}

/* True if there is something to write. */
static bool
fill_out(struct kn_relay *r, int i)
{
	struct kn_io *io = &r->e->io;
	struct kn_task_limits *l = &r->e->task->limits;
	uint64_t cap = i ? l->stderr_bytes : l->stdout_bytes, left;
	struct chan *c = &r->out[i];
	ssize_t n;

	if (c->n)
		return true;
	if (c->ended)
		return false;
	n = read_task(r, i ? io->err_fd : io->out_fd, c->buf);
	if (n < 0 && errno == EINTR)
		return false;
	if (n < 0 && errno == EAGAIN) {
		if (r->finishing) /* the cell is dead: nothing more can come */
			end_output(r, i);
		return false;
	}
	if (n < 0 && !(errno == EIO && r->e->task->pty))
		kn_stream_broken(r->e, i ? "stderr" : "stdout", errno);
	if (n <= 0) { /* EIO: nobody holds the terminal any more */
		end_output(r, i);
		return false;
	}
	left = io->relayed[i] < cap ? cap - io->relayed[i] : 0;
	io->relayed[i] += (uint64_t)n;
	c->at = 0;
	c->n = (uint64_t)n < left ? (size_t)n : (size_t)left;
	if (c->n < (size_t)n)
		kn_stream_over(r->e, i ? "stderr" : "stdout");
	return c->n > 0;
}

static void
pump_out(struct kn_relay *r, int i)
{
	struct chan *c = &r->out[i];

	if (i == 1 && r->e && r->e->task->pty)
		return;
	for (int k = 0; r->e && k < ROUNDS && fill_out(r, i); k++) {
		ssize_t n = kn_caller_write(&r->to[i], c->buf + c->at, c->n);

		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return;
		if (n < 0) {
			lost_output(r, i, errno);
			return;
		}
		c->at += (size_t)n;
		c->n -= (size_t)n;
		r->e->io.handed[i] += (uint64_t)n;
	}
}

/* ---- life ---- */

int
kn_relay_open(struct kn_sup *s, struct kn_entry *e, struct kn_err *err)
{
	struct kn_relay *r = s->relay;

	if (r && r->e && r->e != e)
		return kn_err_set(err, KN_EK_BUG, "only one task can have the streams");
	if (!r)
		r = calloc(1, sizeof *r);
	if (!r)
		return kn_err_set(err, KN_EK_HOST, "out of memory");
	s->relay = r;
	r->s = s;
	/* What a job before this one has left unread was that one's. */
	r->in.at = r->in.n = 0;
	r->in.ended = false;
	r->w_from.fd = r->w_to[0].fd = r->w_to[1].fd = -1;
	kn_caller_init(&r->from, e->task->streams[0]);
	kn_caller_init(&r->to[0], e->task->streams[1]);
	kn_caller_init(&r->to[1], e->task->streams[2]);
	return 0;
}

void
kn_relay_start(struct kn_entry *e)
{
	struct kn_relay *r = e->sup->relay;

	r->e = e;
	r->finishing = r->has_master = r->unread = r->ctrl_d = false;
	r->out[0].n = r->out[1].n = 0;
	r->out[0].ended = r->out[1].ended = false;
	r->out[1].ended = e->task->pty;
	if (!e->input_used)
		r->in.n = 0; /* at most the end, told to a terminal that is gone */
	if (e->task->pty)
		return; /* until the master has come */
	pump_in(r);
	settle(r);
}

int
kn_relay_master(struct kn_entry *e, int fd_own)
{
	struct kn_relay *r = e->sup->relay;
	KN_OWN_FD int fd = fd_own;
	struct stat st;
	unsigned n;

	if (!r || r->e != e || r->has_master || fstat(fd, &st) < 0 ||
	    !S_ISCHR(st.st_mode) || ioctl(fd, TIOCGPTN, &n) < 0 ||
	    fcntl(fd, F_SETFL, O_RDWR | O_NONBLOCK) < 0 || kn_hasty_open(&r->hasty) < 0)
		return -1;
	e->io.out_fd = kn_fd_take(&fd);
	r->has_master = true;
	kn_term_raw(&r->term, r->from.fd);
	kn_relay_resize(e->sup);
	pump_in(r);
	pump_out(r, 0);
	after(r);
	return 0;
}

bool
kn_relay_lacks_master(const struct kn_entry *e)
{
	const struct kn_relay *r = e->sup->relay;

	return e->task->pty && r && r->e == e && !r->has_master;
}

bool
kn_relay_finish(struct kn_entry *e)
{
	struct kn_relay *r = e->sup->relay;

	if (!r || r->e != e)
		return true;
	r->finishing = true;
	end_input(r);
	r->out[0].ended |= e->io.out_fd < 0;
	r->out[1].ended |= e->io.err_fd < 0;
	pump_out(r, 0);
	pump_out(r, 1);
	if (!flushed(r)) {
		settle(r);
		return false;
	}
	kn_relay_detach(e);
	return true;
}

void
kn_relay_abandon(struct kn_sup *s)
{
	struct kn_relay *r = s->relay;
	struct kn_entry *e = r ? r->e : NULL;

	if (!e || !r->finishing)
		return;
	kn_relay_detach(e);
	kn_outcome_answer(e);
}

bool
kn_relay_flushing(const struct kn_sup *s)
{
	return s->relay && s->relay->e && s->relay->finishing;
}

void
kn_relay_detach(struct kn_entry *e)
{
	struct kn_relay *r = e->sup->relay;

	if (!r || r->e != e)
		return;
	kn_loop_del(&r->s->loop, &r->w_from);
	kn_loop_del(&r->s->loop, &r->w_to[0]);
	kn_loop_del(&r->s->loop, &r->w_to[1]);
	r->out[0].n = r->out[1].n = 0;
	r->e = NULL;
	kn_term_restore(&r->term);
}

void
kn_relay_resize(struct kn_sup *s)
{
	struct kn_relay *r = s->relay;
	struct winsize ws;

	if (r && r->e && r->e->task->pty && r->e->io.out_fd >= 0 &&
	    ioctl(r->from.fd, TIOCGWINSZ, &ws) == 0)
		(void)ioctl(r->e->io.out_fd, TIOCSWINSZ, &ws);
}

void
kn_relay_suspend(struct kn_sup *s)
{
	if (s->relay)
		kn_term_restore(&s->relay->term);
}

void
kn_relay_resume(struct kn_sup *s)
{
	struct kn_relay *r = s->relay;

	if (!r || !r->e || !r->e->task->pty || r->e->io.out_fd < 0)
		return;
	kn_term_raw(&r->term, r->from.fd);
	kn_relay_resize(s);
}

void
kn_relay_close(struct kn_sup *s)
{
	if (s->relay && s->relay->e)
		kn_relay_detach(s->relay->e);
	if (s->relay)
		kn_hasty_close(&s->relay->hasty);
	free(s->relay);
	s->relay = NULL;
}
