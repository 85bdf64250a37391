/* sandbox/stub/nest.c: see nest.h. */
#include "sandbox/stub/nest.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/prctl.h>

#include "sandbox/stub/stub.h"
#include "sandbox/stub/sys.h"
#include "sandbox/stub/text.h"

#ifndef SYS_mount_setattr
#define SYS_mount_setattr 442
#endif
#ifndef CLONE_NEWCGROUP
#define CLONE_NEWCGROUP 0x02000000
#endif

/* Whose files these are was checked when they were opened: by who may move us. */
int
kn_nest_join(int fd[KN_BOOT_FD_N])
{
	for (int i = KN_BOOT_FD_JOIN; i <= KN_BOOT_FD_JOIN_LAST; i++) {
		long r;

		if (fd[i] < 0)
			continue;
		r = KN_SYS3(SYS_write, fd[i], "0", 1);
		kn_sys_close_at(&fd[i]);
		if (r != 1)
			return r < 0 ? (int)r : -EIO;
	}
	return (int)KN_SYS1(SYS_unshare, CLONE_NEWCGROUP);
}

static int
put(const char *path, const char *text, size_t n)
{
	int fd = kn_sys_openat(AT_FDCWD, path, O_WRONLY | O_CLOEXEC, 0);
	long r;

	if (fd < 0)
		return fd;
	r = KN_SYS3(SYS_write, fd, text, n);
	kn_sys_close(fd);
	return r == (long)n ? 0 : r < 0 ? (int)r : -EIO;
}

static int
put_map(const char *path, uint32_t inside, uint32_t outside)
{
	char buf[48];
	struct kn_text t = { buf, sizeof buf, 0 };

	kn_text_u64(&t, inside);
	kn_text_str(&t, " ");
	kn_text_u64(&t, outside);
	kn_text_str(&t, " 1\n");
	return put(path, buf, t.n);
}

static int
put_all(uint32_t uid, uint32_t gid, uint32_t from_uid, uint32_t from_gid,
    const char **out_what)
{
	int r;

	*out_what = "/proc/self/setgroups";
	r = put("/proc/self/setgroups", "deny", 4);
	if (r < 0)
		return r;
	*out_what = "/proc/self/uid_map";
	r = put_map("/proc/self/uid_map", uid, from_uid);
	if (r < 0)
		return r;
	*out_what = "/proc/self/gid_map";
	r = put_map("/proc/self/gid_map", gid, from_gid);
	if (r < 0)
		return r;
	*out_what = "/proc/sys/user/max_user_namespaces";
	return put("/proc/sys/user/max_user_namespaces", "0", 1);
}

/* Over the exec, which takes them from who is not uid 0. */
static int
keep_caps(void)
{
	const uint32_t keep =
	    1u << CAP_SYS_ADMIN | 1u << CAP_SETPCAP | 1u << CAP_DAC_OVERRIDE;
	struct __user_cap_header_struct h = { _LINUX_CAPABILITY_VERSION_3, 0 };
	struct __user_cap_data_struct d[2] = { { keep, keep, keep }, { 0, 0, 0 } };
	long r = KN_SYS2(SYS_capset, &h, d);

	for (int cap = 0; r == 0 && cap < 32; cap++)
		if (keep >> cap & 1)
			r = KN_SYS5(
			    SYS_prctl, PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, cap, 0, 0);
	return (int)r;
}

/* Where the kernel lets nobody drop groups ("deny"), as in an ordinary user's container
 * of one id, they are that user's. */
static int
may_drop_groups(void)
{
	char word[8] = "";
	int fd =
	    kn_sys_openat(AT_FDCWD, "/proc/self/setgroups", O_RDONLY | O_CLOEXEC, 0);
	long r = fd;

	if (fd >= 0) {
		r = kn_sys_read(fd, word, sizeof word - 1);
		kn_sys_close(fd);
	}
	return r < 0 ? (int)r : strncmp(word, "deny", 4) != 0;
}

/* That the runtime made us who it was asked to, and left us no group of its caller's:
 * inside a user namespace of our own that could not be seen. A call that answers 0 and
 * writes nothing is seen by what was there before. */
static int
verify_identity(uint32_t uid, uint32_t gid, const char **out_what)
{
	static gid_t groups[256];
	uid_t r = ~uid, e = r, s = r;
	gid_t rg = ~gid, eg = rg, sg = rg;
	long n;

	*out_what = "another uid than was asked for";
	n = KN_SYS3(SYS_getresuid, &r, &e, &s);
	if (n < 0 || r != uid || e != uid || s != uid)
		return n < 0 ? (int)n : -EPERM;
	*out_what = "another gid than was asked for";
	n = KN_SYS3(SYS_getresgid, &rg, &eg, &sg);
	if (n < 0 || rg != gid || eg != gid || sg != gid)
		return n < 0 ? (int)n : -EPERM;
	*out_what = "/proc/self/setgroups";
	n = may_drop_groups();
	if (n <= 0)
		return (int)n;
	*out_what = "supplementary groups that nobody asked for";
	n = KN_SYS2(SYS_getgroups, sizeof groups / sizeof *groups, groups);
	for (long i = 0; i < n; i++)
		if (groups[i] != gid)
			return -EPERM;
	return n < 0 ? (int)n : 0;
}

static int
read_ids(const char *const *args, uint32_t id[4])
{
	for (int i = 0; i < 4; i++) {
		size_t n = args[i] ? strlen(args[i]) : 0, used;
		uint64_t v = kn_text_number(args[i] ? args[i] : "", n, &used);

		if (n == 0 || used != n || v >= UINT32_MAX)
			return -EINVAL;
		id[i] = (uint32_t)v;
	}
	return args[4] ? 0 : -EINVAL;
}

int
kn_nest(const char *const *args, enum kn_boot_step *out_step, const char **out_what)
{
	static char *const none[] = { NULL };
	uint32_t id[4]; /* uid, gid, and the two that the runtime gave */
	int r;

	*out_step = KN_BSTEP_WHO;
	*out_what = "arguments";
	r = read_ids(args + 2, id);
	if (r == 0)
		r = verify_identity(id[2], id[3], out_what);
	if (r < 0)
		return r;
	*out_step = KN_BSTEP_NEST;
	r = (int)KN_SYS1(SYS_unshare, CLONE_NEWUSER);
	*out_what = "the container lets nobody make a user namespace";
	if (r < 0)
		return r;
	/* Not dumpable, our own files in /proc belong to the root above. */
	KN_SYS5(SYS_prctl, PR_SET_DUMPABLE, 1, 0, 0, 0);
	r = put_all(id[0], id[1], id[2], id[3], out_what);
	if (r < 0)
		return r;
	*out_what = "capabilities in it";
	r = keep_caps();
	if (r < 0)
		return r;
	*out_what = args[6];
	return (int)KN_SYS3(SYS_execve, args[6], args + 6, none);
}

/* ---- what is writable ---- */

static bool
is_at_or_below(const char *path, const char *folder)
{
	size_t n = strlen(folder);

	return !strncmp(path, folder, n) && (path[n] == '/' || !path[n]);
}

static bool
is_device(const char *at)
{
	struct stat st;

	return kn_sys_stat(AT_FDCWD, at, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	       S_ISCHR(st.st_mode);
}

static bool
may_be_written(const struct kn_boot *b, const char *at)
{
	/* Covered by each cell; devices are no files of ours, but only devices are. */
	static const char *const own[] = { "/proc", "/tmp", "/task", "/dev/shm",
		"/dev/pts" };
	static const char *const devices[] = { "/dev/null", "/dev/zero", "/dev/full",
		"/dev/random", "/dev/urandom", "/dev/tty", "/dev/console" };

	for (size_t i = 0; i < sizeof own / sizeof *own; i++)
		if (!strcmp(at, own[i]))
			return true;
	for (size_t i = 0; i < sizeof devices / sizeof *devices; i++)
		if (!strcmp(at, devices[i]) && is_device(at))
			return true;
	for (uint32_t i = 0; i < b->bind_n; i++)
		if (b->binds[i].writable && is_at_or_below(at, b->binds[i].at))
			return true;
	return false;
}

/* The next word of a line, ended by NUL; "\\040" is a blank. */
static char *
word(char **at)
{
	char *from = *at, *to = from, *start = from;

	while (*from && *from != ' ') {
		if (from[0] == '\\' && from[1] && from[2] && from[3]) {
			*to++ = (char)((from[1] - '0') << 6 | (from[2] - '0') << 3 |
				       (from[3] - '0'));
			from += 4;
		} else {
			*to++ = *from++;
		}
	}
	*at = *from ? from + 1 : from;
	*to = '\0';
	return start;
}

static bool
has_option(const char *options, const char *name)
{
	size_t n = strlen(name);

	for (const char *o = options; *o; o += *o == ',') {
		size_t len = 0;

		while (o[len] && o[len] != ',')
			len++;
		if (len == n && !strncmp(o, name, n))
			return true;
		o += len;
	}
	return false;
}

/* Devices are where the engine has put some, and in no directory of anybody's files
 * that it mounts there. rest: what follows the options. */
static bool
is_for_devices(const char *at, char *rest)
{
	static const char *const types[] = { "tmpfs", "devtmpfs", "devpts" };
	const char *type;

	if (!is_at_or_below(at, "/dev"))
		return false;
	while (*rest && strcmp(word(&rest), "-") != 0)
		;
	type = word(&rest);
	for (size_t i = 0; i < sizeof types / sizeof *types; i++)
		if (!strcmp(type, types[i]))
			return true;
	return is_device(at);
}

/* A line of mountinfo: id, parent, device, root, point, options. Engines have no word
 * for a set-user-id program or a device that a bind shows; those of /dev are devices.
 */
static int
shut_one(const struct kn_boot *b, char *line, const char **out_what)
{
	struct {
		uint64_t set, clear, propagation, userns_fd;
	} attr = { 0 };
	char *at, *options;
	long r;

	for (int i = 0; i < 4; i++)
		(void)word(&line);
	at = word(&line);
	options = word(&line);
	*out_what = at;
	if (!has_option(options, "nosuid"))
		attr.set |= MOUNT_ATTR_NOSUID;
	if (!has_option(options, "nodev") && !is_for_devices(at, line))
		attr.set |= MOUNT_ATTR_NODEV;
	if (has_option(options, "rw") && !may_be_written(b, at))
		attr.set |= MOUNT_ATTR_RDONLY;
	if (!attr.set)
		return 0;
	r = KN_SYS5(SYS_mount_setattr, AT_FDCWD, at, 0, &attr, sizeof attr);
	/* What something else is mounted upon nobody can reach. */
	if (!(attr.set & MOUNT_ATTR_RDONLY) &&
	    (r == -ENOENT || r == -EACCES || r == -EINVAL))
		return 0;
	return (int)r;
}

/* The machine's devices and modules, which an engine shows whoever asks. */
static int
cover_sys(const struct kn_boot *b)
{
	struct stat st;
	int r = kn_sys_stat(AT_FDCWD, "/sys", &st, AT_SYMLINK_NOFOLLOW);

	if (r < 0)
		return r == -ENOENT ? 0 : r;
	for (uint32_t i = 0; i < b->bind_n; i++)
		if (is_at_or_below(b->binds[i].at, "/sys"))
			return 0;
	return kn_sys_mount("tmpfs", "/sys", "tmpfs",
	    MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC, "mode=0555");
}

/* The socket in there hands ours to whoever connects with our uid, which tasks have:
 * one that waited in its queue would be the next worker. */
static int
cover_bridge(void)
{
	const char *const *args = kn_bare_args;
	char dir[64];
	size_t n;

	if (!args[0] || !args[1] || strcmp(args[1], "fetch") != 0)
		return 0;
	n = args[2] ? strlen(args[2]) : 0;
	while (n > 0 && args[2][n - 1] != '/')
		n--;
	if (n < 2 || n > sizeof dir)
		return -EINVAL;
	memcpy(dir, args[2], n - 1);
	dir[n - 1] = '\0';
	return kn_sys_mount("tmpfs", dir, "tmpfs",
	    MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC, "mode=0");
}

int
kn_nest_shut(const struct kn_boot *b, const char **out_what)
{
	static char buf[16 * 1024];
	int fd =
	    kn_sys_openat(AT_FDCWD, "/proc/self/mountinfo", O_RDONLY | O_CLOEXEC, 0);
	size_t have = 0;
	long r = fd;

	*out_what = "/proc/self/mountinfo";
	while (
	    fd >= 0 && (r = kn_sys_read(fd, buf + have, sizeof buf - 1 - have)) > 0) {
		char *line = buf, *end;

		have += (size_t)r;
		buf[have] = '\0';
		for (; (end = memchr(line, '\n', have - (size_t)(line - buf))) != NULL;
		     line = end + 1) {
			*end = '\0';
			r = shut_one(b, line, out_what);
			if (r < 0) {
				kn_sys_close(fd);
				return (int)r;
			}
		}
		have -= (size_t)(line - buf);
		memmove(buf, line, have);
		if (have == sizeof buf - 1) {
			r = -E2BIG;
			break;
		}
	}
	kn_sys_close(fd);
	if (r < 0)
		return (int)r;
	*out_what = "/sys";
	r = cover_sys(b);
	if (r < 0)
		return (int)r;
	*out_what = KN_STUB_BRIDGE;
	return cover_bridge();
}

int
kn_nest_die_with_parent(void)
{
	return (int)KN_SYS5(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
}
