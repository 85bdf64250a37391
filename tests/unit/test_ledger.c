/* tests/unit/test_ledger.c: ids are remembered exactly, over any number of them, in
 * memory that does not grow.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "ipc/err.h"
#include "supervisor/ledger.h"

static void
put(struct kn_ledger *l, const char *id, uint8_t state)
{
	struct kn_err e = { 0 };

	if (kn_ledger_put(l, id, strlen(id), state, &e) < 0)
		fail_msg("put %s: %s", id, e.msg);
}

static int
get(struct kn_ledger *l, const char *id)
{
	struct kn_err e = { 0 };
	uint8_t state = 99;

	if (kn_ledger_get(l, id, strlen(id), &state, &e) < 0)
		fail_msg("get %s: %s", id, e.msg);
	return state;
}

static long
resident_kib(void)
{
	char line[256];
	long kib = -1;
	FILE *f = fopen("/proc/self/status", "re");

	assert_non_null(f);
	while (fgets(line, sizeof line, f)) {
		if (sscanf(line, "VmRSS: %ld", &kib) == 1)
			break;
	}
	fclose(f);
	assert_true(kib > 0);
	return kib;
}

/* The reference vectors of the SipHash paper's authors: key 00..0f, input 00..(n-1). */
static void
fingerprint_is_siphash_128(void **state)
{
	static const uint8_t want0[16] = { 0xa3, 0x81, 0x7f, 0x04, 0xba, 0x25, 0xa8,
		0xe6, 0x6d, 0xf6, 0x72, 0x14, 0xc7, 0x55, 0x02, 0x93 };
	static const uint8_t want1[16] = { 0xda, 0x87, 0xc1, 0xd8, 0x6b, 0x99, 0xaf,
		0x44, 0x34, 0x76, 0x59, 0x11, 0x9b, 0x22, 0xfc, 0x45 };
	uint8_t key[16], in[1] = { 0 };
	uint64_t out[2];

	(void)state;
	for (uint8_t i = 0; i < 16; i++)
		key[i] = i;
	kn_ledger_hash(key, in, 0, out);
	assert_memory_equal(out, want0, 16);
	kn_ledger_hash(key, in, 1, out);
	assert_memory_equal(out, want1, 16);
}

static void
unknown_then_known_then_changed(void **state)
{
	struct kn_ledger *l;
	struct kn_err e;

	(void)state;
	assert_int_equal(kn_ledger_open(&l, &e), 0);
	assert_int_equal(get(l, "a"), KN_LEDGER_UNKNOWN);
	put(l, "a", 1);
	assert_int_equal(get(l, "a"), 1);
	put(l, "a", 7);
	assert_int_equal(get(l, "a"), 7);
	assert_int_equal(get(l, "b"), KN_LEDGER_UNKNOWN);
	assert_int_equal(get(l, ""), KN_LEDGER_UNKNOWN);
	assert_int_equal(kn_ledger_count(l), 1);
	kn_ledger_close(l);
}

/* Far beyond the table and through several doublings of the file. */
static void
remembers_every_id_of_a_long_batch(void **state)
{
	enum { N = 100000, WARM = 20000 };
	struct kn_ledger *l;
	struct kn_err e;
	char id[32];
	long before = 0;

	(void)state;
	assert_int_equal(kn_ledger_open(&l, &e), 0);
	for (int i = 0; i < N; i++) {
		snprintf(id, sizeof id, "task-%d", i);
		if (get(l, id) != KN_LEDGER_UNKNOWN)
			fail_msg("%s is known before it was put", id);
		put(l, id, (uint8_t)(1 + i % 200));
		if (i == WARM)
			before = resident_kib();
	}
	assert_true(resident_kib() - before < 1024);
	assert_int_equal(kn_ledger_count(l), N);
	for (int i = 0; i < N; i++) {
		snprintf(id, sizeof id, "task-%d", i);
		if (get(l, id) != 1 + i % 200)
			fail_msg("%s is lost or changed", id);
		snprintf(id, sizeof id, "other-%d", i);
		if (get(l, id) != KN_LEDGER_UNKNOWN)
			fail_msg("%s is known though nobody put it", id);
	}
	kn_ledger_close(l);
}

static void
close_of_nothing_is_fine(void **state)
{
	(void)state;
	kn_ledger_close(NULL);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fingerprint_is_siphash_128),
		cmocka_unit_test(unknown_then_known_then_changed),
		cmocka_unit_test(remembers_every_id_of_a_long_batch),
		cmocka_unit_test(close_of_nothing_is_fine),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
