/* ipc/park.c: sleeping on the wake word of a slice, where the two sides run, and the
 * abort bits. */
#include "ipc/park.h"

#include <errno.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "ipc/clock.h"
#include "ipc/shm.h"

uint32_t
kn_park_begin(struct kn_control *c)
{
	uint32_t seen = kn_shm_load32_acquire(&c->wake); /* K4 */

	(void)kn_shm_swap32_seqcst(&c->parked, 1); /* K1 */
	return seen;
}

void
kn_park_end(struct kn_control *c)
{
	(void)kn_shm_swap32_seqcst(&c->parked, 0); /* K1 */
}

static long
sleep_on(struct kn_control *c, uint32_t seen, const struct timespec *most)
{
	/* Not FUTEX_PRIVATE: the waker is another process. A wake between begin and
	 * here has changed the word, and the kernel does not let us sleep (K4). */
	long r = syscall(SYS_futex, &c->wake, FUTEX_WAIT, seen, most, NULL, 0);
	int err = errno;

	kn_park_end(c);
	return r < 0 ? -err : 0;
}

void
kn_park(struct kn_control *c, uint32_t seen)
{
	(void)sleep_on(c, seen, NULL);
}

bool
kn_park_for(struct kn_control *c, uint32_t seen, uint64_t ns)
{
	const struct timespec most = { (time_t)(ns / KN_S_NS), (long)(ns % KN_S_NS) };

	return sleep_on(c, seen, &most) != -ETIMEDOUT;
}

bool
kn_park_wake(struct kn_control *c)
{
	/* The read-modify-write stands for the barrier between publication and look:
	 * it costs a shared line, so it is done once a burst. */
	if (kn_shm_swap32_seqcst(&c->parked, 0) == 0) /* K2 */
		return false;
	(void)kn_shm_inc32_seqcst(&c->wake); /* K3 */
	(void)syscall(SYS_futex, &c->wake, FUTEX_WAKE, 1, NULL, NULL, 0);
	return true;
}

void
kn_park_worker_is_on(struct kn_control *c, uint32_t cpu_1)
{
	kn_shm_store32_release(&c->worker_cpu, cpu_1); /* H1 */
}

uint32_t
kn_park_worker_cpu(const struct kn_control *c)
{
	return kn_shm_load32_acquire(&c->worker_cpu); /* H2 */
}

void
kn_park_host_is_on(struct kn_control *c, uint32_t cpu_1)
{
	kn_shm_store32_release(&c->host_cpu, cpu_1); /* H3 */
}

uint32_t
kn_park_host_cpu(const struct kn_control *c)
{
	return kn_shm_load32_acquire(&c->host_cpu); /* H4 */
}

void
kn_abort_set(uint32_t *words, uint32_t id)
{
	if (id < KN_ABORT_BITS)
		(void)kn_shm_or32_release(&words[id / 32], 1u << id % 32); /* T1 */
}

void
kn_abort_clear(uint32_t *words, uint32_t id)
{
	if (id < KN_ABORT_BITS)
		(void)kn_shm_and32_release(&words[id / 32], ~(1u << id % 32)); /* T1 */
}

bool
kn_abort_test(const uint32_t *words, uint32_t id)
{
	return id < KN_ABORT_BITS &&
	       (kn_shm_load32_acquire(&words[id / 32]) >> id % 32 & 1); /* T2 */
}
