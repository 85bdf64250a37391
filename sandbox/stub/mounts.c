/* sandbox/stub/mounts.c: template and cell mounts (sandbox/stub/mounts.h). */
#include "sandbox/stub/mounts.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/sysmacros.h>

#include "ipc/layout.h"
#include "sandbox/stub/overlay.h"
#include "sandbox/stub/sys.h"
#include "sandbox/stub/text.h"

#ifndef SYS_mount_setattr
#define SYS_mount_setattr 442
#endif
#ifndef AT_RECURSIVE
#define AT_RECURSIVE 0x8000
#endif

static const char *const covers[] = { "/tmp", "/dev/shm", "/task", "/proc" };
enum { COVER_N = sizeof covers / sizeof covers[0] };

int
kn_mounts_template(enum kn_boot_step *out_step)
{
	int r;

	*out_step = KN_BSTEP_UNSHARE;
	r = (int)KN_SYS1(SYS_unshare, CLONE_NEWNS);
	if (r < 0)
		return r;
	*out_step = KN_BSTEP_PRIVATE;
	r = kn_sys_mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL);
	if (r < 0)
		return r;
	/* The launcher's terminals are writable, and the task's user owns their ptmx:
	 * its mode would be what one task leaves for the next. Opening it needs no
	 * writing to the mount. */
	*out_step = KN_BSTEP_TERMINALS;
	r = kn_sys_mount(NULL, "/dev/pts", NULL,
	    MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | MS_NOEXEC, NULL);
	return r == -ENOENT ? 0 : r;
}

int
kn_mounts_check(const struct kn_boot *b, const char **out_at)
{
	struct stat st;

	for (int i = 0; i < COVER_N; i++) {
		int r = kn_sys_stat(AT_FDCWD, covers[i], &st, AT_SYMLINK_NOFOLLOW);

		*out_at = covers[i];
		if (r < 0)
			return r;
		if (!S_ISDIR(st.st_mode))
			return -ENOTDIR;
	}
	for (uint32_t i = 0; i < b->bind_n; i++) {
		const struct kn_boot_bind *bind = &b->binds[i];
		int r;

		if ((!bind->check && !bind->mask) || bind->white)
			continue;
		*out_at = bind->at;
		r = kn_sys_stat(AT_FDCWD, bind->at, &st, AT_SYMLINK_NOFOLLOW);
		if (r < 0)
			return r;
		if (bind->mask) {
			if ((st.st_mode & 07777) != 0 ||
			    (st.st_dev == bind->dev && st.st_ino == bind->ino))
				return -EBADE;
			continue;
		}
		if (st.st_dev != bind->dev || st.st_ino != bind->ino)
			return -ESTALE;
	}
	return 0;
}

bool
kn_mounts_lead_nowhere(const struct kn_boot *b)
{
	struct stat st;

	for (uint32_t i = 0; i < b->bind_n; i++)
		if (kn_sys_stat(AT_FDCWD, b->binds[i].at, &st, 0) < 0 ||
		    !S_ISREG(st.st_mode))
			return false;
	return true;
}

int
kn_mounts_keep_links(const struct kn_boot *b, const char **out_at)
{
	const unsigned tree = OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_SYMLINK_NOFOLLOW;

	for (uint32_t i = 0; i < b->bind_n; i++) {
		const char *at = b->binds[i].at;
		int on, copy, r;

		if (!b->binds[i].link)
			continue;
		*out_at = at;
		on = kn_sys_openat(AT_FDCWD, at, O_PATH | O_NOFOLLOW | O_CLOEXEC, 0);
		if (on < 0)
			return on;
		copy = (int)KN_SYS3(SYS_open_tree, AT_FDCWD, at, tree);
		r = copy < 0 ? copy
			     : (int)KN_SYS5(SYS_move_mount, copy, "", on, "",
				   MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH);
		kn_sys_close(copy);
		kn_sys_close(on);
		if (r < 0)
			return r;
	}
	return 0;
}

int
kn_mounts_zeros(void)
{
	struct stat st;
	int r = kn_sys_stat(AT_FDCWD, "/dev/zero", &st, AT_SYMLINK_NOFOLLOW);

	if (r < 0)
		return r == -ENOENT ? 0 : r;
	return kn_sys_mount("/dev/full", "/dev/zero", NULL, MS_BIND, NULL);
}

static bool
is_below(const char *path, const char *folder)
{
	size_t n = strlen(folder);

	return !strncmp(path, folder, n) && path[n] == '/';
}

int
kn_mounts_find_covered(const struct kn_boot *b, struct kn_covered *out)
{
	size_t used = 0;

	out->n = 0;
	for (uint32_t i = 0; i < b->bind_n; i++) {
		const char *at = b->binds[i].at;
		size_t n = strlen(at) + 1;
		bool below = false;

		for (int k = 0; k < COVER_N; k++)
			below |= is_below(at, covers[k]);
		/* What lies in one that is put back comes with it; masks do. */
		for (uint32_t k = 0; k < out->n; k++)
			below = below && !is_below(at, out->at[k]);
		if (!below || b->binds[i].mask || b->binds[i].link)
			continue;
		if (out->n == KN_COVERED_MAX || n > sizeof out->text - used)
			return -E2BIG;
		memcpy(out->text + used, at, n);
		out->at[out->n++] = out->text + used;
		used += n;
	}
	return 0;
}

/* ---- tmpfs ---- */

static uint64_t
pages_of(uint64_t bytes)
{
	return bytes / KN_PAGE + 1;
}

void
kn_mounts_opts(
    char out[KN_MOUNT_OPTS], uint64_t bytes, uint64_t inodes, const char *mode)
{
	struct kn_text t = { out, KN_MOUNT_OPTS, 0 };

	/* To tmpfs, 0 means unlimited. */
	kn_text_str(&t, "size=");
	kn_text_u64(&t, bytes ? bytes : KN_PAGE);
	kn_text_str(&t, ",nr_inodes=");
	kn_text_u64(&t, inodes ? inodes : pages_of(bytes) + 16);
	kn_text_str(&t, ",mode=");
	kn_text_str(&t, mode);
}

static int
set_string(int fs, const char *key, const char *value)
{
	return (int)KN_SYS5(SYS_fsconfig, fs, FSCONFIG_SET_STRING, key, value, 0);
}

static int
set_number(int fs, const char *key, uint64_t v)
{
	char buf[24];
	struct kn_text t = { buf, sizeof buf, 0 };

	kn_text_u64(&t, v);
	return set_string(fs, key, buf);
}

int
kn_mounts_task_fs(uint64_t bytes, uint64_t inodes)
{
	int fs = (int)KN_SYS2(SYS_fsopen, "tmpfs", FSOPEN_CLOEXEC), r;

	if (fs < 0)
		return fs;
	r = set_number(fs, "size", bytes ? bytes : KN_PAGE);
	if (r == 0)
		r = set_number(fs, "nr_inodes", inodes ? inodes : pages_of(bytes) + 16);
	if (r == 0)
		r = set_string(fs, "mode", "0755");
	if (r == 0)
		r = (int)KN_SYS5(SYS_fsconfig, fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0);
	if (r == 0)
		r = (int)KN_SYS3(SYS_fsmount, fs, FSMOUNT_CLOEXEC,
		    MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
	kn_sys_close(fs);
	return r;
}

/* ---- in a cell ---- */

/* Make the folders above `at` and something of the right kind to mount on. */
static int
make_mount_point(const char *at, int source_fd)
{
	char path[KN_PAGE];
	size_t n = strlen(at);
	struct stat st;
	int r;

	if (n >= sizeof path)
		return -ENAMETOOLONG;
	for (size_t i = 1; i < n; i++) {
		if (at[i] != '/')
			continue;
		memcpy(path, at, i);
		path[i] = '\0';
		r = kn_sys_mkdirat(AT_FDCWD, path, 0755);
		if (r < 0 && r != -EEXIST)
			return r;
	}
	r = kn_sys_stat(source_fd, "", &st, AT_EMPTY_PATH);
	if (r < 0)
		return r;
	if (S_ISDIR(st.st_mode)) {
		r = kn_sys_mkdirat(AT_FDCWD, at, 0755);
		return r == -EEXIST ? 0 : r;
	}
	r = kn_sys_openat(
	    AT_FDCWD, at, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
	if (r < 0)
		return r == -EEXIST ? 0 : r;
	kn_sys_close(r);
	return 0;
}

/* Taken hold of before the folders above them are covered. */
static int
lift_covered(struct kn_covered *c, const char **out_at)
{
	for (uint32_t i = 0; i < c->n; i++) {
		*out_at = c->at[i];
		c->fd[i] = (int)KN_SYS3(SYS_open_tree, AT_FDCWD, c->at[i],
		    OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE);
		if (c->fd[i] < 0)
			return c->fd[i];
	}
	return 0;
}

static int
put_covered(struct kn_covered *c, const char **out_at)
{
	for (uint32_t i = 0; i < c->n; i++) {
		int r = make_mount_point(c->at[i], c->fd[i]);

		*out_at = c->at[i];
		if (r == 0)
			r = kn_sys_move_mount(c->fd[i], c->at[i]);
		kn_sys_close_at(&c->fd[i]);
		if (r < 0)
			return r;
	}
	return 0;
}

int
kn_mounts_no_exec(const char *at)
{
	const struct {
		uint64_t set, clear, propagation, userns_fd;
	} attr = { .set = MOUNT_ATTR_NOEXEC };

	return (int)KN_SYS5(
	    SYS_mount_setattr, AT_FDCWD, at, AT_RECURSIVE, &attr, sizeof attr);
}

/* Those that are made elsewhere: of each cell's own, so that no flag of it is locked.
 */
static int
close_made(const struct kn_cell_mounts *m, unsigned long flags, const char **out_at)
{
	int r = 0;

	*out_at = "/task";
	if (m->task_fd >= 0)
		r = kn_sys_mount(
		    NULL, "/task", NULL, MS_REMOUNT | MS_BIND | flags, NULL);
	for (uint32_t i = 0; r == 0 && i < m->overlays->n; i++) {
		*out_at = m->overlays->v[i].at;
		r = kn_sys_mount(
		    NULL, *out_at, NULL, MS_REMOUNT | MS_BIND | flags, NULL);
	}
	return r;
}

int
kn_mounts_cell(struct kn_cell_mounts *m, bool no_exec, const char **out_at)
{
	const unsigned long flags = MS_NOSUID | MS_NODEV | (no_exec ? MS_NOEXEC : 0);
	int r = lift_covered(m->covered, out_at);

	if (r < 0)
		return r;
	r = kn_overlays_cell(m->overlays, out_at);
	if (r < 0)
		return r;
	*out_at = "/tmp";
	if (m->tmp[0])
		r = kn_sys_mount("tmpfs", "/tmp", "tmpfs", flags, m->tmp);
	if (r < 0)
		return r;
	*out_at = "/dev/shm";
	if (m->shm[0])
		r = kn_sys_mount("tmpfs", "/dev/shm", "tmpfs", flags, m->shm);
	if (r < 0)
		return r;
	/* Not to be written to: by its oom_score_adj a task could see to it that its
	 * keepers are killed in its place when memory runs out. */
	*out_at = "/proc";
	r = kn_sys_mount("proc", "/proc", "proc", flags | MS_NOEXEC | MS_RDONLY, NULL);
	if (r < 0)
		return r;
	*out_at = "/task";
	if (m->task_fd >= 0)
		r = kn_sys_move_mount(m->task_fd, "/task");
	if (r == 0 && no_exec)
		r = close_made(m, flags, out_at);
	if (r < 0)
		return r;
	return put_covered(m->covered, out_at);
}
