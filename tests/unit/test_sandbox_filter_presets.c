/* tests/unit/test_sandbox_filter_presets.c: what the presets say about single calls,
 * written out by hand.
 */
#include "tests/unit/filter_test.h"

/* ---- sentences about the default preset ---- */

static void
the_default_preset_refuses_and_allows(void **state)
{
	struct subject s;
	(void)state;
	subject_open(&s, "default", NULL, NULL);
	assert_int_equal(ASK(&s, SYS_execve, 0), ALLOW);
	assert_int_equal(ASK(&s, SYS_clone, SIGCHLD), ALLOW);
	assert_int_equal(ASK(&s, SYS_clone, SIGCHLD | CLONE_NEWUSER), ERR(EPERM));
	assert_int_equal(ASK(&s, SYS_clone, CLONE_NEWNET | CLONE_NEWPID), ERR(EPERM));
	/* The low byte of clone's flags is a signal, of unshare's NEWTIME. */
	assert_int_equal(ASK(&s, SYS_clone, 0x80), ALLOW);
	assert_int_equal(ASK(&s, SYS_unshare, 0x80), ERR(EPERM));
	assert_int_equal(ASK(&s, SYS_unshare, CLONE_FILES), ALLOW);
	assert_int_equal(ASK(&s, CLONE3_NR, 0), ERR(ENOSYS));
	assert_int_equal(ASK(&s, SYS_ioctl, 0, 0x5401), ALLOW);
	assert_int_equal(ASK(&s, SYS_ioctl, 0, 0x5412), ERR(EPERM));
	assert_int_equal(ASK(&s, SYS_ioctl, 0, 0xdead00005412), ERR(EPERM));
	assert_int_equal(ASK(&s, SYS_ioctl, 0, 0x541c), ERR(EPERM));
	assert_int_equal(ASK(&s, SYS_personality, 0), ALLOW);
	assert_int_equal(ASK(&s, SYS_personality, 0xffffffff), ALLOW);
	assert_int_equal(ASK(&s, SYS_personality, 0x0400000), ERR(EPERM));
	/* A host's socket below a bind would answer; a connected pair leads nowhere. */
	assert_int_equal(ASK(&s, SYS_socket, AF_UNIX, SOCK_STREAM), ERR(EAFNOSUPPORT));
	assert_int_equal(ASK(&s, SYS_socketpair, AF_UNIX, SOCK_STREAM), ALLOW);
	assert_int_equal(
	    ASK(&s, SYS_socketpair, AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC), ALLOW);
	assert_int_equal(
	    ASK(&s, SYS_socketpair, AF_UNIX, SOCK_DGRAM), ERR(EPROTONOSUPPORT));
	assert_int_equal(ASK(&s, SYS_socketpair, AF_UNIX, SOCK_RAW | SOCK_NONBLOCK),
	    ERR(EPROTONOSUPPORT));
	assert_int_equal(ASK(&s, SYS_socket, AF_INET, SOCK_STREAM), ERR(EAFNOSUPPORT));
	assert_int_equal(ASK(&s, SYS_socket, 0x100000000 | AF_INET), ERR(EAFNOSUPPORT));
	assert_int_equal(ASK(&s, SYS_socket, AF_NETLINK, 3), ERR(EAFNOSUPPORT));
	assert_int_equal(ASK(&s, SYS_sched_setscheduler, 0, SCHED_BATCH), ALLOW);
	assert_int_equal(ASK(&s, SYS_sched_setscheduler, 0, SCHED_FIFO), ERR(EPERM));
	assert_int_equal(ASK(&s, SYS_sched_setscheduler, 0, 0x40000002), ERR(EPERM));
	assert_int_equal(ASK(&s, SYS_vmsplice, 0), ERR(EPERM));
	assert_int_equal(ASK(&s, 510, 0), ERR(ENOSYS));
	subject_close(&s);
}

static void
set_user_id_files_cannot_be_made(void **state)
{
	struct subject s;
	(void)state;
	subject_open(&s, "default", NULL, NULL);
	assert_int_equal(ASK(&s, SYS_fchmod, 3, 0755), ALLOW);
	assert_int_equal(ASK(&s, SYS_fchmod, 3, 04755), ERR(EPERM));
	assert_int_equal(ASK(&s, SYS_fchmodat, 3, 0, 02755), ERR(EPERM));
	assert_int_equal(ASK(&s, 452, 3, 0, 04755, 0), ERR(EPERM)); /* fchmodat2 */
	/* Without O_CREAT the mode is whatever was in the register. */
	assert_int_equal(ASK(&s, SYS_openat, 3, 0, O_RDONLY, 04755), ALLOW);
	assert_int_equal(ASK(&s, SYS_openat, 3, 0, O_CREAT, 0644), ALLOW);
	assert_int_equal(ASK(&s, SYS_openat, 3, 0, O_CREAT, 04644), ERR(EPERM));
	assert_int_equal(ASK(&s, SYS_openat, 3, 0, O_TMPFILE, 02644), ERR(EPERM));
	assert_int_equal(ASK(&s, SYS_openat2, 3, 0, 0, 0), ERR(ENOSYS));
	assert_int_equal(ASK(&s, SYS_mknodat, 3, 0, S_IFIFO | 0600), ALLOW);
	assert_int_equal(ASK(&s, SYS_mknodat, 3, 0, S_IFIFO | 04600), ERR(EPERM));
	assert_int_equal(ASK(&s, SYS_mknodat, 3, 0, S_IFCHR | 0600), ERR(EPERM));
	subject_close(&s);
}

static void
a_host_network_still_has_no_raw_sockets(void **state)
{
	struct subject s;
	(void)state;
	subject_open(&s, "default", NULL, "/network/mode=host");
	assert_int_equal(
	    ASK(&s, SYS_socket, AF_INET, SOCK_STREAM | SOCK_CLOEXEC), ALLOW);
	assert_int_equal(ASK(&s, SYS_socket, AF_INET6, SOCK_DGRAM, 17), ALLOW);
	assert_int_equal(ASK(&s, SYS_socket, AF_INET, SOCK_RAW, 1), ERR(EAFNOSUPPORT));
	assert_int_equal(ASK(&s, SYS_socket, AF_NETLINK, SOCK_RAW, 0), ALLOW);
	assert_int_equal(ASK(&s, SYS_socket, AF_NETLINK, 3, 9), ERR(EAFNOSUPPORT));
	assert_int_equal(ASK(&s, SYS_socket, AF_PACKET, 3, 0), ERR(EAFNOSUPPORT));
	assert_int_equal(ASK(&s, SYS_socket, AF_INET, SOCK_STREAM, 262),
	    ERR(EPROTONOSUPPORT)); /* MPTCP */
	subject_close(&s);
}

/* Without a cgroup the memory of processes is watched: none may lie outside of them. */
static void
watched_memory_belongs_to_a_process(void **state)
{
	struct subject s;
	struct kn_filter watched;
	struct kn_err e;
	(void)state;
	subject_open(&s, "default", NULL, NULL);
	assert_int_equal(ASK(&s, SYS_memfd_create, 0), ALLOW);
	assert_int_equal(ASK(&s, SYS_shmget, 0), ALLOW);
	assert_int_equal(ASK(&s, SYS_mmap, 0, 4096, 3, 0x21), ALLOW);
	assert_int_equal(kn_filter_build_watched(s.policy, &watched, &e), 0);
	kn_filter_fini(&s.filter);
	kn_ftable_fini(&s.table);
	s.filter = watched;
	assert_int_equal(kn_ftable_init(&s.table, s.policy, true, &e), 0);
	assert_int_equal(ASK(&s, SYS_memfd_create, 0), ERR(ENOSYS));
	assert_int_equal(ASK(&s, SYS_shmget, 0), ERR(ENOSYS));
	assert_int_equal(ASK(&s, SYS_mmap, 0, 4096, 3, 0x21), ERR(EPERM));
	assert_int_equal(ASK(&s, SYS_mmap, 0, 4096, 3, 0x4021), ERR(EPERM));
	assert_int_equal(ASK(&s, SYS_mmap, 0, 4096, 3, 0x40022), ERR(ENOMEM));
	assert_int_equal(ASK(&s, SYS_mmap, 0, 4096, 3, 0x22), ALLOW);
	assert_int_equal(ASK(&s, SYS_mmap, 0, 4096, 3, 0x01, 3), ALLOW);
	subject_close(&s);
}

static void
python_may_have_local_sockets(void **state)
{
	struct subject s;
	(void)state;
	subject_open(&s, "python", NULL, NULL);
	assert_int_equal(ASK(&s, SYS_socket, AF_UNIX, SOCK_STREAM), ALLOW);
	assert_int_equal(ASK(&s, SYS_socket, AF_INET, SOCK_STREAM), ERR(EAFNOSUPPORT));
	subject_close(&s);
}

static void
the_judge_kills_hostile_calls(void **state)
{
	struct subject s;
	(void)state;
	subject_open(&s, "judge", NULL, NULL);
	assert_int_equal(ASK(&s, SYS_ptrace, 0), KILL);
	assert_int_equal(ASK(&s, SYS_mount, 0), KILL);
	assert_int_equal(ASK(&s, SYS_reboot, 0), KILL);
	assert_int_equal(ASK(&s, SYS_bpf, 0), KILL);
	assert_int_equal(ASK(&s, SYS_socket, AF_INET, SOCK_STREAM), KILL);
	/* libc itself tries a local socket when it looks up a user's name. */
	assert_int_equal(ASK(&s, SYS_socket, AF_UNIX, SOCK_STREAM), ERR(EAFNOSUPPORT));
	assert_int_equal(ASK(&s, SYS_unshare, CLONE_NEWUSER), KILL);
	assert_int_equal(ASK(&s, SYS_clone, CLONE_NEWUSER), KILL);
	assert_int_equal(ASK(&s, SYS_clone, SIGCHLD), ALLOW);
	subject_close(&s);
}

static void
threads_and_no_processes_in_compute_and_convert(void **state)
{
	static const char *const names[] = { "compute", "convert" };
	(void)state;
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		struct subject s;
		subject_open(&s, names[i], NULL, NULL);
		assert_int_equal(
		    ASK(&s, SYS_clone, CLONE_VM | CLONE_THREAD | CLONE_SIGHAND), ALLOW);
		assert_int_equal(ASK(&s, SYS_clone, SIGCHLD), ERR(EPERM));
		assert_int_equal(
		    ASK(&s, SYS_clone, CLONE_VM | CLONE_VFORK), ERR(EPERM));
		assert_int_equal(
		    ASK(&s, SYS_clone, CLONE_THREAD | CLONE_NEWUSER), ERR(EPERM));
		assert_int_equal(ASK(&s, CLONE3_NR, 0), ERR(ENOSYS));
		assert_int_not_equal(ASK(&s, SYS_socket, AF_UNIX), ALLOW);
		assert_int_not_equal(ASK(&s, SYS_socketpair, AF_UNIX), ALLOW);
		subject_close(&s);
	}
}

static void
compute_opens_nothing_for_writing(void **state)
{
	static const int bad[] = { O_WRONLY, O_RDWR, O_CREAT, O_TRUNC,
		O_TMPFILE | O_RDWR };
	struct subject s;
	(void)state;
	subject_open(&s, "compute", NULL, NULL);
	assert_int_equal(ASK(&s, SYS_openat, 3, 0, O_RDONLY | O_CLOEXEC), ALLOW);
	assert_int_equal(ASK(&s, SYS_openat, 3, 0, O_PATH | O_DIRECTORY), ALLOW);
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		assert_int_equal(ASK(&s, SYS_openat, 3, 0, bad[i]), ERR(EROFS));
	assert_int_equal(ASK(&s, SYS_fcntl, 3, F_SETFD, FD_CLOEXEC), ALLOW);
	assert_int_equal(ASK(&s, SYS_fcntl, 3, F_SETLEASE, F_RDLCK), ERR(EPERM));
	subject_close(&s);
}

/* ---- no preset lets what a guard refuses ---- */

/* Rules of presets that mean to, each with its reason in the preset. There is none. */
static const struct meant {
	const char *preset, *call;
} meant[] = { { "", "" } };

enum { SAMPLES = 64 };
struct samples {
	uint64_t v[6][SAMPLES];
	size_t n[6];
};

static void
sample(struct samples *s, unsigned index, uint64_t v)
{
	for (size_t i = 0; i < s->n[index]; i++)
		if (s->v[index][i] == v)
			return;
	assert_true(s->n[index] < SAMPLES);
	s->v[index][s->n[index]++] = v;
}

/* Values on both sides of each condition of a list. */
static void
sample_list(struct samples *s, const struct kn_fcall *c)
{
	for (size_t i = 0; i < c->n; i++)
		for (size_t j = 0; j < c->v[i].arg_n; j++) {
			const struct kn_farg *a = &c->v[i].args[j];
			sample(s, a->index, a->value);
			sample(s, a->index, a->value + 1);
			if (a->op == KN_CMP_MASKED_EQ)
				sample(s, a->index, a->value_two);
		}
}

/* Does a rule allow this where, without rules, a guard would refuse? */
static bool
overrides(const struct kn_ftable *with, const struct kn_ftable *bare, uint32_t nr,
    const uint64_t args[6])
{
	struct kn_fentry f = kn_ftable_find(with, with->arch, nr, args);
	if (f.who != KN_FWHO_RULE || f.ret != ALLOW)
		return false;
	return kn_ftable_find(bare, bare->arch, nr, args).who == KN_FWHO_GUARD;
}

static bool
overridden(
    const struct kn_ftable *with, const struct kn_ftable *bare, uint32_t nr, bool zero)
{
	struct samples s = { 0 };
	size_t at[6] = { 0 };
	uint64_t args[6];
	for (unsigned i = 0; i < 6; i++)
		sample(&s, i, zero ? 0 : 0x7ead6fff);
	sample_list(&s, &with->calls[nr]);
	sample_list(&s, &bare->calls[nr]);
	for (unsigned i = 0; i < 6;) {
		for (i = 0; i < 6; i++)
			args[i] = s.v[i][at[i]];
		if (overrides(with, bare, nr, args))
			return true;
		for (i = 0; i < 6 && ++at[i] == s.n[i]; i++)
			at[i] = 0;
	}
	return false;
}

static void
look_for_overrides(const char *preset, const struct kn_policy *p, bool watched)
{
	struct kn_policy ruleless = *p;
	struct kn_ftable with, bare;
	struct kn_err e;
	ruleless.seccomp.rule_n = 0;
	assert_int_equal(kn_ftable_init(&with, p, watched, &e), 0);
	assert_int_equal(kn_ftable_init(&bare, &ruleless, watched, &e), 0);
	for (uint32_t nr = 0; nr < KN_NR_MAX; nr++) {
		char *name = kn_filter_name_of(KN_ABI_NATIVE, nr);
		bool listed = false;
		for (size_t i = 0; name && i < sizeof meant / sizeof *meant; i++)
			listed |= strcmp(meant[i].preset, preset) == 0 &&
				  strcmp(meant[i].call, name) == 0;
		if (name && !listed &&
		    (overridden(&with, &bare, nr, false) ||
			overridden(&with, &bare, nr, true)))
			fail_msg("preset %s: a rule allows what is always refused: %s",
			    preset, name);
		free(name);
	}
	kn_ftable_fini(&with);
	kn_ftable_fini(&bare);
}

static void
no_rule_of_a_preset_allows_what_is_always_refused(void **state)
{
	static const char *const launchers[] = { NULL, "/launcher/type=direct" };
	const char *const *names = kn_policy_presets();
	(void)state;
	for (size_t i = 0; names[i]; i++)
		for (size_t l = 0; l < 2; l++) {
			struct kn_policy_src src[2] = { { .type = KN_SRC_NAMED,
							    .text = names[i] },
				{ .type = KN_SRC_SET, .text = launchers[l] } };
			struct kn_policy *p;
			struct kn_err e;
			kn_err_clear(&e);
			if (kn_policy_load(src, 1 + l, &p, &e) < 0)
				fail_msg("%s", e.msg);
			look_for_overrides(names[i], p, false);
			look_for_overrides(names[i], p, true);
			kn_policy_free(p);
		}
}

static void
a_group_that_is_allowed_leaves_out_what_is_always_refused(void **state)
{
	struct subject s;
	(void)state;
	subject_open(&s, "strict",
	    "[{\"names\":[\"fchmod\"],\"action\":\"SCMP_ACT_ALLOW\"},"
	    "{\"names\":[\"@file-system\",\"@ioctl\",\"@known\"],"
	    "\"action\":\"SCMP_ACT_ALLOW\"}]",
	    NULL);
	assert_int_equal(ASK(&s, SYS_mbind, 0), ALLOW);
	assert_int_equal(ASK(&s, SYS_sync, 0), ALLOW); /* strict: EPERM */
	assert_int_equal(ASK(&s, SYS_fchmodat, 3, 0, 0755), ALLOW);
	assert_int_equal(ASK(&s, SYS_fchmodat, 3, 0, 04755), ERR(EPERM));
	assert_int_equal(ASK(&s, SYS_fchmod, 3, 04755), ALLOW); /* named itself */
	assert_int_equal(ASK(&s, SYS_ioctl, 0, 0x5401), ALLOW);
	assert_int_equal(ASK(&s, SYS_ioctl, 0, 0x5412), ERR(EPERM));
	assert_int_equal(ASK(&s, SYS_ptrace, 0), ERR(EPERM));
	assert_int_equal(ASK(&s, SYS_socketpair, AF_UNIX, SOCK_STREAM), ALLOW);
	assert_int_equal(
	    ASK(&s, SYS_socketpair, AF_UNIX, SOCK_DGRAM), ERR(EPROTONOSUPPORT));
	subject_close(&s);
	/* Conditions of the rule and of guards together; an earlier rule that kills. */
	subject_open(&s, "judge",
	    "[{\"names\":[\"ioctl\"],\"action\":\"SCMP_ACT_ERRNO\",\"errnoRet\":61},"
	    "{\"names\":[\"@known\"],\"action\":\"SCMP_ACT_ALLOW\","
	    "\"args\":[{\"index\":1,\"value\":21522,\"op\":\"SCMP_CMP_LE\"}]}]",
	    NULL);
	assert_int_equal(ASK(&s, SYS_ioctl, 0, 0x5401), ALLOW);
	assert_int_equal(ASK(&s, SYS_ioctl, 0, 0x5412), ERR(61));
	assert_int_equal(ASK(&s, SYS_ioctl, 0, 0x5413), ERR(61));
	assert_int_equal(ASK(&s, SYS_mount, 0, 0), KILL);
	assert_int_equal(ASK(&s, SYS_fchmod, 3, 04755), ERR(EPERM));
	subject_close(&s);
}

static void
without_namespaces_no_rule_allows_sockets_with_a_path(void **state)
{
	static const char rule[] =
	    "[{\"names\":[\"socket\",\"socketpair\"],\"action\":\"SCMP_ACT_ALLOW\"}]";
	struct subject s;
	(void)state;
	subject_open(&s, "python", NULL, "/launcher/type=direct");
	assert_int_equal(ASK(&s, SYS_socket, AF_UNIX, SOCK_STREAM), ERR(EAFNOSUPPORT));
	subject_close(&s);
	subject_open(&s, "strict", rule, "/launcher/type=direct");
	assert_int_equal(ASK(&s, SYS_socket, AF_UNIX, SOCK_DGRAM), ERR(EAFNOSUPPORT));
	assert_int_equal(
	    ASK(&s, SYS_socketpair, AF_UNIX, SOCK_DGRAM), ERR(EPROTONOSUPPORT));
	assert_int_equal(ASK(&s, SYS_socketpair, AF_UNIX, SOCK_STREAM), ALLOW);
	subject_close(&s);
	subject_open(&s, "strict", rule, NULL);
	assert_int_equal(ASK(&s, SYS_socketpair, AF_UNIX, SOCK_DGRAM), ALLOW);
	subject_close(&s);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_default_preset_refuses_and_allows),
		cmocka_unit_test(set_user_id_files_cannot_be_made),
		cmocka_unit_test(a_host_network_still_has_no_raw_sockets),
		cmocka_unit_test(watched_memory_belongs_to_a_process),
		cmocka_unit_test(python_may_have_local_sockets),
		cmocka_unit_test(the_judge_kills_hostile_calls),
		cmocka_unit_test(threads_and_no_processes_in_compute_and_convert),
		cmocka_unit_test(compute_opens_nothing_for_writing),
		cmocka_unit_test(no_rule_of_a_preset_allows_what_is_always_refused),
		cmocka_unit_test(
		    a_group_that_is_allowed_leaves_out_what_is_always_refused),
		cmocka_unit_test(without_namespaces_no_rule_allows_sockets_with_a_path),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
