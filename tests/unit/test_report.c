/* tests/unit/test_report.c: a result line is always one line of valid JSON that tells
 * what happened, whatever bytes the task wrote or named.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "ipc/err.h"
#include "ipc/fd.h"
#include "supervisor/base64.h"
/* The file itself: also of what it keeps to itself. */
#include "supervisor/report_files.c"

static const struct kn_report batch = {
	.policy = "sha256:00",
	.streams = true,
	.contents = true,
};

static json_t *
result_as(const struct kn_report *rep, const char *id, uint64_t line,
    const struct kn_outcome *o)
{
	size_t n = 0;
	char *text = kn_report_result(rep, id, line, o, &n);
	json_error_t e;
	json_t *v;

	assert_non_null(text);
	assert_int_equal(strlen(text), n);
	assert_ptr_equal(strchr(text, '\n'), text + n - 1);
	v = json_loadb(text, n, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &e);
	if (!v)
		fail_msg("%s: %s", e.text, text);
	free(text);
	return v;
}

static json_t *
result(const struct kn_outcome *o)
{
	return result_as(&batch, "t1", 0, o);
}

static const char *
string_at(json_t *v, const char *key)
{
	const char *s = json_string_value(json_object_get(v, key));

	if (!s)
		fail_msg("no string at %s", key);
	return s;
}

static void
all_fields_of_a_task_that_ran(void **state)
{
	struct kn_outcome o = { .verdict = KN_V_OK,
		.started = true,
		.out = { .bytes = (char[]){ "7\n" }, .n = 2, .total = 2 },
		.wall_us = 18200,
		.cpu_us = 15900,
		.queue_us = 100,
		.max_rss = 9437184,
		.memory_peak = 10223616,
		.pids_peak = 1,
		.worker = 2,
		.attempt = 1 };
	json_t *v, *usage;

	(void)state;
	o.layers.state[KN_LAYER_NAMESPACES] = KN_LAYER_ENFORCED;
	o.layers.state[KN_LAYER_LANDLOCK] = KN_LAYER_DEGRADED;
	v = result(&o);
	assert_string_equal(string_at(v, "id"), "t1");
	assert_string_equal(string_at(v, "verdict"), "ok");
	assert_int_equal(json_integer_value(json_object_get(v, "exit_code")), 0);
	assert_true(json_is_integer(json_object_get(v, "exit_code")));
	assert_true(json_is_null(json_object_get(v, "signal")));
	assert_string_equal(string_at(v, "stdout"), "7\n");
	assert_string_equal(string_at(v, "stderr"), "");
	assert_int_equal(json_integer_value(json_object_get(v, "stdout_bytes")), 2);
	assert_true(json_is_false(json_object_get(v, "stdout_truncated")));
	assert_true(json_is_null(json_object_get(v, "error")));
	usage = json_object_get(v, "usage");
	assert_true(json_number_value(json_object_get(usage, "wall_ms")) == 18.2);
	assert_true(json_number_value(json_object_get(usage, "queue_ms")) == 0.1);
	assert_int_equal(
	    json_integer_value(json_object_get(usage, "memory_peak")), 10223616);
	assert_string_equal(string_at(v, "worker"), "w2");
	assert_int_equal(json_integer_value(json_object_get(v, "attempt")), 1);
	assert_string_equal(string_at(v, "policy"), "sha256:00");
	assert_string_equal(
	    string_at(json_object_get(v, "layers"), "namespaces"), "enforced");
	assert_string_equal(
	    string_at(json_object_get(v, "layers"), "landlock"), "degraded");
	assert_null(json_object_get(v, "line"));
	json_decref(v);
}

/* A rule's reason is cut after some bytes, and its file has any name. */
static void
a_reason_that_is_no_text_after_all_is_told_all_the_same(void **state)
{
	struct kn_refused refused = { .name = "keyctl",
		.by = (char[]){ "rule /seccomp/rules/0 (p\xff.json): caf\xc3" },
		.count = 1,
		.errno_ret = 1 };
	struct kn_outcome o = { .verdict = KN_V_OK,
		.started = true,
		.refused = &refused,
		.refused_n = 1,
		.worker = 0,
		.attempt = 1 };
	json_t *v = result(&o);
	json_t *one = json_array_get(json_object_get(v, "refused"), 0);

	(void)state;
	assert_string_equal(
	    string_at(one, "by"), "rule /seccomp/rules/0 (p\\xff.json): caf\\xc3");
	json_decref(v);
}

static void
an_invalid_line_has_its_number_and_no_usage(void **state)
{
	const struct kn_outcome o = { .verdict = KN_V_INVALID,
		.error = "/argv: missing",
		.exit_code = -1,
		.worker = -1 };
	json_t *v = result_as(&batch, "line-9", 9, &o);

	(void)state;
	assert_int_equal(json_integer_value(json_object_get(v, "line")), 9);
	assert_string_equal(string_at(v, "error"), "/argv: missing");
	assert_null(json_object_get(v, "usage"));
	assert_null(json_object_get(v, "layers"));
	assert_null(json_object_get(v, "stdout"));
	json_decref(v);
}

static void
a_signal_is_not_an_exit_code(void **state)
{
	const struct kn_outcome o = {
		.verdict = KN_V_SIGNAL, .started = true, .exit_code = -1, .signal = 6
	};
	json_t *v = result(&o);

	(void)state;
	assert_true(json_is_null(json_object_get(v, "exit_code")));
	assert_int_equal(json_integer_value(json_object_get(v, "signal")), 6);
	json_decref(v);
}

static void
bytes_that_are_not_text_arrive_as_base64(void **state)
{
	struct kn_outcome o = { .verdict = KN_V_OK, .started = true };
	json_t *v;

	(void)state;
	o.out =
	    (struct kn_capture){ .bytes = (char[]){ "\xff\x00x" }, .n = 3, .total = 3 };
	o.err =
	    (struct kn_capture){ .bytes = (char[]){ "a\0b\x1b" }, .n = 4, .total = 4 };
	v = result(&o);
	assert_null(json_object_get(v, "stdout"));
	assert_string_equal(string_at(v, "stdout_b64"), "/wB4");
	assert_int_equal(json_string_length(json_object_get(v, "stderr")), 4);
	json_decref(v);
}

static void
a_cut_inside_a_character_leaves_text(void **state)
{
	/* "a" + 2 of 3 bytes of U+20AC | last byte of U+20AC + "b" */
	struct kn_outcome o = { .verdict = KN_V_OK, .started = true };
	json_t *v;

	(void)state;
	o.out = (struct kn_capture){ .bytes = (char[]){ "a\xe2\x82\xac"
							"b" },
		.n = 5,
		.head_n = 3,
		.total = 1000,
		.truncated = true };
	v = result(&o);
	assert_string_equal(string_at(v, "stdout"), "ab");
	assert_int_equal(json_integer_value(json_object_get(v, "stdout_cut_at")), 1);
	assert_int_equal(json_integer_value(json_object_get(v, "stdout_bytes")), 1000);
	assert_true(json_is_true(json_object_get(v, "stdout_truncated")));
	json_decref(v);
	/* A whole character before the cut stays. */
	o.out = (struct kn_capture){ .bytes = (char[]){ "a\xe2\x82\xac"
							"b" },
		.n = 5,
		.head_n = 4,
		.total = 1000,
		.truncated = true };
	v = result(&o);
	assert_string_equal(string_at(v, "stdout"), "a\xe2\x82\xac"
						    "b");
	assert_int_equal(json_integer_value(json_object_get(v, "stdout_cut_at")), 4);
	json_decref(v);
	/* What is not text apart from the cut is handed over as it is. */
	o.out = (struct kn_capture){ .bytes = (char[]){ "\xff"
							"ab" },
		.n = 3,
		.head_n = 2,
		.total = 1000,
		.truncated = true };
	v = result(&o);
	assert_string_equal(string_at(v, "stdout_b64"), "/2Fi");
	assert_int_equal(json_integer_value(json_object_get(v, "stdout_cut_at")), 2);
	json_decref(v);
}

static void
collected_files_and_refusals(void **state)
{
	struct kn_err e;
	char a[] = "out/a", link[] = "link", evil[] = "x\xff\x1b", kept[] = "kept";
	struct kn_outcome_file files[] = {
		{ .name = a,
		    .what = KN_FILE_COLLECT,
		    .fd = kn_fd_sealed("a", "\0ok", 3, 0, &e),
		    .bytes = 3,
		    .mode = 0644 },
		{ .name = link,
		    .what = KN_FILE_COLLECT,
		    .fd = -1,
		    .refusal = KN_FILE_SYMLINK },
		{ .name = evil,
		    .what = KN_FILE_COLLECT,
		    .fd = -1,
		    .refusal = KN_FILE_TOO_LARGE },
		{ .name = kept,
		    .what = KN_FILE_KEEP,
		    .fd = -1,
		    .refusal = KN_FILE_MISSING },
	};
	const struct kn_outcome o = {
		.verdict = KN_V_OK, .started = true, .files = files, .file_n = 4
	};
	json_t *v = result(&o), *f = json_object_get(v, "files");

	(void)state;
	assert_string_equal(
	    string_at(json_object_get(f, "out/a"), "content_b64"), "AG9r");
	assert_string_equal(string_at(json_object_get(f, "out/a"), "mode"), "644");
	assert_string_equal(
	    string_at(json_object_get(f, "link"), "error"), "a symbolic link");
	assert_string_equal(string_at(json_object_get(f, "x\\xff\\x1b"), "error"),
	    "too large (16M a file, 64M all together)");
	assert_string_equal(
	    string_at(json_object_get(f, "kept"), "error"), "no such file");
	json_decref(v);
	kn_fd_close(&files[0].fd);
}

static void
nothing_on_a_terminal_is_an_escape(void **state)
{
	struct kn_report tty = batch;
	struct kn_outcome o = { .verdict = KN_V_OK, .started = true };
	size_t n;
	char *text;

	(void)state;
	tty.ascii = true;
	o.out = (struct kn_capture){ .bytes = (char[]){ "\x1b[2J\xc2\x9b"
							"31m" },
		.n = 9,
		.total = 9 };
	text = kn_report_result(&tty, "\xc3\xa9", 0, &o, &n);
	for (size_t i = 0; i + 1 < n; i++)
		assert_in_range((unsigned char)text[i], 0x20, 0x7e);
	free(text);
}

static void
streams_that_were_relayed_are_counted_and_not_repeated(void **state)
{
	const struct kn_report single = { .policy = "sha256:00" };
	const struct kn_outcome o = { .verdict = KN_V_OK,
		.started = true,
		.out = { .total = 5001, .truncated = true },
		.err = { .total = 7 } };
	json_t *v = result_as(&single, "command", 0, &o);

	(void)state;
	assert_null(json_object_get(v, "stdout"));
	assert_int_equal(json_integer_value(json_object_get(v, "stdout_bytes")), 5001);
	assert_true(json_is_true(json_object_get(v, "stdout_truncated")));
	assert_int_equal(json_integer_value(json_object_get(v, "stderr_bytes")), 7);
	assert_true(json_is_false(json_object_get(v, "stderr_truncated")));
	json_decref(v);
}

/* It is read and written in pieces; 0 to 2 bytes more than whole ones. */
static void
a_long_file_comes_whole(void **state)
{
	char name[] = "long";

	(void)state;
	for (size_t more = 0; more < 3; more++) {
		size_t n = 2 * PIECE + more;
		char *bytes = malloc(n), *want;
		struct kn_err e;

		for (size_t i = 0; i < n; i++)
			bytes[i] = (char)(i * 2654435761u >> 24);
		struct kn_outcome_file file = { .name = name,
			.what = KN_FILE_COLLECT,
			.fd = kn_fd_sealed("long", bytes, n, 0, &e),
			.bytes = n,
			.mode = 0600 };
		const struct kn_outcome o = {
			.verdict = KN_V_OK, .started = true, .files = &file, .file_n = 1
		};
		json_t *v = result(&o),
		       *f = json_object_get(json_object_get(v, "files"), "long");

		want = kn_base64_encode(bytes, n);
		assert_string_equal(string_at(f, "content_b64"), want);
		assert_string_equal(string_at(f, "mode"), "600");
		json_decref(v);
		kn_fd_close(&file.fd);
		free(want);
		free(bytes);
	}
}

static void
a_file_that_cannot_be_read_to_its_end_does_not_pass_for_the_file(void **state)
{
	char name[] = "cut";
	struct kn_err e;
	struct kn_outcome_file file = { .name = name,
		.what = KN_FILE_COLLECT,
		.fd = kn_fd_sealed("cut", "abc", 3, 0, &e),
		.bytes = 5,
		.mode = 0644 };
	const struct kn_outcome o = {
		.verdict = KN_V_OK, .started = true, .files = &file, .file_n = 1
	};
	json_t *v = result(&o),
	       *f = json_object_get(json_object_get(v, "files"), "cut");

	(void)state;
	assert_string_equal(string_at(f, "error"), "could not be read");
	assert_null(json_object_get(f, "content_b64"));
	json_decref(v);
	kn_fd_close(&file.fd);
}

static const struct kn_report calls = { .policy = "sha256:00", .calls = true };

/* Any double but those that JSON has not. */
static double
some_double(uint64_t *seed)
{
	double d;

	do {
		*seed = *seed * 6364136223846793005u + 1442695040888963407u;
		memcpy(&d, seed, sizeof d);
	} while (!isfinite(d));
	return d;
}

static void
same_double(json_t *v, double want)
{
	double got = json_number_value(v);

	if (memcmp(&got, &want, sizeof got) != 0)
		fail_msg("%.17g has become %.17g", want, got);
}

static void
numbers_that_a_module_returned_arrive_bit_for_bit(void **state)
{
	enum { N = 50 };
	double d[N] = { 1234567890123.25, 0.1 + 0.2, 5e-324, 1.7976931348623157e308,
		-0.0, 1e16, 9007199254740993.0, 0.1 };
	struct kn_outcome o = { .verdict = KN_V_OK, .worker = -1 };
	uint64_t seed = 20261130;

	(void)state;
	for (int round = 0; round < 200; round++) {
		char text[N * 32] = "";
		size_t n = 0;
		json_t *v;

		for (int i = round ? 0 : 8; i < N; i++)
			d[i] = some_double(&seed);
		o.value = (struct kn_value){
			.type = KN_TYPE_F64S, .bytes = d, .n = sizeof d
		};
		v = result_as(&calls, "a", 0, &o);
		for (size_t i = 0; i < N; i++)
			same_double(
			    json_array_get(json_object_get(v, "value"), i), d[i]);
		json_decref(v);
		for (int i = 0; i < N; i++) {
			o.value = (struct kn_value){
				.type = KN_TYPE_F64, .bytes = &d[i], .n = sizeof d[i]
			};
			v = result_as(&calls, "a", 0, &o);
			same_double(json_object_get(v, "value"), d[i]);
			json_decref(v);
			n += (size_t)snprintf(
			    text + n, sizeof text - n, "%c%.16e", i ? ',' : '[', d[i]);
		}
		text[n++] = ']';
		o.value =
		    (struct kn_value){ .type = KN_TYPE_JSON, .bytes = text, .n = n };
		v = result_as(&calls, "a", 0, &o);
		for (size_t i = 0; i < N; i++)
			same_double(
			    json_array_get(json_object_get(v, "value"), i), d[i]);
		json_decref(v);
	}
}

static void
short_numbers_stay_short(void **state)
{
	char text[] = "{\"a\":[0.1,2.5],\"b\":{\"c\":18.2}}";
	double third = 1.0 / 3;
	struct kn_outcome o = { .verdict = KN_V_OK,
		.value = { .type = KN_TYPE_JSON, .bytes = text, .n = strlen(text) },
		.wall_us = 18200,
		.worker = -1 };
	size_t n;
	char *line = kn_report_result(&calls, "a", 0, &o, &n);

	(void)state;
	assert_non_null(strstr(line, "\"value\":{\"a\":[0.1,2.5],\"b\":{\"c\":18.2}}"));
	free(line);
	o.value = (struct kn_value){ .type = KN_TYPE_F64, .bytes = &third, .n = 8 };
	line = kn_report_result(&calls, "a", 0, &o, &n);
	assert_non_null(strstr(line, "\"value\":0.3333333333333333,"));
	assert_non_null(strstr(line, "\"wall_ms\":18.2,"));
	free(line);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_fields_of_a_task_that_ran),
		cmocka_unit_test(an_invalid_line_has_its_number_and_no_usage),
		cmocka_unit_test(a_signal_is_not_an_exit_code),
		cmocka_unit_test(bytes_that_are_not_text_arrive_as_base64),
		cmocka_unit_test(a_cut_inside_a_character_leaves_text),
		cmocka_unit_test(collected_files_and_refusals),
		cmocka_unit_test(a_long_file_comes_whole),
		cmocka_unit_test(
		    a_reason_that_is_no_text_after_all_is_told_all_the_same),
		cmocka_unit_test(nothing_on_a_terminal_is_an_escape),
		cmocka_unit_test(
		    streams_that_were_relayed_are_counted_and_not_repeated),
		cmocka_unit_test(
		    a_file_that_cannot_be_read_to_its_end_does_not_pass_for_the_file),
		cmocka_unit_test(numbers_that_a_module_returned_arrive_bit_for_bit),
		cmocka_unit_test(short_numbers_stay_short),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
