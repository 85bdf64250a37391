/* sandbox/cgroup_tree.c: make the pool's directory in each hierarchy, v2 controllers
 * on.
 *
 * In v2 a group that hands controllers to its children may hold no process itself (the
 * root excepted). Where our own group is ours alone (systemd-run, Delegate=yes, a
 * container's entry point), we step into a leaf beside the pool and go back at the end.
 * Where it is shared (a login shell's scope), a group above it may do, if we may write
 * there and no limit is left behind by going up.
 *
 * Several pools of one process (a server's, around a reload) share that leaf: a further
 * one finds the process in it, and its own directory is made beside, not below. Whoever
 * closes last goes back: until then the kernel refuses it, since the others'
 * directories have the controllers.
 */
#include "sandbox/cgroup_tree.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ipc/fd.h"
#include "sandbox/cgroup_dir.h"

enum { CONTROL_TEXT = 512 };

static bool
has_word(const char *text, const char *word)
{
	size_t n = strlen(word);

	for (const char *p = text; (p = strstr(p, word)) != NULL; p += n) {
		bool starts = p == text || p[-1] == ' ';
		bool ends = p[n] == '\0' || p[n] == ' ' || p[n] == '\n';

		if (starts && ends)
			return true;
	}
	return false;
}

/* The part of dir that is the leaf another pool of this process stepped into. NULL: it
 * is none. */
static const char *
leaf_of_ours(const char *dir, const char *name)
{
	const char *last = strrchr(dir, '/');
	const size_t n = strlen(name);

	if (!last || strlen(++last) != n + 4)
		return NULL;
	return kn_cgroup_dir_sibling(last, n, name) && strcmp(last + n, "-sup") == 0
		   ? last
		   : NULL;
}

/* Into a leaf of our own, so that our group may hand out controllers. */
static bool
step_aside(struct kn_cgroup_tree *t)
{
	KN_OWN_FD int fd = -1;

	if (t->moved || !t->may_move)
		return false;
	snprintf(t->leaf, sizeof(t->leaf), "%s-sup", t->name);
	if (kn_cgroup_dir_make(t->own_fd, t->leaf) < 0 && errno != EEXIST)
		return false;
	fd = kn_cgroup_dir_open(t->own_fd, t->leaf);
	if (fd < 0 || kn_cgroup_dir_write(fd, "cgroup.procs", "0") < 0) {
		unlinkat(t->own_fd, t->leaf, AT_REMOVEDIR);
		return false;
	}
	t->moved = true;
	return true;
}

static int
switch_controller(int dir_fd, char sign, const char *controller)
{
	char text[32];

	snprintf(text, sizeof(text), "%c%s", sign, controller);
	return kn_cgroup_dir_write(dir_fd, "cgroup.subtree_control", text);
}

static void
step_back(struct kn_cgroup_tree *t, uint64_t deadline_ns)
{
	/* Stays on where somebody else has come to need it. */
	if (t->cpu_on)
		switch_controller(t->own_fd, '-', "cpu");
	t->cpu_on = false;
	if (!t->moved)
		return;
	/* A group with controllers switched on takes no process. They were off before:
	 * the processes that were in it prove it. */
	switch_controller(t->own_fd, '-', "memory");
	switch_controller(t->own_fd, '-', "pids");
	/* What we started may be in the leaf a moment longer than we need it: the
	 * guard, or podman's monitor of a container that has gone. */
	if (kn_cgroup_dir_write(t->own_fd, "cgroup.procs", "0") == 0)
		kn_cgroup_dir_remove(t->own_fd, t->leaf, deadline_ns);
	t->moved = false;
}

/* Hand the controller from our group to the pool, and from the pool to its workers.
 * Some (pids) can be switched on although our group has processes, and then no group
 * below it takes any: what does not work to the end is taken back. */
static bool
v2_enable(struct kn_cgroup_tree *t, const char *controller, bool *out_switched)
{
	char text[CONTROL_TEXT];
	bool was_on;

	if (kn_cgroup_dir_read(t->own_fd, "cgroup.controllers", text, sizeof(text)) <
		0 ||
	    !has_word(text, controller) ||
	    kn_cgroup_dir_read(
		t->own_fd, "cgroup.subtree_control", text, sizeof(text)) < 0)
		return false;
	was_on = has_word(text, controller);
	if (!was_on && switch_controller(t->own_fd, '+', controller) < 0 &&
	    (errno != EBUSY || !step_aside(t) ||
		switch_controller(t->own_fd, '+', controller) < 0))
		return false;
	*out_switched = !was_on;
	if (switch_controller(t->pool_fd, '+', controller) == 0)
		return true;
	*out_switched = false;
	if (!was_on)
		switch_controller(t->own_fd, '-', controller);
	return false;
}

static unsigned
v2_controllers(struct kn_cgroup_tree *t, unsigned want)
{
	unsigned ctl = 0;
	bool ignored;

	if ((want & KN_CTL_MEMORY) != 0 && v2_enable(t, "memory", &ignored))
		ctl |= KN_CTL_MEMORY;
	if ((want & KN_CTL_PIDS) != 0 && v2_enable(t, "pids", &ignored))
		ctl |= KN_CTL_PIDS;
	if ((want & KN_CTL_CPU_MAX) != 0 && v2_enable(t, "cpu", &t->cpu_on))
		ctl |= KN_CTL_CPU_MAX;
	if (ctl == 0)
		step_back(t, 0);
	/* Basic CPU figures and the kill file need no controller. */
	if ((want & KN_CTL_CPU) != 0 &&
	    kn_cgroup_dir_can(t->pool_fd, "cpu.stat", O_RDONLY))
		ctl |= KN_CTL_CPU;
	if (kn_cgroup_dir_can(t->pool_fd, "cgroup.kill", O_WRONLY))
		ctl |= KN_CTL_KILL;
	return ctl;
}

/* The controllers of a v1 directory are told by its files. */
static unsigned
v1_controllers(const struct kn_cgroup_tree *t)
{
	unsigned ctl = 0;

	if (kn_cgroup_dir_can(t->pool_fd, "memory.limit_in_bytes", O_RDWR))
		ctl |= KN_CTL_MEMORY;
	if (kn_cgroup_dir_can(t->pool_fd, "pids.max", O_RDWR))
		ctl |= KN_CTL_PIDS;
	if (kn_cgroup_dir_can(t->pool_fd, "cpuacct.usage", O_RDONLY))
		ctl |= KN_CTL_CPU;
	if (kn_cgroup_dir_can(t->pool_fd, "cpu.cfs_quota_us", O_RDWR))
		ctl |= KN_CTL_CPU_MAX;
	return ctl;
}

static int
tree_open(const char *dir, bool v2, const char *name, struct kn_cgroup_tree *t)
{
	memset(t, 0, sizeof(*t));
	t->v2 = v2;
	t->pool_fd = -1;
	snprintf(t->name, sizeof(t->name), "%s", name);
	t->own_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (t->own_fd < 0)
		return -1;
	if (kn_cgroup_dir_make(t->own_fd, name) < 0 && errno != EEXIST) {
		kn_fd_close(&t->own_fd);
		return -1;
	}
	t->pool_fd = kn_cgroup_dir_open(t->own_fd, name);
	if (t->pool_fd < 0 || !kn_cgroup_dir_can(t->pool_fd, "cgroup.procs", O_RDWR)) {
		kn_cgroup_tree_close(t, 0);
		return -1;
	}
	return 0;
}

/* In our own group. leaf: the one below it that we are in already, or "". */
static int
v2_own(const struct kn_cgroup_place *p, const char *leaf, const char *name,
    bool may_move, struct kn_cgroup_tree *t)
{
	if (tree_open(p->dir, true, name, t) < 0)
		return -1;
	t->may_move = may_move;
	t->moved = may_move && *leaf;
	snprintf(t->leaf, sizeof(t->leaf), "%s", leaf);
	return 0;
}

/* In our own group, or in the nearest above it that gives all that is wanted. */
static bool
v2_climb(const struct kn_cgroup_place *p, const char *leaf, unsigned want,
    const char *name, bool may_move, struct kn_cgroup_tree *t)
{
	const unsigned limits = want & (KN_CTL_MEMORY | KN_CTL_PIDS | KN_CTL_CPU_MAX);
	char dir[KN_CGROUP_PATH_MAX];
	size_t n = strlen(p->dir);

	memcpy(dir, p->dir, sizeof(dir));
	for (;;) {
		if ((n == strlen(p->dir) ? v2_own(p, leaf, name, may_move, t)
					 : tree_open(dir, true, name, t)) == 0) {
			t->ctl = v2_controllers(t, want);
			if (t->ctl != 0 && (t->ctl & limits) == limits)
				return true;
			kn_cgroup_tree_close(t, 0);
		}
		if (n <= p->mount_n || !kn_cgroup_has_no_limit(dir))
			return false;
		while (n > p->mount_n && dir[n - 1] != '/')
			n--;
		n -= n > p->mount_n; /* the slash */
		dir[n] = '\0';
	}
}

/* All that is wanted, or all but a share of the processors, which few policies need;
 * else what little our own group gives. */
static bool
v2_open(const struct kn_cgroup_place *own, unsigned want, const char *name,
    bool may_move, struct kn_cgroup_tree *t)
{
	const char *leaf = leaf_of_ours(own->dir, name);
	struct kn_cgroup_place at = *own, *p = &at;

	if (leaf && leaf > own->dir + own->mount_n)
		at.dir[leaf - 1 - own->dir] = '\0'; /* the slash */
	else
		leaf = "";
	if (v2_climb(p, leaf, want, name, may_move, t) ||
	    ((want & KN_CTL_CPU_MAX) != 0 &&
		v2_climb(p, leaf, want & ~(unsigned)KN_CTL_CPU_MAX, name, may_move, t)))
		return true;
	if (v2_own(p, leaf, name, may_move, t) < 0)
		return false;
	t->may_move = false;
	t->ctl = v2_controllers(t, want);
	if (t->ctl != 0)
		return true;
	kn_cgroup_tree_close(t, 0);
	return false;
}

size_t
kn_cgroup_trees_open(const struct kn_cgroup_where *w, const char *name, bool may_move,
    bool cpus, struct kn_cgroup_tree trees[KN_CGROUP_TREES_MAX])
{
	const struct kn_cgroup_place *v1[] = { &w->memory, &w->pids, &w->cpuacct,
		&w->cpu };
	unsigned have = cpus ? 0 : KN_CTL_CPU_MAX; /* what need not be looked for */
	size_t n = 0;

	for (size_t i = 0; i < sizeof(v1) / sizeof(v1[0]) - !cpus; i++) {
		bool seen = v1[i]->dir[0] == '\0';

		/* cpu,cpuacct and the like: one hierarchy, two names. */
		for (size_t j = 0; j < i; j++)
			seen |= strcmp(v1[j]->dir, v1[i]->dir) == 0;
		if (seen || tree_open(v1[i]->dir, false, name, &trees[n]) < 0)
			continue;
		trees[n].ctl = v1_controllers(&trees[n]) & ~have;
		/* What is made in it takes that over: no swap for tasks, also where the
		 * kernel does not count it (memory.memsw). */
		if (trees[n].ctl & KN_CTL_MEMORY)
			kn_cgroup_dir_write(trees[n].pool_fd, "memory.swappiness", "0");
		have |= trees[n].ctl;
		if (trees[n].ctl != 0)
			n++;
		else
			kn_cgroup_tree_close(&trees[n], 0);
	}
	if (w->unified.dir[0] != '\0' &&
	    v2_open(&w->unified, ~have, name, may_move, &trees[n]))
		n++;
	return n;
}

size_t
kn_cgroup_trees_at_most(const struct kn_cgroup_where *w, bool cpus)
{
	const struct kn_cgroup_place *all[] = { &w->memory, &w->pids, &w->cpuacct,
		&w->unified, &w->cpu };
	size_t n = 0;

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]) - !cpus; i++) {
		bool seen = all[i]->dir[0] == '\0';

		for (size_t j = 0; j < i; j++)
			seen |= strcmp(all[j]->dir, all[i]->dir) == 0;
		/* v2: one above it may do */
		n += !seen && (access(all[i]->dir, W_OK) == 0 ||
				  (all[i] == &w->unified && geteuid() == 0));
	}
	return n;
}

void
kn_cgroup_tree_close(struct kn_cgroup_tree *t, uint64_t deadline_ns)
{
	kn_fd_close(&t->pool_fd);
	if (t->own_fd >= 0) {
		kn_cgroup_dir_remove(t->own_fd, t->name, deadline_ns);
		step_back(t, deadline_ns);
	}
	kn_fd_close(&t->own_fd);
}
