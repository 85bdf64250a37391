/* sandbox/direct_place.c: see direct_place.h. */
#include "sandbox/direct_place.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "ipc/err.h"
#include "sandbox/launch_int.h"
#include "sandbox/stub/rmtree.h"

#define PREFIX "knit-direct-"
#define PREFIX_NEW "knit-new-"
#define PREFIX_GONE "gone-"
enum {
	PLACE_MODE = 0711,
	ID_BYTES = 6,
	TRIES = 16, /* who sweeps may take one that is not locked yet for left */
	NAME_ROOM = 48
};

/* One per worker, what is the launcher's own. */
struct removers {
	unsigned serial;
	struct kn_proc v[];
};

/* ---- making it ---- */

/* As root a worker's uid has to get there. */
static bool
is_open_to_all(const char *path)
{
	char part[sizeof(((struct kn_launcher *)0)->place)];
	struct stat st;

	for (size_t i = 1; path[i - 1] != '\0' && i < sizeof(part); i++) {
		if (path[i] != '/' && path[i] != '\0')
			continue;
		memcpy(part, path, i);
		part[i] = '\0';
		if (stat(part, &st) < 0 || !S_ISDIR(st.st_mode) ||
		    (st.st_mode & S_IXOTH) == 0)
			return false;
	}
	return true;
}

static const char *
choose_base(const struct kn_launcher *l)
{
	const char *candidates[] = { getenv("TMPDIR"), "/tmp", "/var/tmp" };

	for (size_t i = 0; i < sizeof(candidates) / sizeof(candidates[0]); i++) {
		const char *c = candidates[i];

		if (c != NULL && c[0] == '/' &&
		    strlen(c) + sizeof(PREFIX) + 40 < sizeof(l->place) &&
		    access(c, W_OK | X_OK) == 0 && (!l->host->ids || is_open_to_all(c)))
			return c;
	}
	return NULL;
}

/* It has its lock before it has the name by which others look for it. */
static int
make_locked(struct kn_launcher *l, const char *made)
{
	int err;

	if (mkdir(made, PLACE_MODE) < 0)
		return -1;
	l->place_fd = open(made, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (l->place_fd >= 0 && flock(l->place_fd, LOCK_EX | LOCK_NB) == 0 &&
	    fchmod(l->place_fd, PLACE_MODE) == 0 && rename(made, l->place) == 0)
		return 0;
	err = errno;
	kn_fd_close(&l->place_fd);
	rmdir(made);
	errno = err;
	return -1;
}

static int
make_removers(struct kn_launcher *l)
{
	struct removers *o = calloc(1, sizeof(*o) + l->worker_n * sizeof(o->v[0]));

	if (o == NULL)
		return -1;
	for (uint32_t i = 0; i < l->worker_n; i++)
		o->v[i].pidfd = -1;
	l->own = o;
	return 0;
}

int
kn_direct_place_make(struct kn_launcher *l, struct kn_err *e)
{
	const char *base = choose_base(l);
	char id[2 * ID_BYTES + 1], made[sizeof(l->place)];

	if (base == NULL) {
		kn_err_set(e, KN_EK_HOST,
		    "launcher direct: no directory for tasks: neither TMPDIR nor /tmp "
		    "nor /var/tmp can be written to%s",
		    l->host->ids ? " and entered by everybody" : "");
		kn_err_hint(e, "set TMPDIR to one that can");
		return -1;
	}
	for (int i = 0; i < ID_BYTES; i++)
		snprintf(id + 2 * i, 3, "%02x", l->pool_id[i]);
	snprintf(
	    l->place, sizeof(l->place), "%s/" PREFIX "%d-%s", base, (int)getpid(), id);
	snprintf(made, sizeof(made), "%s/" PREFIX_NEW "%d-%s", base, (int)getpid(), id);
	if (make_removers(l) < 0)
		return kn_err_sys(e, KN_EK_HOST, "allocate the launcher");
	for (int i = 0; i < TRIES; i++) {
		if (make_locked(l, made) == 0)
			return 0;
		if (errno != ENOENT && errno != EWOULDBLOCK && errno != EEXIST)
			break;
	}
	return kn_err_sys(e, KN_EK_HOST, "launcher direct: make %s", made);
}

/* ---- what a worker left ---- */

/* Only raw calls and its own stack: a copy of a process with other threads. */
static void __attribute__((noreturn)) remove_gone(int place_fd, const char *prefix)
{
	static const int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
	_Alignas(16) char dents[4096];
	size_t prefix_n = strlen(prefix);
	struct kn_rmtree t;
	long n;

	/* With the supervisor: who starts next removes the rest. */
	(void)KN_SYS5(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	(void)KN_SYS5(SYS_prctl, PR_SET_NAME, "knit-remover", 0, 0, 0);
	/* An own description: neither the lock nor the offset is shared. */
	int top = kn_sys_openat(place_fd, ".", flags, 0);

	(void)KN_SYS3(SYS_dup3, top, 0, O_CLOEXEC);
	(void)KN_SYS3(SYS_close_range, 1, ~0u, 0);
	while ((n = kn_sys_getdents(0, dents, sizeof dents)) > 0)
		for (long at = 0; at < n;) {
			const struct kn_sys_dirent *d = (const void *)(dents + at);
			int fd;

			at += d->reclen;
			if (strncmp(d->name, prefix, prefix_n) != 0)
				continue;
			fd = kn_sys_openat(0, d->name, flags, 0);
			if (fd >= 0 && kn_rmtree_below(&t, fd) == 0)
				(void)kn_sys_unlinkat(0, d->name, AT_REMOVEDIR);
			kn_sys_close(fd);
		}
	_exit(0);
}

static void
start_remover(struct kn_launcher *l, struct kn_proc *p, const char *prefix)
{
	int pidfd = -1;
	struct clone_args ca = { .flags = CLONE_PIDFD,
		.pidfd = (uint64_t)(uintptr_t)&pidfd };
	long pid = kn_sys_clone3_fork(&ca);

	if (pid == 0)
		remove_gone(l->place_fd, prefix);
	if (pid > 0)
		*p = (struct kn_proc){ .pidfd = pidfd, .pid = (pid_t)pid };
}

/* Those of the program around us are not to run in it. */
static void
start_alone(struct kn_launcher *l, struct kn_proc *p, const char *prefix)
{
	sigset_t all, old;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	start_remover(l, p, prefix);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
}

/* A worker has tidied up itself where it could. */
static int
remove_little(int place_fd, const char *name)
{
	KN_OWN_FD int fd = -1;

	if (unlinkat(place_fd, name, AT_REMOVEDIR) == 0 || errno == ENOENT)
		return 0;
	fd = openat(place_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return -1;
	(void)unlinkat(fd, "task", AT_REMOVEDIR);
	(void)unlinkat(fd, "tmp", AT_REMOVEDIR);
	return unlinkat(place_fd, name, AT_REMOVEDIR);
}

void
kn_direct_place_drop(struct kn_launcher *l, uint32_t w)
{
	struct removers *o = l->own;
	char name[NAME_ROOM], prefix[NAME_ROOM], gone[NAME_ROOM];
	int status;

	if (l->place_fd < 0)
		return;
	for (uint32_t i = 0; i < l->worker_n; i++)
		(void)kn_proc_reap(&o->v[i], &status);
	snprintf(name, sizeof(name), "w%u", w);
	if (remove_little(l->place_fd, name) == 0)
		return;
	snprintf(prefix, sizeof(prefix), PREFIX_GONE "%u-", w);
	snprintf(gone, sizeof(gone), PREFIX_GONE "%u-%u", w, o->serial++);
	if (renameat(l->place_fd, name, l->place_fd, gone) < 0)
		return;
	kn_proc_close(&o->v[w]); /* the new one goes on with what it has left */
	start_alone(l, &o->v[w], prefix);
}

/* ---- the end, ours and that of others ---- */

static void
remove_place(int fd, int in, const char *name)
{
	struct kn_rmtree *t = malloc(sizeof(*t));

	if (t != NULL && kn_rmtree_below(t, fd) == 0)
		unlinkat(in, name, AT_REMOVEDIR);
	free(t);
}

void
kn_direct_place_close(struct kn_launcher *l)
{
	struct removers *o = l->own;

	for (uint32_t i = 0; o != NULL && i < l->worker_n; i++)
		kn_proc_close(&o->v[i]);
	if (l->place_fd >= 0)
		remove_place(l->place_fd, AT_FDCWD, l->place);
	kn_fd_close(&l->place_fd);
	free(o);
	l->own = NULL;
}

static bool
begins_with(const char *name, const char *prefix)
{
	return strncmp(name, prefix, strlen(prefix)) == 0;
}

/* Ours, and its lock is free: whoever had it has ended, in whatever container. One that
 * is being made may be met before it is locked: who makes it begins anew. */
static bool
is_left(int in, const char *name, int *out_fd)
{
	struct stat st;

	*out_fd = openat(in, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return *out_fd >= 0 && fstat(*out_fd, &st) == 0 && st.st_uid == geteuid() &&
	       flock(*out_fd, LOCK_EX | LOCK_NB) == 0;
}

void
kn_direct_place_sweep(const struct kn_launcher *l)
{
	char base[sizeof(l->place)];
	char *slash;
	const struct dirent *d;
	DIR *dir;

	snprintf(base, sizeof(base), "%s", l->place);
	slash = strrchr(base, '/');
	if (slash == NULL)
		return;
	*slash = '\0';
	dir = opendir(base);
	while (dir != NULL && (d = readdir(dir)) != NULL) {
		int fd = -1;

		if ((begins_with(d->d_name, PREFIX) ||
			begins_with(d->d_name, PREFIX_NEW)) &&
		    is_left(dirfd(dir), d->d_name, &fd))
			remove_place(fd, dirfd(dir), d->d_name);
		kn_fd_close(&fd);
	}
	if (dir != NULL)
		closedir(dir);
}
