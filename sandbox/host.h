/* sandbox/host.h: what this machine offers; probed once, cheaply, at start.
 * Only what a run needs is probed; kn_host_probe() must stay below a millisecond.
 */
#ifndef KN_SANDBOX_HOST_H
#define KN_SANDBOX_HOST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct kn_err;
struct kn_policy;

struct kn_host {
	bool root; /* effective uid 0 with CAP_SETUID, CAP_SETGID, CAP_SYS_ADMIN, and
		      unprivileged ids to give to workers */
	bool ids;  /* effective uid 0 that can be others: the same without
		      CAP_SYS_ADMIN */
	bool host_root; /* our uid is the machine's uid 0 (or that cannot be told) */
	uid_t uid;
	gid_t gid;	       /* of the caller */
	uint32_t landlock_abi; /* 0: none */
	bool mseal;
	uint32_t cpus;	       /* usable by this process (affinity) */
	char bwrap[256];       /* absolute path of the bwrap that will be used */
	uid_t worker_uid_base; /* root: first host uid of this supervisor's workers */
	uint32_t worker_uid_n;
	bool maps_full; /* root: our user namespace maps every id to itself */
	/* Never found by a probe: the process is somebody else's. Its limits stay, and
	 * its threads and its wait() are its own (launch_warden.h). */
	bool embedded;
	bool stay;	 /* nor by a probe: it is not to be moved to another cgroup */
	bool no_cgroups; /* never found by a probe: go on as if none were granted */
};
/* Never fails for lack of something: what is missing is zero, "" or false, and the
 * launcher refuses what needs it. */
int kn_host_probe(struct kn_host *h, struct kn_err *e);
/* Bytes of memory, bounded by our own cgroup's limit where that can be read. Asked only
 * by who has to choose a number of workers: the way to one is not held up. */
uint64_t kn_host_memory(void);
/* The bwrap to use: $KNIT_BWRAP if set (absolute), else a fixed search. 0, or -1 with
 * what is wrong and the package to install. */
int kn_host_find_bwrap(char *out, size_t n, struct kn_err *e);
/* A program in a directory of the system, never in the caller's PATH. */
bool kn_host_find_program(const char *name, char *out, size_t n);
#endif
