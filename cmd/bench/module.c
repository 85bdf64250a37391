/* cmd/bench/module.c: the module that `bench` calls: nothing, and its argument. */
#include <knit/task.h>
#include <string.h>

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

/* Computes for so many microseconds. */
KNIT_TASK(busy)
{
	int64_t us;
	uint64_t end;

	if (knit_arg_i64(call, &us) < 0)
		return -1;
	end = knit_now_ns() + (uint64_t)us * 1000;
	while (knit_now_ns() < end)
		;
	return 0;
}
