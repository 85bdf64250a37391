/* tests/stress/stress.h: what the stresses share: how they end, chance, and bytes that
 * follow from whose they are.
 */
#ifndef TESTS_STRESS_STRESS_H
#define TESTS_STRESS_STRESS_H

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static inline void
die(const char *what, uint32_t task)
{
	fprintf(
	    stderr, "%s: %s (task %u)\n", program_invocation_short_name, what, task);
	exit(1);
}

static inline uint32_t
rnd(uint32_t *seed)
{
	*seed ^= *seed << 13;
	*seed ^= *seed >> 17;
	*seed ^= *seed << 5;
	return *seed;
}

enum { FILL_MAX = 6144 };

/* The bytes of a payload follow from its task and attempt, so that a torn or swapped
 * one shows. Copied and compared as a whole: a thread sanitizer looks at such a range
 * at once, and at single bytes for most of its time. */
static inline const uint8_t *
pattern(uint32_t task, uint32_t gen)
{
	static uint8_t bytes[256 + FILL_MAX];

	return bytes + (uint8_t)(task * 31 + gen * 7);
}

/* Once, before there are threads. */
static inline void
fill_open(void)
{
	uint8_t *p = (uint8_t *)(uintptr_t)pattern(0, 0);

	for (uint32_t i = 0; i < 256 + FILL_MAX; i++)
		p[i] = (uint8_t)i;
}

static inline void
fill(uint8_t *p, uint32_t n, uint32_t task, uint32_t gen)
{
	memcpy(p, pattern(task, gen), n);
}

static inline int
is_filled(const uint8_t *p, uint32_t n, uint32_t task, uint32_t gen)
{
	return n <= FILL_MAX && memcmp(p, pattern(task, gen), n) == 0;
}

#endif
