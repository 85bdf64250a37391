/* supervisor/egress_int.h: what the egress*.c files share; no one else includes it. */
#ifndef KN_SUPERVISOR_EGRESS_INT_H
#define KN_SUPERVISOR_EGRESS_INT_H

#include "supervisor/egress.h"
#include "supervisor/egress_parse.h"
#include "supervisor/egress_resolve.h"
#include "supervisor/egress_tally.h"
#include "supervisor/inner.h"

enum {
	KN_EG_BUFFER = 16 * 1024,
	KN_EG_PER_WORKER = 256, /* connections; more wait to be accepted */
	KN_EG_IN_ALL = 4096,
	KN_EG_ASK_MS = 10 * 1000,
	KN_EG_RESOLVE_MS = 20 * 1000, /* with waiting for one's turn */
	KN_EG_CONNECT_MS = 5 * 1000,  /* an address */
	KN_EG_IDLE_MS = 5 * 60 * 1000,
	KN_EG_REFUSE_MS = 2 * 1000, /* until the client has read why */
	KN_EG_RETRY_MS = 100,	    /* accepting, after we were short of descriptors */
};

_Static_assert(KN_EG_BUFFER >= 2 * KN_ASK_HEAD_MAX && KN_ASK_GROWS < KN_ASK_HEAD_MAX,
    "a head written anew, and what came after it, fit");

enum { KN_EG_CLIENT, KN_EG_REMOTE };
struct kn_eg_side {
	int fd;
	struct kn_watch watch; /* in the loop only while something is wanted of it */
	bool eof;	       /* all that it had to say was read */
	bool shut;	       /* told that there is no more for it */
};
struct kn_eg_buf {
	size_t at, n;
	uint8_t p[KN_EG_BUFFER];
};

enum kn_eg_phase {
	KN_EG_ASK,     /* what does it want? */
	KN_EG_RESOLVE, /* a name, and we wait for its addresses */
	KN_EG_CONNECT,
	KN_EG_RELAY,
	KN_EG_REFUSE, /* it is told why not, and what it says is thrown away */
};
struct kn_eg_conn {
	struct kn_eg_worker *w;
	struct kn_eg_conn *next, **prev;
	enum kn_eg_phase phase;
	struct kn_eg_side side[2];
	bool greeted;
	struct kn_ask ask;
	struct kn_resolve_wait wait;
	struct kn_addresses addr;
	unsigned addr_at;    /* the next to be tried */
	enum kn_net_why why; /* as it stands now */
	int sys;
	uint64_t begun_ns, deadline_ns, serial;
	uint64_t bytes[2];	 /* from CLIENT to the remote, from REMOTE here */
	struct kn_eg_buf buf[2]; /* what came from a side and is not handed on */
};

struct kn_eg_worker {
	struct kn_egress *egress;
	struct kn_sup *sup;
	uint32_t index;
	int listen_fd;
	struct kn_watch watch;
	struct kn_entry *entry; /* whose connections these are */
	struct kn_eg_conn *first;
	unsigned conn_n;
	uint64_t retry_ns; /* accept again then; 0: now */
};

struct kn_egress {
	struct kn_sup *sup;
	struct kn_resolver resolver;
	unsigned per_worker;
	int spare_fd;	 /* given up for accepting when there are no more descriptors */
	uint64_t due_ns; /* nothing is due before; 0: nothing at all */
	uint64_t serial;
	struct kn_net_tally total;
};

/* egress.c */
void kn_eg_due(struct kn_egress *g, uint64_t at_ns);
/* There may be room for another connection. */
void kn_eg_accept_more(struct kn_eg_worker *w);

/* egress_conn.c */
/* fd is consumed. */
void kn_eg_conn_open(struct kn_eg_worker *w, int fd_own);
/* The end: counted, told, freed. reset: the client shall see that it was cut off. */
void kn_eg_conn_end(struct kn_eg_conn *c, bool reset);
/* Its deadline has passed. */
void kn_eg_conn_late(struct kn_eg_conn *c);

/* egress_say.c: why not, into what is for the client. */
void kn_eg_say_no(struct kn_eg_conn *c);

/* egress_pump.c */
/* Hand on what can be; false: c is at its end, *out_reset: by a failure. */
bool kn_eg_pump(struct kn_eg_conn *c, bool *out_reset);
/* REFUSE: write the reply, throw away the rest; false: the end. */
bool kn_eg_pump_refusal(struct kn_eg_conn *c);
/* Append to what is for the other side of `from`; there is room. */
void kn_eg_put(struct kn_eg_conn *c, int from, const void *p, size_t n);
/* Watch each side for what is wanted of it now. -1: it cannot be watched. */
int kn_eg_watch(struct kn_eg_conn *c, kn_watch_fn fn);

#endif
