/* tests/module/idle.c: what a module may leave behind that goes on when nobody calls.
 */
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <knit/task.h>

static _Atomic int64_t ticks;

KNIT_TASK(cpus)
{
	cpu_set_t set;

	return sched_getaffinity(0, sizeof set, &set) < 0
		   ? knit_fail(call, "Error", "no CPUs")
		   : knit_result_i64(call, CPU_COUNT(&set));
}

KNIT_TASK(echo)
{
	int64_t v;

	return knit_arg_i64(call, &v) || knit_result_i64(call, v);
}

static int64_t
now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

KNIT_TASK(busy_us)
{
	int64_t v, t0 = now_us();

	if (knit_arg_i64(call, &v))
		return -1;
	while (now_us() - t0 <= v)
		;
	return knit_result_i64(call, v);
}

static void *
tick(void *none)
{
	const struct timespec t = { 0, 10 * 1000000 };

	for (;; ticks++)
		nanosleep(&t, NULL);
	return none;
}

KNIT_TASK(start_thread)
{
	pthread_t t;

	return pthread_create(&t, NULL, tick, NULL) == 0
		   ? 0
		   : knit_fail(call, "Error", "no thread");
}

KNIT_TASK(count)
{
	return knit_result_i64(call, ticks);
}

/* As much as there is, in steps, so that who looks can see it grow. */
static void
eat(int signo)
{
	const struct timespec t = { 0, 2 * 1000000 };

	(void)signo;
	for (int i = 0; i < 4096; i++) {
		char *p = malloc(1 << 20);

		if (p)
			memset(p, i | 1, 1 << 20);
		nanosleep(&t, NULL);
	}
}

/* In so many milliseconds, by the one signal that makes a stopped process go on. */
KNIT_TASK(eat_later)
{
	struct sigevent how = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGCONT };
	struct sigaction act = { .sa_handler = eat };
	struct itimerspec when;
	timer_t timer;
	int64_t ms;

	if (knit_arg_i64(call, &ms) < 0)
		return -1;
	when = (struct itimerspec){ .it_value = { ms / 1000, ms % 1000 * 1000000 } };
	if (sigaction(SIGCONT, &act, NULL) < 0 ||
	    timer_create(CLOCK_MONOTONIC, &how, &timer) < 0 ||
	    timer_settime(timer, 0, &when, NULL) < 0)
		return knit_fail(call, "Error", "no timer");
	return 0;
}
