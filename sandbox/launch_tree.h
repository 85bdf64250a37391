/* sandbox/launch_tree.h: the processes below one of ours, as /proc tells. */
#ifndef KN_SANDBOX_LAUNCH_TREE_H
#define KN_SANDBOX_LAUNCH_TREE_H

#include <stddef.h>
#include <sys/types.h>

struct kn_tree {
	pid_t *v; /* parents before their children */
	size_t n, room;
};
/* pid and all below it; nothing where it is none. kn_tree_fini() in any case. */
void kn_tree_look(struct kn_tree *t, pid_t pid);
void kn_tree_fini(struct kn_tree *t);
/* SIGKILL to all below pid, which is not reaped yet, and not to it. Each is held by a
 * pidfd when its parent is asked for, so that no stranger is hit. */
void kn_tree_kill(pid_t pid);

/* SIGKILL to all processes of a uid. Who calls is root. */
void kn_tree_kill_uid(uid_t uid);

#endif
