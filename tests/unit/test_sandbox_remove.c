/* tests/unit/test_sandbox_remove.c: a container is removed until its engine lists it no
 * more, and noted until then. The engine is a script: a container is a file.
 */
#include "sandbox_test.h"

#include <poll.h>

#include "ipc/clock.h"
#include "sandbox/oci_remove.h"

enum { SOON_MS = 100 * 1000 }; /* more than a removal may take */

static char top[64]; /* the engine and what it has, beside a place with the note */

static const char *
in_top(const char *name)
{
	return join(top, name);
}

static bool
is_there(const char *name)
{
	return access(in_top(name), F_OK) == 0;
}

static bool
comes_true(bool (*what)(void))
{
	uint64_t deadline = kn_clock_after_ms(kn_clock_now(), SOON_MS);

	while (!what() && kn_clock_now() < deadline)
		poll(NULL, 0, 20);
	return what();
}

static unsigned
asked(const char *verb)
{
	char line[256];
	unsigned n = 0;
	FILE *f = fopen(in_top("log"), "re");

	while (f != NULL && fgets(line, sizeof line, f) != NULL)
		n += strncmp(line, verb, strlen(verb)) == 0;
	if (f != NULL)
		fclose(f);
	return n;
}

static void
make_engine(void)
{
	char text[1024];

	scratch_make(top);
	assert_int_equal(mkdir(in_top("base"), 0700), 0);
	assert_int_equal(mkdir(in_top("base/place"), 0700), 0);
	write_file(in_top("base/place/left-w0-1"), "docker name\n");
	kn_oci_remove_stamp(in_top("base/place/left-w0-1"));
	snprintf(text, sizeof text,
	    "#!/bin/sh\n"
	    "cd %s || exit 9\n"
	    "echo \"$*\" >>log\n"
	    "if [ -e down ]; then exit 1; fi\n"
	    "case $1 in\n"
	    "rm) [ -e made ] || { echo 'No such container' >&2; exit 0; }\n"
	    "    if [ -e busy ]; then rm busy; else rm made; fi; echo name ;;\n"
	    "ps) if [ -e made ]; then echo 123; fi ;;\n"
	    "esac\n",
	    top);
	write_file(in_top("engine"), text);
	assert_int_equal(chmod(in_top("engine"), 0700), 0);
}

static void
begin_as(bool settled, bool refused)
{
	char program[128], note[128];
	const struct kn_oci_removal r = { .runtime = KN_RUNTIME_DOCKER,
		.program = program,
		.id = "name",
		.note = note,
		.client = -1,
		.settled = settled,
		.refused = refused };

	snprintf(program, sizeof program, "%s", in_top("engine"));
	snprintf(note, sizeof note, "%s", in_top("base/place/left-w0-1"));
	assert_int_equal(kn_oci_remove(&r), 0);
}

static void
begin(bool settled)
{
	begin_as(settled, false);
}

static bool
base_is_gone(void)
{
	return !is_there("base");
}

static bool
asked_twice(void)
{
	return asked("ps") >= 2;
}

static void
what_is_made_after_the_order_to_remove_it_is_removed(void **state)
{
	(void)state;
	make_engine();
	begin(false);
	assert_true(comes_true(asked_twice));
	assert_true(is_there("base/place/left-w0-1"));
	write_file(in_top("made"), "");
	assert_true(comes_true(base_is_gone));
	assert_false(is_there("made"));
	scratch_remove(top);
}

static void
what_has_gone_is_not_waited_for(void **state)
{
	(void)state;
	make_engine();
	begin(true);
	assert_true(comes_true(base_is_gone));
	assert_int_equal(asked("rm"), 1);
	assert_int_equal(asked("ps --all --quiet --filter name=name$"), 1);
	scratch_remove(top);
}

static void
what_was_asked_for_long_ago_does_not_come(void **state)
{
	const struct timespec old[2] = { { 1, 0 }, { 1, 0 } };

	(void)state;
	make_engine();
	assert_int_equal(
	    utimensat(AT_FDCWD, in_top("base/place/left-w0-1"), old, 0), 0);
	begin(false);
	assert_true(comes_true(base_is_gone));
	assert_int_equal(asked("rm"), 1);
	scratch_remove(top);
}

static void
what_is_still_listed_is_not_gone(void **state)
{
	(void)state;
	make_engine();
	write_file(in_top("made"), "");
	write_file(in_top("busy"), "");
	begin(true);
	assert_true(comes_true(base_is_gone));
	assert_false(is_there("made"));
	assert_int_equal(asked("rm"), 2);
	scratch_remove(top);
}

static void
an_engine_that_does_not_answer_is_asked_again(void **state)
{
	(void)state;
	make_engine();
	write_file(in_top("down"), "");
	begin(true);
	assert_true(comes_true(asked_twice));
	assert_true(is_there("base/place/left-w0-1"));
	assert_int_equal(unlink(in_top("down")), 0);
	assert_true(comes_true(base_is_gone));
	scratch_remove(top);
}

static void
a_daemon_that_refused_the_client_too_made_nothing(void **state)
{
	(void)state;
	make_engine();
	write_file(in_top("down"), "");
	begin_as(true, true);
	assert_true(comes_true(base_is_gone));
	scratch_remove(top);
}

/* Asked twice each, and not for as long as one that may be making it. */
static void
what_an_engine_out_of_reach_has_is_left_to_a_later_start(void **state)
{
	const struct timespec old[2] = { { 1, 0 }, { 1, 0 } };

	(void)state;
	make_engine();
	write_file(in_top("down"), "");
	assert_int_equal(
	    utimensat(AT_FDCWD, in_top("base/place/left-w0-1"), old, 0), 0);
	begin(false);
	assert_true(comes_true(asked_twice));
	poll(NULL, 0, 500);
	assert_int_equal(asked("ps"), 2);
	assert_true(is_there("base/place/left-w0-1"));
	assert_int_equal(unlink(in_top("down")), 0);
	begin(false);
	assert_true(comes_true(base_is_gone));
	scratch_remove(top);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_made_after_the_order_to_remove_it_is_removed),
		cmocka_unit_test(what_has_gone_is_not_waited_for),
		cmocka_unit_test(what_was_asked_for_long_ago_does_not_come),
		cmocka_unit_test(what_is_still_listed_is_not_gone),
		cmocka_unit_test(an_engine_that_does_not_answer_is_asked_again),
		cmocka_unit_test(a_daemon_that_refused_the_client_too_made_nothing),
		cmocka_unit_test(
		    what_an_engine_out_of_reach_has_is_left_to_a_later_start),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
