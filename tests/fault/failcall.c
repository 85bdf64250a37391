/* tests/fault/failcall.c: run a program and make one of its system calls fail, or send
 * it a signal as it enters that call, or keep it from running for a while after it.
 *
 *   failcall [--status FILE] --log FILE                       -- COMMAND...
 *   failcall [--status FILE] --at WHO:CALL:N[@SITE...] --fail ERRNO -- COMMAND...
 *   failcall [--status FILE] --at WHO:CALL:N[@SITE...] --signal N   -- COMMAND...
 *   failcall [--status FILE] --at WHO:CALL:N[@SITE...] --late MS    -- COMMAND...
 *
 * WHO is 0 for the program and k for the k-th process that it forks, which is followed
 * up to its execve and no further; CALL a name as strace prints it or a number, N its
 * how-manieth call of that process (1 is the first), counted from main(): the dynamic
 * loader's are not ours to harden. With sites, as in the log and joined by commas, only
 * calls at that place in the program are counted: numbers change from run to run,
 * places do not; a + after them leaves open what is above. The log has a line a call:
 * WHO CALL N RESULT SITE..., where the sites are the return addresses into the program
 * that the stack shows, as offsets for addr2line -e. The status tells pid and end of
 * the program, and where it was hit. After the hit everything is let go, so that what
 * follows runs at full speed.
 *
 * A failed call is not made; only close() is, because Linux frees the number whatever
 * it returns. strace --inject can do the same for the program, but not for the process
 * between fork and exec alone, and it slows all the rest of the run.
 */
#include <errno.h>
#include <fcntl.h>
#include <seccomp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/fault/regs.h"

enum { PROCS = 64, CALLS = 1024, SITES = 4, STACK_WORDS = 512, NO_ROLE = -1 };

struct proc {
	pid_t pid;
	int role;
	bool started; /* main() has been reached */
	bool in_call; /* between the entry and the exit stop */
	bool failing; /* the present call gets our result */
	bool late;    /* it is not gone on with at once */
	long nr;
	unsigned nth;
	long long brk; /* brk() fails by giving back the old one */
	uint64_t site[SITES];
	unsigned count[CALLS];
};

static struct proc procs[PROCS];
static int forked;
static pid_t program;
static FILE *log_file;
static int at_role = NO_ROLE;
static long at_call;
static unsigned at_nth, at_seen;
static bool at_sited;
static size_t at_site_n = SITES; /* so many are compared */
static uint64_t at_site[SITES], hit_site[SITES];
static int fail_with;
static int signal_with;
static long late_ms;
static bool hit;
static uint64_t text_from, text_to, text_base;

static void __attribute__((noreturn, format(printf, 1, 2))) die(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	fputs("failcall: ", stderr);
	vfprintf(stderr, fmt, ap);
	fputc('\n', stderr);
	va_end(ap);
	exit(120);
}

/* ---- where in the program ---- */

/* The program's code, from its maps: the executable mapping of its own file. */
static void
find_text(pid_t pid)
{
	char path[64], exe[4096] = "", line[4096 + 128];
	FILE *f;

	snprintf(path, sizeof path, "/proc/%d/exe", (int)pid);
	if (readlink(path, exe, sizeof exe - 1) < 0)
		return;
	snprintf(path, sizeof path, "/proc/%d/maps", (int)pid);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof line, f)) {
		unsigned long from, to;
		char perm[8], *name = strchr(line, '/');

		if (!name || sscanf(line, "%lx-%lx %7s", &from, &to, perm) != 3)
			continue;
		name[strcspn(name, "\n")] = '\0';
		if (strcmp(name, exe) != 0)
			continue;
		if (!text_base)
			text_base = from;
		if (perm[2] != 'x')
			continue;
		text_from = from;
		text_to = to;
		break;
	}
	if (f)
		fclose(f);
}

static bool
after_a_call(pid_t pid, uint64_t address)
{
	uint8_t b[8] = { 0 };
	struct iovec to = { b, sizeof b }, from = { (void *)(address - 8), 8 };

	if (process_vm_readv(pid, &to, 1, &from, 1, 0) != 8)
		return false;
#if defined(__x86_64__)
	return b[3] == 0xe8 || (b[6] == 0xff && (b[7] & 0x38) == 0x10) ||
	       (b[5] == 0xff && (b[6] & 0x38) == 0x10) ||
	       (b[2] == 0xff && (b[3] & 0x38) == 0x10);
#else
	uint32_t insn;

	memcpy(&insn, b + 4, 4);
	return (insn & 0xfc000000) == 0x94000000 || (insn & 0xfffffc1f) == 0xd63f0000;
#endif
}

static void
find_site(struct proc *p)
{
	uint64_t stack[STACK_WORDS];
	struct iovec to = { stack, sizeof stack }, from = { NULL, sizeof stack };
	regs_t r;
	ssize_t n;
	int k = 0;

	memset(p->site, 0, sizeof p->site);
	if (!get_regs(p->pid, &r))
		return;
	from.iov_base = (void *)REG_SP(r);
	n = process_vm_readv(p->pid, &to, 1, &from, 1, 0);
	for (ssize_t i = 0; i < n / 8 && k < SITES; i++)
		if (stack[i] >= text_from && stack[i] < text_to &&
		    after_a_call(p->pid, stack[i]))
			p->site[k++] = stack[i] - text_base;
}

static const char *
call_name(long nr)
{
	static char number[24];
	char *name = seccomp_syscall_resolve_num_arch(SCMP_ARCH_NATIVE, (int)nr);

	snprintf(number, sizeof number, "%ld", nr);
	if (name)
		snprintf(number, sizeof number, "%s", name);
	free(name);
	return number;
}

/* ---- one stop ---- */

static struct proc *
proc_of(pid_t pid)
{
	struct proc *free_one = NULL;

	for (int i = 0; i < PROCS; i++) {
		if (procs[i].pid == pid)
			return &procs[i];
		if (!procs[i].pid && !free_one)
			free_one = &procs[i];
	}
	if (!free_one)
		die("more than %d processes", PROCS);
	memset(free_one, 0, sizeof *free_one);
	free_one->pid = pid;
	free_one->role = NO_ROLE;
	return free_one;
}

static void
let_go(struct proc *p, int sig)
{
	ptrace(PTRACE_DETACH, p->pid, NULL, (void *)(long)sig);
	if (p->pid != program)
		p->pid = 0;
}

static bool
is_due(struct proc *p)
{
	if (!at_sited)
		return p->nth == at_nth;
	find_site(p);
	return memcmp(p->site, at_site, at_site_n * sizeof at_site[0]) == 0 &&
	       ++at_seen == at_nth;
}

static void
on_entry(struct proc *p)
{
	struct __ptrace_syscall_info si;

	memset(&si, 0, sizeof si);
	if (ptrace(PTRACE_GET_SYSCALL_INFO, p->pid, (void *)sizeof si, &si) <= 0 ||
	    si.op != PTRACE_SYSCALL_INFO_ENTRY)
		return;
	p->in_call = true;
	p->nr = (long)si.entry.nr;
	/* The first thing that main() does is to look whether 0 is open. */
	if (!p->started && p->role == 0 && p->nr == SYS_fcntl) {
		p->started = true;
		find_text(p->pid);
	}
	if (!p->started || p->nr < 0 || p->nr >= CALLS)
		return;
	p->nth = ++p->count[p->nr];
	if (log_file)
		find_site(p);
	if (hit || p->role != at_role || p->nr != at_call || !is_due(p))
		return;
	hit = true;
	find_site(p);
	memcpy(hit_site, p->site, sizeof hit_site);
	if (signal_with) {
		kill(program, signal_with);
		return;
	}
	if (late_ms) {
		p->late = true;
		return;
	}
	p->failing = true;
	if (p->nr != SYS_close)
		skip_call(p->pid);
}

static void
on_exit_of_call(struct proc *p)
{
	const struct timespec late = { late_ms / 1000, late_ms % 1000 * 1000000 };
	struct __ptrace_syscall_info si;

	p->in_call = false;
	if (p->late)
		nanosleep(&late, NULL);
	p->late = false;
	if (p->failing)
		set_result(p->pid, p->nr == SYS_brk ? p->brk : -(long)fail_with);
	p->failing = false;
	memset(&si, 0, sizeof si);
	if (ptrace(PTRACE_GET_SYSCALL_INFO, p->pid, (void *)sizeof si, &si) <= 0 ||
	    si.op != PTRACE_SYSCALL_INFO_EXIT)
		return;
	if (p->nr == SYS_brk)
		p->brk = si.exit.rval;
	if (!log_file || !p->started)
		return;
	fprintf(log_file, "%d %s %u %lld", p->role, call_name(p->nr), p->nth,
	    (long long)si.exit.rval);
	for (int i = 0; i < SITES && p->site[i]; i++)
		fprintf(log_file, " 0x%llx", (unsigned long long)p->site[i]);
	fputc('\n', log_file);
}

static void
on_fork(struct proc *parent)
{
	unsigned long pid = 0;
	struct proc *child;

	if (ptrace(PTRACE_GETEVENTMSG, parent->pid, NULL, &pid) < 0 || !pid)
		return;
	child = proc_of((pid_t)pid);
	child->role = parent->role == 0 ? ++forked : 1000;
	child->started = parent->started;
}

static void
on_stop(pid_t pid, int status)
{
	struct proc *p = proc_of(pid);
	int sig = WSTOPSIG(status), event = status >> 16;
	bool plain = false;

	if (sig == (SIGTRAP | 0x80)) {
		if (p->in_call)
			on_exit_of_call(p);
		else
			on_entry(p);
		plain = true;
	} else if (event == PTRACE_EVENT_FORK || event == PTRACE_EVENT_CLONE ||
		   event == PTRACE_EVENT_VFORK) {
		on_fork(p);
		plain = true;
	} else if (event == PTRACE_EVENT_EXEC && p->role != 0) {
		let_go(p, 0);
		return;
	} else if (event == PTRACE_EVENT_STOP && sig != SIGTRAP) {
		ptrace(PTRACE_LISTEN, pid, NULL, NULL); /* stopped, as anybody is */
		return;
	} else if (event) {
		plain = true;
	}
	if (plain)
		sig = 0;
	if (hit && !p->in_call && !p->failing)
		let_go(p, sig);
	else if (ptrace(PTRACE_SYSCALL, pid, NULL, (void *)(long)sig) < 0)
		p->pid = p->pid == program ? program : 0;
}

/* ---- the run ---- */

static void
start(char **argv)
{
	const long follow = PTRACE_O_TRACEFORK | PTRACE_O_TRACECLONE |
			    PTRACE_O_TRACEVFORK | PTRACE_O_TRACEEXEC;
	const bool all = log_file || at_role > 0;
	int gate[2];
	char c = 0;

	if (pipe2(gate, O_CLOEXEC) < 0)
		die("pipe: %s", strerror(errno));
	program = fork();
	if (program < 0)
		die("fork: %s", strerror(errno));
	if (program == 0) {
		close(gate[1]);
		if (read(gate[0], &c, 1) < 0)
			_exit(120);
		execvp(argv[0], argv);
		fprintf(stderr, "failcall: %s: %s\n", argv[0], strerror(errno));
		_exit(127);
	}
	close(gate[0]);
	proc_of(program)->role = 0;
	if (ptrace(PTRACE_SEIZE, program, NULL,
		(void *)(PTRACE_O_TRACESYSGOOD | (all ? follow : 0))) < 0)
		die("trace: %s", strerror(errno));
	if (ptrace(PTRACE_INTERRUPT, program, NULL, NULL) < 0)
		die("interrupt: %s", strerror(errno));
	close(gate[1]);
}

static void
parse_at(char *text)
{
	char *call = strchr(text, ':'), *n = call ? strchr(call + 1, ':') : NULL;
	char *site = n ? strchr(n, '@') : NULL;

	if (!n)
		die("--at WHO:CALL:N, not %s", text);
	for (int i = 0; site && i < SITES; i++) {
		at_sited = true;
		at_site[i] = strtoull(site + 1, &site, 16);
		if (*site == '+')
			at_site_n = (size_t)i + 1;
		if (*site != ',')
			site = NULL;
	}
	*call++ = *n++ = '\0';
	at_role = atoi(text);
	at_call = *call >= '0' && *call <= '9'
		      ? atol(call)
		      : seccomp_syscall_resolve_name_arch(SCMP_ARCH_NATIVE, call);
	at_nth = (unsigned)atoi(n);
	if (at_call < 0 || at_call >= CALLS || !at_nth)
		die("no call %s, or no number %s", call, n);
}

static void
write_status(const char *path, int status)
{
	FILE *f = path ? fopen(path, "we") : NULL;

	if (!f)
		return;
	fprintf(f, "pid %d\nhit %d\n%s %d\n", (int)program, hit,
	    WIFSIGNALED(status) ? "signal" : "exit",
	    WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
	for (int i = 0; i < SITES && hit_site[i]; i++)
		fprintf(f, "site%d 0x%llx\n", i, (unsigned long long)hit_site[i]);
	fclose(f);
}

int
main(int argc, char **argv)
{
	const char *status_path = NULL;
	int i = 1, status = 0;

	for (; i < argc && strcmp(argv[i], "--") != 0; i++) {
		if (i + 1 >= argc)
			die("%s: unknown, or without a value", argv[i]);
		else if (strcmp(argv[i], "--log") == 0)
			log_file = fopen(argv[++i], "we");
		else if (strcmp(argv[i], "--status") == 0)
			status_path = argv[++i];
		else if (strcmp(argv[i], "--at") == 0)
			parse_at(argv[++i]);
		else if (strcmp(argv[i], "--fail") == 0)
			fail_with = atoi(argv[++i]);
		else if (strcmp(argv[i], "--signal") == 0)
			signal_with = atoi(argv[++i]);
		else if (strcmp(argv[i], "--late") == 0)
			late_ms = atol(argv[++i]);
		else
			die("unknown option %s", argv[i]);
	}
	if (i + 1 >= argc || (!log_file && at_role == NO_ROLE))
		die("usage: failcall --log FILE | --at WHO:CALL:N --fail "
		    "ERRNO|--signal N|--late MS "
		    "-- COMMAND...");
	start(argv + i + 1);
	for (;;) {
		pid_t pid = waitpid(-1, &status, __WALL);

		if (pid < 0 && errno == EINTR)
			continue;
		if (pid < 0)
			die("wait: %s", strerror(errno));
		if (WIFSTOPPED(status)) {
			on_stop(pid, status);
			continue;
		}
		if (pid == program)
			break;
		proc_of(pid)->pid = 0;
	}
	write_status(status_path, status);
	if (log_file)
		fclose(log_file);
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}
