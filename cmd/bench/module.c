/* cmd/bench/module.c: the module that `bench` calls: nothing, and its argument. */
#include <knit/task.h>
#include <string.h>
#include <time.h>

KNIT_TASK(nothing)
{
	return 0;
}

KNIT_TASK(echo)
{
	size_t n;
	const void *from = knit_arg_data(call, &n);
	void *to = knit_result_reserve(call, knit_arg_type(call), n);

	if (!to)
		return -1;
	memcpy(to, from, n);
	return knit_result_commit(call, n);
}

/* Sleeps for so many microseconds. */
KNIT_TASK(pause)
{
	struct timespec t;
	int64_t us;

	if (knit_arg_i64(call, &us) < 0)
		return -1;
	t.tv_sec = us / 1000000;
	t.tv_nsec = us % 1000000 * 1000;
	return nanosleep(&t, NULL);
}
