/* tests/unit/test_sandbox_caps.c: dropping leaves nothing, and a capability that
 * survives in whatever set is found.
 */
#include "sandbox_test.h"

#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "sandbox/caps.h"

/* Run fn in a child as root; its value is the exit code. */
static int
in_child(int (*fn)(void))
{
	pid_t pid;
	int status;

	SKIP_UNLESS(geteuid() == 0, "dropping capabilities takes some: needs root");
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0)
		_exit(fn());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static void
to_uid(void)
{
	if (syscall(SYS_setresgid, 4242, 4242, 4242) < 0 ||
	    syscall(SYS_setresuid, 4242, 4242, 4242) < 0)
		_exit(99);
}

static int
drop_and_verify(void)
{
	kn_caps_drop_bounding(0);
	to_uid();
	return kn_caps_drop(0) == 0 && kn_caps_verify(0) == 0 ? 0 : 1;
}

static int
root_without_dropping(void)
{
	return kn_caps_verify(0) < 0 && errno == EPERM ? 0 : 1;
}

/* Sets as capset would leave them if one call were forgotten. */
static void
set_sets(uint32_t permitted, uint32_t effective, uint32_t inheritable)
{
	struct __user_cap_header_struct h = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct d[2] = { { .effective = effective,
	    .permitted = permitted,
	    .inheritable = inheritable } };

	if (syscall(SYS_capset, &h, d) < 0)
		_exit(98);
}

static int
keep_through_setuid(void)
{
	if (prctl(PR_SET_KEEPCAPS, 1) < 0)
		_exit(97);
	to_uid();
	set_sets(1u << CAP_KILL, 0, 0); /* permitted only: one capset away from use */
	return kn_caps_verify(0) < 0 && errno == EPERM ? 0 : 1;
}

static int
inheritable_survives(void)
{
	const uint32_t ids = 1u << CAP_SETUID | 1u << CAP_SETGID;

	set_sets(ids | 1u << CAP_KILL, ids, 1u << CAP_KILL);
	to_uid();
	if (kn_caps_verify(0) == 0)
		return 1;
	return kn_caps_drop(0) == 0 && kn_caps_verify(0) == 0 ? 0 : 2;
}

static int
uid_zero_with_a_bounding_set(void)
{
	set_sets(0, 0, 0);
	/* Nothing is held, but the next exec would bring all of it back. */
	return kn_caps_verify(0) < 0 && errno == EPERM ? 0 : 1;
}

static int
kept_one_and_no_other(void)
{
	const uint64_t keep = 1ull << CAP_SETFCAP;

	kn_caps_drop_bounding(keep);
	if (kn_caps_drop(keep) < 0 || kn_caps_verify(keep) < 0)
		return 1;
	if (!kn_caps_has(CAP_SETFCAP) || kn_caps_has(CAP_KILL))
		return 2;
	return kn_caps_verify(0) < 0 ? 0 : 3;
}

#define CHILD_TEST(name) \
	static void test_##name(void **state) \
	{ \
		(void)state; \
		assert_int_equal(in_child(name), 0); \
	}
CHILD_TEST(drop_and_verify)
CHILD_TEST(root_without_dropping)
CHILD_TEST(keep_through_setuid)
CHILD_TEST(inheritable_survives)
CHILD_TEST(uid_zero_with_a_bounding_set)
CHILD_TEST(kept_one_and_no_other)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_drop_and_verify),
		cmocka_unit_test(test_root_without_dropping),
		cmocka_unit_test(test_keep_through_setuid),
		cmocka_unit_test(test_inheritable_survives),
		cmocka_unit_test(test_uid_zero_with_a_bounding_set),
		cmocka_unit_test(test_kept_one_and_no_other),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
