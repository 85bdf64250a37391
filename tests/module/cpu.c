/* tests/module/cpu.c: tasks that use processor time, in several ways. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <knit/task.h>

#include "../../ipc/layout.h"

static uint64_t
used_ms(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static void *
burn_ms(void *ms)
{
	uint64_t until = used_ms(CLOCK_THREAD_CPUTIME_ID) + (uint64_t)(uintptr_t)ms;

	while (used_ms(CLOCK_THREAD_CPUTIME_ID) < until)
		continue;
	return NULL;
}

/* So many milliseconds of processor time. */
KNIT_TASK(burn)
{
	int64_t ms;

	if (knit_arg_i64(call, &ms) < 0)
		return -1;
	burn_ms((void *)(uintptr_t)ms);
	return knit_result_i64(call, ms);
}

KNIT_TASK(burn_in_thread)
{
	pthread_t t;
	int64_t ms;

	if (knit_arg_i64(call, &ms) < 0)
		return -1;
	if (pthread_create(&t, NULL, burn_ms, (void *)(uintptr_t)ms) != 0)
		return knit_fail(call, "Error", "no thread");
	pthread_join(t, NULL);
	return knit_result_i64(call, ms);
}

KNIT_TASK(burn_in_child)
{
	int64_t ms;
	pid_t pid;

	if (knit_arg_i64(call, &ms) < 0)
		return -1;
	pid = fork();
	if (pid < 0)
		return knit_fail(call, "Error", "no process");
	if (pid == 0) {
		burn_ms((void *)(uintptr_t)ms);
		_exit(0);
	}
	waitpid(pid, NULL, 0);
	return knit_result_i64(call, ms);
}

/* Waits, which costs nothing. */
KNIT_TASK(wait_ms)
{
	struct timespec t;
	int64_t ms;

	if (knit_arg_i64(call, &ms) < 0)
		return -1;
	t = (struct timespec){ ms / 1000, ms % 1000 * 1000000 };
	nanosleep(&t, NULL);
	return knit_result_i64(call, ms);
}

/* For ever, while its worker's words say that it is at nothing. */
KNIT_TASK(burn_unseen)
{
	FILE *f = fopen("/proc/self/maps", "r");
	struct kn_control *c = NULL;
	char line[512];

	(void)call;
	while (f && fgets(line, sizeof line, f)) {
		unsigned long from, to;

		if (strstr(line, "knit-arena") &&
		    sscanf(line, "%lx-%lx", &from, &to) == 2)
			c = (struct kn_control *)from;
	}
	if (f)
		fclose(f);
	if (!c)
		return knit_fail(call, "Error", "no slice");
	for (;;)
		__atomic_store_n(&c->begun, 0, __ATOMIC_SEQ_CST);
}
