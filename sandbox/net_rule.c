/* sandbox/net_rule.c: see net_rule.h. */
#include "sandbox/net_rule.h"

#include <arpa/inet.h>
#include <string.h>
#include <sys/socket.h>

enum { ADDRESS_TEXT = 64, LABEL_MAX = 63 };

static bool
is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool
is_label_char(char c)
{
	return (c >= 'a' && c <= 'z') || is_digit(c) || c == '-' || c == '_';
}

/* The last label of a name is no number: what looks like "127.1" or "0x7f.1" would be
 * an address to some resolvers (strtoul() with base 0 takes it whole). "448304173f12",
 * as a container is called, is a name. */
static bool
ends_in_number(const char *name)
{
	const char *last = strrchr(name, '.');

	last = last ? last + 1 : name;
	if (last[0] == '0' && last[1] && strchr("xbo", last[1]))
		return !last[2 + strspn(last + 2, "0123456789abcdef")];
	return !last[strspn(last, "0123456789")];
}

static bool
read_name(const char *p, size_t n, char out[KN_NET_NAME_MAX + 1])
{
	size_t label = 0;

	if (n > 0 && p[n - 1] == '.')
		n--;
	if (n == 0 || n > KN_NET_NAME_MAX)
		return false;
	for (size_t i = 0; i < n; i++) {
		char c = p[i];

		if (c >= 'A' && c <= 'Z')
			c = (char)(c - 'A' + 'a');
		if (c == '.' ? label == 0 || p[i - 1] == '-'
			     : !is_label_char(c) || (c == '-' && label == 0))
			return false;
		label = c == '.' ? 0 : label + 1;
		if (label > LABEL_MAX)
			return false;
		out[i] = c;
	}
	out[n] = '\0';
	return label > 0 && p[n - 1] != '-' && !ends_in_number(out);
}

/* An IPv4 address inside of the IPv6 one, at `at`. */
static void
unwrap(const uint8_t *v6, size_t at, struct kn_net_host *out)
{
	kn_net_host_of(AF_INET, v6 + at, out);
}

static bool
is_mapped(const uint8_t *a)
{
	static const uint8_t prefix[12] = { [10] = 0xff, [11] = 0xff };

	return memcmp(a, prefix, sizeof prefix) == 0;
}

void
kn_net_host_of(int family, const uint8_t *addr, struct kn_net_host *out)
{
	memset(out, 0, sizeof *out);
	if (family == AF_INET6 && is_mapped(addr)) {
		unwrap(addr, 12, out);
		return;
	}
	out->family = family;
	memcpy(out->addr, addr, family == AF_INET ? 4 : 16);
	if (!inet_ntop(family, out->addr, out->text, sizeof out->text))
		out->text[0] = '\0'; /* cannot be: there is room */
}

bool
kn_net_host_read(const char *p, size_t n, struct kn_net_host *out)
{
	struct kn_net_host h = { 0 };
	char text[ADDRESS_TEXT];
	uint8_t addr[16];

	if (n > 0 && n < sizeof text && !memchr(p, '\0', n)) {
		memcpy(text, p, n);
		text[n] = '\0';
		if (inet_pton(AF_INET, text, addr) == 1) {
			kn_net_host_of(AF_INET, addr, out);
			return true;
		}
		if (inet_pton(AF_INET6, text, addr) == 1) {
			kn_net_host_of(AF_INET6, addr, out);
			return true;
		}
	}
	if (!read_name(p, n, h.text))
		return false;
	*out = h;
	return true;
}

bool
kn_net_port_read(const char *p, size_t n, uint16_t *out)
{
	unsigned v = 0;

	if (n == 0 || n > 5)
		return false;
	for (size_t i = 0; i < n; i++) {
		if (!is_digit(p[i]))
			return false;
		v = v * 10 + (unsigned)(p[i] - '0');
	}
	if (v == 0 || v > 65535)
		return false;
	*out = (uint16_t)v;
	return true;
}

/* Where HOST ends and PORT begins; brackets are left away. *out_port: NULL if there is
 * none. */
static bool
part(const char *p, size_t n, const char **out_host, size_t *out_host_n,
    const char **out_port, size_t *out_port_n)
{
	const char *end, *colon;

	*out_port = NULL;
	*out_port_n = 0;
	if (n > 0 && p[0] == '[') {
		end = memchr(p, ']', n);
		if (!end || !memchr(p, ':', (size_t)(end - p)))
			return false; /* brackets are for IPv6 */
		*out_host = p + 1;
		*out_host_n = (size_t)(end - p) - 1;
		end++;
		if (end == p + n)
			return true;
		if (*end != ':')
			return false;
		colon = end;
	} else {
		colon = memchr(p, ':', n);
		*out_host = p;
		*out_host_n = colon ? (size_t)(colon - p) : n;
		if (!colon)
			return true;
	}
	*out_port = colon + 1;
	*out_port_n = n - (size_t)(colon + 1 - p);
	return true;
}

bool
kn_net_target_read(
    const char *p, size_t n, uint16_t dflt, struct kn_net_host *out, uint16_t *out_port)
{
	const char *host, *port;
	struct kn_net_host h;
	size_t host_n, port_n;
	uint16_t number = dflt;

	if (!part(p, n, &host, &host_n, &port, &port_n) ||
	    (port ? !kn_net_port_read(port, port_n, &number) : dflt == 0) ||
	    !kn_net_host_read(host, host_n, &h))
		return false;
	*out = h;
	*out_port = number;
	return true;
}

/* ---- rules ---- */

const char *
kn_net_rule_read(const char *text, struct kn_net_rule *out)
{
	static const uint8_t none[16] = { 0 };
	struct kn_net_rule r = { 0 };
	const char *host, *port;
	size_t host_n, port_n;
	bool any_host;

	if (strstr(text, "://") || strchr(text, '/'))
		return "is HOST:PORT, without a scheme or a path";
	if (!part(text, strlen(text), &host, &host_n, &port, &port_n))
		return "is not HOST:PORT, as example.com:443 or [::1]:80";
	if (!port)
		return "needs a port, as example.com:443 (* for any)";
	if (strcmp(port, "*") != 0 && !kn_net_port_read(port, port_n, &r.port))
		return "has a port that is not 1 to 65535 (an IPv6 address stands in "
		       "brackets)";
	any_host = host_n == 1 && host[0] == '*';
	if (any_host)
		return "allows every host: name them, or those below one as "
		       "*.example.com:443 (all of it is /network/mode \"host\")";
	r.below = host_n > 2 && host[0] == '*' && host[1] == '.';
	if (r.below) {
		host += 2;
		host_n -= 2;
	}
	if (!kn_net_host_read(host, host_n, &r.host))
		return "has a host that is neither a name nor an address";
	if (r.below && r.host.family)
		return "has a * before an address";
	if (r.host.family && (memcmp(r.host.addr, none, sizeof none) == 0 ||
				 (r.host.family == AF_INET && r.host.addr[0] >= 224) ||
				 (r.host.family == AF_INET6 && r.host.addr[0] == 0xff)))
		return "has an address that no single host has";
	*out = r;
	return NULL;
}

static bool
same_host(const struct kn_net_rule *r, const struct kn_net_host *h)
{
	size_t rule_n, n;

	if (r->host.family != h->family)
		return false;
	if (h->family)
		return memcmp(r->host.addr, h->addr, sizeof h->addr) == 0;
	if (!r->below)
		return strcmp(r->host.text, h->text) == 0;
	rule_n = strlen(r->host.text);
	n = strlen(h->text);
	return n > rule_n + 1 && h->text[n - rule_n - 1] == '.' &&
	       strcmp(h->text + n - rule_n, r->host.text) == 0;
}

enum kn_net_listed
kn_net_listed(const struct kn_net_rule *rules, size_t n, const struct kn_net_host *host,
    uint16_t port)
{
	enum kn_net_listed best = KN_NET_UNLISTED;

	for (size_t i = 0; i < n; i++) {
		if (!same_host(&rules[i], host))
			continue;
		if (rules[i].port == 0 || rules[i].port == port)
			return KN_NET_LISTED;
		best = KN_NET_OTHER_PORT;
	}
	return best;
}

/* ---- addresses ---- */

struct block {
	uint8_t addr[16];
	unsigned bits;
};

static bool
in_block(const uint8_t *addr, const struct block *b)
{
	unsigned whole = b->bits / 8, rest = b->bits % 8;
	uint8_t mask = (uint8_t)(0xff00u >> rest);

	return memcmp(addr, b->addr, whole) == 0 &&
	       (rest == 0 || ((addr[whole] ^ b->addr[whole]) & mask) == 0);
}

static bool
in_any(const uint8_t *addr, const struct block *b, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (in_block(addr, &b[i]))
			return true;
	return false;
}

/* What IANA lists as not globally reachable, and multicast. */
static const struct block special4[] = {
	{ { 0 }, 8 },		  /* this network */
	{ { 10 }, 8 },		  /* private */
	{ { 100, 64 }, 10 },	  /* shared, behind a carrier's translation */
	{ { 127 }, 8 },		  /* loopback */
	{ { 169, 254 }, 16 },	  /* link-local; a cloud's metadata */
	{ { 172, 16 }, 12 },	  /* private */
	{ { 192, 0, 0 }, 24 },	  /* protocol assignments */
	{ { 192, 0, 2 }, 24 },	  /* documentation */
	{ { 192, 168 }, 16 },	  /* private */
	{ { 198, 18 }, 15 },	  /* benchmarks */
	{ { 198, 51, 100 }, 24 }, /* documentation */
	{ { 203, 0, 113 }, 24 },  /* documentation */
	{ { 224 }, 3 },		  /* multicast, reserved, broadcast */
};
/* Only 2000::/3 is given out; of that, not: */
static const struct block global6 = { { 0x20 }, 3 };
static const struct block special6[] = {
	{ { 0x20, 0x01 }, 23 }, /* protocol assignments, Teredo among them */
	{ { 0x20, 0x01, 0x0d, 0xb8 }, 32 }, /* documentation */
	{ { 0x3f, 0xff }, 20 },		    /* documentation */
};
static const struct block to4 = { { 0x20, 0x02 }, 16 };
static const struct block nat64 = { { 0x00, 0x64, 0xff, 0x9b }, 96 };

bool
kn_net_is_public(const struct kn_net_host *a)
{
	struct kn_net_host inner;

	if (a->family == AF_INET)
		return !in_any(a->addr, special4, sizeof special4 / sizeof *special4);
	if (a->family != AF_INET6)
		return false;
	if (in_block(a->addr, &to4) || in_block(a->addr, &nat64)) {
		unwrap(a->addr, in_block(a->addr, &to4) ? 2 : 12, &inner);
		return kn_net_is_public(&inner);
	}
	return in_block(a->addr, &global6) &&
	       !in_any(a->addr, special6, sizeof special6 / sizeof *special6);
}

bool
kn_net_is_loopback(const struct kn_net_host *a)
{
	static const uint8_t one[16] = { [15] = 1 };

	if (a->family == AF_INET)
		return a->addr[0] == 127;
	return a->family == AF_INET6 && memcmp(a->addr, one, sizeof one) == 0;
}

bool
kn_net_may_reach(const struct kn_net_rule *rules, size_t n,
    const struct kn_net_host *name, uint16_t port, const struct kn_net_host *addr,
    bool is_own)
{
	if (kn_net_listed(rules, n, addr, port) == KN_NET_LISTED)
		return true;
	if (strcmp(name->text, "localhost") == 0)
		return kn_net_is_loopback(addr);
	return !is_own && kn_net_is_public(addr);
}
