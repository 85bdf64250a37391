/* sandbox/filter_told.c: a refused call, explained from the same lists of decisions
 * that the programs are made of; see filter_told.h.
 *
 * The rule that would allow a call allows as little beside it as can be said: what the
 * decisions that were reached compared, and for some calls the argument that says what
 * the call is (of ioctl the request, of socket the family). So it never goes past a
 * refusal that another form of the same call would have met.
 */
#include "sandbox/filter_told.h"

#include <errno.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ipc/err.h"
#include "sandbox/filter_int.h"

enum { KN_CALL_NAME_MAX = 48 };

struct kn_told {
	const struct kn_policy *policy;
	struct kn_ftable t;
};

int
kn_told_open(
    const struct kn_policy *p, bool watched, struct kn_told **out, struct kn_err *e)
{
	struct kn_told *t = calloc(1, sizeof *t);

	if (!t)
		return kn_err_set(e, KN_EK_HOST, "seccomp: out of memory");
	t->policy = p;
	if (kn_ftable_init(&t->t, p, watched, e) < 0) {
		free(t);
		return -1;
	}
	*out = t;
	return 0;
}

void
kn_told_close(struct kn_told *t)
{
	if (!t)
		return;
	kn_ftable_fini(&t->t);
	free(t);
}

/* ---- conditions that say which calls are like this one ---- */

/* What is asked of one argument: some of its bits are as they were, or it is not one of
 * a few values. */
struct like {
	uint64_t mask[6];
	bool narrow[6];
	struct {
		unsigned index;
		uint64_t value;
	} not [4];
	size_t not_n;
};

/* By which bits of which argument a call is another one. */
static const struct selective {
	const char *name;
	unsigned index;
	uint32_t mask;
} selective[] = {
	{ "socket", 0, UINT32_MAX },
	{ "socket", 1, 0xf },
	{ "socket", 2, UINT32_MAX },
	{ "socketpair", 0, UINT32_MAX },
	{ "socketpair", 1, 0xf },
	{ "ioctl", 1, UINT32_MAX },
	{ "prctl", 0, UINT32_MAX },
	{ "arch_prctl", 0, UINT32_MAX },
	{ "ptrace", 0, UINT32_MAX },
	{ "keyctl", 0, UINT32_MAX },
	{ "bpf", 0, UINT32_MAX },
	{ "seccomp", 0, UINT32_MAX },
	{ "personality", 0, UINT32_MAX },
};

static bool
is_selective(const char *name, unsigned index)
{
	for (size_t i = 0; i < sizeof selective / sizeof *selective; i++)
		if (selective[i].index == index && strcmp(selective[i].name, name) == 0)
			return true;
	return false;
}

static void
hold(struct like *l, unsigned index, uint64_t mask, bool narrow)
{
	l->mask[index] |= narrow ? (uint32_t)mask : mask;
	l->narrow[index] = narrow;
}

/* Calls like this one meet this condition as this one does. */
static void
add_cond(struct like *l, const struct kn_farg *a, bool met, const char *name)
{
	bool many = l->not_n == sizeof l->not / sizeof *l->not ;

	if (a->op == KN_CMP_MASKED_EQ) {
		hold(l, a->index, a->value, a->narrow);
	} else if (a->op == KN_CMP_EQ && !met && !many &&
		   !is_selective(name, a->index)) {
		l->not [l->not_n].index = a->index;
		l->not [l->not_n++].value = a->value;
	} else {
		hold(l, a->index, UINT64_MAX, a->narrow);
	}
}

static bool
refuses(const struct kn_fentry *f)
{
	return f->who != KN_FWHO_DEFAULT && f->who != KN_FWHO_NEWER &&
	       (f->ret & SECCOMP_RET_ACTION_FULL) != SECCOMP_RET_ALLOW &&
	       (f->ret & SECCOMP_RET_ACTION_FULL) != SECCOMP_RET_LOG;
}

/* Of an entry that was reached before the one that decided. */
static void
add_passed(struct like *l, const struct kn_fentry *f, const struct kn_told_call *c,
    const char *name, bool refused)
{
	for (size_t j = 0; j < f->arg_n; j++) {
		const struct kn_farg *a = &f->args[j];

		/* What it lets pass may pass; but "refused unless" is refused for what
		 * is said there. */
		if (!refuses(f) && (!refused || a->op != KN_CMP_MASKED_EQ))
			continue;
		if (kn_farg_holds(a, c->args[a->index]))
			continue;
		add_cond(l, a, false, name);
		return; /* one is enough for it not to apply */
	}
}

/* The list that decided, and which entry of it; NULL: there is none. */
static const struct kn_fentry *
entry_of(const struct kn_told *t, const struct kn_told_call *c,
    const struct kn_fcall **out_list)
{
	const struct kn_fcall *list = kn_ftable_list(&t->t, c->arch, c->nr);

	*out_list = list;
	for (size_t i = 0; list && i < list->n; i++)
		if (kn_fentry_holds(&list->v[i], c->args))
			return &list->v[i];
	return NULL;
}

static void
find_like(const struct kn_told *t, const struct kn_told_call *c, const char *name,
    struct like *l)
{
	const struct kn_fcall *list;
	const struct kn_fentry *by = entry_of(t, c, &list);

	memset(l, 0, sizeof *l);
	for (size_t i = 0; i < sizeof selective / sizeof *selective; i++)
		if (strcmp(selective[i].name, name) == 0)
			hold(l, selective[i].index, selective[i].mask, true);
	if (!by)
		return;
	for (const struct kn_fentry *f = list->v; f < by; f++)
		add_passed(l, f, c, name, refuses(by));
	for (size_t j = 0; j < by->arg_n; j++)
		add_cond(l, &by->args[j], true, name);
}

static uint64_t
mix(uint64_t h, uint64_t v)
{
	for (int i = 0; i < 8; i++, v >>= 8)
		h = (h ^ (v & 0xff)) * 0x100000001b3ull;
	return h;
}

/* ---- what it is answered with ---- */

/* Its name by the numbers of its ABI; false: it has none. */
static bool
name_of(
    const struct kn_told *t, const struct kn_told_call *c, char name[KN_CALL_NAME_MAX])
{
	enum kn_abi abi = KN_ABI_NATIVE;
	uint32_t nr = c->nr;
	char *known;

	if (c->arch != t->t.arch)
		abi = KN_ABI_I386;
	else if (nr >= KN_NR_X32 && t->t.other[KN_ABI_X32])
		abi = KN_ABI_X32;
	if (abi == KN_ABI_X32)
		nr -= KN_NR_X32;
	known = nr < KN_NR_MAX ? kn_filter_name_of(abi, nr) : NULL;
	if (known)
		snprintf(name, KN_CALL_NAME_MAX, "%s", known);
	else
		snprintf(name, KN_CALL_NAME_MAX, "number %u", c->nr);
	free(known);
	return known != NULL;
}

void
kn_told_look(
    const struct kn_told *t, const struct kn_told_call *c, struct kn_told_answer *out)
{
	struct kn_fentry by = kn_ftable_find(&t->t, c->arch, c->nr, c->args);
	char name[KN_CALL_NAME_MAX];
	struct like l;

	(void)name_of(t, c, name);
	find_like(t, c, name, &l);
	/* Nothing else is ever told; if it were: not known is not allowed. */
	out->errno_ret = ENOSYS;
	if ((by.ret & SECCOMP_RET_ACTION_FULL) == SECCOMP_RET_ERRNO)
		out->errno_ret = by.ret & SECCOMP_RET_DATA;
	out->unlisted = by.who == KN_FWHO_DEFAULT || by.who == KN_FWHO_NEWER;
	out->key = mix(mix(0xcbf29ce484222325ull, (uint64_t)c->arch << 32 | c->nr),
	    (uint64_t)by.who << 32 | by.at);
	for (unsigned i = 0; i < 6; i++)
		out->key = mix(out->key, c->args[i] & l.mask[i]);
}

/* ---- in words ---- */

/* How many arguments each call takes, x86-64's and the newer ones of all. */
static const char *const takes[6] = {
	" getpid getppid gettid getuid geteuid getgid getegid fork vfork pause sync "
	"setsid "
	"sched_yield munlockall vhangup inotify_init restart_syscall getpgrp "
	"rt_sigreturn ",
	" close brk dup pipe exit exit_group uname fsync fdatasync chdir fchdir rmdir "
	"unlink umask sysinfo times setuid setgid getpgid getsid setfsuid setfsgid "
	"personality mlockall chroot acct swapoff iopl epoll_create epoll_create1 "
	"eventfd "
	"inotify_init1 io_destroy set_tid_address timer_delete timer_getoverrun "
	"mq_unlink "
	"unshare syncfs alarm time sched_get_priority_max sched_get_priority_min "
	"userfaultfd memfd_secret shmdt pkey_free ",
	" stat fstat lstat access pipe2 nanosleep getitimer dup2 gettimeofday kill "
	"truncate "
	"ftruncate getcwd rename mkdir creat link symlink chmod fchmod getrlimit "
	"getrusage "
	"setpgid setreuid setregid getgroups setgroups capget capset rt_sigpending "
	"sigaltstack utime statfs fstatfs getpriority sched_setparam sched_getparam "
	"sched_rr_get_interval mlock munlock arch_prctl setrlimit settimeofday umount2 "
	"swapon tkill io_setup timer_gettime clock_settime clock_gettime clock_getres "
	"clock_adjtime adjtimex munmap listen shutdown msgget flock clone3 "
	"inotify_rm_watch eventfd2 timerfd_create timerfd_gettime set_robust_list "
	"memfd_create setns membarrier pidfd_open fsopen process_mrelease "
	"landlock_restrict_self sethostname setdomainname delete_module utimes "
	"rt_sigsuspend pkey_alloc map_shadow_stack ",
	" read write open poll lseek mprotect ioctl readv writev madvise mincore "
	"shmget "
	"shmat shmctl setitimer socket connect accept bind getsockname getpeername "
	"sendmsg recvmsg execve semget semop msgctl fcntl getdents getdents64 readlink "
	"chown fchown lchown mknod setresuid getresuid setresgid getresgid setpriority "
	"sched_setscheduler rt_sigqueueinfo msync dup3 mkdirat unlinkat symlinkat "
	"fchmodat faccessat futimesat sched_setaffinity sched_getaffinity io_submit "
	"io_cancel epoll_ctl_old timer_create tgkill mq_getsetattr ioprio_set "
	"inotify_add_watch getrandom seccomp bpf sched_setattr finit_module "
	"init_module "
	"syslog ioperm get_robust_list mlock2 close_range pidfd_getfd fspick fsmount "
	"open_tree landlock_create_ruleset mseal modify_ldt removexattr lremovexattr "
	"fremovexattr listxattr llistxattr flistxattr getcpu signalfd readahead "
	"open_by_handle_at set_mempolicy cachestat ",
	" rt_sigaction rt_sigprocmask pread64 pwrite64 ptrace sendfile semctl "
	"semtimedop "
	"socketpair wait4 accept4 newfstatat openat mknodat readlinkat renameat "
	"fallocate "
	"epoll_wait rt_sigtimedwait rt_tgsigqueueinfo timer_settime clock_nanosleep "
	"reboot quotactl getxattr lgetxattr fgetxattr utimensat timerfd_settime "
	"signalfd4 sendmmsg prlimit64 pidfd_send_signal openat2 faccessat2 fchmodat2 "
	"landlock_add_rule rseq request_key msgsnd tee vmsplice fadvise64 "
	"sync_file_range sched_getattr io_uring_register pkey_mprotect statmount "
	"listmount ",
	" select mremap clone setsockopt getsockopt msgrcv mount prctl waitid fchownat "
	"linkat renameat2 statx ppoll epoll_pwait2 preadv pwritev perf_event_open "
	"recvmmsg name_to_handle_at kcmp execveat move_mount fsconfig mount_setattr "
	"keyctl add_key setxattr lsetxattr fsetxattr remap_file_pages mq_timedsend "
	"mq_timedreceive io_getevents process_madvise futex_waitv fanotify_mark "
	"kexec_file_load ",
};

static unsigned
arg_n(const char *name)
{
	char word[KN_CALL_NAME_MAX + 2];

	snprintf(word, sizeof word, " %s ", name);
	for (unsigned n = 0; n < 6; n++)
		if (strstr(takes[n], word))
			return n;
	return 6;
}

static const char *
group_of(const char *name)
{
	for (size_t i = 0; i < kn_filter_group_n; i++)
		for (const char *const *c = kn_filter_groups[i].calls; *c; c++)
			if (strcmp(*c, name) == 0)
				return kn_filter_groups[i].name;
	return NULL;
}

static void
say_unlisted(struct kn_told_text *x)
{
	const char *group = group_of(x->name);

	if (group)
		snprintf(x->by, sizeof x->by,
		    "neither a rule nor a group of the policy has it (group %s would)",
		    group);
	else
		snprintf(x->by, sizeof x->by,
		    "neither a rule nor any group has it (/seccomp/default)");
}

static void
say_by(const struct kn_told *t, const struct kn_fentry *by, struct kn_told_text *x)
{
	const struct kn_seccomp_rule *r;
	bool profiled = t->policy->seccomp.profiled;

	switch (by->who) {
	case KN_FWHO_RULE:
		r = &t->policy->seccomp.rules[by->at];
		snprintf(x->by, sizeof x->by, "rule /seccomp/rules/%u (%s)%s%s", by->at,
		    r->origin, r->why[0] ? ": " : "", r->why);
		return;
	case KN_FWHO_GUARD:
		snprintf(x->by, sizeof x->by,
		    "always refused, unless a rule names it: %s",
		    kn_filter_guards[by->at].why);
		return;
	case KN_FWHO_NEVER:
		snprintf(x->by, sizeof x->by, "%s", kn_filter_never_why(by->at));
		return;
	case KN_FWHO_PROFILE:
		snprintf(x->by, sizeof x->by, "the profile says so (/seccomp/profile)");
		return;
	case KN_FWHO_NEWER:
		snprintf(x->by, sizeof x->by,
		    "newer than all calls that the profile names (/seccomp/profile)");
		return;
	case KN_FWHO_ABI:
		snprintf(x->by, sizeof x->by, "a number of the x32 ABI");
		return;
	case KN_FWHO_DEFAULT:
	case KN_FWHO_GROUP:
	case KN_FWHO_NEEDED:
	case KN_FWHO_N:
		break;
	}
	if (profiled)
		snprintf(x->by, sizeof x->by,
		    "neither a rule nor the profile has it (/seccomp/profile)");
	else
		say_unlisted(x);
}

/* ---- the rule ---- */

static void
write_cond(FILE *f, unsigned *n, unsigned index, uint64_t value, const uint64_t *two,
    const char *op)
{
	fprintf(f, "%s{\"index\":%u,\"value\":%lld", *n ? "," : ",\"args\":[", index,
	    (long long)value);
	if (two)
		fprintf(f, ",\"valueTwo\":%lld", (long long)*two);
	fprintf(f, ",\"op\":\"SCMP_CMP_%s\"}", op);
	++*n;
}

static void
write_conds(FILE *f, const struct kn_told_call *c, const struct like *l)
{
	unsigned n = 0;

	for (unsigned i = 0; i < 6; i++) {
		uint64_t mask = l->mask[i];
		uint64_t all = l->narrow[i] ? UINT32_MAX : UINT64_MAX;
		uint64_t value = c->args[i] & mask;

		if (mask == all)
			write_cond(f, &n, i, value, NULL, "EQ");
		else if (mask)
			write_cond(f, &n, i, mask, &value, "MASKED_EQ");
	}
	for (size_t i = 0; i < l->not_n; i++)
		write_cond(f, &n, l->not [i].index, l->not [i].value, NULL, "NE");
	if (n)
		fputc(']', f);
}

static char *
write_rule(const char *name, const struct kn_told_call *c, const struct like *l)
{
	char *text = NULL;
	size_t n = 0;
	FILE *f = open_memstream(&text, &n);

	if (!f)
		return NULL;
	fprintf(f, "{\"names\":[\"%s\"],\"action\":\"SCMP_ACT_ALLOW\"", name);
	write_conds(f, c, l);
	fputc('}', f);
	if (fclose(f) == 0)
		return text;
	free(text);
	return NULL;
}

int
kn_told_text(
    const struct kn_told *t, const struct kn_told_call *c, struct kn_told_text *out)
{
	struct kn_fentry by = kn_ftable_find(&t->t, c->arch, c->nr, c->args);
	struct like l;
	bool named;

	memset(out, 0, sizeof *out);
	named = name_of(t, c, out->name);
	out->arg_n = arg_n(out->name);
	for (unsigned i = 0; i < 6; i++)
		out->args[i] = kn_filter_arg_is_32(out->name, i) ? (int32_t)c->args[i]
								 : (int64_t)c->args[i];
	say_by(t, &by, out);
	if (!named || by.who == KN_FWHO_NEVER || by.who == KN_FWHO_ABI)
		return 0;
	find_like(t, c, out->name, &l);
	out->allow = write_rule(out->name, c, &l);
	return out->allow ? 0 : -1;
}

void
kn_told_text_fini(struct kn_told_text *x)
{
	free(x->allow);
	x->allow = NULL;
}

/* ---- what kills ---- */

static bool
kills(const struct kn_fcall *c)
{
	for (size_t i = 0; i < c->n; i++) {
		uint32_t action = c->v[i].ret & SECCOMP_RET_ACTION_FULL;

		if (action == SECCOMP_RET_KILL_PROCESS ||
		    action == SECCOMP_RET_KILL_THREAD || action == SECCOMP_RET_TRAP)
			return true;
	}
	return false;
}

void
kn_told_killers(const struct kn_told *t, char *dst, size_t cap)
{
	enum { SHOWN = 6 };
	size_t n = 0;
	unsigned shown = 0, others = 0;

	dst[0] = '\0';
	for (uint32_t nr = 0; nr < KN_NR_MAX; nr++) {
		struct kn_told_call c = { .arch = t->t.arch, .nr = nr };
		char name[KN_CALL_NAME_MAX];

		if (!kills(&t->t.calls[nr]) || !name_of(t, &c, name))
			continue;
		if (shown == SHOWN || n + sizeof name + 2 > cap) {
			others++;
			continue;
		}
		n += (size_t)snprintf(
		    dst + n, cap - n, "%s%s", shown++ ? ", " : "", name);
	}
	if (others && n < cap)
		snprintf(dst + n, cap - n, " or one of %u others", others);
}
