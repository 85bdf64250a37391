/* forker - forks as fast as it can, for ever, at every depth.
 * TRIES:    each process forks and goes on forking; failures are tried again at once;
 *           --double: through a child that ends, so that all become orphans. Stops by
 *           itself after --seconds (30; 2 in the machine's first PID namespace, where
 *           it makes 16 processes at most).
 * SANDBOX:  held by the process limit, killed at the deadline: never an exit.
 * OUTSIDE:  no process left; neighbours could fork all the time.
 */
#include "tests/hostile/hostile.h"

int
main(int c, char **v)
{
	double end = h_now() + (double)h_num(c, v, "--seconds", 30);
	int twice = h_flag(c, v, "--double");

	h_init(c, v, 0, 0);
	if (h_in_first_pidns())
		inconclusive("not on the machine itself");
	signal(SIGCHLD, SIG_IGN);
	if (write(1, "ready\n", 6) < 0)
		return 1;
	while (h_now() < end) {
		if (fork() == 0 && twice && fork() > 0)
			_exit(0);
	}
	escape("forked until its own time was over");
}
