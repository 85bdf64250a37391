/* calls - what the kernel says to each system call, by number, under the filter that is
 * in force.
 * TRIES:    with arguments "ABI A0 A1 A2 A3 A4 A5" (ABI native, x32 or i386): for each
 *           number 0..500 a child adds a filter of its own, by which every call that is
 *           still allowed is not made but answered with ENOSYS (an action less strict
 *           than any refusal), and makes the call. With "real": for each number that
 *           this leaves open, with arguments 0, a child makes the call itself.
 * SANDBOX:  a line per number: "NAME-OF-ABI NUMBER errno N", "... signal N", "...
 * done". OUTSIDE:  the same, of the kernel itself.
 */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { LAST = 500, X32 = 0x40000000, MAGIC = 0x6b6e6974 };
enum abi { NATIVE, X32_ABI, I386, ABI_N };
static const char *const names[ABI_N] = { "native", "x32", "i386" };
static volatile long *result; /* by number */
static volatile long *at;     /* the number that is tried */
static const long none = 0x7fffffff;

/* All but the end of this child: exit_group(0, MAGIC). */
static int
shadow(void)
{
	struct sock_filter f[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit_group, 0, 3),
		BPF_STMT(
		    BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args) + 8),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, MAGIC, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRACE),
	};
	struct sock_fprog p = { sizeof f / sizeof *f, f };

	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &p, 0, 0);
}

static long
native(long nr, const long a[6])
{
#if defined(__x86_64__)
	register long r10 __asm__("r10") = a[3];
	register long r8 __asm__("r8") = a[4];
	register long r9 __asm__("r9") = a[5];
	long r;

	__asm__ volatile(
	    "syscall"
	    : "=a"(r)
	    : "a"(nr), "D"(a[0]), "S"(a[1]), "d"(a[2]), "r"(r10), "r"(r8), "r"(r9)
	    : "rcx", "r11", "memory");
	return r;
#else
	long r = syscall(nr, a[0], a[1], a[2], a[3], a[4], a[5]);

	return r == -1 ? -errno : r;
#endif
}

static long
i386(long nr, const long a[6])
{
#if defined(__x86_64__)
	long r = nr;

	/* ebp, which compilers keep for themselves, holds the sixth: left as it is */
	__asm__ volatile("int $0x80"
			 : "+a"(r)
			 : "b"((int)a[0]), "c"((int)a[1]), "d"((int)a[2]),
			 "S"((int)a[3]), "D"((int)a[4])
			 : "memory", "r8", "r9", "r10", "r11");
	return (int)r;
#else
	(void)nr;
	(void)a;
	return -ENOSYS;
#endif
}

static volatile pid_t running;

static void
nothing(int sig)
{
	(void)sig;
}

static void
give_up(int sig)
{
	(void)sig;
	kill(running, SIGKILL);
}

static const long end[6] = { 0, MAGIC };

/* The numbers from..to, one after the other. */
static void
child(enum abi abi, long from, long to, const long a[6], int real)
{
	const struct sigaction wake = { .sa_handler = nothing };
	const struct itimerval often = { { 0, 10000 }, { 0, 10000 } };
	pid_t me = getpid();

	/* what waits is interrupted, again and again */
	if (real && (sigaction(SIGALRM, &wake, NULL) < 0 ||
			setitimer(ITIMER_REAL, &often, NULL) < 0))
		_exit(100);
	if (!real && shadow() < 0)
		_exit(100);
	for (long nr = from; nr <= to; nr++) {
		long r;

		*at = nr;
		r = abi == I386 ? i386(nr, a)
				: native(abi == X32_ABI ? nr | X32 : nr, a);
		/* of fork and its like: the other one */
		if (real && native(SYS_getpid, end) != me)
			native(SYS_exit_group, end);
		result[nr] = r;
	}
	for (;;)
		native(SYS_exit_group, end);
}

static void
say(enum abi abi, long nr, int status)
{
	if (result[nr] == none && WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS)
		printf("%s %ld signal %d\n", names[abi], nr, SIGSYS);
	else if (result[nr] < 0 && result[nr] > -4096)
		printf("%s %ld errno %ld\n", names[abi], nr, -result[nr]);
	else /* or it ended, or died of its arguments */
		printf("%s %ld done\n", names[abi], nr);
}

/* Says what became of numbers from..to; returns the first that was not tried. */
static long
try(enum abi abi, long from, long to, const long a[6], int real)
{
	int status;
	long last;

	for (long nr = from; nr <= to; nr++)
		result[nr] = none;
	*at = from;
	fflush(stdout);
	running = fork();
	if (running < 0)
		exit(3);
	if (running == 0)
		child(abi, from, to, a, real);
	alarm(20);
	while (waitpid(running, &status, 0) < 0 && errno == EINTR)
		;
	alarm(0);
	last = *at;
	for (long nr = from; nr <= last; nr++)
		say(abi, nr, status);
	return last + 1;
}

int
main(int argc, char **argv)
{
	int real = argc > 1 && strcmp(argv[1], "real") == 0;
	enum abi abi = NATIVE;
	long a[6] = { 0 };
	char name[] = "/tmp/calls.XXXXXX";
	int file;

	signal(SIGHUP, SIG_IGN);
	sigaction(SIGALRM, &(const struct sigaction){ .sa_handler = give_up }, NULL);
	/* (memory that is shared without a file is refused where it is watched) */
	file = mkstemp(name);
	unlink(name);
	if (ftruncate(file, (off_t)((LAST + 2) * sizeof *result)) < 0)
		return 2;
	result = mmap(NULL, (LAST + 2) * sizeof *result, PROT_READ | PROT_WRITE,
	    MAP_SHARED, file, 0);
	close(file);
	if (result == MAP_FAILED || argc < 2)
		return 2;
	at = &result[LAST + 1];
	if (real && (prctl(PR_GET_SECCOMP, 0, 0, 0, 0) != 2 || geteuid() == 0)) {
		fprintf(stderr, "real: only as a task\n");
		return 2;
	}
	if (real) {
		for (long nr = 0; nr <= LAST; nr++)
			try(NATIVE, nr, nr, a, 1);
		return 0;
	}
	while (abi < ABI_N && strcmp(argv[1], names[abi]) != 0)
		abi++;
	if (abi == ABI_N)
		return 2;
	for (int i = 0; i < 6 && i + 2 < argc; i++)
		a[i] = (long)strtoull(argv[i + 2], NULL, 0);
	for (long nr = 0; nr <= LAST;)
		nr = try(abi, nr, LAST, a, 0);
	return 0;
}
