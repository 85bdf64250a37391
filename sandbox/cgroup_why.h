/* sandbox/cgroup_why.h: why this process has no cgroup to give to workers.
 */
#ifndef KN_SANDBOX_CGROUP_WHY_H
#define KN_SANDBOX_CGROUP_WHY_H

#include <stddef.h>

#include "sandbox/lack.h"

/* Looks at the directories of its own groups, and changes nothing. Says
 * KN_LACK_CGROUP_CONTROLLER where it could make one, which then lacks something. */
enum kn_lack kn_cgroup_why(void);
/* "v1", "hybrid", "v2" or "none": what is mounted, as this process sees it. */
const char *kn_cgroup_mode(void);
/* One line for root that gives this user's shell (pid) cgroups of its own, by what is
 * mounted; "" if nothing is. */
void kn_cgroup_grant(unsigned uid, int pid, char *out, size_t n);

/* One that makes read-only hierarchies writable. */
void kn_cgroup_remount(char *out, size_t n);

#endif
