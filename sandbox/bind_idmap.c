/* sandbox/bind_idmap.c: as root, decide per bind how a worker's uid gets to it.
 *
 * The answer is the kernel's: an idmapped copy of the tree is made once and thrown
 * away. Filesystems without idmap support are refused for writing, since files made
 * there would belong to a uid that nobody knows.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ipc/err.h"
#include "ipc/fd.h"
#include "sandbox/bind.h"
#include "sandbox/idmap.h"
#include "sandbox/policy.h"

/* 0 if uid may read (and, a directory, enter) what fd stands for, else errno. */
static int
readable_by(int fd, bool is_dir, uint32_t uid)
{
	/* No exit signal: who we are embedded in need not know of it (host.h). */
	struct clone_args ca = { 0 };
	siginfo_t si = { 0 };
	long pid = syscall(SYS_clone3, &ca, sizeof(ca));

	if (pid < 0)
		return errno;
	if (pid == 0) {
		/* Raw calls: libc's setxid would look for threads to take along. */
		if (syscall(SYS_setgroups, 0, NULL) < 0 ||
		    syscall(SYS_setresgid, uid, uid, uid) < 0 ||
		    syscall(SYS_setresuid, uid, uid, uid) < 0 ||
		    faccessat(fd, "", is_dir ? R_OK | X_OK : R_OK,
			AT_EMPTY_PATH | AT_EACCESS) < 0)
			_exit(errno > 0 && errno < 256 ? errno : EIO);
		_exit(0);
	}
	while (waitid(P_PID, (id_t)pid, &si, WEXITED | __WALL) < 0 && errno == EINTR)
		;
	return si.si_code == CLD_EXITED ? si.si_status : EIO;
}

static int
plan_one(struct kn_bind *b, int userns_fd, uint32_t uid, struct kn_err *e)
{
	const struct kn_mount *m = b->mount;
	bool at_idmap = false;
	KN_OWN_FD int tree = kn_idmap_clone(b->fd, userns_fd, &at_idmap);
	int err = errno;

	if (tree >= 0) {
		b->idmap = true;
		return 0;
	}
	if (!at_idmap) {
		kn_err_sys(
		    e, KN_EK_HOST, "%s: copy the mount of %s", m->origin, m->source);
		if (err == EPERM)
			kn_err_hint(e,
			    "root of a user namespace needs a mount namespace "
			    "of the same (unshare --user --mount), or start it "
			    "as an ordinary user");
		return -1;
	}
	if (m->writable) {
		errno = err;
		kn_err_sys(e, KN_EK_HOST,
		    "%s: bind %s: this filesystem cannot show files under another uid "
		    "(idmapped mounts)",
		    m->origin, m->source);
		kn_err_hint(e,
		    "bind it read-only, bind a directory of an ext4, xfs, "
		    "btrfs or (from Linux 6.3 on) tmpfs filesystem, or start "
		    "as an ordinary user");
		return -1;
	}
	err = readable_by(b->fd, b->is_dir, uid);
	if (err == 0)
		return 0; /* plain: what everybody may read */
	errno = err;
	kn_err_sys(e, KN_EK_HOST,
	    "%s: bind %s: no idmapped mounts on this filesystem, and workers (uid %u) "
	    "may "
	    "not read it",
	    m->origin, m->source, uid);
	kn_err_hint(e, "make it readable for everybody, or start as its owner");
	return -1;
}

int
kn_bind_plan_idmap(
    struct kn_bind *b, size_t n, int userns_fd, uint32_t uid, struct kn_err *e)
{
	for (size_t i = 0; i < n; i++)
		if (b[i].fd >= 0 && plan_one(&b[i], userns_fd, uid, e) < 0)
			return -1;
	return 0;
}
