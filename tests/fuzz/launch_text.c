/* tests/fuzz/launch_text.c: any bytes as what a launcher printed before it ended, which
 * is all of its status that is looked at: one clear line comes of it, and a cause that
 * is none of the task's. What ran inside may have printed it.
 *
 *   clang -fsanitize=fuzzer,address,undefined -DKN_LIBFUZZER ...
 * tests/fuzz/launch_text.c Without KN_LIBFUZZER: a program that replays the files it is
 * given.
 */
#include <assert.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ipc/err.h"
#include "sandbox/launch_int.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	static struct kn_host host = { .uid = 1000, .bwrap = "/usr/bin/bwrap" };
	static struct kn_launcher l = {
		.ops = &kn_launch_bwrap, .host = &host, .program = "/usr/bin/bwrap"
	};
	static const int statuses[] = { 0, 1 << 8, 255 << 8, 9, 11 | 128 };
	char *text = malloc(n + 1);

	assert(text);
	memcpy(text, data, n);
	text[n] = 0;
	for (size_t i = 0; i < sizeof statuses / sizeof *statuses; i++) {
		struct kn_err e = { 0 };

		kn_launch_explain(&l, text, statuses[i], &e);
		assert(e.kind == KN_EK_HOST || e.kind == KN_EK_LAUNCH);
		assert(e.msg[0]);
		for (const char *s = e.msg; *s; s++)
			assert((unsigned char)*s >= 0x20 && *s != 0x7f);
		for (const char *s = e.hint; *s; s++)
			assert((unsigned char)*s >= 0x20 && *s != 0x7f);
	}
	free(text);
	return 0;
}

#include "tests/fuzz/replay.h"
