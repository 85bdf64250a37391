/* sandbox/filter_module.c: kind module: what its process must be able to do whatever
 * the groups say, and what it never can whatever the rules say.
 *
 * A module's own lane is mapped in its process: part of a memory file that holds the
 * lanes of all workers. Two calls could move that mapping onto another worker's part.
 */
#include "sandbox/filter_int.h"

const char *
kn_filter_never_why(uint32_t at)
{
	if (at == KN_FNEVER_RUN)
		return "never: it would execute what /permissions/run does not name";
	if (at == KN_FNEVER_DIRECT)
		return "never with launcher direct: without namespaces a socket that "
		       "has a path leads to the machine's services";
	return "never for kind module: it could reach the lane of another worker";
}

/* Refused before any rule is looked at. realloc() of large blocks copies instead. */
const char *const kn_filter_module_never[] = { "mremap", "remap_file_pages", NULL };

/* As if a group that is always allowed: start of a dynamic program, dlopen(), and
 * sandbox/module. Guards and rules hold. The list is checked by running it in every
 * preset. */
const char *const kn_filter_module_needs[] = { "access", "arch_prctl", "brk",
	"clock_gettime", "clock_nanosleep", "close", "exit", "exit_group", "faccessat",
	"faccessat2", "fcntl", "fstat", "futex", "getpid", "getrandom", "gettid",
	"lseek", "madvise", "mmap", "mprotect", "mseal", "munmap", "nanosleep",
	"newfstatat", "open", "openat", "pread64", "prlimit64", "read", "readlink",
	"readlinkat", "restart_syscall", "rseq", "rt_sigaction", "rt_sigprocmask",
	"rt_sigreturn", "set_robust_list", "set_tid_address", "stat", "tgkill", "write",
	"writev", NULL };
