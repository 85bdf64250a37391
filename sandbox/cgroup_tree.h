/* sandbox/cgroup_tree.h: one hierarchy in which the pool could make its directory.
 *
 * v1 has a hierarchy per controller, v2 one for all, hybrid machines both at once. A
 * tree says which of memory, pids, cpu and kill this hierarchy gives to our workers.
 */
#ifndef KN_SANDBOX_CGROUP_TREE_H
#define KN_SANDBOX_CGROUP_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sandbox/cgroup_find.h"

enum kn_cgroup_ctl {
	KN_CTL_MEMORY = 1 << 0,
	KN_CTL_PIDS = 1 << 1,
	KN_CTL_CPU = 1 << 2, /* usage can be read */
	KN_CTL_KILL = 1 << 3,
	KN_CTL_CPU_MAX = 1 << 4, /* shares of processors can be set */
};
enum { KN_CGROUP_TREES_MAX = 5 };

struct kn_cgroup_tree {
	bool v2;
	unsigned ctl;	/* enum kn_cgroup_ctl */
	bool may_move;	/* v2: own_fd is our own group, we may step into a leaf of it */
	bool cpu_on;	/* v2: we switched the controller on in own_fd */
	bool moved;	/* v2: this process sits in leaf now */
	int own_fd;	/* our own group's directory, or one above it */
	int pool_fd;	/* the pool's directory in it */
	char name[160]; /* the pool's directory */
	char leaf[176]; /* beside it: "<name>-sup", or that of another pool of ours */
};

/* Make the pool's directory in every hierarchy that lets us. Returns how many. Having
 * none is not an error: an ordinary user without delegation. cpus: KN_CTL_CPU_MAX is
 * wanted, which costs a hierarchy of its own in v1, and a controller in v2. */
size_t kn_cgroup_trees_open(const struct kn_cgroup_where *w, const char *name,
    bool may_move, bool cpus, struct kn_cgroup_tree trees[KN_CGROUP_TREES_MAX]);
/* How many hierarchies may come of that, at most; only looks. */
size_t kn_cgroup_trees_at_most(const struct kn_cgroup_where *w, bool cpus);
/* cgroup_bounds.c: no limit of this group of v2 would be escaped by leaving it, as far
 * as its files tell. */
bool kn_cgroup_has_no_limit(const char *dir);
/* Remove the pool's directory (its workers are gone already), move back, close. What is
 * dying in there is waited for until deadline_ns. */
void kn_cgroup_tree_close(struct kn_cgroup_tree *t, uint64_t deadline_ns);

#endif
