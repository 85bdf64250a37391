/* tests/lab/tsc.c: prints how many kHz this machine's time stamp counter has.
 *
 * The emulator hands the counter through, and a kernel that measures it while the
 * machine is busy can be wrong many times over: then its clock runs at another speed
 * than ours.
 */
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>
#include <x86intrin.h>

static uint64_t
now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Both clocks at one moment: of many looks the one that took least. */
static void
look(uint64_t *ns, uint64_t *ticks)
{
	uint64_t least = UINT64_MAX;

	for (int i = 0; i < 1000; i++) {
		uint64_t before = now_ns(), t = __rdtsc(), after = now_ns();

		if (after - before < least) {
			least = after - before;
			*ns = before + least / 2;
			*ticks = t;
		}
	}
}

int
main(void)
{
	const struct timespec nap = { 0, 200 * 1000 * 1000 };
	uint64_t ns0 = 0, ticks0 = 0, ns1 = 0, ticks1 = 0;

	look(&ns0, &ticks0);
	nanosleep(&nap, NULL);
	look(&ns1, &ticks1);
	printf("%" PRIu64 "\n", (ticks1 - ticks0) * 1000000 / (ns1 - ns0));
	return 0;
}
