/* tests/unit/ipc_test.h: what the tests of ipc/ share: children, descriptor counts, a
 * kernel that does not know a flag.
 */
#ifndef KN_TESTS_IPC_TEST_H
#define KN_TESTS_IPC_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ipc/arena.h"
#include "ipc/err.h"

static const uint8_t pool_id[16] = "the-pool-of-test";

/* Descriptors that this process has open. */
__attribute__((unused)) static int
open_fds(void)
{
	DIR *d = opendir("/proc/self/fd");
	int n = 0;

	assert_non_null(d);
	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

/* A crash of a child is to be seen as the signal that it is, also where cmocka or a
 * sanitizer has handlers. */
__attribute__((unused)) static void
child_defaults(void)
{
	static const int fatal[] = { SIGSEGV, SIGBUS, SIGABRT, SIGILL, SIGFPE };
	struct sigaction dfl;

	memset(&dfl, 0, sizeof dfl);
	dfl.sa_handler = SIG_DFL;
	for (size_t i = 0; i < sizeof fatal / sizeof fatal[0]; i++)
		sigaction(fatal[i], &dfl, NULL);
	prctl(PR_SET_DUMPABLE, 0); /* no core files from crashes on purpose */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	alarm(1200); /* of a machine that is emulated and busy, too */
}

__attribute__((unused)) static void
ignore(int signo)
{
	struct sigaction ign;

	memset(&ign, 0, sizeof ign);
	ign.sa_handler = SIG_IGN;
	sigaction(signo, &ign, NULL);
}

/* Start fn in a child; its value is the exit code. A child must not use cmocka's
 * assertions: they would jump into the parent's frames. */
__attribute__((unused)) static pid_t
start_child(int (*fn)(void *), void *arg)
{
	pid_t pid;

	fflush(NULL);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		child_defaults();
		_exit(fn(arg));
	}
	return pid;
}

/* The same, to its end. Returns the wait status. */
__attribute__((unused)) static int
in_child(int (*fn)(void *), void *arg)
{
	pid_t pid = start_child(fn, arg);
	int status;

	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

/* From here on memfd_create with any of these flags gives EINVAL, as on a kernel that
 * does not know them. */
__attribute__((unused)) static int
forget_memfd_flags(unsigned flags)
{
	struct sock_filter f[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_memfd_create, 0, 3),
		BPF_STMT(
		    BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[1])),
		BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, flags, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EINVAL),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog prog = { sizeof f / sizeof f[0], f };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return -1;
	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog);
}

/* Parent and child on two CPUs, where there are two: on one they never meet halfway.
 * nth: 0 or 1; -1: all CPUs again, as later tests and their children need. */
__attribute__((unused)) static void
pin(int nth)
{
	static cpu_set_t may;
	static int known;
	cpu_set_t one;

	if (!known && sched_getaffinity(0, sizeof may, &may) < 0)
		return;
	known = 1;
	one = may;
	for (int cpu = 0; nth >= 0 && cpu < CPU_SETSIZE && CPU_COUNT(&may) >= 2; cpu++)
		if (CPU_ISSET(cpu, &may) && nth-- == 0) {
			CPU_ZERO(&one);
			CPU_SET(cpu, &one);
		}
	sched_setaffinity(0, sizeof one, &one);
}

/* Memory that parent and child share for their own notes. */
__attribute__((unused)) static void *
shared_notes(size_t n)
{
	void *p =
	    mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	assert_ptr_not_equal(p, MAP_FAILED);
	return p;
}

/* A small arena of `workers` slices. */
__attribute__((unused)) static void
open_arena(struct kn_arena *a, uint32_t workers, uint64_t area_bytes)
{
	struct kn_layout l;
	struct kn_err e = { 0 };

	assert_int_equal(kn_layout_of(workers, area_bytes, area_bytes, &l), 0);
	if (kn_arena_open(a, &l, pool_id, &e) < 0)
		fail_msg("%s", e.msg);
}

#endif
