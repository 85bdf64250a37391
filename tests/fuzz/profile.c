/* tests/fuzz/profile.c: any bytes as a seccomp profile of somebody's: one clear error,
 * or programs that the kernel would take and that say what the lists say.
 *
 *   clang -fsanitize=fuzzer,address,undefined -DKN_LIBFUZZER ... tests/fuzz/profile.c
 * Without KN_LIBFUZZER: a program that replays the files it is given.
 */
#include <assert.h>
#include <linux/audit.h>
#include <linux/seccomp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ipc/err.h"
#include "sandbox/filter_int.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

/* Every number by native calls and i386's, with the input itself as arguments. */
static void
compare(
    const struct kn_policy *p, const struct kn_filter *f, const uint8_t *data, size_t n)
{
	struct kn_ftable t;
	struct seccomp_data d = { 0 };
	struct kn_err e = { 0 };
	int rc = kn_ftable_init(&t, p, false, &e);

	assert(rc == 0);
	memcpy(d.args, data, n < sizeof d.args ? n : sizeof d.args);
	for (int i = 0; i < 3 * KN_NR_MAX; i++) {
		uint64_t args[6];
		uint32_t got;

		d.nr = i % KN_NR_MAX + (i / KN_NR_MAX == 1 ? KN_NR_X32 : 0);
		d.arch = i / KN_NR_MAX == 2 ? AUDIT_ARCH_I386 : t.arch;
		memcpy(args, d.args, sizeof args);
		rc = kn_filter_ask(f, &d, &got, &e);
		assert(rc == 0);
		assert(got == kn_ftable_decide(&t, d.arch, (uint32_t)d.nr, args));
	}
	kn_ftable_fini(&t);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	static const char at[] = "/seccomp/profile=";
	char *text = malloc(n + sizeof at);
	struct kn_policy_src src = { .type = KN_SRC_SET, .label = "--set" };
	struct kn_policy *p = NULL;
	struct kn_filter f = { 0 };
	struct kn_err e = { 0 };

	assert(text);
	memcpy(text, at, sizeof at - 1);
	memcpy(text + sizeof at - 1, data, n);
	text[n + sizeof at - 1] = 0;
	src.text = text;
	/* a text would be the name of a file */
	if (n == 0 || data[0] != '{') {
		free(text);
		return 0;
	}
	if (kn_policy_load(&src, 1, &p, &e) < 0) {
		assert(e.kind != KN_EK_NONE && e.msg[0] && !strchr(e.msg, '\n'));
	} else if (kn_filter_build(p, &f, &e) < 0) {
		assert(e.kind == KN_EK_CONFIG && e.msg[0]);
	} else {
		assert(f.worker_n <= 4096 && f.cell_n <= 4096);
		compare(p, &f, data, n);
	}
	kn_filter_fini(&f);
	kn_policy_free(p);
	free(text);
	return 0;
}

#include "tests/fuzz/replay.h"
