/* sandbox/cgroup_find.h: where this process stands in which cgroup hierarchies.
 *
 * Pure text work on /proc/self/cgroup and /proc/self/mountinfo, so that tests can feed
 * it v1, v2, hybrid and container layouts. A place is a directory path, "" if the
 * hierarchy is not mounted or our own group is not visible below its mount.
 */
#ifndef KN_SANDBOX_CGROUP_FIND_H
#define KN_SANDBOX_CGROUP_FIND_H

#include <stdint.h>

struct kn_err;

enum { KN_CGROUP_PATH_MAX = 512 };

struct kn_cgroup_place {
	char dir[KN_CGROUP_PATH_MAX]; /* our own group */
	unsigned mount_n;	      /* length of the mount point's part of dir */
};
struct kn_cgroup_where {
	struct kn_cgroup_place memory, pids, cpuacct, cpu; /* v1 hierarchies */
	struct kn_cgroup_place unified;			   /* v2 */
};
void kn_cgroup_parse(
    const char *self_cgroup, const char *mountinfo, struct kn_cgroup_where *out);
/* The same, of this process now. 0, or -1 if /proc cannot be read. */
int kn_cgroup_where(struct kn_cgroup_where *out, struct kn_err *e);
/* The tightest memory limit from our own group up to the mount, UINT64_MAX if none. */
uint64_t kn_cgroup_memory_bound(const struct kn_cgroup_where *w);

#endif
