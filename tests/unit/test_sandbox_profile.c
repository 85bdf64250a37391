/* tests/unit/test_sandbox_profile.c: foreign seccomp profiles: Docker's as it stands,
 * what is decided for this machine, what is refused and what is listed.
 */
#include <sys/utsname.h>

#include "tests/unit/filter_test.h"
#include "tests/unit/policy_test.h"

#define DOCKER "tests/profiles/docker-20.10.json"

/* A policy with this profile (a file's name or an object), and rules or NULL. */
static void
open_profile(struct subject *s, const char *profile, const char *rules)
{
	char *set = NULL, *set_rules = NULL;
	struct kn_err e;
	assert_true(asprintf(&set, "/seccomp/profile=%s", profile) > 0);
	assert_true(
	    asprintf(&set_rules, "/seccomp/rules=%s", rules ? rules : "[]") > 0);
	kn_err_clear(&e);
	s->policy = LOAD(SET(set), SET(set_rules));
	if (kn_filter_build(s->policy, &s->filter, &e) < 0)
		fail_msg("%s", e.msg);
	assert_int_equal(kn_ftable_init(&s->table, s->policy, false, &e), 0);
	free(set);
	free(set_rules);
}

/* An object with this default and these entries. */
static void
open_entries(struct subject *s, const char *dflt, const char *entries)
{
	char *text = NULL;
	assert_true(asprintf(&text,
			"{\"defaultAction\":%s,\"syscalls\":[{\"names\":[\"execve\"],"
			"\"action\":\"SCMP_ACT_ALLOW\"},%s]}",
			dflt, entries) > 0);
	open_profile(s, text, NULL);
	free(text);
}

static uint32_t
ask_of(const struct subject *s, uint32_t arch, uint32_t nr)
{
	struct seccomp_data d = { .nr = (int)nr, .arch = arch };
	const uint64_t none[6] = { 0 };
	uint32_t got = both(&s->filter, &d);
	assert_int_equal(got, kn_ftable_decide(&s->table, arch, nr, none));
	return got;
}

static void
dockers_profile_is_taken_as_it_stands(void **state)
{
	struct subject s;
	(void)state;
	open_profile(&s, DOCKER, NULL);
	assert_int_equal(ASK(&s, SYS_read, 0), ALLOW);
	assert_int_equal(ASK(&s, SYS_chown, 0), ALLOW);
	/* by its default, where no group of ours says ENOSYS */
	assert_int_equal(ASK(&s, SYS_mbind, 0), ERR(EPERM));
	/* conditions of it, under those of ours */
	assert_int_equal(ASK(&s, SYS_clone, SIGCHLD), ALLOW);
	assert_int_equal(ASK(&s, SYS_clone, CLONE_NEWUSER), ERR(EPERM));
	assert_int_equal(ASK(&s, SYS_personality, 8), ALLOW);
	assert_int_equal(ASK(&s, SYS_personality, 0x400000), ERR(EPERM));
	assert_int_equal(ASK(&s, CLONE3_NR, 0), ERR(ENOSYS));
	/* what its author cannot have known: mseal, fchmodat2 */
	assert_int_equal(ASK(&s, 462, 0), ERR(ENOSYS));
	assert_int_equal(ASK(&s, 452, 0), ERR(ENOSYS));
	assert_int_equal(ASK(&s, 570, 0), ERR(ENOSYS));
	subject_close(&s);
}

static void
what_is_always_refused_stays_so_unless_our_rule_names_it(void **state)
{
	struct subject s;
	(void)state;
	/* Docker allows both: on any kernel since 4.8, and without thinking. */
	open_profile(&s, DOCKER, NULL);
	assert_int_equal(ASK(&s, SYS_ptrace, 0), ERR(EPERM));
	assert_int_equal(ASK(&s, 425, 0), ERR(EPERM)); /* io_uring_setup */
	assert_int_equal(ASK(&s, SYS_ioctl, 0, 0x5412), ERR(EPERM));
	subject_close(&s);
	open_profile(&s, DOCKER,
	    "[{\"names\":[\"ptrace\"],\"action\":\"SCMP_ACT_ALLOW\"},{\"names\":"
	    "[\"read\"],\"action\":\"SCMP_ACT_ERRNO\",\"errnoRet\":5}]");
	assert_int_equal(ASK(&s, SYS_ptrace, 0), ALLOW);
	assert_int_equal(ASK(&s, SYS_read, 0), ERR(EIO));
	subject_close(&s);
}

#if defined(__x86_64__)
static void
its_architectures_are_covered_by_the_same_rules(void **state)
{
	struct subject s;
	(void)state;
	open_profile(&s, DOCKER, NULL);
	assert_int_equal(ask_of(&s, AUDIT_ARCH_I386, 20), ALLOW);      /* getpid */
	assert_int_equal(ask_of(&s, AUDIT_ARCH_I386, 21), ERR(EPERM)); /* mount */
	assert_int_equal(ask_of(&s, AUDIT_ARCH_I386, 26), ERR(EPERM)); /* ptrace */
	assert_int_equal(ask_of(&s, AUDIT_ARCH_I386, 102), ERR(ENOSYS));
	assert_int_equal(ask_of(&s, AUDIT_ARCH_I386, 117), ERR(ENOSYS));
	assert_int_equal(ask_of(&s, AUDIT_ARCH_I386, 359), ERR(EAFNOSUPPORT));
	assert_int_equal(ask_of(&s, AUDIT_ARCH_X86_64, 0x40000000 | 39), ALLOW);
	assert_int_equal(ask_of(&s, AUDIT_ARCH_X86_64, 0x40000000 | 521), ERR(EPERM));
	assert_int_equal(ask_of(&s, AUDIT_ARCH_X86_64, 0xffffffff), ERR(ENOSYS));
	subject_close(&s);
	/* Without them both doors are shut. */
	open_entries(&s, "\"SCMP_ACT_ALLOW\"",
	    "{\"name\":\"getpid\",\"action\":\"SCMP_ACT_ALLOW\"}");
	assert_int_equal(ask_of(&s, AUDIT_ARCH_I386, 20), KILL);
	assert_int_equal(ask_of(&s, AUDIT_ARCH_X86_64, 0x40000000 | 39), ERR(ENOSYS));
	subject_close(&s);
}

static void
our_own_architectures_too(void **state)
{
	struct subject s;
	(void)state;
	/* chown32 is chown, whatever i386 calls it */
	subject_open(&s, "default",
	    "[{\"names\":[\"chown\"],\"action\":\"SCMP_ACT_ERRNO\",\"errnoRet\":61},"
	    "{\"names\":[\"kill\"],\"action\":\"SCMP_ACT_ERRNO\",\"errnoRet\":62,"
	    "\"args\":[{\"index\":0,\"value\":-1,\"op\":\"SCMP_CMP_EQ\"}]}]",
	    "/seccomp/architectures=[\"SCMP_ARCH_X86\"]");
	assert_int_equal(ask_of(&s, AUDIT_ARCH_I386, 212), ERR(61));
	assert_int_equal(ask_of(&s, AUDIT_ARCH_I386, 182), ERR(61));
	assert_int_equal(ask_of(&s, AUDIT_ARCH_I386, 20), ALLOW);
	assert_int_equal(ask_of(&s, AUDIT_ARCH_I386, 435), ERR(ENOSYS));
	assert_int_equal(ask_of(&s, AUDIT_ARCH_X86_64, 0x40000000 | 39), ERR(ENOSYS));
	struct seccomp_data d = { .nr = 37, .arch = AUDIT_ARCH_I386 };
	d.args[0] = 0xffffffff; /* a process of 32 bits has no more of a -1 */
	assert_int_equal(both(&s.filter, &d), ERR(62));
	subject_close(&s);
	subject_open(&s, "strict", NULL, "/seccomp/architectures=[\"SCMP_ARCH_X32\"]");
	assert_int_equal(ask_of(&s, AUDIT_ARCH_X86_64, 0x40000000 | 39), ALLOW);
	/* ioctl, with a number of x32's own, and its guards */
	struct seccomp_data x = { .nr = 0x40000000 | 514, .arch = AUDIT_ARCH_X86_64 };
	x.args[1] = 0x5412;
	assert_int_equal(both(&s.filter, &x), ERR(EPERM));
	x.args[1] = 0x5401;
	assert_int_equal(both(&s.filter, &x), ALLOW);
	assert_int_equal(ask_of(&s, AUDIT_ARCH_I386, 20), KILL);
	subject_close(&s);
}

/* All numbers of all ABIs, with arguments near what rules speak of: the programs and
 * the lists say the same. */
static void
programs_and_lists_agree_for_every_abi(void **state)
{
	static const uint64_t tries[][6] = { { 0 }, { 1, 1, 1, 1, 1, 1 },
		{ CLONE_NEWNS, 0x5412, 02000, 06777 }, { 8, 1024, 0, 2 },
		{ UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX },
		{ 0x100000001, 0x100000001, 1, 0 } };
	static const struct {
		uint32_t arch, from;
	} abis[] = { { AUDIT_ARCH_X86_64, 0 }, { AUDIT_ARCH_X86_64, 0x40000000 },
		{ AUDIT_ARCH_I386, 0 }, { AUDIT_ARCH_X86_64, 0x7fffff00 } };
	struct subject s;
	(void)state;
	open_profile(&s, DOCKER, NULL);
	for (size_t a = 0; a < 4; a++)
		for (uint32_t nr = 0; nr < 620; nr++)
			for (size_t i = 0; i < sizeof tries / sizeof *tries; i++) {
				struct seccomp_data d = { .arch = abis[a].arch,
					.nr = (int)(abis[a].from + nr) };
				memcpy(d.args, tries[i], sizeof d.args);
				uint32_t want = kn_ftable_decide(
				    &s.table, d.arch, (uint32_t)d.nr, tries[i]);
				if (both(&s.filter, &d) != want)
					fail_msg("abi %zu call %u try %zu: program %x, "
						 "lists %x",
					    a, nr, i, both(&s.filter, &d), want);
			}
	subject_close(&s);
}
#endif

static void
what_depends_on_the_machine_is_decided_for_it(void **state)
{
	struct utsname u;
	unsigned major, minor;
	char entries[1024];
	struct subject s;
	(void)state;
	assert_int_equal(uname(&u), 0);
	assert_int_equal(sscanf(u.release, "%u.%u", &major, &minor), 2);
	snprintf(entries, sizeof entries,
	    "{\"names\":[\"getpid\"],\"action\":\"SCMP_ACT_ALLOW\",\"includes\":"
	    "{\"minKernel\":\"%u.%u\"}},"
	    "{\"names\":[\"times\"],\"action\":\"SCMP_ACT_ALLOW\",\"includes\":"
	    "{\"minKernel\":\"%u.%u\"}},"
	    "{\"names\":[\"getuid\"],\"action\":\"SCMP_ACT_ALLOW\",\"includes\":"
	    "{\"arches\":[\"mips64\"]}},"
	    "{\"names\":[\"getgid\"],\"action\":\"SCMP_ACT_ALLOW\",\"excludes\":"
	    "{\"arches\":[\"mips64\"]}},"
	    "{\"names\":[\"geteuid\"],\"action\":\"SCMP_ACT_ALLOW\",\"includes\":"
	    "{\"caps\":[\"CAP_SYS_ADMIN\"]}},"
	    "{\"names\":[\"getegid\"],\"action\":\"SCMP_ACT_ALLOW\",\"excludes\":"
	    "{\"caps\":[\"CAP_SYS_ADMIN\"]}}",
	    major, minor, major, minor + 1);
	open_entries(&s, "\"SCMP_ACT_ERRNO\"", entries);
	assert_int_equal(ASK(&s, SYS_getpid, 0), ALLOW);
	assert_int_equal(ASK(&s, SYS_times, 0), ERR(EPERM));
	assert_int_equal(ASK(&s, SYS_getuid, 0), ERR(EPERM));
	assert_int_equal(ASK(&s, SYS_getgid, 0), ALLOW);
	assert_int_equal(ASK(&s, SYS_geteuid, 0), ERR(EPERM));
	assert_int_equal(ASK(&s, SYS_getegid, 0), ALLOW);
	/* what is left is shown, and is the same policy when it is read again */
	char *text = kn_policy_text(s.policy);
	assert_null(strstr(text, "minKernel"));
	assert_null(strstr(text, "times"));
	struct kn_policy *again = LOAD(NAMED(file("a.json", text)));
	assert_string_equal(kn_policy_hash(again), kn_policy_hash(s.policy));
	kn_policy_free(again);
	free(text);
	subject_close(&s);
}

static void
the_strictest_entry_decides(void **state)
{
	struct subject s;
	(void)state;
	open_entries(&s, "\"SCMP_ACT_ERRNO\",\"defaultErrnoRet\":5",
	    /* an entry without conditions takes nothing from one that refuses */
	    "{\"name\":\"getpid\",\"action\":\"SCMP_ACT_ALLOW\"},"
	    "{\"name\":\"getpid\",\"action\":\"SCMP_ACT_KILL_PROCESS\",\"args\":[{"
	    "\"index\":0,\"value\":7,\"op\":\"SCMP_CMP_EQ\"}]},"
	    /* what repeats the default says nothing (C051) */
	    "{\"name\":\"getppid\",\"action\":\"SCMP_ACT_ERRNO\",\"errnoRet\":5},"
	    "{\"name\":\"getppid\",\"action\":\"SCMP_ACT_ALLOW\",\"args\":[{"
	    "\"index\":0,\"value\":7,\"op\":\"SCMP_CMP_EQ\"}]},"
	    /* twice the same argument: each by itself, as runtimes have it */
	    "{\"name\":\"getuid\",\"action\":\"SCMP_ACT_ALLOW\",\"args\":[{"
	    "\"index\":0,\"value\":7,\"op\":\"SCMP_CMP_EQ\"},{"
	    "\"index\":0,\"value\":9,\"op\":\"SCMP_CMP_EQ\"}]},"
	    "{\"name\":\"getgid\",\"action\":\"SCMP_ACT_ERRNO\",\"errno\":\"ENOENT\"},"
	    "{\"name\":\"getegid\",\"action\":\"SCMP_ACT_KILL\"},"
	    "{\"name\":\"geteuid\",\"action\":\"SCMP_ACT_KILL_THREAD\"},"
	    "{\"name\":\"getpgrp\",\"action\":\"SCMP_ACT_TRAP\"},"
	    "{\"name\":\"getsid\",\"action\":\"SCMP_ACT_LOG\"},"
	    "{\"name\":\"alarm\",\"action\":\"SCMP_ACT_ERRNO\",\"errnoRet\":38}");
	assert_int_equal(ASK(&s, SYS_getpid, 0), ALLOW);
	assert_int_equal(ASK(&s, SYS_getpid, 7), KILL);
	assert_int_equal(ASK(&s, SYS_getppid, 0), ERR(5));
	assert_int_equal(ASK(&s, SYS_getppid, 7), ALLOW);
	assert_int_equal(ASK(&s, SYS_getuid, 7), ALLOW);
	assert_int_equal(ASK(&s, SYS_getuid, 9), ALLOW);
	assert_int_equal(ASK(&s, SYS_getuid, 8), ERR(5));
	assert_int_equal(ASK(&s, SYS_getgid, 0), ERR(ENOENT));
	assert_int_equal(ASK(&s, SYS_getegid, 0), KILL);
	assert_int_equal(ASK(&s, SYS_geteuid, 0), SECCOMP_RET_KILL_THREAD);
	assert_int_equal(ASK(&s, SYS_getpgrp, 0), SECCOMP_RET_TRAP);
	assert_int_equal(ASK(&s, SYS_getsid, 0), SECCOMP_RET_LOG);
	assert_int_equal(ASK(&s, SYS_alarm, 0), ERR(ENOSYS));
	assert_int_equal(ASK(&s, SYS_times, 0), ERR(5));
	subject_close(&s);
}

static void
our_default_stands_above_the_profiles(void **state)
{
	struct subject s;
	(void)state;
	open_entries(&s, "\"SCMP_ACT_KILL_PROCESS\"",
	    "{\"name\":\"getpid\",\"action\":\"SCMP_ACT_ALLOW\"}");
	assert_int_equal(ASK(&s, SYS_getcwd, 0), ERR(ENOSYS)); /* newer than it knows */
	assert_int_equal(ASK(&s, SYS_select, 0), KILL);
	subject_close(&s);
	s.policy =
	    LOAD(SET("/seccomp/profile=" DOCKER), SET("/seccomp/default/errnoRet=61"));
	struct kn_err e;
	assert_int_equal(kn_filter_build(s.policy, &s.filter, &e), 0);
	assert_int_equal(kn_ftable_init(&s.table, s.policy, false, &e), 0);
	assert_int_equal(ASK(&s, SYS_mbind, 0), ERR(61));
	subject_close(&s);
}

static void
a_profile_is_found_beside_the_policy_and_replaced_whole(void **state)
{
	struct kn_policy *p;
	(void)state;
	file("b.json", "{\"defaultAction\":\"SCMP_ACT_ERRNO\",\"syscalls\":[{\"names\":"
		       "[\"execve\",\"frobnicate\"],\"action\":\"SCMP_ACT_ALLOW\"}]}");
	p = LOAD(NAMED(
	    file("a.json", "{\"version\":1,\"seccomp\":{\"profile\":\"b.json\"}}")));
	assert_true(p->seccomp.profiled);
	assert_int_equal(p->seccomp.profile_n, 1);
	assert_int_equal(p->seccomp.profile[0].name_n, 1);
	assert_int_equal(p->seccomp.note_n, 1);
	assert_non_null(strstr(p->seccomp.notes[0], "frobnicate"));
	assert_non_null(strstr(p->seccomp.profile[0].origin, "/b.json"));
	kn_policy_free(p);
	file("c.json", "{\"version\":1,\"extends\":\"a.json\",\"seccomp\":{\"profile\":"
		       "{\"defaultAction\":\"SCMP_ACT_ALLOW\"}}}");
	char path[128];
	snprintf(path, sizeof path, "%s/c.json", dir);
	p = LOAD(NAMED(path));
	assert_int_equal(p->seccomp.profile_n, 0);
	assert_int_equal(p->seccomp.unlisted, KN_SC_ALLOW);
	kn_policy_free(p);
	p = LOAD(NAMED(path), SET("/seccomp/profile=null"));
	assert_false(p->seccomp.profiled);
	kn_policy_free(p);
}

static void
what_is_no_profile_is_refused_with_its_place(void **state)
{
	static const struct {
		const char *text, *pieces[3];
	} bad[] = {
		{ "7", { "/seccomp/profile", "file's name" } },
		{ "\"\"", { "/seccomp/profile", "file's name" } },
		{ "\"nosuch.json\"", { "/seccomp/profile", "nosuch.json" } },
		{ "{}", { "defaultAction" } },
		{ "{\"defaultAction\":1}", { "/defaultAction", "string" } },
		{ "{\"defaultAction\":\"SCMP_ACT_ALOW\"}", { "unknown action" } },
		{ "{\"defaultAction\":\"SCMP_ACT_NOTIFY\"}", { "program of yours" } },
		{ "{\"defaultAction\":\"SCMP_ACT_TRACE\"}", { "debugger" } },
		{ "{\"linux\":{}}", { "/linux/seccomp" } },
		{ "{\"defaultAction\":\"SCMP_ACT_ALLOW\",\"sycalls\":[]}",
		    { "/profile/sycalls", "nothing that" } },
		{ "{\"defaultAction\":\"SCMP_ACT_ALLOW\",\"listenerPath\":\"/x\"}",
		    { "listenerPath" } },
		{ "{\"defaultAction\":\"SCMP_ACT_ALLOW\",\"flags\":"
		  "[\"SECCOMP_FILTER_FLAG_LOG\"]}",
		    { "/flags/0", "not supported" } },
		{ "{\"defaultAction\":\"SCMP_ACT_ALLOW\",\"defaultErrnoRet\":1}",
		    { "defaultErrnoRet", "SCMP_ACT_ERRNO" } },
		{ "{\"defaultAction\":\"SCMP_ACT_ERRNO\",\"defaultErrno\":\"EFROB\"}",
		    { "defaultErrno", "EFROB" } },
		{ "{\"defaultAction\":\"SCMP_ACT_ALLOW\",\"syscalls\":[7]}",
		    { "/syscalls", "objects" } },
	};
	static const struct {
		const char *entry, *pieces[3];
	} entries[] = {
		{ "{\"action\":\"SCMP_ACT_ALLOW\"}", { "/syscalls/0", "names" } },
		{ "{\"names\":[]}", { "/syscalls/0", "action" } },
		{ "{\"names\":[\"read\"],\"action\":\"SCMP_ACT_ERRNO\",\"errnoRet\":0}",
		    { "/syscalls/0/errnoRet", "range" } },
		{ "{\"names\":[\"read\"],\"action\":\"SCMP_ACT_ERRNO\",\"errnoRet\":-"
		  "1}",
		    { "/syscalls/0/errnoRet", "range" } },
		{ "{\"names\":[\"read\"],\"action\":\"SCMP_ACT_ERRNO\","
		  "\"errnoRet\":4096}",
		    { "/syscalls/0/errnoRet", "range" } },
		{ "{\"names\":[\"read\",\"io_uring_entre\"],\"action\":"
		  "\"SCMP_ACT_ERRNO\"}",
		    { "/names/1", "io_uring_entre", "io_uring_enter" } },
		{ "{\"names\":[\"read\"],\"action\":\"SCMP_ACT_ALLOW\",\"includes\":"
		  "{\"minKernel\":\"4\"}}",
		    { "/includes/minKernel", "4.8" } },
		{ "{\"names\":[\"read\"],\"action\":\"SCMP_ACT_ALLOW\",\"excludes\":"
		  "{\"minKernel\":\"4.8\"}}",
		    { "/excludes/minKernel" } },
		{ "{\"names\":[\"read\"],\"action\":\"SCMP_ACT_ALLOW\",\"includes\":"
		  "{\"cap\":[\"CAP_SYS_ADMIN\"]}}",
		    { "/includes/cap" } },
		{ "{\"names\":[\"read\"],\"action\":\"SCMP_ACT_ALLOW\",\"args\":[{"
		  "\"index\":6,\"value\":0,\"op\":\"SCMP_CMP_EQ\"}]}",
		    { "/args/0/index", "range" } },
		{ "{\"names\":[\"read\"],\"action\":\"SCMP_ACT_ALLOW\",\"args\":[{"
		  "\"index\":0,\"value\":0,\"op\":\"SCMP_CMP_EQU\"}]}",
		    { "/args/0/op", "unknown comparison" } },
		{ "{\"names\":[\"read\"],\"action\":\"SCMP_ACT_ALLOW\",\"args\":[{"
		  "\"index\":0,\"op\":\"SCMP_CMP_EQ\"}]}",
		    { "/args/0", "value" } },
	};
	char text[512];
	(void)state;
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		snprintf(text, sizeof text,
		    "{\"version\":1,\"seccomp\":{\"profile\":%s}}", bad[i].text);
		refused(text, PIECES("a.json", bad[i].pieces[0],
				  bad[i].pieces[1] ? bad[i].pieces[1] : ""));
	}
	for (size_t i = 0; i < sizeof entries / sizeof *entries; i++) {
		snprintf(text, sizeof text,
		    "{\"defaultAction\":\"SCMP_ACT_ERRNO\",\"syscalls\":[%s]}",
		    entries[i].entry);
		file("b.json", text);
		const char *const *p = entries[i].pieces;
		/* the place is in the profile's own file */
		refused("{\"version\":1,\"seccomp\":{\"profile\":\"b.json\"}}",
		    PIECES(
			"b.json:1:", p[0], p[1] ? p[1] : "", p[1] && p[2] ? p[2] : ""));
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(dockers_profile_is_taken_as_it_stands),
		cmocka_unit_test(
		    what_is_always_refused_stays_so_unless_our_rule_names_it),
#if defined(__x86_64__)
		cmocka_unit_test(its_architectures_are_covered_by_the_same_rules),
		cmocka_unit_test(our_own_architectures_too),
		cmocka_unit_test(programs_and_lists_agree_for_every_abi),
#endif
		cmocka_unit_test(what_depends_on_the_machine_is_decided_for_it),
		cmocka_unit_test(the_strictest_entry_decides),
		cmocka_unit_test(our_default_stands_above_the_profiles),
		cmocka_unit_test(
		    a_profile_is_found_beside_the_policy_and_replaced_whole),
		cmocka_unit_test(what_is_no_profile_is_refused_with_its_place),
	};
	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
