/* tests/stress/stress.h: what the stresses share: how they end, chance, and bytes that
 * follow from whose they are.
 */
#ifndef TESTS_STRESS_STRESS_H
#define TESTS_STRESS_STRESS_H

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

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

/* The bytes of a payload follow from its task and attempt, so that a torn or swapped
 * one shows. */
static inline void
fill(uint8_t *p, uint32_t n, uint32_t task, uint32_t gen)
{
	for (uint32_t i = 0; i < n; i++)
		p[i] = (uint8_t)(task * 31 + gen * 7 + i);
}

static inline int
is_filled(const uint8_t *p, uint32_t n, uint32_t task, uint32_t gen)
{
	for (uint32_t i = 0; i < n; i++)
		if (p[i] != (uint8_t)(task * 31 + gen * 7 + i))
			return 0;
	return 1;
}

#endif
