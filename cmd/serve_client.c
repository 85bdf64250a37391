/* cmd/serve_client.c: one connection. It is a batch of its own: its ids, what its tasks
 * keep for one another, and its share of the pool.
 *
 * Who sends faster than its results are read is not read any more (kn_client_room), and
 * who sends faster than the pool works neither (knit_batch_wants). Who goes away
 * without taking its results has its tasks cancelled.
 */
#include <errno.h>
#include <linux/sockios.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "cmd/serve_int.h"
#include "ipc/clock.h"
#include "ipc/fd.h"

static void
on_result(void *ctx, const struct knit_batch_result *r)
{
	struct kn_client *c = ctx;
	size_t n = 0;
	char *text;

	c->serve->totals.verdicts[r->outcome->verdict]++;
	if (c->gone)
		return;
	text = knit_batch_json(c->batch, r, KNIT_JSON_STREAMS | KNIT_JSON_FILES, &n);
	if (!text) {
		c->no_memory = true;
		return;
	}
	kn_out_put(&c->out, r->seq, text, n);
	knit_batch_pause(c->batch, !kn_client_room(c));
}

static int
open_batch(struct kn_client *c, struct knit_error *err)
{
	struct knit_batch_options o;

	knit_batch_options_init(&o, sizeof o);
	o.cwd = c->serve->opt.run.workdir;
	o.result = on_result;
	o.ctx = c;
	return knit_batch_open(c->pool->pool, &o, &c->batch, err);
}

/* To one that cannot be served: a line that says why, if it goes without waiting. */
static void
turn_away(struct kn_serve *s, int fd, const char *why)
{
	static const char line[] =
	    "{\"error\":\"the server is out of memory or descriptors\"}\n";

	kn_say(&s->voice, "a connection was turned away: %s", why);
	(void)!send(fd, line, sizeof line - 1, MSG_DONTWAIT | MSG_NOSIGNAL);
	close(fd);
}

void
kn_client_open(struct kn_serve *s, int fd)
{
	struct knit_error err = KNIT_ERROR_NONE;
	struct kn_err e = { 0 };
	struct kn_client *c = calloc(1, sizeof *c);

	if (!c) {
		turn_away(s, fd, "out of memory");
		return;
	}
	c->serve = s;
	c->fd = fd;
	c->pool = s->pools;
	if (kn_out_open(&c->out, fd, false, &e) < 0 || open_batch(c, &err) < 0) {
		turn_away(s, fd, err.text[0] ? err.text : e.msg);
		kn_out_close(&c->out);
		free(c);
		return;
	}
	c->pool->clients++;
	c->reading = c->fresh = true;
	c->number = ++s->number;
	c->next = s->clients;
	s->clients = c;
	s->client_n++;
}

int
kn_client_events(const struct kn_client *c)
{
	int out = kn_out_events(&c->out);
	bool in = c->reading && knit_batch_wants(c->batch) && kn_client_room(c) &&
		  kn_client_may_send(c);

	/* 0 too: that the other side has gone is always told. */
	return (out > 0 ? out : 0) | (in ? POLLIN : 0);
}

static void
tell_failure(struct kn_client *c, const struct knit_error *err)
{
	if (!c->told)
		kn_say(&c->serve->voice, "client %u: %s", c->number, err->text);
	c->told = true;
}

static void
read_lines(struct kn_client *c)
{
	struct knit_error err = KNIT_ERROR_NONE;

	if (knit_batch_read(c->batch, c->fd, &err) >= 0)
		return;
	c->reading = false;
	if (err.kind == KNIT_E_NONE)
		return; /* the end; results may still be waited for */
	if (err.sys == ECONNRESET)
		c->gone = true;
	else
		tell_failure(c, &err);
	knit_batch_no_more(c->batch);
}

static bool
may_be(const char *got, ssize_t n, const char *word)
{
	size_t len = strlen(word);

	return n > 0 && memcmp(got, word, (size_t)n < len ? (size_t)n : len) == 0;
}

/* No line begins like this, nor like a part of it: the same socket answers who asks for
 * its health or for what its workers do, and what it has taken of a connection by then
 * is nothing. */
static bool
is_http(struct kn_client *c)
{
	char head[6] = "";
	ssize_t n = recv(c->fd, head, sizeof head, MSG_PEEK | MSG_DONTWAIT);

	if (n > 0)
		c->fresh = false;
	return may_be(head, n, "GET /") || may_be(head, n, "HEAD /");
}

static void
become_http(struct kn_client *c)
{
	kn_http_open(c->serve, c->fd, true);
	c->fd = -1;
	c->gone = c->is_http = true;
}

/* Counted once it is known to be one: no number ever falls. */
static void
count(struct kn_client *c)
{
	if (!c->counted && !c->is_http)
		c->serve->totals.clients++;
	c->counted = true;
}

void
kn_client_ready(struct kn_client *c, short revents)
{
	if (c->fresh && revents & POLLIN && is_http(c)) {
		become_http(c);
		return;
	}
	if (!c->fresh)
		count(c);
	kn_out_ready(&c->out, revents & (short)~POLLIN);
	if (c->reading && revents & POLLIN && knit_batch_wants(c->batch) &&
	    kn_client_room(c) && kn_client_may_send(c))
		read_lines(c);
	if (revents & (POLLHUP | POLLERR) || c->out.broken)
		c->gone = true;
}

/* All that was taken is answered. */
static bool
is_idle(const struct kn_client *c)
{
	struct knit_batch_counts n = { .size = sizeof n };

	return knit_batch_count(c->batch, &n, NULL) < 0 || n.accepted == n.answered;
}

void
kn_client_work(struct kn_client *c)
{
	struct knit_error err = KNIT_ERROR_NONE;
	int rc;

	if (c->gone)
		return;
	knit_batch_pause(c->batch, !kn_client_room(c));
	kn_out_cork(&c->out, true);
	rc = knit_batch_work(c->batch, &err);
	if (rc < 0)
		tell_failure(c, &err);
	if (rc != 0 || (c->stopped && kn_client_room(c) && is_idle(c)))
		c->all = true;
	kn_out_cork(&c->out, false);
	if (c->out.broken || c->no_memory)
		c->gone = true;
}

bool
kn_client_done(const struct kn_client *c)
{
	return c->gone || (c->all && c->out.at == c->out.end);
}

void
kn_client_no_more(struct kn_client *c)
{
	/* Not its end for the batch: half a line is no task, nor a mistake of
	 * anybody's. */
	if (c->reading)
		c->stopped = true;
	c->reading = false;
}

/* Has it read since we looked? The kernel frees what it keeps for a reader in pieces of
 * some 36 KiB; POLLOUT alone would come after three quarters of all. */
static bool
has_read(struct kn_client *c)
{
	int kept = 0;
	bool yes;

	(void)ioctl(c->fd, SIOCOUTQ, &kept);
	yes = c->out.sent != c->seen_sent || kept < c->seen_kept;
	c->seen_sent = c->out.sent;
	c->seen_kept = kept;
	return yes;
}

static void
let_go(struct kn_client *c)
{
	struct knit_batch_counts n = { .size = sizeof n };

	(void)knit_batch_count(c->batch, &n, NULL);
	kn_say(&c->serve->voice,
	    "client %u reads nothing and is let go: %zu bytes of answers are lost, "
	    "%llu tasks abandoned",
	    c->number, c->out.end - c->out.at,
	    (unsigned long long)(n.accepted - n.answered));
	c->gone = true;
}

/* A drain ends, also if somebody keeps his connection and never reads. */
uint64_t
kn_client_expire(struct kn_serve *s)
{
	uint64_t now = kn_clock_now(), next = 0;

	if (s->state < KN_SERVE_DRAINING)
		return 0;
	for (struct kn_client *c = s->clients; c; c = c->next) {
		if (c->gone || c->out.at == c->out.end) {
			c->deaf_at = 0;
			continue;
		}
		if (!c->deaf_at || (c->deaf_at <= now && has_read(c))) {
			(void)has_read(c);
			c->deaf_at = kn_clock_after_ms(now, s->opt.grace_ms);
		}
		if (c->deaf_at <= now) {
			let_go(c);
			return now;
		}
		next = next && next < c->deaf_at ? next : c->deaf_at;
	}
	return next;
}

void
kn_client_close(struct kn_client *c)
{
	struct kn_serve *s = c->serve;
	struct knit_batch_counts n = { .size = sizeof n };

	for (struct kn_client **at = &s->clients; *at; at = &(*at)->next) {
		if (*at == c) {
			*at = c->next;
			break;
		}
	}
	count(c);
	if (knit_batch_count(c->batch, &n, NULL) == 0) {
		s->totals.accepted += n.accepted;
		s->totals.abandoned += n.accepted - n.answered;
	}
	knit_batch_close(c->batch);
	kn_out_close(&c->out);
	kn_fd_close(&c->fd);
	c->pool->clients--;
	s->client_n--;
	kn_serve_room_freed(s);
	free(c);
}
