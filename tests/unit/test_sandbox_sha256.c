/* tests/unit/test_sandbox_sha256.c: the hash by which a report names its policy. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "sandbox/sha256.h"

static void
sha256_gives_the_standards_vectors(void **state)
{
	static const struct {
		const char *text, *hex;
		size_t times;
	} v[] = {
		{ "",
		    "e3b0c44298fc1c149afbf4c8996fb924"
		    "27ae41e4649b934ca495991b7852b855",
		    1 },
		{ "abc",
		    "ba7816bf8f01cfea414140de5dae2223"
		    "b00361a396177a9cb410ff61f20015ad",
		    1 },
		{ "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
		    "248d6a61d20638b8e5c026930c3e6039"
		    "a33ce45964ff2167f6ecedd419db06c1",
		    1 },
		{ "a",
		    "cdc76e5c9914fb9281a1c7e284d73e67"
		    "f1809a48a497200e046d39ccc7112cd0",
		    1000000 },
	};
	(void)state;
	for (size_t i = 0; i < sizeof v / sizeof *v; i++) {
		size_t n = strlen(v[i].text);
		char *data = malloc(n * v[i].times + 1), hex[65];
		uint8_t sum[32];
		for (size_t t = 0; t < v[i].times; t++)
			memcpy(data + t * n, v[i].text, n);
		kn_sha256(data, n * v[i].times, sum);
		for (size_t b = 0; b < 32; b++)
			snprintf(hex + 2 * b, 3, "%02x", sum[b]);
		assert_string_equal(hex, v[i].hex);
		free(data);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sha256_gives_the_standards_vectors),
	};

	return cmocka_run_group_tests_name("sandbox/sha256", tests, NULL, NULL);
}
