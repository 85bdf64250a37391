/* tests/fault/regs.h: the registers of a process that failcall.c has stopped. */
#ifndef KN_TESTS_FAULT_REGS_H
#define KN_TESTS_FAULT_REGS_H

#include <elf.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>

#if defined(__x86_64__)
typedef struct user_regs_struct regs_t;
#define REG_SP(r) ((r).rsp)
#elif defined(__aarch64__)
typedef struct user_regs_struct regs_t;
#define REG_SP(r) ((r).sp)
#else
#error "failcall: registers of this machine are not known"
#endif

static inline bool
get_regs(pid_t pid, regs_t *r)
{
	struct iovec v = { r, sizeof *r };

	return ptrace(PTRACE_GETREGSET, pid, (void *)NT_PRSTATUS, &v) == 0;
}

static inline void
set_regs(pid_t pid, regs_t *r)
{
	struct iovec v = { r, sizeof *r };

	if (ptrace(PTRACE_SETREGSET, pid, (void *)NT_PRSTATUS, &v) < 0) {
		perror("failcall: set registers");
		exit(120);
	}
}

/* At the entry stop: no such call. */
static inline void
skip_call(pid_t pid)
{
#if defined(__x86_64__)
	regs_t r;

	if (!get_regs(pid, &r))
		return;
	r.orig_rax = (unsigned long long)-1;
	set_regs(pid, &r);
#else
	int none = -1;
	struct iovec v = { &none, sizeof none };

	ptrace(PTRACE_SETREGSET, pid, (void *)NT_ARM_SYSTEM_CALL, &v);
#endif
}

static inline void
set_result(pid_t pid, long long value)
{
	regs_t r;

	if (!get_regs(pid, &r))
		return;
#if defined(__x86_64__)
	r.rax = (unsigned long long)value;
#else
	r.regs[0] = (unsigned long long)value;
#endif
	set_regs(pid, &r);
}

#endif
