/* sandbox/cgroup.c: a pool's cgroups: a cap and a leaf per worker, in every hierarchy.
 *
 * Layout and purpose: cgroup.h. This file deals in workers; which hierarchies there are
 * is cgroup_tree.c's business, how directories are read and removed cgroup_dir.c's.
 */
#include "sandbox/cgroup.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include "ipc/clock.h"
#include "ipc/err.h"
#include "ipc/fd.h"
#include "sandbox/cgroup_dir.h"
#include "sandbox/cgroup_tree.h"

enum {
	CLOSE_WAIT_MS = 2000,	/* at the end: the killed may hold much memory */
	PREPARE_WAIT_MS = 1000, /* a predecessor's last processes */
	NAMES_MAX = 16, /* directories of one worker, all but one of the dying */
	/* Who has used up the share of one period waits for the next, the stub too that
	 * is to kill: so it is short. The kernel takes no share below 1 ms. */
	CPU_PERIOD_US = 10000
};

struct worker_group {
	bool made;
	unsigned name[KN_CGROUP_TREES_MAX]; /* which of its names it has there */
	int w_fd[KN_CGROUP_TREES_MAX];	    /* its cap */
	int leaf_fd[KN_CGROUP_TREES_MAX];   /* where it lives */
	int join_fd[KN_CGROUP_TREES_MAX]; /* a write of "0" to it moves the writer in */
};
struct kn_cgroup {
	struct kn_cgroup_tree tree[KN_CGROUP_TREES_MAX];
	size_t tree_n;
	uint32_t worker_n;
	uint32_t cpus; /* thousandths */
	struct worker_group w[];
};

/* A directory costs 50 us to make and to remove, more where memory is counted. So a
 * pool of one worker has one directory for both, and where nothing is limited the
 * worker needs none of its own below its cap. */
static bool
is_sole(const struct kn_cgroup *g)
{
	return g->worker_n == 1;
}

static bool
has_leaf(const struct kn_cgroup_tree *t)
{
	/* v2: what cgroup.kill has ended once is not used again. The kernel (seen
	 * in 6.18) compares counts of kills at a clone into a group, and kills the
	 * child at its birth if the group had one more than the group of the caller. */
	return t->v2 || (t->ctl & (KN_CTL_MEMORY | KN_CTL_PIDS)) != 0;
}

static void
worker_forget(struct worker_group *g)
{
	for (size_t i = 0; i < KN_CGROUP_TREES_MAX; i++) {
		kn_fd_close(&g->w_fd[i]);
		kn_fd_close(&g->leaf_fd[i]);
		kn_fd_close(&g->join_fd[i]);
	}
}

static void
worker_name(uint32_t w, unsigned which, char buf[16])
{
	if (which == 0)
		snprintf(buf, 16, "w%u", (unsigned)w);
	else
		snprintf(buf, 16, "w%u.%u", (unsigned)w, which);
}

int
kn_cgroup_open(const uint8_t pool_id[16], uint32_t worker_n, struct kn_cgroup **out,
    struct kn_err *e)
{
	return kn_cgroup_open_from(pool_id, worker_n, true, 0, out, e);
}

int
kn_cgroup_open_from(const uint8_t pool_id[16], uint32_t worker_n, bool may_move,
    uint32_t cpus, struct kn_cgroup **out, struct kn_err *e)
{
	struct kn_cgroup_where where;
	struct kn_cgroup *g;
	char name[KN_CGROUP_NAME_MAX];

	if (kn_cgroup_where(&where, NULL) < 0)
		memset(&where, 0, sizeof(where)); /* no /proc: no cgroups for us */
	g = calloc(1, sizeof(*g) + worker_n * sizeof(g->w[0]));
	if (g == NULL)
		return kn_err_sys(e, KN_EK_HOST, "allocate the cgroup table");
	g->worker_n = worker_n;
	g->cpus = cpus;
	for (uint32_t i = 0; i < worker_n; i++) {
		for (size_t j = 0; j < KN_CGROUP_TREES_MAX; j++) {
			g->w[i].w_fd[j] = -1;
			g->w[i].leaf_fd[j] = -1;
			g->w[i].join_fd[j] = -1;
		}
	}
	if (pool_id != NULL && kn_cgroup_dir_name(pool_id, name, sizeof(name)) == 0)
		g->tree_n =
		    kn_cgroup_trees_open(&where, name, may_move, cpus != 0, g->tree);
	*out = g;
	return 0;
}

void
kn_cgroup_close(struct kn_cgroup *g)
{
	uint64_t deadline;

	if (g == NULL)
		return;
	for (uint32_t w = 0; w < g->worker_n; w++) {
		kn_cgroup_kill(g, w);
		worker_forget(&g->w[w]);
	}
	deadline = kn_clock_after_ms(kn_clock_now(), CLOSE_WAIT_MS);
	for (size_t i = 0; i < g->tree_n; i++)
		kn_cgroup_tree_close(&g->tree[i], deadline);
	free(g);
}

/* The tree that gives this controller, or -1. */
static int
tree_of(const struct kn_cgroup *g, unsigned ctl)
{
	for (size_t i = 0; g != NULL && i < g->tree_n; i++)
		if ((g->tree[i].ctl & ctl) != 0)
			return (int)i;
	return -1;
}

bool
kn_cgroup_has_memory(const struct kn_cgroup *g)
{
	return tree_of(g, KN_CTL_MEMORY) >= 0;
}

bool
kn_cgroup_has_pids(const struct kn_cgroup *g)
{
	return tree_of(g, KN_CTL_PIDS) >= 0;
}

bool
kn_cgroup_has_cpu(const struct kn_cgroup *g)
{
	return tree_of(g, KN_CTL_CPU) >= 0;
}

bool
kn_cgroup_has_cpu_max(const struct kn_cgroup *g)
{
	return tree_of(g, KN_CTL_CPU_MAX) >= 0;
}

bool
kn_cgroup_has_kill(const struct kn_cgroup *g)
{
	return tree_of(g, KN_CTL_KILL) >= 0;
}

/* Swap would turn a memory limit into a slow-down: none of it, where the kernel counts
 * it. Files that this kernel lacks are skipped, limits that it has must take hold. */
static int
cap_memory(const struct kn_cgroup_tree *t, int fd, uint64_t memory)
{
	if (t->v2) {
		if (kn_cgroup_dir_write_u64(fd, "memory.max", memory) < 0)
			return -1;
		if (kn_cgroup_dir_write(fd, "memory.swap.max", "0") < 0 &&
		    errno != ENOENT)
			return -1;
		return 0;
	}
	if (kn_cgroup_dir_write_u64(fd, "memory.limit_in_bytes", memory) < 0)
		return -1;
	if (kn_cgroup_dir_write_u64(fd, "memory.memsw.limit_in_bytes", memory) == 0)
		return 0;
	return errno == ENOENT || errno == EOPNOTSUPP ? 0 : -1;
}

static int
cap_cpus(const struct kn_cgroup_tree *t, int fd, uint32_t cpus)
{
	uint64_t share = (uint64_t)cpus * CPU_PERIOD_US / 1000;
	char text[48];

	snprintf(
	    text, sizeof(text), "%llu %d", (unsigned long long)share, CPU_PERIOD_US);
	if (t->v2)
		return kn_cgroup_dir_write(fd, "cpu.max", text);
	if (kn_cgroup_dir_write_u64(fd, "cpu.cfs_period_us", CPU_PERIOD_US) < 0)
		return -1;
	return kn_cgroup_dir_write_u64(fd, "cpu.cfs_quota_us", share);
}

/* A directory made now; what a predecessor left there, whose processes had not gone at
 * its release, is removed. */
static int
make_fresh(int parent_fd, const char *name, unsigned wait_ms)
{
	uint64_t deadline = wait_ms ? kn_clock_after_ms(kn_clock_now(), wait_ms) : 0;

	if (kn_cgroup_dir_make(parent_fd, name) == 0)
		return kn_cgroup_dir_open(parent_fd, name);
	if (errno != EEXIST)
		return -1;
	kn_cgroup_dir_kill(parent_fd, name);
	if (kn_cgroup_dir_remove(parent_fd, name, deadline) < 0 ||
	    kn_cgroup_dir_make(parent_fd, name) < 0)
		return -1;
	return kn_cgroup_dir_open(parent_fd, name);
}

/* A killed process may take long to go (memory to be given up, a frozen group), and
 * other workers are not to wait for that: the next one gets another directory. */
static int
make_worker(const struct kn_cgroup_tree *t, uint32_t w, unsigned *out_which)
{
	int fd = -1;

	for (unsigned i = 0; i < NAMES_MAX && fd < 0; i++) {
		bool last = i + 1 == NAMES_MAX;
		char name[16];

		worker_name(w, i, name);
		fd = make_fresh(t->pool_fd, name, last ? PREPARE_WAIT_MS : 0);
		if (fd < 0 && errno != EBUSY && errno != ENOTEMPTY)
			break;
		*out_which = i;
	}
	return fd;
}

/* The worker's directory in one tree, ready to have a leaf. */
static int
open_worker(const struct kn_cgroup *g, const struct kn_cgroup_tree *t, uint32_t w,
    unsigned *out_which)
{
	int fd;

	if (is_sole(g))
		return fcntl(t->pool_fd, F_DUPFD_CLOEXEC, 0);
	fd = make_worker(t, w, out_which);
	if (fd >= 0 && t->v2 &&
	    (((t->ctl & KN_CTL_MEMORY) != 0 &&
		 kn_cgroup_dir_write(fd, "cgroup.subtree_control", "+memory") < 0) ||
		((t->ctl & KN_CTL_PIDS) != 0 &&
		    kn_cgroup_dir_write(fd, "cgroup.subtree_control", "+pids") < 0)))
		kn_fd_close(&fd);
	return fd;
}

static int
make_dirs(const struct kn_cgroup *g, size_t i, struct worker_group *wg, uint32_t w)
{
	const struct kn_cgroup_tree *t = &g->tree[i];

	if ((wg->w_fd[i] = open_worker(g, t, w, &wg->name[i])) < 0)
		return -1;
	wg->leaf_fd[i] = has_leaf(t) ? make_fresh(wg->w_fd[i], "t", PREPARE_WAIT_MS)
				     : fcntl(wg->w_fd[i], F_DUPFD_CLOEXEC, 0);
	if (wg->leaf_fd[i] < 0)
		return -1;
	/* Moving one's own single thread spares the kernel a lock that waits for an RCU
	 * grace period: 10 ms and more for cgroup.procs, microseconds for v1's tasks.
	 * In v2, see kn_cgroup_clone_fd(). */
	wg->join_fd[i] = openat(
	    wg->leaf_fd[i], t->v2 ? "cgroup.procs" : "tasks", O_WRONLY | O_CLOEXEC);
	return wg->join_fd[i] >= 0 ? 0 : -1;
}

int
kn_cgroup_prepare(
    struct kn_cgroup *g, uint32_t w, uint64_t memory, uint64_t pids, struct kn_err *e)
{
	struct worker_group *wg = &g->w[w];
	char name[16];

	kn_cgroup_release(g, w);
	worker_name(w, 0, name);
	wg->made = true;
	for (size_t i = 0; i < g->tree_n; i++) {
		const struct kn_cgroup_tree *t = &g->tree[i];

		if (make_dirs(g, i, wg, w) < 0) {
			kn_err_sys(e, KN_EK_HOST, "make cgroup %s/%s", t->name, name);
			goto fail;
		}
		if (memory != 0 && (t->ctl & KN_CTL_MEMORY) != 0 &&
		    cap_memory(t, wg->w_fd[i], memory) < 0) {
			kn_err_sys(e, KN_EK_HOST,
			    "set the memory limit of cgroup %s/%s", t->name, name);
			goto fail;
		}
		if (pids != 0 && (t->ctl & KN_CTL_PIDS) != 0 &&
		    kn_cgroup_dir_write_u64(wg->w_fd[i], "pids.max", pids) < 0) {
			kn_err_sys(e, KN_EK_HOST,
			    "set the process limit of cgroup %s/%s", t->name, name);
			goto fail;
		}
		if (g->cpus != 0 && (t->ctl & KN_CTL_CPU_MAX) != 0 &&
		    cap_cpus(t, wg->w_fd[i], g->cpus) < 0) {
			bool less = errno == EINVAL;

			kn_err_sys(e, KN_EK_HOST,
			    "set the processor limit of cgroup %s/%s", t->name, name);
			if (less)
				kn_err_hint(e, "a group above it may have less than "
					       "/limits/task/cpus");
			goto fail;
		}
	}
	return 0;
fail:
	kn_cgroup_release(g, w);
	return -1;
}

size_t
kn_cgroup_join_fds(struct kn_cgroup *g, uint32_t w, int *fds, size_t max)
{
	size_t n = 0;

	for (size_t i = 0; i < g->tree_n && n < max; i++)
		if (g->w[w].join_fd[i] >= 0)
			fds[n++] = g->w[w].join_fd[i];
	return n;
}

int
kn_cgroup_clone_fd(struct kn_cgroup *g, uint32_t w)
{
	size_t last = g->tree_n - 1; /* v2 comes last */

	return g->tree_n > 0 && g->tree[last].v2 ? g->w[w].leaf_fd[last] : -1;
}

struct boot_file {
	enum kn_boot_fd slot;
	unsigned ctl;
	const char *v1, *v2;
	int flags;
	bool required; /* present wherever the controller is */
};
static const struct boot_file boot_files[] = {
	{ KN_BOOT_FD_MEM_LIMIT, KN_CTL_MEMORY, "memory.limit_in_bytes", "memory.max",
	    O_RDWR, true },
	{ KN_BOOT_FD_MEM_SWAP, KN_CTL_MEMORY, "memory.memsw.limit_in_bytes",
	    "memory.swap.max", O_RDWR, false },
	/* Opened for reading only where the kernel cannot reset it (memory.peak before
	 * 6.12, pids.peak): the stub then knows that it may tell of earlier tasks. */
	{ KN_BOOT_FD_MEM_PEAK, KN_CTL_MEMORY, "memory.max_usage_in_bytes",
	    "memory.peak", O_RDWR, false },
	{ KN_BOOT_FD_MEM_EVENTS, KN_CTL_MEMORY, "memory.oom_control", "memory.events",
	    O_RDONLY, true },
	{ KN_BOOT_FD_CPU_USAGE, KN_CTL_CPU, "cpuacct.usage", "cpu.stat", O_RDONLY,
	    true },
	{ KN_BOOT_FD_PIDS_MAX, KN_CTL_PIDS, "pids.max", "pids.max", O_RDWR, true },
	{ KN_BOOT_FD_PIDS_PEAK, KN_CTL_PIDS, "pids.peak", "pids.peak", O_RDWR, false },
	{ KN_BOOT_FD_MEM_STAT, KN_CTL_MEMORY, "memory.stat", "memory.stat", O_RDONLY,
	    false },
};

int
kn_cgroup_boot_fds(struct kn_cgroup *g, uint32_t w, int fds[KN_BOOT_FD_N],
    uint32_t *has, uint32_t *flags, struct kn_err *e)
{
	struct sysinfo machine;

	for (int i = KN_BOOT_FD_MEM_LIMIT; i < KN_BOOT_FD_N; i++)
		fds[i] = -1;
	for (size_t i = 0; i < sizeof(boot_files) / sizeof(boot_files[0]); i++) {
		const struct boot_file *f = &boot_files[i];
		int t = tree_of(g, f->ctl);
		const char *name;

		if (t < 0)
			continue;
		name = g->tree[t].v2 ? f->v2 : f->v1;
		fds[f->slot] = openat(g->w[w].leaf_fd[t], name, f->flags | O_CLOEXEC);
		if (fds[f->slot] < 0 && !f->required)
			fds[f->slot] =
			    openat(g->w[w].leaf_fd[t], name, O_RDONLY | O_CLOEXEC);
		if (fds[f->slot] >= 0) {
			*has |= 1u << f->slot;
		} else if (f->required) {
			kn_err_sys(e, KN_EK_HOST, "open %s of worker %u's cgroup", name,
			    (unsigned)w);
			for (int j = KN_BOOT_FD_MEM_LIMIT; j < KN_BOOT_FD_N; j++)
				kn_fd_close(&fds[j]);
			return -1;
		}
		if (g->tree[t].v2 && f->ctl == KN_CTL_MEMORY)
			*flags |= KN_BOOT_CGROUP_V2_MEM;
		if (g->tree[t].v2 && f->ctl == KN_CTL_CPU)
			*flags |= KN_BOOT_CGROUP_V2_CPU;
	}
	if (sysinfo(&machine) < 0 || machine.totalswap > 0)
		*flags |= KN_BOOT_SWAP;
	return 0;
}

uint64_t
kn_cgroup_memory_now(struct kn_cgroup *g, uint32_t w)
{
	int t = tree_of(g, KN_CTL_MEMORY);

	if (t < 0 || g->w[w].leaf_fd[t] < 0)
		return 0;
	return kn_cgroup_dir_read_u64(g->w[w].leaf_fd[t],
	    g->tree[t].v2 ? "memory.current" : "memory.usage_in_bytes");
}

uint64_t
kn_cgroup_pids_now(struct kn_cgroup *g, uint32_t w)
{
	int t = tree_of(g, KN_CTL_PIDS);

	if (t < 0 || g->w[w].leaf_fd[t] < 0)
		return 0;
	return kn_cgroup_dir_read_u64(g->w[w].leaf_fd[t], "pids.current");
}

int
kn_cgroup_cpu_now(struct kn_cgroup *g, uint32_t w, uint64_t *out_ns)
{
	static const char key[] = "usage_usec ";
	int t = tree_of(g, KN_CTL_CPU);
	bool v2 = t >= 0 && g->tree[t].v2;
	const char *at;
	char buf[512];

	if (t < 0 || g->w[w].leaf_fd[t] < 0 ||
	    kn_cgroup_dir_read(g->w[w].leaf_fd[t], v2 ? "cpu.stat" : "cpuacct.usage",
		buf, sizeof buf) <= 0)
		return -1;
	at = v2 ? strstr(buf, key) : buf;
	if (!at)
		return -1;
	*out_ns =
	    v2 ? strtoull(at + strlen(key), NULL, 10) * 1000 : strtoull(at, NULL, 10);
	return 0;
}

int
kn_cgroup_kill(struct kn_cgroup *g, uint32_t w)
{
	int t = tree_of(g, KN_CTL_KILL);

	if (t < 0 || g->w[w].w_fd[t] < 0)
		return -1;
	return kn_cgroup_dir_write(g->w[w].w_fd[t], "cgroup.kill", "1");
}

void
kn_cgroup_release(struct kn_cgroup *g, uint32_t w)
{
	char name[16];

	if (!g->w[w].made)
		return;
	kn_cgroup_kill(g, w);
	for (size_t i = 0; i < g->tree_n; i++)
		if (g->w[w].w_fd[i] >= 0 && has_leaf(&g->tree[i]))
			unlinkat(g->w[w].w_fd[i], "t", AT_REMOVEDIR);
	worker_forget(&g->w[w]);
	/* Not waited for: the loop goes on, and what is still dying is dealt with by
	 * the next prepare or at the close. */
	for (size_t i = 0; i < g->tree_n && !is_sole(g); i++) {
		worker_name(w, g->w[w].name[i], name);
		kn_cgroup_dir_remove(g->tree[i].pool_fd, name, 0);
	}
	g->w[w].made = false;
}
