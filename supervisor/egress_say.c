/* supervisor/egress_say.c: telling a client why not, in the tongue that it asked in,
 * with words that a person finds on his terminal.
 */
#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>

#include "supervisor/egress_int.h"

static unsigned
http_status(const struct kn_eg_conn *c)
{
	switch (c->why) {
	case KN_NET_NOT_LISTED:
	case KN_NET_PORT:
	case KN_NET_ADDRESS:
		return 403;
	case KN_NET_BAD_ASK:
		return c->ask.status ? c->ask.status : 400;
	case KN_NET_SLOW:
		return 408;
	case KN_NET_HOST_SHORT:
		return 503;
	case KN_NET_UNREACHED:
		return c->sys == ETIMEDOUT ? 504 : 502;
	case KN_NET_NO_ADDRESS:
	case KN_NET_WENT:
	case KN_NET_WHY_N:
		break;
	}
	return 502;
}

static void
in_http(struct kn_eg_conn *c)
{
	bool v6 = c->ask.host.family == AF_INET6;
	char text[640], head[256], buf[128];
	const char *why = c->why == KN_NET_BAD_ASK && c->ask.why
			      ? c->ask.why
			      : kn_net_why_text(c->why, c->sys, buf);
	int n, head_n;

	if (c->ask.host.text[0])
		n = snprintf(text, sizeof text, "knit-sandbox: %s%s%s:%u: %s\n",
		    v6 ? "[" : "", c->ask.host.text, v6 ? "]" : "", c->ask.port, why);
	else
		n = snprintf(text, sizeof text, "knit-sandbox: %s\n", why);
	head_n = snprintf(head, sizeof head,
	    "HTTP/1.1 %u Refused by the sandbox\r\nContent-Type: text/plain\r\n"
	    "Content-Length: %d\r\nConnection: close\r\n\r\n",
	    http_status(c), n);
	kn_eg_put(c, KN_EG_REMOTE, head, (size_t)head_n);
	kn_eg_put(c, KN_EG_REMOTE, text, (size_t)n);
}

static void
in_socks(struct kn_eg_conn *c)
{
	uint8_t reply[10] = { 5, 1, 0, 1 };

	if (c->why == KN_NET_BAD_ASK && c->ask.reply_n) {
		kn_eg_put(c, KN_EG_REMOTE, c->ask.reply, c->ask.reply_n);
		return;
	}
	if (c->why == KN_NET_NOT_LISTED || c->why == KN_NET_PORT ||
	    c->why == KN_NET_ADDRESS)
		reply[1] = 2; /* not allowed by ruleset */
	else if (c->why == KN_NET_UNREACHED && c->sys == ECONNREFUSED)
		reply[1] = 5;
	else if (c->why == KN_NET_UNREACHED && c->sys == ENETUNREACH)
		reply[1] = 3;
	else if (c->why == KN_NET_UNREACHED || c->why == KN_NET_NO_ADDRESS)
		reply[1] = 4; /* host unreachable */
	else if (c->why == KN_NET_BAD_ASK && c->ask.socks_code)
		reply[1] = c->ask.socks_code;
	kn_eg_put(c, KN_EG_REMOTE, reply, sizeof reply);
}

void
kn_eg_say_no(struct kn_eg_conn *c)
{
	if (c->ask.tongue == KN_TONGUE_HTTP)
		in_http(c);
	else if (c->ask.tongue == KN_TONGUE_SOCKS)
		in_socks(c);
}
