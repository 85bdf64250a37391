/* The pattern matcher: what a collect pattern means, and that a hostile name
 * cannot make it slow. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "ipc/glob.c"

static bool
match(const char *pattern, const char *name)
{
	return kn_glob_match(pattern, strlen(pattern), name);
}

static void
patterns_mean_what_a_shell_means(void **state)
{
	static const struct {
		const char *pattern, *name;
		bool yes;
	} cases[] = {
		{ "a.png", "a.png", true },
		{ "a.png", "a.pn", false },
		{ "a.png", "a.pngx", false },
		{ "*.png", "a.png", true },
		{ "*.png", ".png", false }, /* a leading dot must be named */
		{ ".*", ".hidden", true },
		{ "*", "anything", true },
		{ "*", ".hidden", false },
		{ "?", "x", true },
		{ "?", "xy", false },
		{ "?x", ".x", false },
		{ "a*b*c", "a1b2c", true },
		{ "a*b*c", "abbbbc", true },
		{ "a*b*c", "acb", false },
		{ "[abc]x", "bx", true },
		{ "[!abc]x", "bx", false },
		{ "[a-f]9", "e9", true },
		{ "[a-f]9", "g9", false },
		{ "[]x]", "]", true },
		{ "[a-]", "-", true },
		{ "[abc", "[abc", true }, /* not closed: itself */
		{ "\\*", "*", true },
		{ "\\*", "x", false },
		{ "**", "ab", true },
		{ "a**", "a", true },
		{ "", "a", false },
		{ "*a", "aaaaab", false },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
		if (match(cases[i].pattern, cases[i].name) != cases[i].yes)
			fail_msg("\"%s\" against \"%s\" should be %d", cases[i].pattern,
			    cases[i].name, cases[i].yes);
}

/* With backtracking over every star this would take longer than the universe has. */
static void
many_stars_against_a_long_name_end(void **state)
{
	char name[256], pattern[256];

	(void)state;
	memset(name, 'a', 255);
	name[255] = '\0';
	for (size_t i = 0; i < 254; i += 2)
		memcpy(pattern + i, "*a", 2);
	memcpy(pattern + 254, "b", 2);
	assert_false(match(pattern, name));
	name[254] = 'b';
	assert_true(match(pattern, name));
}

static void
plain_names_are_told_from_patterns(void **state)
{
	(void)state;
	assert_false(kn_glob_is_pattern("out/a.png", 9));
	assert_true(kn_glob_is_pattern("out/*.png", 9));
	assert_true(kn_glob_is_pattern("a[1]", 4));
	assert_false(kn_glob_is_pattern("a*", 1));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(patterns_mean_what_a_shell_means),
		cmocka_unit_test(many_stars_against_a_long_name_end),
		cmocka_unit_test(plain_names_are_told_from_patterns),
	};

	return cmocka_run_group_tests_name("ipc/glob", tests, NULL, NULL);
}
