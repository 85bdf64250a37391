/* sandbox/doctor.h: what this machine can do for us, asked by doing each step that a
 * run needs, in a child that is thrown away.
 *
 * Nothing of the caller is changed: processes, mounts, namespaces, limits and cgroups
 * of a probe go with its child. Read-only facts (a version, a limit) are told as they
 * are; whether a thing works is never guessed from a file.
 */
#ifndef KN_SANDBOX_DOCTOR_H
#define KN_SANDBOX_DOCTOR_H

#include "sandbox/host.h"
#include "sandbox/lack.h"

enum kn_probe {
	KN_PROBE_RUN, /* all of it; its finding is the caller's to fill in */
	KN_PROBE_IDENTITY,
	KN_PROBE_BWRAP,
	KN_PROBE_USERNS,
	KN_PROBE_NAMESPACES,
	KN_PROBE_MOUNT,
	KN_PROBE_PIVOT,
	KN_PROBE_PROC,
	KN_PROBE_LOOPBACK,
	KN_PROBE_NESTED,
	KN_PROBE_MEMFD,
	KN_PROBE_IDMAP,
	KN_PROBE_SECCOMP,
	KN_PROBE_LISTENER,
	KN_PROBE_LANDLOCK,
	KN_PROBE_MSEAL,
	KN_PROBE_OPENAT2,
	KN_PROBE_CG_MEMORY,
	KN_PROBE_CG_PIDS,
	KN_PROBE_CG_CPU,
	KN_PROBE_CG_CPU_MAX,
	KN_PROBE_CG_KILL,
	KN_PROBE_NOFILE,
	KN_PROBE_PROCESSES,
	KN_PROBE_ARENA,
	KN_PROBE_SHM,
	KN_PROBE_YAMA,
	KN_PROBE_AROUND,
	KN_PROBE_RUNTIMES,
	KN_PROBE_N
};
/* In the order of how bad it is. */
enum kn_health {
	KN_HEALTH_OK,
	KN_HEALTH_UNKNOWN,
	KN_HEALTH_DEGRADED,
	KN_HEALTH_REFUSED
};

struct kn_finding {
	enum kn_health health;
	enum kn_lack cause; /* NONE: ok, or not told */
	char detail[256];   /* what was seen */
	char fix[512];	    /* "" if there is none to name */
	enum kn_who who;    /* who has to apply it */
};
struct kn_doctor {
	struct kn_host host;
	bool host_known; /* kn_host_probe() went well */
	struct kn_around around;
	struct kn_finding f[KN_PROBE_N];
	/* What a run without namespaces would go without, where that is all that can
	 * be had and it has been tried; "": not so. The caller's to fill in. */
	char last_resort[512];
};

/* Ask everything but KN_PROBE_RUN. No failure: what cannot be asked is unknown. */
void kn_doctor_look(struct kn_doctor *d);
const char *kn_probe_name(enum kn_probe p);  /* "user-namespace" */
const char *kn_probe_loses(enum kn_probe p); /* what a run loses without it */
const char *kn_health_name(enum kn_health h);

#endif
