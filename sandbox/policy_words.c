/* sandbox/policy_words.c: words of a policy that are also said elsewhere: in the
 * environment, in debug lines. */
#include <string.h>

#include "sandbox/policy.h"

static const char *const steal_names[] = {
	[KN_STEAL_AUTO] = "auto",
	[KN_STEAL_SHARED] = "shared",
	[KN_STEAL_BROKERED] = "brokered",
	[KN_STEAL_OFF] = "off",
};
_Static_assert(sizeof steal_names / sizeof *steal_names == KN_STEAL_N, "a name each");

static const char *const claim_names[] = {
	[KN_CLAIMS_AUTO] = "auto",
	[KN_CLAIMS_DEKKER] = "dekker",
	[KN_CLAIMS_CAS_MASK] = "cas-mask",
};
_Static_assert(sizeof claim_names / sizeof *claim_names == KN_CLAIMS_N, "a name each");

static const char *const runtime_names[] = {
	[KN_RUNTIME_AUTO] = "auto",
	[KN_RUNTIME_RUNC] = "runc",
	[KN_RUNTIME_CRUN] = "crun",
	[KN_RUNTIME_PODMAN] = "podman",
	[KN_RUNTIME_DOCKER] = "docker",
};
_Static_assert(
    sizeof runtime_names / sizeof *runtime_names == KN_RUNTIME_N, "a name each");

const char *
kn_runtime_name(enum kn_runtime r)
{
	return (unsigned)r < KN_RUNTIME_N ? runtime_names[r] : "?";
}

const char *
kn_steal_name(enum kn_steal s)
{
	return (unsigned)s < KN_STEAL_N ? steal_names[s] : "?";
}

static int
parse(const char *const *names, int n, const char *name)
{
	for (int i = 0; i < n; i++)
		if (strcmp(names[i], name) == 0)
			return i;
	return -1;
}

int
kn_steal_parse(const char *name)
{
	return parse(steal_names, KN_STEAL_N, name);
}

int
kn_claims_parse(const char *name)
{
	return parse(claim_names, KN_CLAIMS_N, name);
}
