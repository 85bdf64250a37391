/* sandbox/idmap.c: user namespaces as id maps, and detached idmapped mount trees. */
#include "sandbox/idmap.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <linux/sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ipc/err.h"
#include "ipc/fd.h"

#ifndef AT_RECURSIVE
#define AT_RECURSIVE 0x8000
#endif

enum { MAP_TEXT = 256 };

void
kn_idmap_text(char *buf, size_t n, uint32_t id, uint32_t worker, bool full)
{
	const uint32_t top = UINT32_MAX; /* (uid_t)-1 is no id */
	int at = snprintf(buf, n, "%u %u 1\n", id, worker);

	if (!full || worker <= id)
		return;
	/* Everyone else keeps their id, in three pieces around the two. The worker's
	 * own id stands for the caller, so an on-disk owner of that number has none. */
	if (id > 0)
		at += snprintf(buf + at, n - (size_t)at, "0 0 %u\n", id);
	if (worker - id > 1)
		at += snprintf(buf + at, n - (size_t)at, "%u %u %u\n", id + 1, id + 1,
		    worker - id - 1);
	if (worker < top - 1)
		snprintf(buf + at, n - (size_t)at, "%u %u %u\n", worker + 1, worker + 1,
		    top - worker - 1);
}

static int
write_map(pid_t pid, const char *file, const char *text)
{
	char path[64];
	KN_OWN_FD int fd = -1;

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, file);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return -1;
	/* The kernel takes a map in a single write, or not at all. */
	return write(fd, text, strlen(text)) == (ssize_t)strlen(text) ? 0 : -1;
}

/* A process that does nothing but own a new user namespace until the pipe ends, also
 * when we are killed in between. */
static pid_t
holder_start(int *out_pidfd, int hold[2])
{
	struct clone_args ca = {
		.flags = CLONE_NEWUSER | CLONE_PIDFD,
		.pidfd = (uint64_t)(uintptr_t)out_pidfd,
		.exit_signal = 0, /* see host.h, embedded */
	};
	long pid = syscall(SYS_clone3, &ca, sizeof(ca));

	if (pid == 0) {
		char c;

		/* Also lets go of any listening or locked descriptor of ours. Where 0
		 * is still the caller's stdin it must not be read. */
		if (dup2(hold[0], 0) != 0)
			_exit(1);
		syscall(SYS_close_range, 1, ~0u, 0);
		while (read(0, &c, 1) < 0 && errno == EINTR)
			;
		_exit(0);
	}
	return (pid_t)pid;
}

int
kn_idmap_open(
    uid_t uid, gid_t gid, uint32_t worker, bool full, int *out_fd, struct kn_err *e)
{
	char umap[MAP_TEXT], gmap[MAP_TEXT], path[64];
	int hold[2], pidfd = -1, fd = -1, err = 0;
	pid_t pid;

	kn_idmap_text(umap, sizeof(umap), uid, worker, full);
	kn_idmap_text(gmap, sizeof(gmap), gid, worker, full);
	if (pipe2(hold, O_CLOEXEC) < 0)
		return kn_err_sys(e, KN_EK_HOST, "make a pipe for an id map");
	pid = holder_start(&pidfd, hold);
	if (pid < 0) {
		err = errno;
	} else {
		if (write_map(pid, "uid_map", umap) < 0 ||
		    write_map(pid, "gid_map", gmap) < 0)
			err = errno;
		snprintf(path, sizeof(path), "/proc/%d/ns/user", (int)pid);
		if (err == 0 && (fd = open(path, O_RDONLY | O_CLOEXEC)) < 0)
			err = errno;
	}
	close(hold[0]);
	close(hold[1]);
	if (pid > 0) {
		struct kn_proc p = { .pidfd = pidfd, .pid = pid };

		kn_proc_close(&p);
	}
	if (err != 0) {
		errno = err;
		return kn_err_sys(e, KN_EK_HOST,
		    "make a user namespace that maps uid %u to the worker's %u",
		    (unsigned)uid, worker);
	}
	*out_fd = fd;
	return 0;
}

int
kn_idmap_clone(int fd, int userns_fd, bool *out_idmap)
{
	struct mount_attr a = { .attr_set = MOUNT_ATTR_IDMAP };
	int tree = (int)syscall(SYS_open_tree, fd, "",
	    OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH | AT_RECURSIVE);

	*out_idmap = false;
	if (tree < 0 || userns_fd < 0)
		return tree;
	a.userns_fd = (uint64_t)userns_fd;
	if (syscall(SYS_mount_setattr, tree, "", AT_EMPTY_PATH | AT_RECURSIVE, &a,
		sizeof(a)) < 0) {
		*out_idmap = true;
		kn_fd_close(&tree);
		return -1;
	}
	return tree;
}

int
kn_idmap_attach(int tree_fd, const char *path)
{
	return (int)syscall(
	    SYS_move_mount, tree_fd, "", AT_FDCWD, path, MOVE_MOUNT_F_EMPTY_PATH);
}
