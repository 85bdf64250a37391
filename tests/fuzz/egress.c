/* tests/fuzz/egress.c: any bytes as what a task says to the egress broker, as a host of
 * a list, as a resolver's answer: never a fault, and what is taken keeps its promises.
 *
 *   clang -fsanitize=fuzzer,address,undefined -DKN_LIBFUZZER ... tests/fuzz/egress.c
 * Without KN_LIBFUZZER: a program that replays the files it is given.
 */
#include <assert.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "supervisor/egress_parse.h"
#include "supervisor/egress_resolve.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

/* One form each, which is read as itself. */
static void
check_host(const struct kn_net_host *h)
{
	struct kn_net_host again;
	size_t n = strlen(h->text);

	assert(n > 0 && n <= KN_NET_NAME_MAX);
	assert(h->text[0] != '-'); /* it becomes an argument of a program */
	for (size_t i = 0; i < n; i++)
		assert(strchr("abcdefghijklmnopqrstuvwxyz0123456789.-_:", h->text[i]));
	assert(kn_net_host_read(h->text, n, &again));
	assert(again.family == h->family && !strcmp(again.text, h->text));
	assert(!memcmp(again.addr, h->addr, sizeof h->addr));
}

/* The head that goes to the server: no word of proxies, one Host, one way to end. */
static void
check_rewritten(const struct kn_ask *a, const uint8_t *p)
{
	size_t room = a->used + KN_ASK_GROWS, n;
	char *out = malloc(room + 1);
	struct kn_ask again;

	assert(out);
	n = kn_ask_rewrite(a, p, out, room);
	assert(n > 0 && n <= room);
	out[n] = '\0';
	assert(strlen(out) == n);
	assert(n >= 4 && !memcmp(out + n - 4, "\r\n\r\n", 4));
	assert(strstr(out, "\r\n\r\n") == out + n - 4);
	assert(strstr(out, "\r\nHost: ") && !strcasestr(out, "\r\nproxy-connection:"));
	/* Sent to us it would be refused: it has no host before its path. */
	kn_ask_read((const uint8_t *)out, n, 0, &again);
	assert(again.kind == KN_ASK_BAD);
	free(out);
}

static void
try_ask(const uint8_t *p, size_t n, int greeted)
{
	struct kn_ask a;

	kn_ask_read(p, n, greeted, &a);
	assert(a.used <= n && a.reply_n <= sizeof a.reply);
	switch (a.kind) {
	case KN_ASK_MORE:
		assert(n < KN_ASK_HEAD_MAX);
		break;
	case KN_ASK_BAD:
		assert(a.why && a.why[0]);
		break;
	case KN_ASK_SOCKS_HELLO:
		assert(!greeted && a.used >= 3 && a.reply_n == 2);
		if (a.used <= n)
			try_ask(p + a.used, n - a.used, 1);
		break;
	case KN_ASK_HTTP:
		assert(a.used <= KN_ASK_HEAD_MAX);
		check_rewritten(&a, p);
		/* fall through */
	case KN_ASK_CONNECT:
	case KN_ASK_SOCKS:
		assert(a.used > 0 && a.port > 0);
		check_host(&a.host);
		break;
	}
}

static void
try_rule(const uint8_t *p, size_t n)
{
	char *text = malloc(n + 1);
	struct kn_net_rule r;

	assert(text);
	memcpy(text, p, n);
	text[n] = '\0';
	if (!kn_net_rule_read(text, &r)) {
		check_host(&r.host);
		assert(!r.below || !r.host.family);
	}
	free(text);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	/* A copy of its own, for the sanitizer's red zone. */
	uint8_t *copy = malloc(n ? n : 1);
	struct kn_addresses a;

	assert(copy);
	memcpy(copy, data, n);
	try_ask(copy, n, 0);
	try_ask(copy, n, 1);
	try_rule(copy, n);
	kn_resolve_read((const char *)copy, n, &a);
	assert(a.n <= KN_RESOLVE_ADDRESSES);
	for (unsigned i = 0; i < a.n; i++)
		check_host(&a.v[i]);
	free(copy);
	return 0;
}

#include "tests/fuzz/replay.h"
