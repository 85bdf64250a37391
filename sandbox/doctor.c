/* sandbox/doctor.c: the list of probes, the children that take them, and what is only
 * read: limits, memory, and what this process runs in.
 */
#include "sandbox/doctor.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ipc/err.h"
#include "ipc/fd.h"
#include "sandbox/doctor_int.h"

enum {
	SECONDS = 10,	      /* that a probe has */
	NOFILE_ASKED = 1024,  /* /limits/task/nofile of the preset default */
	PROCESSES_ASKED = 32, /* at once: a worker, its cell, a small task */
	ARENA_MIB = 80,	      /* one worker's, with the preset's /payload/area */
	FREE_MIB = 256
};

static const struct {
	const char *name, *loses;
} probes[] = {
	[KN_PROBE_RUN] = { "run", "no task can be run" },
	[KN_PROBE_IDENTITY] = { "identity", "no worker can be started" },
	[KN_PROBE_BWRAP] = { "bwrap", "no worker can be started" },
	[KN_PROBE_USERNS] = { "user-namespace", "no worker can be started" },
	[KN_PROBE_NAMESPACES] = { "namespaces", "no worker can be started" },
	[KN_PROBE_MOUNT] = { "mount", "no worker can be started" },
	[KN_PROBE_PIVOT] = { "pivot-root", "no worker can be started" },
	[KN_PROBE_PROC] = { "proc", "no worker can be started" },
	[KN_PROBE_LOOPBACK] = { "loopback", "no network of a sandbox's own" },
	[KN_PROBE_NESTED] = { "nested-user-namespace", "no worker can be started" },
	[KN_PROBE_MEMFD] = { "memfd-exec", "no worker can be started" },
	[KN_PROBE_IDMAP] = { "idmapped-mounts",
	    "as root: no writable binds of that file system" },
	[KN_PROBE_SECCOMP] = { "seccomp", "no worker can be started" },
	[KN_PROBE_LISTENER] = { "seccomp-listener",
	    "refused calls are not told one by one" },
	[KN_PROBE_LANDLOCK] = { "landlock",
	    "the second wall around files, and around abstract sockets where a task "
	    "has the machine's network" },
	[KN_PROBE_MSEAL] = { "mseal",
	    "a module's task can take away its own view of the shared memory" },
	[KN_PROBE_OPENAT2] = { "openat2",
	    "tasks with files, what they keep, writable binds, and limits by cgroups" },
	[KN_PROBE_CG_MEMORY] = { "cgroup-memory",
	    "memory is watched, not capped; presets judge, convert and strict are "
	    "refused" },
	[KN_PROBE_CG_PIDS] = { "cgroup-pids", "processes are counted for the user" },
	[KN_PROBE_CG_CPU] = { "cgroup-cpu", "CPU time is added up by watching" },
	[KN_PROBE_CG_CPU_MAX] = { "cgroup-cpu-max", "limits.task.cpus is refused" },
	[KN_PROBE_CG_KILL] = { "cgroup-kill",
	    "the end of many processes takes longer" },
	[KN_PROBE_NOFILE] = { "open-files",
	    "tasks have fewer files than the presets say" },
	[KN_PROBE_PROCESSES] = { "processes", "few workers, or none" },
	[KN_PROBE_ARENA] = { "memory", "few workers, or none" },
	[KN_PROBE_SHM] = { "dev-shm", "nothing: tasks have one of their own" },
	[KN_PROBE_YAMA] = { "yama", "nothing" },
	[KN_PROBE_AROUND] = { "around", "no worker can be started" },
	[KN_PROBE_RUNTIMES] = { "container-runtimes",
	    "the launcher oci; bwrap needs none" },
};
_Static_assert(sizeof(probes) / sizeof(probes[0]) == KN_PROBE_N, "a row per probe");

const char *
kn_probe_name(enum kn_probe p)
{
	return probes[p].name;
}

const char *
kn_probe_loses(enum kn_probe p)
{
	return probes[p].loses;
}

const char *
kn_health_name(enum kn_health h)
{
	static const char *const names[] = { [KN_HEALTH_OK] = "ok",
		[KN_HEALTH_UNKNOWN] = "unknown",
		[KN_HEALTH_DEGRADED] = "degraded",
		[KN_HEALTH_REFUSED] = "refused" };

	return names[h];
}

/* ---- children ---- */

void *
kn_doctor_share(size_t n)
{
	void *p =
	    mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	return p != MAP_FAILED ? p : NULL;
}

void
kn_doctor_unshare(void *shared, size_t n)
{
	if (shared != NULL)
		munmap(shared, n);
}

int
kn_doctor_child(const struct kn_doctor *d,
    int (*fn)(const struct kn_doctor *d, void *shared), void *shared)
{
	pid_t parent = getpid(), pid = fork();
	int status;

	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
		if (getppid() != parent)
			_exit(1);
		alarm(SECONDS);
		_exit(fn(d, shared));
	}
	if (pid < 0)
		return -1;
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return -1;
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

int
kn_doctor_become_worker(const struct kn_doctor *d)
{
	uid_t uid = d->host.worker_uid_base;

	if (!d->host.root)
		return 0;
	if (syscall(SYS_setgroups, 0, NULL) < 0 ||
	    syscall(SYS_setresgid, uid, uid, uid) < 0 ||
	    syscall(SYS_setresuid, uid, uid, uid) < 0)
		return -1;
	/* Else /proc/self is root's, and no map can be written; an exec does the same.
	 */
	return prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
}

/* ---- findings ---- */

void
kn_doctor_ok(struct kn_doctor *d, enum kn_probe p, const char *fmt, ...)
{
	struct kn_finding *f = &d->f[p];
	va_list ap;

	memset(f, 0, sizeof(*f));
	va_start(ap, fmt);
	vsnprintf(f->detail, sizeof(f->detail), fmt, ap);
	va_end(ap);
}

void
kn_doctor_bad(struct kn_doctor *d, enum kn_probe p, enum kn_health h, enum kn_lack c,
    const char *fmt, ...)
{
	struct kn_finding *f = &d->f[p];
	va_list ap;

	memset(f, 0, sizeof(*f));
	f->health = h;
	f->cause = c;
	va_start(ap, fmt);
	vsnprintf(f->detail, sizeof(f->detail), fmt, ap);
	va_end(ap);
	kn_lack_fix(c, &d->around, geteuid() == 0, f->fix, sizeof(f->fix), &f->who);
}

void
kn_doctor_untried(struct kn_doctor *d, enum kn_probe p, const char *why)
{
	kn_doctor_ok(d, p, "not tried: %s", why);
	d->f[p].health = KN_HEALTH_UNKNOWN;
}

/* ---- limits and memory ---- */

/* -1: not tried */
struct room {
	int arena_sys, processes;
};

static int
ask_arena(const struct kn_doctor *d, void *shared)
{
	const size_t n = (size_t)ARENA_MIB << 20;
	struct room *x = shared;
	int fd = memfd_create("knit-probe", MFD_CLOEXEC);
	char *p = MAP_FAILED;

	(void)d;
	prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
	/* SIGXFSZ would end it before it can say why. */
	sigaction(SIGXFSZ, &(struct sigaction){ .sa_handler = SIG_IGN }, NULL);
	if (fd >= 0 && ftruncate(fd, (off_t)n) == 0)
		p = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	x->arena_sys = p == MAP_FAILED ? errno : 0;
	if (p != MAP_FAILED)
		p[0] = p[n - 1] = 1;
	return 0;
}

static int
ask_processes(const struct kn_doctor *d, void *shared)
{
	struct room *x = shared;
	pid_t pid[PROCESSES_ASKED];
	int n = 0;

	if (kn_doctor_become_worker(d) < 0)
		return 1;
	while (n < PROCESSES_ASKED && (pid[n] = fork()) >= 0) {
		if (pid[n] == 0) {
			prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
			pause();
			_exit(0);
		}
		n++;
	}
	x->processes = n;
	for (int i = 0; i < n; i++) {
		kill(pid[i], SIGKILL);
		waitpid(pid[i], NULL, 0);
	}
	return 0;
}

/* MiB that programs could get now, bounded by our own cgroup; 0: not told. */
static unsigned long
free_mib(void)
{
	KN_OWN_FD int fd = open("/proc/meminfo", O_RDONLY | O_CLOEXEC);
	char text[1024], *p;
	ssize_t n = fd >= 0 ? read(fd, text, sizeof(text) - 1) : -1;
	unsigned long mib, bound = (unsigned long)(kn_host_memory() >> 20);

	if (n <= 0)
		return 0;
	text[n] = '\0';
	p = strstr(text, "MemAvailable:");
	mib = p != NULL ? strtoul(p + sizeof("MemAvailable:") - 1, NULL, 10) >> 10 : 0;
	return mib < bound ? mib : bound;
}

static void
look_arena(struct kn_doctor *d, const struct room *x)
{
	unsigned long mib = free_mib();

	if (x->arena_sys > 0)
		kn_doctor_bad(d, KN_PROBE_ARENA, KN_HEALTH_REFUSED,
		    x->arena_sys == EFBIG ? KN_LACK_FILE_SIZE : KN_LACK_ADDRESS_SPACE,
		    "%d MiB to share with a worker: %s", ARENA_MIB,
		    strerror(x->arena_sys));
	else if (x->arena_sys < 0)
		kn_doctor_untried(d, KN_PROBE_ARENA, "no child");
	else if (mib != 0 && mib < FREE_MIB)
		kn_doctor_bad(d, KN_PROBE_ARENA, KN_HEALTH_DEGRADED, KN_LACK_MEMORY,
		    "%lu MiB are free", mib);
	else
		kn_doctor_ok(d, KN_PROBE_ARENA, "%lu MiB are free", mib);
}

static void
look_limits(struct kn_doctor *d, const struct room *x)
{
	struct rlimit r = { 0, 0 };

	getrlimit(RLIMIT_NOFILE, &r);
	if (r.rlim_max < NOFILE_ASKED)
		kn_doctor_bad(d, KN_PROBE_NOFILE, KN_HEALTH_DEGRADED, KN_LACK_NOFILE,
		    "hard limit %llu", (unsigned long long)r.rlim_max);
	else
		kn_doctor_ok(d, KN_PROBE_NOFILE, "hard limit %llu",
		    (unsigned long long)r.rlim_max);
	if (x->processes < 0)
		kn_doctor_untried(d, KN_PROBE_PROCESSES, "no child");
	else if (x->processes < PROCESSES_ASKED)
		kn_doctor_bad(d, KN_PROBE_PROCESSES,
		    x->processes < PROCESSES_ASKED / 4 ? KN_HEALTH_REFUSED
						       : KN_HEALTH_DEGRADED,
		    KN_LACK_PROCESSES, "no more than %d at once", x->processes);
	else
		kn_doctor_ok(d, KN_PROBE_PROCESSES, "%d at once", x->processes);
}

static void
look_room(struct kn_doctor *d)
{
	const struct room none = { -1, -1 };
	struct room *x = kn_doctor_share(sizeof(*x));

	if (x != NULL) {
		*x = none;
		kn_doctor_child(d, ask_arena, x);
		kn_doctor_child(d, ask_processes, x);
	}
	look_arena(d, x ? x : &none);
	look_limits(d, x ? x : &none);
	kn_doctor_unshare(x, sizeof(*x));
}

/* ---- what is only told ---- */

static void
look_around(struct kn_doctor *d)
{
	const struct kn_around *a = &d->around;
	char text[16] = "";
	KN_OWN_FD int fd =
	    open("/proc/sys/kernel/yama/ptrace_scope", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd >= 0 ? read(fd, text, sizeof(text) - 1) : -1;

	text[strcspn(text, "\n")] = '\0';
	kn_doctor_ok(d, KN_PROBE_YAMA, "%s%s", n > 0 ? "ptrace_scope " : "none", text);
	kn_doctor_ok(d, KN_PROBE_SHM, "%s",
	    access("/dev/shm", W_OK) == 0 ? "writable here"
					  : "not writable here; tasks have their own");
	if (a->wsl == 1) {
		kn_doctor_bad(
		    d, KN_PROBE_AROUND, KN_HEALTH_REFUSED, KN_LACK_WSL1, "WSL 1");
		return;
	}
	kn_doctor_ok(d, KN_PROBE_AROUND, "container: %s%s%s%s%s%s%s",
	    kn_inside_name(a->inside), a->wsl == 2 ? ", WSL 2" : "",
	    a->chrooted ? ", a chroot" : "",
	    a->filtered ? ", a system call filter" : "",
	    a->no_new_privs ? ", no_new_privs" : "", a->lsm[0] ? ", label " : "",
	    a->lsm);
}

void
kn_doctor_look(struct kn_doctor *d)
{
	struct kn_err e = { 0 };

	memset(d, 0, sizeof(*d));
	kn_around_look(&d->around);
	d->host_known = kn_host_probe(&d->host, &e) == 0;
	if (!d->host_known) {
		d->host.uid = geteuid();
		d->host.gid = getegid();
	}
	kn_doctor_ns(d);
	if (!d->host_known)
		kn_doctor_bad(d, KN_PROBE_IDENTITY, KN_HEALTH_REFUSED,
		    access("/proc/self/fd", X_OK) < 0 ? KN_LACK_PROC_MISSING
						      : KN_LACK_INSIDE_CELL,
		    "%s", e.msg);
	kn_doctor_program(d);
	kn_doctor_kernel(d);
	kn_doctor_cgroup(d);
	look_room(d);
	look_around(d);
	kn_doctor_untried(d, KN_PROBE_RUN, "not asked");
}
