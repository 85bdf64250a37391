/* supervisor/stream.c: a task's pipes, and the capture of a batch task's streams.
 *
 * Our ends are descriptions of their own and non-blocking; the task can change nothing
 * about them. Most tasks of a batch write little and end soon: their pipes are read
 * once, when the result is there. Only those that live longer than a few milliseconds
 * get watched, so that a short task does not wake the loop once per stream that closes.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ipc/clock.h"
#include "ipc/fd.h"
#include "supervisor/inner.h"

enum {
	LATE_NS = 4 * 1000 * 1000,
	READS_PER_EVENT = 4,	     /* then others have their turn */
	DRAIN_MAX = 2 * 1024 * 1024, /* of what is no pipe */
};

static int
make_pipe(int *out_ours, int *out_child, bool ours_writes)
{
	int p[2];

	if (pipe2(p, O_CLOEXEC) < 0)
		return -1;
	/* As root the pipe is root's, and its task another user who could not open
	 * /dev/stdout. Whoever gets as far as its name in /proc may use it anyhow. */
	(void)fchmod(p[0], 0666);
	*out_ours = p[ours_writes ? 1 : 0];
	*out_child = p[ours_writes ? 0 : 1];
	/* the flag belongs to the description: the task's end stays a blocking one */
	return fcntl(
	    *out_ours, F_SETFL, (ours_writes ? O_WRONLY : O_RDONLY) | O_NONBLOCK);
}

int
kn_stream_open(struct kn_entry *e, int child[3])
{
	struct kn_io *io = &e->io;

	child[0] = child[1] = child[2] = -1;
	kn_stream_reset(e);
	if (e->task->pty)
		return 0;
	if (make_pipe(&io->in_fd, &child[0], true) == 0 &&
	    make_pipe(&io->out_fd, &child[1], false) == 0 &&
	    make_pipe(&io->err_fd, &child[2], false) == 0)
		return 0;
	for (int i = 0; i < 3; i++)
		kn_fd_close(&child[i]);
	kn_stream_close(e);
	return -1;
}

static void
end_fd(struct kn_sup *s, struct kn_watch *w, int *fd)
{
	kn_loop_del(&s->loop, w);
	kn_fd_close(fd);
}

/* ---- what is done a little later ---- */

static void
late_unlink(struct kn_entry *e)
{
	struct kn_sup *s = e->sup;

	if (!e->late_ns)
		return;
	*(e->late_prev ? &e->late_prev->late_next : &s->late_first) = e->late_next;
	*(e->late_next ? &e->late_next->late_prev : &s->late_last) = e->late_prev;
	e->late_next = e->late_prev = NULL;
	e->late_ns = 0;
}

static void
late_link(struct kn_entry *e, uint64_t at_ns)
{
	struct kn_sup *s = e->sup;

	late_unlink(e);
	e->late_ns = at_ns;
	e->late_prev = s->late_last;
	*(s->late_last ? &s->late_last->late_next : &s->late_first) = e;
	s->late_last = e;
}

/* A socket that is full for a moment, or a worker that is not at this task yet, must
 * not let it go on for as long as it likes. */
static void
end_task(struct kn_entry *e, enum kn_cause cause)
{
	if (e->state != KN_ENTRY_PLACED)
		return;
	e->end_for = cause;
	if (kn_act_message(&e->sup->wk[e->worker], KN_MSG_KILL, e, cause, NULL, 0) ==
		0 &&
	    kn_act_hears(e))
		e->end_for = KN_CAUSE_NONE;
	else
		late_link(e, kn_clock_now() + LATE_NS);
}

/* ---- the task's stdin ---- */

/* Next piece of the input that is not written yet; 0 at its end. */
static ssize_t
next_input(struct kn_entry *e, const char **out_p)
{
	struct kn_task *t = e->task;
	char *buf = e->sup->scratch;

	if (t->stdin_fd >= 0) {
		*out_p = buf;
		return pread(t->stdin_fd, buf, KN_SCRATCH_BYTES, (off_t)e->io.in_at);
	}
	if (e->io.in_at >= t->stdin_n)
		return 0;
	*out_p = (const char *)t->stdin_bytes + e->io.in_at;
	return (ssize_t)(t->stdin_n - e->io.in_at);
}

static void
feed_input(struct kn_entry *e)
{
	struct kn_io *io = &e->io;

	for (int i = 0; io->in_fd >= 0 && i < READS_PER_EVENT; i++) {
		const char *p = NULL;
		ssize_t n = next_input(e, &p);

		if (n > 0)
			n = write(io->in_fd, p, (size_t)n);
		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return;
		if (n < 0 && errno != EPIPE)
			kn_stream_broken(e, "stdin", errno);
		if (n <= 0) { /* all written, or nobody reads it any more */
			end_fd(e->sup, &io->in, &io->in_fd);
			return;
		}
		io->in_at += (uint64_t)n;
	}
}

static void
on_in(struct kn_watch *w, uint32_t events)
{
	(void)events;
	feed_input(w->ctx);
}

/* ---- its output ---- */

void
kn_stream_over(struct kn_entry *e, const char *name)
{
	if (!e->sup->policy->output_kill || e->over)
		return;
	e->over = name;
	end_task(e, KN_CAUSE_OUTPUT);
}

void
kn_stream_broken(struct kn_entry *e, const char *name, int sys)
{
	if (e->broken)
		return;
	e->broken = name;
	e->broken_sys = sys;
	e->told_to_end = true;
	end_task(e, KN_CAUSE_CANCEL);
}

static void
check_cap(struct kn_entry *e, const struct kn_cap *c, const char *name)
{
	if (c->total > c->cap)
		kn_stream_over(e, name);
}

/* Read up to max bytes. Returns false once the stream has ended. */
static bool
take(struct kn_entry *e, int fd, struct kn_cap *cap, const char *name, size_t max)
{
	char *buf = e->sup->scratch;

	for (size_t got = 0; got < max;) {
		ssize_t n = read(fd, buf, KN_SCRATCH_BYTES);

		if (n == 0)
			return false;
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return true;
		if (n < 0) {
			kn_stream_broken(e, name, errno);
			return false;
		}
		kn_cap_put(cap, buf, (size_t)n);
		got += (size_t)n;
	}
	return true;
}

static void
on_out(struct kn_watch *w, uint32_t events)
{
	struct kn_entry *e = w->ctx;

	(void)events;
	if (!take(e, e->io.out_fd, &e->io.cap_out, "stdout",
		READS_PER_EVENT * KN_SCRATCH_BYTES))
		end_fd(e->sup, &e->io.out, &e->io.out_fd);
	check_cap(e, &e->io.cap_out, "stdout");
}

static void
on_err(struct kn_watch *w, uint32_t events)
{
	struct kn_entry *e = w->ctx;

	(void)events;
	if (!take(e, e->io.err_fd, &e->io.cap_err, "stderr",
		READS_PER_EVENT * KN_SCRATCH_BYTES))
		end_fd(e->sup, &e->io.err, &e->io.err_fd);
	check_cap(e, &e->io.cap_err, "stderr");
}

/* ---- when to watch ---- */

void
kn_stream_start(struct kn_entry *e)
{
	if (e->task->stdio == KN_STDIO_RELAY) {
		kn_relay_start(e);
		return;
	}
	kn_cap_init(&e->io.cap_out, e->task->limits.stdout_bytes);
	kn_cap_init(&e->io.cap_err, e->task->limits.stderr_bytes);
	feed_input(e);
	late_link(e, e->published_ns + LATE_NS);
}

static bool
watch_one(struct kn_entry *e, struct kn_watch *w, int fd, uint32_t ev, kn_watch_fn fn)
{
	return fd < 0 || w->fn ||
	       kn_loop_add(&e->sup->loop, w, fd, ev, fn, e, NULL) == 0;
}

void
kn_stream_watch_late(struct kn_sup *s, uint64_t now_ns)
{
	struct kn_entry *e;

	while ((e = s->late_first) && e->late_ns <= now_ns) {
		struct kn_io *io = &e->io;

		late_unlink(e);
		if (e->end_for != KN_CAUSE_NONE)
			end_task(e, e->end_for);
		if (e->task->stdio == KN_STDIO_RELAY)
			continue; /* has watches of its own */
		if (!watch_one(e, &io->in, io->in_fd, EPOLLOUT, on_in) ||
		    !watch_one(e, &io->out, io->out_fd, EPOLLIN, on_out) ||
		    !watch_one(e, &io->err, io->err_fd, EPOLLIN, on_err)) {
			/* the kernel is short of memory: a little later, then */
			late_link(e, now_ns + LATE_NS);
			return;
		}
	}
}

/* ---- the end ---- */

/* What can be in it now that its cell is gone: more is a worker that still writes. A
 * task may make a pipe as large as pipe-max-size says. */
static size_t
content_max(int fd)
{
	int n = fcntl(fd, F_GETPIPE_SZ);

	return n > 0 ? (size_t)n : DRAIN_MAX;
}

void
kn_stream_drain(struct kn_entry *e)
{
	struct kn_io *io = &e->io;

	late_unlink(e);
	end_fd(e->sup, &io->in, &io->in_fd);
	if (io->out_fd >= 0) /* relayed streams are at their end by now */
		(void)take(
		    e, io->out_fd, &io->cap_out, "stdout", content_max(io->out_fd));
	if (io->err_fd >= 0)
		(void)take(
		    e, io->err_fd, &io->cap_err, "stderr", content_max(io->err_fd));
	if (e->task->stdio == KN_STDIO_CAPTURE) {
		check_cap(e, &io->cap_out, "stdout");
		check_cap(e, &io->cap_err, "stderr");
	}
	end_fd(e->sup, &io->out, &io->out_fd);
	end_fd(e->sup, &io->err, &io->err_fd);
}

void
kn_stream_close(struct kn_entry *e)
{
	struct kn_io *io = &e->io;

	late_unlink(e);
	if (e->task && e->task->stdio == KN_STDIO_RELAY)
		kn_relay_detach(e);
	end_fd(e->sup, &io->in, &io->in_fd);
	end_fd(e->sup, &io->out, &io->out_fd);
	end_fd(e->sup, &io->err, &io->err_fd);
}

void
kn_stream_reset(struct kn_entry *e)
{
	kn_stream_close(e);
	kn_cap_fini(&e->io.cap_out);
	kn_cap_fini(&e->io.cap_err);
	e->io.in_at = 0;
	e->io.relayed[0] = e->io.relayed[1] = 0;
	e->io.handed[0] = e->io.handed[1] = 0;
	e->over = e->broken = NULL;
	e->end_for = KN_CAUSE_NONE;
}
