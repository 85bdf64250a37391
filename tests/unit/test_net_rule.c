/* tests/unit/test_net_rule.c: what /network/allow takes, and what it allows.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <string.h>
#include <sys/socket.h>

#include <cmocka.h>

#include "sandbox/net_rule.h"

static struct kn_net_host
host(const char *text)
{
	struct kn_net_host h;

	if (!kn_net_host_read(text, strlen(text), &h))
		fail_msg("%s: not read", text);
	return h;
}

static size_t
read_rules(struct kn_net_rule *v, const char *const *texts)
{
	size_t n = 0;

	for (; texts[n]; n++) {
		const char *fault = kn_net_rule_read(texts[n], &v[n]);

		if (fault)
			fail_msg("%s: %s", texts[n], fault);
	}
	return n;
}

static void
names_and_addresses_have_one_form(void **state)
{
	static const struct {
		const char *said, *form;
		int family;
	} good[] = {
		{ "Example.COM", "example.com", 0 },
		{ "example.com.", "example.com", 0 },
		{ "a_b.x-y.z", "a_b.x-y.z", 0 },
		{ "xn--bcher-kva.example", "xn--bcher-kva.example", 0 },
		{ "192.0.2.7", "192.0.2.7", AF_INET },
		{ "2001:DB8:0:0::1", "2001:db8::1", AF_INET6 },
		{ "::ffff:10.1.2.3", "10.1.2.3", AF_INET },
		{ "::ffff:a01:203", "10.1.2.3", AF_INET },
		{ "::", "::", AF_INET6 },
		{ "448304173f12", "448304173f12", 0 },
		{ "a.0x7g", "a.0x7g", 0 },
		{ "3com", "3com", 0 },
	};
	static const char *const bad[] = { "", ".", "a..b", ".a", "-a", "a-", "a.-b",
		"a b", "a/b", "a:b", "a@b", "a%b", "1.2.3", "127.1", "2130706433",
		"0x7f.1", "0x7f000001", "a.0x7F", "a.0x", "0b1", "0o17", "017",
		"1.2.3.4.5", "01.2.3.4", "256.1.1.1", "fe80::1%lo", "[::1]", "a\tb",
		"\xc3\xa4.de", "*", "a.*" };
	char longest[300];
	struct kn_net_host h;

	(void)state;
	for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
		h = host(good[i].said);
		assert_string_equal(h.text, good[i].form);
		assert_int_equal(h.family, good[i].family);
	}
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		if (kn_net_host_read(bad[i], strlen(bad[i]), &h))
			fail_msg("%s: read as %s", bad[i], h.text);
	assert_false(kn_net_host_read("a\0b", 3, &h));
	memset(longest, 'a', sizeof longest);
	assert_false(kn_net_host_read(longest, 64, &h)); /* a label */
	for (size_t i = 50; i < sizeof longest; i += 51)
		longest[i] = '.';
	assert_true(kn_net_host_read(longest, 253, &h));
	assert_int_equal(strlen(h.text), 253);
	assert_false(kn_net_host_read(longest, 254, &h));
}

static void
targets_have_a_host_and_a_port(void **state)
{
	static const char *const bad[] = { "a", "a:", "a:0", "a:65536", "a:1x", "a:+1",
		"a: 1", "a:000080", ":80", "::1:80", "[::1]", "[::1]80",
		"[::1]:", "[a]:80", "[::1:80", "[1.2.3.4]:80", "a:80:90" };
	struct kn_net_host h;
	uint16_t port;

	(void)state;
	assert_true(kn_net_target_read("A.b:65535", 9, 0, &h, &port));
	assert_string_equal(h.text, "a.b");
	assert_int_equal(port, 65535);
	assert_true(kn_net_target_read("[::1]:80", 8, 0, &h, &port));
	assert_string_equal(h.text, "::1");
	assert_true(kn_net_target_read("[::1]", 5, 80, &h, &port));
	assert_true(kn_net_target_read("a.b", 3, 80, &h, &port));
	assert_int_equal(port, 80);
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		if (kn_net_target_read(bad[i], strlen(bad[i]), 0, &h, &port))
			fail_msg("%s: read", bad[i]);
}

static void
what_is_no_rule_is_refused_with_why(void **state)
{
	static const char *const bad[] = { "a", "a:", "*:80", "*:*", "*", "", ":1",
		"http://a:80", "a:80/x", "*.1.2.3.4:80", "*a:80", "a.*.b:80",
		"0.0.0.0:80", "[::]:80", "224.0.0.1:80", "255.255.255.255:1",
		"[ff02::1]:80", "::1:80", "a:http", "*.:80", "1.2.3:4" };
	struct kn_net_rule r;

	(void)state;
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		if (!kn_net_rule_read(bad[i], &r))
			fail_msg("%s: taken", bad[i]);
}

static void
only_what_is_named_is_listed(void **state)
{
	static const char *const texts[] = { "example.com:443", "*.cdn.example:*",
		"10.1.2.3:5432", "[2001:db8::7]:80", NULL };
	static const struct {
		const char *host;
		uint16_t port;
		enum kn_net_listed want;
	} cases[] = {
		{ "example.com", 443, KN_NET_LISTED },
		{ "EXAMPLE.com.", 443, KN_NET_LISTED },
		{ "example.com", 80, KN_NET_OTHER_PORT },
		{ "www.example.com", 443, KN_NET_UNLISTED },
		{ "notexample.com", 443, KN_NET_UNLISTED },
		{ "example.com.evil", 443, KN_NET_UNLISTED },
		{ "a.cdn.example", 1, KN_NET_LISTED },
		{ "a.b.cdn.example", 65535, KN_NET_LISTED },
		{ "cdn.example", 1, KN_NET_UNLISTED },
		{ "acdn.example", 1, KN_NET_UNLISTED },
		{ "10.1.2.3", 5432, KN_NET_LISTED },
		{ "::ffff:10.1.2.3", 5432, KN_NET_LISTED },
		{ "10.1.2.4", 5432, KN_NET_UNLISTED },
		{ "2001:db8:0::7", 80, KN_NET_LISTED },
		{ "2001:db8::8", 80, KN_NET_UNLISTED },
	};
	struct kn_net_rule rules[4];
	size_t n = read_rules(rules, texts);

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct kn_net_host h = host(cases[i].host);

		if (kn_net_listed(rules, n, &h, cases[i].port) != cases[i].want)
			fail_msg("%s:%u", cases[i].host, cases[i].port);
	}
	struct kn_net_host any = host("example.com");
	assert_int_equal(kn_net_listed(NULL, 0, &any, 443), KN_NET_UNLISTED);
}

static void
addresses_that_are_not_of_the_internet(void **state)
{
	static const char *const not_public[] = { "0.0.0.0", "0.1.2.3", "10.0.0.1",
		"100.64.0.1", "100.127.255.255", "127.0.0.1", "127.255.255.254",
		"169.254.169.254", "172.16.0.1", "172.31.255.255", "192.0.0.8",
		"192.0.2.1", "192.168.1.1", "198.18.0.1", "198.19.255.255",
		"198.51.100.1", "203.0.113.1", "224.0.0.1", "240.0.0.1",
		"255.255.255.255", "::", "::1", "::7f00:1", "::ffff:127.0.0.1",
		"64:ff9b::7f00:1", "64:ff9b::a9fe:a9fe", "64:ff9b:1::1", "100::1",
		"2001::1", "2001:db8::1", "2002:7f00:1::", "2002:a9fe:a9fe::1",
		"2002:c0a8:101::1", "3fff::1", "5f00::1", "fc00::1", "fd12:3456::1",
		"fe80::1", "fec0::1", "ff02::1" };
	static const char *const is_public[] = { "1.1.1.1", "9.255.255.255", "11.0.0.0",
		"100.63.255.255", "100.128.0.0", "126.0.0.1", "128.0.0.1",
		"169.253.0.1", "172.15.0.1", "172.32.0.1", "192.0.1.1", "198.17.0.1",
		"198.20.0.1", "223.255.255.255", "2606:4700::1111",
		"2001:4860:4860::8888", "2a00::1", "64:ff9b::101:101",
		"2002:101:101::1" };

	(void)state;
	for (size_t i = 0; i < sizeof not_public / sizeof *not_public; i++) {
		struct kn_net_host h = host(not_public[i]);

		if (kn_net_is_public(&h))
			fail_msg("%s: public", not_public[i]);
	}
	for (size_t i = 0; i < sizeof is_public / sizeof *is_public; i++) {
		struct kn_net_host h = host(is_public[i]);

		if (!kn_net_is_public(&h))
			fail_msg("%s: not public", is_public[i]);
	}
}

static void
a_name_leads_to_public_addresses_and_to_listed_ones(void **state)
{
	static const char *const texts[] = { "db.corp:5432", "10.1.2.3:5432",
		"localhost:80", "site.example:*", NULL };
	static const struct {
		const char *name, *addr;
		uint16_t port;
		bool own, want;
	} cases[] = {
		{ "site.example", "1.1.1.1", 80, false, true },
		{ "site.example", "1.1.1.1", 80, true, false }, /* the machine's own */
		{ "site.example", "127.0.0.1", 80, true, false },
		{ "site.example", "169.254.169.254", 80, false, false },
		{ "site.example", "10.1.2.3", 80, false, false }, /* another port */
		{ "site.example", "10.1.2.3", 5432, false, true },
		{ "site.example", "::1", 80, true, false },
		{ "db.corp", "10.1.2.3", 5432, false, true },
		{ "db.corp", "10.1.2.4", 5432, false, false },
		{ "localhost", "127.0.0.1", 80, true, true },
		{ "localhost", "127.9.9.9", 80, true, true },
		{ "localhost", "::1", 80, true, true },
		{ "localhost", "10.0.0.1", 80, false, false },
		{ "localhost", "1.1.1.1", 80, false, false },
	};
	struct kn_net_rule rules[4];
	size_t n = read_rules(rules, texts);

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct kn_net_host name = host(cases[i].name),
				   addr = host(cases[i].addr);

		if (kn_net_may_reach(rules, n, &name, cases[i].port, &addr,
			cases[i].own) != cases[i].want)
			fail_msg(
			    "%s -> %s:%u", cases[i].name, cases[i].addr, cases[i].port);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_and_addresses_have_one_form),
		cmocka_unit_test(targets_have_a_host_and_a_port),
		cmocka_unit_test(what_is_no_rule_is_refused_with_why),
		cmocka_unit_test(only_what_is_named_is_listed),
		cmocka_unit_test(addresses_that_are_not_of_the_internet),
		cmocka_unit_test(a_name_leads_to_public_addresses_and_to_listed_ones),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
