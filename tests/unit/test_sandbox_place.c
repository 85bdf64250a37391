/* tests/unit/test_sandbox_place.c: a place that is closed or swept stays as long as it
 * has notes, and who ends the last of them ends it.
 */
#include "sandbox_test.h"

#include "sandbox/place.h"

static char top[64];

/* A place of this process, with a note and something else. */
static void
open_place(uint8_t first, char *place, size_t n)
{
	uint8_t id[16] = { 0 };
	struct kn_err e = { 0 };

	id[0] = first;
	OK(kn_place_open(id, place, n, &e), e);
	write_file(join(place, "left-w0-1"), "");
	assert_int_equal(mkdir(join(place, "root"), 0700), 0);
	write_file(join(place, "root/left-alone"), "");
}

static void
a_place_stays_as_long_as_it_has_notes(void **state)
{
	char place[2][256];
	struct stat st;

	(void)state;
	scratch_make(top);
	setenv("XDG_RUNTIME_DIR", top, 1);
	open_place(1, place[0], sizeof place[0]);
	open_place(2, place[1], sizeof place[1]);
	assert_int_equal(kn_place_rest(place[0], false), KN_PLACE_REST_SHARED);
	kn_place_close(place[1]);
	assert_int_equal(lstat(join(place[1], "left-w0-1"), &st), 0);
	assert_int_equal(lstat(join(place[1], "root"), &st), -1);
	assert_int_equal(kn_place_rest(place[0], false), KN_PLACE_REST_NOTED);
	kn_place_done(join(place[0], "left-w0-1"));
	/* The other's count too. */
	assert_int_equal(kn_place_rest(place[0], false), KN_PLACE_REST_NOTED);
	kn_place_done(join(place[1], "left-w0-1"));
	assert_int_equal(lstat(place[1], &st), -1);
	assert_int_equal(kn_place_rest(place[0], false), KN_PLACE_REST_NONE);
	assert_int_equal(lstat(join(place[0], "root"), &st), 0);
	kn_place_close(place[0]);
	assert_int_equal(lstat(place[0], &st), -1);
	scratch_remove(top);
}

static void
nothing(const char *dir)
{
	(void)dir;
}

static void
notes_of_the_dead_count_for_who_has_swept(void **state)
{
	enum kn_place_rest before;
	char place[256], dead[320];
	struct stat st;

	(void)state;
	scratch_make(top);
	setenv("XDG_RUNTIME_DIR", top, 1);
	open_place(3, place, sizeof place);
	(void)kn_place_sweep(place, nothing); /* of a test that was aborted */
	kn_place_done(join(place, "left-w0-1"));
	/* Where no /run of our own was to be had, root's places are the machine's, and
	 * an engine out of reach leaves notes. */
	before = kn_place_rest(place, true);
	assert_int_equal(stat("/proc/self/ns/pid", &st), 0);
	snprintf(dead, sizeof dead, "%.*s/knit-%032d-%d-1-%llu",
	    (int)(strrchr(place, '/') - place), place, 8, getpid(),
	    (unsigned long long)st.st_ino); /* began at 1: not this process */
	assert_int_equal(mkdir(dead, 0700), 0);
	write_file(join(dead, "left-w0-1"), "");
	write_file(join(dead, "other"), "");
	assert_int_equal(kn_place_sweep(place, nothing), 0);
	assert_int_equal(lstat(join(dead, "other"), &st), -1);
	assert_int_equal(kn_place_rest(place, true), KN_PLACE_REST_NOTED);
	assert_int_equal(kn_place_rest(place, false), KN_PLACE_REST_NONE);
	kn_place_done(join(dead, "left-w0-1"));
	assert_int_equal(lstat(dead, &st), -1);
	assert_int_equal(kn_place_rest(place, true), before);
	kn_place_close(place);
	scratch_remove(top);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_place_stays_as_long_as_it_has_notes),
		cmocka_unit_test(notes_of_the_dead_count_for_who_has_swept),
	};

	have_own_run();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
