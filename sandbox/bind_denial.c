/* sandbox/bind_denial.c: what is denied below the binds: where it stands, and that it
 * still does when a worker is launched.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "ipc/err.h"
#include "ipc/fd.h"
#include "sandbox/bind.h"
#include "sandbox/policy.h"

static int
open_beneath(int dir_fd, const char *path, uint64_t resolve)
{
	struct open_how how = { .flags = O_PATH | O_CLOEXEC, .resolve = resolve };

	return (int)syscall(SYS_openat2, dir_fd, path, &how, sizeof(how));
}

/* path is dir itself or below it; *out_rest the part after it. */
static bool
below(const char *path, const char *dir, const char **out_rest)
{
	size_t n = strcmp(dir, "/") == 0 ? 0 : strlen(dir);

	if (strncmp(path, dir, n) != 0 || (path[n] != '/' && path[n] != '\0'))
		return false;
	*out_rest = path + n + (path[n] == '/');
	return true;
}

bool
kn_bind_is_denial(const struct kn_mount *m)
{
	return m->type == KN_MOUNT_MASK || m->type == KN_MOUNT_LINK ||
	       m->type == KN_MOUNT_WHITE;
}

int
kn_bind_find_masked(struct kn_bind *all, size_t n, struct kn_bind *b, struct kn_err *e)
{
	const struct kn_mount *m = b->mount;
	const char *rest;
	struct stat st;

	if (lstat(m->source, &st) < 0)
		return kn_err_sys(
		    e, KN_EK_CONFIG, "%s: look at %s", m->origin, m->source);
	b->dev = st.st_dev;
	b->ino = st.st_ino;
	for (size_t i = 0; i < n; i++) {
		if (m->type == KN_MOUNT_MASK && below(all[i].mount->at, m->at, &rest))
			all[i].shadowed = true;
		if (all[i].mount->type == KN_MOUNT_BIND && !all[i].missing &&
		    below(m->at, all[i].mount->at, &rest) &&
		    (b->in == NULL ||
			strlen(all[i].mount->at) >= strlen(b->in->mount->at))) {
			b->in = &all[i];
			b->in_rest = rest;
		}
	}
	return 0;
}

/* Whether what it stands upon may have been moved since. */
static bool
may_be_gone(const struct kn_bind *b)
{
	const struct kn_mount *m = b->mount;

	if (b->in == NULL || *b->in_rest == '\0' || b->in->fd < 0)
		return false;
	return m->type == KN_MOUNT_BIND || (m->type == KN_MOUNT_MASK && m->writable);
}

int
kn_bind_check_points(const struct kn_bind *b, size_t n, struct kn_err *e)
{
	for (size_t i = 0; i < n; i++) {
		const struct kn_mount *m = b[i].mount;
		bool mask = m->type == KN_MOUNT_MASK;
		KN_OWN_FD int fd = -1;
		struct stat st;

		if (!may_be_gone(&b[i]))
			continue;
		fd = open_beneath(
		    b[i].in->fd, b[i].in_rest, RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS);
		if (fd >= 0 && fstat(fd, &st) == 0 &&
		    S_ISDIR(st.st_mode) == (mask ? m->dir : b[i].is_dir))
			continue;
		if (mask)
			kn_err_set(e, KN_EK_LAUNCH,
			    "%s: %s is not there any more: what stands at its path now "
			    "could not be hidden",
			    m->origin, m->source);
		else
			kn_err_set(e, KN_EK_LAUNCH,
			    "%s: target %s is not in the bind of %s any more, and is "
			    "not "
			    "made there",
			    m->origin, m->at, b[i].in->path);
		kn_err_hint(e, "start again: the policy is read anew then");
		return -1;
	}
	return 0;
}
