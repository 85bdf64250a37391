/* sandbox/stub/files.c: putting a task's files in place. */
#include "sandbox/stub/files.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "ipc/clock.h"
#include "sandbox/stub/sys.h"

/* Bytes between two looks at the clock. */
enum { CHUNK_BYTES = 4 << 20, NAME_BYTES = 4096 };

#define BENEATH \
	(RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS | \
	    RESOLVE_NO_XDEV)

/* Make the folders above path. */
static int
make_parents(int root, const char *path)
{
	char part[NAME_BYTES];
	size_t n = strlen(path);

	if (n >= sizeof part)
		return -ENAMETOOLONG;
	for (size_t i = 1; i < n; i++) {
		int r;

		if (path[i] != '/')
			continue;
		memcpy(part, path, i);
		part[i] = '\0';
		r = kn_sys_mkdirat(root, part, 0755);
		if (r < 0 && r != -EEXIST)
			return r;
	}
	return 0;
}

static int
check_time(uint64_t deadline_ns)
{
	return deadline_ns && kn_clock_now() >= deadline_ns ? -ETIMEDOUT : 0;
}

static int
write_bytes(int fd, const uint8_t *p, size_t n, uint64_t deadline_ns)
{
	while (n > 0) {
		long w = kn_sys_write(fd, p, n < CHUNK_BYTES ? n : (size_t)CHUNK_BYTES);

		if (w == -EINTR)
			continue;
		if (w < 0)
			return (int)w;
		p += w;
		n -= (size_t)w;
		if (n > 0 && check_time(deadline_ns) < 0)
			return -ETIMEDOUT;
	}
	return 0;
}

/* One piece by hand: before Linux 6.5 some file systems and devices do not splice. */
static long
copy_piece(int fd, int from, int64_t *off)
{
	uint8_t buf[8192];
	long n = kn_sys_pread(from, buf, sizeof buf, *off);
	int r = n > 0 ? write_bytes(fd, buf, (size_t)n, 0) : 0;

	*off += n > 0 ? n : 0;
	return r < 0 ? r : n;
}

/* The whole file behind from, from its start, whatever its offset is: several tasks may
 * share one description. */
static int
copy_fd(int fd, int from, uint64_t deadline_ns)
{
	int64_t off = 0;

	for (;;) {
		long r = KN_SYS4(SYS_sendfile, fd, from, &off, CHUNK_BYTES);

		if (r == -EINVAL)
			r = copy_piece(fd, from, &off);
		if (r == 0)
			return 0;
		if (r < 0 && r != -EINTR)
			return (int)r;
		if (check_time(deadline_ns) < 0)
			return -ETIMEDOUT;
	}
}

static int
put_one(int root, const struct kn_job_file *f, const int *fds, uint32_t fd_n,
    uint64_t deadline_ns)
{
	struct open_how how = {
		.flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
		.mode = 0600,
		.resolve = BENEATH,
	};
	int fd, r;

	if (f->fd_index >= 0 && (uint32_t)f->fd_index >= fd_n)
		return -EBADF;
	fd = kn_sys_openat2(root, f->path, &how);
	if (fd == -ENOENT) {
		r = make_parents(root, f->path);
		if (r < 0)
			return r;
		fd = kn_sys_openat2(root, f->path, &how);
	}
	if (fd < 0)
		return fd;
	if (f->fd_index >= 0)
		r = copy_fd(fd, fds[f->fd_index], deadline_ns);
	else
		r = write_bytes(fd, f->bytes, f->byte_n, deadline_ns);
	if (r == 0)
		r = (int)KN_SYS2(SYS_fchmod, fd, f->mode & 0777);
	kn_sys_close(fd);
	return r;
}

int
kn_files_put(int root, const struct kn_job *j, const int *fds, uint32_t fd_n,
    uint64_t deadline_ns, const char **out_path)
{
	for (uint32_t i = 0; i < j->file_n; i++) {
		int r = put_one(root, &j->files[i], fds, fd_n, deadline_ns);

		if (r < 0) {
			*out_path = j->files[i].path;
			return r;
		}
	}
	return 0;
}
