/* supervisor/egress_resolve.h: names -> addresses, outside of the sandbox and without
 * ever holding up the loop.
 *
 * Each look-up is a process: the machine's own getent(1), which asks whatever the
 * machine asks (/etc/hosts, DNS, systemd-resolved, a directory). Not getaddrinfo() in a
 * thread: this program is static where it can be, and libc's resolver then loads
 * whatever plug-ins the machine has for its own libc into it; a thread that hangs in
 * one could not be ended, a process can. It has no descriptor of ours but its output, a
 * deadline, and dies with us.
 *
 * Bounded: so many look-ups at a time for each worker and for all; the rest waits in
 * order. Answers are kept for some seconds, failures for fewer.
 */
#ifndef KN_SUPERVISOR_EGRESS_RESOLVE_H
#define KN_SUPERVISOR_EGRESS_RESOLVE_H

#include <stdbool.h>
#include <stdint.h>

#include "ipc/fd.h"
#include "sandbox/net_rule.h"
#include "supervisor/loop.h"

enum {
	KN_RESOLVE_ADDRESSES = 8, /* of one name */
	KN_RESOLVE_PER_WORKER = 2,
	KN_RESOLVE_AT_ONCE = 64,
	KN_RESOLVE_MS = 10000,
	KN_RESOLVE_KEPT = 64,
	KN_RESOLVE_KEEP_MS = 10000,
	KN_RESOLVE_KEEP_BAD_MS = 2000,
};

struct kn_addresses {
	struct kn_net_host v[KN_RESOLVE_ADDRESSES];
	unsigned n; /* 0: there are none */
};

/* Who waits: storage of the caller's, until `done` or kn_resolve_cancel(). */
struct kn_resolve_wait {
	void (*done)(struct kn_resolve_wait *w, const struct kn_addresses *a);
	char name[KN_NET_NAME_MAX + 1];
	uint32_t worker;
	struct kn_resolve_wait *next, **prev;
};

struct kn_lookup;
struct kn_resolver {
	struct kn_loop *loop;
	struct kn_resolve_wait *first; /* in order of arrival */
	struct kn_lookup *running;
	unsigned running_n;
	uint64_t due_ns; /* of the look-ups; 0: none runs */
	int null_fd;
	struct kn_kept {
		char name[KN_NET_NAME_MAX + 1];
		uint64_t until_ns;
		struct kn_addresses a;
	} kept[KN_RESOLVE_KEPT];
	unsigned kept_at;
};

int kn_resolver_open(struct kn_resolver *r, struct kn_loop *l, struct kn_err *e);
void kn_resolver_close(struct kn_resolver *r); /* kills and reaps */
/* done() may be called from inside, if the answer is known. */
void kn_resolve(struct kn_resolver *r, struct kn_resolve_wait *w, const char *name,
    uint32_t worker);
void kn_resolve_cancel(struct kn_resolve_wait *w); /* zero value: nothing */
void kn_resolver_timer(struct kn_resolver *r, uint64_t now_ns);

/* getent's output for `ahosts`: addresses in its order, each once. Exported for tests.
 */
void kn_resolve_read(const char *text, size_t n, struct kn_addresses *out);

#endif
