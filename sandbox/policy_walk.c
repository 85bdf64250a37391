/* sandbox/policy_walk.c: the files of a tree that a pattern means.
 *
 * The tree may be a task's own doing: no link is followed, and depth and names are
 * bounded. What cannot be looked into is refused and not passed over, since a secret
 * may lie in it; unless the caller, whom a task is no more than, cannot get into it at
 * all.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ipc/fd.h"
#include "sandbox/policy_files.h"

enum { DEPTH_MAX = 256, NAMES_MAX = 1000000 };

struct place {
	char name[KN_FPATH_MAX], real[KN_FPATH_MAX];
	size_t name_n, real_n;
};

static int
fail_at(
    const struct kn_fwalk *w, const struct place *at, const char *why, struct kn_err *e)
{
	kn_err_set(e, KN_EK_CONFIG, "%s: \"%.80s\": look for it below %.80s: %s",
	    w->origin, w->pattern, at->real, why);
	kn_err_hint(e, "a pattern is looked for before anything runs: name a smaller "
		       "folder, or the files themselves");
	return -1;
}

/* A folder of somebody else's that the caller may neither list nor enter. */
static bool
is_out_of_reach(int dir, const char *name)
{
	struct stat st;

	return fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	       st.st_uid != geteuid() && faccessat(dir, name, X_OK, AT_EACCESS) < 0;
}

static int walk_dir(
    struct kn_fwalk *w, struct place *at, int fd_own, int depth, struct kn_err *e);

static int
look_at(struct kn_fwalk *w, struct place *at, int dir, const char *name, int depth,
    struct kn_err *e)
{
	enum kn_fpath_hit hit = kn_fpath_match(w->pattern, at->name, w->dots);
	int fd;

	if (hit == KN_FPATH_THIS)
		return w->found(w->arg, at->name, at->real, e);
	if (hit == KN_FPATH_NO)
		return 0;
	fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd >= 0)
		return walk_dir(w, at, fd, depth + 1, e);
	if (errno == ENOTDIR || errno == ELOOP || errno == ENOENT ||
	    (errno == EACCES && is_out_of_reach(dir, name)))
		return 0;
	return fail_at(w, at, strerror(errno), e);
}

static bool
add_name(char path[KN_FPATH_MAX], size_t n, const char *name)
{
	size_t len = strlen(name), at = n == 1 && path[0] == '/' ? 0 : n;

	if (at + 1 + len >= KN_FPATH_MAX)
		return false;
	path[at] = '/';
	memcpy(path + at + 1, name, len + 1);
	return true;
}

static int
walk_entries(struct kn_fwalk *w, struct place *at, DIR *d, int depth, struct kn_err *e)
{
	const size_t name_n = at->name_n, real_n = at->real_n;
	const struct dirent *entry;
	int rc = 0;

	while (rc == 0 && (errno = 0, entry = readdir(d)) != NULL) {
		if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, ".."))
			continue;
		if (++w->names > NAMES_MAX)
			return fail_at(w, at, "more than 1000000 names", e);
		if (!add_name(at->name, name_n, entry->d_name) ||
		    !add_name(at->real, real_n, entry->d_name))
			return fail_at(w, at, "a path is too long", e);
		at->name_n = strlen(at->name);
		at->real_n = strlen(at->real);
		rc = look_at(w, at, dirfd(d), entry->d_name, depth, e);
		at->name[at->name_n = name_n] = 0;
		at->real[at->real_n = real_n] = 0;
	}
	if (rc == 0 && errno != 0)
		return fail_at(w, at, strerror(errno), e);
	return rc;
}

static int
walk_dir(struct kn_fwalk *w, struct place *at, int fd_own, int depth, struct kn_err *e)
{
	DIR *d;
	int rc;

	if (depth > DEPTH_MAX) {
		close(fd_own);
		return fail_at(w, at, "folders lie more than 256 deep", e);
	}
	d = fdopendir(fd_own);
	if (!d) {
		rc = fail_at(w, at, strerror(errno), e);
		close(fd_own);
		return rc;
	}
	rc = walk_entries(w, at, d, depth, e);
	closedir(d);
	return rc;
}

int
kn_fwalk(struct kn_fwalk *w, const char *name, const char *real, struct kn_err *e)
{
	struct place at;

	at.name_n = strlen(name);
	at.real_n = strlen(real);
	if (at.name_n >= sizeof at.name || at.real_n >= sizeof at.real)
		return kn_err_set(e, KN_EK_CONFIG, "%s: a path is too long", w->origin);
	memcpy(at.name, name, at.name_n + 1);
	memcpy(at.real, real, at.real_n + 1);
	return look_at(w, &at, AT_FDCWD, real, 0, e);
}
