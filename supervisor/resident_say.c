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

#include "ipc/fd.h"
#include "supervisor/inner.h"

/* A pipe that says it can be written takes PIPE_BUF bytes without waiting. */
enum { READS = 16, READ_BYTES = 4096, SHOWN_MAX = 4 * KN_RESIDENT_LINE + 64 };
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

static void
on_out(struct kn_watch *wt, uint32_t events)
{
	struct kn_wk *w = wt->ctx;

	(void)events;
	kn_say_drain(w, wt == &w->res.out.w ? &w->res.out : &w->res.err);
}

int
kn_say_open(struct kn_wk *w, struct kn_say_stream *p, int fd_own, struct kn_err *e)
{
	p->fd = fd_own;
	p->n = 0;
	p->shown = 0;
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
	kn_loop_del(&w->sup->loop, &p->w);
	kn_fd_close(&p->fd);
}
