/* sandbox/launch_child.c: from fork to exec, one step at a time, system calls only.
 *
 * Privileges go down and never up again: cgroups and mounts first (they need root),
 * then groups, gid, uid, then the capabilities are dropped and the kernel is asked
 * whether any is left. setresuid() clears the parent-death signal and so does any
 * later credential change: it is set after all of them, and then we look whether the
 * parent was still there to send it. It is looked at by pidfd, since a supervisor that
 * is PID 1 of a container has a pid that means "orphan" elsewhere.
 */
#include "sandbox/launch_child.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "ipc/control.h"
#include "sandbox/caps.h"
#include "sandbox/idmap.h"
#include "sandbox/oci_bridge.h"

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 8U
#endif

enum {
	PARK_FROM = 16, /* sources move up here before they take their numbers */
	SIGNALS_TOP = 64,
	DIED = 125
};

static const char *const step_text[] = {
	[0] = "start",
	[KN_STEP_SIGNALS] = "reset signals",
	[KN_STEP_SESSION] = "leave the session",
	[KN_STEP_CGROUP] = "join the worker's cgroup",
	[KN_STEP_TREE] = "copy the mount of a bind",
	[KN_STEP_IDMAP] = "show a bind under the worker's uid",
	[KN_STEP_UNSHARE] = "make a mount namespace",
	[KN_STEP_PRIVATE] = "detach its mounts from the machine's",
	[KN_STEP_TMPFS] = "mount a private directory for binds",
	[KN_STEP_POINT] = "make a mount point for a bind",
	[KN_STEP_ATTACH] = "attach a bind",
	[KN_STEP_GROUPS] = "drop supplementary groups",
	[KN_STEP_GID] = "take the worker's gid",
	[KN_STEP_UID] = "take the worker's uid",
	[KN_STEP_CAPS] = "drop capabilities",
	[KN_STEP_CAPS_LEFT] = "verify that no capability is left",
	[KN_STEP_PDEATHSIG] = "ask for death with the supervisor",
	[KN_STEP_PARENT] = "find the supervisor alive",
	[KN_STEP_FDS] = "arrange descriptors",
	[KN_STEP_DATA] = "make a file of the root",
	[KN_STEP_CHDIR] = "enter /",
	[KN_STEP_BRIDGE] = "wait for the container to fetch its socket",
	[KN_STEP_RLIMIT] = "set resource limits",
	[KN_STEP_EXEC] = "execute bwrap",
};
_Static_assert(
    sizeof(step_text) / sizeof(step_text[0]) == KN_STEP_N, "a text per step");

const char *
kn_launch_step_text(enum kn_launch_step s)
{
	return (unsigned)s < KN_STEP_N ? step_text[s] : "unknown step";
}

static void __attribute__((noreturn))
die(int report_fd, enum kn_launch_step step, size_t index)
{
	struct kn_step_err r = { .step = step, .index = (uint32_t)index, .sys = errno };
	ssize_t n = write(report_fd, &r, sizeof(r));

	(void)n; /* nobody is left to tell */
	_exit(DIED);
}

/* The supervisor blocks signals (signalfd) and ignores SIGPIPE; both would be
 * inherited down to the task. */
static int
reset_signals(void)
{
	struct sigaction sa = { .sa_handler = SIG_DFL };
	sigset_t none;

	for (int s = 1; s <= SIGNALS_TOP; s++)
		if (s != SIGKILL && s != SIGSTOP)
			sigaction(s, &sa, NULL); /* EINVAL: libc's own two */
	if (sigemptyset(&none) < 0)
		return -1;
	return sigprocmask(SIG_SETMASK, &none, NULL);
}

/* A session of one's own keeps the terminal's ^C from killing workers behind the
 * supervisor's back, and gives the guard a group to kill. */
static int
leave_session(const struct kn_child *c)
{
	pid_t group = c->group > 0 ? c->group : setsid();

	if (group < 0)
		return -1;
	*c->guard_slot = group;
	return 0;
}

/* Until the guard exists. If the supervisor dies before that, the pipe ends. */
static int
await_go(const struct kn_child *c)
{
	char byte;
	ssize_t n;

	if (c->go[0] < 0)
		return 0;
	close(c->go[1]);
	while ((n = read(c->go[0], &byte, 1)) < 0 && errno == EINTR)
		;
	if (n == 0)
		errno = ESRCH;
	return n == 1 ? 0 : -1;
}

/* Whether path is the very thing it was: a namespace or a mount that is said to be new
 * must differ. What follows would otherwise be done to the machine itself. */
static bool
is_still(const char *path, const struct stat *before)
{
	struct stat now;

	return stat(path, &now) < 0 ||
	       (now.st_dev == before->st_dev && now.st_ino == before->st_ino);
}

/* The copies are made before the mount namespace is left: a descriptor of the old one
 * cannot be cloned from within the new. Detached trees can go anywhere. */
static void
bring_binds(const struct kn_child *c)
{
	static const char own_ns[] = "/proc/self/ns/mnt";
	struct stat old_ns, old_dir;

	for (size_t i = 0; i < c->bind_n; i++) {
		bool at_idmap;
		int ns = c->binds[i].idmap ? c->userns_fd : -1;

		c->trees[i] = kn_idmap_clone(c->binds[i].fd, ns, &at_idmap);
		if (c->trees[i] < 0)
			die(c->report_fd, at_idmap ? KN_STEP_IDMAP : KN_STEP_TREE, i);
	}
	if (stat(own_ns, &old_ns) < 0 || stat(c->mount_dir, &old_dir) < 0 ||
	    unshare(CLONE_NEWNS) < 0)
		die(c->report_fd, KN_STEP_UNSHARE, 0);
	if (is_still(own_ns, &old_ns)) {
		errno = EPERM;
		die(c->report_fd, KN_STEP_UNSHARE, 0);
	}
	/* Slave, not private: what the machine unmounts must not stay busy in here. */
	if (mount(NULL, "/", NULL, MS_SLAVE | MS_REC, NULL) < 0)
		die(c->report_fd, KN_STEP_PRIVATE, 0);
	if (mount("tmpfs", c->mount_dir, "tmpfs", MS_NOSUID | MS_NODEV, "mode=0711") <
	    0)
		die(c->report_fd, KN_STEP_TMPFS, 0);
	if (is_still(c->mount_dir, &old_dir)) {
		errno = EPERM;
		die(c->report_fd, KN_STEP_TMPFS, 0);
	}
	for (size_t i = 0; i < c->bind_n; i++) {
		const struct kn_child_bind *b = &c->binds[i];

		if (b->is_dir ? mkdir(b->path, 0700) < 0
			      : mknod(b->path, S_IFREG | 0600, 0) < 0)
			die(c->report_fd, KN_STEP_POINT, i);
		if (kn_idmap_attach(c->trees[i], b->path) < 0)
			die(c->report_fd, KN_STEP_ATTACH, i);
	}
}

/* Nothing of root's identity may be left, whatever the calls above said: a profile
 * around us may have them answer 0 and do nothing. */
static void
verify_identity(const struct kn_child *c)
{
	uid_t r = ~c->uid, e = r, s = r; /* a call may also write nothing */

	errno = EPERM;
	if (syscall(SYS_getgroups, 0, NULL) != 0)
		die(c->report_fd, KN_STEP_GROUPS, 0);
	if (syscall(SYS_getresgid, &r, &e, &s) < 0 || r != c->uid || e != c->uid ||
	    s != c->uid)
		die(c->report_fd, KN_STEP_GID, 0);
	r = e = s = ~c->uid;
	if (syscall(SYS_getresuid, &r, &e, &s) < 0 || r != c->uid || e != c->uid ||
	    s != c->uid)
		die(c->report_fd, KN_STEP_UID, 0);
}

/* Rootless as uid 0 of somebody's user namespace ("unshare --map-root-user"): bwrap has
 * to map that 0 again, which the kernel allows only to who has CAP_SETFCAP there. It is
 * a power over that user's own files; the stub drops it with all the rest. */
static void
take_identity(const struct kn_child *c)
{
	const uint64_t keep = c->nested ? 1ull << CAP_SETFCAP : 0;

	kn_caps_drop_bounding(keep); /* as uid 0 an exec would bring them all back */
	if (c->root) {
		/* Raw calls: libc's would look for threads to take along. */
		if (syscall(SYS_setgroups, 0, NULL) < 0)
			die(c->report_fd, KN_STEP_GROUPS, 0);
		if (syscall(SYS_setresgid, c->uid, c->uid, c->uid) < 0)
			die(c->report_fd, KN_STEP_GID, 0);
		if (syscall(SYS_setresuid, c->uid, c->uid, c->uid) < 0)
			die(c->report_fd, KN_STEP_UID, 0);
		verify_identity(c);
	}
	if (kn_caps_drop(keep) < 0)
		die(c->report_fd, KN_STEP_CAPS, 0);
	if (kn_caps_verify(keep) < 0)
		die(c->report_fd, KN_STEP_CAPS_LEFT, 0);
}

static void
tie_to_parent(const struct kn_child *c)
{
	struct pollfd p = { .fd = c->parent_pidfd, .events = POLLIN };

	if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0)
		die(c->report_fd, KN_STEP_PDEATHSIG, 0);
	if (poll(&p, 1, 0) != 0 /* readable: it has ended */
	    || (c->group > 0 && getppid() != c->group)) {
		errno = ESRCH;
		die(c->report_fd, KN_STEP_PARENT, 0);
	}
}

/* 0 null, 1 and 2 the launcher's stderr, 3 socket, 4 stub, maybe 5, and the report
 * until the exec; nothing else. All sources are parked first, as any of them may have
 * one of these numbers. */
static int
arrange_fds(const struct kn_child *c, int report)
{
	const int from[] = { c->null_fd, c->stderr_fd, c->stderr_fd, c->sock_fd,
		c->stub_fd, c->args_fd >= 0 ? c->args_fd : c->null_fd };
	int parked[KN_CHILD_REPORT_FD];

	_Static_assert(sizeof(from) == sizeof(parked), "numbers up to the report's");
	for (int i = 0; i < KN_CHILD_REPORT_FD; i++) {
		parked[i] = fcntl(from[i], F_DUPFD_CLOEXEC, KN_CHILD_DATA_FD);
		if (parked[i] < 0)
			return -1;
	}
	for (int i = 0; i < KN_CHILD_REPORT_FD; i++)
		if (dup2(parked[i], i) < 0)
			return -1;
	if (dup3(report, KN_CHILD_REPORT_FD, O_CLOEXEC) < 0)
		return -1;
	/* Kept until the exec even if unused, so that what is made next comes in order.
	 */
	if (c->args_fd < 0 && fcntl(KN_CHILD_ARGS_FD, F_SETFD, FD_CLOEXEC) < 0)
		return -1;
	return (int)syscall(SYS_close_range, KN_CHILD_DATA_FD, ~0u, 0);
}

/* bwrap reads it to its end: a device or a pipe would hold it up for ever. */
static int
open_regular(const char *path)
{
	int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return -1;
	if (S_ISREG(st.st_mode))
		return fd;
	errno = EINVAL;
	return -1;
}

static int
make_file(const void *p, size_t n)
{
	int fd = (int)syscall(SYS_memfd_create, "file", MFD_NOEXEC_SEAL);

	if (fd < 0 && errno == EINVAL) /* before Linux 6.3 */
		fd = (int)syscall(SYS_memfd_create, "file", 0);
	if (fd < 0 || write(fd, p, n) < 0 || lseek(fd, 0, SEEK_SET) < 0)
		return -1;
	return fd;
}

/* Files by content, opened or made here rather than inherited: bwrap reads from the
 * offset, which launches would share, and many descriptors would be held for nothing.
 * The numbers from KN_CHILD_DATA_FD on are free now and come in order. */
static void
make_data(const struct kn_child *c, int report)
{
	for (size_t i = 0; i < c->data_n; i++) {
		const struct kn_child_data *d = &c->data[i];
		int fd = d->path ? open_regular(d->path) : make_file(d->p, d->n);

		if (fd != KN_CHILD_DATA_FD + (int)i)
			die(report, KN_STEP_DATA, i);
	}
}

void
kn_child_run(const struct kn_child *c)
{
	struct rlimit core = { 0, 0 };
	char *const empty[] = { NULL };
	int report = fcntl(c->report_fd, F_DUPFD_CLOEXEC, KN_CHILD_DATA_FD);

	if (report < 0)
		report = c->report_fd;
	if (reset_signals() < 0)
		die(report, KN_STEP_SIGNALS, 0);
	if (leave_session(c) < 0)
		die(report, KN_STEP_SESSION, 0);
	for (size_t i = 0; i < c->join_n; i++)
		if (write(c->join_fds[i], "0", 1) != 1)
			die(report, KN_STEP_CGROUP, i);
	if (c->mount_dir != NULL)
		bring_binds(c);
	if (!c->stay)
		take_identity(c);
	tie_to_parent(c);
	if (await_go(c) < 0)
		die(report, KN_STEP_PARENT, 0);
	if (c->bridge_fd >= 0 && kn_bridge_start(c->bridge_fd, c->bridge_uid,
				     c->sock_fd, c->parent_pidfd) < 0)
		die(report, KN_STEP_BRIDGE, 0);
	if (arrange_fds(c, report) < 0)
		die(report, KN_STEP_FDS, 0);
	report = KN_CHILD_REPORT_FD;
	make_data(c, report);
	if (chdir("/") < 0)
		die(report, KN_STEP_CHDIR, 0);
	umask(022);
	/* Of ours none is written; how much a task may write is the policy's to say. */
	if (getrlimit(RLIMIT_CORE, &core) == 0)
		core.rlim_cur = 0;
	if (setrlimit(RLIMIT_CORE, &core) < 0 ||
	    setrlimit(RLIMIT_NOFILE, &c->nofile) < 0)
		die(report, KN_STEP_RLIMIT, 0);
	/* No environment: bwrap's stays readable in the sandbox as /proc/1/environ. */
	execve(c->path, c->argv, c->envp != NULL ? c->envp : empty);
	die(report, KN_STEP_EXEC, 0);
}
