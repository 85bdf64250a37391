/* spin - burns one processor in user space, without a system call after the start.
 * TRIES:    to go on for --ms milliseconds of processor time (10000), then says so.
 *           --split N: in N children one after the other, so that no single process
 *           is over a limit; --orphan: children nobody waits for (SIGCHLD ignored), so
 *           that only a cgroup can count them.
 * SANDBOX:  killed at the CPU limit, else at the wall limit; with a limit above --ms
 *           exit 0 and the usage says --ms, within a tick.
 * OUTSIDE:  no process left.
 */
#include "tests/hostile/hostile.h"

static double
used(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static void
burn(double ms)
{
	double from = used();
	volatile unsigned x = 0;

	while (used() - from < ms)
		for (int i = 0; i < 100000; i++)
			x = x + 1;
}

int
main(int c, char **v)
{
	double ms = (double)h_num(c, v, "--ms", 10000);
	long split = h_num(c, v, "--split", 1);

	h_init(c, v, 0, 0);
	if (h_flag(c, v, "--orphan"))
		signal(SIGCHLD, SIG_IGN);
	if (split <= 1) {
		burn(ms);
	} else {
		for (long i = 0; i < split; i++) {
			pid_t k = fork();

			if (k == 0) {
				burn(ms / (double)split);
				_exit(0);
			}
			if (k < 0)
				inconclusive("fork: %s", strerror(errno));
			waitpid(k, NULL, 0);
		}
	}
	pending("burned %.0f ms of processor time", ms);
}
