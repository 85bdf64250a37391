/* sandbox/stub/sys.h: system calls without libc.
 *
 * A cell's init and the task's process before execve share the stub's memory and its
 * thread area, so nothing they call may touch errno, a lock or a buffer of libc. All
 * functions here return the kernel's answer: a value, or a negative errno.
 */
#ifndef KN_STUB_SYS_H
#define KN_STUB_SYS_H

#include <linux/capability.h>
#include <linux/mount.h>
#include <linux/openat2.h>
#include <linux/sched.h>
#include <poll.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>

#if defined(__x86_64__)
static inline long
kn_sys6(long n, long a, long b, long c, long d, long e, long f)
{
	register long r10 __asm__("r10") = d;
	register long r8 __asm__("r8") = e;
	register long r9 __asm__("r9") = f;
	long ret;

	__asm__ volatile("syscall"
			 : "=a"(ret)
			 : "a"(n), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
			 : "rcx", "r11", "memory");
	return ret;
}

/* System call n, of clone's kind, whose child runs fn(arg) on a stack of its own and
 * never returns. tid: clone's child_tid. */
static inline long
kn_sys_clone_call(
    long n, long a, long b, long c, long tid, void (*fn)(void *), void *arg)
{
	register void (*r12)(void *) __asm__("r12") = fn;
	register void *r13 __asm__("r13") = arg;
	register long r10 __asm__("r10") = tid;
	register long r8 __asm__("r8") = 0;
	long ret;

	__asm__ volatile(
	    "syscall\n\t"
	    "testq %%rax, %%rax\n\t"
	    "jnz 1f\n\t"
	    "xorl %%ebp, %%ebp\n\t"
	    "movq %%r13, %%rdi\n\t"
	    "callq *%%r12\n\t"
	    "hlt\n"
	    "1:"
	    : "=a"(ret)
	    : "a"(n), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r12), "r"(r13)
	    : "rcx", "r11", "memory");
	return ret;
}

/* Where a signal handler returns to: the kernel wants to be told on this machine. */
__attribute__((naked, used)) static void
kn_sys_sigreturn(void)
{
	__asm__("movl $15, %eax\n\tsyscall"); /* rt_sigreturn */
}
#define KN_SYS_RESTORER 0x04000000ul
#elif defined(__aarch64__)
static inline long
kn_sys6(long n, long a, long b, long c, long d, long e, long f)
{
	register long x8 __asm__("x8") = n;
	register long x0 __asm__("x0") = a;
	register long x1 __asm__("x1") = b;
	register long x2 __asm__("x2") = c;
	register long x3 __asm__("x3") = d;
	register long x4 __asm__("x4") = e;
	register long x5 __asm__("x5") = f;

	__asm__ volatile("svc #0"
			 : "+r"(x0)
			 : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
			 : "memory");
	return x0;
}

static inline long
kn_sys_clone_call(
    long n, long a, long b, long c, long tid, void (*fn)(void *), void *arg)
{
	register long x8 __asm__("x8") = n;
	register long x0 __asm__("x0") = a;
	register long x1 __asm__("x1") = b;
	register long x2 __asm__("x2") = c;
	register long x3 __asm__("x3") = 0;
	register long x4 __asm__("x4") = tid;
	register void (*x9)(void *) __asm__("x9") = fn;
	register void *x10 __asm__("x10") = arg;

	__asm__ volatile(
	    "svc #0\n\t"
	    "cbnz x0, 1f\n\t"
	    "mov x29, xzr\n\t"
	    "mov x30, xzr\n\t"
	    "mov x0, x10\n\t"
	    "blr x9\n\t"
	    "brk #1\n"
	    "1:"
	    : "+r"(x0)
	    : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x9), "r"(x10)
	    : "memory");
	return x0;
}
#else
#error "knit-worker knows the system calls of x86_64 and aarch64"
#endif

#define KN_SYS0(n) kn_sys6(n, 0, 0, 0, 0, 0, 0)
#define KN_SYS1(n, a) kn_sys6(n, (long)(a), 0, 0, 0, 0, 0)
#define KN_SYS2(n, a, b) kn_sys6(n, (long)(a), (long)(b), 0, 0, 0, 0)
#define KN_SYS3(n, a, b, c) kn_sys6(n, (long)(a), (long)(b), (long)(c), 0, 0, 0)
#define KN_SYS4(n, a, b, c, d) \
	kn_sys6(n, (long)(a), (long)(b), (long)(c), (long)(d), 0, 0)
#define KN_SYS5(n, a, b, c, d, e) \
	kn_sys6(n, (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), 0)

enum { KN_SYS_ENOSYS = 38 };

/* clone3 whose child runs fn(arg) on the stack named in *args and never returns. The
 * default filters of container engines answer ENOSYS, as its flags are in memory: then
 * clone() does the same, but for a cgroup to be born in. */
static inline long
kn_sys_clone3_run(struct clone_args *args, void (*fn)(void *), void *arg)
{
	long r = kn_sys_clone_call(
	    SYS_clone3, (long)(uintptr_t)args, (long)sizeof *args, 0, 0, fn, arg);

	if (r != -KN_SYS_ENOSYS || (args->flags & CLONE_INTO_CGROUP) != 0)
		return r;
	return kn_sys_clone_call(SYS_clone, (long)(args->flags | args->exit_signal),
	    (long)(args->stack + args->stack_size), (long)args->pidfd,
	    (long)args->child_tid, fn, arg);
}

/* The same as fork() does it: the child goes on with a copy of our stack. */
static inline long
kn_sys_clone3_fork(struct clone_args *args)
{
	long r = KN_SYS2(SYS_clone3, args, sizeof *args);

	if (r != -KN_SYS_ENOSYS || (args->flags & CLONE_INTO_CGROUP) != 0)
		return r;
	return KN_SYS5(
	    SYS_clone, args->flags | args->exit_signal, 0, args->pidfd, 0, 0);
}

static inline void
kn_sys_close(int fd)
{
	if (fd >= 0)
		(void)KN_SYS1(SYS_close, fd);
}

/* Close *fd and leave -1 there. */
static inline void
kn_sys_close_at(int *fd)
{
	kn_sys_close(*fd);
	*fd = -1;
}

static inline long
kn_sys_pread(int fd, void *p, size_t n, int64_t off)
{
	return KN_SYS4(SYS_pread64, fd, p, n, off);
}

static inline long
kn_sys_pwrite(int fd, const void *p, size_t n, int64_t off)
{
	return KN_SYS4(SYS_pwrite64, fd, p, n, off);
}

static inline long
kn_sys_read(int fd, void *p, size_t n)
{
	return KN_SYS3(SYS_read, fd, p, n);
}

static inline long
kn_sys_write(int fd, const void *p, size_t n)
{
	return KN_SYS3(SYS_write, fd, p, n);
}

static inline int
kn_sys_openat(int dir, const char *path, int flags, unsigned mode)
{
	return (int)KN_SYS4(SYS_openat, dir, path, flags, mode);
}

static inline int
kn_sys_openat2(int dir, const char *path, const struct open_how *how)
{
	return (int)KN_SYS4(SYS_openat2, dir, path, how, sizeof *how);
}

static inline int
kn_sys_stat(int dir, const char *path, struct stat *st, int flags)
{
	return (int)KN_SYS4(SYS_newfstatat, dir, path, st, flags);
}

/* One entry of what getdents64 fills. */
struct kn_sys_dirent {
	uint64_t ino;
	int64_t off;
	unsigned short reclen;
	unsigned char type;
	char name[];
};

static inline long
kn_sys_getdents(int fd, void *buf, size_t n)
{
	return KN_SYS3(SYS_getdents64, fd, buf, n);
}

static inline int
kn_sys_mkdirat(int dir, const char *path, unsigned mode)
{
	return (int)KN_SYS3(SYS_mkdirat, dir, path, mode);
}

static inline int
kn_sys_mount(const char *what, const char *at, const char *type, unsigned long flags,
    const char *data)
{
	return (int)KN_SYS5(SYS_mount, what, at, type, flags, data);
}

static inline int
kn_sys_move_mount(int fd, const char *at)
{
	return (int)KN_SYS5(
	    SYS_move_mount, fd, "", -100 /* AT_FDCWD */, at, MOVE_MOUNT_F_EMPTY_PATH);
}

static inline int
kn_sys_unlinkat(int dir, const char *path, int flags)
{
	return (int)KN_SYS3(SYS_unlinkat, dir, path, flags);
}

static inline int
kn_sys_kill(int pid, int signo)
{
	return (int)KN_SYS2(SYS_kill, pid, signo);
}

static inline int
kn_sys_wait4(int pid, int *status, int options, struct rusage *ru)
{
	return (int)KN_SYS4(SYS_wait4, pid, status, options, ru);
}

static inline int
kn_sys_ppoll(struct pollfd *p, unsigned n, const struct timespec *t)
{
	return (int)KN_SYS5(SYS_ppoll, p, n, t, NULL, 8);
}

/* Call fn on signal signo; system calls are interrupted. */
static inline int
kn_sys_catch(int signo, void (*fn)(int))
{
	struct {
		void (*handler)(int);
		unsigned long flags;
		void (*restorer)(void);
		uint64_t mask;
	} act = { .handler = fn };

#ifdef KN_SYS_RESTORER
	act.flags = KN_SYS_RESTORER;
	act.restorer = kn_sys_sigreturn;
#endif
	return (int)KN_SYS4(SYS_rt_sigaction, signo, &act, NULL, sizeof act.mask);
}

/* Ask for short turns (Linux 6.12; ignored before): whoever needs little gets a
 * processor sooner. Children are born without it. */
static inline int
kn_sys_short_turns(void)
{
	struct {
		uint32_t size, policy;
		uint64_t flags;
		int32_t nice;
		uint32_t priority;
		uint64_t runtime, deadline, period;
	} a = {
		.size = 48, .flags = 1 /* SCHED_FLAG_RESET_ON_FORK */, .runtime = 100000
	};

	return (int)KN_SYS3(SYS_sched_setattr, 0, &a, 0);
}

static inline uint64_t
kn_sys_clock_ns(int clock)
{
	struct timespec t = { 0, 0 };

	if (KN_SYS2(SYS_clock_gettime, clock, &t) < 0)
		return 0;
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static inline _Noreturn void
kn_sys_exit(int code)
{
	for (;;)
		(void)KN_SYS1(SYS_exit_group, code);
}

#endif
