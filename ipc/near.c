/* ipc/near.c: see near.h. */
#include "ipc/near.h"

#include <stddef.h>
#include <string.h>

enum { LONGEST = 40, FAR = 99 };

/* Edits with swaps of neighbours, or FAR for words too long to be typos. */
static unsigned
distance(const char *a, const char *b)
{
	size_t an = strnlen(a, LONGEST + 1), bn = strnlen(b, LONGEST + 1);
	unsigned d[3][LONGEST + 1];

	if (an > LONGEST || bn > LONGEST)
		return FAR;
	for (size_t j = 0; j <= bn; j++)
		d[0][j] = (unsigned)j;
	for (size_t i = 1; i <= an; i++) {
		unsigned *now = d[i % 3], *was = d[(i - 1) % 3], *old = d[(i + 1) % 3];

		now[0] = (unsigned)i;
		for (size_t j = 1; j <= bn; j++) {
			unsigned v = was[j - 1] + (a[i - 1] != b[j - 1]);

			if (was[j] + 1 < v)
				v = was[j] + 1;
			if (now[j - 1] + 1 < v)
				v = now[j - 1] + 1;
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] &&
			    a[i - 2] == b[j - 1] && old[j - 2] + 1 < v)
				v = old[j - 2] + 1;
			now[j] = v;
		}
	}
	return d[an % 3][bn];
}

struct kn_near
kn_near_to(const char *name)
{
	return (struct kn_near){ .name = name, .edits = FAR };
}

void
kn_near_try(struct kn_near *near, const char *word)
{
	unsigned d = distance(near->name, word);

	if (d < near->edits) {
		near->best = word;
		near->edits = d;
	}
}

const char *
kn_near_best(const struct kn_near *near)
{
	size_t n = strnlen(near->name, LONGEST);

	return near->edits <= (n < 4 ? 1U : n < 8 ? 2U : 3U) ? near->best : NULL;
}

const char *
kn_near_word(const char *const *words, const char *name)
{
	struct kn_near near = kn_near_to(name);

	for (; *words; words++)
		kn_near_try(&near, *words);
	return kn_near_best(&near);
}
