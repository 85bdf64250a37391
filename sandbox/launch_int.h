/* sandbox/launch_int.h: what the launch*.c files share; no one else includes it.
 *
 *   launch.c          the launcher: built once, frees all
 *   launch_kinds.c    which kinds there are
 *   launch_bwrap.c    what is bwrap's own, as the other launch_<kind>.c
 *   launch_direct.c   without namespaces; direct_place.c where its tasks have files
 *   launch_start.c    fork one worker's launcher process
 *   launch_child.c    between fork and exec
 *   launch_warden.c   its parent, where we are embedded in another program, or where
 *                     its processes leave its group
 *   launch_guard.c    what kills launchers when the supervisor has died
 *   launch_boot.c     the boot record
 *   launch_layers.c   enforced, degraded, absent, or refused
 *   launch_cpu.c      what a worker has used of the processors
 *   launch_tree.c     the processes below a launcher
 *   launch_explain.c  a worker that ended before it was ready
 *
 * How to add a kind of launcher. All that workers have in common whatever starts them
 * is done by the files above: ids, binds resolved once and shown under the worker's
 * uid, cgroups, the socket, the fork, the guard, the boot record. What differs is
 * struct kn_launch_ops:
 *   1. a word in enum kn_launcher_type and policy_table.c, its line in launch_kinds.c;
 *   2. launch_<kind>.c with a table `kn_launch_<kind>`: find() and prepare() leave the
 *      program and its arguments in the launcher, plan() puts what differs between
 *      workers into the plan of the child, which executes c->path with descriptors
 *      KN_STUB_SOCK_FD and KN_STUB_EXE_FD and nothing of the caller's but stderr;
 *   3. what it executes must become the stub as PID 1 of a namespace (or its flag in
 *      the boot record says what stands in), with these two descriptors;
 *   4. it dies with the process that executed it, or kill() finds what is left, and
 *      release(), close() and sweep() remove every file, name and mount of it;
 *   5. what it cannot give is told by lacks(), layer by layer, and never quietly.
 */
#ifndef KN_SANDBOX_LAUNCH_INT_H
#define KN_SANDBOX_LAUNCH_INT_H

#include "ipc/control.h"
#include "sandbox/bind.h"
#include "sandbox/bwrap.h"
#include "sandbox/cgroup.h"
#include "sandbox/host.h"
#include "sandbox/lack.h"
#include "sandbox/launch.h"
#include "sandbox/launch_child.h"
#include "sandbox/launch_guard.h"
#include "sandbox/launch_warden.h"
#include "sandbox/policy.h"

/* What a launcher prints, and the cause that it is a sign of. */
struct kn_launch_sign {
	const char *sign; /* part of the line */
	bool host;	  /* the machine's settings are to blame */
	bool userns;	  /* ask the settings; else, or if they allow it: */
	enum kn_lack cause;
};

/* A kind of launcher. What is NULL is not needed. */
struct kn_launch_ops {
	const char *name; /* in messages */
	bool needs_place; /* l->place is made before find() and removed after close() */
	bool joins_inside; /* the stub is to join the cgroups, not the launcher */
	/* What it starts is below it and leaves its group (launch_warden.h). Asked
	 * after find(). */
	bool (*gathers)(const struct kn_launcher *l);
	/* Once, first: l->program is there. */
	int (*find)(struct kn_launcher *l, struct kn_err *e);
	/* Once, with the binds resolved and, as root, planned: l->argv and l->packed.
	 */
	int (*prepare)(struct kn_launcher *l, struct kn_err *e);
	/* Before each start of w: what differs between workers, *c is filled else. */
	int (*plan)(
	    struct kn_launcher *l, uint32_t w, struct kn_child *c, struct kn_err *e);
	/* What the stub is told besides; descriptors in fds are closed after it. */
	int (*boot)(struct kn_launcher *l, uint32_t w, struct kn_boot *b,
	    int fds[KN_BOOT_FD_N], struct kn_err *e);
	/* What the stub is told of files, in place of binds to be verified. */
	uint32_t (*binds)(const struct kn_launcher *l, struct kn_boot_bind *out);
	bool no_mounts; /* nothing is shown under another uid */
	/* Besides cgroup, process group and launcher, which is not reaped yet. */
	void (*kill)(struct kn_launcher *l, uint32_t w, const struct kn_launched *lw);
	/* After the reap, and at the end of the pool: what it left. */
	void (*release)(struct kn_launcher *l, uint32_t w);
	void (*close)(struct kn_launcher *l);
	/* At the end of the pool, first: wait, within bounds, for what others are
	 * removing for it. */
	void (*settle)(const struct kn_launcher *l);
	/* Once, beside the first start: what dead supervisors left. */
	void (*sweep)(const struct kn_launcher *l);
	/* Why this kind cannot give a layer, as a clause; NULL: it can. */
	const char *(*lacks)(const struct kn_policy *p, enum kn_layer layer);
	const char *lead[4]; /* a line of its own begins with one of these, or NULL */
	bool lead_skipped;
	bool says_last; /* and without: its last line, not the first */
	const struct kn_launch_sign *signs;
	size_t sign_n;
	/* Nothing known went wrong. NULL: no more is to be said. */
	void (*hint)(const struct kn_launcher *l, struct kn_err *e);
	/* What launcher and stub weigh in the worker's cgroup. */
	uint32_t pids_overhead;
	uint64_t mem_overhead;
};
extern const struct kn_launch_ops kn_launch_bwrap, kn_launch_oci, kn_launch_direct;
/* NULL with e: not built. */
const struct kn_launch_ops *kn_launch_kind(enum kn_launcher_type t, struct kn_err *e);

struct kn_launcher {
	const struct kn_launch_ops *ops;
	const struct kn_policy *policy;
	const struct kn_host *host;
	uint8_t pool_id[16];
	uint32_t worker_n;
	struct kn_layout layout;
	struct kn_layers layers;
	struct kn_cgroup *cgroup;
	char program[256]; /* of the launcher */
	char exec[256];	   /* what is executed: program, or launcher.prefix */
	char place[256];   /* where this pool's files are, or "" */
	int place_fd;	   /* of direct, locked; -1 */

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
	struct kn_guard guard;	   /* with wardens: without its process */
	struct kn_warden *wardens; /* one per worker, or NULL */
	bool swept;	 /* what dead supervisors left; once, beside the first start */
	bool clone_dies; /* launch_start.c, killed_at_birth() */
	void *own;	 /* the kind's */
};

/* Decide each layer, or refuse by name. */
int kn_launch_layers(const struct kn_policy *p, const struct kn_host *h,
    const struct kn_cgroup *g, struct kn_layers *out, struct kn_err *e);

#endif
