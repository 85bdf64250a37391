/* sandbox/caps.c: drop every capability, then verify with the kernel that none is left.
 *
 * libcap's cap_get_proc() family allocates; between fork and exec only its thin
 * capget/capset/prctl wrappers are used. The kernel's 64-bit sets come as two halves.
 */
#include "sandbox/caps.h"

#include <errno.h>
#include <string.h>
#include <sys/capability.h>
#include <sys/prctl.h>
#include <unistd.h>

enum { HALVES = _LINUX_CAPABILITY_U32S_3, CAPS_TOP = 63 };

static int
get_sets(struct __user_cap_data_struct d[HALVES])
{
	struct __user_cap_header_struct h = { .version = _LINUX_CAPABILITY_VERSION_3 };

	memset(d, 0, HALVES * sizeof(d[0]));
	return capget(&h, d);
}

void
kn_caps_drop_bounding(uint64_t keep)
{
	/* The first number the kernel does not know ends the loop with EINVAL. */
	for (int c = 0; c <= CAPS_TOP; c++)
		if ((keep >> c & 1) == 0 && prctl(PR_CAPBSET_DROP, c, 0, 0, 0) < 0)
			return;
}

int
kn_caps_drop(uint64_t keep)
{
	struct __user_cap_header_struct h = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct d[HALVES];

	/* EINVAL: a kernel without ambient sets (before 4.3) has none to clear. */
	if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) < 0 &&
	    errno != EINVAL)
		return -1;
	if (get_sets(d) < 0)
		return -1;
	for (int i = 0; i < HALVES; i++) {
		d[i].permitted &= (uint32_t)(keep >> 32 * i);
		d[i].effective = d[i].permitted;
		d[i].inheritable = 0;
	}
	return capset(&h, d);
}

int
kn_caps_verify(uint64_t keep)
{
	struct __user_cap_data_struct d[HALVES];
	bool exec_restores = geteuid() == 0 || getuid() == 0;
	bool left = false;

	if (get_sets(d) < 0)
		return -1;
	for (int i = 0; i < HALVES; i++) {
		uint32_t others = ~(uint32_t)(keep >> 32 * i);

		left |= ((d[i].effective | d[i].permitted) & others) != 0 ||
			d[i].inheritable != 0;
	}
	for (int c = 0; c <= CAPS_TOP; c++) {
		int set = prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_IS_SET, c, 0, 0);

		if (set < 0)
			break; /* above the last capability of this kernel */
		left |= set > 0;
		left |= exec_restores && (keep >> c & 1) == 0 &&
			prctl(PR_CAPBSET_READ, c, 0, 0, 0) > 0;
	}
	if (left)
		errno = EPERM;
	return left ? -1 : 0;
}

bool
kn_caps_has(int cap)
{
	struct __user_cap_data_struct d[HALVES];

	if (cap < 0 || cap > CAPS_TOP || get_sets(d) < 0)
		return false;
	return (d[cap / 32].effective >> (cap % 32) & 1) != 0;
}
