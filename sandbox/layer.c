/* sandbox/layer.c: names of the walls and of their states, for reports and messages. */
#include "sandbox/layer.h"

#include <stddef.h>
#include <string.h>

static const char *const names[] = {
	[KN_LAYER_NAMESPACES] = "namespaces",
	[KN_LAYER_SECCOMP] = "seccomp",
	[KN_LAYER_CAPABILITIES] = "capabilities",
	[KN_LAYER_UID] = "uid",
	[KN_LAYER_LANDLOCK] = "landlock",
	[KN_LAYER_RLIMITS] = "rlimits",
	[KN_LAYER_CG_MEMORY] = "cgroup.memory",
	[KN_LAYER_CG_PIDS] = "cgroup.pids",
	[KN_LAYER_CG_CPU] = "cgroup.cpu",
	[KN_LAYER_MSEAL] = "mseal",
};
_Static_assert(sizeof(names) / sizeof(names[0]) == KN_LAYER_N, "a name per layer");

static const char *const states[] = {
	[KN_LAYER_ABSENT] = "absent",
	[KN_LAYER_DEGRADED] = "degraded",
	[KN_LAYER_ENFORCED] = "enforced",
};
_Static_assert(
    sizeof(states) / sizeof(states[0]) == KN_LAYER_STATE_N, "a name per state");

const char *
kn_layer_name(enum kn_layer l)
{
	return (unsigned)l < KN_LAYER_N ? names[l] : "?";
}

const char *
kn_layer_state_name(enum kn_layer_state s)
{
	return (unsigned)s < KN_LAYER_STATE_N ? states[s] : "?";
}

int
kn_layer_by_name(const char *name)
{
	if (name == NULL)
		return -1;
	for (int i = 0; i < KN_LAYER_N; i++)
		if (strcmp(names[i], name) == 0)
			return i;
	return -1;
}
