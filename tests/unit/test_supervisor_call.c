/* tests/unit/test_supervisor_call.c: how calls end, in the words of the command line;
 * values from JSON and back.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "ipc/clock.h"
#include "ipc/park.h"
#include "supervisor/inner.h"
#include "supervisor/value.h"
#include "supervisor/value_json.h"
#include "supervisor/verdict.h"

/* ---- verdicts ---- */

struct ended {
	struct kn_verdict_in in;
	struct kn_call_in call;
	struct kn_job_result job;
	struct kn_task_limits limits;
	struct kn_timeouts timeouts;
	struct kn_value value, soft;
	struct kn_outcome o;
};

static void
begin(struct ended *x)
{
	memset(x, 0, sizeof *x);
	x->value = (struct kn_value){ .type = KN_TYPE_NULL, .borrowed = true };
	x->in = (struct kn_verdict_in){ .how = KN_HOW_RESULT,
		.result = &x->job,
		.limits = &x->limits,
		.timeouts = &x->timeouts,
		.program = "f" };
	x->call = (struct kn_call_in){ .value = &x->value, .soft_default = &x->soft };
}

static enum kn_verdict
judged(struct ended *x)
{
	kn_verdict_of_call(&x->in, &x->call, &x->o);
	return x->o.verdict;
}

static void
a_value_is_ok_and_is_handed_on(void **state)
{
	struct ended x;

	(void)state;
	begin(&x);
	assert_int_equal(judged(&x), KN_V_OK);
	assert_int_equal(x.o.value.type, KN_TYPE_NULL);
	assert_false(x.o.started);
	x.value = (struct kn_value){
		.type = KN_TYPE_JSON, .bytes = (char[]){ "[1," }, .n = 3
	};
	assert_int_equal(judged(&x), KN_V_EXIT);
	x.value = (struct kn_value){
		.type = KN_TYPE_JSON, .bytes = (char[]){ "[1]" }, .n = 3
	};
	assert_int_equal(judged(&x), KN_V_OK);
}

static void
an_error_is_exit_without_a_code(void **state)
{
	static const struct {
		const char *name;
		uint32_t flags;
		enum kn_verdict v;
	} of[] = { { "TypeError", 0, KN_V_EXIT }, { "KNT_ERROR_3", 0, KN_V_TOO_LARGE },
		{ "NotFoundError", KN_CALL_NOT_FOUND, KN_V_NOT_FOUND } };
	struct ended x;
	char buf[256];

	(void)state;
	for (size_t i = 0; i < sizeof of / sizeof of[0]; i++) {
		struct kn_call_error e = { .n = 1,
			.link = { { of[i].name, "why", "" } } };

		begin(&x);
		x.call.flags = KN_CALL_FAILED | of[i].flags;
		x.value.type = KN_TYPE_ERROR;
		x.value.bytes = buf;
		x.value.n = kn_call_error_encode(&e, buf, sizeof buf);
		assert_int_equal(judged(&x), of[i].v);
		assert_int_equal(x.o.exit_code, -1);
		assert_non_null(strstr(x.o.error, "why"));
		assert_int_equal(x.o.value.type, KN_TYPE_ERROR);
	}
}

static void
late_calls_fail_or_get_their_default(void **state)
{
	struct ended x;

	(void)state;
	begin(&x);
	x.timeouts.task_ms = 50;
	x.in.wall_ns = 50 * KN_MS_NS;
	assert_int_equal(judged(&x), KN_V_OK); /* in time */
	x.in.wall_ns++;
	assert_int_equal(judged(&x), KN_V_SOFT_TIMEOUT);
	assert_int_equal(x.o.value.type, 0);
	x.soft.type = KN_TYPE_BOOL;
	assert_int_equal(judged(&x), KN_V_OK);
	assert_true(x.o.soft);
	assert_int_equal(x.o.value.type, KN_TYPE_BOOL);
	x.timeouts.hard_ms = 50; /* over the hard limit nothing saves it */
	assert_int_equal(judged(&x), KN_V_TIMEOUT);
	begin(&x);
	x.timeouts.task_ms = 50;
	x.call.flags = KN_CALL_GAVE_UP; /* it saw that its time was up */
	assert_int_equal(judged(&x), KN_V_SOFT_TIMEOUT);
	x.call.aborted = true;
	assert_int_equal(judged(&x), KN_V_CANCELLED);
}

static void
a_process_that_ended_is_never_ok(void **state)
{
	struct ended x;

	(void)state;
	begin(&x);
	x.call.died = true;
	x.job.step = KN_EXEC_STARTED;
	x.job.wait_status = 0; /* exit(0) */
	assert_int_equal(judged(&x), KN_V_EXIT);
	assert_int_equal(x.o.exit_code, 0);
	assert_int_equal(x.o.value.type, 0);
	x.job.wait_status = 3 << 8;
	assert_int_equal(judged(&x), KN_V_EXIT);
	assert_int_equal(x.o.exit_code, 3);
	x.job.wait_status = 11;
	assert_int_equal(judged(&x), KN_V_SIGNAL);
	assert_int_equal(x.o.signal, 11);
	x.job.oom_kills = 1;
	assert_int_equal(judged(&x), KN_V_MEMORY);
	x.job.oom_kills = 0;
	x.job.wait_status = 9;
	x.job.cause = KN_CAUSE_HARD;
	assert_int_equal(judged(&x), KN_V_TIMEOUT);
	x.in.how = KN_HOW_WORKER_LOST;
	assert_int_equal(judged(&x), KN_V_WORKER_LOST);
}

/* ---- values ---- */

static void
round_trip(const char *json, const char *array, enum kn_type type)
{
	json_error_t e;
	json_t *in = json_loads(json, JSON_DECODE_ANY, &e), *out;
	struct kn_value v;
	const char *why;

	assert_non_null(in);
	assert_int_equal(kn_value_from_json(in, array, &v, &why), 0);
	assert_int_equal(v.type, type);
	assert_true(kn_value_check(v.type, v.n ? v.bytes : "", v.n));
	out = kn_value_to_json(&v);
	assert_non_null(out);
	if (!json_equal(in, out))
		fail_msg("%s is not what it was", json);
	json_decref(in);
	json_decref(out);
	kn_value_fini(&v);
}

static void
values_are_what_they_were(void **state)
{
	(void)state;
	round_trip("null", NULL, KN_TYPE_NULL);
	round_trip("true", NULL, KN_TYPE_BOOL);
	round_trip("-9223372036854775808", NULL, KN_TYPE_I64);
	round_trip("1.5e300", NULL, KN_TYPE_F64);
	round_trip("\"\"", NULL, KN_TYPE_TEXT);
	round_trip("\"gr\\u00fc\\u00dfe\"", NULL, KN_TYPE_TEXT);
	round_trip("{\"a\":[1,{\"b\":null}]}", NULL, KN_TYPE_JSON);
	round_trip("[]", "i32", KN_TYPE_I32S);
	round_trip("[-2147483648,2147483647]", "i32", KN_TYPE_I32S);
	round_trip("[-1,9223372036854775807]", "i64", KN_TYPE_I64S);
	round_trip("[0,\"18446744073709551615\"]", "u64", KN_TYPE_U64S);
	round_trip("[0.5,\"NaN\",\"-Infinity\"]", "f64", KN_TYPE_F64S);
}

static void
numbers_that_do_not_fit_are_refused(void **state)
{
	static const struct {
		const char *json, *array;
	} bad[] = { { "[2147483648]", "i32" }, { "[1.5]", "i32" }, { "[1.5]", "i64" },
		{ "[-1]", "u64" }, { "[\"18446744073709551616\"]", "u64" },
		{ "[\"1x\"]", "u64" }, { "[\"\"]", "f64" }, { "[null]", "f64" },
		{ "3", "f64" }, { "[1]", "i16" } };

	(void)state;
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		json_error_t e;
		json_t *in = json_loads(bad[i].json, JSON_DECODE_ANY, &e);
		struct kn_value v = { 0 };
		const char *why = NULL;

		assert_int_equal(kn_value_from_json(in, bad[i].array, &v, &why), -1);
		assert_non_null(why);
		json_decref(in);
		kn_value_fini(&v);
	}
}

static void
what_a_user_types_is_json_or_text(void **state)
{
	static const struct {
		const char *text;
		enum kn_type type;
	} typed[] = { { "21", KN_TYPE_I64 }, { "\"21\"", KN_TYPE_TEXT },
		{ "hello", KN_TYPE_TEXT }, { "[1,2]", KN_TYPE_JSON },
		{ "true", KN_TYPE_BOOL }, { "truest", KN_TYPE_TEXT },
		{ "{\"a\":1,\"a\":2}", KN_TYPE_TEXT }, { "\xff", KN_TYPE_BYTES } };

	(void)state;
	for (size_t i = 0; i < sizeof typed / sizeof typed[0]; i++) {
		struct kn_value v;
		const char *why;

		assert_int_equal(kn_value_from_text(typed[i].text, &v, &why), 0);
		assert_int_equal(v.type, typed[i].type);
		kn_value_fini(&v);
	}
}

static void
a_borrowed_value_is_copied_when_it_is_taken(void **state)
{
	char bytes[] = "abc";
	struct kn_value from = {
		.type = KN_TYPE_TEXT, .borrowed = true, .bytes = bytes, .n = 3
	};
	struct kn_value to;

	(void)state;
	assert_int_equal(kn_value_take(&from, &to), 0);
	bytes[0] = 'x';
	assert_memory_equal(to.bytes, "abc", 3);
	assert_false(to.borrowed);
	assert_int_equal(from.type, 0);
	kn_value_fini(&to);
}

static void
a_result_that_we_lost_is_ours(void **state)
{
	struct ended x;

	(void)state;
	begin(&x);
	x.in.broken = "result";
	x.in.broken_sys = ENOMEM;
	assert_int_equal(judged(&x), KN_V_INTERNAL);
	assert_non_null(strstr(x.o.error, "result"));
	x.call.aborted = true; /* then nobody misses it */
	assert_int_equal(judged(&x), KN_V_CANCELLED);
}

/* ---- abort ids ---- */

_Static_assert(KN_ABORT_BITS >= KN_CLAIMANTS * KN_SLOTS + KN_SLOTS,
    "of a bank: what its workers can have claimed, and what is on offer");

static void
each_call_that_can_be_under_way_has_an_abort_id(void **state)
{
	static const struct kn_policy policy;
	static struct kn_sup s = { .policy = &policy };
	static struct kn_wk w = { .sup = &s };
	static struct kn_control control;
	static struct kn_entry e[KN_ABORT_BITS];
	static bool taken[KN_ABORT_BITS];
	uint32_t id;

	(void)state;
	w.slice.control = &control;
	for (uint32_t i = 0; i < KN_ABORT_BITS; i++) {
		e[i].abort = kn_call_take_abort(&w);
		assert_in_range(e[i].abort, 0, KN_ABORT_BITS - 1);
		assert_false(taken[e[i].abort]);
		taken[e[i].abort] = true;
	}
	assert_int_equal(kn_call_take_abort(&w), KN_NO_ABORT);
	/* one is told to give up, and answered: the next of that id is not told */
	kn_call_abort(&w, &e[700]);
	assert_true(kn_abort_test(control.abort, e[700].abort));
	id = e[700].abort;
	kn_call_forget(&w, &e[700]);
	assert_int_equal(kn_call_take_abort(&w), id);
	assert_false(kn_abort_test(control.abort, id));
}

/* 258 is what the ancestor has. */
static void
a_policy_may_give_fewer_calls_an_abort_id(void **state)
{
	static const struct kn_policy policy = { .pool.abort_ids = 258 };
	static struct kn_sup s = { .policy = &policy };
	static struct kn_wk w = { .sup = &s };
	static struct kn_control control;
	static struct kn_entry e[258];

	(void)state;
	w.slice.control = &control;
	for (uint32_t i = 0; i < 258; i++) {
		e[i].abort = kn_call_take_abort(&w);
		assert_in_range(e[i].abort, 0, 257);
	}
	assert_int_equal(kn_call_take_abort(&w), KN_NO_ABORT);
	kn_call_forget(&w, &e[3]);
	assert_int_equal(kn_call_take_abort(&w), 3);
}

/* ---- names ---- */

static void
a_pool_has_numbers_for_65534_names_and_keeps_those_it_gave(void **state)
{
	struct kn_module m = { 0 };
	char name[32];

	(void)state;
	for (uint32_t i = 1; i < KN_FN_OTHER; i++) {
		snprintf(name, sizeof name, "f%u", i);
		assert_int_equal(kn_module_function(&m, name), i);
	}
	assert_int_equal(kn_module_function(&m, "one more"), 0);
	assert_int_equal(kn_module_function(&m, "f1"), 1);
	assert_int_equal(kn_module_function(&m, "f65534"), 65534);
	for (uint32_t i = 1; i < m.name_n; i++)
		free(m.name[i]);
	free(m.name);
	free(m.bucket);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_result_that_we_lost_is_ours),
		cmocka_unit_test(each_call_that_can_be_under_way_has_an_abort_id),
		cmocka_unit_test(a_policy_may_give_fewer_calls_an_abort_id),
		cmocka_unit_test(
		    a_pool_has_numbers_for_65534_names_and_keeps_those_it_gave),
		cmocka_unit_test(a_value_is_ok_and_is_handed_on),
		cmocka_unit_test(an_error_is_exit_without_a_code),
		cmocka_unit_test(late_calls_fail_or_get_their_default),
		cmocka_unit_test(a_process_that_ended_is_never_ok),
		cmocka_unit_test(values_are_what_they_were),
		cmocka_unit_test(numbers_that_do_not_fit_are_refused),
		cmocka_unit_test(what_a_user_types_is_json_or_text),
		cmocka_unit_test(a_borrowed_value_is_copied_when_it_is_taken),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
