/* tests/unit/test_sandbox_lack.c: the table of what machines lack: each row says what,
 * which layer and what to do, for everybody who may ask, and fits into a hint.
 */
#include "sandbox_test.h"

#include <errno.h>

#include "sandbox/doctor.h"
#include "sandbox/lack.h"

static void
each_lack_has_a_name_a_layer_and_a_fix_for_everybody(void **state)
{
	(void)state;
	for (int c = KN_LACK_NONE + 1; c < KN_LACK_N; c++) {
		const char *name = kn_lack_name((enum kn_lack)c);

		assert_true(name[0] != '\0');
		assert_true(kn_lack_what((enum kn_lack)c)[0] != '\0');
		assert_true(kn_lack_layer((enum kn_lack)c)[0] != '\0');
		for (int b = KN_LACK_NONE + 1; b < c; b++)
			assert_string_not_equal(kn_lack_name((enum kn_lack)b), name);
		for (int i = 0; i < KN_INSIDE_N; i++) {
			struct kn_around a = { .inside = (enum kn_inside)i };
			char fix[512] = "";
			enum kn_who who;

			for (int root = 0; root < 2; root++) {
				kn_lack_fix(
				    (enum kn_lack)c, &a, root, fix, sizeof(fix), &who);
				assert_true(fix[0] != '\0');
				assert_null(strchr(fix, '%'));
				assert_true(strlen(fix) + strlen("as root: ; ") +
						strlen(kn_lack_what((enum kn_lack)c)) <
					    sizeof(((struct kn_err *)0)->hint));
				/* Nobody is told to do without walls. */
				assert_null(strstr(fix, "--privileged"));
				assert_null(strstr(fix, "seccomp=unconfined"));
				if (root)
					assert_int_not_equal(who, KN_WHO_ROOT);
			}
		}
	}
}

static void
a_hint_is_never_cut(void **state)
{
	(void)state;
	for (int c = KN_LACK_NONE + 1; c < KN_LACK_N; c++) {
		struct kn_err e = { 0 };

		kn_lack_hint((enum kn_lack)c, c % 2, &e);
		assert_true(e.hint[0] != '\0');
		assert_true(strlen(e.hint) < sizeof(e.hint) - 1);
	}
}

static void
what_refuses_is_told_from_errno_and_surroundings(void **state)
{
	struct kn_around a = { 0 };

	(void)state;
	if (kn_lack_of_userns(EPERM, &a) != KN_LACK_CHROOT)
		return; /* a setting of this machine comes first, rightly */
	a.inside = KN_INSIDE_OTHER;
	assert_int_equal(kn_lack_of_userns(EPERM, &a), KN_LACK_USERNS_OTHER);
	assert_int_equal(kn_lack_of_userns(EACCES, &a), KN_LACK_LSM);
	assert_int_equal(kn_lack_of_userns(ENOSPC, &a), KN_LACK_NS_LIMIT);
	assert_int_equal(kn_lack_of_userns(EAGAIN, &a), KN_LACK_PROCESSES);
	assert_int_equal(kn_lack_of_userns(EINVAL, &a), KN_LACK_USERNS_KERNEL);
	a.filtered = true;
	assert_int_equal(kn_lack_of_userns(EPERM, &a), KN_LACK_FILTER);
	assert_int_equal(kn_lack_of_inner(KN_LACK_MOUNT, &a), KN_LACK_FILTER);
	assert_int_equal(
	    kn_lack_of_inner(KN_LACK_PROC_MASKED, &a), KN_LACK_PROC_MASKED);
	a.chrooted = true;
	assert_int_equal(kn_lack_of_userns(EPERM, &a), KN_LACK_CHROOT);
	a.wsl = 1;
	assert_int_equal(kn_lack_of_userns(EPERM, &a), KN_LACK_WSL1);
}

static void
each_probe_has_a_name_and_what_is_lost(void **state)
{
	(void)state;
	for (int p = 0; p < KN_PROBE_N; p++) {
		assert_true(kn_probe_name((enum kn_probe)p)[0] != '\0');
		assert_true(kn_probe_loses((enum kn_probe)p)[0] != '\0');
		for (int q = 0; q < p; q++)
			assert_string_not_equal(kn_probe_name((enum kn_probe)p),
			    kn_probe_name((enum kn_probe)q));
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_lack_has_a_name_a_layer_and_a_fix_for_everybody),
		cmocka_unit_test(a_hint_is_never_cut),
		cmocka_unit_test(what_refuses_is_told_from_errno_and_surroundings),
		cmocka_unit_test(each_probe_has_a_name_and_what_is_lost),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
