/* sandbox/filter_abi.c: by which numbers the programs of this machine make system
 * calls: its own, and on x86-64 those of x32 and of i386. Both are other doors to the
 * same kernel, with other numbers behind them: a filter covers them with the same
 * rules, or refuses them as a whole.
 */
#include <linux/audit.h>
#include <seccomp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sandbox/filter_int.h"

/* libseccomp has marks instead of numbers for these: it thinks of socketcall() and
 * ipc(), which did the same before Linux 4.3 and 5.1. Those two have their arguments in
 * memory, where a filter cannot see them, and stay refused (filter_guard.c). */
static const struct {
	const char *name;
	int nr;
} i386_direct[] = {
	{ "socket", 359 },
	{ "socketpair", 360 },
	{ "bind", 361 },
	{ "connect", 362 },
	{ "listen", 363 },
	{ "accept4", 364 },
	{ "getsockopt", 365 },
	{ "setsockopt", 366 },
	{ "getsockname", 367 },
	{ "getpeername", 368 },
	{ "sendto", 369 },
	{ "sendmsg", 370 },
	{ "recvfrom", 371 },
	{ "recvmsg", 372 },
	{ "shutdown", 373 },
	{ "semget", 393 },
	{ "semctl", 394 },
	{ "shmget", 395 },
	{ "shmctl", 396 },
	{ "shmat", 397 },
	{ "shmdt", 398 },
	{ "msgget", 399 },
	{ "msgsnd", 400 },
	{ "msgrcv", 401 },
	{ "msgctl", 402 },
};

/* One call that i386 has under several names, for wider arguments or an older form: who
 * names the first means all. */
static const char *const i386_forms[][5] = {
	{ "stat", "stat64", "oldstat" },
	{ "lstat", "lstat64", "oldlstat" },
	{ "fstat", "fstat64", "oldfstat" },
	{ "newfstatat", "fstatat64" },
	{ "mmap", "mmap2" },
	{ "lseek", "_llseek" },
	{ "select", "_newselect" },
	{ "umount2", "umount" },
	{ "uname", "olduname", "oldolduname" },
	{ "getdents", "readdir" },
	{ "getrlimit", "ugetrlimit" },
	{ "fadvise64", "fadvise64_64" },
	{ "wait4", "waitpid" },
	{ "rt_sigaction", "sigaction", "signal" },
	{ "rt_sigprocmask", "sigprocmask", "ssetmask" },
	{ "rt_sigpending", "sigpending" },
	{ "rt_sigsuspend", "sigsuspend" },
	{ "rt_sigreturn", "sigreturn" },
	{ "setpriority", "nice" },
	{ "settimeofday", "stime" },
};

/* Numbers of x86-64 that libseccomp 2.5.4 does not have and other ABIs do not use: the
 * way back from probes. Linux asks no filter about them, since 6.14 and 6.18. */
static const struct {
	const char *name;
	int nr;
} x86_64_newer[] = { { "uretprobe", 335 }, { "uprobe", 336 } };

static const struct {
	uint32_t token;
	const char *scmp, *docker;
} arches[] = {
	{ SCMP_ARCH_X86_64, "SCMP_ARCH_X86_64", "amd64" },
	{ SCMP_ARCH_AARCH64, "SCMP_ARCH_AARCH64", "arm64" },
	{ SCMP_ARCH_PPC64LE, "SCMP_ARCH_PPC64LE", "ppc64le" },
	{ SCMP_ARCH_S390X, "SCMP_ARCH_S390X", "s390x" },
	{ SCMP_ARCH_RISCV64, "SCMP_ARCH_RISCV64", "riscv64" },
};

void
kn_filter_machine(const char **out_scmp, const char **out_docker)
{
	*out_scmp = *out_docker = "";
	for (size_t i = 0; i < sizeof arches / sizeof *arches; i++)
		if (arches[i].token == seccomp_arch_native()) {
			*out_scmp = arches[i].scmp;
			*out_docker = arches[i].docker;
		}
}

/* As libseccomp counts them; its marks are the kernel's AUDIT_ARCH_* but for x32. */
static uint32_t
token(enum kn_abi abi)
{
	switch (abi) {
	case KN_ABI_X32:
		return SCMP_ARCH_X32;
	case KN_ABI_I386:
		return SCMP_ARCH_X86;
	case KN_ABI_NATIVE:
	case KN_ABI_N:
	default:
		return seccomp_arch_native();
	}
}

bool
kn_filter_unasked(enum kn_abi abi, uint32_t nr)
{
	for (size_t i = 0; i < sizeof x86_64_newer / sizeof *x86_64_newer; i++)
		if (token(abi) == SCMP_ARCH_X86_64 &&
		    (uint32_t)x86_64_newer[i].nr == nr)
			return true;
	return false;
}

bool
kn_filter_abi_here(enum kn_abi abi)
{
	return abi == KN_ABI_NATIVE ||
	       (abi < KN_ABI_N && seccomp_arch_native() == SCMP_ARCH_X86_64);
}

uint32_t
kn_filter_abi_arch(enum kn_abi abi)
{
	return abi == KN_ABI_I386 ? AUDIT_ARCH_I386 : seccomp_arch_native();
}

int
kn_filter_nr_of(enum kn_abi abi, const char *name)
{
	int nr = seccomp_syscall_resolve_name_arch(token(abi), name);
	if (nr >= 0 && abi == KN_ABI_X32)
		nr &= ~KN_NR_X32;
	if (nr >= 0)
		return nr < KN_NR_MAX ? nr : KN_NR_FOREIGN;
	for (size_t i = 0;
	     abi == KN_ABI_I386 && i < sizeof i386_direct / sizeof *i386_direct; i++)
		if (strcmp(i386_direct[i].name, name) == 0)
			return i386_direct[i].nr;
	for (size_t i = 0; i < sizeof x86_64_newer / sizeof *x86_64_newer; i++)
		if (strcmp(x86_64_newer[i].name, name) == 0)
			return token(abi) == SCMP_ARCH_X86_64 ? x86_64_newer[i].nr
							      : KN_NR_FOREIGN;
	int newer = kn_filter_newer(name);
	if (newer >= 0)
		return newer;
	/* Below -1 are its marks for calls that only other architectures have. */
	return nr == __NR_SCMP_ERROR ? KN_NR_UNKNOWN : KN_NR_FOREIGN;
}

char *
kn_filter_name_of(enum kn_abi abi, uint32_t nr)
{
	if (nr >= KN_NR_MAX)
		return NULL;
	char *name = seccomp_syscall_resolve_num_arch(
	    token(abi), (int)nr | (abi == KN_ABI_X32 ? KN_NR_X32 : 0));
	if (name)
		return name;
	for (size_t i = 0;
	     abi == KN_ABI_I386 && i < sizeof i386_direct / sizeof *i386_direct; i++)
		if ((uint32_t)i386_direct[i].nr == nr)
			return strdup(i386_direct[i].name);
	for (size_t i = 0; i < sizeof x86_64_newer / sizeof *x86_64_newer; i++)
		if (token(abi) == SCMP_ARCH_X86_64 &&
		    (uint32_t)x86_64_newer[i].nr == nr)
			return strdup(x86_64_newer[i].name);
	const char *newer = kn_filter_newer_name(nr);
	return newer ? strdup(newer) : NULL;
}

const char *
kn_filter_other_name(enum kn_abi abi, const char *name, unsigned i, char room[64])
{
	static const char *const ends[] = { "32", "64", "_time64" };
	enum { ENDS = sizeof ends / sizeof *ends };
	if (abi != KN_ABI_I386)
		return NULL;
	if (i < ENDS) {
		snprintf(room, 64, "%.50s%s", name, ends[i]);
		return room;
	}
	for (size_t f = 0; f < sizeof i386_forms / sizeof *i386_forms; f++)
		if (strcmp(i386_forms[f][0], name) == 0 && i - ENDS < 4)
			return i386_forms[f][i - ENDS + 1];
	return NULL;
}
