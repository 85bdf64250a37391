/* sandbox/filter_groups.c: the named groups of system calls, after systemd's sets where
 * it has one of that name. A member may be another group. Names that this architecture
 * lacks are skipped. Refusals in filter_guard.c hold inside a group; of some groups
 * nothing is left then, and those are for rules only.
 *
 * Smaller than systemd's on purpose: @resources has no memory policies and no
 * sched_setattr(), whose policy is in memory, out of a filter's sight.
 */
#include <string.h>

#include "ipc/err.h"
#include "sandbox/filter_int.h"

#define G(...) \
	(const char *const[]) \
	{ \
		__VA_ARGS__, NULL \
	}

/* clang-format off */
const struct kn_fgroup kn_filter_groups[] = {
	/* What every program does, before main() and after. */
	{ "@default", G("arch_prctl", "brk", "cacheflush", "clock_getres",
		"clock_getres_time64",
		"clock_gettime", "clock_gettime64", "clock_nanosleep",
		"clock_nanosleep_time64", "execve", "exit", "exit_group", "futex",
		"futex_time64", "futex_waitv", "futex_wake", "futex_wait",
		"futex_requeue", "get_robust_list", "get_thread_area", "getcpu",
		"getegid", "getegid32", "geteuid", "geteuid32", "getgid", "getgid32",
		"getgroups", "getgroups32", "getpgid", "getpgrp", "getpid", "getppid",
		"getrandom", "getresgid", "getresgid32", "getresuid", "getresuid32",
		"getrlimit", "getsid", "gettid", "gettimeofday", "getuid", "getuid32",
		"madvise", "map_shadow_stack", "membarrier", "mincore", "mmap", "mmap2",
		"mprotect", "mremap", "munmap", "nanosleep", "pause", "prlimit64",
		"restart_syscall", "riscv_flush_icache", "rseq",
		"rt_sigreturn", "sched_getaffinity", "sched_yield", "set_robust_list",
		"set_thread_area", "set_tid_address", "set_tls", "sigreturn", "time",
		"ugetrlimit") },
	{ "@basic-io", G("_llseek", "close", "close_range", "dup", "dup2", "dup3",
		"lseek", "pread64", "preadv", "preadv2", "pwrite64", "pwritev",
		"pwritev2", "read", "readv", "write", "writev") },
	{ "@file-system", G("access", "chdir", "chmod", "copy_file_range", "creat",
		"faccessat", "faccessat2", "fadvise64", "fadvise64_64", "fallocate",
		"file_getattr", "file_setattr", "openat2", "readdir",
		"fchdir", "fchmod", "fchmodat", "fchmodat2", "fcntl", "fcntl64",
		"fgetxattr", "flistxattr", "flock", "fremovexattr", "fsetxattr", "fstat",
		"fstat64", "fstatat64", "fstatfs", "fstatfs64", "ftruncate",
		"ftruncate64", "futimesat", "getcwd", "getdents", "getdents64",
		"getxattr", "getxattrat", "inotify_add_watch", "inotify_init",
		"inotify_init1", "inotify_rm_watch", "lgetxattr", "link", "linkat",
		"listxattr", "listxattrat", "llistxattr", "lremovexattr", "lsetxattr",
		"lstat", "lstat64", "mkdir", "mkdirat", "mknod", "mknodat", "newfstatat",
		"oldfstat", "oldlstat", "oldstat", "open", "openat", "readahead",
		"readlink", "readlinkat", "removexattr", "removexattrat", "rename",
		"renameat", "renameat2", "rmdir", "sendfile", "sendfile64", "setxattr",
		"setxattrat", "splice", "stat", "stat64", "statfs", "statfs64", "statx",
		"symlink", "symlinkat", "tee", "truncate", "truncate64", "umask",
		"unlink", "unlinkat", "utime", "utimensat", "utimensat_time64",
		"utimes") },
	/* Calls on descriptors of terminals and devices. */
	{ "@ioctl", G("ioctl") },
	{ "@chown", G("chown", "chown32", "fchown", "fchown32", "fchownat", "lchown",
		"lchown32") },
	{ "@io-event", G("_newselect", "epoll_create", "epoll_create1", "epoll_ctl",
		"epoll_ctl_old", "epoll_pwait", "epoll_pwait2", "epoll_wait",
		"epoll_wait_old", "eventfd", "eventfd2", "poll", "ppoll",
		"ppoll_time64", "pselect6", "pselect6_time64", "select") },
	{ "@aio", G("io_cancel", "io_destroy", "io_getevents", "io_pgetevents",
		"io_pgetevents_time64", "io_setup", "io_submit") },
	{ "@ipc", G("ipc", "memfd_create", "mq_getsetattr", "mq_notify", "mq_open",
		"mq_timedreceive", "mq_timedreceive_time64", "mq_timedsend",
		"mq_timedsend_time64", "mq_unlink", "msgctl", "msgget", "msgrcv",
		"msgsnd", "pipe", "pipe2", "semctl", "semget", "semop", "semtimedop",
		"semtimedop_time64", "shmat", "shmctl", "shmdt", "shmget") },
	{ "@pipe", G("pipe", "pipe2") },
	{ "@process", G("capget", "clone", "execveat", "fork", "getpriority",
		"getrusage", "kill", "pidfd_open", "pidfd_send_signal", "prctl",
		"rt_sigqueueinfo", "rt_tgsigqueueinfo", "setpgid", "setsid", "swapcontext",
		"sysinfo", "clone3", "olduname", "oldolduname",
		"tgkill", "times", "tkill", "uname", "unshare", "vfork", "wait4",
		"waitid", "waitpid") },
	/* Threads, without new processes. A filter cannot tell the two apart in full:
	 * clone() with CLONE_THREAD is a rule's business. */
	{ "@threads", G("clone", "futex", "futex_time64", "futex_waitv", "futex_wake",
		"futex_wait", "futex_requeue", "get_robust_list", "gettid", "membarrier",
		"rseq", "sched_yield", "set_robust_list", "set_tid_address", "tgkill") },
	{ "@signal", G("rt_sigaction", "rt_sigpending", "rt_sigprocmask",
		"rt_sigsuspend", "rt_sigtimedwait", "rt_sigtimedwait_time64",
		"sigaction", "sigaltstack", "signal", "signalfd", "signalfd4",
		"sigpending", "sigprocmask", "sigsuspend") },
	{ "@timer", G("alarm", "getitimer", "setitimer", "timer_create",
		"timer_delete", "timer_getoverrun", "timer_gettime", "timer_gettime64",
		"timer_settime", "timer_settime64", "timerfd_create",
		"timerfd_gettime", "timerfd_gettime64", "timerfd_settime",
		"timerfd_settime64") },
	/* Families are the guard's business: without a network only AF_UNIX. */
	{ "@network-io", G("accept", "accept4", "bind", "connect", "getpeername",
		"getsockname", "getsockopt", "listen", "recv", "recvfrom", "recvmmsg",
		"recvmmsg_time64", "recvmsg", "send", "sendmmsg", "sendmsg", "sendto",
		"setsockopt", "shutdown", "socket", "socketcall", "socketpair") },
	{ "@sync", G("fdatasync", "fsync", "msync", "sync", "sync_file_range",
		"sync_file_range2", "syncfs") },
	{ "@memlock", G("mlock", "mlock2", "mlockall", "munlock", "munlockall") },
	{ "@resources", G("ioprio_get", "ioprio_set", "nice", "sched_get_priority_max",
		"sched_get_priority_min", "sched_getattr", "sched_getparam",
		"sched_getscheduler", "sched_rr_get_interval",
		"sched_rr_get_interval_time64", "sched_setaffinity", "sched_setparam",
		"sched_setscheduler", "setpriority", "setrlimit") },
	/* To the one id that exists inside, or not at all. */
	{ "@setuid", G("capset", "setfsgid", "setfsgid32", "setfsuid", "setfsuid32",
		"setgid", "setgid32", "setgroups", "setgroups32", "setregid",
		"setregid32", "setresgid", "setresgid32", "setresuid", "setresuid32",
		"setreuid", "setreuid32", "setuid", "setuid32") },
	/* A program that confines itself further. */
	{ "@sandbox", G("landlock_add_rule", "landlock_create_ruleset",
		"landlock_restrict_self", "mseal", "seccomp") },
	{ "@pkey", G("pkey_alloc", "pkey_free", "pkey_mprotect") },
	{ "@execve", G("execve", "execveat") },
	{ "@personality", G("personality") },
	/* What a daemon of systemd's has, by and large. */
	{ "@system-service", G("@aio", "@basic-io", "@chown", "@default", "@file-system",
		"@io-event", "@ipc", "@memlock", "@network-io", "@process", "@resources",
		"@setuid", "@signal", "@sync", "@timer", "@ioctl", "@personality",
		"get_mempolicy") },
	{ "@obsolete", G("_sysctl", "afs_syscall", "bdflush", "break", "ftime",
		"get_kernel_syms", "getpmsg", "gtty", "idle", "lock", "mpx", "prof",
		"profil", "putpmsg", "query_module", "security", "sgetmask", "ssetmask",
		"stty", "sysfs", "tuxcall", "ulimit", "uselib", "ustat", "vserver") },
	/* Nothing but what is always refused: for rules. */
	{ "@clock", G("adjtimex", "clock_adjtime", "clock_adjtime64", "clock_settime",
		"clock_settime64", "settimeofday", "stime") },
	{ "@cpu-emulation", G("modify_ldt", "vm86", "vm86old") },
	{ "@debug", G("perf_event_open", "pidfd_getfd", "ptrace", "process_vm_readv",
		"process_vm_writev", "kcmp") },
	{ "@keyring", G("add_key", "keyctl", "request_key") },
	{ "@module", G("delete_module", "finit_module", "init_module") },
	{ "@mount", G("chroot", "fsconfig", "fsmount", "fsopen", "fspick", "listmount",
		"mount", "mount_setattr", "move_mount", "open_tree", "open_tree_attr",
		"pivot_root", "statmount", "umount", "umount2") },
	{ "@raw-io", G("ioperm", "iopl") },
	{ "@reboot", G("kexec_file_load", "kexec_load", "reboot") },
	{ "@swap", G("swapoff", "swapon") },
	{ "@privileged", G("@chown", "@clock", "@module", "@raw-io", "@reboot", "@swap",
		"_sysctl", "acct", "bpf", "capset", "chroot", "fanotify_init",
		"fanotify_mark", "nfsservctl", "open_by_handle_at", "pivot_root",
		"quotactl", "quotactl_fd", "setdomainname", "setfsuid", "setfsuid32",
		"setgroups", "setgroups32", "sethostname", "setresuid", "setresuid32",
		"setreuid", "setreuid32", "setuid", "setuid32", "vhangup") },
	/* Every call that has a name here. */
	{ "@known", G("*") },
};
/* clang-format on */
const size_t kn_filter_group_n = sizeof kn_filter_groups / sizeof *kn_filter_groups;

const struct kn_fgroup *
kn_filter_group(const char *name)
{
	for (size_t i = 0; i < kn_filter_group_n; i++)
		if (strcmp(kn_filter_groups[i].name, name) == 0)
			return &kn_filter_groups[i];
	return NULL;
}

bool
kn_filter_group_has(const char *group, const char *call)
{
	const struct kn_fgroup *g = kn_filter_group(group);
	for (const char *const *c = g ? g->calls : NULL; c && *c; c++)
		if (strcmp(*c, call) == 0 || strcmp(*c, "*") == 0 ||
		    (**c == '@' && kn_filter_group_has(*c, call)))
			return true;
	return false;
}

/* Refused in every form, whatever groups say? */
static bool
is_guarded(const char *call)
{
	for (size_t i = 0; i < kn_filter_guard_n; i++) {
		const struct kn_guard *g = &kn_filter_guards[i];
		for (size_t j = 0; g->names[j]; j++)
			if (strcmp(g->names[j], call) == 0)
				return g->errno_ret && g->arg_n == 0 &&
				       g->when == KN_GUARD_ALWAYS;
	}
	return false;
}

static bool
has_effect(const struct kn_fgroup *g)
{
	for (const char *const *c = g->calls; *c; c++)
		if (**c == '@' ? has_effect(kn_filter_group(*c)) : !is_guarded(*c))
			return true;
	return false;
}

int
kn_filter_check_group_allows(const char *group, struct kn_err *e)
{
	const struct kn_fgroup *g = kn_filter_group(group);
	if (!g)
		return kn_filter_check_group(group, e);
	if (has_effect(g))
		return 0;
	return kn_err_set(e, KN_EK_CONFIG,
	    "each call of %s is always refused; a rule that names %s allows them",
	    group, group);
}
