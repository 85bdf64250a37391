/* sandbox/bind_out.c: the directory that what tasks changed in their copies goes to.
 *
 * It is held by a descriptor from the start on. No task may be able to write to it or
 * to a directory above it, or it could have the files of the next one put elsewhere.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ipc/err.h"
#include "ipc/fd.h"
#include "sandbox/bind.h"
#include "sandbox/policy.h"

/* The bind whose source this is, and which a task writes to or has a copy of. */
static const struct kn_mount *
find(const struct kn_bind *b, size_t n, const struct stat *st)
{
	for (size_t i = 0; i < n; i++) {
		const struct kn_mount *m = b[i].mount;

		if (b[i].fd >= 0 && (m->writable || m->overlay) &&
		    b[i].dev == st->st_dev && b[i].ino == st->st_ino)
			return m;
	}
	return NULL;
}

/* From the directory up to the root, as the kernel sees it. */
static int
check_above(
    const struct kn_bind *b, size_t n, const struct kn_bind *of, struct kn_err *e)
{
	KN_OWN_FD int fd = openat(of->out_fd, ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct stat st, up;

	if (fd < 0 || fstat(fd, &st) < 0)
		goto fail;
	for (;;) {
		const struct kn_mount *m = find(b, n, &st);
		int next;

		if (m)
			return kn_err_set(e, KN_EK_CONFIG,
			    "%s: out %s: it lies in %s, which a task %s; name a "
			    "directory beside it",
			    of->mount->origin, of->mount->out, m->source,
			    m->writable ? "can write to" : "has a copy of");
		next = openat(fd, "..", O_PATH | O_DIRECTORY | O_CLOEXEC);
		kn_fd_close(&fd);
		fd = next;
		if (fd < 0 || fstat(fd, &up) < 0)
			goto fail;
		if (up.st_dev == st.st_dev && up.st_ino == st.st_ino)
			return 0;
		st = up;
	}
fail:
	return kn_err_sys(
	    e, KN_EK_CONFIG, "%s: out %s", of->mount->origin, of->mount->out);
}

static int
check_one(const struct kn_bind *all, size_t n, struct kn_bind *b, struct kn_err *e)
{
	/* Followed like what is written to: never by a link that a task may have left.
	 */
	struct kn_mount m = { .type = KN_MOUNT_BIND,
		.source = b->mount->out,
		.writable = true,
		.origin = b->mount->origin };
	struct stat st;

	b->out_fd = kn_bind_open(&m, e);
	if (b->out_fd < 0) {
		if (e && e->sys == ENOENT)
			kn_err_hint(e, "make the directory first");
		return kn_err_wrap(e, "out");
	}
	if (fstat(b->out_fd, &st) < 0 || !S_ISDIR(st.st_mode))
		return kn_err_set(e, KN_EK_CONFIG, "%s: out %s: it is no directory",
		    m.origin, m.source);
	if (faccessat(b->out_fd, ".", W_OK | X_OK, AT_EACCESS) < 0)
		return kn_err_sys(
		    e, KN_EK_CONFIG, "%s: out %s: write to it", m.origin, m.source);
	return check_above(all, n, b, e);
}

int
kn_bind_check_out(struct kn_bind *b, size_t n, struct kn_err *e)
{
	for (size_t i = 0; i < n; i++)
		if (b[i].mount->out && check_one(b, n, &b[i], e) < 0)
			return -1;
	return 0;
}
