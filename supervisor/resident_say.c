/* supervisor/resident_say.c: what a module prints, shown on our stderr, or embedded
 * handed on: by the line, named by its worker, with every control character made
 * visible, and no more of it than the policy captures of a command.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "ipc/clock.h"
#include "ipc/fd.h"
#include "supervisor/inner.h"

/* A pipe that says it can be written takes PIPE_BUF bytes without waiting. */
enum { READS = 16, READ_BYTES = 4096, SHOWN_MAX = 4 * KN_RESIDENT_LINE + 64 };
/* Past its cap a stream is read so often, a pipe's worth each time: who writes without
 * end waits for that, and we do not work for nobody. */
#define UNSHOWN_NS (50 * KN_MS_NS)
_Static_assert(SHOWN_MAX <= PIPE_BUF, "a line is written without waiting");

/* False where it would have to wait: the loop waits for nobody who does not read what
 * modules print. */
static bool
print(uint32_t worker, const char *text)
{
	struct pollfd p = { .fd = STDERR_FILENO, .events = POLLOUT };
	char line[SHOWN_MAX];
	int n = snprintf(line, sizeof line, "w%u: %s\n", worker, text);

	if (poll(&p, 1, 0) != 1 || !(p.revents & POLLOUT))
		return false;
	(void)kn_fd_write_all(STDERR_FILENO, line, (size_t)n);
	return true;
}

static void
show(struct kn_wk *w, const char *text, size_t n)
{
	char clean[SHOWN_MAX - 32];

	kn_err_printable(clean, sizeof clean, text, (int)n);
	if (w->sup->opt.embedded) {
		if (w->sup->cb.say)
			w->sup->cb.say(w->sup->cb.ctx, w->index, clean);
		return;
	}
	if (w->res.unread > 0) {
		char gap[64];

		snprintf(gap, sizeof gap, "(%llu lines are not shown)",
		    (unsigned long long)w->res.unread);
		if (print(w->index, gap))
			w->res.unread = 0;
	}
	if (w->res.unread > 0 || !print(w->index, clean))
		w->res.unread++;
}

void
kn_say_note(struct kn_wk *w, const char *text)
{
	show(w, text, strlen(text));
}

static uint64_t
cap_of(const struct kn_wk *w, const struct kn_say_stream *p)
{
	const struct kn_task_limits *l = &w->sup->policy->task;

	return p == &w->res.out ? l->stdout_bytes : l->stderr_bytes;
}

static void
end_line(struct kn_wk *w, struct kn_say_stream *p)
{
	uint64_t cap = cap_of(w, p);

	if (p->cut)
		return;
	if (p->shown + p->n > cap) {
		p->cut = true;
		p->n = 0;
		show(w, "(it prints more than is shown)", 30);
		return;
	}
	p->shown += p->n;
	show(w, p->line, p->n);
	p->n = 0;
}

static void
put(struct kn_wk *w, struct kn_say_stream *p, const char *bytes, size_t n)
{
	for (size_t i = 0; i < n && !p->cut; i++) {
		if (bytes[i] == '\n' || p->n == sizeof p->line)
			end_line(w, p);
		if (bytes[i] != '\n' && !p->cut)
			p->line[p->n++] = bytes[i];
	}
}

void
kn_say_drain(struct kn_wk *w, struct kn_say_stream *p)
{
	char buf[READ_BYTES];

	for (int i = 0; i < READS && p->fd >= 0; i++) {
		ssize_t n = read(p->fd, buf, sizeof buf);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return;
		if (n == 0) {
			kn_loop_del(&w->sup->loop, &p->w);
			return;
		}
		put(w, p, buf, (size_t)n);
	}
}

/* A policy may say that too much output is the end of who writes it. */
static void
over(struct kn_wk *w, struct kn_say_stream *p)
{
	if (w->res.kill_by_ns) {
		; /* it ends already */
	} else if (w->sup->policy->output_kill) {
		if (!kn_resident_kill(w, KN_CAUSE_OUTPUT))
			kn_launch_kill(w->sup->launcher, w->index, &w->lw);
	} else {
		p->again_ns = kn_clock_now() + UNSHOWN_NS;
	}
	kn_loop_del(&w->sup->loop, &p->w);
}

static void
on_out(struct kn_watch *wt, uint32_t events)
{
	struct kn_wk *w = wt->ctx;
	struct kn_say_stream *p = wt == &w->res.out.w ? &w->res.out : &w->res.err;

	(void)events;
	kn_say_drain(w, p);
	if (p->cut && p->w.fd >= 0)
		over(w, p);
}

uint64_t
kn_say_due(const struct kn_resident_wk *r)
{
	uint64_t a = r->out.again_ns, b = r->err.again_ns;

	return !a || (b && b < a) ? b : a;
}

/* A stream that fails to be watched again is not read any more: its writer waits. */
void
kn_say_timer(struct kn_wk *w, uint64_t now_ns)
{
	struct kn_say_stream *const both[] = { &w->res.out, &w->res.err };

	for (int i = 0; i < 2; i++) {
		struct kn_say_stream *p = both[i];

		if (!p->again_ns || p->again_ns > now_ns)
			continue;
		p->again_ns = 0;
		(void)kn_loop_add(
		    &w->sup->loop, &p->w, p->fd, EPOLLIN, on_out, w, NULL);
	}
}

int
kn_say_open(struct kn_wk *w, struct kn_say_stream *p, int fd_own, struct kn_err *e)
{
	p->fd = fd_own;
	p->n = 0;
	p->shown = p->again_ns = 0;
	p->cut = false;
	if (fcntl(fd_own, F_SETFL, O_NONBLOCK) < 0)
		return kn_err_sys(e, KN_EK_HOST, "prepare a pipe");
	return kn_loop_add(&w->sup->loop, &p->w, fd_own, EPOLLIN, on_out, w, e);
}

void
kn_say_close(struct kn_wk *w, struct kn_say_stream *p)
{
	if (p->fd < 0)
		return;
	kn_say_drain(w, p);
	if (p->n > 0)
		end_line(w, p);
	p->n = 0;
	p->again_ns = 0;
	kn_loop_del(&w->sup->loop, &p->w);
	kn_fd_close(&p->fd);
}
