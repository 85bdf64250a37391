/* supervisor/batch_keep.c: see batch_keep.h. */
#include "supervisor/batch_keep.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ipc/err.h"
#include "ipc/fd.h"
#include "supervisor/beneath.h"
#include "supervisor/ledger.h"

#define PRIVATE_PREFIX "knit-keep-"

struct kn_keep {
	int dir; /* -1: private and not made yet */
	bool private;
	char path[512];
};

void
kn_keep_name(const char *id, char out[KN_KEEP_NAME_MAX])
{
	static const uint8_t key[16] = "knit-keep names";
	static const char plain[] =
	    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
	    "0123456789._-";
	enum { CUT = 180 };
	char text[KN_KEEP_NAME_MAX * 3 + 4];
	size_t n = 0;

	for (const char *s = id; *s && n + 4 < sizeof text; s++) {
		if (strchr(plain, *s) && !(s == id && *s == '.'))
			text[n++] = *s;
		else
			n += (size_t)snprintf(
			    text + n, 4, "%%%02X", (unsigned)(unsigned char)*s);
	}
	text[n] = '\0';
	if (n <= CUT) {
		memcpy(out, text, n + 1);
	} else {
		uint64_t h[2];

		/* "%-" never comes from the escape, so a cut name is not a whole one.
		 */
		kn_ledger_hash(key, id, strlen(id), h);
		snprintf(out, KN_KEEP_NAME_MAX, "%.*s%%-%016llx%016llx", CUT, text,
		    (unsigned long long)h[0], (unsigned long long)h[1]);
	}
}

/* ---- the private directory ---- */

/* Remove the private directories whose owner is gone: nobody holds their lock. */
static void
sweep(const char *base)
{
	KN_OWN_FD int at = open(base, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = at >= 0 ? opendir(base) : NULL;
	struct dirent *de;

	while (d && (de = readdir(d))) {
		KN_OWN_FD int dir = -1;
		struct stat st;

		if (strncmp(de->d_name, PRIVATE_PREFIX, strlen(PRIVATE_PREFIX)) != 0)
			continue;
		dir = kn_beneath_dir(at, de->d_name);
		if (dir < 0 || fstat(dir, &st) < 0 || st.st_uid != geteuid() ||
		    flock(dir, LOCK_EX | LOCK_NB) < 0)
			continue;
		kn_beneath_empty(dir);
		unlinkat(at, de->d_name, AT_REMOVEDIR);
	}
	if (d)
		closedir(d);
}

static const char *
private_base(void)
{
	const char *base = getenv("TMPDIR");

	return base && base[0] == '/' && strlen(base) <= 400 ? base : "/tmp";
}

static int
make_private(struct kn_keep *k, struct kn_err *e)
{
	const char *base = private_base();
	struct stat st;
	int no;

	/* A sweep of another start may take ours between mkdtemp and flock: then it has
	 * no name any more, and we make the next one. */
	for (int tries = 0; tries < 8; tries++) {
		snprintf(k->path, sizeof k->path, "%s/" PRIVATE_PREFIX "XXXXXX", base);
		if (!mkdtemp(k->path))
			break;
		k->dir = open(k->path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (k->dir >= 0 && flock(k->dir, LOCK_EX | LOCK_NB) == 0 &&
		    fstat(k->dir, &st) == 0 && st.st_nlink > 0)
			return 0;
		no = errno;
		kn_fd_close(&k->dir);
		rmdir(k->path); /* whatever failed: it is empty, and not left behind */
		errno = no;
	}
	kn_err_sys(e, KN_EK_HOST, "make a directory for kept files below %s", base);
	kn_err_hint(e, "point TMPDIR at a writable directory, or give --keep DIR");
	return -1;
}

/* ---- outside ---- */

void
kn_keep_sweep(void)
{
	sweep(private_base());
}

int
kn_keep_open(const char *dir, struct kn_keep **out, struct kn_err *e)
{
	struct kn_keep *k = calloc(1, sizeof *k);

	if (!k)
		return kn_err_set(e, KN_EK_HOST, "out of memory");
	k->dir = -1;
	k->private = !dir;
	if (dir) {
		if (mkdir(dir, 0777) < 0 && errno != EEXIST) {
			kn_err_sys(e, KN_EK_HOST, "make %s", dir);
			free(k);
			return -1;
		}
		k->dir = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (k->dir < 0) {
			kn_err_sys(e, KN_EK_HOST, "open %s", dir);
			free(k);
			return -1;
		}
	}
	*out = k;
	return 0;
}

void
kn_keep_close(struct kn_keep *k)
{
	if (!k)
		return;
	/* The next start would sweep it, but a call that fails once is no reason. */
	for (int tries = 0; k->private && k->dir >= 0 && tries < 3; tries++) {
		kn_beneath_empty(k->dir);
		if (rmdir(k->path) == 0)
			break;
	}
	kn_fd_close(&k->dir);
	free(k);
}

static char *
join(const char *id, const char *name)
{
	char dir[KN_KEEP_NAME_MAX], *rel = NULL;

	kn_keep_name(id, dir);
	return asprintf(&rel, "%s/%s", dir, name) < 0 ? NULL : rel;
}

int
kn_keep_put(struct kn_keep *k, const char *id, const char *name, int fd, uint64_t max,
    uint32_t mode, struct kn_err *e)
{
	char *rel = join(id, name);
	int r = -1;

	if (!rel)
		kn_err_set(e, KN_EK_HOST, "out of memory");
	else if (k->dir >= 0 || make_private(k, e) == 0)
		r = kn_beneath_write(k->dir, rel, fd, max, mode, true, e);
	free(rel);
	return r;
}

int
kn_keep_get(struct kn_keep *k, const char *id, const char *name, int *out_fd,
    uint32_t *out_mode, struct kn_err *e)
{
	char *rel = join(id, name);
	struct stat st;
	int r = -1;

	if (!rel)
		kn_err_set(e, KN_EK_HOST, "out of memory");
	else if (k->dir < 0)
		kn_err_set(e, KN_EK_TASK, "nothing was kept");
	else
		r = kn_beneath_open(k->dir, rel, out_fd, &st, e);
	free(rel);
	if (r == 0)
		*out_mode = st.st_mode & 0777;
	return r;
}

void
kn_keep_forget(struct kn_keep *k, const char *id, const char *name)
{
	char *rel = join(id, name);

	if (rel && k->dir >= 0)
		kn_beneath_unlink(k->dir, rel);
	free(rel);
}
