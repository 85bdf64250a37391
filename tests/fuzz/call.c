/* tests/fuzz/call.c: any bytes as what a module answers with: a value of each type, an
 * error with its causes; and as the record of a resident. Never a fault; what is taken
 * is what it is said to be.
 *
 *   clang -fsanitize=fuzzer,address,undefined -DKN_LIBFUZZER ... tests/fuzz/call.c
 * Without KN_LIBFUZZER: a program that replays the files it is given.
 */
#include <assert.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ipc/call.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

/* What was taken is taken again when it is sent on, and means the same. */
static void
try_error(const uint8_t *data, size_t n)
{
	static uint8_t again[KN_CALL_CAUSES * 3 * (KN_CALL_ERROR_TEXT + 8) + 8];
	struct kn_call_error e, f;
	size_t m;

	if (kn_call_error_decode(data, n, &e) < 0) {
		assert(!kn_value_check(KN_TYPE_ERROR, data, n));
		return;
	}
	assert(e.n >= 1 && e.n <= KN_CALL_CAUSES);
	m = kn_call_error_encode(&e, again, sizeof again);
	assert(m <= sizeof again);
	assert(kn_call_error_decode(again, m, &f) == 0 && f.n == e.n);
	for (uint32_t i = 0; i < e.n; i++) {
		assert(strlen(e.link[i].name) <= KN_CALL_ERROR_TEXT);
		assert(!strcmp(e.link[i].name, f.link[i].name));
		assert(!strcmp(e.link[i].message, f.link[i].message));
		assert(!strcmp(e.link[i].detail, f.link[i].detail));
	}
}

/* Held against a slower reading of the rule. */
static bool
is_utf8(const uint8_t *p, size_t n)
{
	for (size_t at = 0; at < n;) {
		uint32_t c = p[at++];
		int more = c < 0x80   ? 0
			   : c < 0xc0 ? -1
			   : c < 0xe0 ? 1
			   : c < 0xf0 ? 2
				      : 3;
		uint32_t least[] = { 0, 0x80, 0x800, 0x10000 };

		if (more < 0 || c >= 0xf8 || n - at < (size_t)more)
			return false;
		c &= more ? 0x3fu >> more : 0x7fu;
		for (int i = 0; i < more; i++) {
			if ((p[at] & 0xc0) != 0x80)
				return false;
			c = c << 6 | (p[at++] & 0x3f);
		}
		if (c < least[more] || c > 0x10ffff || (c >= 0xd800 && c < 0xe000))
			return false;
	}
	return true;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	/* A copy of its own, for the sanitizer's red zone. */
	uint8_t *copy = malloc(n ? n : 1);
	struct kn_resident r;

	assert(copy);
	memcpy(copy, data, n);
	try_error(copy, n);
	for (uint32_t type = 0; type <= KN_TYPE_N; type++)
		(void)kn_value_check(type, copy, n);
	assert(kn_value_check(KN_TYPE_TEXT, copy, n) == is_utf8(copy, n));
	if (kn_resident_decode(copy, n, &r) == 0)
		assert(r.slice < r.layout.worker_n && r.module && r.init);
	free(copy);
	return 0;
}

#include "tests/fuzz/replay.h"
