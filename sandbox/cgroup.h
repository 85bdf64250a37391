/* sandbox/cgroup.h: where the machine grants cgroups, a directory per pool and two per
 * worker, in v1 and v2 hierarchies at once.
 *
 *   <own cgroup>/knit-<pool id>/w<N>     the worker's cap, held by the supervisor
 *   <own cgroup>/knit-<pool id>/w<N>/t   everything of the worker lives here; the
 *                                        task's limit is set by the stub through
 *                                        descriptors it was given, below the cap
 *
 * A pool of one worker has one directory for pool and cap; in a v1 hierarchy that
 * limits nothing (CPU figures) cap and leaf are one.
 *
 * What each controller could be given is told by kn_cgroup_has(). Kills use
 * cgroup.kill on any v2 hierarchy, also one without controllers. All directories bear
 * the pool id; kn_cgroup_sweep() removes those of supervisors that are gone.
 */
#ifndef KN_SANDBOX_CGROUP_H
#define KN_SANDBOX_CGROUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "ipc/control.h"

struct kn_err;
struct kn_cgroup; /* the pool's */

/* Makes the pool's directories wherever it may; having none is not an error. pool_id
 * NULL: make none. */
int kn_cgroup_open(const uint8_t pool_id[16], uint32_t worker_n, struct kn_cgroup **out,
    struct kn_err *e);
/* The same, and says whether this process may be moved into a group below its own, so
 * that its own can hand out controllers; and what share of the processors each worker
 * is to have, in thousandths of one (0: any, and no hierarchy is entered for it). */
int kn_cgroup_open_from(const uint8_t pool_id[16], uint32_t worker_n, bool may_move,
    uint32_t cpus, struct kn_cgroup **out, struct kn_err *e);
/* Kill what is left, remove all directories (bounded wait), free. */
void kn_cgroup_close(struct kn_cgroup *g);
/* NULL has none. */
bool kn_cgroup_has_memory(const struct kn_cgroup *g);
bool kn_cgroup_has_pids(const struct kn_cgroup *g);
bool kn_cgroup_has_cpu(const struct kn_cgroup *g);
bool kn_cgroup_has_cpu_max(const struct kn_cgroup *g);
bool kn_cgroup_has_kill(const struct kn_cgroup *g);

/* Make or clean w's directories, set the worker's caps (0: none; in a pool of one the
 * same each time), swap 0. */
int kn_cgroup_prepare(
    struct kn_cgroup *g, uint32_t w, uint64_t memory, uint64_t pids, struct kn_err *e);
/* Descriptors of the files that the launching child, single-threaded, writes "0" to
 * before it drops its privileges; borrowed, valid until the worker is released. The v2
 * hierarchy's comes last. */
size_t kn_cgroup_join_fds(struct kn_cgroup *g, uint32_t w, int *fds, size_t max);
/* The v2 leaf as a directory for clone3(CLONE_INTO_CGROUP), which replaces the last of
 * the join descriptors at a fraction of its cost; -1 if there is none. Borrowed. */
int kn_cgroup_clone_fd(struct kn_cgroup *g, uint32_t w);
/* Fill fds[KN_BOOT_FD_MEM_LIMIT..] with fresh descriptors (caller closes), set bits in
 * *has and format flags in *flags; -1 where this machine has no such file. */
int kn_cgroup_boot_fds(struct kn_cgroup *g, uint32_t w, int fds[KN_BOOT_FD_N],
    uint32_t *has, uint32_t *flags, struct kn_err *e);
/* Bytes charged and processes counted now, 0 if not known. */
uint64_t kn_cgroup_memory_now(struct kn_cgroup *g, uint32_t w);
uint64_t kn_cgroup_pids_now(struct kn_cgroup *g, uint32_t w);
/* Processor time that w has used so far, in nanoseconds; -1 if this machine does not
 * count it. */
int kn_cgroup_cpu_now(struct kn_cgroup *g, uint32_t w, uint64_t *out_ns);
/* Kill everything in w; 0, or -1 if this machine has no cgroup.kill. */
int kn_cgroup_kill(struct kn_cgroup *g, uint32_t w);
/* After the reap: remove w's directories. */
void kn_cgroup_release(struct kn_cgroup *g, uint32_t w);
/* Remove directories of our naming whose supervisor is dead. Returns how many. */
unsigned kn_cgroup_sweep(void);

#endif
