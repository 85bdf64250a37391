/* sandbox/launch_int.h: what the launch*.c files share; no one else includes it.
 *
 *   launch.c          the launcher: built once, frees all
 *   launch_start.c    fork one worker's launcher process
 *   launch_child.c    between fork and exec
 *   launch_warden.c   its parent, where we are embedded in another program
 *   launch_guard.c    what kills launchers when the supervisor has died
 *   launch_boot.c     the boot record
 *   launch_layers.c   enforced, degraded, absent, or refused
 *   launch_cpu.c      what a worker has used of the processors
 *   launch_explain.c  a worker that ended before it was ready
 */
#ifndef KN_SANDBOX_LAUNCH_INT_H
#define KN_SANDBOX_LAUNCH_INT_H

#include "sandbox/bind.h"
#include "sandbox/bwrap.h"
#include "sandbox/cgroup.h"
#include "sandbox/host.h"
#include "sandbox/launch.h"
#include "sandbox/launch_child.h"
#include "sandbox/launch_guard.h"
#include "sandbox/launch_warden.h"
#include "sandbox/policy.h"

struct kn_launcher {
	const struct kn_policy *policy;
	const struct kn_host *host;
	uint8_t pool_id[16];
	uint32_t worker_n;
	struct kn_layout layout;
	struct kn_layers layers;
	struct kn_cgroup *cgroup;
	char bwrap[256];
	char exec[256]; /* what is executed: bwrap, or launcher.prefix */

	struct kn_bind *binds;		   /* one per policy mount */
	struct kn_child_bind *child_binds; /* root: the user binds */
	size_t child_bind_n;
	char **child_paths; /* owned, child_bind_n */
	int *child_trees;   /* for the child's use */
	struct rlimit nofile;
	const char *mount_dir;
	struct kn_child_data *data; /* files by content */
	size_t data_n;
	int *userns; /* root with binds: per worker, -1 until its first launch */

	struct kn_argv argv;   /* whole, for --dry-run */
	struct kn_argv packed; /* as executed */
	int args_fd;	       /* sealed memfd, or -1 */
	int stub_fd, null_fd;
	struct kn_guard guard;	   /* embedded: without its process */
	struct kn_warden *wardens; /* embedded: one per worker */
	bool swept; /* what dead supervisors left; once, while the first bwrap starts */
	bool clone_dies; /* launch_start.c, killed_at_birth() */
};

/* Decide each layer, or refuse by name. */
int kn_launch_layers(const struct kn_policy *p, const struct kn_host *h,
    const struct kn_cgroup *g, struct kn_layers *out, struct kn_err *e);

/* What the launcher processes and the stub weigh in the worker's cgroup. */
enum {
	/* bwrap outside, the stub, and the running cell's init */
	KN_LAUNCH_PIDS_OVERHEAD = 3,
};
#define KN_LAUNCH_MEM_OVERHEAD (2ull << 20)

#endif
