/* cmd/init.c: what is different when we are process 1, as in a container without an
 * init.
 *
 * The kernel hands every orphan to process 1, which has to wait for it; libknit never
 * waits for children that are not its own, so the program does it. Those of the pool
 * are not in its way: the launcher makes them so that wait(2) does not see them
 * (launch.c).
 *
 * And a signal to process 1 that it neither handles nor blocks is dropped, whatever its
 * default: who asks `policy learn` or `run --connect` to end would wait for ever.
 */
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cmd/cmd.h"
#include "cmd/init.h"

static const int ends[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT };

static void
end(int signo)
{
	_exit(KN_EXIT_SIGNAL + signo);
}

bool
kn_init_is(void)
{
	return getpid() == 1;
}

void
kn_init_begin(void)
{
	const struct sigaction sa = { .sa_handler = end };
	struct sigaction old;

	if (!kn_init_is())
		return;
	for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
		if (sigaction(ends[i], NULL, &old) == 0 && old.sa_handler == SIG_DFL)
			(void)sigaction(ends[i], &sa, NULL);
	}
}

void
kn_init_hold(sigset_t *set)
{
	if (kn_init_is())
		sigaddset(set, SIGCHLD);
}

void
kn_init_reap(void)
{
	if (!kn_init_is())
		return;
	while (waitpid(-1, NULL, WNOHANG) > 0)
		;
}
