/* ignore-stop - does not want to end.
 * TRIES:    ignores and blocks every signal that can be, in a session of its own, and
 *           says so by writing "ready"; then waits (--spin: burns a processor) for
 *           --seconds (30). SIGTERM is answered with one line, when it is not blocked
 *           (--hear), and changes nothing.
 * SANDBOX:  killed at the deadline, or within grace_ms of a stop: never an exit.
 * OUTSIDE:  no process left.
 */
#include <stdbool.h>

#include "tests/hostile/hostile.h"

static void
heard(int signo)
{
	(void)signo;
	if (write(1, "heard\n", 6) < 0)
		_exit(1);
}

int
main(int c, char **v)
{
	double end = h_now() + (double)h_num(c, v, "--seconds", 30);
	bool spin = h_flag(c, v, "--spin"), hear = h_flag(c, v, "--hear");
	sigset_t all;

	h_init(c, v, 0, 0);
	setsid();
	sigfillset(&all);
	for (int s = 1; s < 65; s++)
		signal(s, SIG_IGN);
	if (hear) {
		signal(SIGTERM, heard);
		sigdelset(&all, SIGTERM);
	}
	sigprocmask(SIG_SETMASK, &all, NULL);
	if (write(1, "ready\n", 6) < 0)
		return 1;
	while (h_now() < end)
		if (!spin)
			h_sleep(0.05);
	escape("lived through its time and every request to end");
}
