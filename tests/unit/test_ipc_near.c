/* The word that was meant: near ones are found, far ones are not guessed, and a hostile
 * name is only a name.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "ipc/near.c"

static const char *const words[] = { "memory", "network", "pids", "cpus", NULL };

static void
a_typo_finds_its_word(void **state)
{
	(void)state;
	assert_string_equal(kn_near_word(words, "memroy"), "memory");
	assert_string_equal(kn_near_word(words, "netwrk"), "network");
	assert_string_equal(kn_near_word(words, "pid"), "pids");
	assert_string_equal(kn_near_word(words, "cpsu"), "cpus");
	assert_string_equal(kn_near_word(words, "memory"), "memory");
}

static void
what_is_far_is_not_guessed(void **state)
{
	char longest[4096];

	(void)state;
	assert_null(kn_near_word(words, "filesystem"));
	assert_null(kn_near_word(words, "m"));
	assert_null(kn_near_word(words, ""));
	memset(longest, 'm', sizeof longest - 1);
	longest[sizeof longest - 1] = '\0';
	assert_null(kn_near_word(words, longest));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_typo_finds_its_word),
		cmocka_unit_test(what_is_far_is_not_guessed),
	};

	return cmocka_run_group_tests_name("ipc/near", tests, NULL, NULL);
}
