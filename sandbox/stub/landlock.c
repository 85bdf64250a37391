/* sandbox/stub/landlock.c: the file rules of a task (sandbox/stub/wall.h).
 *
 * A second wall behind the mount namespace: a writable mount that stands where nobody
 * meant it to be is still not written to. The rules name a cell's own /tmp, /dev/shm
 * and /task, so they are made anew for each cell that has others than the one before:
 * one ruleset, about five rules. /proc needs none: it is mounted read-only, and reading
 * is allowed from / on.
 */
#include <errno.h>
#include <fcntl.h>

#include "sandbox/stub/overlay.h"
#include "sandbox/stub/sys.h"
#include "sandbox/stub/wall.h"

/* By number: the headers we build with may be older than the kernel we run on. */
#ifndef SYS_landlock_create_ruleset
#define SYS_landlock_create_ruleset 444
#define SYS_landlock_add_rule 445
#define SYS_landlock_restrict_self 446
#endif

enum { RULE_PATH_BENEATH = 1, ASK_VERSION = 1, ABI_NET = 4, ABI_SCOPES = 6 };

#define FS_EXECUTE (1ull << 0)
#define FS_WRITE_FILE (1ull << 1)
#define FS_READ_FILE (1ull << 2)
#define FS_READ_DIR (1ull << 3)
#define FS_ABI1 ((1ull << 13) - 1) /* the thirteen rights of the first version */
#define FS_REFER (1ull << 13)	   /* ABI 2 */
#define FS_TRUNCATE (1ull << 14)   /* ABI 3 */
#define FS_IOCTL_DEV (1ull << 15)  /* ABI 5 */
#define FS_OF_FILE \
	(FS_EXECUTE | FS_WRITE_FILE | FS_READ_FILE | FS_TRUNCATE | FS_IOCTL_DEV)
#define FS_READ (FS_EXECUTE | FS_READ_FILE | FS_READ_DIR)
#define SCOPE_ABSTRACT_UNIX (1ull << 0) /* ABI 6 */
#define SCOPE_SIGNAL (1ull << 1)
#define NET_TCP 3ull /* bind and connect, ABI 4 */

struct ruleset_attr {
	uint64_t handled_fs, handled_net, scoped;
};

struct path_attr {
	uint64_t allowed;
	int32_t parent_fd;
} __attribute__((packed));

static uint64_t
handled_fs(uint32_t abi)
{
	uint64_t all = FS_ABI1;

	if (abi >= 2)
		all |= FS_REFER;
	if (abi >= 3)
		all |= FS_TRUNCATE;
	if (abi >= 5)
		all |= FS_IOCTL_DEV;
	return all;
}

int
kn_wall_land_open(
    struct kn_land *l, uint32_t abi, const struct kn_boot_bind *binds, uint32_t bind_n)
{
	const int flags = O_PATH | O_CLOEXEC;

	l->abi = abi;
	l->ready_fd = -1;
	if (abi == 0)
		return 0;
	l->root_fd = kn_sys_openat(AT_FDCWD, "/", flags, 0);
	if (l->root_fd < 0)
		return l->root_fd;
	l->dev_fd = kn_sys_openat(AT_FDCWD, "/dev", flags, 0);
	if (l->dev_fd < 0)
		return l->dev_fd;
	for (uint32_t i = 0; i < bind_n; i++) {
		struct stat st;
		int fd;

		if (!binds[i].writable)
			continue;
		if (l->writable_n == KN_LAND_WRITABLE_MAX)
			return -E2BIG;
		fd = kn_sys_openat(AT_FDCWD, binds[i].at, flags, 0);
		if (fd < 0 || kn_sys_stat(fd, "", &st, AT_EMPTY_PATH) < 0)
			return fd < 0 ? fd : -EIO;
		l->writable_dir[l->writable_n] = S_ISDIR(st.st_mode);
		l->writable_fd[l->writable_n++] = fd;
	}
	return 0;
}

static int
allow(int ruleset, int fd, uint64_t access)
{
	struct path_attr p = { access, fd };

	return (int)KN_SYS4(SYS_landlock_add_rule, ruleset, RULE_PATH_BENEATH, &p, 0);
}

static int
allow_path(int ruleset, const char *path, uint64_t access)
{
	int fd = kn_sys_openat(AT_FDCWD, path, O_PATH | O_CLOEXEC, 0), r;

	if (fd < 0)
		return fd;
	r = allow(ruleset, fd, access);
	kn_sys_close(fd);
	return r;
}

static int
allow_programs(const struct kn_programs *p, int ruleset)
{
	int r = 0;

	for (uint32_t i = 0; r == 0 && i < p->n; i++)
		r = allow(ruleset, p->fd[i], FS_EXECUTE);
	return r;
}

static int
allow_all(const struct kn_land *l, const struct kn_programs *own, int ruleset)
{
	uint64_t all = handled_fs(l->abi) & ~(l->run_only ? FS_EXECUTE : 0);
	int r = allow(ruleset, l->root_fd, FS_READ & all);

	if (r == 0)
		r = allow(
		    ruleset, l->dev_fd, (FS_READ | FS_WRITE_FILE | FS_IOCTL_DEV) & all);
	if (r == 0 && l->run_only)
		r = allow_programs(&l->run, ruleset);
	if (r == 0 && own)
		r = allow_programs(own, ruleset);
	if (r == 0)
		r = allow_path(ruleset, "/tmp", all);
	if (r == 0)
		r = allow_path(ruleset, "/dev/shm", all);
	if (r == 0)
		r = allow_path(ruleset, "/task", all);
	for (uint32_t i = 0; r == 0 && i < l->overlays->n; i++)
		r = allow_path(ruleset, l->overlays->v[i].at, all);
	for (uint32_t i = 0; r == 0 && i < l->writable_n; i++)
		r = allow(ruleset, l->writable_fd[i],
		    l->writable_dir[i] ? all : all & FS_OF_FILE);
	return r;
}

static uint64_t
access_of(const struct kn_land_rule *r, uint64_t all)
{
	uint64_t a = r->what == KN_LAND_READ ? FS_READ
		     : r->what == KN_LAND_WRITE
			 ? ~0ull
			 : FS_READ_FILE | FS_WRITE_FILE | FS_IOCTL_DEV;

	return a & all & (r->is_dir ? ~0ull : FS_OF_FILE);
}

static int
allow_listed(const struct kn_land *l, int ruleset)
{
	int r = 0;

	for (uint32_t i = 0; r == 0 && i < l->rule_n; i++)
		r = allow(
		    ruleset, l->rule[i].fd, access_of(&l->rule[i], handled_fs(l->abi)));
	return r;
}

static int
create(uint32_t abi, struct ruleset_attr *a)
{
	size_t size = abi >= ABI_SCOPES ? sizeof *a
		      : abi >= ABI_NET	? offsetof(struct ruleset_attr, scoped)
					: sizeof a->handled_fs;

	if (abi >= ABI_SCOPES)
		a->scoped = SCOPE_ABSTRACT_UNIX | SCOPE_SIGNAL;
	return (int)KN_SYS3(SYS_landlock_create_ruleset, a, size, 0);
}

/* The rules for the file systems that stand here now: a descriptor. */
static int
make_rules(const struct kn_land *l, const struct kn_programs *own)
{
	struct ruleset_attr a = { handled_fs(l->abi), 0, 0 };
	int ruleset, r;

	if (l->no_tcp && l->abi >= ABI_NET)
		a.handled_net = NET_TCP;
	ruleset = create(l->abi, &a);
	if (ruleset < 0)
		return ruleset;
	r = l->direct ? allow_listed(l, ruleset) : allow_all(l, own, ruleset);
	if (r == 0)
		return ruleset;
	kn_sys_close(ruleset);
	return r;
}

void
kn_wall_land_prepare(struct kn_land *l, uint64_t made)
{
	if (l->abi == 0 || l->run_only || (l->ready_fd >= 0 && l->ready_made == made))
		return;
	kn_sys_close(l->ready_fd);
	l->ready_fd = make_rules(l, NULL);
	l->ready_made = made;
}

int
kn_wall_land_restrict(
    const struct kn_land *l, bool prepared, const struct kn_programs *own)
{
	bool made = !prepared || l->ready_fd < 0;
	int ruleset, r;

	if (l->abi == 0)
		return 0;
	ruleset = made ? make_rules(l, own) : l->ready_fd;
	if (ruleset < 0)
		return ruleset;
	r = (int)KN_SYS2(SYS_landlock_restrict_self, ruleset, 0);
	if (made)
		kn_sys_close(ruleset);
	/* Where signals are within the rules, one to init (of the same user) shows
	 * whether they hold. Signal 0 only asks. */
	if (r == 0 && l->abi >= ABI_SCOPES &&
	    kn_sys_kill(l->direct ? (int)KN_SYS0(SYS_getppid) : 1, 0) != -EPERM)
		return -EPERM;
	return r;
}

int
kn_wall_land_scopes(void)
{
	long abi = KN_SYS3(SYS_landlock_create_ruleset, NULL, 0, ASK_VERSION);
	struct ruleset_attr a = { 0, 0, 0 };

	return abi < ABI_SCOPES ? -EOPNOTSUPP : create((uint32_t)abi, &a);
}

int
kn_wall_land_enter(int rules)
{
	return (int)KN_SYS2(SYS_landlock_restrict_self, rules, 0);
}
