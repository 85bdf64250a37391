/* tests/unit/test_sandbox_filter_told.c: programs that ask about what they would
 * refuse: they refuse the same calls, whoever's code makes them; and each refused call
 * comes with the rule that allows it and with little else.
 */
#include "tests/unit/filter_test.h"

#include "ipc/control.h"
#include "sandbox/filter_told.h"

enum { FROM = 0x5b4e0000, TO = 0x5b4ed000 };
#define ASKS SECCOMP_RET_USER_NOTIF

static const uint64_t samples[][6] = {
	{ 0 },
	{ 1, 1, 0 },
	{ 2, 1, 0 },
	{ 0, 0x5412, 0 },
	{ CLONE_NEWUSER, 06755, O_CREAT | O_RDWR, 06755 },
	{ 0x500000000, 0x500000001, 0x500000002, 0x500005412 },
	{ UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX },
};

static bool
is_quiet(int nr)
{
	return nr == kn_filter_nr("clone3") || nr == kn_filter_nr("openat2");
}

/* What the telling pair says, by whose code: the kernel's way of two answers. */
static uint32_t
told(const struct kn_filter *f, const struct subject *s, int nr, const uint64_t *args,
    uint64_t ip)
{
	struct seccomp_data d = {
		.nr = nr, .arch = s->table.arch, .instruction_pointer = ip
	};

	memcpy(d.args, args, sizeof d.args);
	return both(f, &d);
}

/* Where calls are told of nobody else can listen. */
static bool
asks_for_listener(int nr, const uint64_t *a)
{
	return nr == kn_filter_nr("seccomp") &&
	       (a[1] & SECCOMP_FILTER_FLAG_NEW_LISTENER);
}

static void
compare(const struct subject *s, const struct kn_filter *f, int nr, const uint64_t *a)
{
	static const uint64_t elsewhere[] = { 0, FROM - 1, TO, 0x7f0000000000,
		0x100000000 + FROM };
	uint32_t plain = ask(s, nr, a), as_stub = told(f, s, nr, a, FROM + 8);
	uint32_t want = plain;

	if ((plain & SECCOMP_RET_ACTION_FULL) == SECCOMP_RET_ERRNO && !is_quiet(nr))
		want = ASKS;
	if (plain == ALLOW && asks_for_listener(nr, a))
		plain = want = ERR(EBUSY);
	for (size_t i = 0; i < sizeof elsewhere / sizeof *elsewhere; i++)
		if (told(f, s, nr, a, elsewhere[i]) != want)
			fail_msg("call %d: %x, not %x", nr,
			    told(f, s, nr, a, elsewhere[i]), want);
	/* With code where the stub's is, it is told of or not; refused in any case. */
	if (as_stub != plain && as_stub != want)
		fail_msg("call %d at the stub's place: %x, not %x", nr, as_stub, plain);
}

static void
telling_refuses_what_not_telling_does(void **state)
{
	static const char *const presets[] = { "default", "strict", "judge", "python" };
	const struct kn_filter_how how = {
		.tell = true, .stub_from = FROM, .stub_to = TO
	};

	(void)state;
	for (size_t p = 0; p < sizeof presets / sizeof *presets; p++) {
		struct kn_filter f;
		struct subject s;
		struct kn_err e;

		subject_open(&s, presets[p], NULL, NULL);
		assert_int_equal(kn_filter_build_how(s.policy, &how, &f, &e), 0);
		assert_true(f.tells && !s.filter.tells);
		for (int nr = 0; nr < 520; nr++)
			for (size_t i = 0; i < sizeof samples / sizeof *samples; i++)
				compare(&s, &f, nr, samples[i]);
		compare(&s, &f, 0x40000000 | 39, samples[0]);
		compare(&s, &f, -1, samples[0]);
		kn_filter_fini(&f);
		subject_close(&s);
	}
}

/* The kernel refuses a second listener only while the first is there: a supervisor that
 * is killed leaves none, and what its task asks for then is still refused. */
static void
no_one_listens_after_us(void **state)
{
	struct sock_filter allow = { BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW };
	const struct sock_fprog own = { 1, &allow };
	const struct kn_filter_how how = { .tell = true };
	struct kn_filter f;
	struct subject s;
	struct kn_err e;
	int status;
	pid_t pid;

	(void)state;
	subject_open(&s, "default", NULL, NULL);
	assert_int_equal(kn_filter_build_how(s.policy, &how, &f, &e), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		const struct sock_fprog ours = { (unsigned short)f.worker_n,
			f.worker_bpf };
		long fd;

		prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
		fd = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
		    SECCOMP_FILTER_FLAG_NEW_LISTENER, &ours);
		if (fd < 0 || close((int)fd) < 0)
			_exit(100);
		fd = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
		    SECCOMP_FILTER_FLAG_NEW_LISTENER, &own);
		_exit(fd < 0 ? errno : 101);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), EBUSY);
	kn_filter_fini(&f);
	subject_close(&s);
}

/* The cell's probe is answered in the cell's program, as without. */
static void
the_cells_filter_answers_its_probe(void **state)
{
	const struct kn_filter_how how = {
		.tell = true, .stub_from = FROM, .stub_to = TO
	};
	const uint64_t args[6] = { KN_CELL_PROBE };
	struct kn_filter f;
	struct subject s;
	struct kn_err e;

	(void)state;
	subject_open(&s, "default", NULL, NULL);
	assert_int_equal(kn_filter_build_how(s.policy, &how, &f, &e), 0);
	assert_int_equal(
	    told(&f, &s, SYS_prctl, args, FROM + 8), ERR(KN_CELL_PROBE_ERRNO));
	kn_filter_fini(&f);
	subject_close(&s);
}

/* ---- what would allow it ---- */

/* The rule that a refused call comes with; free() it. */
static char *
rule_for(const struct subject *s, long nr, const uint64_t args[6], const char *by)
{
	struct kn_told_call c = { .arch = s->table.arch, .nr = (uint32_t)nr };
	struct kn_told_text x;
	struct kn_told *t;
	struct kn_err e;
	char *rule;

	memcpy(c.args, args, sizeof c.args);
	assert_int_equal(kn_told_open(s->policy, false, &t, &e), 0);
	assert_int_equal(kn_told_text(t, &c, &x), 0);
	if (!strstr(x.by, by))
		fail_msg("%s: by \"%s\", not \"%s\"", x.name, x.by, by);
	rule = x.allow ? strdup(x.allow) : NULL;
	kn_told_text_fini(&x);
	kn_told_close(t);
	return rule;
}

/* Pasted into the policy, it allows `args` and not `other`. */
static void
allows(long nr, const uint64_t args[6], const uint64_t other[6], const char *by)
{
	struct subject s, after;
	char *rule, rules[512];

	subject_open(&s, "default", NULL, NULL);
	assert_int_not_equal(ask(&s, nr, args), ALLOW);
	rule = rule_for(&s, nr, args, by);
	assert_non_null(rule);
	snprintf(rules, sizeof rules, "[%s]", rule);
	subject_open(&after, "default", rules, NULL);
	if (ask(&after, nr, args) != ALLOW)
		fail_msg("%s does not allow it", rule);
	if (other && ask(&after, nr, other) == ALLOW)
		fail_msg("%s allows more", rule);
	subject_close(&after);
	subject_close(&s);
	free(rule);
}
#define A(...) ((const uint64_t[6]){ __VA_ARGS__ })

static void
the_rule_allows_the_call_and_not_its_neighbour(void **state)
{
	(void)state;
	allows(SYS_socket, A(AF_INET, SOCK_STREAM), A(AF_INET, SOCK_RAW), "network");
	allows(SYS_socket, A(AF_INET, SOCK_STREAM), A(AF_INET6, SOCK_STREAM), "always");
	allows(SYS_socket, A(AF_UNIX, SOCK_STREAM), A(AF_UNIX, SOCK_DGRAM),
	    "rule /seccomp/rules/0 (preset default)");
	allows(SYS_unshare, A(CLONE_NEWUSER), A(CLONE_NEWNS), "namespaces");
	allows(SYS_unshare, A(CLONE_NEWUSER), A(CLONE_NEWUSER | CLONE_NEWNET), "names");
	allows(SYS_ioctl, A(0, 0x5412), A(0, 0x5423), "terminal");
	allows(
	    SYS_openat, A(0, 0, O_CREAT, 04755), A(0, 0, O_CREAT, 06755), "set-user");
	allows(SYS_mount, A(0), NULL, "file system");
	allows(SYS_ptrace, A(0), A(16), "processes");
	allows(SYS_io_setup, A(1), NULL, "group @aio would");
	allows(SYS_personality, A(0x40000), A(0x400000), "protections");
}

static void
what_nothing_allows_comes_without_a_rule(void **state)
{
	struct subject s;

	(void)state;
	subject_open(&s, "default", NULL, NULL);
	assert_null(rule_for(&s, 600, samples[0], "/seccomp/default"));
	assert_null(rule_for(&s, 0x40000000 | 39, samples[0], "x32"));
	subject_close(&s);
}

/* A rule made for a call that no group has must not let through what a guard refuses of
 * the same call. */
static void
a_learnt_rule_keeps_the_guards(void **state)
{
	static const struct {
		long nr;
		uint64_t seen[6], guarded[6];
	} rows[] = {
		{ SYS_openat, { 0, 0, 0 }, { 0, 0, O_CREAT, 06755 } },
		{ SYS_openat, { 0, 0, O_CREAT, 0644 }, { 0, 0, O_CREAT, 06755 } },
		{ SYS_clone, { SIGCHLD }, { CLONE_NEWUSER } },
		{ SYS_fcntl, { 0, F_GETFL }, { 0, 1024 } },
		{ SYS_prlimit64, { 0, 7 }, { 1, 7 } },
		{ SYS_ioctl, { 0, 0x5401 }, { 0, 0x5412 } },
		{ SYS_fchmod, { 0, 0644 }, { 0, 06755 } },
		{ SYS_mknodat, { 0, 0, S_IFIFO | 0600 }, { 0, 0, S_IFCHR | 0600 } },
		{ SYS_sched_setscheduler, { 0, 0 }, { 0, 1 } },
		{ SYS_personality, { 0 }, { 0x40000 } },
	};
	char set[] = "/seccomp/groups/replace=[\"@execve\"]";
	char rules[512];

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct subject s, after;
		char *rule;

		subject_open(&s, "strict", NULL, set);
		assert_int_equal(ask(&s, rows[i].nr, rows[i].seen), ERR(ENOSYS));
		rule = rule_for(&s, rows[i].nr, rows[i].seen, "");
		assert_non_null(rule);
		snprintf(rules, sizeof rules, "[%s]", rule);
		subject_open(&after, "strict", rules, set);
		if (ask(&after, rows[i].nr, rows[i].seen) != ALLOW)
			fail_msg("%s does not allow it", rule);
		if (ask(&after, rows[i].nr, rows[i].guarded) == ALLOW)
			fail_msg("%s widens it past a guard", rule);
		free(rule);
		subject_close(&after);
		subject_close(&s);
	}
}

static void
alike_calls_have_one_key(void **state)
{
	struct kn_told_call c = { 0 };
	struct kn_told_answer a, b;
	struct kn_told *t;
	struct subject s;
	struct kn_err e;

	(void)state;
	subject_open(&s, "default", NULL, NULL);
	assert_int_equal(kn_told_open(s.policy, false, &t, &e), 0);
	c = (struct kn_told_call){ s.table.arch, SYS_socket, { AF_INET, 1, 0, 77 } };
	kn_told_look(t, &c, &a);
	assert_int_equal(a.errno_ret, EAFNOSUPPORT);
	assert_false(a.unlisted);
	c.args[1] |= SOCK_CLOEXEC;
	c.args[3] = 78;
	kn_told_look(t, &c, &b);
	assert_true(a.key == b.key);
	c.args[0] = AF_INET6;
	kn_told_look(t, &c, &b);
	assert_true(a.key != b.key);
	c = (struct kn_told_call){ s.table.arch, SYS_io_setup, { 1 } };
	kn_told_look(t, &c, &a);
	assert_int_equal(a.errno_ret, ENOSYS);
	assert_true(a.unlisted);
	kn_told_close(t);
	subject_close(&s);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(telling_refuses_what_not_telling_does),
		cmocka_unit_test(no_one_listens_after_us),
		cmocka_unit_test(the_cells_filter_answers_its_probe),
		cmocka_unit_test(the_rule_allows_the_call_and_not_its_neighbour),
		cmocka_unit_test(what_nothing_allows_comes_without_a_rule),
		cmocka_unit_test(a_learnt_rule_keeps_the_guards),
		cmocka_unit_test(alike_calls_have_one_key),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
