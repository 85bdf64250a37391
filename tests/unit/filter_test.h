/* tests/unit/filter_test.h: a policy with its programs and its decisions, for tests. */
#ifndef KN_FILTER_TEST_H
#define KN_FILTER_TEST_H

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
	size_t cap = (rules ? strlen(rules) : 2) + 32;
	char *set = malloc(cap);
	struct kn_err e;
	size_t n = 1;
	struct kn_policy_src src[3] = { { .type = KN_SRC_NAMED, .text = preset } };
	snprintf(set, cap, "/seccomp/rules=%s", rules ? rules : "[]");
	src[n++] = (struct kn_policy_src){ .type = KN_SRC_SET, .text = set };
	if (more)
		src[n++] = (struct kn_policy_src){ .type = KN_SRC_SET, .text = more };
	kn_err_clear(&e);
	if (kn_policy_load(src, n, &s->policy, &e) < 0)
		fail_msg("%s", e.msg);
	free(set);
	if (kn_filter_build(s->policy, &s->filter, &e) < 0)
		fail_msg("%s", e.msg);
	assert_int_equal(kn_ftable_init(&s->table, s->policy, false, &e), 0);
}

static void
subject_close(struct subject *s)
{
	kn_ftable_fini(&s->table);
	kn_filter_fini(&s->filter);
	kn_policy_free(s->policy);
}

/* ---- an interpreter of what seccomp uses of classic BPF ---- */

__attribute__((unused)) static uint32_t
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

__attribute__((unused)) static uint32_t
ask(const struct subject *s, long nr, const uint64_t args[6])
{
	struct seccomp_data d = { .nr = (int)nr, .arch = s->table.arch };
	for (int i = 0; i < 6; i++)
		d.args[i] = args[i];
	return both(&s->filter, &d);
}

#define ASK(s, nr, ...) ask(s, nr, (const uint64_t[6]){ __VA_ARGS__ })

#endif
