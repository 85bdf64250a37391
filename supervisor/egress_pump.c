/* supervisor/egress_pump.c: bytes of one connection, both ways.
 *
 * Each way has one buffer. It is filled only while it has room, so who reads slowly
 * slows down who writes to him and nobody else; an end is passed on when all before it
 * was. A side of which nothing is wanted is not in the epoll set at all: a connection
 * that the other side has reset would wake the loop without end.
 */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "ipc/clock.h"
#include "supervisor/egress_int.h"

void
kn_eg_put(struct kn_eg_conn *c, int from, const void *p, size_t n)
{
	struct kn_eg_buf *b = &c->buf[from];

	if (b->at + b->n + n > sizeof b->p) {
		memmove(b->p, b->p + b->at, b->n);
		b->at = 0;
	}
	if (n > sizeof b->p - b->n)
		n = sizeof b->p - b->n; /* cannot be */
	memcpy(b->p + b->at + b->n, p, n);
	b->n += n;
}

static bool
is_passing(int err)
{
	return err == EAGAIN || err == EINTR;
}

/* Read once. False: the side has failed. */
static bool
fill(struct kn_eg_conn *c, int from)
{
	struct kn_eg_buf *b = &c->buf[from];
	ssize_t n;

	if (b->n == 0)
		b->at = 0;
	if (c->side[from].eof || b->at + b->n == sizeof b->p)
		return true;
	n = recv(c->side[from].fd, b->p + b->at + b->n, sizeof b->p - b->at - b->n, 0);
	if (n < 0)
		return is_passing(errno);
	if (n == 0)
		c->side[from].eof = true;
	if (from == KN_EG_REMOTE)
		c->bytes[from] += (size_t)n;
	b->n += (size_t)n;
	return true;
}

/* Write what there is, and then the end. False: the side has failed. */
static bool
drain(struct kn_eg_conn *c, int from)
{
	struct kn_eg_side *to = &c->side[!from];
	struct kn_eg_buf *b = &c->buf[from];

	while (b->n > 0) {
		ssize_t n = send(to->fd, b->p + b->at, b->n, MSG_NOSIGNAL);

		if (n < 0)
			return is_passing(errno);
		if (from == KN_EG_CLIENT)
			c->bytes[from] += (size_t)n;
		b->at += (size_t)n;
		b->n -= (size_t)n;
	}
	if (c->side[from].eof && !to->shut) {
		to->shut = true;
		(void)shutdown(to->fd, SHUT_WR);
	}
	return true;
}

bool
kn_eg_pump(struct kn_eg_conn *c, bool *out_reset)
{
	*out_reset = false;
	for (int from = 0; from < 2; from++) {
		if (!drain(c, from) || !fill(c, from) || !drain(c, from)) {
			*out_reset = true;
			return false;
		}
	}
	c->deadline_ns = kn_clock_after_ms(kn_clock_now(), KN_EG_IDLE_MS);
	return !(c->side[0].shut && c->side[1].shut);
}

bool
kn_eg_pump_refusal(struct kn_eg_conn *c)
{
	struct kn_eg_side *client = &c->side[KN_EG_CLIENT];
	char rest[4096];
	ssize_t n;

	c->side[KN_EG_REMOTE].eof = true;
	if (!drain(c, KN_EG_REMOTE))
		return false;
	/* Closed with something unread, the kernel would take the reply back. */
	n = recv(client->fd, rest, sizeof rest, 0);
	if (n == 0)
		client->eof = true;
	return n > 0 || (n < 0 && is_passing(errno));
}

/* ---- what is wanted of a side ---- */

static uint32_t
wanted(const struct kn_eg_conn *c, int i)
{
	const struct kn_eg_buf *in = &c->buf[i], *out = &c->buf[!i];
	uint32_t events = 0;

	switch (c->phase) {
	case KN_EG_ASK:
		return i == KN_EG_CLIENT ? EPOLLIN | (out->n ? EPOLLOUT : 0) : 0;
	case KN_EG_RESOLVE:
		return 0;
	case KN_EG_CONNECT:
		return i == KN_EG_REMOTE ? EPOLLOUT : 0;
	case KN_EG_REFUSE:
		return i == KN_EG_CLIENT ? EPOLLIN | (out->n ? EPOLLOUT : 0) : 0;
	case KN_EG_RELAY:
		break;
	}
	if (!c->side[i].eof && (in->n == 0 || in->at + in->n < sizeof in->p))
		events |= EPOLLIN;
	if (out->n > 0)
		events |= EPOLLOUT;
	return events;
}

int
kn_eg_watch(struct kn_eg_conn *c, kn_watch_fn fn)
{
	struct kn_loop *l = &c->w->sup->loop;
	struct kn_err e;

	for (int i = 0; i < 2; i++) {
		struct kn_eg_side *side = &c->side[i];
		uint32_t events = side->fd < 0 ? 0 : wanted(c, i);

		if (events == 0)
			kn_loop_del(l, &side->watch);
		else if (side->watch.fd >= 0)
			kn_loop_mod(l, &side->watch, events);
		else if (kn_loop_add(l, &side->watch, side->fd, events, fn, c, &e) < 0)
			return -1;
	}
	return 0;
}
