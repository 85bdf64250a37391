/* sandbox/filter_names.c: system call names -> numbers of this machine, and which of a
 * call's arguments have no meaning in their upper half.
 */
#include <errno.h>
#include <seccomp.h>
#include <stdlib.h>
#include <string.h>

#include "ipc/err.h"
#include "ipc/near.h"
#include "sandbox/filter_int.h"
#include "sandbox/policy_int.h"
#include "sandbox/stub/calls.h"

/* Names that libseccomp 2.5.4 does not have, up to Linux 6.18. From 424 on, numbers are
 * the same on all architectures. */
static const struct {
	const char *name;
	int nr;
} newer[] = {
	{ "quotactl_fd", 443 },
	{ "landlock_create_ruleset", 444 },
	{ "landlock_add_rule", 445 },
	{ "landlock_restrict_self", 446 },
	{ "memfd_secret", 447 },
	{ "process_mrelease", 448 },
	{ "futex_waitv", 449 },
	{ "set_mempolicy_home_node", 450 },
	{ "cachestat", 451 },
	{ "fchmodat2", 452 },
	{ "map_shadow_stack", 453 },
	{ "futex_wake", 454 },
	{ "futex_wait", 455 },
	{ "futex_requeue", 456 },
	{ "statmount", 457 },
	{ "listmount", 458 },
	{ "lsm_get_self_attr", 459 },
	{ "lsm_set_self_attr", 460 },
	{ "lsm_list_modules", 461 },
	{ "mseal", 462 },
	{ "setxattrat", 463 },
	{ "getxattrat", 464 },
	{ "listxattrat", 465 },
	{ "removexattrat", 466 },
	{ "open_tree_attr", 467 },
	{ "file_getattr", 468 },
	{ "file_setattr", 469 },
};

int
kn_filter_nr(const char *name)
{
	return kn_filter_nr_of(KN_ABI_NATIVE, name);
}

int
kn_filter_newer(const char *name)
{
	for (size_t i = 0; i < sizeof newer / sizeof *newer; i++)
		if (strcmp(newer[i].name, name) == 0)
			return newer[i].nr;
	return KN_NR_UNKNOWN;
}

const char *
kn_filter_newer_name(uint32_t nr)
{
	for (size_t i = 0; i < sizeof newer / sizeof *newer; i++)
		if ((uint32_t)newer[i].nr == nr)
			return newer[i].name;
	return NULL;
}

/* "name:mask", bit n of the hexadecimal mask for argument n: the kernel takes it as an
 * int, or no flag is defined above bit 31. Comparing such an argument in 64 bits would
 * let a caller dodge a rule by setting an upper bit that the kernel does not look at.
 * Absent: all arguments are pointers, sizes or offsets. */
static const char narrow[] =
    " read:1 write:1 open:6 close:1 fstat:1 lseek:5 mmap:1c mprotect:4 rt_sigaction:1"
    " rt_sigprocmask:1 ioctl:3 pread64:1 pwrite64:1 readv:1 writev:1 access:2 pipe2:2"
    " select:1 madvise:4 mremap:8 msync:4 shmget:5 shmat:5 shmctl:3 dup:1 dup2:3"
    " dup3:7 getitimer:1 setitimer:1 alarm:1 sendfile:3 socket:7 connect:5 accept:1"
    " accept4:9 sendto:29 recvfrom:9 sendmsg:5 recvmsg:5 shutdown:3 bind:5 listen:3"
    " getsockname:1 getpeername:1 socketpair:7 setsockopt:17 getsockopt:7 clone:1"
    " wait4:5 kill:3 semget:7 semop:5 semtimedop:5 semctl:7 msgget:3 msgsnd:9"
    " msgrcv:11 msgctl:3 fcntl:3 flock:3 fsync:1 fdatasync:1 ftruncate:1 getdents:5"
    " getdents64:5 fchdir:1 mkdir:2 creat:2 chmod:2 fchmod:3 chown:6 fchown:7 lchown:6"
    " umask:1 getrlimit:1 getrusage:1 setuid:1 setgid:1 setpgid:3 setreuid:3 setregid:3"
    " setgroups:1 getgroups:1 setresuid:7 setresgid:7 getpgid:1 setfsuid:1 setfsgid:1"
    " getsid:1 mknod:6 personality:1 fstatfs:1 getpriority:3 setpriority:7"
    " sched_setparam:1 sched_getparam:1 sched_setscheduler:3 sched_getscheduler:1"
    " sched_get_priority_max:1 sched_get_priority_min:1 sched_rr_get_interval:1"
    " mlockall:1 prctl:1 arch_prctl:1 setrlimit:1 mount:8 umount2:2 swapon:2 reboot:7"
    " iopl:1 ioperm:4 readahead:1 setxattr:10 lsetxattr:10 fsetxattr:11 fgetxattr:1"
    " flistxattr:1 fremovexattr:1 tkill:3 futex:26 sched_setaffinity:3"
    " sched_getaffinity:3 io_setup:1 epoll_create:1 fadvise64:9 timer_create:1"
    " timer_settime:3 timer_gettime:1 timer_getoverrun:1 timer_delete:1 clock_settime:1"
    " clock_gettime:1 clock_getres:1 clock_nanosleep:3 clock_adjtime:1 exit:1"
    " exit_group:1 epoll_wait:d epoll_ctl:7 tgkill:7 set_mempolicy:1 mq_open:6"
    " mq_timedsend:9 mq_timedreceive:1 mq_notify:1 mq_getsetattr:1 waitid:b keyctl:1"
    " ioprio_set:7 ioprio_get:3 inotify_add_watch:5 inotify_rm_watch:3 inotify_init1:1"
    " openat:d mkdirat:5 mknodat:d fchownat:1d futimesat:1 newfstatat:9 unlinkat:5"
    " renameat:5 renameat2:15 linkat:15 symlinkat:2 readlinkat:9 fchmodat:5 fchmodat2:d"
    " faccessat:5 faccessat2:d pselect6:1 ppoll:2 poll:6 unshare:1 splice:25 tee:b"
    " sync_file_range:9 vmsplice:9 utimensat:9 epoll_pwait:d epoll_pwait2:5 signalfd:1"
    " signalfd4:9 timerfd_create:3 timerfd_settime:3 timerfd_gettime:1 eventfd:1"
    " eventfd2:3 fallocate:3 epoll_create1:1 preadv:1 pwritev:1 preadv2:21 pwritev2:21"
    " rt_tgsigqueueinfo:7 rt_sigqueueinfo:3 perf_event_open:1e recvmmsg:d sendmmsg:d"
    " fanotify_init:3 prlimit64:3 name_to_handle_at:11 open_by_handle_at:5 syncfs:1"
    " setns:3 process_vm_readv:1 process_vm_writev:1 kcmp:7 finit_module:5"
    " sched_setattr:5 sched_getattr:d seccomp:3 getrandom:4 memfd_create:2 bpf:5"
    " execveat:11 userfaultfd:1 membarrier:7 mlock2:4 copy_file_range:25 "
    "pkey_mprotect:c"
    " pkey_alloc:3 pkey_free:1 statx:d io_uring_setup:1 io_uring_enter:f"
    " io_uring_register:b rseq:e pidfd_send_signal:b open_tree:5 move_mount:15 fsopen:2"
    " fsconfig:13 fsmount:7 fspick:5 pidfd_open:3 close_range:7 openat2:1 pidfd_getfd:7"
    " process_madvise:19 mount_setattr:5 landlock_create_ruleset:4 landlock_add_rule:b"
    " landlock_restrict_self:3 memfd_secret:1 process_mrelease:3 futex_waitv:16 nice:1"
    " setdomainname:2 sethostname:2 delete_module:2 syslog:5 quotactl:5 ";

bool
kn_filter_arg_is_32(const char *name, unsigned index)
{
	size_t n = strlen(name);
	for (const char *p = strstr(narrow, name); p; p = strstr(p + 1, name))
		if (p[-1] == ' ' && p[n] == ':')
			return strtoul(p + n + 1, NULL, 16) >> index & 1;
	return false;
}

void
kn_filter_stub_calls(bool out[KN_NR_MAX])
{
#define NAME(name, why) #name,
	static const char *const names[] = { KN_STUB_CALLS(NAME) };
#undef NAME
	memset(out, 0, KN_NR_MAX * sizeof *out);
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		int nr = kn_filter_nr(names[i]);
		if (nr >= 0)
			out[nr] = true;
	}
}

/* The known call nearest to a misspelt one: malloc'ed, or NULL. */
static char *
near_call(const char *name)
{
	char *names[KN_NR_MAX + 1];
	size_t n = 0;
	for (int nr = 0; nr < KN_NR_MAX; nr++) {
		names[n] = seccomp_syscall_resolve_num_arch(seccomp_arch_native(), nr);
		n += names[n] != NULL;
	}
	names[n] = NULL;
	const char *near = kn_near_word((const char *const *)names, name);
	char *kept = near ? strdup(near) : NULL;
	while (n > 0)
		free(names[--n]);
	return kept;
}

int
kn_filter_check_call(const char *name, struct kn_err *e)
{
	char clean[48];
	if (kn_filter_nr(name) != KN_NR_UNKNOWN)
		return 0;
	kn_err_printable(clean, sizeof clean, name, (int)strnlen(name, 200));
	char *near = near_call(name);
	kn_err_set(e, KN_EK_CONFIG, "unknown system call \"%s\"%s%s%s", clean,
	    near ? "; did you mean \"" : "", near ? near : "", near ? "\"?" : "");
	free(near);
	return -1;
}

int
kn_filter_check_group(const char *group, struct kn_err *e)
{
	enum { MAX = 64 };
	const char *names[MAX];
	char clean[48];
	size_t n = 0;
	for (; n < kn_filter_group_n && n < MAX - 1; n++) {
		names[n] = kn_filter_groups[n].name;
		if (strcmp(names[n], group) == 0)
			return 0;
	}
	names[n] = NULL;
	kn_err_printable(clean, sizeof clean, group, (int)strnlen(group, 200));
	const char *near = kn_near_word(names, group);
	if (near)
		return kn_err_set(e, KN_EK_CONFIG,
		    "unknown group \"%s\"; did you mean \"%s\"?", clean, near);
	return kn_err_set(
	    e, KN_EK_CONFIG, "unknown group \"%s\"; knit-policy(5) lists them", clean);
}
