/* ipc/clock.c: CLOCK_MONOTONIC in nanoseconds, and deadlines as absolute values on it.
 */
#include "ipc/clock.h"

#include <limits.h>
#include <time.h>

uint64_t
kn_clock_now(void)
{
	struct timespec ts;

	/* Cannot fail: the clock exists on every kernel and &ts is ours. */
	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * KN_S_NS + (uint64_t)ts.tv_nsec;
}

uint64_t
kn_clock_after_ms(uint64_t now_ns, uint64_t ms)
{
	if (ms == 0)
		return 0;
	if (ms > (UINT64_MAX - now_ns) / KN_MS_NS)
		return UINT64_MAX;
	return now_ns + ms * KN_MS_NS;
}

int
kn_clock_poll_ms(uint64_t now_ns, uint64_t deadline_ns)
{
	uint64_t left, ms;

	if (deadline_ns == 0)
		return -1;
	if (deadline_ns <= now_ns)
		return 0;
	left = deadline_ns - now_ns;
	/* Rounded up: rounded down, the last millisecond would be a busy loop of
	 * poll(0). */
	ms = left / KN_MS_NS + (left % KN_MS_NS != 0);
	return ms > INT_MAX ? INT_MAX : (int)ms;
}
