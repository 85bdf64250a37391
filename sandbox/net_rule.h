/* sandbox/net_rule.h: the hosts that a policy allows (/network/allow): reading one, and
 * deciding about a host, a port and an address.
 *
 * Also read with these: what a task asks the egress broker for. So a name or an address
 * has one form on both sides, and nothing is compared as text that was not made by us.
 * Pure: no name is resolved here.
 */
#ifndef KN_SANDBOX_NET_RULE_H
#define KN_SANDBOX_NET_RULE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { KN_NET_NAME_MAX = 253 };

/* A host as it was named: a name, or an address. */
struct kn_net_host {
	int family;	  /* 0: a name; AF_INET, AF_INET6 */
	uint8_t addr[16]; /* network order; AF_INET: the first four */
	/* The name in lower case without a dot at its end, or the address as text. */
	char text[KN_NET_NAME_MAX + 1];
};

struct kn_net_rule {
	struct kn_net_host host;
	bool below;    /* "*.NAME": what is below the name, and not itself */
	uint16_t port; /* 0: any */
};

/* n bytes, no brackets around an IPv6 address. An IPv4 address that IPv6 wraps
 * (::ffff:1.2.3.4) is that address. False: neither a name nor an address; *out is
 * untouched. */
bool kn_net_host_read(const char *p, size_t n, struct kn_net_host *out);
/* 1 to 65535, digits only. */
bool kn_net_port_read(const char *p, size_t n, uint16_t *out);
/* HOST:PORT, [IPV6]:PORT; without a port it is dflt (0: then there must be one). */
bool kn_net_target_read(const char *p, size_t n, uint16_t dflt, struct kn_net_host *out,
    uint16_t *out_port);
/* What is wrong with an element of /network/allow, or NULL. */
const char *kn_net_rule_read(const char *text, struct kn_net_rule *out);

/* Of an address, as the kernel would take it (host.text is made). */
void kn_net_host_of(int family, const uint8_t *addr, struct kn_net_host *out);

enum kn_net_listed { KN_NET_LISTED, KN_NET_UNLISTED, KN_NET_OTHER_PORT };
/* Is what was asked for on the list? An address only if it is there itself. */
enum kn_net_listed kn_net_listed(const struct kn_net_rule *rules, size_t n,
    const struct kn_net_host *host, uint16_t port);
/* `name` is on the list: may a connection under it go to this address? To a public one
 * that is not the machine's own (is_own); "localhost" to a loopback address; any other
 * only where the list has that very address and port too. */
bool kn_net_may_reach(const struct kn_net_rule *rules, size_t n,
    const struct kn_net_host *name, uint16_t port, const struct kn_net_host *addr,
    bool is_own);
/* Neither loopback, private, link-local, nor anything else that is not of the internet
 * at large; what an IPv6 address wraps (6to4, NAT64) counts. */
bool kn_net_is_public(const struct kn_net_host *addr);
bool kn_net_is_loopback(const struct kn_net_host *addr);

#endif
