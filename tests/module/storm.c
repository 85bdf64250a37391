/* tests/module/storm.c: a task for storms of deaths: what it was given is summed up,
 * that it began is noted outside. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <knit/task.h>

/* Bytes: a number (4), microseconds to take (4), then anything. The number goes to
 * /m/begun, the answer is number, FNV-1a sum of everything, and everything again. */
KNIT_TASK(marked)
{
	static int fd = -1;
	size_t n;
	const unsigned char *p = knit_arg_data(call, &n);
	unsigned sum[4] = { 0, 2166136261u, 0, 0 };
	struct timespec t;
	unsigned char *to;

	if (n < 8)
		return knit_fail(call, "Short", "%zu bytes", n);
	memcpy(&sum[0], p, 4);
	memcpy(&sum[2], p + 4, 4);
	if (fd < 0)
		fd = open("/m/begun", O_WRONLY | O_APPEND | O_CLOEXEC);
	if (fd < 0 || write(fd, p, 4) != 4)
		return knit_fail(call, "Mark", "cannot note that it began");
	t = (struct timespec){ 0, (long)sum[2] * 1000 };
	if (sum[2])
		nanosleep(&t, NULL);
	for (size_t i = 0; i < n; i++)
		sum[1] = (sum[1] ^ p[i]) * 16777619u;
	to = knit_result_reserve(call, KNIT_BYTES, n + 8);
	if (!to)
		return -1;
	memcpy(to, sum, 8);
	memcpy(to + 8, p, n);
	return knit_result_commit(call, n + 8);
}
