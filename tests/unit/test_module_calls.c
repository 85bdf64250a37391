/* tests/unit/test_module_calls.c: knit-worker-module without a sandbox: what goes in
 * comes out, errors say what they are, and it stops when told. */
#include "tests/unit/module_resident.h"

static struct resident R;

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
	resident_close(&R);
	return 0;
}

static void
a_stop_is_acknowledged_and_obeyed(void **state)
{
	(void)state;
	assert_int_equal(resident_stop(&R), 0);
	assert_true(kn_control_stop_acked(R.slice.control));
}

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
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
		    a_stop_is_acknowledged_and_obeyed, start, stop),
		cmocka_unit_test_setup_teardown(
		    a_call_by_name_and_then_by_number, start, stop),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
