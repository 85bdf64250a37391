/* sandbox/place.c: see place.h. */
#include "sandbox/place.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ipc/err.h"
#include "ipc/fd.h"
#include "sandbox/cgroup_dir.h"

enum {
	DEPTH_MAX = 100, /* of directories in it, and of descriptors held */
	TRIES = 16,	 /* the base may be removed by who leaves as we come */
	BASE_MAX = 160
};

/* The name of the base; as root, workers of other uids pass through it. */
static int
base_name(char *out, size_t n, mode_t *out_mode, struct kn_err *e)
{
	const char *run = getenv("XDG_RUNTIME_DIR"), *tmp = getenv("TMPDIR");
	uid_t uid = geteuid();
	int len;

	*out_mode = uid == 0 ? 0711 : 0700;
	if (tmp == NULL || *tmp != '/')
		tmp = "/tmp";
	if (uid == 0 && access("/run", W_OK) == 0)
		len = snprintf(out, n, "/run/knit-sandbox");
	else if (uid == 0)
		len = snprintf(out, n, "/tmp/knit-sandbox-0");
	else if (run != NULL && *run == '/' && access(run, W_OK) == 0)
		len = snprintf(out, n, "%s/knit-sandbox", run);
	else
		len = snprintf(out, n, "%s/knit-sandbox-%u", tmp, (unsigned)uid);
	if (len >= (int)n)
		return kn_err_set(e, KN_EK_HOST,
		    "the path of our private directory would be longer than %zu bytes "
		    "(XDG_RUNTIME_DIR, TMPDIR)",
		    n - 1);
	return 0;
}

/* Somebody else may have made it before us, where others can. */
static int
check_base(const char *base, struct kn_err *e)
{
	struct stat st;

	if (lstat(base, &st) < 0)
		return kn_err_sys(e, KN_EK_HOST, "look at %s", base);
	if (S_ISDIR(st.st_mode) && st.st_uid == geteuid() && (st.st_mode & 022) == 0)
		return 0;
	kn_err_set(e, KN_EK_HOST,
	    "%s: not a directory of ours that only we can write to", base);
	kn_err_hint(e, "remove it, or set XDG_RUNTIME_DIR or TMPDIR");
	return -1;
}

int
kn_place_open(const uint8_t pool_id[16], char *path, size_t n, struct kn_err *e)
{
	char base[BASE_MAX], name[KN_CGROUP_NAME_MAX];
	struct stat st;
	mode_t mode, mask;
	int r = -1;

	if (base_name(base, sizeof base, &mode, e) < 0)
		return -1;
	if (kn_cgroup_dir_name(pool_id, name, sizeof name) < 0)
		return kn_err_set(e, KN_EK_HOST, "/proc does not tell who we are");
	if (snprintf(path, n, "%s/%s", base, name) >= (int)n) {
		path[0] = '\0';
		return kn_err_set(e, KN_EK_HOST, "%s: too long a path", base);
	}
	mask = umask(0);
	for (int i = 0; r < 0 && i < TRIES; i++) {
		if (mkdir(base, mode) < 0 && errno != EEXIST)
			break;
		r = mkdir(path, mode);
		if (r < 0 && errno != ENOENT)
			break;
	}
	umask(mask);
	if (r < 0) {
		kn_err_sys(e, KN_EK_HOST, "make the directory %s", path);
		if (geteuid() != 0)
			kn_err_hint(e,
			    "set XDG_RUNTIME_DIR or TMPDIR to a directory that you may "
			    "write to");
		if (lstat(base, &st) == 0) /* somebody was there first */
			(void)check_base(base, e);
		path[0] = '\0';
		return -1;
	}
	if (check_base(base, e) == 0)
		return 0;
	rmdir(path);
	path[0] = '\0';
	return -1;
}

bool
kn_place_is_note(const char *name)
{
	return strncmp(name, KN_PLACE_NOTE, sizeof KN_PLACE_NOTE - 1) == 0;
}

static int
empty_fd(int fd_own, dev_t dev, int depth, bool notes)
{
	DIR *d = fdopendir(fd_own);
	struct dirent *de;
	int rc = 0;

	if (d == NULL) {
		close(fd_own);
		return -1;
	}
	while ((de = readdir(d)) != NULL) {
		struct stat st;
		int fd;

		if (strcmp(de->d_name, ".") == 0 || strcmp(de->d_name, "..") == 0)
			continue;
		if (notes && kn_place_is_note(de->d_name))
			continue;
		if (unlinkat(dirfd(d), de->d_name, 0) == 0)
			continue;
		fd = depth > 0 ? openat(dirfd(d), de->d_name,
				     O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
			       : -1;
		if (fd >= 0 && fstat(fd, &st) == 0 && st.st_dev == dev)
			empty_fd(fd, dev, depth - 1, false);
		else
			kn_fd_close(&fd);
		if (unlinkat(dirfd(d), de->d_name, AT_REMOVEDIR) < 0)
			rc = -1;
	}
	closedir(d);
	return rc;
}

static int
empty(const char *path, bool notes)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0) {
		kn_fd_close(&fd);
		return -1;
	}
	return empty_fd(fd, st.st_dev, DEPTH_MAX, notes);
}

int
kn_place_empty(const char *path)
{
	return empty(path, false);
}

/* The folder that a place is in, without the last slash. */
static int
base_of(const char *path, char *base, size_t n)
{
	const char *slash = strrchr(path, '/');

	if (slash == NULL || (size_t)(slash - path) >= n)
		return -1;
	memcpy(base, path, (size_t)(slash - path));
	base[slash - path] = '\0';
	return 0;
}

void
kn_place_close(const char *path)
{
	char base[BASE_MAX];

	if (path[0] == '\0' || base_of(path, base, sizeof base) < 0)
		return;
	empty(path, true);
	rmdir(path);
	rmdir(base);
}

unsigned
kn_place_sweep(const char *path, void (*leave)(const char *dir))
{
	char base[BASE_MAX], dir[BASE_MAX + KN_CGROUP_NAME_MAX];
	struct dirent *de;
	unsigned n = 0;
	DIR *d;

	if (base_of(path, base, sizeof base) < 0 || (d = opendir(base)) == NULL)
		return 0;
	while ((de = readdir(d)) != NULL) {
		if (!kn_cgroup_dir_orphan(de->d_name) ||
		    snprintf(dir, sizeof dir, "%s/%s", base, de->d_name) >=
			(int)sizeof dir)
			continue;
		if (leave != NULL)
			leave(dir);
		empty(dir, true);
		n += rmdir(dir) == 0;
	}
	closedir(d);
	return n;
}

/* Who comes last finds it empty: he who closes the place and he who ends a note both
 * try. A place at work is never empty. */
void
kn_place_done(const char *note)
{
	char place[BASE_MAX + KN_CGROUP_NAME_MAX], base[BASE_MAX];

	unlink(note);
	if (base_of(note, place, sizeof place) == 0) {
		rmdir(place);
		if (base_of(place, base, sizeof base) == 0)
			rmdir(base);
	}
}

/* What a place has: notes, or anything else. */
static void
look(int base_fd, const char *name, bool *out_notes, bool *out_others)
{
	int fd = openat(base_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *d = fd >= 0 ? fdopendir(fd) : NULL;
	struct dirent *de;

	*out_notes = *out_others = false;
	if (d == NULL) {
		kn_fd_close(&fd);
		return;
	}
	while ((de = readdir(d)) != NULL)
		if (kn_place_is_note(de->d_name))
			*out_notes = true;
		else if (de->d_name[0] != '.')
			*out_others = true;
	closedir(d);
}

enum kn_place_rest
kn_place_rest(const char *path, bool dead)
{
	enum kn_place_rest rest = KN_PLACE_REST_NONE;
	const char *own = strrchr(path, '/');
	char base[BASE_MAX];
	struct dirent *de;
	DIR *d;

	if (base_of(path, base, sizeof base) < 0 || (d = opendir(base)) == NULL)
		return rest;
	own++;
	while (rest != KN_PLACE_REST_SHARED && (de = readdir(d)) != NULL) {
		bool ours = kn_cgroup_dir_sibling(de->d_name, strlen(de->d_name), own),
		     notes, others;

		if (!ours && !(dead && kn_cgroup_dir_orphan(de->d_name)))
			continue;
		look(dirfd(d), de->d_name, &notes, &others);
		if (notes && rest == KN_PLACE_REST_NONE)
			rest = KN_PLACE_REST_NOTED;
		if (ours && others && strcmp(de->d_name, own) != 0)
			rest = KN_PLACE_REST_SHARED;
	}
	closedir(d);
	return rest;
}
