/* supervisor/egress_parse.h: what a task says to the egress broker before bytes flow:
 * HTTP CONNECT, an HTTP request with the whole address in it, SOCKS5. All bytes are
 * hostile; this is the one place that reads them, and it has no state and no world.
 */
#ifndef KN_SUPERVISOR_EGRESS_PARSE_H
#define KN_SUPERVISOR_EGRESS_PARSE_H

#include <stddef.h>
#include <stdint.h>

#include "sandbox/net_rule.h"

enum {
	KN_ASK_HEAD_MAX = 8192, /* a request's head; whoever needs more is refused */
	/* What a head can grow by when it is written anew for the server. */
	KN_ASK_GROWS = KN_NET_NAME_MAX + 64,
};

enum kn_ask_kind {
	KN_ASK_MORE,	    /* not all there yet */
	KN_ASK_BAD,	    /* *why says what is wrong */
	KN_ASK_SOCKS_HELLO, /* answer with reply[0..reply_n), then go on reading */
	KN_ASK_SOCKS,	    /* a connection to host:port, in SOCKS5 */
	KN_ASK_CONNECT,	    /* the same, by HTTP CONNECT */
	KN_ASK_HTTP,	    /* a request for host:port; its head has to be rewritten */
};
enum kn_ask_tongue { KN_TONGUE_NONE, KN_TONGUE_HTTP, KN_TONGUE_SOCKS };

struct kn_ask {
	enum kn_ask_kind kind;
	enum kn_ask_tongue tongue; /* how to answer, also if BAD */
	size_t used;		   /* bytes that this was; HTTP: the head */
	struct kn_net_host host;
	uint16_t port;
	uint8_t reply[2];   /* SOCKS_HELLO; BAD in SOCKS: a hello's answer, */
	size_t reply_n;	    /* or with 0 here */
	uint8_t socks_code; /* the code of a request's */
	unsigned status;    /* BAD in HTTP: 400, ... */
	const char *why;
	size_t path_at, path_n; /* HTTP: what to ask the server for */
	size_t line_n;		/* HTTP: bytes of the first line, with its end */
};

/* The next thing said, of p[0..n). greeted: the hello of SOCKS is behind us. */
void kn_ask_read(const uint8_t *p, size_t n, int greeted, struct kn_ask *out);
/* HTTP: the head as the server shall have it: path only, its own Host, no word about
 * proxies, and the connection ends with the answer. Returns its length, 0 if it does
 * not fit; room of used + KN_ASK_GROWS always does. */
size_t kn_ask_rewrite(
    const struct kn_ask *a, const uint8_t *head, char *out, size_t room);

#endif
