/* tests/unit/test_ipc_call.c: values are held to their type, errors arrive with their
 * causes or are refused, and a resident is told what it was to be told. */
#include "tests/unit/ipc_test.h"

#include <unistd.h>

#include "ipc/call.h"
#include "ipc/job.h"

/* ---- values ---- */

static void
a_value_has_the_size_of_its_type(void **state)
{
	static const struct {
		uint32_t type;
		size_t unit;
		bool many;
	} rows[] = {
		{ KN_TYPE_NULL, 0, false },
		{ KN_TYPE_BOOL, 1, false },
		{ KN_TYPE_I64, 8, false },
		{ KN_TYPE_F64, 8, false },
		{ KN_TYPE_I32S, 4, true },
		{ KN_TYPE_I64S, 8, true },
		{ KN_TYPE_U64S, 8, true },
		{ KN_TYPE_F64S, 8, true },
	};
	static const uint8_t zero[40];

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		for (size_t n = 0; n <= sizeof zero; n++) {
			bool fits =
			    rows[i].many ? n % rows[i].unit == 0 : n == rows[i].unit;

			assert_int_equal(kn_value_check(rows[i].type, zero, n), fits);
		}
	}
	assert_true(kn_value_check(KN_TYPE_BYTES, "\xff\0", 2));
	assert_false(kn_value_check(0, zero, 0));
	assert_false(kn_value_check(KN_TYPE_N, zero, 0));
	assert_false(kn_value_check(UINT32_MAX, zero, 8));
}

static void
a_bool_is_nought_or_one(void **state)
{
	(void)state;
	assert_true(kn_value_check(KN_TYPE_BOOL, "\1", 1));
	for (int v = 2; v < 256; v++) {
		uint8_t b = (uint8_t)v;

		assert_false(kn_value_check(KN_TYPE_BOOL, &b, 1));
	}
}

static bool
text(const char *s, size_t n)
{
	bool is = kn_value_check(KN_TYPE_TEXT, s, n);

	assert_int_equal(kn_value_check(KN_TYPE_JSON, s, n), is);
	return is;
}

static void
text_is_utf8_in_its_shortest_form(void **state)
{
	static const char *const good[] = { "", "plain", "\xc2\x80", "\xdf\xbf",
		"\xe0\xa0\x80", "\xed\x9f\xbf", "\xee\x80\x80", "\xef\xbf\xbf",
		"\xf0\x90\x80\x80", "\xf4\x8f\xbf\xbf", "a long text, then \xc3\xa9" };
	static const char *const bad[] = { "\x80", "\xc0\x80", "\xc1\xbf", "\xc2",
		"\xe0\x9f\xbf", "\xed\xa0\x80", "\xf0\x8f\xbf\xbf", "\xf4\x90\x80\x80",
		"\xf5\x80\x80\x80", "\xff", "\xc3\x28", "\xe2\x82", "a long text, \x80",
		"\xf0\x9f\x98" };
	char buf[64];

	(void)state;
	for (size_t i = 0; i < sizeof good / sizeof good[0]; i++)
		assert_true(text(good[i], strlen(good[i])));
	assert_true(text("a\0b", 3));
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
		assert_false(text(bad[i], strlen(bad[i])));
	/* Wherever it stands, and whatever is looked at together. */
	for (size_t at = 0; at < 40; at++) {
		memset(buf, 'x', sizeof buf);
		buf[at] = (char)0x80;
		assert_false(text(buf, 40));
		memcpy(buf + at, "\xc3\xa9", 2);
		assert_true(text(buf, 42));
		assert_false(text(buf, at + 1));
	}
}

static void
every_type_has_a_name_of_its_own(void **state)
{
	(void)state;
	for (int i = 1; i < KN_TYPE_N; i++) {
		assert_string_not_equal(kn_type_name((enum kn_type)i), "unknown type");
		for (int j = 1; j < i; j++)
			assert_string_not_equal(kn_type_name((enum kn_type)i),
			    kn_type_name((enum kn_type)j));
	}
	assert_string_equal(kn_type_name((enum kn_type)0), "unknown type");
	assert_string_equal(kn_type_name(KN_TYPE_N), "unknown type");
}

/* ---- errors ---- */

static struct kn_call_error
chain(uint32_t n)
{
	struct kn_call_error e = { .n = n };

	for (uint32_t i = 0; i < n && i < KN_CALL_CAUSES; i++) {
		e.link[i].name = i == 0 ? "Outer" : "Inner";
		e.link[i].message = "m\xc3\xa9ssage";
		e.link[i].detail = i % 2 ? "detail" : NULL;
	}
	return e;
}

static void
an_error_arrives_with_its_causes(void **state)
{
	uint8_t buf[4096];

	(void)state;
	for (uint32_t n = 1; n <= KN_CALL_CAUSES; n++) {
		struct kn_call_error a = chain(n), b;
		size_t size = kn_call_error_encode(&a, buf, sizeof buf);

		assert_int_equal(kn_call_error_decode(buf, size, &b), 0);
		assert_int_equal(b.n, n);
		assert_string_equal(b.link[0].name, "Outer");
		for (uint32_t i = 0; i < n; i++) {
			assert_string_equal(b.link[i].message, a.link[i].message);
			assert_string_equal(b.link[i].detail, i % 2 ? "detail" : "");
		}
		assert_true(kn_value_check(KN_TYPE_ERROR, buf, size));
	}
}

static void
a_text_too_long_is_cut_between_characters(void **state)
{
	static char longest[3 * KN_CALL_ERROR_TEXT];
	static uint8_t buf[3 * KN_CALL_ERROR_TEXT];
	struct kn_call_error a = chain(1), b;
	size_t n;

	(void)state;
	longest[0] = 'x'; /* so that the cut falls within a character */
	for (size_t i = 1; i + 2 < sizeof longest; i += 2)
		memcpy(longest + i, "\xc3\xa9", 2);
	a.link[0].message = longest;
	n = kn_call_error_encode(&a, buf, sizeof buf);
	assert_int_equal(kn_call_error_decode(buf, n, &b), 0);
	assert_int_equal(strlen(b.link[0].message), KN_CALL_ERROR_TEXT - 1);
	/* What is not text ends it: the answer stays an honest one. */
	a.link[0].message = "good\xff more";
	n = kn_call_error_encode(&a, buf, sizeof buf);
	assert_int_equal(kn_call_error_decode(buf, n, &b), 0);
	assert_string_equal(b.link[0].message, "good");
}

static void
no_damaged_error_is_taken_and_none_leads_outside(void **state)
{
	struct kn_call_error a = chain(3), b;
	uint8_t buf[512], *cut;
	size_t n = kn_call_error_encode(&a, buf, sizeof buf);

	(void)state;
	for (size_t i = 0; i < n; i++) { /* an exact copy: the sanitizer sees the end */
		cut = malloc(i ? i : 1);
		assert_non_null(cut);
		memcpy(cut, buf, i);
		assert_int_equal(kn_call_error_decode(cut, i, &b), -1);
		free(cut);
	}
	cut = malloc(n);
	assert_non_null(cut);
	for (size_t i = 0; i < n; i++) {
		for (int v = 0; v < 256; v++) {
			memcpy(cut, buf, n);
			cut[i] = (uint8_t)v;
			(void)kn_call_error_decode(cut, n, &b);
		}
	}
	free(cut);
	a.n = 0;
	n = kn_call_error_encode(&a, buf, sizeof buf);
	assert_int_equal(kn_call_error_decode(buf, n, &b), -1);
}

/* ---- residents ---- */

static size_t
read_record(const struct kn_resident *r, uint8_t *buf, size_t cap)
{
	struct kn_err e;
	ssize_t n;
	int fd = -1;

	assert_int_equal(kn_resident_seal(r, &fd, &e), 0);
	n = pread(fd, buf, cap, 0);
	close(fd);
	assert_true(n > 0 && (size_t)n < cap);
	return (size_t)n;
}

static void
a_resident_is_told_what_it_was_to_be_told(void **state)
{
	struct kn_resident a = { .pool_id = "0123456789abcde",
		.slice = 5,
		.spin_us = 50,
		.need_mseal = 1,
		.payload_max = 1 << 20,
		.module = "/module/tasks.so",
		.init = "text\n" },
			   b;
	uint8_t buf[1024];
	size_t n;

	(void)state;
	assert_int_equal(kn_layout_of(6, 1 << 20, 1 << 21, &a.layout), 0);
	n = read_record(&a, buf, sizeof buf);
	assert_int_equal(kn_resident_decode(buf, n, &b), 0);
	assert_memory_equal(&a.layout, &b.layout, sizeof a.layout);
	assert_memory_equal(a.pool_id, b.pool_id, sizeof a.pool_id);
	assert_int_equal(b.slice, 5);
	assert_int_equal(b.spin_us, 50);
	assert_int_equal(b.need_mseal, 1);
	assert_int_equal(b.payload_max, 1 << 20);
	assert_string_equal(b.module, a.module);
	assert_string_equal(b.init, a.init);
	for (size_t i = 0; i < n; i++)
		assert_int_equal(kn_resident_decode(buf, i, &b), -1);
	a.slice = 6; /* there is none */
	n = read_record(&a, buf, sizeof buf);
	assert_int_equal(kn_resident_decode(buf, n, &b), -1);
}

static void
a_resident_job_has_no_terminal_and_no_files(void **state)
{
	static const char *const argv[] = { "knit-worker-module", NULL };
	static const struct kn_job_file file = { "x", 0644, "", 0, -1 };
	static _Alignas(16) uint8_t room[4096];
	struct kn_job j = { .flags = KN_JOB_RESIDENT,
		.argv = argv,
		.argv_n = 1,
		.cwd = "/task" },
		      out;
	uint8_t buf[512];
	size_t n = kn_job_encode(&j, buf, sizeof buf);

	(void)state;
	assert_int_equal(kn_job_decode(buf, n, &out, room, sizeof room), 0);
	assert_int_equal(out.flags, KN_JOB_RESIDENT);
	for (int i = 0; i < 4; i++) {
		struct kn_job bad = j;

		bad.flags |= i == 0 ? KN_JOB_PTY : 0;
		bad.files = &file;
		bad.file_n = i == 1;
		bad.keep = argv;
		bad.keep_n = i == 2;
		bad.collect = argv;
		bad.collect_n = i == 3;
		n = kn_job_encode(&bad, buf, sizeof buf);
		assert_int_equal(kn_job_decode(buf, n, &out, room, sizeof room), -1);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_value_has_the_size_of_its_type),
		cmocka_unit_test(a_bool_is_nought_or_one),
		cmocka_unit_test(text_is_utf8_in_its_shortest_form),
		cmocka_unit_test(every_type_has_a_name_of_its_own),
		cmocka_unit_test(an_error_arrives_with_its_causes),
		cmocka_unit_test(a_text_too_long_is_cut_between_characters),
		cmocka_unit_test(no_damaged_error_is_taken_and_none_leads_outside),
		cmocka_unit_test(a_resident_is_told_what_it_was_to_be_told),
		cmocka_unit_test(a_resident_job_has_no_terminal_and_no_files),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
