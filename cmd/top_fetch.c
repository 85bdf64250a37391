/* cmd/top_fetch.c: GET /workers of a server. What answers may be anything. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "cmd/opt.h"
#include "cmd/top.h"
#include "ipc/clock.h"
#include "ipc/err.h"
#include "ipc/fd.h"

enum { WAIT_S = 10, MOST = 32 << 20, CHUNK = 64 << 10 };

static char *
receive(int fd, size_t *out_n, struct kn_err *e)
{
	uint64_t by_ns = kn_clock_after_ms(kn_clock_now(), WAIT_S * 1000);
	size_t n = 0, cap = 0;
	char *buf = NULL, *p;
	ssize_t r = 1;

	while (r > 0) {
		if (cap - n < CHUNK) {
			cap = cap ? 2 * cap : 2 * CHUNK;
			p = cap > MOST ? NULL : realloc(buf, cap);
			if (!p) {
				free(buf);
				kn_err_set(
				    e, KN_EK_HOST, "--socket: too long an answer");
				return NULL;
			}
			buf = p;
		}
		/* One that tells us a byte at a time would keep us for ever. */
		errno = ETIMEDOUT;
		r = kn_clock_now() < by_ns ? recv(fd, buf + n, CHUNK, 0) : -1;
		n += r > 0 ? (size_t)r : 0;
		if (r < 0 && errno == EINTR)
			r = 1; /* we were stopped, and go on */
	}
	if (r < 0) {
		kn_err_sys(e, KN_EK_HOST, "--socket: no answer");
		free(buf);
		return NULL;
	}
	*out_n = n;
	return buf;
}

static json_t *
parse(const char *text, size_t n, struct kn_err *e)
{
	const char *body = memmem(text, n, "\r\n\r\n", 4);
	json_t *doc = NULL;

	if (n > 12 && memcmp(text, "HTTP/1.", 7) == 0 &&
	    memcmp(text + 8, " 200", 4) == 0 && body)
		doc = json_loadb(body + 4, n - (size_t)(body + 4 - text), 0, NULL);
	if (json_is_object(doc) && json_is_array(json_object_get(doc, "pools")))
		return doc;
	json_decref(doc);
	kn_err_set(e, KN_EK_HOST, "--socket: what answers there is no server of ours");
	kn_err_hint(e, "name the --socket of knit-sandbox serve, or its --http path");
	return NULL;
}

json_t *
kn_top_fetch(const char *path, struct kn_err *e)
{
	static const char request[] = "GET /workers HTTP/1.0\r\n\r\n";
	KN_OWN_FD int fd = kn_opt_reach("--socket", path, WAIT_S, e);
	json_t *doc;
	char *text;
	size_t n = 0;

	if (fd < 0)
		return NULL;
	if (send(fd, request, sizeof request - 1, MSG_NOSIGNAL) !=
	    (ssize_t)sizeof request - 1) {
		kn_err_sys(e, KN_EK_HOST, "--socket: send");
		return NULL;
	}
	text = receive(fd, &n, e);
	doc = text ? parse(text, n, e) : NULL;
	free(text);
	return doc;
}
