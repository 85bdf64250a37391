/* sandbox/stub/look.h: what /proc tells of one process. pid is its name there. */
#ifndef KN_STUB_LOOK_H
#define KN_STUB_LOOK_H

#include <stdbool.h>
#include <stdint.h>

struct kn_look_stat {
	char state;
	int ppid;
	uint64_t threads;
	uint64_t waited_ticks; /* user and system time of children it waited for */
};

bool kn_look_stat(int proc_fd, const char *pid, struct kn_look_stat *out);
/* Processor time, all threads, from its own clock: exact where the numbers in /proc are
 * rounded down to ticks. */
uint64_t kn_look_cpu_ns(int pid);
/* One of its threads runs, or could. */
bool kn_look_thread_runs(int proc_fd, int pid);
/* Its threads, if it is that user's; else 0. */
uint64_t kn_look_threads_of(int proc_fd, const char *pid, uint32_t uid);
/* Resident pages, shared ones and mapped files too: an upper bound. */
uint64_t kn_look_resident(int proc_fd, const char *pid);
/* Its share of the pages that are not of files, each page counted once over all
 * processes; where it does not let itself be read, the bound above. */
uint64_t kn_look_exact(int proc_fd, const char *pid);

#endif
