/* sandbox/filter_guard.c: calls that stay refused, whatever groups a policy allows.
 * Only a rule that names the call can say otherwise, or a group that has none but such
 * calls. Rows are tried in order; the first
 * that matches decides, and a row without an error number goes on to what the groups
 * say, so that "refuse unless" is a few of those and then a refusal.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "sandbox/filter_int.h"

#define N(...) \
	(const char *const[]) \
	{ \
		__VA_ARGS__, NULL \
	}
#define IF1(i, o, v) .arg_n = 1, .args = { { i, o, v, 0 } }
#define MASK1(i, m, v) .arg_n = 1, .args = { { i, KN_CMP_MASKED_EQ, m, v } }
#define IF_MASK(i, v, j, m, w) \
	.arg_n = 2, .args = { { i, KN_CMP_EQ, v, 0 }, { j, KN_CMP_MASKED_EQ, m, w } }

#define IF_TWICE(i, o, v, p, w) .arg_n = 2, .args = { { i, o, v, 0 }, { i, p, w, 0 } }

/* clone() keeps a signal number in the low byte, where unshare() has NEWTIME. */
#define IF_BOTH(i, v, j, w) \
	.arg_n = 2, .args = { { i, KN_CMP_EQ, v, 0 }, { j, KN_CMP_EQ, w, 0 } }

#define NEW_BITS \
	(CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | \
	    CLONE_NEWPID | CLONE_NEWNET)
#define SUID_BITS 06000u
#define MAKES_FILE (00000100u | 020000000u) /* O_CREAT, __O_TMPFILE */
#define EQ KN_CMP_EQ
#define OF_NO_FILE (MAP_SHARED | MAP_ANONYMOUS)

/* s390 has the flags second. */
#if defined(__s390__)
#define CLONE_FLAGS_ARG 1
#else
#define CLONE_FLAGS_ARG 0
#endif

static const char why_suid[] =
    "A set-user-id file left in a writable bind would act as the caller outside.";
static const char why_socket[] =
    "Without a network only sockets between a task's own processes make sense.";
static const char why_pair[] =
    "One of a pair of datagram sockets can send to any socket that has a path; of "
    "SOCK_STREAM and SOCK_SEQPACKET it cannot.";
static const char why_lease[] =
    "A lease on a file that is bound holds up its owner outside.";
static const char why_proxy[] =
    "What leaves the sandbox goes by TCP to the proxy, which asks /network/allow.";
static const char why_family[] =
    "Raw packets and rare protocol families are the kernel's least tested doors.";
static const char why_personality[] =
    "READ_IMPLIES_EXEC and its like switch protections off.";
static const char why_unseen[] =
    "Memory that belongs to no process is seen by no one who watches.";
static const char why_tty[] =
    "Pushes input into a terminal, which its owner's shell would run.";

/* launcher direct: what namespaces or read-only mounts would keep. */
static const char why_ipc[] =
    "Without an IPC namespace these are the machine's, and outlive the task.";
static const char why_others[] =
    "Without namespaces this reaches any process of the same user.";
static const char why_attributes[] =
    "Landlock does not keep modes, times and attributes of files, and they are the "
    "caller's.";

const struct kn_guard kn_filter_guards[] = {
	/* SCHED_FIFO, SCHED_RR, SCHED_DEADLINE, each with or without RESET_ON_FORK.
	 * Before the rows that let a task change its own. */
	{ N("sched_setscheduler"), EPERM, MASK1(1, 0xbfffffff, 1),
	    .why = "A real-time task starves the machine." },
	{ N("sched_setscheduler"), EPERM, MASK1(1, 0xbfffffff, 2),
	    .why = "A real-time task starves the machine." },
	{ N("sched_setscheduler"), EPERM, MASK1(1, 0xbfffffff, 6),
	    .why = "A real-time task starves the machine." },

	{ N("shmget", "shmat", "shmctl", "semget", "semop", "semtimedop",
	      "semtimedop_time64", "semctl", "msgget", "msgsnd", "msgrcv", "msgctl",
	      "mq_open", "mq_unlink"),
	    ENOSYS, KN_GUARD_DIRECT, .why = why_ipc },
	{ N("inotify_init", "inotify_init1"), ENOSYS, KN_GUARD_DIRECT,
	    .why = "Tells of names in folders that a task may not read." },
	{ N("prlimit64"), 0, KN_GUARD_DIRECT, IF1(0, EQ, 0), .why = "" },
	{ N("sched_setaffinity", "sched_setscheduler", "sched_setparam",
	      "sched_setattr"),
	    0, KN_GUARD_DIRECT, IF1(0, EQ, 0), .why = "" },
	{ N("setpriority"), 0, KN_GUARD_DIRECT, IF_BOTH(0, 0, 1, 0), .why = "" },
	{ N("setpriority"), 0, KN_GUARD_DIRECT, IF_BOTH(0, 1, 1, 0), .why = "" },
	{ N("ioprio_set"), 0, KN_GUARD_DIRECT, IF_BOTH(0, 1, 1, 0), .why = "" },
	{ N("prlimit64", "sched_setaffinity", "sched_setscheduler", "sched_setparam",
	      "sched_setattr", "setpriority", "ioprio_set"),
	    EPERM, KN_GUARD_DIRECT, .why = why_others },
	{ N("setxattr", "lsetxattr", "fsetxattr", "removexattr", "lremovexattr",
	      "fremovexattr", "setxattrat", "removexattrat", "file_setattr"),
	    EOPNOTSUPP, KN_GUARD_DIRECT, .why = why_attributes },
	{ N("fchmodat2"), ENOSYS, KN_GUARD_SAME_USER, .why = why_attributes },
	{ N("chmod", "fchmod", "fchmodat", "chown", "fchown", "lchown", "fchownat",
	      "utime", "utimes", "futimesat", "utimensat", "utimensat_time64"),
	    EPERM, KN_GUARD_SAME_USER, .why = why_attributes },
	{ N("ioctl"), EPERM, KN_GUARD_SAME_USER, IF1(1, EQ, 0x40086602),
	    .why = why_attributes }, /* FS_IOC_SETFLAGS */
	{ N("ioctl"), EPERM, KN_GUARD_SAME_USER, IF1(1, EQ, 0x401c5820),
	    .why = why_attributes }, /* FS_IOC_FSSETXATTR */
	{ N("ioctl"), EPERM, KN_GUARD_SAME_USER, IF1(1, EQ, 0x40806685),
	    .why = why_attributes }, /* FS_IOC_ENABLE_VERITY */
	{ N("ioctl"), EPERM, KN_GUARD_SAME_USER, IF1(1, EQ, 0x800c6613),
	    .why = why_attributes }, /* FS_IOC_SET_ENCRYPTION_POLICY */

	{ N("pidfd_getfd", "ptrace", "process_vm_readv", "process_vm_writev",
	      "process_madvise", "process_mrelease", "kcmp"),
	    EPERM, .why = "Reaches into other processes." },
	{ N("io_uring_setup", "io_uring_enter", "io_uring_register"), EPERM,
	    .why = "Does the work of refused calls without making them." },
	{ N("keyctl", "add_key", "request_key"), EPERM,
	    .why = "Keys are not private to a sandbox." },
	{ N("userfaultfd", "bpf", "perf_event_open"), EPERM,
	    .why = "Tools of kernel exploits; ordinary programs do without." },
	{ N("mount", "umount", "umount2", "pivot_root", "chroot", "fsopen", "fspick",
	      "fsconfig", "fsmount", "move_mount", "open_tree", "open_tree_attr",
	      "mount_setattr", "statmount", "listmount"),
	    EPERM, .why = "The file system a task sees is the policy's business." },
	{ N("name_to_handle_at", "open_by_handle_at", "fanotify_init", "fanotify_mark"),
	    EPERM, .why = "Names files outside the mounts a task was given." },
	{ N("remap_file_pages"), EPERM,
	    .why = "Moves a shared mapping onto pages that were not handed out." },
	{ N("setns"), EPERM, .why = "Leaves the task's namespaces." },
	{ N("kexec_load", "kexec_file_load", "init_module", "finit_module",
	      "delete_module", "create_module", "reboot", "swapon", "swapoff",
	      "quotactl", "quotactl_fd", "acct", "syslog", "vhangup", "iopl", "ioperm",
	      "modify_ldt", "nfsservctl", "sethostname", "setdomainname",
	      "settimeofday", "clock_settime", "clock_settime64", "clock_adjtime",
	      "clock_adjtime64", "adjtimex", "stime", "move_pages", "migrate_pages"),
	    EPERM, .why = "Administers the machine." },
	{ N("memfd_create", "memfd_secret", "shmget"), ENOSYS, KN_GUARD_WATCHED,
	    .why = why_unseen },
	/* What was touched stays when it is unmapped, but for one page, or dropped. */
	{ N("mmap", "mmap2"), EPERM, KN_GUARD_WATCHED, MASK1(3, OF_NO_FILE, OF_NO_FILE),
	    .why = why_unseen },
	{ N("mmap", "mmap2"), ENOMEM, KN_GUARD_WATCHED,
	    MASK1(3, MAP_HUGETLB, MAP_HUGETLB), .why = why_unseen },
	{ N("vmsplice"), EPERM,
	    .why =
		"Gives away pages that stay writable; a history of holes, no users." },

	/* glibc falls back to clone(), whose flags a filter can see. */
	{ N("clone3"), ENOSYS, .quiet = true,
	    .why = "Its flags are in memory, out of a filter's sight." },
	{ N("clone"), 0, MASK1(CLONE_FLAGS_ARG, NEW_BITS, 0), .why = "" },
	{ N("clone"), EPERM,
	    .why = "New namespaces open doors that need root outside." },
	{ N("unshare"), 0, MASK1(0, NEW_BITS | CLONE_NEWTIME, 0), .why = "" },
	{ N("unshare"), EPERM,
	    .why = "New namespaces open doors that need root outside." },

	/* Of i386: what is asked for, and of whom, is in memory. Its programs have
	 * calls of their own for all of it by now. */
	{ N("socketcall", "ipc"), ENOSYS,
	    .why = "What it does is in memory, out of a filter's sight." },
	{ N("vm86", "vm86old"), EPERM,
	    .why = "Runs 16-bit code by a rarely tested door." },

	{ N("openat2"), ENOSYS, .quiet = true,
	    .why = "Its mode is in memory, out of a filter's sight." },
	{ N("chmod", "fchmod"), 0, MASK1(1, SUID_BITS, 0), .why = "" },
	{ N("fchmodat", "fchmodat2"), 0, MASK1(2, SUID_BITS, 0), .why = "" },
	{ N("chmod", "fchmod", "fchmodat", "fchmodat2"), EPERM, .why = why_suid },
	{ N("creat"), 0, MASK1(1, SUID_BITS, 0), .why = "" },
	{ N("creat"), EPERM, .why = why_suid },
	{ N("open"), 0, MASK1(1, MAKES_FILE, 0), .why = "" },
	{ N("open"), 0, MASK1(2, SUID_BITS, 0), .why = "" },
	{ N("open"), EPERM, .why = why_suid },
	{ N("openat"), 0, MASK1(2, MAKES_FILE, 0), .why = "" },
	{ N("openat"), 0, MASK1(3, SUID_BITS, 0), .why = "" },
	{ N("openat"), EPERM, .why = why_suid },
	{ N("mknod"), EPERM, MASK1(1, 0170000, 0020000), .why = "Makes a device." },
	{ N("mknod"), EPERM, MASK1(1, 0170000, 0060000), .why = "Makes a device." },
	{ N("mknod"), 0, MASK1(1, SUID_BITS, 0), .why = "" },
	{ N("mknod"), EPERM, .why = why_suid },
	{ N("mknodat"), EPERM, MASK1(2, 0170000, 0020000), .why = "Makes a device." },
	{ N("mknodat"), EPERM, MASK1(2, 0170000, 0060000), .why = "Makes a device." },
	{ N("mknodat"), 0, MASK1(2, SUID_BITS, 0), .why = "" },
	{ N("mknodat"), EPERM, .why = why_suid },

	{ N("fcntl", "fcntl64"), EPERM, IF1(1, EQ, 1024), .why = why_lease },
	/* F_SETDELEG, as the one before (F_SETLEASE); of folders too. */
	{ N("fcntl", "fcntl64"), EPERM, IF1(1, EQ, 1040), .why = why_lease },
	{ N("ioctl"), EPERM, IF1(1, EQ, 0x5412), .why = why_tty }, /* TIOCSTI */
	{ N("ioctl"), EPERM, IF1(1, EQ, 0x541c), .why = why_tty }, /* TIOCLINUX */
	{ N("ioctl"), EPERM, IF1(1, EQ, 0x5423),		   /* TIOCSETD */
	    .why = "Loads rarely tested line disciplines." },

	{ N("personality"), 0, IF1(0, EQ, 0), .why = "" },	    /* PER_LINUX */
	{ N("personality"), 0, IF1(0, EQ, 8), .why = "" },	    /* PER_LINUX32 */
	{ N("personality"), 0, IF1(0, EQ, 0x20000), .why = "" },    /* UNAME26 */
	{ N("personality"), 0, IF1(0, EQ, 0x20008), .why = "" },    /* both */
	{ N("personality"), 0, IF1(0, EQ, 0xffffffff), .why = "" }, /* only asks */
	{ N("personality"), EPERM, .why = why_personality },

	/* Limits are the one thing by which a process reaches another of its user
	 * without asking whether it may trace it: a cell's init, whose end is the
	 * task's. */
	{ N("prlimit64"), EPERM, IF1(0, EQ, 1),
	    .why = "PID 1 of a cell keeps the task's accounts." },

	/* To the kernel raw ones are the same. */
	{ N("socketpair"), EPROTONOSUPPORT, MASK1(1, 0xf, SOCK_DGRAM),
	    .why = why_pair },
	{ N("socketpair"), EPROTONOSUPPORT, MASK1(1, 0xf, SOCK_RAW), .why = why_pair },
	{ N("socketpair"), 0, IF1(0, EQ, AF_UNIX), .why = "" },
	{ N("socketpair"), EAFNOSUPPORT, .why = why_family },
	{ N("socket"), 0, IF1(0, EQ, AF_UNIX), .why = "" },
	{ N("socket"), EAFNOSUPPORT, KN_GUARD_NET_NONE, .why = why_socket },
	/* Hosts by name: TCP of the sandbox's own loopback, where the proxy is. */
	{ N("socket"), EPROTONOSUPPORT, KN_GUARD_NET_ALLOW,
	    IF_TWICE(2, KN_CMP_NE, 0, KN_CMP_NE, IPPROTO_TCP), .why = why_proxy },
	{ N("socket"), 0, KN_GUARD_NET_ALLOW, IF_MASK(0, AF_INET, 1, 0xf, SOCK_STREAM),
	    .why = "" },
	{ N("socket"), 0, KN_GUARD_NET_ALLOW, IF_MASK(0, AF_INET6, 1, 0xf, SOCK_STREAM),
	    .why = "" },
	{ N("socket"), EAFNOSUPPORT, KN_GUARD_NET_ALLOW, .why = why_proxy },
	{ N("socket"), EPROTONOSUPPORT, IF1(2, EQ, 132), .why = why_family }, /* SCTP */
	{ N("socket"), EPROTONOSUPPORT, IF1(2, EQ, 262),
	    .why = why_family }, /* MPTCP */
	{ N("socket"), 0, IF_MASK(0, AF_INET, 1, 0xf, SOCK_STREAM), .why = "" },
	{ N("socket"), 0, IF_MASK(0, AF_INET, 1, 0xf, SOCK_DGRAM), .why = "" },
	{ N("socket"), 0, IF_MASK(0, AF_INET6, 1, 0xf, SOCK_STREAM), .why = "" },
	{ N("socket"), 0, IF_MASK(0, AF_INET6, 1, 0xf, SOCK_DGRAM), .why = "" },
	/* NETLINK_ROUTE: libc asks it for the machine's addresses. */
	{ N("socket"), 0, IF_MASK(0, AF_NETLINK, 2, 0xffffffff, 0), .why = "" },
	{ N("socket"), EAFNOSUPPORT, .why = why_family },
};
const size_t kn_filter_guard_n = sizeof kn_filter_guards / sizeof *kn_filter_guards;

/* Before any rule of the policy: who writes one, or a preset that has one, thinks of
 * the sandbox's own sockets, and here there are only the machine's. */
const struct kn_guard kn_filter_direct_never[] = {
	{ N("socket"), EAFNOSUPPORT, IF1(0, EQ, AF_UNIX), .why = "" },
	{ N("socketpair"), EPROTONOSUPPORT, MASK1(1, 0xf, SOCK_DGRAM), .why = "" },
	{ N("socketpair"), EPROTONOSUPPORT, MASK1(1, 0xf, SOCK_RAW), .why = "" },
	{ N("socketcall"), ENOSYS, .why = "" },
};
const size_t kn_filter_direct_never_n =
    sizeof kn_filter_direct_never / sizeof *kn_filter_direct_never;

bool
kn_guard_applies(const struct kn_guard *g, const struct kn_policy *p, bool watched)
{
	bool direct = p->launcher == KN_LAUNCHER_DIRECT;

	switch (g->when) {
	case KN_GUARD_NET_NONE:
		return p->network == KN_NET_NONE;
	case KN_GUARD_NET_HOST:
		return p->network == KN_NET_HOST;
	case KN_GUARD_NET_ALLOW:
		return p->network == KN_NET_ALLOW;
	case KN_GUARD_WATCHED:
		return watched;
	case KN_GUARD_DIRECT:
		return direct;
	case KN_GUARD_SAME_USER: /* as root each worker has a uid of its own */
		return direct && geteuid() != 0;
	case KN_GUARD_ALWAYS:
	default:
		return true;
	}
}

/* Of the calls in sandbox/stub/calls.h, those that guards restrict by their arguments,
 * in the form that comes nearest to what is refused. Who adds a row above for one of
 * these looks at how the stub calls it; where the form is refused, the worker's program
 * allows the call in all forms and the cell's takes it back. */
const struct kn_stub_form kn_filter_stub_forms[] = {
	{ "openat", { 0, 0, O_CREAT | O_RDWR, 0777 } },
	{ "fchmod", { 0, 0777 } },
	{ "fchmodat", { 0, 0, 0700 } },
	{ "clone", { CLONE_VM | CLONE_VFORK | CLONE_PIDFD | SIGCHLD } },
	{ "fcntl", { 0, F_DUPFD_CLOEXEC } },
	{ "ioctl", { 0, 0x5414 } }, /* TIOCSWINSZ */
	{ "socketpair", { AF_UNIX, SOCK_STREAM } },
	{ "prlimit64", { 0 } },
	{ "unshare", { CLONE_NEWIPC } },
};
const size_t kn_filter_stub_form_n =
    sizeof kn_filter_stub_forms / sizeof *kn_filter_stub_forms;
