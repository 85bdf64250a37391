/* spinners - many processes that all want the processor.
 * TRIES:    N children (argument 1, or --n; 100) that spin without system calls, each
 * in a session of its own, half of them stopped (--stopped) or not; says "ready" when
 * all run; waits for --seconds (30). SANDBOX:  killed at the deadline, all of them
 * within milliseconds: never an exit. OUTSIDE:  no process left.
 */
#include "tests/hostile/hostile.h"

int
main(int c, char **v)
{
	long n = c > 1 && v[1][0] != '-' ? atol(v[1]) : h_num(c, v, "--n", 100);
	long seconds = h_num(c, v, "--seconds", 30), made = 0;
	int stopped = h_flag(c, v, "--stopped");

	int go[2];
	char b;

	h_init(c, v, 0, 0);
	if (h_in_first_pidns() && n > 4)
		n = 4;
	if (pipe(go))
		inconclusive("pipe: %s", strerror(errno));
	for (long i = 0; i < n; i++) {
		pid_t k = fork();

		if (k < 0)
			break;
		if (k == 0) {
			volatile unsigned x = 0;

			setsid();
			alarm((unsigned)seconds);
			close(go[1]);
			/* The end of the pipe is the start for all. */
			if (read(go[0], &b, 1) != 0)
				_exit(1);
			if (stopped && i % 2)
				raise(SIGSTOP);
			for (;;)
				x = x + 1;
		}
		made++;
	}
	printf("ready %ld\n", made);
	fflush(stdout);
	close(go[1]);
	h_sleep((double)seconds);
	escape("%ld spinners lived for %ld s", made, seconds);
}
