/* cmd/out.c: see out.h. */
#include "cmd/out.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ipc/err.h"
#include "ipc/fd.h"

enum {
	SPARE_MOST = 1 << 20, /* room beyond what is needed; a long line */
	CORKED_MOST = 64 << 10,
};

int
kn_out_open(struct kn_out *o, int fd, bool ordered, struct kn_err *e)
{
	char path[64];
	struct stat st;

	*o = (struct kn_out){ .fd = fd, .ordered = ordered };
	if (fstat(fd, &st) < 0)
		return kn_err_sys(e, KN_EK_HOST, "stdout");
	o->direct = S_ISREG(st.st_mode);
	o->socket = S_ISSOCK(st.st_mode);
	if (o->direct || o->socket)
		return 0;
	/* O_NONBLOCK on the caller's own description would reach everybody who shares
	 * it (a shell's terminal): open one of ours. Where that is not allowed, poll
	 * and write a pipe's guaranteed unit at a time. */
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	fd = open(path, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd >= 0) {
		o->fd = fd;
		o->own_fd = true;
	}
	return 0;
}

static void
drop(struct kn_out *o)
{
	o->at = o->end = 0;
	if (o->cap > (1 << 20)) {
		free(o->buf);
		o->buf = NULL;
		o->cap = 0;
	}
}

static void
break_off(struct kn_out *o, int no)
{
	if (o->broken)
		return;
	o->broken = no;
	drop(o);
}

/* As much as goes without waiting: bytes, 0 when it would wait, -1 with errno. */
static ssize_t
write_some(struct kn_out *o, const char *p, size_t n)
{
	struct pollfd pfd = { .fd = o->fd, .events = POLLOUT };
	ssize_t r;

	if (o->socket) {
		r = send(o->fd, p, n, MSG_DONTWAIT | MSG_NOSIGNAL);
	} else if (o->direct || o->own_fd) {
		r = write(o->fd, p, n);
	} else {
		if (poll(&pfd, 1, 0) == 0)
			return 0;
		r = write(o->fd, p, n < PIPE_BUF ? n : PIPE_BUF);
	}
	if (r < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	return r;
}

static void
flush(struct kn_out *o)
{
	while (!o->broken && o->at < o->end) {
		ssize_t r = write_some(o, o->buf + o->at, o->end - o->at);

		if (r < 0) {
			break_off(o, errno);
			break;
		}
		if (r == 0)
			break;
		o->at += (size_t)r;
		o->sent += (size_t)r;
	}
	if (o->at == o->end)
		drop(o);
	o->waiting = o->at < o->end && !o->broken;
}

static void
copy(struct kn_out *o, const char *line, size_t n)
{
	if (o->broken)
		return;
	if (o->cap - o->end < n && o->at > 0) {
		memmove(o->buf, o->buf + o->at, o->end - o->at);
		o->end -= o->at;
		o->at = 0;
	}
	if (o->cap - o->end < n) {
		size_t cap = o->end + n;

		cap += cap < SPARE_MOST ? cap : SPARE_MOST;
		char *p = realloc(o->buf, cap);

		if (!p) {
			break_off(o, ENOMEM);
			return;
		}
		o->buf = p;
		o->cap = cap;
	}
	memcpy(o->buf + o->end, line, n);
	o->end += n;
}

/* Queue a line. A long one that need not wait behind others is not copied. */
static void
append(struct kn_out *o, char *line_own, size_t n)
{
	if (!o->broken && o->at == o->end && n >= SPARE_MOST) {
		free(o->buf);
		o->buf = line_own;
		o->cap = o->end = n;
		o->at = 0;
		return;
	}
	copy(o, line_own, n);
	free(line_own);
}

/* ---- order ---- */

static int
hold_room(struct kn_out *o, uint64_t seq)
{
	size_t cap = o->held_cap ? o->held_cap : 256;
	struct kn_out_held *v;

	while (seq - o->next_seq >= cap)
		cap *= 2;
	if (cap == o->held_cap)
		return 0;
	v = calloc(cap, sizeof *v);
	if (!v)
		return -1;
	for (size_t i = 0; i < o->held_cap; i++)
		v[(o->next_seq + i) % cap] = o->held[(o->next_seq + i) % o->held_cap];
	free(o->held);
	o->held = v;
	o->held_cap = cap;
	return 0;
}

static void
put_in_order(struct kn_out *o, uint64_t seq, char *line, size_t n)
{
	struct kn_out_held *h;

	if (hold_room(o, seq) < 0) {
		free(line);
		break_off(o, ENOMEM);
		return;
	}
	h = &o->held[seq % o->held_cap];
	h->line = line;
	h->n = n;
	o->held_n++;
	o->held_bytes += n;
	while ((h = &o->held[o->next_seq % o->held_cap])->line) {
		append(o, h->line, h->n);
		h->line = NULL;
		o->held_n--;
		o->held_bytes -= h->n;
		o->next_seq++;
	}
}

/* ---- outside ---- */

/* Even with nothing to write we want to know that the reader has gone: its tasks need
 * not run to their end. */
int
kn_out_events(const struct kn_out *o)
{
	if (o->direct || o->broken)
		return -1;
	return o->waiting ? POLLOUT : 0;
}

void
kn_out_ready(struct kn_out *o, short revents)
{
	if (!revents)
		return;
	if (revents & (POLLERR | POLLHUP))
		break_off(o, EPIPE);
	flush(o);
}

void
kn_out_put(struct kn_out *o, uint64_t seq, char *line, size_t n)
{
	if (o->ordered) {
		put_in_order(o, seq, line, n);
	} else {
		append(o, line, n);
	}
	if (!o->waiting && (!o->corked || o->end - o->at >= CORKED_MOST))
		flush(o);
}

void
kn_out_cork(struct kn_out *o, bool on)
{
	o->corked = on;
	if (!on && !o->waiting)
		flush(o);
}

static bool
takes_bytes(const struct kn_out *o)
{
	return !o->broken && o->end - o->at < KN_OUT_BYTES_MAX;
}

bool
kn_out_room(const struct kn_out *o)
{
	return takes_bytes(o) && o->held_n < KN_OUT_HELD_MAX &&
	       o->held_bytes < KN_OUT_HELD_BYTES;
}

bool
kn_out_only_held(const struct kn_out *o)
{
	return takes_bytes(o) && !kn_out_room(o);
}

int
kn_out_finish(struct kn_out *o)
{
	struct pollfd pfd = { .fd = o->fd, .events = POLLOUT };

	flush(o);
	while (!o->broken && o->at < o->end) {
		if (poll(&pfd, 1, -1) < 0 && errno != EINTR)
			break_off(o, errno);
		flush(o);
	}
	return o->broken ? -1 : 0;
}

void
kn_out_close(struct kn_out *o)
{
	for (size_t i = 0; i < o->held_cap; i++)
		free(o->held[i].line);
	free(o->held);
	free(o->buf);
	if (o->own_fd)
		kn_fd_close(&o->fd);
	*o = (struct kn_out){ .fd = -1 };
}
