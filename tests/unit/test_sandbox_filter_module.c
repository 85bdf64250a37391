/* tests/unit/test_sandbox_filter_module.c: kind module's calls under every preset, and
 * against rules that say otherwise. */
#include "tests/unit/filter_test.h"

static void
open_module(struct subject *s, const char *preset, const char *rules)
{
	char set[512];
	struct kn_policy_src src[4] = {
		{ .type = KN_SRC_NAMED, .text = preset },
		{ .type = KN_SRC_SET, .text = "/pool/kind=module" },
		{ .type = KN_SRC_SET, .text = "/pool/module=/lib/tasks.so" },
		{ .type = KN_SRC_SET, .text = set },
	};
	struct kn_err e;

	kn_err_clear(&e);
	snprintf(set, sizeof set, "/seccomp/rules=%s", rules ? rules : "[]");
	if (kn_policy_load(src, rules ? 4 : 3, &s->policy, &e) < 0)
		fail_msg("%s: %s", preset, e.msg);
	if (kn_filter_build(s->policy, &s->filter, &e) < 0)
		fail_msg("%s: %s", preset, e.msg);
	assert_int_equal(kn_ftable_init(&s->table, s->policy, false, &e), 0);
}

/* What the two programs say together, which is what a module's process meets. */
static uint32_t
says(const struct subject *s, long nr)
{
	struct seccomp_data d = { .nr = (int)nr, .arch = s->table.arch };
	uint32_t ret = both(&s->filter, &d);

	assert_int_equal(ret, ask(s, (uint32_t)nr, (const uint64_t[6]){ 0 }));
	return ret;
}

static void
a_module_can_never_move_its_mapping(void **state)
{
	(void)state;
	for (const char *const *p = kn_policy_presets(); *p; p++) {
		static const char *const rules[] = { NULL,
			"[{\"names\":[\"mremap\",\"remap_file_pages\"],\"action\":"
			"\"SCMP_ACT_ALLOW\"}]" };

		for (int i = 0; i < 2; i++) {
			struct subject s;

			open_module(&s, *p, rules[i]);
			assert_int_equal(says(&s, SYS_mremap), ERR(EPERM));
			assert_int_equal(says(&s, SYS_remap_file_pages), ERR(EPERM));
			subject_close(&s);
		}
	}
}

static void
its_process_has_what_it_needs_under_every_preset(void **state)
{
	(void)state;
	for (const char *const *p = kn_policy_presets(); *p; p++) {
		struct subject s;

		open_module(&s, *p, NULL);
		for (const char *const *n = kn_filter_module_needs; *n; n++) {
			int nr = kn_filter_nr(*n);

			if (nr >= 0 && says(&s, nr) != ALLOW)
				fail_msg("%s: %s is refused", *p, *n);
		}
		subject_close(&s);
	}
}

static void
a_rule_still_takes_from_a_module_and_guards_hold(void **state)
{
	struct subject s;

	(void)state;
	open_module(&s, "strict",
	    "[{\"names\":[\"mseal\"],\"action\":\"SCMP_ACT_ERRNO\",\"errnoRet\":38}]");
	assert_int_equal(says(&s, 462), ERR(ENOSYS));
	assert_int_equal(ASK(&s, SYS_openat, 3, 0, O_CREAT, 04644), ERR(EPERM));
	assert_int_equal(says(&s, SYS_ptrace), ERR(EPERM));
	subject_close(&s);
}

static void
kind_exec_is_as_it_was(void **state)
{
	struct subject s;

	(void)state;
	subject_open(&s, "default", NULL, NULL);
	assert_int_equal(says(&s, SYS_mremap), ALLOW);
	subject_close(&s);
	subject_open(&s, "strict", NULL, NULL);
	assert_int_not_equal(says(&s, 462), ALLOW);
	subject_close(&s);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_module_can_never_move_its_mapping),
		cmocka_unit_test(its_process_has_what_it_needs_under_every_preset),
		cmocka_unit_test(a_rule_still_takes_from_a_module_and_guards_hold),
		cmocka_unit_test(kind_exec_is_as_it_was),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
