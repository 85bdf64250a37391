/* sandbox/stub/fresh.c: file systems as they were made (sandbox/stub/fresh.h). */
#include "sandbox/stub/fresh.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>

#include "sandbox/stub/sys.h"

enum { SKIP_MOST = 63 };

void
kn_fresh_init(struct kn_fresh f[KN_FRESH_N])
{
	static const char *const at[] = {
		[KN_FRESH_TMP] = "/tmp",
		[KN_FRESH_SHM] = "/dev/shm",
		[KN_FRESH_TASK] = "/task",
	};

	for (int i = 0; i < KN_FRESH_N; i++)
		f[i] = (struct kn_fresh){
			.at = at[i], .fd = -1, .skip = 1, .skip_next = 1
		};
}

/* memcmp() compares two of these: the kernel fills them whole. */
static bool
look_at(int fd, struct kn_fresh_look *l)
{
	memset(l, 0, sizeof *l);
	l->names = KN_SYS3(SYS_flistxattr, fd, NULL, 0);
	l->flags_ret = KN_SYS3(SYS_ioctl, fd, FS_IOC_GETFLAGS, &l->flags);
	return kn_sys_stat(fd, "", &l->root, AT_EMPTY_PATH) == 0 &&
	       KN_SYS2(SYS_fstatfs, fd, &l->space) == 0;
}

/* The number of a file made just now, which is gone at once: each file system counts
 * its own (Linux 5.9). 0: cannot be had. */
static uint64_t
number_of_next(int fd)
{
	struct stat st;
	int tmp = kn_sys_openat(fd, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	int r = tmp < 0 ? tmp : kn_sys_stat(tmp, "", &st, AT_EMPTY_PATH);

	kn_sys_close(tmp);
	return r < 0 ? 0 : st.st_ino;
}

/* Cells hold copies of the mount, and none exists: nobody has it any more. */
static void
throw_away(struct kn_fresh *f)
{
	kn_sys_close_at(&f->fd);
	(void)KN_SYS2(SYS_umount2, f->at, MNT_DETACH);
}

static bool
make(struct kn_fresh *f, const char *opts)
{
	if (kn_sys_mount("tmpfs", f->at, "tmpfs", MS_NOSUID | MS_NODEV, opts) < 0)
		return false;
	f->made++;
	f->fd = kn_sys_openat(AT_FDCWD, f->at, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
	if (f->fd >= 0) {
		f->next = number_of_next(f->fd);
		if (f->next != 0 && look_at(f->fd, &f->look))
			return true;
	}
	throw_away(f);
	return false;
}

static bool
offer(struct kn_fresh *f, const char *opts)
{
	if (f->fd >= 0)
		return true;
	if (f->skip > 0) {
		f->skip--;
		return false;
	}
	if (make(f, opts))
		return true;
	f->skip = SKIP_MOST;
	return false;
}

uint64_t
kn_fresh_share(struct kn_fresh f[KN_FRESH_N], const bool may[KN_FRESH_N],
    const char *const opts[KN_FRESH_N], bool out_shared[KN_FRESH_N])
{
	uint64_t made = 0;
	bool all = true;

	for (int i = 0; i < KN_FRESH_N; i++) {
		out_shared[i] = may[i] && offer(&f[i], opts[i]);
		all = all && out_shared[i];
		made += f[i].made;
	}
	return all ? made : 0;
}

static void
check(struct kn_fresh *f)
{
	struct kn_fresh_look now;
	uint64_t next;

	if (f->fd < 0)
		return;
	if (look_at(f->fd, &now) && memcmp(&now, &f->look, sizeof now) == 0) {
		next = number_of_next(f->fd);
		if (next == f->next + 1) {
			f->next = next;
			f->skip_next = 1;
			return;
		}
	}
	throw_away(f);
	f->skip = f->skip_next;
	f->skip_next = 2 * f->skip_next + 1;
	if (f->skip_next > SKIP_MOST)
		f->skip_next = SKIP_MOST;
}

void
kn_fresh_check(struct kn_fresh f[KN_FRESH_N], const bool shared[KN_FRESH_N])
{
	for (int i = 0; i < KN_FRESH_N; i++)
		if (shared[i])
			check(&f[i]);
}
