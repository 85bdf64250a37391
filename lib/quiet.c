/* lib/quiet.c: a broken pipe, or a file that may not grow (ulimit -f), is an error of
 * our write and no signal for the program that we are part of. Dispositions are the
 * whole process's; so the two signals are blocked in this one thread while it works for
 * us, and taken back if they came from it.
 */
#include <signal.h>
#include <time.h>

#include "lib/lib.h"

static const int quiet[2] = { SIGPIPE, SIGXFSZ };

void
kn_quiet_begin(struct kn_quiet *q)
{
	sigset_t set;

	if (q->on)
		return;
	sigemptyset(&set);
	for (int i = 0; i < 2; i++)
		sigaddset(&set, quiet[i]);
	if (pthread_sigmask(SIG_BLOCK, &set, &q->old) != 0)
		return;
	q->on = true;
	q->was_pending[0] = q->was_pending[1] = false;
	/* One that was not blocked has not been waiting. */
	if (sigismember(&q->old, quiet[0]) != 1 && sigismember(&q->old, quiet[1]) != 1)
		return;
	sigemptyset(&set);
	(void)sigpending(&set);
	for (int i = 0; i < 2; i++)
		q->was_pending[i] = sigismember(&set, quiet[i]) == 1;
}

void
kn_quiet_end(struct kn_quiet *q)
{
	const struct timespec now = { 0, 0 };
	sigset_t set, one;

	if (!q->on)
		return;
	sigemptyset(&set);
	(void)sigpending(&set);
	for (int i = 0; i < 2; i++) {
		if (q->was_pending[i] || sigismember(&set, quiet[i]) != 1)
			continue;
		sigemptyset(&one);
		sigaddset(&one, quiet[i]);
		(void)sigtimedwait(&one, NULL, &now);
	}
	(void)pthread_sigmask(SIG_SETMASK, &q->old, NULL);
	q->on = false;
}
