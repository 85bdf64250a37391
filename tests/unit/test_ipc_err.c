/* tests/unit/test_ipc_err.c: an error says what was attempted, and hostile text in it
 * cannot drive a terminal. */
#include "tests/unit/ipc_test.h"

static void
set_fills_all_and_returns_failure(void **state)
{
	struct kn_err e;

	(void)state;
	memset(&e, 'x', sizeof e);
	assert_int_equal(kn_err_set(&e, KN_EK_CONFIG, "line %d", 7), -1);
	assert_int_equal(e.kind, KN_EK_CONFIG);
	assert_int_equal(e.sys, 0);
	assert_string_equal(e.msg, "line 7");
	assert_string_equal(e.hint, "");
}

static void
sys_takes_errno_before_anything_can_change_it(void **state)
{
	struct kn_err e;

	(void)state;
	errno = ENOENT;
	assert_int_equal(kn_err_sys(&e, KN_EK_HOST, "open %s", "/x"), -1);
	assert_int_equal(e.sys, ENOENT);
	assert_int_equal(errno, ENOENT);
	assert_string_equal(e.msg, "open /x: No such file or directory");
}

static void
a_percent_sign_in_the_data_is_not_a_format(void **state)
{
	struct kn_err e;

	(void)state;
	errno = EPERM;
	kn_err_sys(&e, KN_EK_HOST, "open %s", "%n%s%s");
	assert_string_equal(e.msg, "open %n%s%s: Operation not permitted");
	kn_err_wrap(&e, "worker %s", "%d");
	assert_string_equal(e.msg, "worker %d: open %n%s%s: Operation not permitted");
}

static void
wrap_adds_a_prefix_and_keeps_the_rest(void **state)
{
	struct kn_err e;

	(void)state;
	errno = EACCES;
	kn_err_sys(&e, KN_EK_LAUNCH, "bwrap");
	kn_err_hint(&e, "look %s", "here");
	assert_int_equal(kn_err_wrap(&e, "worker %u", 3u), -1);
	assert_string_equal(e.msg, "worker 3: bwrap: Permission denied");
	assert_int_equal(e.kind, KN_EK_LAUNCH);
	assert_int_equal(e.sys, EACCES);
	assert_string_equal(e.hint, "look here");
}

static void
the_deepest_hint_stays(void **state)
{
	struct kn_err e = { 0 };

	(void)state;
	kn_err_hint(&e, "first");
	kn_err_hint(&e, "second");
	assert_string_equal(e.hint, "first");
}

static void
a_line_that_is_cut_says_so(void **state)
{
	struct kn_err e;
	char longer[600];

	(void)state;
	memset(longer, 'a', sizeof longer);
	longer[sizeof longer - 1] = '\0';
	kn_err_set(&e, KN_EK_BUG, "%s", longer);
	assert_int_equal(strlen(e.msg), sizeof e.msg - 1);
	assert_string_equal(e.msg + sizeof e.msg - 4, "...");
	errno = EIO;
	kn_err_sys(&e, KN_EK_BUG, "%s", longer);
	assert_string_equal(e.msg + sizeof e.msg - 4, "...");
	assert_int_equal(e.sys, EIO);
	kn_err_set(&e, KN_EK_BUG, "%.250s", longer);
	assert_int_equal(strlen(e.msg), 250);
	kn_err_wrap(&e, "prefix");
	assert_memory_equal(e.msg, "prefix: aaa", 11);
	assert_string_equal(e.msg + sizeof e.msg - 4, "...");
	kn_err_wrap(&e, "%s", longer);
	assert_string_equal(e.msg + sizeof e.msg - 4, "...");
	kn_err_set(&e, KN_EK_BUG, "%.255s", longer);
	assert_string_equal(e.msg + sizeof e.msg - 4, "aaa"); /* just fits */
}

static void
without_a_place_for_the_text_it_still_fails(void **state)
{
	(void)state;
	assert_int_equal(kn_err_set(NULL, KN_EK_BUG, "x"), -1);
	assert_int_equal(kn_err_sys(NULL, KN_EK_BUG, "x"), -1);
	assert_int_equal(kn_err_wrap(NULL, "x"), -1);
	kn_err_hint(NULL, "x");
	kn_err_clear(NULL);
}

static void
hostile_text_is_made_printable(void **state)
{
	static const struct {
		const char *in;
		int n;
		const char *out;
	} rows[] = {
		{ "plain ~", 7, "plain ~" },
		{ "a\0b", 3, "a\\x00b" },
		{ "\x1b[31m", 5, "\\x1b[31m" },
		{ "\n\r\t\x7f", 4, "\\x0a\\x0d\\x09\\x7f" },
		{ "\xc3\xa9", 2, "\xc3\xa9" },		       /* e acute */
		{ "\xe2\x82\xac", 3, "\xe2\x82\xac" },	       /* euro */
		{ "\xf0\x9f\x98\x80", 4, "\xf0\x9f\x98\x80" }, /* beyond the BMP */
		{ "\xc2\x9b", 2, "\\xc2\\x9b" },	       /* C1: CSI in one byte */
		{ "\xc0\xaf", 2, "\\xc0\\xaf" },	       /* overlong slash */
		{ "\xe0\x80\xaf", 3, "\\xe0\\x80\\xaf" },
		{ "\xed\xa0\x80", 3, "\\xed\\xa0\\x80" }, /* surrogate */
		{ "\xf4\x90\x80\x80", 4, "\\xf4\\x90\\x80\\x80" },
		{ "\xff", 1, "\\xff" },
		{ "\xe2\x82", 2, "\\xe2\\x82" }, /* cut off */
		{ "\xe2"
		  "A\x82",
		    3,
		    "\\xe2"
		    "A\\x82" },
		{ "", 0, "" },
	};
	char out[64];

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		int n = kn_err_printable(out, sizeof out, rows[i].in, rows[i].n);
		assert_string_equal(out, rows[i].out);
		assert_int_equal(n, strlen(rows[i].out));
	}
}

static void
printable_text_never_ends_in_half_a_character(void **state)
{
	char out[8];

	(void)state;
	assert_int_equal(kn_err_printable(out, 4, "ab\xe2\x82\xac", 5), 2);
	assert_string_equal(out, "ab");
	assert_int_equal(kn_err_printable(out, 6, "ab\x01", 3), 2);
	assert_int_equal(kn_err_printable(out, 7, "ab\x01", 3), 6);
	assert_int_equal(kn_err_printable(out, 1, "ab", 2), 0);
	assert_string_equal(out, "");
	out[0] = 'q';
	assert_int_equal(kn_err_printable(out, 0, "ab", 2), 0);
	assert_int_equal(out[0], 'q');
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(set_fills_all_and_returns_failure),
		cmocka_unit_test(sys_takes_errno_before_anything_can_change_it),
		cmocka_unit_test(a_percent_sign_in_the_data_is_not_a_format),
		cmocka_unit_test(wrap_adds_a_prefix_and_keeps_the_rest),
		cmocka_unit_test(the_deepest_hint_stays),
		cmocka_unit_test(a_line_that_is_cut_says_so),
		cmocka_unit_test(without_a_place_for_the_text_it_still_fails),
		cmocka_unit_test(hostile_text_is_made_printable),
		cmocka_unit_test(printable_text_never_ends_in_half_a_character),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
