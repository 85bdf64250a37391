/* tests/unit/test_module_calls.c: knit-worker-module without a sandbox: what goes in
 * comes out, whatever its type and size; errors say what they are; a call is told to
 * give up. */
#include "tests/unit/module_resident.h"

static struct resident R;
static uint8_t big[9 << 20];

static int
start(void **state)
{
	const struct resident_opts o = { .init = "some text" };

	(void)state;
	resident_start(&R, &o);
	assert_int_equal(resident_ping(&R).kind, KN_REQ_PING);
	assert_memory_equal(R.result, "hello", 5);
	return 0;
}

static int
stop(void **state)
{
	(void)state;
	assert_int_equal(R.slice.control->submit_freed ^ R.pay.live, R.pay.freed);
	resident_close(&R);
	return 0;
}

/* ---- values ---- */

static void
a_call_by_name_and_then_by_number(void **state)
{
	struct kn_slot_head h = resident_call(&R, 9, "nothing", KN_TYPE_NULL, NULL, 0);

	(void)state;
	assert_int_equal(h.type, KN_TYPE_NULL);
	assert_int_equal(h.flags, 0);
	assert_int_equal(h.fn, 9);
	h = resident_call(&R, 9, NULL, KN_TYPE_NULL, NULL, 0);
	assert_int_equal(h.type, KN_TYPE_NULL);
	h = resident_call(&R, KN_FN_MAX - 1, "worker", KN_TYPE_NULL, NULL, 0);
	assert_int_equal(resident_i64(&R, &h), 0);
}

/* What came for a number once is not believed for ever: see kn_mod_find(). */
static void
a_number_means_the_name_that_comes_with_it(void **state)
{
	struct kn_slot_head h = resident_call(&R, 11, "yyyy", KN_TYPE_NULL, NULL, 0);

	(void)state;
	assert_true(h.flags & KN_CALL_NOT_FOUND);
	h = resident_call(&R, 11, "worker", KN_TYPE_NULL, NULL, 0);
	assert_int_equal(resident_i64(&R, &h), 0);
	h = resident_call(&R, 11, "nothing", KN_TYPE_NULL, NULL, 0);
	assert_int_equal(h.type, KN_TYPE_NULL);
	h = resident_call(&R, 11, NULL, KN_TYPE_NULL, NULL, 0);
	assert_int_equal(h.type, KN_TYPE_NULL);
}

static void
every_type_goes_both_ways(void **state)
{
	static const int64_t i64s[] = { INT64_MIN, -1, 0, INT64_MAX };
	static const double f64s[] = { 0.5, -1e300, __builtin_inf() };
	static const struct {
		uint32_t type;
		const void *in;
		size_t n;
		const void *out;
	} rows[] = {
		{ KN_TYPE_NULL, "", 0, "" },
		{ KN_TYPE_BOOL, "\1", 1, "\0" },
		{ KN_TYPE_BOOL, "\0", 1, "\1" },
		{ KN_TYPE_I64, "\1\0\0\0\0\0\0\0", 8,
		    "\xff\xff\xff\xff\xff\xff\xff\xff" },
		{ KN_TYPE_F64, "\0\0\0\0\0\0\xf8\x3f", 8, "\0\0\0\0\0\0\xf8\xbf" },
		{ KN_TYPE_TEXT, "gr\xc3\xbc\xc3\x9f", 6, NULL },
		{ KN_TYPE_TEXT, "", 0, NULL },
		{ KN_TYPE_BYTES, "\0\xff\0", 3, NULL },
		{ KN_TYPE_BYTES, "", 0, NULL },
		{ KN_TYPE_JSON, "{\"a\":[1]}", 9, NULL },
		{ KN_TYPE_I32S, "\1\0\0\0\2\0\0\0", 8, NULL },
		{ KN_TYPE_I64S, i64s, sizeof i64s, NULL },
		{ KN_TYPE_U64S, i64s, sizeof i64s, NULL },
		{ KN_TYPE_F64S, f64s, sizeof f64s, NULL },
		{ KN_TYPE_F64S, "", 0, NULL },
	};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		const void *want = rows[i].out ? rows[i].out : rows[i].in;
		struct kn_slot_head h =
		    resident_call(&R, 1, "typed", rows[i].type, rows[i].in, rows[i].n);

		assert_int_equal(h.flags, 0);
		assert_int_equal(h.type, rows[i].type);
		assert_int_equal(h.payload_len, rows[i].n);
		assert_memory_equal(R.result, want, rows[i].n);
	}
}

/* Around every border: inline, area, the cap. */
static void
every_size_goes_both_ways(void **state)
{
	static const size_t sizes[] = { 0, 1, 7, 8, 63, 64, 65, 507, 508, 509, 511, 512,
		513, 4095, 4096, 4097, 65536, 1000003, (8 << 20) - 1, 8 << 20 };
	uint32_t seed = 7;

	(void)state;
	for (size_t i = 0; i < sizeof big; i++) {
		seed = seed * 1664525 + 1013904223;
		big[i] = (uint8_t)(seed >> 24);
	}
	for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
		for (int named = 0; named < 2; named++) {
			struct kn_slot_head h =
			    resident_call(&R, 2, named || i == 0 ? "echo" : NULL,
				KN_TYPE_BYTES, big, sizes[i]);

			assert_int_equal(h.type, KN_TYPE_BYTES);
			assert_int_equal(h.payload_len, sizes[i]);
			assert_int_equal(h.area == KN_AREA_INLINE, sizes[i] <= 512);
			assert_memory_equal(R.result, big, sizes[i]);
		}
	}
	/* More areas than there are: each was freed. */
	for (int i = 0; i < 3 * KN_AREAS; i++) {
		struct kn_slot_head h =
		    resident_call(&R, 2, NULL, KN_TYPE_BYTES, big, 5000);

		assert_memory_equal(R.result, big, h.payload_len);
	}
}

static void
one_byte_over_the_cap_is_an_error_and_the_next_call_works(void **state)
{
	static const char *const names[] = { "make", "careless" };
	struct kn_call_error e;
	struct kn_slot_head h;

	(void)state;
	for (uint32_t i = 0; i < 2; i++) {
		h = resident_call_i64(&R, 3 + i, names[i], (8 << 20) + 1);
		e = resident_error(&R, &h);
		assert_string_equal(e.link[0].name, "KNT_ERROR_3");
		assert_string_equal(e.link[0].message,
		    "Dynamic payload exceeds maxPayloadBytes. limit=8388608; "
		    "actual=8388609; type=bytes.");
	}
	h = resident_call_i64(&R, 3, NULL, 8 << 20);
	assert_int_equal(h.type, KN_TYPE_BYTES);
	assert_int_equal(h.payload_len, 8 << 20);
	/* A length that overflows is no small one. */
	h = resident_call_i64(&R, 3, NULL, -1);
	assert_string_equal(resident_error(&R, &h).link[0].name, "KNT_ERROR_3");
}

static void
the_result_set_last_counts(void **state)
{
	static const int64_t sizes[] = { 10, 512, 513, 100000 };

	(void)state;
	for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
		struct kn_slot_head h = resident_call_i64(&R, 4, "twice", sizes[i]);

		assert_int_equal(h.type, KN_TYPE_TEXT);
		assert_int_equal(h.payload_len, sizes[i]);
		for (int64_t at = 0; at < sizes[i]; at++)
			assert_int_equal(R.result[at], 'y');
	}
}

static int
start_small(void **state)
{
	const struct resident_opts o = { .init = "", .area = 64 << 10 };

	(void)state;
	resident_start(&R, &o);
	assert_int_equal(resident_ping(&R).kind, KN_REQ_PING);
	return 0;
}

static void
a_second_result_needs_no_room_beside_the_first(void **state)
{
	struct kn_slot_head h = resident_call_i64(&R, 4, "twice", 40000);

	(void)state;
	assert_int_equal(h.type, KN_TYPE_TEXT);
	assert_int_equal(h.payload_len, 40000);
	for (int at = 0; at < 40000; at++)
		assert_int_equal(R.result[at], 'y');
}

static void
the_init_text_arrives(void **state)
{
	struct kn_slot_head h =
	    resident_call(&R, 5, "init_text", KN_TYPE_NULL, NULL, 0);

	(void)state;
	assert_int_equal(h.payload_len, 9);
	assert_memory_equal(R.result, "some text", 9);
}

static void
scratch_memory_is_there_and_goes(void **state)
{
	static const int64_t sizes[] = { 1, 100, 2000, 70000, 300000, 1 };

	(void)state;
	for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
		struct kn_slot_head h = resident_call_i64(&R, 6, "scratch", sizes[i]);

		assert_int_equal(resident_i64(&R, &h), 100);
	}
}

/* ---- errors ---- */

static void
an_error_comes_with_detail_and_causes(void **state)
{
	(void)state;
	for (int64_t n = 1; n <= KN_CALL_CAUSES + 3; n++) {
		struct kn_slot_head h = resident_call_i64(&R, 1, "fail", n);
		struct kn_call_error e = resident_error(&R, &h);
		char text[32];

		assert_int_equal(e.n, n < KN_CALL_CAUSES ? n : KN_CALL_CAUSES);
		assert_string_equal(e.link[0].name, "OuterError");
		snprintf(text, sizeof text, "outer of %d", (int)n);
		assert_string_equal(e.link[0].message, text);
		assert_string_equal(e.link[0].detail, "the detail");
		if (e.n > 1) {
			assert_string_equal(e.link[e.n - 1].name, "InnerError");
			assert_string_equal(e.link[e.n - 1].detail, "");
		}
	}
}

static void
errors_that_no_task_spelt_out_are_told_too(void **state)
{
	static const struct {
		const char *name, *error, *message;
	} rows[] = {
		{ "fail_silently", "Error", "task fail_silently returned 42" },
		{ "not_text", "KNT_ERROR_2",
		    "The result is not valid UTF-8. actual=5; type=text." },
		{ "not_json", "KNT_ERROR_2",
		    "The result is not valid UTF-8. actual=4; type=json." },
		{ "make", "TypeError", "make takes an i64; the argument is text" },
		{ "forgets", "ResultError",
		    "task forgets reserved a result and did not commit it" },
		{ "overcommits", "ResultError",
		    "a result of 9 bytes was committed, reserved were 8" },
	};

	(void)state;
	for (uint32_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		struct kn_slot_head h =
		    resident_call(&R, i, rows[i].name, KN_TYPE_TEXT, "x", 1);
		struct kn_call_error e = resident_error(&R, &h);

		assert_string_equal(e.link[0].name, rows[i].error);
		assert_string_equal(e.link[0].message, rows[i].message);
		assert_int_equal(h.flags, KN_CALL_FAILED);
	}
}

static void
an_error_that_was_dealt_with_is_none(void **state)
{
	struct kn_slot_head h = resident_call(&R, 1, "recover", KN_TYPE_TEXT, "x", 1);

	(void)state;
	assert_int_equal(h.flags, 0);
	assert_memory_equal(R.result, "no number", 9);
	h = resident_call_i64(&R, 1, NULL, 3); /* an i64 passes for an f64 */
	assert_int_equal(h.type, KN_TYPE_F64);
}

static void
an_error_of_any_length_arrives(void **state)
{
	struct kn_slot_head h =
	    resident_call(&R, 1, "long_error", KN_TYPE_NULL, NULL, 0);
	struct kn_call_error e = resident_error(&R, &h);

	(void)state;
	assert_int_equal(e.n, KN_CALL_CAUSES);
	assert_int_equal(strlen(e.link[0].message), KN_CALL_ERROR_TEXT);
}

static void
a_task_that_is_not_there_is_named_with_those_that_are(void **state)
{
	static const char *const names[] = { "upper", "printf", "", "a b" };

	(void)state;
	for (uint32_t i = 0; i < 4; i++) {
		struct kn_slot_head h =
		    resident_call(&R, i, names[i], KN_TYPE_NULL, NULL, 0);
		struct kn_call_error e = resident_error(&R, &h);

		assert_int_equal(h.flags, KN_CALL_FAILED | KN_CALL_NOT_FOUND);
		assert_string_equal(e.link[0].name, "NotFoundError");
		assert_non_null(strstr(e.link[0].message, names[i]));
		assert_non_null(strstr(e.link[0].message, "echo"));
		assert_non_null(strstr(e.link[0].message, "until_aborted"));
	}
	/* By a number that never had a name, and one past all. */
	for (uint32_t fn = KN_FN_MAX - 1; fn <= KN_FN_MAX; fn++) {
		struct kn_slot_head h =
		    resident_call(&R, fn, NULL, KN_TYPE_NULL, NULL, 0);

		assert_int_equal(h.flags, KN_CALL_FAILED | KN_CALL_NOT_FOUND);
	}
}

/* ---- giving up ---- */

static void
an_aborted_call_sees_it_and_the_next_one_does_not(void **state)
{
	struct kn_slot_head h = { .kind = KN_REQ_CALL, .fn = 1, .type = KN_TYPE_NULL },
			    out;
	uint32_t ids[] = { 0, 31, 32, KN_ABORT_BITS - 1 };

	(void)state;
	for (int i = 0; i < 4; i++) {
		uint64_t begun_ns;
		uint32_t task, gen;

		h.task = R.next++;
		h.abort = ids[i];
		resident_publish(&R, h, "until_aborted", NULL, 0);
		resident_wake(&R);
		while (!kn_control_begun(R.slice.control, &task, &gen, &begun_ns) ||
		       task != h.task)
			poll(NULL, 0, 1);
		kn_abort_set(R.slice.control->abort, (ids[i] + 1) % KN_ABORT_BITS);
		poll(NULL, 0, 2);
		assert_int_equal(kn_return_peek(&R.rx, &R.slice, &out, R.result), -1);
		kn_abort_set(R.slice.control->abort, ids[i]);
		assert_true(resident_answer(&R, &out));
		assert_int_equal(out.flags, KN_CALL_GAVE_UP);
		assert_int_equal(out.abort, ids[i]);
		kn_abort_clear(R.slice.control->abort, ids[i]);
		kn_abort_clear(R.slice.control->abort, (ids[i] + 1) % KN_ABORT_BITS);
		out = resident_call(&R, 2, "nothing", KN_TYPE_NULL, NULL, 0);
		assert_int_equal(out.flags, 0);
	}
}

static void
a_call_is_told_when_its_time_has_passed(void **state)
{
	struct kn_slot_head h = { .kind = KN_REQ_CALL,
		.task = R.next++,
		.fn = 1,
		.type = KN_TYPE_NULL,
		.abort = KN_NO_ABORT,
		.soft_ms = 30 },
			    out;

	(void)state;
	resident_publish(&R, h, "until_aborted", NULL, 0);
	resident_wake(&R);
	assert_true(resident_answer(&R, &out));
	assert_int_equal(out.flags, KN_CALL_GAVE_UP);
	assert_true(out.deadline_ns - out.begun_ns >= 30 * KN_MS_NS);
}

/* By a thread of a call whose time has passed long ago. */
static void
what_is_asked_between_calls_is_not_the_next_ones(void **state)
{
	struct kn_slot_head h = { .kind = KN_REQ_CALL,
		.fn = 1,
		.type = KN_TYPE_NULL,
		.abort = KN_NO_ABORT },
			    out;

	(void)state;
	resident_call(&R, 2, "keeps_asking", KN_TYPE_NULL, NULL, 0);
	for (int i = 0; i < 20; i++) {
		h.task = R.next++;
		h.soft_ms =
		    1; /* of one that is over before, mostly, or does not mind */
		resident_publish(&R, h, "nothing", NULL, 0);
		resident_wake(&R);
		assert_true(resident_answer(&R, &out));
		poll(NULL, 0, 3);
		h.task = R.next++;
		h.soft_ms = 60000;
		resident_publish(&R, h, NULL, NULL, 0);
		resident_wake(&R);
		assert_true(resident_answer(&R, &out));
		assert_int_equal(out.flags, 0);
	}
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, start, stop)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(a_call_by_name_and_then_by_number),
		CASE(a_number_means_the_name_that_comes_with_it),
		CASE(every_type_goes_both_ways),
		CASE(every_size_goes_both_ways),
		CASE(one_byte_over_the_cap_is_an_error_and_the_next_call_works),
		CASE(the_result_set_last_counts),
		cmocka_unit_test_setup_teardown(
		    a_second_result_needs_no_room_beside_the_first, start_small, stop),
		CASE(the_init_text_arrives),
		CASE(scratch_memory_is_there_and_goes),
		CASE(an_error_comes_with_detail_and_causes),
		CASE(errors_that_no_task_spelt_out_are_told_too),
		CASE(an_error_that_was_dealt_with_is_none),
		CASE(an_error_of_any_length_arrives),
		CASE(a_task_that_is_not_there_is_named_with_those_that_are),
		CASE(an_aborted_call_sees_it_and_the_next_one_does_not),
		CASE(a_call_is_told_when_its_time_has_passed),
		CASE(what_is_asked_between_calls_is_not_the_next_ones),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
