/* tests/unit/test_sandbox_explain.c: what a filter program answers, instruction by
 * instruction, and who is said to decide about a call.
 */
#include "tests/unit/filter_test.h"

#include "sandbox/filter_explain.h"

#define LOAD_AT(k) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, k)
#define RET(k) BPF_STMT(BPF_RET | BPF_K, k)
#define JUMP(op, k, t, f) BPF_JUMP(BPF_JMP | (op) | BPF_K, k, t, f)

static uint32_t
runs(const struct sock_filter *f, uint32_t n, uint64_t arg)
{
	struct seccomp_data d = { .nr = 7, .arch = 3, .args = { arg } };
	struct kn_err e;
	uint32_t out = 99;
	kn_err_clear(&e);
	if (kn_filter_run(f, n, &d, &out, &e) < 0) {
		assert_int_equal(e.kind, KN_EK_BUG);
		assert_int_equal(out, 99);
		return UINT32_MAX;
	}
	return out;
}
#define RUNS(arg, ...) \
	runs((const struct sock_filter[]){ __VA_ARGS__ }, \
	    sizeof((const struct sock_filter[]){ __VA_ARGS__ }) / \
		sizeof(struct sock_filter), \
	    arg)

static void
programs_are_read_as_the_kernel_reads_them(void **state)
{
	enum { NR = 0, ARCH = 4, ARG = 16 };
	(void)state;
	assert_int_equal(RUNS(0, RET(5)), 5);
	assert_int_equal(
	    RUNS(0, LOAD_AT(NR), JUMP(BPF_JEQ, 7, 0, 1), RET(1), RET(2)), 1);
	assert_int_equal(
	    RUNS(0, LOAD_AT(ARCH), JUMP(BPF_JEQ, 7, 0, 1), RET(1), RET(2)), 2);
	for (uint64_t x = 9; x < 12; x++) {
		assert_int_equal(
		    RUNS(x, LOAD_AT(ARG), JUMP(BPF_JGT, 10, 0, 1), RET(1), RET(2)),
		    x > 10 ? 1 : 2);
		assert_int_equal(
		    RUNS(x, LOAD_AT(ARG), JUMP(BPF_JGE, 10, 0, 1), RET(1), RET(2)),
		    x >= 10 ? 1 : 2);
	}
	assert_int_equal(
	    RUNS(0xff, LOAD_AT(ARG), BPF_STMT(BPF_ALU | BPF_AND | BPF_K, 6),
		JUMP(BPF_JEQ, 6, 0, 1), RET(1), RET(2)),
	    1);
	assert_int_equal(RUNS(0, BPF_STMT(BPF_JMP | BPF_JA, 1), RET(1), RET(2)), 2);
	/* comparisons are unsigned */
	assert_int_equal(
	    RUNS(UINT64_MAX, LOAD_AT(ARG), JUMP(BPF_JGT, 1, 0, 1), RET(1), RET(2)), 1);
}

static void
what_is_no_program_is_an_error(void **state)
{
	(void)state;
	assert_int_equal(RUNS(0, LOAD_AT(0)), UINT32_MAX);
	assert_int_equal(RUNS(0, BPF_STMT(BPF_JMP | BPF_JA, 9), RET(1)), UINT32_MAX);
	assert_int_equal(
	    RUNS(0, BPF_STMT(BPF_JMP | BPF_JA, UINT32_MAX), RET(1)), UINT32_MAX);
	assert_int_equal(RUNS(0, LOAD_AT(64), RET(1)), UINT32_MAX);
	assert_int_equal(RUNS(0, LOAD_AT(2), RET(1)), UINT32_MAX);
	assert_int_equal(RUNS(0, LOAD_AT(UINT32_MAX - 3), RET(1)), UINT32_MAX);
	assert_int_equal(
	    RUNS(0, BPF_STMT(BPF_ALU | BPF_ADD | BPF_K, 1), RET(1)), UINT32_MAX);
	assert_int_equal(runs(NULL, 0, 0), UINT32_MAX);
}

/* Who decides about `call` with these arguments, and what happens. */
static void
decides(const struct kn_book *b, const char *call, uint64_t a0, uint64_t a1,
    const char *does, const char *by, const char *why)
{
	struct kn_ask q;
	struct kn_answer a;
	struct kn_err e;
	kn_err_clear(&e);
	if (kn_book_parse(call, &q, &e) < 0)
		fail_msg("%s", e.msg);
	q.args[0] = a0;
	q.args[1] = a1;
	if (kn_book_ask(b, &q, &a, &e) < 0)
		fail_msg("%s", e.msg);
	if (!strstr(a.does, does) || !strstr(a.by, by) || !strstr(a.why, why))
		fail_msg(
		    "%s: \"%s\" by \"%s\" since \"%s\"", call, a.does, a.by, a.why);
}

static void
who_decides_is_named(void **state)
{
	struct kn_book *b = NULL;
	struct subject s;
	struct kn_err e;
	(void)state;
	kn_err_clear(&e);
	subject_open(&s, "judge",
	    "[{\"names\":[\"getppid\"],\"action\":\"SCMP_ACT_TRAP\",\"why\":\"so\"}]",
	    "/seccomp/architectures=[\"SCMP_ARCH_X86\"]");
	assert_int_equal(kn_book_open(s.policy, &b, &e), 0);
	decides(b, "read", 0, 0, "allowed", "group @basic-io (preset default)", "");
	decides(b, "ptrace", 0, 0, "ends the process",
	    "/seccomp/rules/1 (preset judge)", "attack");
	decides(b, "getppid", 0, 0, "may catch", "(--set)", "so");
	decides(b, "ioctl", 0, 0x5412, "EPERM", "always refused", "terminal");
	decides(b, "ioctl", 0, 0x5413, "allowed", "group @ioctl", "");
	decides(b, "socket", 1, 1, "EAFNOSUPPORT", "rule", "libc");
	decides(b, "mbind", 0, 0, "ENOSYS", "nothing names it", "");
	decides(b, "memfd_create", 0, 0, "allowed", "@ipc", "no cgroup");
	decides(b, "570", 0, 0, "ENOSYS", "nothing names it", "");
#if defined(__x86_64__)
	decides(b, "i386:getppid", 0, 0, "may catch", "--set", "so");
	decides(b, "i386:20", 0, 0, "allowed", "group @default", "");
	decides(b, "i386:socketcall", 0, 0, "ENOSYS", "always refused", "memory");
	decides(b, "x32:read", 0, 0, "ENOSYS", "/seccomp/architectures", "");
	decides(b, "uprobe", 0, 0, "ENOSYS", "nothing", "ask no filter");
#endif
	kn_book_close(b);
	subject_close(&s);
}

static void
each_case_of_a_call_has_an_example(void **state)
{
	struct kn_book *b = NULL;
	struct kn_answer a;
	struct kn_ask q;
	struct subject s;
	struct kn_err e;
	size_t n = 0, allowed = 0, killed = 0;
	int more;
	(void)state;
	kn_err_clear(&e);
	subject_open(&s, "judge", NULL, NULL);
	assert_int_equal(kn_book_open(s.policy, &b, &e), 0);
	assert_int_equal(kn_book_parse("clone", &q, &e), 0);
	while ((more = kn_book_case(b, &q, n, &a, &e)) == 0) {
		assert_true(a.depends);
		allowed += a.ret == ALLOW;
		killed += a.ret == KILL;
		n++;
	}
	assert_int_equal(more, 1);
	assert_true(allowed > 0 && killed > 0);
	kn_book_close(b);
	subject_close(&s);
}

static void
the_rule_that_would_allow_a_call_does(void **state)
{
	static const struct {
		const char *call;
		uint64_t args[2];
	} calls[] = { { "ptrace", { 16 } }, { "mbind", { 0 } },
		{ "ioctl", { 0, 0x5412 } }, { "clone", { 0x10000000 } },
		{ "socket", { 2, 1 } } };
	(void)state;
	for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
		struct kn_book *b[2] = { NULL, NULL };
		struct kn_answer a;
		struct kn_ask q;
		struct subject s[2];
		struct kn_err e;
		char rules[512];
		kn_err_clear(&e);
		subject_open(&s[0], "judge", NULL, NULL);
		assert_int_equal(kn_book_open(s[0].policy, &b[0], &e), 0);
		assert_int_equal(kn_book_parse(calls[i].call, &q, &e), 0);
		memcpy(q.args, calls[i].args, sizeof calls[i].args);
		char *rule = kn_book_rule_for(b[0], &q);
		assert_non_null(rule);
		snprintf(rules, sizeof rules, "[%s]", rule);
		subject_open(&s[1], "judge", rules, NULL);
		assert_int_equal(kn_book_open(s[1].policy, &b[1], &e), 0);
		assert_int_equal(kn_book_ask(b[1], &q, &a, &e), 0);
		if (a.ret != ALLOW)
			fail_msg("%s: %s by %s", rules, a.does, a.by);
		assert_null(kn_book_rule_for(b[1], &q));
		free(rule);
		for (int j = 0; j < 2; j++) {
			kn_book_close(b[j]);
			subject_close(&s[j]);
		}
	}
}

static void
names_of_calls_are_read(void **state)
{
	struct kn_ask q;
	struct kn_err e;
	(void)state;
	kn_err_clear(&e);
	assert_int_equal(kn_book_parse("openat", &q, &e), 0);
	assert_int_equal(q.nr, SYS_openat);
	assert_int_equal(kn_book_parse("0x10", &q, &e), 0);
	assert_int_equal(q.nr, 16);
	assert_int_equal(kn_book_parse("opennat", &q, &e), -1);
	assert_non_null(strstr(e.msg, "openat"));
	assert_int_equal(e.kind, KN_EK_USAGE);
	assert_int_equal(kn_book_parse("", &q, &e), -1);
	assert_int_equal(kn_book_parse("5x", &q, &e), -1);
	assert_int_equal(kn_book_parse("99999999999", &q, &e), -1);
#if defined(__x86_64__)
	assert_int_equal(kn_book_parse("i386:socketcall", &q, &e), 0);
	assert_int_equal(q.nr, 102);
	assert_int_equal(kn_book_parse("x32:ioctl", &q, &e), 0);
	assert_int_equal(q.nr, 514);
	assert_int_equal(kn_book_parse("socketcall", &q, &e), -1);
#endif
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(programs_are_read_as_the_kernel_reads_them),
		cmocka_unit_test(what_is_no_program_is_an_error),
		cmocka_unit_test(who_decides_is_named),
		cmocka_unit_test(each_case_of_a_call_has_an_example),
		cmocka_unit_test(the_rule_that_would_allow_a_call_does),
		cmocka_unit_test(names_of_calls_are_read),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
