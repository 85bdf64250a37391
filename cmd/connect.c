/* cmd/connect.c: run --connect SOCKET: the client of `serve`. Task lines go to the
 * server as they are; its result lines come to stdout as they are, or, for one command
 * or call, as `run` itself would print them.
 *
 * Both directions at once: a server does not read tasks while nobody reads results.
 */
#include "cmd/connect.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "cmd/cmd.h"
#include "ipc/err.h"
#include "ipc/fd.h"

enum { CHUNK = 64 << 10, LINE_MOST = 1 << 30 };

struct buf {
	char *p;
	size_t n, at, cap;
};

struct connection {
	struct kn_run *r;
	int fd, in;	      /* in -1: all lines are in `out` already */
	struct buf out, line; /* to the server; of its answer, up to the newline */
	bool sent;	      /* all, and the server knows */
	bool single;
	uint64_t answers, not_ok;
	struct kn_connect_count asked;
	int exit_code;
	struct kn_err why;
};

static int
grow(struct buf *b, size_t n, struct kn_err *e)
{
	size_t cap = b->cap ? b->cap : CHUNK;
	char *p;

	if (b->at > 0) {
		memmove(b->p, b->p + b->at, b->n - b->at);
		b->n -= b->at;
		b->at = 0;
	}
	while (cap - b->n < n)
		cap *= 2;
	if (cap == b->cap)
		return 0;
	p = cap > LINE_MOST ? NULL : realloc(b->p, cap);
	if (!p)
		return kn_err_set(e, KN_EK_HOST, "--connect: out of memory");
	b->p = p;
	b->cap = cap;
	return 0;
}

static int
open_tasks(struct connection *c, struct kn_err *e)
{
	const char *path = c->r->opt.tasks;

	c->in = STDIN_FILENO;
	if (c->r->closed & 1u << STDOUT_FILENO)
		return kn_opt_refuse(e, "send it somewhere: >results.jsonl",
		    "--tasks: stdout is closed, results have no place");
	if (strcmp(path, "-") != 0)
		c->in = kn_opt_open("--tasks", path, e);
	return c->in < 0 ? -1 : 0;
}

/* ---- to the server ---- */

static int
read_tasks(struct connection *c, struct kn_err *e)
{
	ssize_t r;

	if (grow(&c->out, CHUNK, e) < 0)
		return -1;
	r = read(c->in, c->out.p + c->out.n, CHUNK);
	if (r < 0 && errno != EINTR && errno != EAGAIN)
		return kn_err_sys(e, KN_EK_USAGE, "--tasks: read %s", c->r->opt.tasks);
	kn_connect_count(&c->asked, c->out.p + c->out.n, r > 0 ? (size_t)r : 0);
	if (r == 0) {
		kn_connect_count_end(&c->asked);
		if (c->in > STDERR_FILENO)
			close(c->in);
		c->in = -1;
	}
	c->out.n += r > 0 ? (size_t)r : 0;
	return 0;
}

/* A server that takes no more may still answer what it took: that is read first. */
static void
send_tasks(struct connection *c)
{
	ssize_t r = send(c->fd, c->out.p + c->out.at, c->out.n - c->out.at,
	    MSG_DONTWAIT | MSG_NOSIGNAL);

	if (r < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (r < 0) {
		kn_err_sys(&c->why, KN_EK_LAUNCH, "the server takes no more tasks");
		c->sent = true;
		return;
	}
	c->out.at += (size_t)r;
}

/* ---- its answers ---- */

static int
one_answer(struct connection *c, const char *line, size_t n, struct kn_err *e)
{
	struct kn_connect_answer a;

	if (kn_connect_read(line, n, &a, e) < 0)
		return -1;
	c->answers++;
	c->not_ok += a.outcome.verdict != KNIT_OK;
	if (c->single)
		c->exit_code = kn_connect_print(c->r, &a);
	else if (kn_say_out(&c->r->voice, line, n) < 0)
		e->kind = KN_EK_HOST;
	kn_connect_forget(&a);
	return e->kind == KN_EK_NONE ? 0 : -1;
}

/* It closed with lines of ours unread, or without all answers: one that is stopped
 * answers what it took, one that is killed does not. */
static int
gone(const struct connection *c, struct kn_err *e)
{
	kn_err_set(e, KN_EK_LAUNCH,
	    "the server has gone: %llu answers came, the other lines have none",
	    (unsigned long long)c->answers);
	kn_err_hint(e, "send those again to the next one; if it was stopped none of "
		       "them was begun, if it was killed they may have been");
	return -1;
}

/* 1: there may be more, 0: that was all, -1 with e. */
static int
take_answers(struct connection *c, struct kn_err *e)
{
	size_t from;
	ssize_t r;

	if (grow(&c->line, CHUNK, e) < 0)
		return -1;
	from = c->line.n;
	r = recv(c->fd, c->line.p + from, CHUNK, MSG_DONTWAIT);
	if (r < 0 && (errno == EAGAIN || errno == EINTR))
		return 1;
	if (r < 0 && errno == ECONNRESET)
		return gone(c, e);
	if (r < 0)
		return kn_err_sys(e, KN_EK_LAUNCH, "--connect: read");
	if (r == 0 && c->line.n > 0)
		return kn_err_set(e, KN_EK_LAUNCH, "the server ended within a line");
	c->line.n += (size_t)r;
	for (char *end; (end = memchr(c->line.p + from, '\n', c->line.n - from));) {
		size_t n = (size_t)(end + 1 - (c->line.p + c->line.at));

		if (one_answer(c, c->line.p + c->line.at, n, e) < 0)
			return -1;
		c->line.at += n;
		from = c->line.at;
	}
	return r > 0;
}

/* ---- the talk ---- */

static int
talk(struct connection *c, struct kn_err *e)
{
	for (;;) {
		bool full = c->out.n - c->out.at >= CHUNK, more = c->out.at < c->out.n;
		struct pollfd v[2] = {
			{ .fd = c->fd,
			    .events = (short)(POLLIN | (more ? POLLOUT : 0)) },
			{ .fd = c->sent || full ? -1 : c->in, .events = POLLIN },
		};
		int rc;

		if (!c->sent && !more && c->in < 0) {
			(void)shutdown(c->fd, SHUT_WR);
			c->sent = true;
		}
		if (c->sent)
			v[0].events = POLLIN;
		if (poll(v, 2, -1) < 0 && errno != EINTR)
			return kn_err_sys(e, KN_EK_BUG, "poll");
		if (v[1].revents && read_tasks(c, e) < 0)
			return -1;
		if (!c->sent && v[0].revents & POLLOUT)
			send_tasks(c);
		if (!(v[0].revents & (POLLIN | POLLHUP | POLLERR)))
			continue;
		rc = take_answers(c, e);
		if (rc < 0)
			return -1;
		if (rc == 0)
			break;
	}
	/* It closes when all is answered; before we said that this was all, it stopped.
	 */
	if (!c->sent && c->why.kind == KN_EK_NONE)
		kn_err_set(&c->why, KN_EK_LAUNCH, "the server takes no more tasks");
	*e = c->why;
	if (e->kind == KN_EK_NONE && !c->single && c->answers < c->asked.lines)
		return gone(c, e);
	return e->kind == KN_EK_NONE ? 0 : -1;
}

static int
make_line(struct connection *c, struct kn_err *e)
{
	char *input;
	size_t n;

	if (kn_connect_input(c->r, &input, &n, e) < 0)
		return -1;
	c->out.p = kn_connect_line(&c->r->opt, input, n, &c->out.n, e);
	c->out.cap = c->out.n;
	free(input);
	return c->out.p ? 0 : -1;
}

static int
go(struct connection *c)
{
	const struct sigaction ignore = { .sa_handler = SIG_IGN };
	struct kn_err e = { 0 };

	c->single = !c->r->opt.tasks;
	sigaction(SIGPIPE, &ignore, NULL);
	c->fd = kn_opt_reach("--connect", c->r->opt.connect, 0, &e);
	if (c->fd < 0 || (c->single && make_line(c, &e) < 0))
		return kn_say_error(&c->r->voice, &e);
	if (!c->single && open_tasks(c, &e) < 0)
		return kn_say_error(&c->r->voice, &e);
	if (talk(c, &e) < 0)
		return e.msg[0] ? kn_say_error(&c->r->voice, &e) : KN_EXIT_OURS;
	if (c->single && c->answers == 0) {
		kn_say(&c->r->voice,
		    "the server ended without an answer: the command may have run");
		return KN_EXIT_OURS;
	}
	if (c->single)
		return c->exit_code;
	if (!c->r->voice.quiet)
		kn_say(&c->r->voice, "%llu answer%s, %llu not ok",
		    (unsigned long long)c->answers, c->answers == 1 ? "" : "s",
		    (unsigned long long)c->not_ok);
	return c->not_ok ? KN_EXIT_NOT_ALL_OK : KN_EXIT_OK;
}

int
kn_run_connect(struct kn_run *r)
{
	struct connection c = { .r = r, .fd = -1, .in = -1 };
	int rc = go(&c);

	free(c.out.p);
	free(c.line.p);
	if (c.in > STDERR_FILENO)
		close(c.in);
	kn_fd_close(&c.fd);
	return rc;
}
