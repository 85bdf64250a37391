/* sandbox/launch_child.h: the launching child: everything between fork and exec.
 *
 * The plan is complete before the fork; the child makes system calls only, allocates
 * nothing, and reports the step that failed with its errno over a close-on-exec pipe.
 * The sentence is the parent's. The order of the steps is the order of the enum.
 */
#ifndef KN_SANDBOX_LAUNCH_CHILD_H
#define KN_SANDBOX_LAUNCH_CHILD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>

enum kn_launch_step {
	KN_STEP_SIGNALS = 1, /* default dispositions, nothing blocked */
	KN_STEP_SESSION,     /* its own, known to the guard */
	KN_STEP_CGROUP,	     /* write "0" to each cgroup.procs */
	KN_STEP_TREE,	     /* index: bind */
	KN_STEP_IDMAP,	     /* index: bind */
	KN_STEP_UNSHARE,     /* root with binds: a mount namespace for the idmaps */
	KN_STEP_PRIVATE,     /* nothing of it comes back to the machine */
	KN_STEP_TMPFS,	     /* where the idmapped trees go; only we can enter */
	KN_STEP_POINT,	     /* index: bind */
	KN_STEP_ATTACH,	     /* index: bind */
	KN_STEP_GROUPS,
	KN_STEP_GID,
	KN_STEP_UID,
	KN_STEP_CAPS,
	KN_STEP_CAPS_LEFT,
	KN_STEP_PDEATHSIG, /* after the uid: a change of it would clear the signal */
	KN_STEP_PARENT,	   /* the parent died before that took hold */
	KN_STEP_FDS,
	KN_STEP_DATA, /* index: file by content */
	KN_STEP_CHDIR,
	KN_STEP_BRIDGE, /* who hands the socket to a container that a daemon starts */
	KN_STEP_RLIMIT, /* no core files; descriptors as the caller had them */
	KN_STEP_EXEC,
	KN_STEP_N
};
struct kn_step_err {
	uint32_t step, index;
	int32_t sys;
};
const char *kn_launch_step_text(enum kn_launch_step s);

struct kn_child_bind {
	int fd;	    /* O_PATH source */
	bool idmap; /* else a plain copy of the tree */
	bool is_dir;
	const char *path; /* where it goes, below mount_dir */
};
struct kn_child_data {
	const char *path; /* of a file that has the content, else NULL */
	const void *p;
	size_t n;
};
struct kn_child {
	const char *path; /* of bwrap */
	char *const *argv;
	int report_fd;		      /* write end, close-on-exec */
	int parent_pidfd;	      /* of the supervisor */
	volatile int32_t *guard_slot; /* launch_guard.h */
	int32_t group; /* its parent is a warden, of that group and pid; 0: none */
	/* A pipe: nothing is begun before a byte comes; -1: begin at once. */
	int go[2];
	int null_fd, stderr_fd, sock_fd, stub_fd, args_fd /* or -1 */;
	/* Files by content: they become KN_CHILD_DATA_FD and up. */
	const struct kn_child_data *data;
	size_t data_n;
	const int *join_fds;
	size_t join_n;
	bool stay; /* an engine is run as who we are, and not as the worker's user */
	char *const *envp; /* NULL: none */
	int bridge_fd;	   /* oci_bridge.h; -1: the socket is inherited */
	uint32_t bridge_uid;
	bool nested; /* uid 0 that is not the machine's, and no other uid to take */
	bool root;   /* take uid (and gid of the same number) */
	uint32_t uid;
	int userns_fd;
	const char *mount_dir; /* NULL: no binds to bring */
	const struct kn_child_bind *binds;
	size_t bind_n;
	int *trees;	      /* room for bind_n */
	struct rlimit nofile; /* as it was before we raised it for our tables */
};
/* 0 to 4 as in ipc/control.h */
enum { KN_CHILD_ARGS_FD = 5, KN_CHILD_REPORT_FD = 6, KN_CHILD_DATA_FD = 7 };

/* In the child. Never returns. */
void kn_child_run(const struct kn_child *c) __attribute__((noreturn));

#endif
