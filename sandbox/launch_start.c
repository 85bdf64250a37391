/* sandbox/launch_start.c: start, kill and release one worker's launcher process.
 *
 * clone3 hands out the pidfd with the process, so that no signal of ours can ever reach
 * a stranger. The parent waits until the exec has happened or a step has failed: the
 * report pipe ends by itself, since it is close-on-exec.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "ipc/clock.h"
#include "ipc/control.h"
#include "ipc/err.h"
#include "sandbox/cgroup_tree.h"
#include "sandbox/idmap.h"
#include "sandbox/lack.h"
#include "sandbox/launch_int.h"
#include "sandbox/stub/sys.h"

enum {
	EXEC_WAIT_MS = 10000, /* an exec held up this long is a failed launch */
	GONE_WAIT_MS = 1000,  /* from the launcher's end to its sandbox's */
	/* What the group around a task's own may have above it: where both had the same
	 * limit, the kernel could meet the outer one first, and a kill for that is not
	 * counted as the task's. */
	WORKER_SLACK_BYTES = 1 << 20
};

/* Both ends of everything that a start makes. go: for a child that waits for the guard.
 */
struct ends {
	int report[2], sock[2], err[2], go[2];
};

static int
make_ends(struct ends *x, bool hold, struct kn_launched *lw, struct kn_err *e)
{
	if (pipe2(x->report, O_CLOEXEC) < 0 || pipe2(x->err, O_CLOEXEC) < 0)
		return kn_err_sys(e, KN_EK_HOST, "make a pipe");
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, x->sock) < 0)
		return kn_err_sys(e, KN_EK_HOST, "make a socket pair");
	if (hold && pipe2(x->go, O_CLOEXEC) < 0)
		return kn_err_sys(e, KN_EK_HOST, "make a pipe");
	if (fcntl(x->err[0], F_SETFL, O_NONBLOCK) < 0)
		return kn_err_sys(e, KN_EK_HOST, "prepare a pipe");
	lw->bell_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (lw->bell_fd < 0)
		return kn_err_sys(e, KN_EK_HOST, "make an eventfd");
	return 0;
}

static void
close_ends(struct ends *x)
{
	for (int i = 0; i < 2; i++) {
		kn_fd_close(&x->report[i]);
		kn_fd_close(&x->sock[i]);
		kn_fd_close(&x->err[i]);
		kn_fd_close(&x->go[i]);
	}
}

/* A filter around us may refuse more than namespaces: clone3, or the mounts that binds
 * need. */
static void
hint_cause(const struct kn_launcher *l, struct kn_err *e)
{
	bool root = l->host->uid == 0;
	struct kn_around a;

	if (e->sys == EAGAIN) {
		kn_lack_hint(KN_LACK_PROCESSES, root, e);
	} else if (e->sys == EPERM || e->sys == ENOSYS) {
		kn_around_look(&a);
		if (a.filtered)
			kn_lack_hint(KN_LACK_FILTER, root, e);
	}
}

/* What a bind of the child's is of. */
static const char *
child_source(const struct kn_launcher *l, uint32_t index)
{
	for (size_t i = 0; i < l->policy->fs.mount_n; i++)
		if (l->binds[i].fd == l->child_binds[index].fd)
			return l->binds[i].path;
	return l->child_binds[index].path;
}

static int
start_error(const struct kn_launcher *l, const struct kn_step_err *r, struct kn_err *e)
{
	enum kn_launch_step step = (enum kn_launch_step)r->step;
	bool of_bind = step == KN_STEP_TREE || step == KN_STEP_IDMAP ||
		       step == KN_STEP_POINT || step == KN_STEP_ATTACH;

	errno = r->sys;
	if (step == KN_STEP_EXEC)
		kn_err_sys(e, KN_EK_LAUNCH, "execute %s", l->exec);
	else if (of_bind && r->index < l->child_bind_n)
		kn_err_sys(e, KN_EK_LAUNCH, "%s (%s)", kn_launch_step_text(step),
		    child_source(l, r->index));
	else
		kn_err_sys(e, KN_EK_LAUNCH, "%s", kn_launch_step_text(step));
	if (step == KN_STEP_EXEC && r->sys == EACCES)
		kn_lack_hint(KN_LACK_BWRAP_UNREACHABLE, l->host->uid == 0, e);
	else if (of_bind && r->sys == ENOENT)
		kn_err_hint(e, "it went away after it was checked");
	hint_cause(l, e);
	return -1;
}

/* 0 once the launcher is being executed. */
static int
await_exec(const struct kn_launcher *l, int report, struct kn_err *e)
{
	uint64_t deadline = kn_clock_after_ms(kn_clock_now(), EXEC_WAIT_MS);
	struct pollfd p = { .fd = report, .events = POLLIN };
	struct kn_step_err r;
	ssize_t n;

	for (;;) {
		int left = kn_clock_poll_ms(kn_clock_now(), deadline);

		if (left == 0)
			return kn_err_set(e, KN_EK_LAUNCH,
			    "%s was not executed within %d s", l->ops->name,
			    EXEC_WAIT_MS / 1000);
		if (poll(&p, 1, left) < 0 && errno != EINTR)
			return kn_err_sys(e, KN_EK_LAUNCH, "wait for the launch");
		if (p.revents == 0)
			continue;
		n = read(report, &r, sizeof(r));
		if (n == 0)
			return 0;
		if (n == (ssize_t)sizeof(r))
			return start_error(l, &r, e);
		if (n >= 0 || errno != EINTR)
			return kn_err_set(
			    e, KN_EK_LAUNCH, "the launching process broke off");
	}
}

/* Into the v2 leaf by the clone itself where the kernel allows it, else as the others.
 */
static int
spawn(struct kn_child *c, int clone_fd, struct kn_proc *out, struct kn_err *e)
{
	int pidfd = -1;
	struct clone_args ca = {
		.flags = CLONE_PIDFD | (clone_fd >= 0 ? CLONE_INTO_CGROUP : 0),
		.pidfd = (uint64_t)(uintptr_t)&pidfd,
		.exit_signal = SIGCHLD,
		.cgroup = clone_fd >= 0 ? (uint64_t)clone_fd : 0,
	};
	size_t join_n = c->join_n;
	long pid;

	if (clone_fd >= 0)
		c->join_n--;
	pid = kn_sys_clone3_fork(&ca);
	if (pid == 0)
		kn_child_run(c);
	c->join_n = join_n;
	if (pid < 0 && clone_fd >= 0)
		return spawn(c, -1, out, e);
	if (pid < 0) {
		errno = (int)-pid;
		return kn_err_sys(e, KN_EK_HOST, "fork");
	}
	out->pidfd = pidfd;
	out->pid = (pid_t)pid;
	return 0;
}

/* The worker's uid, its id map, and what of the plan differs between workers. */
static int
plan(
    struct kn_launcher *l, uint32_t w, struct kn_child *c, int join[], struct kn_err *e)
{
	uint64_t memory = l->policy->worker.memory, pids = l->policy->worker.pids;

	if (memory != 0)
		memory += l->ops->mem_overhead + WORKER_SLACK_BYTES;
	if (pids != 0)
		pids += l->ops->pids_overhead;
	if (kn_cgroup_prepare(l->cgroup, w, memory, pids, e) < 0)
		return -1;
	c->join_fds = join;
	if (!l->ops->joins_inside)
		c->join_n = kn_cgroup_join_fds(l->cgroup, w, join, KN_CGROUP_TREES_MAX);
	c->path = l->exec;
	c->argv = l->packed.v;
	c->parent_pidfd = l->guard.self_pidfd;
	c->guard_slot = &l->guard.groups[w];
	c->null_fd = l->null_fd;
	c->stub_fd = l->stub_fd;
	c->args_fd = l->args_fd;
	c->data = l->data;
	c->data_n = l->data_n;
	c->nofile = l->nofile;
	c->trees = l->child_trees;
	c->root = l->host->root;
	c->nested = l->host->uid == 0 && !l->host->root && !l->host->host_root;
	c->uid = l->host->worker_uid_base + w;
	c->userns_fd = c->bridge_fd = -1;
	if (l->child_bind_n == 0)
		return 0;
	if (l->userns[w] < 0 && kn_idmap_open(l->host->uid, l->host->gid, c->uid,
				    l->host->maps_full, &l->userns[w], e) < 0) {
		kn_lack_hint_userns(e->sys, l->host->uid == 0, e);
		return -1;
	}
	c->userns_fd = l->userns[w];
	c->mount_dir = l->mount_dir;
	c->binds = l->child_binds;
	c->bind_n = l->child_bind_n;
	return 0;
}

/* With the guard in place the child may begin. */
static int
release_child(struct kn_launcher *l, struct ends *x, struct kn_err *e)
{
	if (l->wardens == NULL && kn_guard_ensure(&l->guard, e) < 0)
		return -1;
	if (x->go[1] >= 0 && write(x->go[1], "", 1) != 1)
		return kn_err_sys(e, KN_EK_LAUNCH, "let the launching process begin");
	return 0;
}

/* One child, as far as its exec or its end. */
static int
start_child(struct kn_launcher *l, uint32_t w, struct kn_child *c, int clone_fd,
    struct ends *x, struct kn_launched *lw, struct kn_err *e)
{
	bool hold = l->wardens == NULL && !kn_guard_alive(&l->guard);
	int rc;

	if (make_ends(x, hold, lw, e) < 0)
		return -1;
	c->report_fd = x->report[1];
	c->stderr_fd = x->err[1];
	c->sock_fd = x->sock[1];
	c->go[0] = x->go[0];
	c->go[1] = x->go[1];
	if (l->wardens != NULL)
		rc = kn_warden_start(&l->wardens[w], c, clone_fd, &lw->proc, e);
	else
		rc = spawn(c, clone_fd, &lw->proc, e);
	if (rc < 0) {
		hint_cause(l, e);
		return -1;
	}
	kn_fd_close(&x->report[1]);
	if (release_child(l, x, e) < 0)
		return -1;
	return await_exec(l, x->report[0], e);
}

/* If the group that we are in has seen a cgroup.kill, the kernel (seen in 6.18)
 * compares its count of kills with the new group's and kills the child at its birth,
 * before it has told the guard its group. */
static bool
killed_at_birth(const struct kn_child *c, int clone_fd)
{
	return clone_fd >= 0 && *c->guard_slot == 0;
}

int
kn_launch_start(struct kn_launcher *l, uint32_t w, uint32_t incarnation,
    struct kn_launched *out, struct kn_err *e)
{
	struct ends x = { { -1, -1 }, { -1, -1 }, { -1, -1 }, { -1, -1 } };
	struct kn_launched lw = KN_LAUNCHED_NONE;
	struct kn_child c = { 0 };
	int join[KN_CGROUP_TREES_MAX], clone_fd;

	(void)incarnation; /* the boot record carries it */
	if (kn_bind_check_points(l->binds, l->policy->fs.mount_n, e) < 0 ||
	    plan(l, w, &c, join, e) < 0 ||
	    (l->ops->plan != NULL && l->ops->plan(l, w, &c, e) < 0))
		goto fail;
	clone_fd = l->clone_dies || l->ops->joins_inside
		       ? -1
		       : kn_cgroup_clone_fd(l->cgroup, w);
	if (start_child(l, w, &c, clone_fd, &x, &lw, e) < 0)
		goto fail;
	if (killed_at_birth(&c, clone_fd)) {
		l->clone_dies = true;
		kn_proc_close(&lw.proc);
		kn_fd_close(&lw.bell_fd);
		close_ends(&x);
		if (start_child(l, w, &c, -1, &x, &lw, e) < 0)
			goto fail;
	}
	lw.sock = kn_fd_take(&x.sock[0]);
	lw.err_fd = kn_fd_take(&x.err[0]);
	close_ends(&x);
	*out = lw;
	return 0;
fail:
	close_ends(&x);
	kn_launch_release(l, w, &lw);
	return -1; /* the caller names the worker */
}

void
kn_launch_kill(struct kn_launcher *l, uint32_t w, const struct kn_launched *lw)
{
	pid_t group = l->guard.groups[w];

	kn_cgroup_kill(l->cgroup, w);
	if (lw->proc.pidfd < 0)
		return;
	if (l->ops->kill != NULL)
		l->ops->kill(l, w, lw);
	/* Not the launcher alone: its inner process may not have asked yet to die with
	 * it (launch_guard.h). Until the launcher is reaped the number is its own. */
	if (group > 1)
		kill(-group, SIGKILL);
	kn_proc_signal(&lw->proc, SIGKILL);
}

/* The launcher's end comes before its sandbox's: the stub is killed by the kernel as
 * its PID namespace goes. A process gives up its memory before its descriptors, so the
 * end of the private socket says that nobody in there has the slice mapped any more. */
void
kn_launch_await_gone(const struct kn_launched *lw)
{
	uint64_t deadline = kn_clock_after_ms(kn_clock_now(), GONE_WAIT_MS);
	struct pollfd p = { .fd = lw->sock, .events = 0 };

	while (lw->sock >= 0) {
		int left = kn_clock_poll_ms(kn_clock_now(), deadline);

		if (left == 0 || poll(&p, 1, left) > 0)
			return;
	}
}

void
kn_launch_release(struct kn_launcher *l, uint32_t w, struct kn_launched *lw)
{
	kn_launch_kill(l, w, lw);
	if (lw->proc.pidfd >= 0)
		kn_proc_close(&lw->proc);
	l->guard.groups[w] = 0;
	kn_cgroup_release(l->cgroup, w);
	if (l->ops->release != NULL)
		l->ops->release(l, w);
	kn_fd_close(&lw->sock);
	kn_fd_close(&lw->err_fd);
	kn_fd_close(&lw->bell_fd);
}
