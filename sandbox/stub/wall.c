/* sandbox/stub/wall.c: capabilities, no_new_privs, seccomp. Drop, then ask the kernel
 * what is left: only its answer counts. */
#include "sandbox/stub/wall.h"

#include <errno.h>
#include <linux/capability.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>

#include "sandbox/stub/sys.h"

#ifndef SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV
#define SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV (1UL << 5)
#endif

enum { CAP_MAX = 63 };

static int
caps_set(uint32_t keep)
{
	struct __user_cap_header_struct h = { _LINUX_CAPABILITY_VERSION_3, 0 };
	struct __user_cap_data_struct d[2] = { { keep, keep, 0 }, { 0, 0, 0 } };

	return (int)KN_SYS2(SYS_capset, &h, d);
}

/* 0 if permitted and effective are exactly `keep` and inheritable is empty. */
static int
caps_are(uint32_t keep)
{
	struct __user_cap_header_struct h = { _LINUX_CAPABILITY_VERSION_3, 0 };
	struct __user_cap_data_struct d[2] = { { 0, 0, 0 }, { 0, 0, 0 } };
	long r = KN_SYS2(SYS_capget, &h, d);

	if (r < 0)
		return (int)r;
	if (d[0].effective != keep || d[0].permitted != keep || d[0].inheritable ||
	    d[1].effective || d[1].permitted || d[1].inheritable)
		return -EPERM;
	return 0;
}

/* overlayfs works as who mounts it, in a directory of mode 0. */
static uint32_t
stub_keeps(bool overlays)
{
	return 1u << CAP_SYS_ADMIN | (overlays ? 1u << CAP_DAC_OVERRIDE : 0);
}

int
kn_wall_stub_caps(bool overlays)
{
	long r = KN_SYS5(SYS_prctl, PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);

	if (r < 0)
		return (int)r;
	for (int cap = 0; cap <= CAP_MAX; cap++) {
		r = KN_SYS2(SYS_prctl, PR_CAPBSET_READ, cap);
		if (r == -EINVAL) /* past the last capability of this kernel */
			break;
		if (r > 0)
			r = KN_SYS2(SYS_prctl, PR_CAPBSET_DROP, cap);
		if (r < 0)
			return (int)r;
	}
	return caps_set(stub_keeps(overlays));
}

int
kn_wall_stub_caps_verify(bool overlays)
{
	for (int cap = 0; cap <= CAP_MAX; cap++) {
		long r = KN_SYS2(SYS_prctl, PR_CAPBSET_READ, cap);

		if (r == -EINVAL)
			break;
		if (r < 0)
			return (int)r;
		if (r > 0)
			return -EPERM;
		r = KN_SYS5(
		    SYS_prctl, PR_CAP_AMBIENT, PR_CAP_AMBIENT_IS_SET, cap, 0, 0);
		if (r != 0)
			return r < 0 ? (int)r : -EPERM;
	}
	return caps_are(stub_keeps(overlays));
}

/* Bounding and ambient sets were verified empty at boot and cannot grow again. */
int
kn_wall_cell_caps(void)
{
	int r = caps_set(0);

	return r < 0 ? r : caps_are(0);
}

int
kn_wall_no_new_privs(void)
{
	long r = KN_SYS5(SYS_prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);

	if (r < 0)
		return (int)r;
	r = KN_SYS5(SYS_prctl, PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0);
	return r < 0 ? (int)r : r == 1 ? 0 : -EPERM;
}

static int
load_filter(const struct sock_filter *prog, uint32_t n, unsigned long flags)
{
	struct {
		unsigned short len;
		const struct sock_filter *filter;
	} p = { (unsigned short)n, prog };

	if (n == 0 || n > BPF_MAXINSNS)
		return -EINVAL;
	return (int)KN_SYS3(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &p);
}

/* Once the listener has taken a call, a signal that does not kill its caller waits too,
 * where the kernel can do that (5.19); else the call begins anew, and is told again. */
static int
load_telling(const struct sock_filter *prog, uint32_t n)
{
	int r = load_filter(prog, n,
	    SECCOMP_FILTER_FLAG_NEW_LISTENER | SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV);

	return r == -EINVAL ? load_filter(prog, n, SECCOMP_FILTER_FLAG_NEW_LISTENER)
			    : r;
}

int
kn_wall_first_filter(const struct sock_filter *prog, uint32_t n, int *out_listener)
{
	long r = out_listener ? load_telling(prog, n) : load_filter(prog, n, 0);

	if (r < 0)
		return (int)r;
	if (out_listener)
		*out_listener = (int)r;
	r = KN_SYS5(SYS_prctl, PR_GET_SECCOMP, 0, 0, 0, 0);
	return r < 0 ? (int)r : r == SECCOMP_MODE_FILTER ? 0 : -EPERM;
}

int
kn_wall_cell_filter(const struct sock_filter *prog, uint32_t n)
{
	long r = load_filter(prog, n, 0);

	if (r < 0)
		return (int)r;
	/* That there is a filter says nothing: the worker's is there already. */
	r = KN_SYS5(SYS_prctl, KN_CELL_PROBE, 0, 0, 0, 0);
	return r == -KN_CELL_PROBE_ERRNO ? 0 : -EPERM;
}
