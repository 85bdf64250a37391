/* supervisor/egress.h: the egress broker: with /network/mode "allow", the one way out
 * of a sandbox.
 *
 * Each worker's own network has a loopback and nothing else. The stub leaves us a
 * listening socket there (sandbox/stub/egress.h); we accept on it, read what is asked
 * for (egress_parse.h), hold it against /network/allow, resolve the name out here,
 * check the address, and connect to that very address. A connection belongs to the task
 * that the worker runs; in this mode a worker is given one task at a time, so that
 * there is never a doubt. When the task ends its connections are closed, and those that
 * nobody had accepted yet too.
 *
 *   egress.c          listeners, whose connections these are, time
 *   egress_conn.c     one connection, from what it asks to the address
 *   egress_pump.c     bytes both ways
 *   egress_say.c      why not
 *   egress_parse.c    hostile bytes -> what is asked for
 *   egress_resolve.c  names -> addresses
 *   egress_tally.c    counting
 */
#ifndef KN_SUPERVISOR_EGRESS_H
#define KN_SUPERVISOR_EGRESS_H

#include <stdint.h>

struct kn_entry;
struct kn_err;
struct kn_net_tally;
struct kn_sup;
struct kn_wk;

/* Mode allow: after the loop is open, before a worker is launched. */
int kn_egress_open(struct kn_sup *s, struct kn_err *e);
void kn_egress_close(struct kn_sup *s);
/* The listening socket of w's stub; consumed. 0, or -1 and what is wrong with it. */
int kn_egress_listener(struct kn_wk *w, int fd_own, const char **out_field);
/* w's connections are e's from now on; and no more. */
void kn_egress_task(struct kn_wk *w, struct kn_entry *e);
void kn_egress_task_end(struct kn_wk *w, const struct kn_entry *e);
/* The worker is gone, or going. */
void kn_egress_release(struct kn_wk *w);
uint64_t kn_egress_due(const struct kn_sup *s); /* 0: never */
void kn_egress_timer(struct kn_sup *s, uint64_t now_ns);
/* All that was asked for in this pool; NULL: another mode. */
const struct kn_net_tally *kn_egress_total(const struct kn_sup *s);

#endif
