/* supervisor/room.c: how many workers the limit of open files has room for.
 *
 * Launches that fail for want of descriptors say nothing about the task, and a pool
 * that comes up with fewer workers than were asked for should say why: so it is
 * reckoned before the first one, and said once. What tasks hand back is not in it, that
 * comes and goes. Who has descriptors of his own to open (connections, say) is told how
 * many the pool counts on.
 */
#include <dirent.h>
#include <stdio.h>
#include <string.h>

#include "sandbox/cgroup_tree.h"
#include "sandbox/host.h"
#include "sandbox/policy.h"
#include "supervisor/inner.h"

enum {
	/* Open beside workers: loop, signals, arena, images; and what one launch has
	 * open while it goes on. */
	POOL_FDS = 22,
	POOL_TREE_FDS = 2,
	/* A worker's socket, pidfd, stderr, bell, slice and listener; three pipes for
	 * each task in its lane. */
	WORKER_FDS = 10 + 3 * KN_LANE_DEPTH,
	WORKER_TREE_FDS = 3,
	BIND_FDS = 2,
	WORKER_FDS_AT_MOST = WORKER_FDS + WORKER_TREE_FDS * KN_CGROUP_TREES_MAX,
	/* What a stub has open, under the same limit: its cgroup's files, mounts that
	 * serve again, the streams of a full lane, and what making a cell takes. */
	STUB_FDS = 48,
	MANY = 1024, /* nobody has so many open already: not looked at */
};

static uint64_t
open_now(void)
{
	DIR *d = opendir("/proc/self/fd");
	uint64_t n = 0;

	while (d && readdir(d))
		n++;
	if (d)
		closedir(d);
	return n > 3 ? n - 3 : 3; /* ".", "..", and the directory's own */
}

static uint64_t
total(const struct kn_sup *s, uint64_t workers)
{
	uint64_t spares = s->opt.single ? 0 : s->policy->pool.spares;

	return workers + (spares < workers ? spares : workers);
}

int
kn_room_for_workers(struct kn_sup *s, uint32_t *workers, struct kn_err *e)
{
	uint64_t used, own, each = WORKER_FDS, binds = 0, least;
	uint32_t fit = *workers;
	struct kn_cgroup_where where;
	struct rlimit now;

	for (size_t i = 0; i < s->policy->fs.mount_n; i++)
		binds += s->policy->fs.mounts[i].user ? BIND_FDS : 0;
	own = POOL_FDS + POOL_TREE_FDS * KN_CGROUP_TREES_MAX + binds;
	s->fds_most = own + WORKER_FDS_AT_MOST * total(s, *workers);
	if (getrlimit(RLIMIT_NOFILE, &now) < 0 ||
	    now.rlim_cur >= MANY + s->opt.fds_beside + s->fds_most)
		return 0;
	own = POOL_FDS + binds;
	if (!s->host->no_cgroups && kn_cgroup_where(&where, NULL) == 0) {
		uint64_t trees =
		    kn_cgroup_trees_at_most(&where, s->policy->task_cpus != 0);

		own += trees * POOL_TREE_FDS;
		each += trees * WORKER_TREE_FDS;
	}
	used = open_now() + s->opt.fds_beside + own;
	/* What the first worker needs at least is each of it but the deeper lane. */
	least = used + each - WORKER_FDS;
	if (least < STUB_FDS)
		least = STUB_FDS;
	if (least > now.rlim_cur) {
		kn_err_set(e, KN_EK_HOST,
		    "RLIMIT_NOFILE allows %llu open files, and a pool of one worker "
		    "needs %llu here",
		    (unsigned long long)now.rlim_cur, (unsigned long long)least);
		kn_err_hint(e, "raise it: ulimit -n");
		return -1;
	}
	while (fit > 1 && used + each * total(s, fit) > now.rlim_cur + WORKER_FDS)
		fit--;
	if (fit < *workers)
		snprintf(s->remark, sizeof s->remark,
		    "%u worker%s in place of %u: RLIMIT_NOFILE (ulimit -n) allows %llu "
		    "open files, a worker needs %llu",
		    fit, fit == 1 ? "" : "s", *workers,
		    (unsigned long long)now.rlim_cur, (unsigned long long)each);
	s->fds_most = own + each * total(s, fit);
	*workers = fit;
	return 0;
}
