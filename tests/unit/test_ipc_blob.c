/* tests/unit/test_ipc_blob.c: no bound of a record is taken on trust. */
#include "tests/unit/ipc_test.h"

#include "ipc/blob.h"

static size_t
sample(uint8_t *buf, size_t cap)
{
	struct kn_blob_w w = { buf, cap, 0 };

	kn_blob_u32(&w, 0x01020304);
	kn_blob_u64(&w, 0x1122334455667788ull);
	kn_blob_str(&w, "name");
	kn_blob_str(&w, NULL);
	kn_blob_bytes(&w, "\0\1\2", 3);
	kn_blob_bytes(&w, NULL, 0);
	assert_int_equal(kn_blob_fits(&w), w.n <= cap);
	return w.n;
}

static bool
read_sample(const uint8_t *buf, size_t n)
{
	struct kn_blob_r r = { buf, n, 0, false };
	size_t bytes_n, none_n;
	const void *bytes;
	const char *s, *empty;
	uint32_t a = kn_blob_get_u32(&r);
	uint64_t b = kn_blob_get_u64(&r);

	s = kn_blob_get_str(&r);
	empty = kn_blob_get_str(&r);
	bytes = kn_blob_get_bytes(&r, &bytes_n);
	kn_blob_get_bytes(&r, &none_n);
	if (!kn_blob_done(&r))
		return false;
	assert_int_equal(a, 0x01020304);
	assert_true(b == 0x1122334455667788ull);
	assert_string_equal(s, "name");
	assert_string_equal(empty, "");
	assert_int_equal(bytes_n, 3);
	assert_memory_equal(bytes, "\0\1\2", 3);
	assert_int_equal(none_n, 0);
	return true;
}

static void
what_is_written_is_read(void **state)
{
	uint8_t buf[64];
	size_t n = sample(buf, sizeof buf);

	(void)state;
	assert_int_equal(n, 4 + 8 + (4 + 5) + (4 + 1) + (4 + 3) + 4);
	assert_int_equal(buf[0], 4); /* little-endian on every machine */
	assert_true(read_sample(buf, n));
}

static void
a_record_cut_anywhere_is_bad(void **state)
{
	uint8_t buf[64];
	size_t n = sample(buf, sizeof buf);

	(void)state;
	for (size_t cut = 0; cut < n; cut++) {
		/* On the heap, so that a sanitizer sees a read past the end. */
		uint8_t *p = malloc(cut + 1);
		memcpy(p, buf, cut);
		p = realloc(p, cut ? cut : 1);
		assert_false(read_sample(p, cut));
		free(p);
	}
	assert_false(read_sample(buf, n + 1)); /* and one with something behind it */
}

static void
a_writer_without_room_goes_on_counting_and_writes_nothing_outside(void **state)
{
	uint8_t buf[64], small[20];
	size_t need = sample(buf, sizeof buf);

	(void)state;
	for (size_t cap = 0; cap < sizeof small; cap++) {
		memset(small, 0xee, sizeof small);
		assert_int_equal(sample(small, cap), need);
		for (size_t i = cap; i < sizeof small; i++)
			assert_int_equal(small[i], 0xee);
	}
	assert_int_equal(sample(NULL, 0), need);
}

static void
strings_end_exactly_at_their_nul(void **state)
{
	static const struct {
		uint8_t bytes[8];
		size_t n;
	} bad[] = {
		{ { 0, 0, 0, 0 }, 4 },			   /* no NUL at all */
		{ { 2, 0, 0, 0, 'a', 'b' }, 6 },	   /* not terminated */
		{ { 3, 0, 0, 0, 'a', 0, 0 }, 7 },	   /* ends before the end */
		{ { 3, 0, 0, 0, 0, 'a', 0 }, 7 },	   /* NUL inside */
		{ { 0xff, 0xff, 0xff, 0xff, 'a', 0 }, 6 }, /* longer than the record */
	};

	(void)state;
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		struct kn_blob_r r = { bad[i].bytes, bad[i].n, 0, false };
		assert_string_equal(kn_blob_get_str(&r), "");
		assert_true(r.bad);
	}
}

static void
bad_stays_bad_and_yields_nothing(void **state)
{
	static const uint8_t bytes[] = { 9, 0, 0, 0, 1, 0, 0, 0 };
	struct kn_blob_r r = { bytes, sizeof bytes, 0, false };
	size_t n = 77;

	(void)state;
	assert_null(kn_blob_get_bytes(&r, &n));
	assert_int_equal(n, 0);
	assert_int_equal(kn_blob_get_u32(&r), 0);
	assert_int_equal(kn_blob_get_u64(&r), 0);
	assert_string_equal(kn_blob_get_str(&r), "");
	assert_int_equal(kn_blob_get_count(&r, 1), 0);
	assert_false(kn_blob_done(&r));
}

static void
a_count_that_cannot_fit_is_bad(void **state)
{
	static const uint8_t bytes[] = { 3, 0, 0, 0, 1, 2, 3, 4, 5, 6 };
	static const uint8_t huge[] = { 0xff, 0xff, 0xff, 0xff, 1 };
	struct kn_blob_r fits = { bytes, sizeof bytes, 0, false };
	struct kn_blob_r over = { bytes, sizeof bytes, 0, false };
	struct kn_blob_r lots = { huge, sizeof huge, 0, false };

	(void)state;
	assert_int_equal(kn_blob_get_count(&fits, 2), 3);
	assert_int_equal(kn_blob_get_count(&over, 3), 0);
	assert_true(over.bad);
	assert_int_equal(kn_blob_get_count(&lots, 1), 0);
	assert_true(lots.bad);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_written_is_read),
		cmocka_unit_test(a_record_cut_anywhere_is_bad),
		cmocka_unit_test(
		    a_writer_without_room_goes_on_counting_and_writes_nothing_outside),
		cmocka_unit_test(strings_end_exactly_at_their_nul),
		cmocka_unit_test(bad_stays_bad_and_yields_nothing),
		cmocka_unit_test(a_count_that_cannot_fit_is_bad),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
