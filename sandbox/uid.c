/* sandbox/uid.c: choose the host uids of the workers from the maps of our namespace. */
#include "sandbox/uid.h"

#include <stdio.h>
#include <string.h>

#include "ipc/err.h"

enum {
	MAP_MAX = 340,	       /* extents the kernel allows in one map */
	OVERFLOW_ID = 65534,   /* "nobody": what unmapped owners look like */
	FULL_BASE = 0x40000000 /* see uid.h */
};

struct extent {
	uint64_t lo, hi; /* ids as seen inside, hi exclusive */
};

static int
map_parse(const char *text, struct extent *x, int max)
{
	int n = 0;

	while (n < max) {
		unsigned long long in, out, len;
		int used = 0;

		if (sscanf(text, " %llu %llu %llu%n", &in, &out, &len, &used) != 3)
			break;
		text += used;
		if (len == 0 || in > UINT32_MAX || len > (1ull << 32) - in)
			continue;
		x[n].lo = in;
		x[n].hi = in + len;
		n++;
	}
	return n;
}

bool
kn_uid_is_one_supervisors(uid_t uid)
{
	return uid >= FULL_BASE;
}

bool
kn_uid_map_is_full(const char *map)
{
	struct extent x[2];

	return map_parse(map, x, 2) == 1 && x[0].lo == 0 && x[0].hi >= UINT32_MAX;
}

/* The part of the window [lo, hi) that lies in one extent of both maps, the longest. */
static struct extent
common(const struct extent *u, int un, const struct extent *g, int gn, uint64_t lo,
    uint64_t hi)
{
	struct extent best = { 0, 0 };

	for (int i = 0; i < un; i++) {
		for (int j = 0; j < gn; j++) {
			uint64_t a = lo, b = hi;

			a = u[i].lo > a ? u[i].lo : a;
			a = g[j].lo > a ? g[j].lo : a;
			b = u[i].hi < b ? u[i].hi : b;
			b = g[j].hi < b ? g[j].hi : b;
			if (a < b && b - a > best.hi - best.lo) {
				best.lo = a;
				best.hi = b;
			}
		}
	}
	return best;
}

int
kn_uid_choose(const char *uid_map, const char *gid_map, pid_t pid,
    struct kn_uid_range *out, struct kn_err *e)
{
	/* Emptiest first: above 16-bit ids, their upper half, ordinary accounts, and
	 * what a small container may have for its services. */
	static const struct extent window[] = {
		{ 0x10000, UINT32_MAX },
		{ 0x8000, OVERFLOW_ID },
		{ 1000, 0x8000 },
		{ 1, 1000 },
	};
	struct extent u[MAP_MAX], g[MAP_MAX], best = { 0, 0 };
	int un = map_parse(uid_map, u, MAP_MAX), gn = map_parse(gid_map, g, MAP_MAX);
	uint64_t want = FULL_BASE + ((uint64_t)pid << 8);

	best = common(u, un, g, gn, want, want + KN_UID_RANGE);
	if (best.hi - best.lo == KN_UID_RANGE) {
		out->base = (uid_t)want;
		out->n = KN_UID_RANGE;
		return 0;
	}
	best = (struct extent){ 0, 0 };
	for (size_t i = 0; i < sizeof(window) / sizeof(window[0]); i++) {
		struct extent c = common(u, un, g, gn, window[i].lo, window[i].hi);

		if (c.hi - c.lo >= KN_UID_RANGE) {
			uint64_t blocks = (c.hi - c.lo) / KN_UID_RANGE;

			out->base =
			    (uid_t)(c.lo + (uint64_t)pid % blocks * KN_UID_RANGE);
			out->n = KN_UID_RANGE;
			return 0;
		}
		if (c.hi - c.lo > best.hi - best.lo)
			best = c;
	}
	if (best.hi == best.lo) {
		kn_err_set(e, KN_EK_HOST,
		    "no unprivileged uid is mapped in this user namespace: workers "
		    "would have to run as uid 0");
		kn_err_hint(e, "start it as an ordinary user, or map more ids into "
			       "the namespace (newuidmap, a container's "
			       "subordinate ids)");
		return -1;
	}
	out->base = (uid_t)best.lo;
	out->n = (uint32_t)(best.hi - best.lo);
	return 0;
}
