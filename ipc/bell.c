/* ipc/bell.c: the doorbell.
 *
 * The lost wake to exclude: the worker publishes and reads "not armed" while the
 * supervisor arms and reads "nothing published". Both sides do a read-modify-write on
 * the same word, so one of the two comes first in its modification order, and the later
 * one sees all that came before the earlier one. That is why disarming is an exchange
 * too: a plain store in between would cut the chain.
 */
#include "ipc/bell.h"

#include <errno.h>
#include <unistd.h>

#include "ipc/shm.h"

void
kn_bell_arm(struct kn_control *c)
{
	kn_shm_swap32_seqcst(&c->armed, 1); /* B1 */
}

void
kn_bell_disarm(struct kn_control *c)
{
	kn_shm_swap32_seqcst(&c->armed, 0); /* B1 */
}

bool
kn_bell_ring(struct kn_control *c, int eventfd)
{
	const uint64_t one = 1;
	ssize_t n;

	if (kn_shm_swap32_seqcst(&c->armed, 0) == 0) /* B2 */
		return false;
	do
		n = write(eventfd, &one, sizeof one);
	while (n < 0 && errno == EINTR);
	/* EAGAIN: the counter is full, so the supervisor's end is readable anyway. */
	return n == (ssize_t)sizeof one || (n < 0 && errno == EAGAIN);
}
