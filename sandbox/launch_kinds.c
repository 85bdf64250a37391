/* sandbox/launch_kinds.c: which kinds of launcher there are. */
#include <stddef.h>

#include "ipc/err.h"
#include "sandbox/launch_int.h"

static const struct {
	const char *word;
	const struct kn_launch_ops *ops; /* NULL: not built */
} kinds[] = {
	[KN_LAUNCHER_BWRAP] = { "bwrap", &kn_launch_bwrap },
	[KN_LAUNCHER_OCI] = { "oci", &kn_launch_oci },
	[KN_LAUNCHER_DIRECT] = { "direct", &kn_launch_direct },
};
_Static_assert(sizeof(kinds) / sizeof(kinds[0]) == KN_LAUNCHER_N, "a row each");

const struct kn_launch_ops *
kn_launch_kind(enum kn_launcher_type t, struct kn_err *e)
{
	if ((unsigned)t < KN_LAUNCHER_N && kinds[t].ops != NULL)
		return kinds[t].ops;
	kn_err_set(e, KN_EK_CONFIG, "/launcher/type: this version starts nothing by %s",
	    (unsigned)t < KN_LAUNCHER_N ? kinds[t].word : "?");
	kn_err_hint(e, "--launcher bwrap");
	return NULL;
}
