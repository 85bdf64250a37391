/* cmd/serve_probe.c: serve --probe: ask a server for its health, for those who start it
 * and look after it by running a command in its container, where nothing else is that
 * speaks HTTP to a unix socket.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "cmd/serve_int.h"
#include "ipc/clock.h"
#include "ipc/fd.h"

enum { WAIT_MS = 5000 }; /* /health is answered at once by a server that lives */

/* For the next call on it: what is left of the time. */
static int
limit(int fd, uint64_t by_ns, struct kn_err *e)
{
	int ms = kn_clock_poll_ms(kn_clock_now(), by_ns);
	const struct timeval wait = { .tv_sec = ms / 1000,
		.tv_usec = (suseconds_t)(ms % 1000) * 1000 };

	if (ms <= 0)
		return kn_err_set(e, KN_EK_HOST, "--probe: no answer in time");
	(void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof wait);
	(void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof wait);
	return 0;
}

/* 127.0.0.1:PORT, localhost:PORT or [::1]:PORT, as --http takes them. */
static int
reach_port(const char *addr, uint64_t by_ns, struct kn_err *e)
{
	struct sockaddr_in v4 = { .sin_family = AF_INET };
	struct sockaddr_in6 v6 = { .sin6_family = AF_INET6,
		.sin6_addr = IN6ADDR_LOOPBACK_INIT };
	const char *colon = strrchr(addr, ':');
	unsigned long port = colon ? strtoul(colon + 1, NULL, 10) : 0;
	bool six = strncmp(addr, "[::1]:", 6) == 0;
	int fd, rc;

	if (port < 1 || port > 65535 ||
	    (!six && strncmp(addr, "127.0.0.1:", 10) != 0 &&
		strncmp(addr, "localhost:", 10) != 0))
		return kn_opt_refuse(e,
		    "what --http of the server says: a path with a slash, or "
		    "127.0.0.1:PORT",
		    "--probe: \"%.100s\" is no address", addr);
	v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	v4.sin_port = v6.sin6_port = htons((uint16_t)port);
	fd = socket(six ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd >= 0)
		(void)limit(fd, by_ns, e);
	rc = fd < 0 ? -1
	     : six  ? connect(fd, (const struct sockaddr *)&v6, sizeof v6)
		    : connect(fd, (const struct sockaddr *)&v4, sizeof v4);
	if (rc < 0) {
		kn_err_sys(e, KN_EK_HOST, "--probe: %.100s", addr);
		if (e->sys == ECONNREFUSED)
			kn_err_hint(e,
			    "start a server: knit-sandbox serve --socket PATH --http "
			    "%.100s",
			    addr);
		kn_fd_close(&fd);
	}
	return fd;
}

static int
ask(int fd, char *buf, size_t n, uint64_t by_ns, struct kn_err *e)
{
	static const char request[] = "GET /health HTTP/1.0\r\n\r\n";
	size_t at = 0;
	ssize_t got = 1;

	if (send(fd, request, sizeof request - 1, MSG_NOSIGNAL) !=
	    (ssize_t)sizeof request - 1)
		return kn_err_sys(e, KN_EK_HOST, "--probe: send");
	/* What is no HTTP may keep the connection open, or tell us a byte at a time. */
	while ((at < 7 || memcmp(buf, "HTTP/1.", 7) == 0) && at + 1 < n && got != 0) {
		if (limit(fd, by_ns, e) < 0)
			return -1;
		got = recv(fd, buf + at, n - 1 - at, 0);
		if (got < 0 && errno != EINTR) /* (we were stopped, and go on) */
			break;
		at += got > 0 ? (size_t)got : 0;
	}
	buf[at] = '\0';
	if (got < 0)
		return kn_err_sys(e, KN_EK_HOST, "--probe: no answer");
	if (strncmp(buf, "HTTP/1.", 7) != 0 || at < sizeof "HTTP/1.1 200")
		return kn_err_set(e, KN_EK_HOST, "--probe: what answers is no server");
	return 0;
}

int
kn_serve_probe(const struct kn_serve_opts *o)
{
	char buf[2048], *body, line[256];
	struct kn_err e = { 0 };
	uint64_t by_ns = kn_clock_after_ms(kn_clock_now(), WAIT_MS);
	int fd = strchr(o->probe, '/')
		     ? kn_opt_reach("--probe", o->probe, WAIT_MS / 1000, &e)
		     : reach_port(o->probe, by_ns, &e);
	int n;

	if (fd < 0 || ask(fd, buf, sizeof buf, by_ns, &e) < 0) {
		kn_fd_close(&fd);
		return kn_say_error(NULL, &e);
	}
	kn_fd_close(&fd);
	body = strstr(buf, "\r\n\r\n");
	body = body ? body + 4 : buf + strlen(buf);
	body[strcspn(body, "\r\n")] = '\0';
	n = snprintf(line, sizeof line, "%.200s\n", body);
	if (kn_say_out(NULL, line, (size_t)n) < 0)
		return KN_EXIT_OURS;
	return o->alive || strncmp(buf + 9, "200", 3) == 0 ? KN_EXIT_OK
							   : KN_EXIT_NOT_ALL_OK;
}
