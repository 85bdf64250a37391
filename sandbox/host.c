/* sandbox/host.c: what this machine offers, asked of the kernel and nobody else.
 *
 * Every question costs one or two system calls; no process is started. Whether a user
 * namespace can really be had is learned by the first launch, whose failure lack.h
 * turns into the setting to change; doctor.h asks for everything beforehand.
 */
#include "sandbox/host.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include "ipc/control.h"
#include "ipc/err.h"
#include "ipc/fd.h"
#include "sandbox/caps.h"
#include "sandbox/cgroup_find.h"
#include "sandbox/lack.h"
#include "sandbox/uid.h"

#ifndef SYS_mseal
#define SYS_mseal 462
#endif
#ifndef SYS_landlock_create_ruleset
#define SYS_landlock_create_ruleset 444
#endif
#ifndef LANDLOCK_CREATE_RULESET_VERSION
#define LANDLOCK_CREATE_RULESET_VERSION (1U << 0)
#endif

enum { MAP_TEXT_MAX = 16384, CPUS_MAX = 8192 };

static uint32_t
landlock_abi(void)
{
	long v = syscall(
	    SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);

	return v > 0 ? (uint32_t)v : 0;
}

static bool
have_mseal(void)
{
	/* An address that is no page boundary: EINVAL from a kernel that has it. */
	return syscall(SYS_mseal, 1ul, 1ul, ~0ul) < 0 && errno != ENOSYS;
}

static uint32_t
usable_cpus(void)
{
	cpu_set_t *set = CPU_ALLOC(CPUS_MAX);
	size_t n = CPU_ALLOC_SIZE(CPUS_MAX);
	int count = 0;

	if (set != NULL && sched_getaffinity(0, n, set) == 0)
		count = CPU_COUNT_S(n, set);
	CPU_FREE(set);
	return count > 0 ? (uint32_t)count : 1;
}

uint64_t
kn_host_memory(void)
{
	struct kn_cgroup_where w;
	struct sysinfo si;
	uint64_t total = UINT64_MAX, bound;

	if (sysinfo(&si) == 0)
		total = (uint64_t)si.totalram * si.mem_unit;
	if (kn_cgroup_where(&w, NULL) < 0)
		return total;
	bound = kn_cgroup_memory_bound(&w);
	return bound < total ? bound : total;
}

static int
read_small(const char *path, char *buf, size_t n)
{
	KN_OWN_FD int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t got = fd >= 0 ? read(fd, buf, n - 1) : -1;

	if (got < 0)
		return -1;
	buf[got] = '\0';
	return 0;
}

/* A helper that any user could replace is not run. */
static bool
runnable(const char *path, const char **out_why)
{
	struct stat st;

	*out_why = NULL;
	if (stat(path, &st) < 0)
		*out_why = strerror(errno);
	else if (!S_ISREG(st.st_mode))
		*out_why = "not a regular file";
	else if (access(path, X_OK) < 0)
		*out_why = "not executable";
	else if ((st.st_mode & S_IWOTH) != 0)
		*out_why = "writable by everybody";
	return *out_why == NULL;
}

bool
kn_host_find_program(const char *name, char *out, size_t n)
{
	static const char *const dirs[] = { "/usr/bin", "/usr/sbin", "/usr/local/bin",
		"/usr/local/sbin", "/bin", "/sbin" };
	const char *why;

	for (size_t i = 0; i < sizeof(dirs) / sizeof(dirs[0]); i++)
		if (snprintf(out, n, "%s/%s", dirs[i], name) < (int)n &&
		    runnable(out, &why))
			return true;
	if (n > 0)
		out[0] = '\0';
	return false;
}

int
kn_host_find_bwrap(char *out, size_t n, struct kn_err *e)
{
	/* Not the caller's PATH: a task of an earlier run may have planted a program
	 * in one of its directories. */
	static const char *const fixed[] = { "/usr/bin/bwrap", "/bin/bwrap",
		"/usr/local/bin/bwrap" };
	const char *env = getenv("KNIT_BWRAP"), *why, *saw = NULL, *saw_why = NULL;

	if (env != NULL && env[0] != '\0') {
		if (env[0] != '/') {
			kn_err_set(e, KN_EK_USAGE,
			    "environment variable KNIT_BWRAP: not an absolute path");
			kn_err_hint(e, "write its whole path, or unset KNIT_BWRAP");
			return -1;
		}
		if (strlen(env) >= n)
			return kn_err_set(e, KN_EK_USAGE,
			    "environment variable KNIT_BWRAP: longer than %zu bytes",
			    n - 1);
		if (!runnable(env, &why)) {
			char shown[200];

			kn_err_printable(
			    shown, (int)sizeof(shown), env, (int)strlen(env));
			kn_err_set(e, KN_EK_USAGE,
			    "environment variable KNIT_BWRAP: %s: %s", shown, why);
			kn_err_hint(
			    e, "name a bwrap that is there, or unset KNIT_BWRAP");
			return -1;
		}
		memcpy(out, env, strlen(env) + 1);
		return 0;
	}
	for (size_t i = 0; i < sizeof(fixed) / sizeof(fixed[0]); i++) {
		if (runnable(fixed[i], &why)) {
			snprintf(out, n, "%s", fixed[i]);
			return 0;
		}
		if (access(fixed[i], F_OK) == 0 && saw == NULL) {
			saw = fixed[i];
			saw_why = why;
		}
	}
	if (saw != NULL)
		kn_err_set(e, KN_EK_HOST, "bwrap: %s: %s", saw, saw_why);
	else
		kn_err_set(e, KN_EK_HOST,
		    "bwrap: not found in /usr/bin, /bin or /usr/local/bin");
	kn_lack_hint(KN_LACK_BWRAP_MISSING, geteuid() == 0, e);
	return -1;
}

/* Whether uid 0 here is the machine's. The kernel's own settings belong to that one: in
 * a user namespace that maps our 0 to somebody else they show another owner. */
static bool
is_host_root(uid_t uid)
{
	struct stat st;

	return stat("/proc/sys/kernel/core_pattern", &st) < 0 || st.st_uid == uid;
}

static void
probe_root(struct kn_host *h)
{
	char umap[MAP_TEXT_MAX], gmap[MAP_TEXT_MAX];
	struct kn_uid_range r;

	if (h->uid != 0)
		return;
	h->host_root = is_host_root(h->uid);
	if (!kn_caps_has(CAP_SETUID) || !kn_caps_has(CAP_SETGID) ||
	    read_small("/proc/self/uid_map", umap, sizeof(umap)) < 0 ||
	    read_small("/proc/self/gid_map", gmap, sizeof(gmap)) < 0 ||
	    kn_uid_choose(umap, gmap, getpid(), &r, NULL) < 0)
		return; /* of a namespace like "unshare --map-root-user": rootless */
	h->ids = true;
	h->root = kn_caps_has(CAP_SYS_ADMIN);
	h->worker_uid_base = r.base;
	h->worker_uid_n = r.n;
	h->maps_full = kn_uid_map_is_full(umap) && kn_uid_map_is_full(gmap);
}

/* A cell's filter says so of itself. In there no namespace can be made, whatever the
 * policy: better said now and by name than by the first call that fails. */
static bool
is_cell(void)
{
	return prctl(KN_CELL_PROBE, 0, 0, 0, 0) < 0 && errno == KN_CELL_PROBE_ERRNO;
}

int
kn_host_probe(struct kn_host *h, struct kn_err *e)
{
	memset(h, 0, sizeof(*h));
	if (is_cell()) {
		kn_err_set(e, KN_EK_HOST,
		    "this is the inside of a sandbox: no pool can be opened within a "
		    "pool");
		kn_lack_hint(KN_LACK_INSIDE_CELL, geteuid() == 0, e);
		return -1;
	}
	/* Ids, mounts, descriptors of the launch: without it each of them would look
	 * like a right that is missing. */
	if (access("/proc/self/fd", X_OK) < 0) {
		kn_err_sys(e, KN_EK_HOST, "/proc is not mounted: /proc/self/fd");
		kn_lack_hint(KN_LACK_PROC_MISSING, geteuid() == 0, e);
		return -1;
	}
	h->uid = geteuid();
	h->gid = getegid();
	h->landlock_abi = landlock_abi();
	h->mseal = have_mseal();
	h->cpus = usable_cpus();
	/* A machine without bwrap can still check a policy: the launcher refuses. */
	if (kn_host_find_bwrap(h->bwrap, sizeof(h->bwrap), NULL) < 0)
		h->bwrap[0] = '\0';
	probe_root(h);
	return 0;
}
