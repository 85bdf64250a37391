/* supervisor/egress_parse.c: see egress_parse.h. */
#include "supervisor/egress_parse.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

enum { SOCKS5 = 5, SOCKS_CONNECT = 1, NO_AUTH = 0, NO_METHOD = 0xff };
enum { ATYP_V4 = 1, ATYP_NAME = 3, ATYP_V6 = 4 };
enum { CODE_NO_COMMAND = 7, CODE_NO_ATYP = 8, CODE_GENERAL = 1 };

static void
bad(struct kn_ask *a, unsigned status, const char *why)
{
	a->kind = KN_ASK_BAD;
	a->status = status;
	a->why = why;
}

/* ---- SOCKS5 (RFC 1928) ---- */

static void
socks_hello(const uint8_t *p, size_t n, struct kn_ask *a)
{
	if (n < 2 || n < 2 + (size_t)p[1])
		return;
	a->used = 2 + (size_t)p[1];
	a->reply[0] = SOCKS5;
	a->reply[1] = NO_METHOD;
	a->reply_n = 2;
	if (p[1] > 0 && memchr(p + 2, NO_AUTH, p[1])) {
		a->kind = KN_ASK_SOCKS_HELLO;
		a->reply[1] = NO_AUTH;
		return;
	}
	bad(a, 0, "SOCKS5 with a password: there is none to give");
}

static void
socks_bad(struct kn_ask *a, uint8_t code, const char *why)
{
	a->socks_code = code;
	bad(a, 0, why);
}

static void
socks_request(const uint8_t *p, size_t n, struct kn_ask *a)
{
	size_t addr_n, at = 4;

	if (n < 5)
		return;
	if (p[0] != SOCKS5 || p[2] != 0) {
		socks_bad(a, CODE_GENERAL, "not a SOCKS5 request");
		return;
	}
	if (p[1] != SOCKS_CONNECT) {
		socks_bad(a, CODE_NO_COMMAND, "SOCKS5: only CONNECT is there");
		return;
	}
	if (p[3] == ATYP_NAME) {
		addr_n = p[4];
		at = 5;
	} else if (p[3] == ATYP_V4 || p[3] == ATYP_V6) {
		addr_n = p[3] == ATYP_V4 ? 4 : 16;
	} else {
		socks_bad(a, CODE_NO_ATYP, "SOCKS5: an unknown type of address");
		return;
	}
	if (n < at + addr_n + 2)
		return;
	a->used = at + addr_n + 2;
	a->port = (uint16_t)(p[at + addr_n] << 8 | p[at + addr_n + 1]);
	if (p[3] != ATYP_NAME)
		kn_net_host_of(p[3] == ATYP_V4 ? AF_INET : AF_INET6, p + at, &a->host);
	else if (!kn_net_host_read((const char *)p + at, addr_n, &a->host)) {
		socks_bad(a, CODE_GENERAL, "SOCKS5: not the name of a host");
		return;
	}
	if (a->port == 0) {
		socks_bad(a, CODE_GENERAL, "SOCKS5: port 0");
		return;
	}
	a->kind = KN_ASK_SOCKS;
}

/* ---- HTTP/1 (RFC 9112) ---- */

static bool
is_token(uint8_t c)
{
	return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') ||
	       (c >= 'a' && c <= 'z') || (c && strchr("!#$%&'*+-.^_`|~", c));
}

/* Bytes of the head with the empty line that ends it; 0: it is not all there. */
static size_t
head_length(const uint8_t *p, size_t n)
{
	const uint8_t *end = n < 4 ? NULL : memmem(p, n, "\r\n\r\n", 4);

	return end ? (size_t)(end - p) + 4 : 0;
}

/* One line at p: its length without the end, or -1: something in it ends lines for some
 * readers and not for others. There is an end. */
static ptrdiff_t
line_length(const uint8_t *p, size_t n)
{
	const uint8_t *end = memmem(p, n, "\r\n", 2);
	size_t len = end ? (size_t)(end - p) : 0;

	if (!end || memchr(p, '\n', len) || memchr(p, '\r', len) ||
	    memchr(p, '\0', len))
		return -1;
	return (ptrdiff_t)len;
}

/* Every field is NAME:VALUE, and none goes on in the next line. */
static bool
fields_are_plain(const uint8_t *p, size_t n)
{
	while (n > 2) {
		ptrdiff_t len = line_length(p, n);
		const uint8_t *colon = len > 0 ? memchr(p, ':', (size_t)len) : NULL;

		if (!colon || colon == p)
			return false;
		for (const uint8_t *c = p; c < colon; c++)
			if (!is_token(*c))
				return false;
		p += len + 2;
		n -= (size_t)len + 2;
	}
	return n == 2;
}

static void
http_target(
    const uint8_t *p, const char *target, size_t n, bool connect, struct kn_ask *a)
{
	static const char scheme[] = "http://";
	const size_t scheme_n = sizeof scheme - 1;
	size_t host_n;

	if (connect) {
		if (!kn_net_target_read(target, n, 0, &a->host, &a->port))
			bad(a, 400, "CONNECT needs HOST:PORT");
		else
			a->kind = KN_ASK_CONNECT;
		return;
	}
	if (n < scheme_n || strncasecmp(target, scheme, scheme_n) != 0) {
		bad(a, 400, "this is a proxy: it needs CONNECT, or an http:// address");
		return;
	}
	target += scheme_n;
	n -= scheme_n;
	for (host_n = 0; host_n < n && !strchr("/?#", target[host_n]); host_n++)
		;
	if (!kn_net_target_read(target, host_n, 80, &a->host, &a->port)) {
		bad(a, 400, "the address has no host that could be read");
		return;
	}
	a->path_at = (size_t)((const uint8_t *)target - p) + host_n;
	a->path_n = n - host_n;
	a->kind = KN_ASK_HTTP;
}

/* METHOD TARGET HTTP/1.x, and the fields after it. */
static void
http(const uint8_t *p, size_t n, struct kn_ask *a)
{
	size_t head = head_length(p, n < KN_ASK_HEAD_MAX ? n : KN_ASK_HEAD_MAX);
	const uint8_t *method_end, *version;
	ptrdiff_t len;

	if (head == 0) {
		if (n >= KN_ASK_HEAD_MAX)
			bad(a, 431, "the request's head is longer than 8 KiB");
		return;
	}
	a->used = head;
	len = line_length(p, head);
	method_end = len > 0 ? memchr(p, ' ', (size_t)len) : NULL;
	version = len > 0 ? memrchr(p, ' ', (size_t)len) : NULL;
	if (!method_end || method_end == p || version <= method_end + 1 ||
	    p + len - version != 9 || memcmp(version, " HTTP/1.", 8) != 0 ||
	    (version[8] != '0' && version[8] != '1')) {
		bad(a, 400, "not a request of HTTP/1");
		return;
	}
	for (const uint8_t *c = p; c < version; c++) {
		if (c < method_end ? !is_token(*c)
				   : c > method_end && (*c <= ' ' || *c >= 0x7f)) {
			bad(a, 400, "not a request of HTTP/1");
			return;
		}
	}
	a->line_n = (size_t)len + 2;
	if (!fields_are_plain(p + a->line_n, head - a->line_n)) {
		bad(a, 400, "a field of the request's head is not NAME: VALUE");
		return;
	}
	http_target(p, (const char *)method_end + 1, (size_t)(version - method_end) - 1,
	    method_end - p == 7 && memcmp(p, "CONNECT", 7) == 0, a);
}

void
kn_ask_read(const uint8_t *p, size_t n, int greeted, struct kn_ask *out)
{
	memset(out, 0, sizeof *out);
	if (n == 0)
		return;
	if (greeted || p[0] == SOCKS5) {
		out->tongue = KN_TONGUE_SOCKS;
		if (greeted)
			socks_request(p, n, out);
		else
			socks_hello(p, n, out);
	} else if (is_token(p[0])) {
		out->tongue = KN_TONGUE_HTTP;
		http(p, n, out);
	} else {
		bad(out, 0,
		    p[0] == 4 ? "SOCKS4: SOCKS5 and HTTP are there"
			      : "neither HTTP nor SOCKS5");
	}
}

/* ---- writing a head anew ---- */

struct text {
	char *p;
	size_t n, room;
};

static void
put(struct text *t, const void *p, size_t n)
{
	if (t->n + n <= t->room)
		memcpy(t->p + t->n, p, n);
	t->n += n;
}

static void
put_str(struct text *t, const char *s)
{
	put(t, s, strlen(s));
}

/* Between us and the client only, or written by us. */
static bool
is_ours(const uint8_t *name, size_t n)
{
	static const char *const names[] = { "Host", "Connection", "Proxy-Connection",
		"Proxy-Authorization", "Keep-Alive" };

	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (n == strlen(names[i]) &&
		    strncasecmp((const char *)name, names[i], n) == 0)
			return true;
	return false;
}

static void
put_host(struct text *t, const struct kn_ask *a)
{
	bool v6 = a->host.family == AF_INET6;
	char port[8];

	put_str(t, v6 ? "Host: [" : "Host: ");
	put_str(t, a->host.text);
	put_str(t, v6 ? "]" : "");
	if (a->port != 80) {
		snprintf(port, sizeof port, ":%u", a->port);
		put_str(t, port);
	}
	put_str(t, "\r\nConnection: close\r\n");
}

size_t
kn_ask_rewrite(const struct kn_ask *a, const uint8_t *head, char *out, size_t room)
{
	struct text t = { out, 0, room };
	const uint8_t *space = memchr(head, ' ', a->line_n), *p = head + a->line_n;
	const uint8_t *path = head + a->path_at, *end = head + a->used - 2;
	const uint8_t *hash = memchr(path, '#', a->path_n);

	put(&t, head, (size_t)(space - head) + 1);
	if (a->path_n == 0 || *path != '/')
		put_str(&t, "/");
	put(&t, path, hash ? (size_t)(hash - path) : a->path_n);
	put(&t, head + a->line_n - 11, 11); /* " HTTP/1.x" and its end */
	put_host(&t, a);
	while (p < end) {
		ptrdiff_t len = line_length(p, (size_t)(end - p));
		const uint8_t *colon = len < 0 ? NULL : memchr(p, ':', (size_t)len);

		if (!colon)
			return 0; /* cannot be: all was looked at */
		if (!is_ours(p, (size_t)(colon - p)))
			put(&t, p, (size_t)len + 2);
		p += len + 2;
	}
	put_str(&t, "\r\n");
	return t.n <= room ? t.n : 0;
}
