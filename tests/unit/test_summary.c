/* tests/unit/test_summary.c: a batch's summary is one line of valid JSON. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* cmd/ is no part of the library: the file itself. */
#include "cmd/report.c"

static void
summary_counts_by_verdict(void **state)
{
	uint64_t verdicts[KNIT_VERDICT_N] = { 0 };
	struct kn_report_batch b = { .verdicts = verdicts,
		.error = "bad \xff byte",
		.policy = "sha256:00",
		.workers = 4 };
	size_t n;
	char *text;
	json_t *v;

	(void)state;
	verdicts[KNIT_OK] = 5;
	verdicts[KNIT_TIMEOUT] = 2;
	text = kn_report_summary(&b, &n);
	assert_non_null(text);
	assert_int_equal(strlen(text), n);
	assert_ptr_equal(strchr(text, '\n'), text + n - 1);
	v = json_loadb(text, n, JSON_REJECT_DUPLICATES, NULL);
	assert_non_null(v);
	assert_int_equal(json_integer_value(json_object_get(v, "answered")), 7);
	assert_int_equal(json_object_size(json_object_get(v, "verdicts")), 2);
	assert_string_equal(
	    json_string_value(json_object_get(v, "error")), "bad \\xff byte");
	assert_null(json_object_get(v, "layers"));
	json_decref(v);
	free(text);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(summary_counts_by_verdict),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
