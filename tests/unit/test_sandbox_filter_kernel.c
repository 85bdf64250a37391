/* tests/unit/test_sandbox_filter_kernel.c: the kernel is asked what the two programs
 * do, in children that load them as a worker and a cell would.
 */
#include "tests/unit/filter_test.h"

#include "sandbox/stub/wall.c"

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
	assert_int_equal(
	    kernel_says(&s, SYS_socket, AF_UNIX, SOCK_STREAM, 0, 0), EAFNOSUPPORT);
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

/* What a cell says of its filter, 0 or an error number: fake makes the call that loads
 * one do nothing and say 0; other puts another filter in its place. */
static int
cell_says(const struct kn_filter *f, bool fake, bool other)
{
	struct sock_filter lie[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_seccomp, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog w = { (unsigned short)f->worker_n, f->worker_bpf };
	struct sock_fprog l = { 4, lie };
	int status;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
		    syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &w) < 0 ||
		    (fake && syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &l) < 0))
			_exit(200);
		_exit(-kn_wall_cell_filter(
		    other ? &lie[3] : f->cell_bpf, other ? 1 : f->cell_n));
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static void
a_cell_filter_that_did_not_take_hold_is_noticed(void **state)
{
	static const char *const policies[] = { "default", "strict", "judge" };
	static const char no_prctl[] =
	    "[{\"names\":[\"prctl\"],\"action\":\"SCMP_ACT_KILL_PROCESS\"}]";
	struct subject s;

	(void)state;
	for (size_t i = 0; i < 2 * sizeof policies / sizeof policies[0]; i++) {
		subject_open(&s, policies[i / 2], i % 2 ? no_prctl : NULL, NULL);
		assert_int_equal(cell_says(&s.filter, false, false), 0);
		assert_int_equal(cell_says(&s.filter, true, false), EPERM);
		assert_int_equal(cell_says(&s.filter, false, true), EPERM);
		subject_close(&s);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_kernel_agrees),
#if defined(__x86_64__)
		cmocka_unit_test(a_32_bit_call_kills_the_process),
#endif
		cmocka_unit_test(a_cell_filter_that_did_not_take_hold_is_noticed),
		cmocka_unit_test(a_kill_takes_the_whole_process),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
