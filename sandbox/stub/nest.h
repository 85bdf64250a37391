/* sandbox/stub/nest.h: what the stub does for itself in a container of a runtime, which
 * made its namespaces but, unlike bwrap, neither put it into the worker's cgroup nor
 * into a user namespace of its own.
 */
#ifndef KN_STUB_NEST_H
#define KN_STUB_NEST_H

#include <stdint.h>

#include "ipc/control.h"

/* A user namespace below the container's, in which we are uid and gid. What the runtime
 * mounted is locked from then on: no flag of it can be taken off and nothing uncovered,
 * whatever capability we have in here. No other namespace can be made below it. Then
 * our program again: what the kernel keeps of who began it is of the new namespace, or
 * a task, who is the container's root to the kernel, could look at us. args: program,
 * "nest", uid, gid, the uid and gid that the runtime was to start us with, the program
 * again and its arguments. If we are not those, or have other groups and could have
 * been made to have none, it is refused: a runtime may be told that a call succeeded
 * which did nothing. Returns only if that failed: a negative errno, the step and what
 * it was at. */
int kn_nest(
    const char *const *args, enum kn_boot_step *out_step, const char **out_what);
/* Go where the launcher did not go: the runtime and its threads are no part of the
 * worker; and see of the cgroups what is below. Closes the descriptors. */
int kn_nest_join(int fd[KN_BOOT_FD_N]);
/* In the template: every mount that can be written to, and is neither a writable bind
 * nor one that cells cover, is made read-only. An engine mounts more than it is told
 * (/etc/hosts, /run/.containerenv), and a task may own it. No mount keeps set-user-id
 * programs or, but for /dev, devices. /sys, and what the stub came by (bridge.h), are
 * covered. */
int kn_nest_shut(const struct kn_boot *b, const char **out_what);
/* The runtime's process is our parent, and we end with it. After the last change of
 * credentials, which would clear that. */
int kn_nest_die_with_parent(void);

#endif
