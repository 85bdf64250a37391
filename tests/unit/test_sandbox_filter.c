/* tests/unit/test_sandbox_filter.c: the two seccomp programs together say exactly what
 * the policy says: an interpreter of classic BPF runs both over every number and over
 * arguments made from the conditions, and rules do what they say.
 * test_sandbox_filter_kernel.c asks the kernel.
 */
#include "tests/unit/filter_test.h"

/* ---- pair equals policy ---- */

static size_t compared;

static void
compare_one(const struct subject *s, uint32_t nr, const uint64_t args[6])
{
	uint32_t want = kn_ftable_decide(&s->table, s->table.arch, nr, args);
	uint32_t have = ask(s, (long)nr, args);
	compared++;
	if (want != have)
		fail_msg("call %u(%llx, %llx, %llx, %llx): programs %x, policy %x", nr,
		    (unsigned long long)args[0], (unsigned long long)args[1],
		    (unsigned long long)args[2], (unsigned long long)args[3], have,
		    want);
}

/* Around every constant of every condition: equal, one off, one bit off, upper half. */
static void
compare_around(const struct subject *s, uint32_t nr)
{
	const struct kn_fcall *c = &s->table.calls[nr];
	for (size_t i = 0; i < c->n; i++) {
		for (size_t j = 0; j < c->v[i].arg_n; j++) {
			const struct kn_farg *a = &c->v[i].args[j];
			uint64_t base[6] = { 0 };
			for (size_t k = 0; k < c->v[i].arg_n; k++) {
				const struct kn_farg *o = &c->v[i].args[k];
				base[o->index] =
				    o->op == KN_CMP_MASKED_EQ ? o->value_two : o->value;
			}
			uint64_t v = base[a->index];
			for (int bit = -3; bit < 64; bit++) {
				base[a->index] = bit == -3   ? v
						 : bit == -2 ? v + 1
						 : bit == -1 ? v - 1
							     : v ^ (1ull << bit);
				compare_one(s, nr, base);
			}
		}
	}
}

static void
compare_all(const struct subject *s)
{
	static const uint64_t words[] = { 0, 1, 2, 6, 0xffffffff, 0x100000000,
		0x7fffffffffffffff, UINT64_MAX, CLONE_NEWUSER, 0x5412, 06755 };
	for (uint32_t nr = 0; nr <= 600; nr++) {
		for (size_t i = 0; i < sizeof words / sizeof *words; i++)
			for (size_t j = 0; j < sizeof words / sizeof *words; j++) {
				uint64_t x = words[i], y = words[j];
				uint64_t args[6] = { x, y, x, y, x, y };
				compare_one(s, nr, args);
			}
		if (nr < KN_NR_MAX)
			compare_around(s, nr);
	}
	for (uint64_t nr = 0x3ffffff0; nr < 0x40000300; nr++)
		compare_one(s, (uint32_t)nr, (uint64_t[6]){ 0 });
	compare_one(s, 0xffffffff, (uint64_t[6]){ 0 });
}

static void
the_pair_equals_each_preset(void **state)
{
	(void)state;
	for (const char *const *p = kn_policy_presets(); *p; p++) {
		struct subject s;
		subject_open(&s, *p, NULL, NULL);
		compare_all(&s);
		subject_close(&s);
		subject_open(&s, *p, NULL, "/network/mode=host");
		compare_all(&s);
		subject_close(&s);
	}
	assert_true(compared > 500000);
}

static void
the_pair_equals_rules_on_calls_of_the_stub(void **state)
{
	/* Killing, logging and refusing by argument what the stub itself needs. */
	static const char *const rules =
	    "[{\"names\":[\"write\",\"openat\",\"fsopen\"],\"action\":"
	    "\"SCMP_ACT_KILL_PROCESS\",\"args\":[{\"index\":0,\"value\":7,\"op\":"
	    "\"SCMP_CMP_GE\"},{\"index\":2,\"value\":4294967296,\"op\":"
	    "\"SCMP_CMP_LT\"}]},"
	    "{\"names\":[\"kill\",\"capset\"],\"action\":\"SCMP_ACT_LOG\"},"
	    "{\"names\":[\"mmap\"],\"action\":\"SCMP_ACT_ERRNO\",\"errnoRet\":12,"
	    "\"args\":[{\"index\":2,\"value\":4,\"valueTwo\":4,\"op\":"
	    "\"SCMP_CMP_MASKED_EQ\"},{\"index\":1,\"value\":65536,\"op\":"
	    "\"SCMP_CMP_GT\"}]},"
	    "{\"names\":[\"read\"],\"action\":\"SCMP_ACT_ALLOW\",\"args\":[{\"index\":"
	    "2,\"value\":5000000000,\"op\":\"SCMP_CMP_LE\"}]},"
	    "{\"names\":[\"setns\",\"clone3\"],\"action\":\"SCMP_ACT_ALLOW\"}]";
	struct subject s;
	(void)state;
	subject_open(&s, "default", rules, NULL);
	compare_all(&s);
	assert_int_equal(ASK(&s, SYS_write, 7, 0, 5), KILL);
	assert_int_equal(ASK(&s, SYS_write, 6, 0, 5), ALLOW);
	assert_int_equal(ASK(&s, SYS_write, 7, 0, 0x100000000), ALLOW);
	/* Argument 0 is a descriptor: its upper half is not looked at. */
	assert_int_equal(ASK(&s, SYS_write, 0xf00000006, 0, 5), ALLOW);
	assert_int_equal(ASK(&s, SYS_kill, 1), SECCOMP_RET_LOG);
	assert_int_equal(ASK(&s, SYS_mmap, 0, 65537, 4), ERR(12));
	assert_int_equal(ASK(&s, SYS_mmap, 0, 65536, 4), ALLOW);
	assert_int_equal(ASK(&s, SYS_mmap, 0, 65537, 3), ALLOW);
	assert_int_equal(ASK(&s, SYS_setns, 0), ALLOW);
	assert_int_equal(ASK(&s, CLONE3_NR, 0), ALLOW);
	subject_close(&s);
}

static void
every_comparison_is_exact_in_64_bits(void **state)
{
	static const char *const ops[] = { "NE", "LT", "LE", "EQ", "GE", "GT" };
	static const uint64_t values[] = { 0, 1, 0xffffffff, 0x100000000, 0x100000001,
		0x1ffffffff, 0x200000000, 0x7fffffffffffffff };
	enum { N = sizeof values / sizeof *values };
	(void)state;
	for (size_t op = 0; op < sizeof ops / sizeof *ops; op++)
		for (size_t i = 0; i < N; i++) {
			char rule[256];
			struct subject s;
			/* pread64's offset is 64 bits wide; errno 99 marks a match */
			snprintf(rule, sizeof rule,
			    "[{\"names\":[\"pread64\"],\"action\":\"SCMP_ACT_ERRNO\","
			    "\"errnoRet\":99,\"args\":[{\"index\":3,\"value\":%llu,"
			    "\"op\":\"SCMP_CMP_%s\"}]}]",
			    (unsigned long long)values[i], ops[op]);
			subject_open(&s, "default", rule, NULL);
			for (size_t j = 0; j < N; j++) {
				uint64_t v = values[j], x = values[i];
				const bool want[] = { v != x,
					v<x, v <= x, v == x, v >= x, v> x };
				assert_int_equal(ASK(&s, SYS_pread64, 0, 0, 0, v),
				    want[op] ? ERR(99) : ALLOW);
			}
			subject_close(&s);
		}
}

static void
a_masked_comparison_sees_both_halves(void **state)
{
	struct subject s;
	(void)state;
	subject_open(&s, "default",
	    "[{\"names\":[\"pread64\"],\"action\":\"SCMP_ACT_ERRNO\",\"errnoRet\":99,"
	    "\"args\":[{\"index\":3,\"value\":64424509440,\"valueTwo\":4294967296,"
	    "\"op\":\"SCMP_CMP_MASKED_EQ\"}]}]",
	    NULL);
	assert_int_equal(ASK(&s, SYS_pread64, 0, 0, 0, 0x100000000), ERR(99));
	assert_int_equal(ASK(&s, SYS_pread64, 0, 0, 0, 0x1f12345678), ALLOW);
	assert_int_equal(ASK(&s, SYS_pread64, 0, 0, 0, 0xf112345678), ERR(99));
	assert_int_equal(ASK(&s, SYS_pread64, 0, 0, 0, 1), ALLOW);
	subject_close(&s);
}

/* A wanted bit above the mask can never be there. */
static void
a_masked_comparison_that_cannot_hold_never_does(void **state)
{
	struct subject s;
	(void)state;
	subject_open(&s, "default",
	    "[{\"names\":[\"pread64\"],\"action\":\"SCMP_ACT_ERRNO\",\"errnoRet\":99,"
	    "\"args\":[{\"index\":3,\"value\":15,\"valueTwo\":4294967297,\"op\":"
	    "\"SCMP_CMP_MASKED_EQ\"}]}]",
	    NULL);
	assert_int_equal(ASK(&s, SYS_pread64, 0, 0, 0, 1), ALLOW);
	assert_int_equal(ASK(&s, SYS_pread64, 0, 0, 0, 0x100000001), ALLOW);
	subject_close(&s);
}

/* Conditional jumps reach 255 instructions; these programs have over a thousand. */
static void
long_programs_jump_as_far_as_they_must(void **state)
{
	enum { CAP = 1 << 17 };
	static const char *const names[] = { "getpgid", "write", "rmdir", "mount" };
	char *rules = malloc(CAP);
	struct subject s;
	size_t n = (size_t)snprintf(rules, CAP, "[");
	(void)state;
	for (int i = 0; i < 400; i++)
		n += (size_t)snprintf(rules + n, CAP - n,
		    "%s{\"names\":[\"%s\"],\"action\":\"SCMP_ACT_ERRNO\",\"errnoRet\":"
		    "%d,\"args\":[{\"index\":%d,\"value\":%d,\"op\":\"SCMP_CMP_EQ\"}]}",
		    i ? "," : "", names[i % 4], i + 1, i % 3, i * 7);
	snprintf(rules + n, CAP - n, "]");
	subject_open(&s, "default", rules, NULL);
	assert_true(s.filter.worker_n > 400);
	assert_true(s.filter.cell_n > 400);
	compare_all(&s);
	subject_close(&s);
	free(rules);
}

static void
the_assembler_reaches_every_distance(void **state)
{
	(void)state;
	for (uint32_t far = 1; far < 600; far++) {
		struct kn_bpf b = { 0 };
		uint32_t n = 0, last = 0;
		uint32_t yes = kn_bpf_ret(&b, 1), no = kn_bpf_ret(&b, 2);
		for (uint32_t i = 0; i < far; i++)
			last = kn_bpf_ret(&b, 1000 + i);
		uint32_t at = kn_bpf_jump(&b, BPF_JGE, 9, yes, no);
		at = kn_bpf_jump(&b, BPF_JEQ, 5, last, at);
		at = kn_bpf_load(&b, 0, at);
		struct sock_filter *f = kn_bpf_end(&b, at, &n);
		for (int nr = 4; nr < 11; nr++) {
			struct seccomp_data d = { .nr = nr };
			uint32_t want = nr == 5 ? 999 + far : nr >= 9 ? 1 : 2;
			assert_int_equal(run(f, n, &d), want);
		}
		free(f);
	}
}

/* ---- rules ---- */

static void
the_last_rule_that_matches_decides(void **state)
{
	struct subject s;
	(void)state;
	subject_open(&s, "default",
	    "[{\"names\":[\"getppid\"],\"action\":\"SCMP_ACT_ERRNO\",\"errnoRet\":5},"
	    "{\"names\":[\"getppid\"],\"action\":\"SCMP_ACT_ALLOW\",\"args\":"
	    "[{\"index\":0,\"value\":1,\"op\":\"SCMP_CMP_EQ\"}]},"
	    "{\"names\":[\"getuid\",\"getppid\"],\"action\":\"SCMP_ACT_ERRNO\","
	    "\"errnoRet\":6,\"args\":[{\"index\":0,\"value\":2,\"op\":"
	    "\"SCMP_CMP_EQ\"}]}]",
	    NULL);
	assert_int_equal(ASK(&s, SYS_getppid, 0), ERR(5));
	assert_int_equal(ASK(&s, SYS_getppid, 1), ALLOW);
	assert_int_equal(ASK(&s, SYS_getppid, 2), ERR(6));
	assert_int_equal(ASK(&s, SYS_getuid, 2), ERR(6));
	assert_int_equal(ASK(&s, SYS_getuid, 1), ALLOW);
	subject_close(&s);
}

static void
a_rule_equal_to_the_default_action_is_no_error(void **state)
{
	struct subject s;
	(void)state;
	subject_open(&s, "default",
	    "[{\"names\":[\"lookup_dcookie\"],\"action\":\"SCMP_ACT_ERRNO\","
	    "\"errnoRet\":38}]",
	    NULL);
	assert_int_equal(ASK(&s, 212, 0), ERR(38));
	subject_close(&s);
}

static void
a_rule_by_name_opens_what_is_always_refused(void **state)
{
	struct subject s;
	(void)state;
	subject_open(&s, "default", NULL, NULL);
	assert_int_equal(ASK(&s, SYS_ptrace, 0), ERR(EPERM));
	subject_close(&s);
	subject_open(&s, "default",
	    "[{\"names\":[\"ptrace\"],\"action\":\"SCMP_ACT_ALLOW\"}]", NULL);
	assert_int_equal(ASK(&s, SYS_ptrace, 0), ALLOW);
	assert_int_equal(ASK(&s, SYS_process_vm_readv, 0), ERR(EPERM));
	subject_close(&s);
}

static void
guards_hold_where_everything_unlisted_is_allowed(void **state)
{
	struct subject s;
	(void)state;
	subject_open(&s, "default", NULL, "/seccomp/default/action=\"SCMP_ACT_ALLOW\"");
	assert_int_equal(ASK(&s, SYS_mount, 0), ERR(EPERM));
	assert_int_equal(ASK(&s, 501, 0), ALLOW);
	assert_int_equal(ASK(&s, 0x40000000 | SYS_getpid, 0), ERR(ENOSYS));
	compare_all(&s);
	subject_close(&s);
}

static void
a_program_too_long_names_its_length(void **state)
{
	enum { CAP = 1 << 19 };
	struct kn_err e;
	struct kn_policy *p;
	struct kn_filter f;
	char *set = malloc(CAP);
	size_t n = (size_t)snprintf(set, CAP, "/seccomp/rules=[");
	(void)state;
	for (int i = 0; i < 2200; i++)
		n += (size_t)snprintf(set + n, CAP - n,
		    "%s{\"names\":[\"getppid\"],\"action\":\"SCMP_ACT_ERRNO\","
		    "\"errnoRet\":%d,\"args\":[{\"index\":0,\"value\":%d,\"op\":"
		    "\"SCMP_CMP_EQ\"}]}",
		    i ? "," : "", i % 4000 + 1, i);
	snprintf(set + n, CAP - n, "]");
	const struct kn_policy_src src = { .type = KN_SRC_SET, .text = set };
	kn_err_clear(&e);
	assert_int_equal(kn_policy_load(&src, 1, &p, &e), 0);
	assert_int_equal(kn_filter_build(p, &f, &e), -1);
	assert_non_null(strstr(e.msg, "instructions"));
	assert_int_equal(e.kind, KN_EK_CONFIG);
	kn_policy_free(p);
	free(set);
}

/* ---- the whole tables ---- */

static void
the_stub_may_make_its_calls_under_every_preset(void **state)
{
	bool stub[KN_NR_MAX];
	(void)state;
	kn_filter_stub_calls(stub);
	for (const char *const *p = kn_policy_presets(); *p; p++) {
		struct subject s;
		subject_open(&s, *p, NULL, NULL);
		for (int nr = 0; nr < KN_NR_MAX; nr++) {
			struct seccomp_data d = { .nr = nr, .arch = s.table.arch };
			for (int i = 0; i < 6; i++)
				d.args[i] = UINT64_MAX;
			/* what the stub makes in harmless forms only */
			for (size_t i = 0; i < kn_filter_stub_form_n; i++)
				if (kn_filter_nr(kn_filter_stub_forms[i].name) == nr)
					memcpy(d.args, kn_filter_stub_forms[i].args,
					    sizeof d.args);
			if (stub[nr])
				assert_int_equal(
				    run(s.filter.worker_bpf, s.filter.worker_n, &d),
				    ALLOW);
		}
		subject_close(&s);
	}
}

static void
groups_hold_groups_and_rules_name_them(void **state)
{
	struct subject s;
	struct kn_policy *p = NULL;
	struct kn_err e;
	const struct kn_policy_src all[] = {
		{ .type = KN_SRC_NAMED, .text = "default" },
		{ .type = KN_SRC_SET, .text = "/seccomp/groups/add=[\"@mount\"]" },
	};
	(void)state;
	subject_open(&s, "default",
	    "[{\"names\":[\"@keyring\"],\"action\":\"SCMP_ACT_ALLOW\"},"
	    "{\"names\":[\"@sync\"],\"action\":\"SCMP_ACT_ERRNO\",\"errnoRet\":61}]",
	    "/seccomp/groups/replace=[\"@system-service\"]");
	assert_int_equal(ASK(&s, SYS_io_submit, 0), ALLOW); /* by @aio in it */
	assert_int_equal(ASK(&s, SYS_keyctl, 0), ALLOW);
	assert_int_equal(ASK(&s, SYS_request_key, 0), ALLOW);
	assert_int_equal(ASK(&s, SYS_fsync, 0), ERR(61));
	assert_int_equal(ASK(&s, SYS_pkey_alloc, 0), ERR(ENOSYS));
	assert_int_equal(ASK(&s, SYS_mount, 0), ERR(EPERM));
	subject_close(&s);
	subject_open(&s, "default", NULL, "/seccomp/groups/replace=[\"@known\"]");
	assert_int_equal(ASK(&s, SYS_mbind, 0), ALLOW);
	assert_int_equal(ASK(&s, 468, 0), ALLOW); /* file_getattr, of our own table */
	assert_int_equal(ASK(&s, SYS_mount, 0), ERR(EPERM));
	assert_int_equal(ASK(&s, 570, 0), ERR(ENOSYS));
	subject_close(&s);
	/* What would do nothing is refused. */
	kn_err_clear(&e);
	assert_int_equal(kn_policy_load(all, 2, &p, &e), -1);
	assert_non_null(strstr(e.msg, "/seccomp/groups/add/0"));
	assert_non_null(strstr(e.msg, "always refused"));
	assert_int_equal(kn_filter_check_group_allows("@privileged", &e), 0);
}

static void
every_name_in_our_tables_is_known(void **state)
{
	struct kn_err e;
	(void)state;
	kn_err_clear(&e);
	for (size_t i = 0; i < kn_filter_group_n; i++)
		for (const char *const *c = kn_filter_groups[i].calls; *c; c++)
			if (strcmp(*c, "*") != 0 &&
			    (**c == '@' ? kn_filter_check_group(*c, &e)
					: kn_filter_check_call(*c, &e)) < 0)
				fail_msg("%s: %s", kn_filter_groups[i].name, e.msg);
	for (size_t i = 0; i < kn_filter_guard_n; i++)
		for (const char *const *c = kn_filter_guards[i].names; *c; c++)
			if (kn_filter_check_call(*c, &e) < 0)
				fail_msg("guard %zu: %s", i, e.msg);
	assert_int_equal(kn_filter_check_call("io_uring_entre", &e), -1);
	assert_int_equal(kn_filter_check_call("mseal", &e), 0);
	assert_int_equal(kn_filter_nr("file_setattr"), 469);
#if defined(__x86_64__)
	assert_int_equal(kn_filter_nr("uprobe"), 336);
	assert_int_equal(kn_filter_nr_of(KN_ABI_I386, "uprobe"), KN_NR_FOREIGN);
	assert_int_equal(kn_filter_nr_of(KN_ABI_I386, "socket"), 359);
	assert_int_equal(kn_filter_nr_of(KN_ABI_X32, "ioctl"), 514);
#endif
	assert_int_equal(kn_filter_check_group("@nosuch", &e), -1);
	assert_int_equal(kn_filter_nr("socketcall"), KN_NR_FOREIGN);
	assert_true(kn_filter_arg_is_32("ioctl", 1));
	assert_false(kn_filter_arg_is_32("ioctl", 2));
	assert_false(kn_filter_arg_is_32("read", 2));
	assert_true(kn_filter_arg_is_32("openat", 2));
	assert_false(kn_filter_arg_is_32("ctl", 0));
	assert_false(kn_filter_arg_is_32("nosuch", 0));
}

static void
another_architecture_is_killed(void **state)
{
	struct subject s;
	struct seccomp_data d = { .nr = SYS_getpid, .arch = AUDIT_ARCH_I386 };
	(void)state;
	subject_open(&s, "default", NULL, NULL);
	assert_int_equal(both(&s.filter, &d), KILL);
	subject_close(&s);
}

static void
programs_are_small(void **state)
{
	/* Loading costs time per instruction, once per task for the cell program. */
	(void)state;
	for (const char *const *p = kn_policy_presets(); *p; p++) {
		struct subject s;
		struct timespec a, b;
		struct kn_filter f;
		struct kn_err e;
		subject_open(&s, *p, NULL, NULL);
		clock_gettime(CLOCK_MONOTONIC, &a);
		assert_int_equal(kn_filter_build(s.policy, &f, &e), 0);
		clock_gettime(CLOCK_MONOTONIC, &b);
		print_message("%-8s worker %u, cell %u instructions, %ld us\n", *p,
		    f.worker_n, f.cell_n,
		    (long)((b.tv_sec - a.tv_sec) * 1000000 +
			   (b.tv_nsec - a.tv_nsec) / 1000));
		assert_true(f.worker_n < 400);
		assert_true(f.cell_n < 120);
		kn_filter_fini(&f);
		subject_close(&s);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_pair_equals_each_preset),
		cmocka_unit_test(the_pair_equals_rules_on_calls_of_the_stub),
		cmocka_unit_test(every_comparison_is_exact_in_64_bits),
		cmocka_unit_test(a_masked_comparison_sees_both_halves),
		cmocka_unit_test(a_masked_comparison_that_cannot_hold_never_does),
		cmocka_unit_test(long_programs_jump_as_far_as_they_must),
		cmocka_unit_test(the_assembler_reaches_every_distance),
		cmocka_unit_test(the_last_rule_that_matches_decides),
		cmocka_unit_test(a_rule_equal_to_the_default_action_is_no_error),
		cmocka_unit_test(a_rule_by_name_opens_what_is_always_refused),
		cmocka_unit_test(guards_hold_where_everything_unlisted_is_allowed),
		cmocka_unit_test(a_program_too_long_names_its_length),
		cmocka_unit_test(the_stub_may_make_its_calls_under_every_preset),
		cmocka_unit_test(groups_hold_groups_and_rules_name_them),
		cmocka_unit_test(every_name_in_our_tables_is_known),
		cmocka_unit_test(another_architecture_is_killed),
		cmocka_unit_test(programs_are_small),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
