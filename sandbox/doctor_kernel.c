/* sandbox/doctor_kernel.c: what of the kernel a worker's walls are made of: system call
 * filters, Landlock, sealed memory, files opened beneath a directory, a program in a
 * memory file; as root, files shown under another uid.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/openat2.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ipc/err.h"
#include "ipc/fd.h"
#include "sandbox/doctor_int.h"
#include "sandbox/idmap.h"

#ifndef SYS_mseal
#define SYS_mseal 462
#endif
#ifndef SYS_landlock_create_ruleset
#define SYS_landlock_create_ruleset 444
#define SYS_landlock_restrict_self 446
#endif

enum { UNTRIED = -1, PAGE = 4096, SCOPES_ABI = 6 };

extern const char kn_stub_image[], kn_stub_image_end[];

/* 0 went well, else its errno; UNTRIED. */
struct answers {
	int filter, listener, landlock, mseal, openat2, memfd, exec, idmap;
	unsigned actions; /* a bit per word of action[] */
	char where[64];	  /* the file system that idmap was tried on */
};

static const struct {
	const char *name;
	uint32_t value;
} action[] = {
	{ "kill_process", SECCOMP_RET_KILL_PROCESS },
	{ "kill_thread", SECCOMP_RET_KILL_THREAD },
	{ "errno", SECCOMP_RET_ERRNO },
	{ "log", SECCOMP_RET_LOG },
	{ "user_notif", SECCOMP_RET_USER_NOTIF },
};
enum { ACTION_N = sizeof(action) / sizeof(action[0]) };

static int
answer(long rc)
{
	return rc < 0 ? errno : 0;
}

/* ---- in children ---- */

static int
ask_filter(const struct kn_doctor *d, void *shared)
{
	struct sock_filter allow = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	struct sock_fprog prog = { .len = 1, .filter = &allow };
	struct answers *a = shared;
	int rc = kn_doctor_become_worker(d);

	if (rc == 0)
		rc = prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	if (rc == 0)
		rc = (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &prog);
	a->filter = answer(rc);
	for (int i = 0; i < ACTION_N; i++)
		if (syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0,
			&action[i].value) == 0)
			a->actions |= 1u << i;
	if (a->filter == 0)
		a->listener = answer(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
		    SECCOMP_FILTER_FLAG_NEW_LISTENER, &prog));
	return 0;
}

static int
ask_landlock(const struct kn_doctor *d, void *shared)
{
	uint64_t handled[1] = { 1 }; /* LANDLOCK_ACCESS_FS_EXECUTE */
	struct answers *a = shared;
	long fd;

	(void)d;
	fd = syscall(SYS_landlock_create_ruleset, handled, sizeof(handled), 0);
	if (fd >= 0 && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0)
		fd = syscall(SYS_landlock_restrict_self, (int)fd, 0);
	a->landlock = answer(fd);
	return 0;
}

/* A page that cannot be taken away any more. */
static int
ask_mseal(const struct kn_doctor *d, void *shared)
{
	struct answers *a = shared;
	void *p = mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	(void)d;
	if (p == MAP_FAILED)
		return 0;
	a->mseal = answer(syscall(SYS_mseal, p, (size_t)PAGE, 0ul));
	if (a->mseal == 0 && munmap(p, PAGE) == 0)
		a->mseal = ENOSYS; /* it answered, and did nothing */
	return 0;
}

/* As files of tasks and cgroups are opened. */
static int
ask_openat2(const struct kn_doctor *d, void *shared)
{
	struct open_how how = { .flags = O_PATH | O_DIRECTORY | O_CLOEXEC,
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS };
	int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct answers *a = shared;

	(void)d;
	if (root >= 0)
		a->openat2 = answer(syscall(SYS_openat2, root, ".", &how, sizeof(how)));
	return 0;
}

static int
exec_memfd(int fd)
{
	char path[32], *const argv[] = { path, NULL };
	int ends[2], err = 0;
	ssize_t n;
	pid_t pid;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return errno;
	pid = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		execv(path, argv);
		err = errno;
		n = write(ends[1], &err, sizeof(err));
		_exit(n > 0);
	}
	if (pid < 0)
		return errno;
	close(ends[1]);
	n = read(ends[0], &err, sizeof(err));
	kill(pid, SIGKILL); /* it lacks all that it needs, and ends anyway */
	waitpid(pid, NULL, 0);
	return n == 0 ? 0 : err;
}

static int
ask_memfd(const struct kn_doctor *d, void *shared)
{
	struct answers *a = shared;
	struct kn_err e = { 0 };
	int fd = kn_fd_sealed("knit-worker", kn_stub_image,
	    (size_t)(kn_stub_image_end - kn_stub_image), 1, &e);

	a->memfd = fd < 0 ? e.sys : 0;
	if (fd < 0)
		return 0;
	if (kn_doctor_become_worker(d) == 0)
		a->exec = exec_memfd(fd);
	return 0;
}

/* What binds need as root: here, and where temporary files go. */
static int
ask_idmap(const struct kn_doctor *d, void *shared)
{
	struct answers *a = shared;
	const char *where[] = { ".", "/tmp" };
	struct kn_err e = { 0 };
	int ns, fd, tree;
	bool at_idmap;

	if (kn_idmap_open(d->host.uid, d->host.gid, d->host.worker_uid_base,
		d->host.maps_full, &ns, &e) < 0) {
		a->idmap = e.sys;
		return 0;
	}
	for (size_t i = 0; i < sizeof(where) / sizeof(where[0]); i++) {
		fd = open(where[i], O_PATH | O_DIRECTORY | O_CLOEXEC);
		tree = fd < 0 ? -1 : kn_idmap_clone(fd, ns, &at_idmap);
		a->idmap = answer(tree);
		if (tree < 0) {
			snprintf(a->where, sizeof(a->where), "%s",
			    i == 0 ? "the current directory" : where[i]);
			return 0;
		}
	}
	return 0;
}

/* ---- findings ---- */

static void
say_filter(struct kn_doctor *d, const struct answers *a)
{
	char list[128] = "";
	size_t n = 0;

	for (int i = 0; i < ACTION_N; i++)
		if ((a->actions & 1u << i) != 0 && n < sizeof(list))
			n += (size_t)snprintf(list + n, sizeof(list) - n, "%s%s",
			    n ? " " : "", action[i].name);
	if (a->filter == UNTRIED)
		kn_doctor_untried(d, KN_PROBE_SECCOMP, "no child");
	else if (a->filter != 0)
		kn_doctor_bad(d, KN_PROBE_SECCOMP, KN_HEALTH_REFUSED, KN_LACK_SECCOMP,
		    "load a filter: %s", strerror(a->filter));
	else if ((a->actions & 7) != 7)
		kn_doctor_bad(d, KN_PROBE_SECCOMP, KN_HEALTH_REFUSED, KN_LACK_SECCOMP,
		    "only these actions: %s", list);
	else
		kn_doctor_ok(d, KN_PROBE_SECCOMP, "%s", list);
	if (a->listener == UNTRIED)
		kn_doctor_untried(d, KN_PROBE_LISTENER, "no filter to ask");
	else if (a->listener != 0)
		kn_doctor_bad(d, KN_PROBE_LISTENER, KN_HEALTH_DEGRADED,
		    KN_LACK_LISTENER, "a filter that asks: %s", strerror(a->listener));
	else
		kn_doctor_ok(d, KN_PROBE_LISTENER, "can be had");
}

/* EPERM: refused by name. ENOSYS: the kernel has it not, or a filter knows it not. */
static enum kn_lack
of_call(const struct kn_doctor *d, int sys, enum kn_lack kernel)
{
	if (sys == EPERM)
		return KN_LACK_FILTER;
	return sys == ENOSYS ? kn_lack_of_missing(kernel, &d->around) : kernel;
}

static void
say_landlock(struct kn_doctor *d, const struct answers *a)
{
	unsigned abi = d->host.landlock_abi;

	if (a->landlock == UNTRIED)
		kn_doctor_untried(d, KN_PROBE_LANDLOCK, "no child");
	else if (a->landlock != 0)
		kn_doctor_bad(d, KN_PROBE_LANDLOCK, KN_HEALTH_DEGRADED,
		    of_call(d, a->landlock, KN_LACK_LANDLOCK), "restrict oneself: %s",
		    strerror(a->landlock));
	else if (abi < SCOPES_ABI)
		kn_doctor_bad(d, KN_PROBE_LANDLOCK, KN_HEALTH_DEGRADED,
		    KN_LACK_LANDLOCK_SCOPES, "ABI %u", abi);
	else
		kn_doctor_ok(d, KN_PROBE_LANDLOCK, "ABI %u", abi);
}

static void
say_openat2(struct kn_doctor *d, const struct answers *a)
{
	if (a->openat2 == UNTRIED)
		kn_doctor_untried(d, KN_PROBE_OPENAT2, "no child");
	else if (a->openat2 != 0)
		kn_doctor_bad(d, KN_PROBE_OPENAT2, KN_HEALTH_DEGRADED, KN_LACK_OPENAT2,
		    "openat2: %s", strerror(a->openat2));
	else
		kn_doctor_ok(d, KN_PROBE_OPENAT2, "can be had");
}

static void
say_memory_files(struct kn_doctor *d, const struct answers *a)
{
	if (a->mseal == UNTRIED)
		kn_doctor_untried(d, KN_PROBE_MSEAL, "no child");
	else if (a->mseal != 0)
		kn_doctor_bad(d, KN_PROBE_MSEAL, KN_HEALTH_DEGRADED,
		    of_call(d, a->mseal, KN_LACK_MSEAL), "mseal: %s",
		    strerror(a->mseal));
	else
		kn_doctor_ok(d, KN_PROBE_MSEAL, "holds");
	if (a->memfd > 0 || a->exec > 0)
		kn_doctor_bad(d, KN_PROBE_MEMFD, KN_HEALTH_REFUSED, KN_LACK_MEMFD,
		    "%s: %s", a->memfd > 0 ? "make one" : "execute one",
		    strerror(a->memfd > 0 ? a->memfd : a->exec));
	else if (a->exec == UNTRIED)
		kn_doctor_untried(d, KN_PROBE_MEMFD, "no child");
	else
		kn_doctor_ok(d, KN_PROBE_MEMFD, "can be executed");
}

static void
say_idmap(struct kn_doctor *d, const struct answers *a)
{
	if (!d->host.root)
		kn_doctor_ok(d, KN_PROBE_IDMAP, "not needed: workers have your uid");
	else if (a->idmap == UNTRIED)
		kn_doctor_untried(d, KN_PROBE_IDMAP, "no child");
	else if (a->idmap != 0)
		kn_doctor_bad(d, KN_PROBE_IDMAP, KN_HEALTH_DEGRADED,
		    a->where[0] == '\0' ? kn_lack_of_userns(a->idmap, &d->around)
		    : a->idmap == EPERM ? KN_LACK_IDMAP_OWNER
					: KN_LACK_IDMAP,
		    "%s: %s", a->where[0] ? a->where : "make an id map",
		    strerror(a->idmap));
	else
		kn_doctor_ok(d, KN_PROBE_IDMAP, "the current directory, /tmp");
}

void
kn_doctor_kernel(struct kn_doctor *d)
{
	const struct answers none = { .filter = UNTRIED,
		.listener = UNTRIED,
		.landlock = UNTRIED,
		.mseal = UNTRIED,
		.openat2 = UNTRIED,
		.memfd = UNTRIED,
		.exec = UNTRIED,
		.idmap = UNTRIED };
	struct answers *a = kn_doctor_share(sizeof(*a));

	if (a != NULL) {
		*a = none;
		kn_doctor_child(d, ask_filter, a);
		kn_doctor_child(d, ask_landlock, a);
		kn_doctor_child(d, ask_mseal, a);
		kn_doctor_child(d, ask_openat2, a);
		kn_doctor_child(d, ask_memfd, a);
		if (d->host.root)
			kn_doctor_child(d, ask_idmap, a);
	}
	say_filter(d, a ? a : &none);
	say_landlock(d, a ? a : &none);
	say_openat2(d, a ? a : &none);
	say_memory_files(d, a ? a : &none);
	say_idmap(d, a ? a : &none);
	kn_doctor_unshare(a, sizeof(*a));
}
