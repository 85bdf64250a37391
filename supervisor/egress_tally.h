/* supervisor/egress_tally.h: the connections that a task asked for, counted by host,
 * port and what became of them. Bounded: a task that asks for ever new hosts has the
 * last of them counted together.
 */
#ifndef KN_SUPERVISOR_EGRESS_TALLY_H
#define KN_SUPERVISOR_EGRESS_TALLY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum kn_net_why {
	KN_NET_WENT,	   /* it was made */
	KN_NET_NOT_LISTED, /* not in /network/allow */
	KN_NET_PORT,	   /* the host is, by another port */
	KN_NET_ADDRESS,	   /* the name leads where names may not */
	KN_NET_NO_ADDRESS, /* the name has none, or nobody answered */
	KN_NET_UNREACHED,  /* the address did not take it: sys */
	KN_NET_BAD_ASK,	   /* neither HTTP nor SOCKS5 that could be read */
	KN_NET_SLOW,	   /* it did not say in time what it wants */
	KN_NET_HOST_SHORT, /* we are short of something: sys */
	KN_NET_WHY_N
};

struct kn_net_row {
	char *host; /* "" where none was named */
	uint16_t port;
	enum kn_net_why why;
	int sys;	  /* UNREACHED: the last one's errno */
	char address[46]; /* WENT: of the last one */
	uint64_t n, out_bytes, in_bytes;
};

enum { KN_NET_ROWS_MAX = 64 };
struct kn_net_tally {
	struct kn_net_row *rows;
	size_t row_n, room;
	uint64_t went, refused, out_bytes, in_bytes; /* of all */
	uint64_t unnamed; /* of those the ones that no row has */
};

/* One connection that has ended. Out of memory, or of rows: unnamed. */
struct kn_net_end {
	const char *host, *address;
	uint16_t port;
	enum kn_net_why why;
	int sys;
	uint64_t out_bytes, in_bytes;
};
void kn_net_count(struct kn_net_tally *t, const struct kn_net_end *end);
void kn_net_tally_fini(struct kn_net_tally *t);
/* "not in /network/allow"; UNREACHED with the system's word for sys. */
const char *kn_net_why_text(enum kn_net_why why, int sys, char buf[128]);

#endif
