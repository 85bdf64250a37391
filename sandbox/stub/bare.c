/* sandbox/stub/bare.c: the start of the stub and the calls that it makes by their libc
 * names, so that nothing of libc is in it.
 *
 * Why: a static libc makes a 0.75 MB program of the stub, which each start of a pool
 * copies, and which each worker maps and prepares before our first line runs. What the
 * stub needs are forty system calls and a dozen functions on strings. There is no heap
 * and no stdio here: code of ipc that would use them is left out by the linker
 * (--gc-sections), and code that is not left out does not link.
 *
 * errno is one plain word. The stub has one thread; a cell's init and the task's
 * process before execve share its memory, and use sys.h alone.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sandbox/stub/sys.h"

enum { SIGNALS_TOP = 64, ERRNO_MAX = 4095 };

int main(void);
const char *const *kn_bare_args;
_Noreturn void kn_bare_start(const unsigned long *stack);

static int error;
static long page_size = 4096;

#if defined(__x86_64__)
__asm__(".globl _start\n"
	"_start:\n\t"
	"xorl %ebp, %ebp\n\t"
	"movq %rsp, %rdi\n\t"
	"andq $-16, %rsp\n\t"
	"call kn_bare_start\n\t"
	"hlt\n");
#else
__asm__(".globl _start\n"
	"_start:\n\t"
	"mov x29, xzr\n\t"
	"mov x30, xzr\n\t"
	"mov x0, sp\n\t"
	"bl kn_bare_start\n\t"
	"brk #1\n");
#endif

/* The stack as the kernel leaves it: argc, argv, NULL, environment, NULL, and pairs of
 * what the kernel tells of itself. */
_Noreturn void
kn_bare_start(const unsigned long *stack)
{
	const unsigned long *p = stack + 1 + stack[0] + 1;

	kn_bare_args = (const char *const *)(uintptr_t)(stack + 1);
	while (*p++)
		;
	for (; p[0] != AT_NULL; p += 2)
		if (p[0] == AT_PAGESZ)
			page_size = (long)p[1];
	kn_sys_exit(main());
}

int *
__errno_location(void)
{
	return &error;
}

static long
answer(long r)
{
	if (r >= 0 || r < -ERRNO_MAX)
		return r;
	error = (int)-r;
	return -1;
}

#define ANSWER(type, call) return (type)answer(call)

long
syscall(long n, ...)
{
	long a[6];
	va_list ap;

	va_start(ap, n);
	for (int i = 0; i < 6; i++)
		a[i] = va_arg(ap, long); /* the ABI has six, whoever passes fewer */
	va_end(ap);
	ANSWER(long, kn_sys6(n, a[0], a[1], a[2], a[3], a[4], a[5]));
}

/* ---- descriptors ---- */

int
open(const char *path, int flags, ...)
{
	unsigned mode;
	va_list ap;

	va_start(ap, flags);
	mode = va_arg(ap, unsigned);
	va_end(ap);
	ANSWER(int, KN_SYS4(SYS_openat, AT_FDCWD, path, flags, mode));
}

int
fcntl(int fd, int cmd, ...)
{
	long arg;
	va_list ap;

	va_start(ap, cmd);
	arg = va_arg(ap, long);
	va_end(ap);
	ANSWER(int, KN_SYS3(SYS_fcntl, fd, cmd, arg));
}

int
close(int fd)
{
	ANSWER(int, KN_SYS1(SYS_close, fd));
}

int
dup2(int from, int to)
{
	if (from == to)
		return fcntl(from, F_GETFD) < 0 ? -1 : to;
	ANSWER(int, KN_SYS3(SYS_dup3, from, to, 0));
}

ssize_t
read(int fd, void *p, size_t n)
{
	ANSWER(ssize_t, KN_SYS3(SYS_read, fd, p, n));
}

ssize_t
write(int fd, const void *p, size_t n)
{
	ANSWER(ssize_t, KN_SYS3(SYS_write, fd, p, n));
}

ssize_t
pread(int fd, void *p, size_t n, off_t at)
{
	ANSWER(ssize_t, KN_SYS4(SYS_pread64, fd, p, n, at));
}

int
fstat(int fd, struct stat *st)
{
	ANSWER(int, KN_SYS2(SYS_fstat, fd, st));
}

int
ftruncate(int fd, off_t n)
{
	ANSWER(int, KN_SYS2(SYS_ftruncate, fd, n));
}

int
fallocate(int fd, int mode, off_t at, off_t n)
{
	ANSWER(int, KN_SYS4(SYS_fallocate, fd, mode, at, n));
}

int
memfd_create(const char *name, unsigned flags)
{
	ANSWER(int, KN_SYS2(SYS_memfd_create, name, flags));
}

ssize_t
sendmsg(int fd, const struct msghdr *m, int flags)
{
	ANSWER(ssize_t, KN_SYS3(SYS_sendmsg, fd, m, flags));
}

ssize_t
recvmsg(int fd, struct msghdr *m, int flags)
{
	ANSWER(ssize_t, KN_SYS3(SYS_recvmsg, fd, m, flags));
}

int
poll(struct pollfd *p, nfds_t n, int ms)
{
	struct timespec t = { ms / 1000, (long)(ms % 1000) * 1000000 };

	ANSWER(int, KN_SYS5(SYS_ppoll, p, n, ms < 0 ? NULL : &t, NULL, 0));
}

mode_t
umask(mode_t mask)
{
	ANSWER(mode_t, KN_SYS1(SYS_umask, mask));
}

/* ---- memory ---- */

void *
mmap(void *at, size_t n, int prot, int flags, int fd, off_t from)
{
	long r = kn_sys6(SYS_mmap, (long)at, (long)n, prot, flags, fd, from);

	return (void *)(uintptr_t)answer(r); /* MAP_FAILED is -1 */
}

int
munmap(void *at, size_t n)
{
	ANSWER(int, KN_SYS2(SYS_munmap, at, n));
}

int
mprotect(void *at, size_t n, int prot)
{
	ANSWER(int, KN_SYS3(SYS_mprotect, at, n, prot));
}

int
madvise(void *at, size_t n, int advice)
{
	ANSWER(int, KN_SYS3(SYS_madvise, at, n, advice));
}

long
sysconf(int name)
{
	if (name == _SC_PAGESIZE)
		return page_size;
	error = EINVAL;
	return -1;
}

/* ---- process ---- */

pid_t
getpid(void)
{
	return (pid_t)KN_SYS0(SYS_getpid);
}

int
prctl(int what, ...)
{
	long a[4];
	va_list ap;

	va_start(ap, what);
	for (int i = 0; i < 4; i++)
		a[i] = va_arg(ap, long);
	va_end(ap);
	ANSWER(int, KN_SYS5(SYS_prctl, what, a[0], a[1], a[2], a[3]));
}

int
waitid(idtype_t type, id_t id, siginfo_t *si, int options)
{
	ANSWER(int, KN_SYS5(SYS_waitid, type, id, si, options, NULL));
}

int
getrlimit(__rlimit_resource_t what, struct rlimit *l)
{
	ANSWER(int, KN_SYS4(SYS_prlimit64, 0, what, NULL, l));
}

int
setrlimit(__rlimit_resource_t what, const struct rlimit *l)
{
	ANSWER(int, KN_SYS4(SYS_prlimit64, 0, what, l, NULL));
}

/* The kernel writes as much as it has, and answers how much that is. */
int
sched_getaffinity(pid_t pid, size_t n, cpu_set_t *set)
{
	long got = KN_SYS3(SYS_sched_getaffinity, pid, n, set);

	if (got < 0)
		return (int)answer(got);
	for (size_t i = (size_t)got; i < n; i++)
		((char *)set)[i] = 0;
	return 0;
}

int
__sched_cpucount(size_t n, const cpu_set_t *set)
{
	const unsigned char *p = (const unsigned char *)set;
	int count = 0;

	for (size_t i = 0; i < n; i++)
		for (unsigned b = p[i]; b; b &= b - 1)
			count++;
	return count;
}

int
clock_gettime(clockid_t clock, struct timespec *t)
{
	ANSWER(int, KN_SYS2(SYS_clock_gettime, clock, t));
}

/* ---- signals: to their defaults, and none blocked; handlers are sys.h's ---- */

int
sigaction(int sig, const struct sigaction *new, struct sigaction *old)
{
	struct {
		void (*handler)(int);
		unsigned long flags;
		void (*restorer)(void);
		uint64_t mask;
	} k = { 0 };

	if (!new || old || new->sa_handler != SIG_DFL) {
		error = EINVAL;
		return -1;
	}
	k.handler = SIG_DFL;
	ANSWER(int, KN_SYS4(SYS_rt_sigaction, sig, &k, NULL, sizeof k.mask));
}

int
sigemptyset(sigset_t *set)
{
	*set = (sigset_t){ 0 };
	return 0;
}

int
sigprocmask(int how, const sigset_t *set, sigset_t *old)
{
	ANSWER(int, KN_SYS4(SYS_rt_sigprocmask, how, set, old, sizeof(uint64_t)));
}

int
__libc_current_sigrtmax(void)
{
	return SIGNALS_TOP;
}
