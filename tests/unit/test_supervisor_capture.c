/* tests/unit/test_supervisor_capture.c: what is kept of a stream, against the stream.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "supervisor/capture.h"
#include "supervisor/task.h"

/* Put n bytes of a known stream in pieces and compare with the stream itself. */
static void
check(uint64_t cap, size_t n, size_t piece)
{
	struct kn_capture out;
	struct kn_cap c;
	char *s = malloc(n + 1);
	size_t head = (size_t)(cap / 2), tail;

	assert_non_null(s);
	for (size_t i = 0; i < n; i++)
		s[i] = (char)(i * 131 + i / 251);
	kn_cap_init(&c, cap);
	for (size_t at = 0; at < n; at += piece)
		kn_cap_put(&c, s + at, n - at < piece ? n - at : piece);
	if (n <= cap) /* a task that writes little costs little */
		assert_true(c.room <= 2 * n + 1024);
	kn_cap_take(&c, &out);
	assert_non_null(out.bytes);
	assert_int_equal(out.total, n);
	assert_int_equal(out.truncated, n > cap);
	assert_int_equal(out.n, n > cap ? cap : n);
	assert_int_equal(out.bytes[out.n], 0);
	if (n <= cap) {
		assert_memory_equal(out.bytes, s, n);
	} else {
		tail = (size_t)cap - head;
		assert_int_equal(out.head_n, head);
		assert_memory_equal(out.bytes, s, head);
		assert_memory_equal(out.bytes + head, s + n - tail, tail);
	}
	free(out.bytes);
	free(s);
}

static void
head_and_tail_are_those_of_the_stream(void **state)
{
	static const uint64_t caps[] = { 1, 2, 3, 7, 64, 1000, 4096, 65536 };
	static const size_t ns[] = { 0, 1, 2, 6, 7, 8, 63, 64, 65, 999, 1000, 1001,
		1500, 4097, 65535, 65536, 65537, 200001 };
	static const size_t pieces[] = { 1, 3, 64, 1000, 65536, 300000 };

	(void)state;
	for (size_t a = 0; a < sizeof caps / sizeof caps[0]; a++)
		for (size_t b = 0; b < sizeof ns / sizeof ns[0]; b++)
			for (size_t d = 0; d < sizeof pieces / sizeof pieces[0]; d++)
				if (ns[b] < 5000 || pieces[d] > 3)
					check(caps[a], ns[b], pieces[d]);
}

static void
nothing_is_kept_under_a_cap_of_zero(void **state)
{
	(void)state;
	check(0, 0, 1);
	check(0, 100, 7);
}

static void
uncapped_keeps_all(void **state)
{
	(void)state;
	check(UINT64_MAX, 3 << 20, 65536);
}

/* A flood costs its cap, not its length. */
static void
a_flood_takes_no_more_room_than_the_cap(void **state)
{
	static char block[65536];
	struct kn_capture out;
	struct kn_cap c;

	(void)state;
	kn_cap_init(&c, 100000);
	for (int i = 0; i < 2000; i++)
		kn_cap_put(&c, block, sizeof block);
	assert_true(c.room <= 100001);
	kn_cap_take(&c, &out);
	assert_int_equal(out.total, 2000ull * sizeof block);
	assert_int_equal(out.n, 100000);
	free(out.bytes);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(head_and_tail_are_those_of_the_stream),
		cmocka_unit_test(nothing_is_kept_under_a_cap_of_zero),
		cmocka_unit_test(uncapped_keeps_all),
		cmocka_unit_test(a_flood_takes_no_more_room_than_the_cap),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
