/* tests/unit/test_egress_parse.c: what a task says to the egress broker: every form
 * that is understood, byte by byte, and every form that is not; what is counted of it;
 * and what a resolver's answer is read as.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "supervisor/egress_parse.h"
#include "supervisor/egress_resolve.h"
#include "supervisor/egress_tally.h"

static struct kn_ask ask;

static enum kn_ask_kind
said(const void *p, size_t n, int greeted)
{
	kn_ask_read(p, n, greeted, &ask);
	return ask.kind;
}

/* Of every beginning nothing is made but MORE, and of the whole what `kind` says. */
static void
expect_whole(const void *p, size_t n, int greeted, enum kn_ask_kind kind)
{
	for (size_t i = 0; i < n; i++)
		if (said(p, i, greeted) != KN_ASK_MORE)
			fail_msg("%zu of %zu bytes are taken for kind %d", i, n,
			    (int)ask.kind);
	assert_int_equal(said(p, n, greeted), kind);
	assert_int_equal(ask.used, n);
	/* What follows is not its. */
	char more[512];
	memcpy(more, p, n);
	memcpy(more + n, "\r\n\r\nGET", 7);
	assert_int_equal(said(more, n + 7, greeted), kind);
	assert_int_equal(ask.used, n);
}

static void
expect_http(const char *text, enum kn_ask_kind kind, const char *host, uint16_t port)
{
	expect_whole(text, strlen(text), 0, kind);
	assert_int_equal(ask.tongue, KN_TONGUE_HTTP);
	assert_string_equal(ask.host.text, host);
	assert_int_equal(ask.port, port);
}

static void
http_requests(void **state)
{
	(void)state;
	expect_http(
	    "CONNECT a.b:443 HTTP/1.1\r\nHost: x\r\n\r\n", KN_ASK_CONNECT, "a.b", 443);
	expect_http("CONNECT [::1]:1 HTTP/1.0\r\n\r\n", KN_ASK_CONNECT, "::1", 1);
	expect_http("GET http://A.b/p HTTP/1.1\r\n\r\n", KN_ASK_HTTP, "a.b", 80);
	expect_http("PUT HTTP://a.b:8080?q HTTP/1.1\r\n\r\n", KN_ASK_HTTP, "a.b", 8080);
	expect_http("GET http://[::1] HTTP/1.1\r\nA:\r\n\r\n", KN_ASK_HTTP, "::1", 80);
}

static void
http_that_is_none(void **state)
{
	static const char *const bad[] = { "GET / HTTP/1.1\r\n\r\n",
		"GET http://a HTTP/1.1\nHost: a\n\r\n\r\n",
		"GET http://a HTTP/1.2\r\n\r\n", "GET http://a HTTP/2.0\r\n\r\n",
		"GET http://a\r\n\r\n", "GET  http://a HTTP/1.1\r\n\r\n",
		"GET http://a b HTTP/1.1\r\n\r\n", "G(T http://a HTTP/1.1\r\n\r\n",
		"GET https://a/ HTTP/1.1\r\n\r\n", "GET ftp://a/ HTTP/1.1\r\n\r\n",
		"GET http:///x HTTP/1.1\r\n\r\n", "GET http://u:p@a/ HTTP/1.1\r\n\r\n",
		"GET http://a:0/ HTTP/1.1\r\n\r\n", "GET http://a\\b/ HTTP/1.1\r\n\r\n",
		"GET http://a/\x7f HTTP/1.1\r\n\r\n", "CONNECT a HTTP/1.1\r\n\r\n",
		"CONNECT http://a:1 HTTP/1.1\r\n\r\n", "CONNECT a:1/ HTTP/1.1\r\n\r\n",
		"CONNECT *:1 HTTP/1.1\r\n\r\n", "GET http://a HTTP/1.1\r\nA b\r\n\r\n",
		"GET http://a HTTP/1.1\r\n folded: x\r\n\r\n",
		"GET http://a HTTP/1.1\r\nA : x\r\n\r\n",
		"GET http://a HTTP/1.1\r\nA: x\ry\r\n\r\n",
		"GET http://a HTTP/1.1\r\nA: x\ny: z\r\n\r\n",
		"GET http://a HTTP/1.1\r\n: x\r\n\r\n", "GET\r\n\r\n" };
	static const char zero[] = "GET http://a HTTP/1.1\r\nA: \0\r\n\r\n";
	char big[KN_ASK_HEAD_MAX + 1];

	(void)state;
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		if (said(bad[i], strlen(bad[i]), 0) != KN_ASK_BAD ||
		    ask.status != 400 || !ask.why)
			fail_msg("taken: %s", bad[i]);
	}
	assert_int_equal(said(zero, sizeof zero - 1, 0), KN_ASK_BAD);
	memset(big, 'a', sizeof big);
	assert_int_equal(said(big, KN_ASK_HEAD_MAX - 1, 0), KN_ASK_MORE);
	assert_int_equal(said(big, KN_ASK_HEAD_MAX, 0), KN_ASK_BAD);
	assert_int_equal(ask.status, 431);
	for (int c = 0; c < 256; c++) { /* what begins nothing ends it */
		uint8_t b = (uint8_t)c;

		if (said(&b, 1, 0) == KN_ASK_MORE)
			assert_int_equal(
			    ask.tongue, c == 5 ? KN_TONGUE_SOCKS : KN_TONGUE_HTTP);
		else
			assert_int_equal(ask.tongue, KN_TONGUE_NONE);
	}
}

static void
expect_head(const char *in, const char *want)
{
	char out[2048];
	size_t n;

	said(in, strlen(in), 0);
	assert_int_equal(ask.kind, KN_ASK_HTTP);
	n = kn_ask_rewrite(&ask, (const uint8_t *)in, out, ask.used + KN_ASK_GROWS);
	assert_true(n > 0);
	out[n] = '\0';
	assert_string_equal(out, want);
	assert_int_equal(kn_ask_rewrite(&ask, (const uint8_t *)in, out, n - 1), 0);
}

static void
a_head_is_written_anew(void **state)
{
	(void)state;
	expect_head("GET http://A.b/p?q HTTP/1.1\r\nHost: other\r\nX: y\r\n"
		    "proxy-connection: keep-alive\r\nConnection: keep-alive\r\n"
		    "Proxy-Authorization: z\r\nContent-Length: 3\r\n\r\nabc",
	    "GET /p?q HTTP/1.1\r\nHost: a.b\r\nConnection: close\r\nX: y\r\n"
	    "Content-Length: 3\r\n\r\n");
	expect_head("GET http://a.b:81 HTTP/1.0\r\n\r\n",
	    "GET / HTTP/1.0\r\nHost: a.b:81\r\nConnection: close\r\n\r\n");
	expect_head("GET http://[::1]?x#frag HTTP/1.1\r\n\r\n",
	    "GET /?x HTTP/1.1\r\nHost: [::1]\r\nConnection: close\r\n\r\n");
	expect_head("GET http://a/http://b/ HTTP/1.1\r\n\r\n",
	    "GET /http://b/ HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
}

static void
socks(void **state)
{
	static const uint8_t hello[] = { 5, 2, 1, 0 },
			     name[] = { 5, 1, 0, 3, 3, 'A', '.', 'b', 1, 187 };
	static const uint8_t v4[] = { 5, 1, 0, 1, 127, 0, 0, 1, 0, 80 };
	static const uint8_t v6[] = { 5, 1, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 255,
		255, 10, 1, 2, 3, 0, 80 };
	uint8_t b[sizeof name];

	(void)state;
	expect_whole(hello, sizeof hello, 0, KN_ASK_SOCKS_HELLO);
	assert_memory_equal(ask.reply, "\5\0", 2);
	expect_whole(name, sizeof name, 1, KN_ASK_SOCKS);
	assert_string_equal(ask.host.text, "a.b");
	assert_int_equal(ask.port, 443);
	expect_whole(v4, sizeof v4, 1, KN_ASK_SOCKS);
	assert_string_equal(ask.host.text, "127.0.0.1");
	expect_whole(v6, sizeof v6, 1, KN_ASK_SOCKS);
	assert_string_equal(ask.host.text, "10.1.2.3"); /* as the kernel takes it */

	assert_int_equal(said("\5\1\2", 3, 0), KN_ASK_BAD); /* a password only */
	assert_memory_equal(ask.reply, "\5\377", 2);
	assert_int_equal(said("\5\0", 2, 0), KN_ASK_BAD);
	for (unsigned cmd = 0; cmd < 256; cmd++) {
		memcpy(b, name, sizeof b);
		b[1] = (uint8_t)cmd;
		if ((said(b, sizeof b, 1) == KN_ASK_SOCKS) != (cmd == 1))
			fail_msg("command %u", cmd);
		assert_int_equal(ask.socks_code, cmd == 1 ? 0 : 7);
	}
	memcpy(b, name, sizeof b);
	b[3] = 2;
	assert_int_equal(said(b, sizeof b, 1), KN_ASK_BAD);
	assert_int_equal(ask.socks_code, 8);
	memcpy(b, name, sizeof b);
	b[8] = b[9] = 0; /* port 0 */
	assert_int_equal(said(b, sizeof b, 1), KN_ASK_BAD);
	memcpy(b, name, sizeof b);
	b[6] = 0; /* in the name */
	assert_int_equal(said(b, sizeof b, 1), KN_ASK_BAD);
	memcpy(b, name, sizeof b);
	b[0] = 4;
	assert_int_equal(said(b, sizeof b, 1), KN_ASK_BAD);
}

static void
connections_are_counted_by_what_became_of_them(void **state)
{
	struct kn_net_tally t = { 0 };
	struct kn_net_end e = { .host = "a.b",
		.address = "1.1.1.1",
		.port = 80,
		.out_bytes = 3,
		.in_bytes = 5 };
	char name[16], buf[128];

	(void)state;
	kn_net_count(&t, &e);
	kn_net_count(&t, &e);
	e.why = KN_NET_UNREACHED;
	e.sys = ECONNREFUSED;
	e.out_bytes = e.in_bytes = 0;
	kn_net_count(&t, &e);
	assert_int_equal(t.row_n, 2);
	assert_int_equal(t.rows[0].n, 2);
	assert_int_equal(t.rows[0].in_bytes, 10);
	assert_int_equal(t.went, 2);
	assert_int_equal(t.refused, 1);
	assert_string_equal(kn_net_why_text(t.rows[1].why, t.rows[1].sys, buf),
	    "could not be reached: Connection refused");
	for (int i = 0; i < 100; i++) {
		snprintf(name, sizeof name, "h%d", i);
		e.host = name;
		kn_net_count(&t, &e);
	}
	assert_int_equal(t.row_n, KN_NET_ROWS_MAX);
	assert_int_equal(t.unnamed, 102 - KN_NET_ROWS_MAX);
	assert_int_equal(t.refused, 101);
	kn_net_tally_fini(&t);
	for (int i = 0; i < KN_NET_WHY_N; i++)
		assert_non_null(kn_net_why_text((enum kn_net_why)i, 0, buf));
}

static void
answers_of_a_resolver(void **state)
{
	static const char text[] =
	    "127.0.0.1       STREAM localhost\n"
	    "127.0.0.1       DGRAM  \n127.0.0.1 RAW\n"
	    "not-an-address STREAM x\n\n::1             STREAM x\n"
	    "::ffff:127.0.0.1 STREAM again\nfe80::1%lo STREAM no\n"
	    "10.0.0.1";
	char many[1024];
	size_t n = 0;
	struct kn_addresses a;

	(void)state;
	kn_resolve_read(text, sizeof text - 1, &a);
	assert_int_equal(a.n, 3);
	assert_string_equal(a.v[0].text, "127.0.0.1");
	assert_string_equal(a.v[1].text, "::1");
	assert_string_equal(a.v[2].text, "10.0.0.1");
	for (int i = 0; i < 20; i++)
		n += (size_t)snprintf(many + n, sizeof many - n, "10.0.0.%d X\n", i);
	kn_resolve_read(many, n, &a);
	assert_int_equal(a.n, KN_RESOLVE_ADDRESSES);
	kn_resolve_read("", 0, &a);
	assert_int_equal(a.n, 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(http_requests),
		cmocka_unit_test(http_that_is_none),
		cmocka_unit_test(a_head_is_written_anew),
		cmocka_unit_test(socks),
		cmocka_unit_test(connections_are_counted_by_what_became_of_them),
		cmocka_unit_test(answers_of_a_resolver),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
