/* tests/unit/test_sandbox_filter.c: the two seccomp programs together say exactly what
 * the policy says. Checked three ways: an interpreter of classic BPF runs both programs
 * over every number and over arguments made from the conditions; sentences about single
 * calls are written out by hand; and the kernel is asked, in a child that loads them.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "ipc/err.h"
#include "sandbox/filter_int.h"

#define ALLOW SECCOMP_RET_ALLOW
#define KILL SECCOMP_RET_KILL_PROCESS
#define ERR(n) (SECCOMP_RET_ERRNO | (n))
#define CLONE3_NR 435 /* the same on every architecture */

struct subject {
	struct kn_policy *policy;
	struct kn_filter filter;
	struct kn_ftable table;
};

/* A preset with rules appended (a JSON array, or NULL). */
static void
subject_open(struct subject *s, const char *preset, const char *rules, const char *more)
{
	char set[4096];
	struct kn_err e;
	size_t n = 1;
	struct kn_policy_src src[3] = { { .type = KN_SRC_NAMED, .text = preset } };
	snprintf(set, sizeof set, "/seccomp/rules=%s", rules ? rules : "[]");
	src[n++] = (struct kn_policy_src){ .type = KN_SRC_SET, .text = set };
	if (more)
		src[n++] = (struct kn_policy_src){ .type = KN_SRC_SET, .text = more };
	kn_err_clear(&e);
	if (kn_policy_load(src, n, &s->policy, &e) < 0)
		fail_msg("%s", e.msg);
	if (kn_filter_build(s->policy, &s->filter, &e) < 0)
		fail_msg("%s", e.msg);
	assert_int_equal(kn_ftable_init(&s->table, s->policy, &e), 0);
}

static void
subject_close(struct subject *s)
{
	kn_ftable_fini(&s->table);
	kn_filter_fini(&s->filter);
	kn_policy_free(s->policy);
}

/* ---- an interpreter of what seccomp uses of classic BPF ---- */

static uint32_t
run(const void *program, uint32_t n, const struct seccomp_data *d)
{
	const struct sock_filter *f = program;
	uint32_t a = 0;
	for (uint32_t pc = 0; pc < n; pc++) {
		const struct sock_filter *i = &f[pc];
		switch (i->code) {
		case BPF_LD | BPF_W | BPF_ABS:
			assert_true(i->k % 4 == 0 && i->k + 4 <= sizeof *d);
			memcpy(&a, (const char *)d + i->k, 4);
			break;
		case BPF_ALU | BPF_AND | BPF_K:
			a &= i->k;
			break;
		case BPF_JMP | BPF_JA:
			pc += i->k;
			break;
		case BPF_JMP | BPF_JEQ | BPF_K:
			pc += a == i->k ? i->jt : i->jf;
			break;
		case BPF_JMP | BPF_JGT | BPF_K:
			pc += a > i->k ? i->jt : i->jf;
			break;
		case BPF_JMP | BPF_JGE | BPF_K:
			pc += a >= i->k ? i->jt : i->jf;
			break;
		case BPF_RET | BPF_K:
			return i->k;
		default:
			fail_msg("instruction %u has code %x", pc, i->code);
		}
	}
	fail_msg("the program runs past its end");
	return 0;
}

/* As the kernel: the strictest action wins, of equal ones the filter loaded last. */
static uint32_t
both(const struct kn_filter *f, const struct seccomp_data *d)
{
	uint32_t w = run(f->worker_bpf, f->worker_n, d);
	uint32_t c = run(f->cell_bpf, f->cell_n, d);
	int32_t wa = (int32_t)(w & SECCOMP_RET_ACTION_FULL);
	int32_t ca = (int32_t)(c & SECCOMP_RET_ACTION_FULL);
	return wa < ca ? w : c;
}

static uint32_t
ask(const struct subject *s, long nr, const uint64_t args[6])
{
	struct seccomp_data d = { .nr = (int)nr, .arch = s->table.arch };
	for (int i = 0; i < 6; i++)
		d.args[i] = args[i];
	return both(&s->filter, &d);
}

#define ASK(s, nr, ...) ask(s, nr, (const uint64_t[6]){ __VA_ARGS__ })

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
	struct kn_err e;
	struct kn_policy *p;
	struct kn_filter f;
	size_t n = 0;
	char *set = malloc(1 << 19);
	(void)state;
	n += (size_t)sprintf(set, "/seccomp/rules=[");
	for (int i = 0; i < 2200; i++)
		n += (size_t)sprintf(set + n,
		    "%s{\"names\":[\"getppid\"],\"action\":\"SCMP_ACT_ERRNO\","
		    "\"errnoRet\":%d,\"args\":[{\"index\":0,\"value\":%d,\"op\":"
		    "\"SCMP_CMP_EQ\"}]}",
		    i ? "," : "", i % 4000 + 1, i);
	strcpy(set + n, "]");
	const struct kn_policy_src src = { .type = KN_SRC_SET, .text = set };
	kn_err_clear(&e);
	assert_int_equal(kn_policy_load(&src, 1, &p, &e), 0);
	assert_int_equal(kn_filter_build(p, &f, &e), -1);
	assert_non_null(strstr(e.msg, "instructions"));
	assert_int_equal(e.kind, KN_EK_CONFIG);
	kn_policy_free(p);
	free(set);
}

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
	assert_int_equal(ASK(&s, SYS_socket, AF_UNIX, SOCK_STREAM), ALLOW);
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
			if (stub[nr])
				assert_int_equal(
				    run(s.filter.worker_bpf, s.filter.worker_n, &d),
				    ALLOW);
		}
		subject_close(&s);
	}
}

static void
every_name_in_our_tables_is_known(void **state)
{
	struct kn_err e;
	(void)state;
	kn_err_clear(&e);
	for (size_t i = 0; i < kn_filter_group_n; i++)
		for (const char *const *c = kn_filter_groups[i].calls; *c; c++)
			if (kn_filter_check_call(*c, &e) < 0)
				fail_msg("%s: %s", kn_filter_groups[i].name, e.msg);
	for (size_t i = 0; i < kn_filter_guard_n; i++)
		for (const char *const *c = kn_filter_guards[i].names; *c; c++)
			if (kn_filter_check_call(*c, &e) < 0)
				fail_msg("guard %zu: %s", i, e.msg);
	assert_int_equal(kn_filter_check_call("io_uring_entre", &e), -1);
	assert_int_equal(kn_filter_check_call("mseal", &e), 0);
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

/* ---- the kernel ---- */

static void
load(const struct kn_filter *f)
{
	struct sock_fprog w = { (unsigned short)f->worker_n, f->worker_bpf };
	struct sock_fprog c = { (unsigned short)f->cell_n, f->cell_bpf };
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
	    syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &w) < 0 ||
	    syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &c) < 0)
		_exit(200);
}

/* Make one call in a child under the filter. Its errno, 0, or 1000 + signal. */
static int
kernel_says(const struct subject *s, long nr, long a, long b, long c, long d)
{
	int status;
	pid_t pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		load(&s->filter);
		errno = 0;
		long r = syscall(nr, a, b, c, d, 0, 0);
		_exit(r == -1 ? errno & 127 : 0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFSIGNALED(status) ? 1000 + WTERMSIG(status) : WEXITSTATUS(status);
}

static void
the_kernel_agrees(void **state)
{
	struct subject s;
	long path = (long)(uintptr_t) "/nonexistent";
	(void)state;
	subject_open(&s, "default",
	    "[{\"names\":[\"getppid\"],\"action\":\"SCMP_ACT_ERRNO\",\"errnoRet\":61},"
	    "{\"names\":[\"getpgrp\"],\"action\":\"SCMP_ACT_KILL_PROCESS\"}]",
	    NULL);
	assert_int_equal(kernel_says(&s, SYS_getpid, 0, 0, 0, 0), 0);
	assert_int_equal(kernel_says(&s, SYS_getppid, 0, 0, 0, 0), 61);
	assert_int_equal(kernel_says(&s, SYS_getpgrp, 0, 0, 0, 0), 1000 + SIGSYS);
	assert_int_equal(kernel_says(&s, SYS_mount, 0, 0, 0, 0), EPERM);
	assert_int_equal(kernel_says(&s, CLONE3_NR, 0, 0, 0, 0), ENOSYS);
	assert_int_equal(kernel_says(&s, SYS_openat2, -1, path, 0, 0), ENOSYS);
	assert_int_equal(kernel_says(&s, SYS_unshare, CLONE_NEWNS, 0, 0, 0), EPERM);
	assert_int_equal(
	    kernel_says(&s, SYS_ioctl, -1, (long)0x900005412, 0, 0), EPERM);
	assert_int_equal(kernel_says(&s, SYS_ioctl, -1, 0x5401, 0, 0), EBADF);
	assert_int_equal(
	    kernel_says(&s, SYS_socket, AF_INET, SOCK_STREAM, 0, 0), EAFNOSUPPORT);
	assert_int_equal(kernel_says(&s, SYS_socket, AF_UNIX, SOCK_STREAM, 0, 0), 0);
	assert_int_equal(kernel_says(&s, SYS_fchmod, -1, 0644, 0, 0), EBADF);
	assert_int_equal(kernel_says(&s, SYS_fchmod, -1, 06644, 0, 0), EPERM);
	assert_int_equal(kernel_says(&s, SYS_openat, AT_FDCWD, path, 0, 06777), ENOENT);
	assert_int_equal(kernel_says(&s, 509, 0, 0, 0, 0), ENOSYS);
#if defined(__x86_64__)
	assert_int_equal(kernel_says(&s, 0x40000000 | SYS_getpid, 0, 0, 0, 0), ENOSYS);
#endif
	subject_close(&s);
}

#if defined(__x86_64__)
static void
a_32_bit_call_kills_the_process(void **state)
{
	struct subject s;
	int status;
	(void)state;
	subject_open(&s, "default", NULL, NULL);
	pid_t pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		long r;
		load(&s.filter);
		__asm__ volatile("int $0x80"
				 : "=a"(r)
				 : "a"(20)
				 : "memory", "r8", "r9", "r10", "r11");
		_exit(r < 0 ? 1 : 0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status));
	/* SIGSEGV: a kernel without this door. */
	assert_true(WTERMSIG(status) == SIGSYS || WTERMSIG(status) == SIGSEGV);
	subject_close(&s);
}
#endif

static void
a_kill_takes_the_whole_process(void **state)
{
	/* A thread that is killed alone would leave its process waiting for ever. */
	struct subject s;
	(void)state;
	subject_open(&s, "judge", NULL, NULL);
	assert_int_equal(kernel_says(&s, SYS_ptrace, 0, 0, 0, 0), 1000 + SIGSYS);
	assert_int_equal(kernel_says(&s, SYS_reboot, 0, 0, 0, 0), 1000 + SIGSYS);
	assert_int_equal(
	    kernel_says(&s, SYS_socket, AF_INET, SOCK_STREAM, 0, 0), 1000 + SIGSYS);
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
		cmocka_unit_test(the_last_rule_that_matches_decides),
		cmocka_unit_test(a_rule_equal_to_the_default_action_is_no_error),
		cmocka_unit_test(a_rule_by_name_opens_what_is_always_refused),
		cmocka_unit_test(guards_hold_where_everything_unlisted_is_allowed),
		cmocka_unit_test(a_program_too_long_names_its_length),
		cmocka_unit_test(the_default_preset_refuses_and_allows),
		cmocka_unit_test(set_user_id_files_cannot_be_made),
		cmocka_unit_test(a_host_network_still_has_no_raw_sockets),
		cmocka_unit_test(the_judge_kills_hostile_calls),
		cmocka_unit_test(the_stub_may_make_its_calls_under_every_preset),
		cmocka_unit_test(every_name_in_our_tables_is_known),
		cmocka_unit_test(another_architecture_is_killed),
		cmocka_unit_test(the_kernel_agrees),
#if defined(__x86_64__)
		cmocka_unit_test(a_32_bit_call_kills_the_process),
#endif
		cmocka_unit_test(a_kill_takes_the_whole_process),
		cmocka_unit_test(programs_are_small),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
