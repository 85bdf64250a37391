/* sandbox/launch_tree.c: see launch_tree.h. */
#include "sandbox/launch_tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ipc/fd.h"
#include "sandbox/stub/sys.h"

enum { PROCESSES_MAX = 1 << 16, TRIES = 8, UID_TRIES = 64 };

static int
add(struct kn_tree *p, pid_t pid)
{
	if (p->n == p->room) {
		size_t room = p->room ? 2 * p->room : 64;
		pid_t *v =
		    room > PROCESSES_MAX ? NULL : realloc(p->v, room * sizeof *v);

		if (!v)
			return -1;
		p->v = v;
		p->room = room;
	}
	p->v[p->n++] = pid;
	return 0;
}

static void
add_children_of(struct kn_tree *p, int tasks_fd, const char *thread)
{
	char path[64];
	KN_OWN_FD int fd = -1;
	FILE *f;
	long pid;

	if (snprintf(path, sizeof path, "%s/children", thread) >= (int)sizeof path)
		return;
	fd = openat(tasks_fd, path, O_RDONLY | O_CLOEXEC);
	f = fd >= 0 ? fdopen(fd, "re") : NULL;
	if (!f)
		return;
	fd = -1; /* the stream's */
	while (fscanf(f, "%ld", &pid) == 1 && add(p, (pid_t)pid) == 0)
		continue;
	fclose(f);
}

static void
add_children(struct kn_tree *p, pid_t pid)
{
	char path[64];
	const struct dirent *d;
	DIR *dir;

	snprintf(path, sizeof path, "/proc/%ld/task", (long)pid);
	dir = opendir(path);
	while (dir && (d = readdir(dir)) != NULL)
		if (d->d_name[0] != '.')
			add_children_of(p, dirfd(dir), d->d_name);
	if (dir)
		closedir(dir);
}

void
kn_tree_look(struct kn_tree *t, pid_t pid)
{
	*t = (struct kn_tree){ NULL, 0, 0 };
	if (pid <= 0 || add(t, pid) < 0)
		return;
	for (size_t i = 0; i < t->n; i++)
		add_children(t, t->v[i]);
}

void
kn_tree_fini(struct kn_tree *t)
{
	free(t->v);
	*t = (struct kn_tree){ NULL, 0, 0 };
}

/* 0: not known. */
static pid_t
parent_of(pid_t pid)
{
	char path[64], buf[512], *at;
	KN_OWN_FD int fd = -1;
	ssize_t n;

	snprintf(path, sizeof path, "/proc/%ld/stat", (long)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, buf, sizeof buf - 1);
	if (n <= 0)
		return 0;
	buf[n] = '\0';
	at = strrchr(buf, ')'); /* then: state, parent */
	return at && at[1] && at[2] ? (pid_t)strtol(at + 3, NULL, 10) : 0;
}

static bool
is_of(pid_t parent, const struct kn_tree *t)
{
	for (size_t i = 0; i < t->n; i++)
		if (t->v[i] == parent)
			return true;
	return false;
}

static bool
kill_one(const struct kn_tree *t, pid_t pid)
{
	KN_OWN_FD int fd = (int)syscall(SYS_pidfd_open, pid, 0);
	struct pollfd ended = { .fd = fd, .events = POLLIN };

	if (fd < 0 || !is_of(parent_of(pid), t) || poll(&ended, 1, 0) != 0)
		return false;
	return syscall(SYS_pidfd_send_signal, fd, SIGKILL, NULL, 0) == 0;
}

/* Again until there are none: one may be forked while we look. */
void
kn_tree_kill(pid_t pid)
{
	for (int i = 0; i < TRIES; i++) {
		struct kn_tree t;
		size_t hit = 0;

		kn_tree_look(&t, pid);
		for (size_t k = 1; k < t.n; k++)
			hit += kill_one(&t, t.v[k]);
		kn_tree_fini(&t);
		if (hit == 0)
			return;
	}
}

/* ---- by uid ---- */

static void __attribute__((noreturn)) end_uid(uid_t uid)
{
	if (syscall(SYS_setgroups, 0, NULL) == 0 &&
	    syscall(SYS_setresgid, uid, uid, uid) == 0 &&
	    syscall(SYS_setresuid, uid, uid, uid) == 0 && uid != 0)
		kill(-1, SIGKILL);
	_exit(0);
}

/* Whether it has ended by itself: one of its uid may stop or kill it where Landlock has
 * no scopes. */
static bool
await_end(pid_t pid)
{
	int status, r;

	for (;;) {
		r = kn_sys_wait4(pid, &status, __WALL | WUNTRACED, NULL);
		if (r == -EINTR)
			continue;
		if (r != pid)
			return true;
		if (!WIFSTOPPED(status))
			return WIFEXITED(status);
		if (kill(pid, SIGKILL) < 0)
			return true;
	}
}

/* All that has the worker's uid, by a process of that uid: nobody else is reached, and
 * nobody who has it is not. */
void
kn_tree_kill_uid(uid_t uid)
{
	for (int i = 0; i < UID_TRIES; i++) {
		int pidfd = -1;
		struct clone_args ca = { .flags = CLONE_PIDFD,
			.pidfd = (uint64_t)(uintptr_t)&pidfd };
		long pid = kn_sys_clone3_fork(&ca);
		bool done;

		if (pid == 0)
			end_uid(uid);
		done = pid < 0 || await_end((pid_t)pid);
		kn_fd_close(&pidfd);
		if (done)
			return;
	}
}
