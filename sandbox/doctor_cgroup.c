/* sandbox/doctor_cgroup.c: a group made as for a pool, each limit written to it, a
 * process put in it and killed with it; then all of it is gone again.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ipc/clock.h"
#include "ipc/fd.h"
#include "sandbox/cgroup_dir.h"
#include "sandbox/cgroup_tree.h"
#include "sandbox/cgroup_why.h"
#include "sandbox/doctor_int.h"

enum { GONE_MS = 2000, CONTROLLERS_MAX = 256 };

/* What could be done. */
struct done {
	bool asked, memory, pids, cpu, cpu_max, kill;
	int trees;
};

/* Somebody in the leaf, who is gone by one write. */
static bool
try_kill(int leaf)
{
	int ends[2], status = 0;
	char byte;
	pid_t pid;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return false;
	pid = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
		if (kn_cgroup_dir_write(leaf, "cgroup.procs", "0") == 0 &&
		    write(ends[1], "x", 1) == 1)
			pause();
		_exit(1);
	}
	close(ends[1]);
	if (pid > 0 && read(ends[0], &byte, 1) == 1 &&
	    kn_cgroup_dir_write(leaf, "cgroup.kill", "1") < 0)
		kill(pid, SIGTERM); /* told apart from the group's */
	close(ends[0]);
	if (pid > 0)
		waitpid(pid, &status, 0);
	return WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
}

/* The share of processors. */
static bool
try_cpu_max(const struct kn_cgroup_tree *t, int leaf)
{
	/* v2: set on the pool's own, which hands no more of it down. */
	return t->v2 ? kn_cgroup_dir_write(t->pool_fd, "cpu.max", "50000 100000") == 0
		     : kn_cgroup_dir_write(leaf, "cpu.cfs_quota_us", "50000") == 0;
}

static void
try_tree(const struct kn_cgroup_tree *t, struct done *x)
{
	KN_OWN_FD int leaf = -1;

	if (kn_cgroup_dir_make(t->pool_fd, "t") < 0 ||
	    (leaf = kn_cgroup_dir_open(t->pool_fd, "t")) < 0)
		return;
	if ((t->ctl & KN_CTL_MEMORY) != 0)
		x->memory |=
		    kn_cgroup_dir_write_u64(leaf,
			t->v2 ? "memory.max" : "memory.limit_in_bytes", 64u << 20) == 0;
	if ((t->ctl & KN_CTL_PIDS) != 0)
		x->pids |= kn_cgroup_dir_write_u64(leaf, "pids.max", 16) == 0;
	if ((t->ctl & KN_CTL_CPU) != 0)
		x->cpu |= kn_cgroup_dir_can(
		    leaf, t->v2 ? "cpu.stat" : "cpuacct.usage", O_RDONLY);
	if ((t->ctl & KN_CTL_CPU_MAX) != 0)
		x->cpu_max |= try_cpu_max(t, leaf);
	if ((t->ctl & KN_CTL_KILL) != 0)
		x->kill |= try_kill(leaf);
	unlinkat(t->pool_fd, "t", AT_REMOVEDIR);
}

/* In this very process: a child beside it, and the group that systemd or a container
 * has given to us alone would have two in it, and hand out nothing. */
static void
ask_cgroups(struct done *x)
{
	struct kn_cgroup_tree tree[KN_CGROUP_TREES_MAX];
	struct kn_cgroup_where w;
	char name[KN_CGROUP_NAME_MAX];
	uint8_t id[16];
	size_t n;

	if (kn_cgroup_where(&w, NULL) < 0 ||
	    getrandom(id, sizeof(id), 0) != (ssize_t)sizeof(id) ||
	    kn_cgroup_dir_name(id, name, sizeof(name)) < 0)
		return;
	n = kn_cgroup_trees_open(&w, name, true, true, tree);
	for (size_t i = 0; i < n; i++)
		try_tree(&tree[i], x);
	for (size_t i = 0; i < n; i++)
		kn_cgroup_tree_close(
		    &tree[i], kn_clock_after_ms(kn_clock_now(), GONE_MS));
	x->trees = (int)n;
	x->asked = true;
}

/* What depends on where things are mounted, and on who asks. */
static void
name_fix(struct kn_doctor *d, enum kn_probe p)
{
	struct kn_finding *f = &d->f[p];
	char bus[512], line[sizeof(f->fix)] = "";
	const char *dir = getenv("XDG_RUNTIME_DIR");
	bool root = d->host.uid == 0;

	snprintf(bus, sizeof(bus), "%s/bus", dir ? dir : "");
	/* Of v1 no runtime gives a part away. */
	if (f->cause == KN_LACK_CGROUP_READONLY && f->who == KN_WHO_CONTAINER &&
	    strcmp(kn_cgroup_mode(), "v2") != 0) {
		snprintf(line, sizeof(line), "%s", f->fix);
		snprintf(f->fix, sizeof(f->fix),
		    "a machine with cgroup v2 (systemd.unified_cgroup_hierarchy=1), "
		    "and "
		    "%.300s",
		    line);
		return;
	}
	if (f->cause == KN_LACK_CGROUP_READONLY && f->who != KN_WHO_CONTAINER) {
		kn_cgroup_remount(line, sizeof(line));
	} else if (f->cause == KN_LACK_CGROUP_DENIED && !root &&
		   f->who != KN_WHO_CONTAINER) {
		if (dir != NULL && access(bus, F_OK) == 0) {
			snprintf(f->fix, sizeof(f->fix), "knit-sandbox run --delegate");
			f->who = KN_WHO_CALLER;
			return;
		}
		kn_cgroup_grant(
		    (unsigned)d->host.uid, (int)getppid(), line, sizeof(line));
	}
	if (line[0] == '\0')
		return;
	snprintf(f->fix, sizeof(f->fix), "%s", line);
	f->who = root ? KN_WHO_CALLER : KN_WHO_ROOT;
}

static void
say(struct kn_doctor *d, enum kn_probe p, const struct done *x, bool can,
    const char *fine)
{
	enum kn_lack c = kn_cgroup_why();

	if (!x->asked) {
		kn_doctor_untried(d, p, "no child");
	} else if (can) {
		kn_doctor_ok(d, p, "%s, cgroup %s", fine, kn_cgroup_mode());
	} else {
		if (p == KN_PROBE_CG_KILL && x->trees > 0 &&
		    c == KN_LACK_CGROUP_CONTROLLER)
			c = KN_LACK_CGROUP_KILL;
		kn_doctor_bad(d, p, KN_HEALTH_DEGRADED, c,
		    "none is granted here, cgroup %s", kn_cgroup_mode());
		name_fix(d, p);
	}
}

void
kn_doctor_cgroup(struct kn_doctor *d)
{
	struct done done = { 0 };
	const struct done *y = &done;

	ask_cgroups(&done);
	say(d, KN_PROBE_CG_MEMORY, y, y->memory, "limits memory");
	say(d, KN_PROBE_CG_PIDS, y, y->pids, "limits processes");
	say(d, KN_PROBE_CG_CPU, y, y->cpu, "counts CPU time");
	say(d, KN_PROBE_CG_KILL, y, y->kill, "kills at once");
	/* No preset needs it: told, and no finding. */
	kn_doctor_ok(d, KN_PROBE_CG_CPU_MAX, "%s",
	    y->cpu_max ? "limits processors"
		       : "none here: limits.task.cpus is refused, all else is not");
}
