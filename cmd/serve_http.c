/* cmd/serve_http.c: GET /health, /metrics and /workers, nothing else of HTTP.
 *
 * Of a request only its first line counts; one answer for each connection. A library
 * would bring TLS and threads into a program that is static, and started for every
 * single command: what is needed here is a line. Hostile bytes cost their own
 * connection: 8 KiB, 5 s, and there are 16 at a time.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "cmd/serve_int.h"
#include "ipc/clock.h"
#include "ipc/fd.h"

void
kn_http_close(struct kn_http *h)
{
	free(h->answer);
	h->answer = NULL;
	h->got = h->sent = h->n = 0;
	kn_fd_close(&h->fd);
}

unsigned
kn_http_count(const struct kn_serve *s)
{
	unsigned n = 0;

	for (size_t i = 0; i < KN_HTTP_MOST; i++)
		n += s->http[i].fd >= 0;
	return n;
}

void
kn_http_drop_oldest(struct kn_serve *s)
{
	struct kn_http *oldest = NULL;

	for (size_t i = 0; i < KN_HTTP_MOST; i++) {
		struct kn_http *h = &s->http[i];

		if (h->fd >= 0 && (!oldest || h->by_ns < oldest->by_ns))
			oldest = h;
	}
	if (oldest)
		kn_http_close(oldest);
}

void
kn_http_open(struct kn_serve *s, int fd, bool local)
{
	struct kn_http *h = s->http;

	/* Who sits on connections must not keep a probe from its answer. */
	if (kn_http_count(s) == KN_HTTP_MOST)
		kn_http_drop_oldest(s);
	while (h->fd >= 0)
		h++;
	h->fd = fd;
	h->local = local;
	h->by_ns = kn_clock_after_ms(kn_clock_now(), KN_HTTP_MS);
}

int
kn_http_events(const struct kn_http *h)
{
	return h->answer ? POLLOUT : POLLIN;
}

/* ---- the request ---- */

/* "GET /path HTTP/1.1\r": the method, and the path without what follows a '?'. */
static bool
parse(const char *head, size_t n, const char **method, size_t *method_n,
    const char **path, size_t *path_n)
{
	const char *end = memchr(head, '\n', n), *sp, *sp2;

	sp = end ? memchr(head, ' ', (size_t)(end - head)) : NULL;
	sp2 = sp ? memchr(sp + 1, ' ', (size_t)(end - sp - 1)) : NULL;
	if (!sp2 || end - sp2 < 8 || memcmp(sp2 + 1, "HTTP/1.", 7) != 0)
		return false;
	*method = head;
	*method_n = (size_t)(sp - head);
	*path = sp + 1;
	*path_n = (size_t)(sp2 - sp - 1);
	for (size_t i = 0; i < *path_n; i++) {
		if ((*path)[i] == '?')
			*path_n = i;
	}
	return true;
}

static bool
is(const char *a, size_t n, const char *b)
{
	return strlen(b) == n && memcmp(a, b, n) == 0;
}

/* body: taken. */
static void
answer(struct kn_http *h, const char *status, const char *type, char *body, size_t n,
    bool with_body)
{
	char *text = NULL;
	int len = -1;

	if (body)
		len = asprintf(&text,
		    "HTTP/1.1 %s\r\nContent-Type: %s\r\nContent-Length: %zu\r\n"
		    "Cache-Control: no-store\r\nConnection: close\r\n\r\n%s",
		    status, type, n, with_body ? body : "");
	free(body);
	if (len < 0) {
		kn_http_close(h);
		return;
	}
	h->answer = text;
	h->n = (size_t)len;
}

static void
respond(struct kn_serve *s, struct kn_http *h)
{
	const char *method, *path, *plain = "text/plain; charset=utf-8";
	size_t method_n, path_n, n = 0;
	bool head;
	char *body;

	if (!parse(h->head, h->got, &method, &method_n, &path, &path_n)) {
		answer(h, "400 Bad Request", plain, strdup("bad request\n"), 12, true);
		return;
	}
	head = is(method, method_n, "HEAD");
	if (!head && !is(method, method_n, "GET")) {
		answer(h, "405 Method Not Allowed\r\nAllow: GET, HEAD", plain,
		    strdup("GET or HEAD\n"), 12, true);
	} else if (is(path, path_n, "/health")) {
		body =
		    asprintf(&body, "%s\n", kn_serve_state_name(s)) < 0 ? NULL : body;
		answer(h,
		    s->state == KN_SERVE_SERVING ? "200 OK" : "503 Service Unavailable",
		    plain, body, body ? strlen(body) : 0, !head);
	} else if (is(path, path_n, "/metrics")) {
		body = kn_serve_metrics(s, &n);
		answer(h, "200 OK", "text/plain; version=0.0.4; charset=utf-8", body, n,
		    !head);
	} else if (is(path, path_n, "/workers") && h->local) {
		body = kn_serve_view(s, &n);
		answer(h, "200 OK", "application/json", body, n, !head);
	} else if (is(path, path_n, "/workers")) {
		answer(h, "403 Forbidden", plain, strdup("on a unix socket only\n"), 22,
		    !head);
	} else {
		answer(h, "404 Not Found", plain, strdup("/health or /metrics\n"), 20,
		    !head);
	}
}

/* ---- its bytes ---- */

static void
take(struct kn_serve *s, struct kn_http *h)
{
	ssize_t r =
	    recv(h->fd, h->head + h->got, sizeof h->head - h->got, MSG_DONTWAIT);

	if (r < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	/* Somebody who speaks something else, as one with tasks, ends here: he is to
	 * know with whom he speaks. */
	if (r == 0 && h->got > 0) {
		respond(s, h);
		return;
	}
	if (r <= 0) {
		kn_http_close(h);
		return;
	}
	h->got += (size_t)r;
	/* With half of the request unread a close would take our answer back. */
	if (memmem(h->head, h->got, "\r\n\r\n", 4) ||
	    memmem(h->head, h->got, "\n\n", 2))
		respond(s, h);
	else if (h->got == sizeof h->head)
		answer(h, "431 Request Header Fields Too Large", "text/plain",
		    strdup("too long\n"), 9, true);
}

void
kn_http_ready(struct kn_serve *s, struct kn_http *h, short revents)
{
	if (h->fd < 0 || !revents)
		return;
	if (!h->answer && revents & (POLLIN | POLLHUP | POLLERR))
		take(s, h);
	while (h->fd >= 0 && h->answer && h->sent < h->n) {
		ssize_t r = send(h->fd, h->answer + h->sent, h->n - h->sent,
		    MSG_DONTWAIT | MSG_NOSIGNAL);

		if (r < 0 && (errno == EAGAIN || errno == EINTR))
			return;
		if (r < 0)
			break;
		h->sent += (size_t)r;
	}
	if (h->fd >= 0 && h->answer)
		kn_http_close(h);
}

/* Its time is up: what came is answered as it is, if that can be done at once. */
static void
give_up(struct kn_serve *s, struct kn_http *h)
{
	if (!h->answer && h->got > 0) {
		respond(s, h);
		kn_http_ready(s, h, POLLOUT);
	}
	kn_http_close(h);
}

uint64_t
kn_http_expire(struct kn_serve *s)
{
	uint64_t now = kn_clock_now(), next = 0;

	for (size_t i = 0; i < KN_HTTP_MOST; i++) {
		struct kn_http *h = &s->http[i];

		/* A request may have come in time while we were stopped. */
		if (h->fd >= 0 && h->by_ns <= now)
			kn_http_ready(s, h, POLLIN | POLLOUT);
		if (h->fd >= 0 && h->by_ns <= now)
			give_up(s, h);
		else if (h->fd >= 0 && (!next || h->by_ns < next))
			next = h->by_ns;
	}
	return next;
}
