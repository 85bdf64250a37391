/* cmd/bench/task.c: the program that `bench` runs inside and outside of sandboxes.
 *
 * It needs no file of the machine and no libc, so that what is measured is the way to
 * it and not its own start: without an argument it ends at once. The other words make
 * the tasks that have to be ended by force; each says "ready" when it is in the state
 * that it is named for, so that nothing is measured that did not happen.
 */
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/prctl.h>

#include "sandbox/stub/sys.h"

enum { SPINNERS = 100, FORKS_ALIVE = 16, SIGNALS = 64 };

#if defined(__x86_64__)
__asm__(".globl _start\n"
	"_start:\n\t"
	"xorl %ebp, %ebp\n\t"
	"movq %rsp, %rdi\n\t"
	"andq $-16, %rsp\n\t"
	"call kn_bench_task\n\t"
	"hlt\n");
#else
__asm__(".globl _start\n"
	"_start:\n\t"
	"mov x29, xzr\n\t"
	"mov x30, xzr\n\t"
	"mov x0, sp\n\t"
	"bl kn_bench_task\n\t"
	"brk #1\n");
#endif

/* The stack as the kernel leaves it: argc, then argv. */
_Noreturn void kn_bench_task(const long *stack);

static long
fork_here(void)
{
	/* not clone3: filters refuse what they cannot look into */
	return KN_SYS5(SYS_clone, SIGCHLD, 0, 0, 0, 0);
}

static _Noreturn void
leave(int code)
{
	for (;;)
		(void)KN_SYS1(SYS_exit_group, code);
}

static void
say_ready(void)
{
	(void)KN_SYS3(SYS_write, 1, "ready\n", 6);
}

static void
pause_us(uint64_t us)
{
	struct timespec t = { (time_t)(us / 1000000), (long)(us % 1000000) * 1000 };

	(void)KN_SYS4(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &t, NULL);
}

static _Noreturn void
spin(void)
{
	/* outside of a sandbox nobody else would end it */
	(void)KN_SYS2(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL);
	for (;;)
		__asm__ volatile("");
}

static _Noreturn void
sleep_for_ever(void)
{
	for (;;)
		pause_us(1000000);
}

/* New processes all the time, each short-lived: one list of pids is never the next. */
static _Noreturn void
keep_forking(void)
{
	bool said = false;
	int alive = 0;

	for (;;) {
		long pid = fork_here();

		if (pid == 0) {
			pause_us(500);
			leave(0);
		}
		if (pid < 0)
			leave(3);
		if (++alive < FORKS_ALIVE)
			continue;
		if (!said)
			say_ready();
		said = true;
		if (KN_SYS4(SYS_wait4, -1, 0, 0, 0) > 0)
			alive--;
	}
}

static _Noreturn void
ignore_signals(void)
{
	struct {
		void *handler;
		unsigned long flags;
		void *restorer;
		uint64_t mask;
	} ignore = { (void *)1, 0, 0, 0 }; /* SIG_IGN */

	for (int s = 1; s <= SIGNALS; s++)
		(void)KN_SYS4(SYS_rt_sigaction, s, &ignore, NULL, sizeof ignore.mask);
	say_ready();
	sleep_for_ever();
}

static _Noreturn void
many_spinners(void)
{
	for (int i = 0; i < SPINNERS; i++) {
		long pid = fork_here();

		if (pid == 0)
			spin();
		if (pid < 0)
			leave(3);
	}
	say_ready();
	spin();
}

static _Noreturn void
touch(uint64_t mib)
{
	long p = kn_sys6(SYS_mmap, 0, (long)(mib << 20), PROT_READ | PROT_WRITE,
	    MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

	if (p < 0 && p > -4096)
		leave(3);
	say_ready();
	sleep_for_ever();
}

static bool
is(const char *a, const char *b)
{
	while (*a && *a == *b) {
		a++;
		b++;
	}
	return *a == *b;
}

static uint64_t
number(const char *s)
{
	uint64_t n = 0;

	for (; *s >= '0' && *s <= '9'; s++)
		n = n * 10 + (uint64_t)(*s - '0');
	return n;
}

_Noreturn void
kn_bench_task(const long *stack)
{
	const char *const *argv = (const char *const *)(stack + 1);
	const char *what = stack[0] > 1 ? argv[1] : "";
	uint64_t n = stack[0] > 2 ? number(argv[2]) : 0;

	if (is(what, ""))
		leave(0);
	if (is(what, "pause-us")) {
		pause_us(n);
		leave(0);
	}
	if (is(what, "spin")) {
		say_ready();
		spin();
	}
	if (is(what, "sleep")) {
		say_ready();
		sleep_for_ever();
	}
	if (is(what, "fork"))
		keep_forking();
	if (is(what, "ignore"))
		ignore_signals();
	if (is(what, "spinners"))
		many_spinners();
	if (is(what, "touch"))
		touch(n);
	leave(2);
}
