/* sandbox/lack_table.c: the one table of causes: what is wrong, which layer refuses,
 * and the one thing to do, for root, for an ordinary user, and for who starts the
 * container that we are in. A user without a fix of their own is told root's.
 */
#include "sandbox/lack.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum fix { ROOT, CALLER, DOCKER, PODMAN, KUBERNETES, LXC, FIX_N };

/* INSTALL stands for the command of this system that installs a package. */
#define INSTALL "%install "
/* Never without a profile: with the one in which a pool can work (export_around.c). */
#define PROFILE "knit-sandbox policy export --around >k.json; "
#define DOCKER_OPEN \
	PROFILE "docker run --user 1000 --security-opt seccomp=k.json --security-opt " \
		"apparmor=unconfined --security-opt systempaths=unconfined"
/* (AppArmor's is root's podman's) */
#define PODMAN_OPEN \
	PROFILE "podman run --security-opt seccomp=k.json --security-opt " \
		"apparmor=unconfined --security-opt unmask=ALL"
#define KUBERNETES_OPEN \
	"pod: hostUsers: false, procMount: Unmasked, appArmorProfile: {type: " \
	"Unconfined}, seccompProfile: {type: Localhost}: knit-sandbox policy export " \
	"--around"
#define LXC_OPEN "lxc config set NAME security.nesting true"
#define OPEN \
	[DOCKER] = DOCKER_OPEN, [PODMAN] = PODMAN_OPEN, \
	[KUBERNETES] = KUBERNETES_OPEN, [LXC] = LXC_OPEN
/* (a filter cannot look at a mode that lies in memory, so all of the call goes) */
#define OPENAT2_BY \
	"RestrictSUIDSGID= of systemd (DynamicUser= implies it) refuses openat2"
#define DELEGATE \
	"start it as root, or in a delegated cgroup: --delegate, where systemd has a " \
	"session of yours"

static const struct {
	const char *name, *what, *layer;
	const char *fix[FIX_N]; /* for a user without one of its own, root's */
} causes[] = {
	[KN_LACK_NONE] = { "none", "", "", { "" } },
	[KN_LACK_USERNS_MAX] = { "userns-max", "user namespaces are switched off here",
	    "sysctl user.max_user_namespaces",
	    { [ROOT] = "sysctl -w user.max_user_namespaces=15000" } },
	[KN_LACK_USERNS_CLONE] = { "userns-clone",
	    "unprivileged user namespaces are switched off here",
	    "sysctl kernel.unprivileged_userns_clone",
	    { [ROOT] = "sysctl -w kernel.unprivileged_userns_clone=1" } },
	[KN_LACK_USERNS_APPARMOR] = { "userns-apparmor",
	    "AppArmor restricts user namespaces here (or give bwrap a profile with "
	    "\"userns,\")",
	    "AppArmor, sysctl kernel.apparmor_restrict_unprivileged_userns",
	    { [ROOT] = "sysctl -w kernel.apparmor_restrict_unprivileged_userns=0" } },
	[KN_LACK_USERNS_KERNEL] = { "userns-kernel",
	    "this kernel has no user namespaces, or /proc is not mounted", "the kernel",
	    { [ROOT] = "boot a kernel with CONFIG_USER_NS=y" } },
	[KN_LACK_FILTER] = { "filter",
	    "a system call filter around it refuses what makes user namespaces",
	    "the seccomp profile of what it runs in",
	    { [ROOT] = "start it outside, or let that profile allow unshare, clone, "
		       "clone3, mount, umount2, pivot_root and sethostname",
		OPEN } },
	[KN_LACK_FILTER_NEWER] = { "filter-newer",
	    "a system call filter around it does not know a call that the kernel has",
	    "the seccomp profile of what it runs in, or the library that loads it",
	    { [ROOT] = "start it outside, or with a runtime whose libseccomp is 2.6 or "
		       "later" } },
	[KN_LACK_CHROOT] = { "chroot",
	    "user namespaces cannot be made in a chroot, which this seems to be",
	    "the kernel, chroot",
	    { [ROOT] = "start it outside of the chroot, or enter that root with "
		       "pivot_root (systemd-nspawn -D DIR)" } },
	[KN_LACK_LSM] = { "lsm",
	    "a security module (AppArmor, SELinux) refuses that here",
	    "the security module's profile of this process",
	    { [ROOT] = "let that profile allow it (dmesg and /var/log/audit name it)",
		OPEN } },
	[KN_LACK_USERNS_OTHER] = { "userns-other",
	    "user namespaces seem to be allowed by the kernel's settings",
	    "not told by the kernel: a security module or a container's profile",
	    { [ROOT] = "inside a container, its profile must allow unshare, mount and "
		       "pivot_root",
		[CALLER] = "inside a container, its profile must allow unshare, mount "
			   "and pivot_root (or start it outside one)",
		OPEN } },
	[KN_LACK_NS_LIMIT] = { "namespace-limit",
	    "a limit on the number of namespaces may be met, or what bwrap writes to "
	    "is full",
	    "sysctl user.max_*_namespaces",
	    { [ROOT] = "sysctl user | grep max_, and raise the smallest with sysctl "
		       "-w" } },
	[KN_LACK_PROCESSES] = { "processes",
	    "as many processes as this user may have are there already (ulimit -u), or "
	    "as many as its cgroup may (pids.max)",
	    "the limit of processes",
	    { [ROOT] = "fewer workers, or a higher limit: ulimit -u 4096",
		[CALLER] = "fewer workers, or a higher limit: ulimit -u 4096" } },
	[KN_LACK_PROC_MASKED] = { "proc-masked",
	    "a fresh /proc is refused here: in a container, its own must not be "
	    "masked",
	    "the kernel: /proc around it is covered in places",
	    { [ROOT] = "start it where /proc is whole (docker: --security-opt "
		       "systempaths=unconfined)",
		OPEN } },
	[KN_LACK_PROC_MISSING] = { "proc-missing", "/proc is not mounted",
	    "the file system", { [ROOT] = "mount -t proc proc /proc" } },
	[KN_LACK_LOOPBACK] = { "loopback",
	    "the loopback device of a new network namespace could not be set up; a "
	    "container's profile must allow it",
	    "the profile of what it runs in",
	    { [ROOT] = "share the network: --network host",
		[CALLER] = "share the network: --network host" } },
	[KN_LACK_MOUNT] = { "mount", "mount is refused here",
	    "the profile of what it runs in",
	    { [ROOT] = "a container's profile must allow it", OPEN } },
	[KN_LACK_PIVOT_ROOT] = { "pivot-root",
	    "pivot_root is refused here, as on an initramfs", "the kernel",
	    { [ROOT] = "start it from a real root filesystem (switch_root)", OPEN } },
	[KN_LACK_BWRAP_MISSING] = { "bwrap-missing",
	    "the program bwrap is not in /usr/bin, /bin or /usr/local/bin",
	    "this system's packages",
	    { [ROOT] = INSTALL "bubblewrap",
		[CALLER] = "install the package \"bubblewrap\" (as root: " INSTALL
			   "bubblewrap), or set KNIT_BWRAP to its absolute path" } },
	[KN_LACK_BWRAP_OLD] = { "bwrap-old", "bubblewrap 0.8.0 or later is needed",
	    "this system's packages",
	    { [ROOT] = INSTALL "bubblewrap, or set KNIT_BWRAP to a newer one" } },
	[KN_LACK_BWRAP_NAMED] = { "bwrap-named",
	    "KNIT_BWRAP names what is no bubblewrap that works", "the environment",
	    { [ROOT] = "unset KNIT_BWRAP", [CALLER] = "unset KNIT_BWRAP" } },
	[KN_LACK_BWRAP_BROKEN] = { "bwrap-broken",
	    "what is installed as bwrap is no bubblewrap that works",
	    "this system's packages", { [ROOT] = INSTALL "--reinstall bubblewrap" } },
	[KN_LACK_BWRAP_SETUID] = { "bwrap-setuid",
	    "bwrap is set-user-id, and so gives no capability in its own namespace",
	    "bubblewrap's set-user-id mode",
	    { [ROOT] = "chmod u-s \"$(command -v bwrap)\"",
		[CALLER] = "cp /usr/bin/bwrap ~/bwrap && export KNIT_BWRAP=~/bwrap" } },
	[KN_LACK_BWRAP_UNREACHABLE] = { "bwrap-unreachable",
	    "workers have a uid of their own, which may not execute bwrap where it is",
	    "file modes",
	    { [ROOT] = "chmod a+rx it and the folders above, or set KNIT_BWRAP" } },
	[KN_LACK_MEMFD] = { "memfd",
	    "the worker is started from a memory file, and that is refused here",
	    "sysctl vm.memfd_noexec", { [ROOT] = "sysctl -w vm.memfd_noexec=1" } },
	[KN_LACK_ROOT_POWERLESS] = { "root-powerless",
	    "workers would run as the machine's uid 0: no CAP_SETUID or CAP_SYS_ADMIN",
	    "the capabilities of this process",
	    { [ROOT] = "start it as an ordinary user",
		[DOCKER] = DOCKER_OPEN,
		[KUBERNETES] = "in the pod: securityContext: {runAsUser: 1000}",
		[PODMAN] = "podman run --user 1000" } },
	[KN_LACK_ROOT_NO_IDS] = { "root-no-ids",
	    "no unprivileged uid is mapped in this user namespace for workers",
	    "the user namespace's id map",
	    { [ROOT] = "start it as an ordinary user, or map more ids (newuidmap, a "
		       "container's subordinate ids)" } },
	[KN_LACK_NOT_ROOT] = { "not-root",
	    "only root can give workers a host uid of their own", "the kernel",
	    { [ROOT] = "start it as root, or remove \"uid\" from /require",
		[CALLER] = "start it as root, or remove \"uid\" from /require" } },
	[KN_LACK_IDMAP] = { "idmap",
	    "this file system cannot show files under another uid (idmapped mounts)",
	    "the file system",
	    { [ROOT] = "bind directories of ext4, xfs, btrfs or (Linux 6.3) tmpfs, or "
		       "read-only ones, or start it as an ordinary user" } },
	[KN_LACK_IDMAP_OWNER] = { "idmap-owner",
	    "this user namespace does not own the file system", "the kernel",
	    { [ROOT] = "start it as an ordinary user, or as root of the machine" } },
	[KN_LACK_SECCOMP] = { "seccomp", "no system call filter can be had here",
	    "the kernel, or a filter around it",
	    { [ROOT] = "boot a kernel with CONFIG_SECCOMP_FILTER=y", OPEN } },
	[KN_LACK_LISTENER] = { "seccomp-listener",
	    "no filter that asks its supervisor can be had here",
	    "the kernel, or a filter around it that has one",
	    { [ROOT] = "start it outside of a container or tool that has such a filter "
		       "(Linux 5.0 or later)" } },
	[KN_LACK_LANDLOCK] = { "landlock", "this kernel has no Landlock", "the kernel",
	    { [ROOT] = "boot with \"landlock\" in the lsm= list (Linux 5.13 or later)",
		[CALLER] = "boot with \"landlock\" in the lsm= list (Linux 5.13 or "
			   "later)" } },
	[KN_LACK_LANDLOCK_SCOPES] = { "landlock-scopes",
	    "this kernel's Landlock has no scopes", "the kernel",
	    { [ROOT] = "they came with Linux 6.12",
		[CALLER] = "they came with Linux 6.12" } },
	[KN_LACK_LANDLOCK_TRUNCATE] = { "landlock-truncate",
	    "this kernel's Landlock does not refuse truncation", "the kernel",
	    { [ROOT] = "that came with Linux 6.2",
		[CALLER] = "that came with Linux 6.2" } },
	[KN_LACK_MSEAL] = { "mseal", "this kernel has no mseal", "the kernel",
	    { [ROOT] = "it came with Linux 6.10",
		[CALLER] = "it came with Linux 6.10" } },
	[KN_LACK_OPENAT2] = { "openat2",
	    "openat2, which files and cgroups need, is refused",
	    "a system call filter around it",
	    { [ROOT] = OPENAT2_BY ": give the unit a User= and neither of them",
		[CALLER] = OPENAT2_BY ": give the unit a User= and neither of them",
		[DOCKER] = DOCKER_OPEN,
		[PODMAN] = PODMAN_OPEN,
		[KUBERNETES] = KUBERNETES_OPEN } },
	[KN_LACK_CGROUP_ABSENT] = { "cgroup-absent",
	    "no cgroup hierarchy is mounted here that shows this process's group",
	    "the file system: /sys/fs/cgroup",
	    { [ROOT] = "mount -t cgroup2 none /sys/fs/cgroup",
		[DOCKER] = "docker run --cgroupns private" } },
	[KN_LACK_CGROUP_COVERED] = { "cgroup-covered",
	    "something is mounted over the cgroup hierarchies",
	    "the file system: /sys/fs/cgroup", { [ROOT] = "umount /sys/fs/cgroup" } },
	[KN_LACK_CGROUP_READONLY] = { "cgroup-readonly",
	    "the cgroup hierarchy is mounted read-only", "the mount of /sys/fs/cgroup",
	    { [ROOT] = "mount -o remount,bind,rw /sys/fs/cgroup",
		[DOCKER] = "docker run --security-opt writable-cgroups=true (Docker 28 "
			   "or later)",
		[KUBERNETES] = "pod: runtimeClassName of a runtime with "
			       "cgroup_writable = true (containerd 2.1 or later)",
		[PODMAN] = "podman run --security-opt unmask=/sys/fs/cgroup" } },
	[KN_LACK_CGROUP_DENIED] = { "cgroup-denied",
	    "no cgroup is delegated to this user", "the modes of its cgroup",
	    { [ROOT] = DELEGATE,
		[CALLER] = DELEGATE,
		/* (a container's group belongs to its root, who is that user) */
		[PODMAN] = "as an ordinary user, and without --user: podman run "
			   "--security-opt unmask=ALL" } },
	[KN_LACK_CGROUP_CONTROLLER] = { "cgroup-controller",
	    "the controller is not handed down to this process's cgroup",
	    "the cgroup above", { [ROOT] = DELEGATE, [CALLER] = DELEGATE } },
	[KN_LACK_CGROUP_KILL] = { "cgroup-kill", "there is no cgroup.kill",
	    "the kernel (it came with Linux 5.14, cgroup v2)",
	    { [ROOT] = "mount -t cgroup2 none /sys/fs/cgroup/unified" } },
	[KN_LACK_NOFILE] = { "nofile",
	    "the hard limit of open files is below what tasks are given",
	    "the limit of open files",
	    { [ROOT] = "ulimit -Hn 4096", [CALLER] = "LimitNOFILE=, limits.conf" } },
	[KN_LACK_FILE_SIZE] = { "file-size", "the limit of file sizes is too small",
	    "ulimit -f",
	    { [ROOT] = "ulimit -f unlimited", [CALLER] = "ulimit -f unlimited" } },
	[KN_LACK_ADDRESS_SPACE] = { "address-space",
	    "the limit of address space is too small", "ulimit -v",
	    { [ROOT] = "ulimit -v unlimited", [CALLER] = "ulimit -v unlimited" } },
	[KN_LACK_MEMORY] = { "memory", "too little memory is free",
	    "the machine, or the memory limit around it",
	    { [ROOT] = "fewer workers (--workers 1), or a higher memory.max",
		[CALLER] = "fewer workers (--workers 1), or a higher memory.max" } },
	[KN_LACK_INSIDE_CELL] = { "inside-cell",
	    "this is the inside of a sandbox of ours: no pool can be opened in a pool",
	    "knit-sandbox",
	    { [ROOT] = "hand the task to the pool outside",
		[CALLER] = "hand the task to the pool outside" } },
	[KN_LACK_WSL1] = { "wsl1", "WSL 1 has no Linux kernel", "WSL",
	    { [ROOT] = "wsl --set-version NAME 2 (in Windows)",
		[CALLER] = "wsl --set-version NAME 2 (in Windows)" } },
	[KN_LACK_LAUNCHER] = { "launcher", "this launcher cannot give it",
	    "what starts the workers", { [ROOT] = "--launcher bwrap" } },
	[KN_LACK_RUNTIME_MISSING] = { "runtime-missing",
	    "there is no OCI runtime in a system directory", "the launcher oci",
	    { [ROOT] = INSTALL "runc" } },
};
_Static_assert(sizeof(causes) / sizeof(causes[0]) == KN_LACK_N, "a row per cause");

const char *
kn_lack_name(enum kn_lack c)
{
	return causes[c].name;
}

const char *
kn_lack_what(enum kn_lack c)
{
	return causes[c].what;
}

const char *
kn_lack_layer(enum kn_lack c)
{
	return causes[c].layer;
}

const char *
kn_lack_openat2_text(int sys)
{
	return kn_lack_openat2(sys) ? "; " OPENAT2_BY ", or another filter does" : "";
}

/* How this system installs a package. */
static const char *
installer(void)
{
	static const char *const known[][2] = {
		{ "/usr/bin/apt-get", "apt-get install " },
		{ "/usr/bin/dnf", "dnf install " },
		{ "/sbin/apk", "apk add " },
		{ "/usr/bin/pacman", "pacman -S " },
		{ "/usr/bin/zypper", "zypper install " },
	};

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (access(known[i][0], X_OK) == 0)
			return known[i][1];
	return "install the package ";
}

static enum fix
fix_of_container(enum kn_inside inside)
{
	static const enum fix by[KN_INSIDE_N] = {
		[KN_INSIDE_DOCKER] = DOCKER,
		[KN_INSIDE_PODMAN] = PODMAN,
		[KN_INSIDE_KUBERNETES] = KUBERNETES,
		[KN_INSIDE_LXC] = LXC,
	};

	return by[inside]; /* ROOT: none of those */
}

void
kn_lack_fix(enum kn_lack c, const struct kn_around *a, bool root, char *out, size_t n,
    enum kn_who *who)
{
	enum fix f = fix_of_container(a->inside);
	const char *text, *install;

	if (f != ROOT && causes[c].fix[f] != NULL) {
		*who = KN_WHO_CONTAINER;
	} else if (!root && causes[c].fix[CALLER] != NULL) {
		f = CALLER;
		*who = KN_WHO_CALLER;
	} else {
		f = ROOT;
		*who = root ? KN_WHO_CALLER : KN_WHO_ROOT;
	}
	text = causes[c].fix[f];
	install = strstr(text, INSTALL);
	if (install == NULL)
		snprintf(out, n, "%s", text);
	else
		snprintf(out, n, "%.*s%s%s", (int)(install - text), text, installer(),
		    install + sizeof(INSTALL) - 1);
}
