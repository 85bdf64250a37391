/* sandbox/layer.h: the walls by name, and how each one stands for a run. */
#ifndef KN_SANDBOX_LAYER_H
#define KN_SANDBOX_LAYER_H

enum kn_layer {
	KN_LAYER_NAMESPACES,   /* "namespaces" */
	KN_LAYER_SECCOMP,      /* "seccomp" */
	KN_LAYER_CAPABILITIES, /* "capabilities" (and no_new_privs) */
	KN_LAYER_UID,	       /* "uid": own host uid per worker (root only) */
	KN_LAYER_LANDLOCK,     /* "landlock" */
	KN_LAYER_RLIMITS,      /* "rlimits" */
	KN_LAYER_CG_MEMORY,    /* "cgroup.memory" */
	KN_LAYER_CG_PIDS,      /* "cgroup.pids" */
	KN_LAYER_CG_CPU,       /* "cgroup.cpu" (accounting, and shares) */
	KN_LAYER_MSEAL,	       /* "mseal" */
	KN_LAYER_N
};

enum kn_layer_state {
	KN_LAYER_ABSENT, /* not asked for, or the kernel has none and none is needed */
	KN_LAYER_DEGRADED, /* something weaker stands in; allow_degraded named it */
	KN_LAYER_ENFORCED,
	KN_LAYER_STATE_N
};

struct kn_layers {
	enum kn_layer_state state[KN_LAYER_N];
};

const char *kn_layer_name(enum kn_layer l);		/* "cgroup.memory" */
const char *kn_layer_state_name(enum kn_layer_state s); /* "enforced" */
int kn_layer_by_name(const char *name);			/* -1 if unknown */

#endif
