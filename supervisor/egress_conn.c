/* supervisor/egress_conn.c: one connection of a task: what it asks for, whether it may,
 * the name's addresses, the first of them that may be and can be reached.
 *
 * The address that was looked at is the one that is connected to: nothing is resolved
 * twice.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "ipc/clock.h"
#include "ipc/fd.h"
#include "supervisor/egress_int.h"

static void on_event(struct kn_watch *wt, uint32_t events);

static void
set_deadline(struct kn_eg_conn *c, uint64_t ms)
{
	c->deadline_ns = kn_clock_after_ms(kn_clock_now(), ms);
	kn_eg_due(c->w->egress, c->deadline_ns);
}

/* ---- begin, end ---- */

void
kn_eg_conn_open(struct kn_eg_worker *w, int fd_own)
{
	/* the buffers, which are most of it, need no zeros */
	struct kn_eg_conn *c = malloc(sizeof *c);
	const int on = 1;

	if (!c) {
		close(fd_own);
		return;
	}
	memset(c, 0, offsetof(struct kn_eg_conn, buf));
	c->buf[0].at = c->buf[0].n = c->buf[1].at = c->buf[1].n = 0;
	c->w = w;
	c->side[KN_EG_CLIENT].fd = fd_own;
	c->side[KN_EG_REMOTE].fd = -1;
	c->side[0].watch.fd = c->side[1].watch.fd = -1;
	c->why = KN_NET_BAD_ASK;
	c->begun_ns = kn_clock_now();
	c->serial = ++w->egress->serial;
	c->next = w->first;
	c->prev = &w->first;
	if (c->next)
		c->next->prev = &c->next;
	w->first = c;
	w->conn_n++;
	(void)setsockopt(fd_own, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
	set_deadline(c, KN_EG_ASK_MS);
	if (kn_eg_watch(c, on_event) < 0)
		kn_eg_conn_end(c, true);
}

static void
tell(const struct kn_eg_conn *c, const struct kn_net_end *end)
{
	struct kn_sup *s = c->w->sup;
	const struct kn_task *t = c->w->entry ? c->w->entry->task : NULL;
	char buf[128];

	KN_LOG(&s->log, KN_NS_SANDBOX, (int)c->w->index,
	    "net %s:%u task=%s address=%s out=%llu in=%llu %s",
	    end->host[0] ? end->host : "-", end->port, t && t->id ? t->id : "-",
	    end->address[0] ? end->address : "-", (unsigned long long)end->out_bytes,
	    (unsigned long long)end->in_bytes,
	    end->why == KN_NET_WENT ? "went"
				    : kn_net_why_text(end->why, end->sys, buf));
	kn_trace_net(
	    &s->trace, (int)c->w->index, c->serial, c->begun_ns, kn_clock_now(), end);
}

void
kn_eg_conn_end(struct kn_eg_conn *c, bool reset)
{
	struct kn_eg_worker *w = c->w;
	const struct linger now = { 1, 0 };
	struct kn_net_end end = { .host = c->ask.host.text,
		.address = "",
		.port = c->ask.port,
		.why = c->why,
		.sys = c->sys,
		.out_bytes = c->bytes[KN_EG_CLIENT],
		.in_bytes = c->bytes[KN_EG_REMOTE] };

	if (c->why == KN_NET_WENT)
		end.address = c->addr.v[c->addr_at - 1].text;
	if (w->entry)
		kn_net_count(&w->entry->net, &end);
	kn_net_count(&w->egress->total, &end);
	tell(c, &end);
	kn_resolve_cancel(&c->wait);
	for (int i = 0; i < 2; i++) {
		kn_loop_del(&w->sup->loop, &c->side[i].watch);
		if (reset && c->side[i].fd >= 0)
			(void)setsockopt(
			    c->side[i].fd, SOL_SOCKET, SO_LINGER, &now, sizeof now);
		kn_fd_close(&c->side[i].fd);
	}
	*c->prev = c->next;
	if (c->next)
		c->next->prev = c->prev;
	w->conn_n--;
	free(c);
	kn_eg_accept_more(w);
}

/* ---- no ---- */

/* c may be gone afterwards. */
static void
refuse(struct kn_eg_conn *c, enum kn_net_why why, int sys)
{
	c->why = why;
	c->sys = sys;
	c->phase = KN_EG_REFUSE;
	kn_loop_del(&c->w->sup->loop, &c->side[KN_EG_REMOTE].watch);
	kn_fd_close(&c->side[KN_EG_REMOTE].fd);
	c->buf[KN_EG_CLIENT].n = 0;
	kn_eg_say_no(c);
	set_deadline(c, KN_EG_REFUSE_MS);
	if (!kn_eg_pump_refusal(c) || kn_eg_watch(c, on_event) < 0)
		kn_eg_conn_end(c, false);
}

/* ---- relaying ---- */

static void
pump(struct kn_eg_conn *c)
{
	bool reset;

	if (!kn_eg_pump(c, &reset))
		kn_eg_conn_end(c, reset);
	else if (kn_eg_watch(c, on_event) < 0)
		kn_eg_conn_end(c, true);
}

static void
established(struct kn_eg_conn *c)
{
	static const char http_ok[] = "HTTP/1.1 200 Connection established\r\n\r\n";
	static const uint8_t socks_ok[10] = { 5, 0, 0, 1 };
	struct kn_eg_buf *b = &c->buf[KN_EG_CLIENT];
	char head[KN_ASK_HEAD_MAX + KN_ASK_GROWS];
	uint8_t rest[KN_ASK_HEAD_MAX];
	size_t n, rest_n = b->n - c->ask.used;

	c->phase = KN_EG_RELAY;
	c->why = KN_NET_WENT;
	c->sys = 0;
	set_deadline(c, KN_EG_IDLE_MS);
	if (c->ask.kind == KN_ASK_HTTP) {
		n = kn_ask_rewrite(&c->ask, b->p + b->at, head, sizeof head);
		memcpy(rest, b->p + b->at + c->ask.used, rest_n);
		b->at = b->n = 0;
		kn_eg_put(c, KN_EG_CLIENT, head, n);
		kn_eg_put(c, KN_EG_CLIENT, rest, rest_n);
	} else {
		b->at += c->ask.used;
		b->n = rest_n;
		if (c->ask.kind == KN_ASK_CONNECT)
			kn_eg_put(c, KN_EG_REMOTE, http_ok, sizeof http_ok - 1);
		else
			kn_eg_put(c, KN_EG_REMOTE, socks_ok, sizeof socks_ok);
	}
	pump(c);
}

/* ---- connecting ---- */

union address {
	struct sockaddr any;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
};

static socklen_t
fill_address(const struct kn_net_host *h, uint16_t port, union address *out)
{
	memset(out, 0, sizeof *out);
	if (h->family == AF_INET) {
		out->v4.sin_family = AF_INET;
		out->v4.sin_port = htons(port);
		memcpy(&out->v4.sin_addr, h->addr, 4);
		return sizeof out->v4;
	}
	out->v6.sin6_family = AF_INET6;
	out->v6.sin6_port = htons(port);
	memcpy(&out->v6.sin6_addr, h->addr, 16);
	return sizeof out->v6;
}

/* Whether it is this machine's: what would be sent there would come from there. Nothing
 * is sent by asking. */
static bool
is_own(const struct kn_net_host *h)
{
	KN_OWN_FD int fd = socket(h->family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	union address to, from;
	socklen_t n = fill_address(h, 9, &to), from_n = sizeof from;

	if (fd < 0)
		return true; /* not known: as if it were */
	if (connect(fd, &to.any, n) < 0)
		return false;
	if (getsockname(fd, &from.any, &from_n) < 0)
		return true;
	return h->family == AF_INET ? memcmp(&from.v4.sin_addr, h->addr, 4) == 0
				    : memcmp(&from.v6.sin6_addr, h->addr, 16) == 0;
}

/* Where c's connection may go: what the list has by its address needs no look. */
static bool
may_reach(const struct kn_eg_conn *c, const struct kn_net_host *h)
{
	const struct kn_policy *p = c->w->sup->policy;

	return c->ask.host.family ||
	       kn_net_may_reach(p->net.allow, p->net.allow_n, &c->ask.host, c->ask.port,
		   h, kn_net_is_public(h) && is_own(h));
}

/* 0: under way. 1: there. -1: errno. */
static int
begin_connect(struct kn_eg_conn *c, const struct kn_net_host *h)
{
	const int on = 1;
	union address to;
	socklen_t n = fill_address(h, c->ask.port, &to);
	int fd =
	    socket(h->family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, IPPROTO_TCP);

	if (fd < 0)
		return -1;
	c->side[KN_EG_REMOTE].fd = fd;
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
	if (connect(fd, &to.any, n) == 0)
		return 1;
	return errno == EINPROGRESS ? 0 : -1;
}

/* The next address, or none is left: sys says what became of the last. c may be gone
 * afterwards. */
static void
connect_next(struct kn_eg_conn *c)
{
	int r = -1;

	kn_loop_del(&c->w->sup->loop, &c->side[KN_EG_REMOTE].watch);
	kn_fd_close(&c->side[KN_EG_REMOTE].fd);
	c->phase = KN_EG_CONNECT;
	while (r < 0 && c->addr_at < c->addr.n) {
		const struct kn_net_host *h = &c->addr.v[c->addr_at++];

		if (!may_reach(c, h)) {
			if (c->why != KN_NET_UNREACHED)
				c->why = KN_NET_ADDRESS;
			continue;
		}
		c->why = KN_NET_UNREACHED;
		r = begin_connect(c, h);
		if (r < 0) {
			c->sys = errno;
			kn_fd_close(&c->side[KN_EG_REMOTE].fd);
		}
	}
	if (r < 0) {
		refuse(c, c->why, c->why == KN_NET_UNREACHED ? c->sys : 0);
	} else if (r > 0) {
		established(c);
	} else {
		c->sys = 0;
		set_deadline(c, KN_EG_CONNECT_MS);
		if (kn_eg_watch(c, on_event) < 0)
			kn_eg_conn_end(c, true);
	}
}

static void
on_connected(struct kn_eg_conn *c)
{
	int err = 0;
	socklen_t n = sizeof err;

	if (getsockopt(c->side[KN_EG_REMOTE].fd, SOL_SOCKET, SO_ERROR, &err, &n) < 0)
		err = errno;
	c->sys = err;
	if (err)
		connect_next(c);
	else
		established(c);
}

static void
on_addresses(struct kn_resolve_wait *w, const struct kn_addresses *a)
{
	struct kn_eg_conn *c = (void *)((char *)w - offsetof(struct kn_eg_conn, wait));

	c->addr = *a;
	c->addr_at = 0;
	connect_next(c);
}

/* ---- asking ---- */

static void
asked(struct kn_eg_conn *c)
{
	const struct kn_policy *p = c->w->sup->policy;
	enum kn_net_listed listed =
	    kn_net_listed(p->net.allow, p->net.allow_n, &c->ask.host, c->ask.port);

	if (listed != KN_NET_LISTED) {
		refuse(c, listed == KN_NET_OTHER_PORT ? KN_NET_PORT : KN_NET_NOT_LISTED,
		    0);
		return;
	}
	c->why = KN_NET_NO_ADDRESS;
	c->phase = KN_EG_RESOLVE;
	if (c->ask.host.family) {
		c->addr.v[0] = c->ask.host;
		c->addr.n = 1;
		connect_next(c);
		return;
	}
	set_deadline(c, KN_EG_RESOLVE_MS);
	if (kn_eg_watch(c, on_event) < 0) {
		kn_eg_conn_end(c, true);
		return;
	}
	c->wait.done = on_addresses;
	kn_resolve(&c->w->egress->resolver, &c->wait, c->ask.host.text, c->w->index);
}

/* What has come so far. True: it is still said. */
static bool
understand(struct kn_eg_conn *c)
{
	struct kn_eg_buf *b = &c->buf[KN_EG_CLIENT];

	kn_ask_read(b->p + b->at, b->n, c->greeted, &c->ask);
	if (c->ask.kind == KN_ASK_SOCKS_HELLO) {
		kn_eg_put(c, KN_EG_REMOTE, c->ask.reply, c->ask.reply_n);
		b->at += c->ask.used;
		b->n -= c->ask.used;
		c->greeted = true;
		kn_ask_read(b->p + b->at, b->n, true, &c->ask);
	}
	if (c->ask.kind == KN_ASK_MORE)
		return true;
	if (c->ask.kind == KN_ASK_BAD)
		refuse(c, KN_NET_BAD_ASK, 0);
	else
		asked(c);
	return false;
}

static void
on_ask(struct kn_eg_conn *c)
{
	struct kn_eg_buf *in = &c->buf[KN_EG_CLIENT], *out = &c->buf[KN_EG_REMOTE];
	struct kn_eg_side *client = &c->side[KN_EG_CLIENT];
	ssize_t n;

	/* Without more than its head may have, the rest of the buffer is there for
	 * what the head grows by. */
	n = recv(
	    client->fd, in->p + in->at + in->n, KN_ASK_HEAD_MAX - in->at - in->n, 0);
	if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) {
		kn_eg_conn_end(c, n < 0);
		return;
	}
	in->n += n > 0 ? (size_t)n : 0;
	if (n > 0 && !understand(c))
		return;
	if (out->n > 0 &&
	    (n = send(client->fd, out->p + out->at, out->n, MSG_NOSIGNAL)) > 0) {
		out->at += (size_t)n;
		out->n -= (size_t)n;
	}
	if (kn_eg_watch(c, on_event) < 0)
		kn_eg_conn_end(c, true);
}

/* ---- the loop's ---- */

static void
on_event(struct kn_watch *wt, uint32_t events)
{
	struct kn_eg_conn *c = wt->ctx;

	(void)events; /* what it means is asked of the socket */
	switch (c->phase) {
	case KN_EG_ASK:
		on_ask(c);
		break;
	case KN_EG_CONNECT:
		on_connected(c);
		break;
	case KN_EG_RELAY:
		pump(c);
		break;
	case KN_EG_REFUSE:
		if (!kn_eg_pump_refusal(c) || kn_eg_watch(c, on_event) < 0)
			kn_eg_conn_end(c, false);
		break;
	case KN_EG_RESOLVE: /* nothing is watched */
		break;
	}
}

void
kn_eg_conn_late(struct kn_eg_conn *c)
{
	switch (c->phase) {
	case KN_EG_ASK:
		refuse(c, KN_NET_SLOW, 0);
		break;
	case KN_EG_RESOLVE:
		kn_resolve_cancel(&c->wait);
		refuse(c, KN_NET_NO_ADDRESS, 0);
		break;
	case KN_EG_CONNECT:
		c->sys = ETIMEDOUT;
		connect_next(c);
		break;
	case KN_EG_RELAY:
	case KN_EG_REFUSE:
		kn_eg_conn_end(c, c->phase == KN_EG_RELAY);
		break;
	}
}
