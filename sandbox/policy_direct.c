/* sandbox/policy_direct.c: what launcher direct cannot keep, and says so when the
 * policy is read. Mounts are looked at when they are resolved (launch_direct.c).
 */
#include "sandbox/policy_int.h"

static int
refuse(const struct kn_pol *p, const char *pointer, const char *what, struct kn_err *e)
{
	int rc = kn_pol_fail(p, pointer, e, "launcher direct %s", what);

	kn_pol_hint(p, e, "--launcher bwrap can");
	return rc;
}

int
kn_policy_check_direct(const struct kn_pol *p, struct kn_err *e)
{
	const struct kn_policy *q = &p->pub;
	int rc = 0;

	if (q->launcher != KN_LAUNCHER_DIRECT)
		return 0;
	if (q->pool.kind == KN_KIND_MODULE)
		rc |= refuse(p, "/pool/kind", "starts no modules", e);
	if (q->network == KN_NET_ALLOW)
		rc |= refuse(p, "/network/allow",
		    "has no network of its own, from which a proxy would be the only "
		    "way",
		    e);
	if (q->run.n > 0)
		rc |= refuse(p, "/permissions/run",
		    "cannot keep a task from executing what it wrote", e);
	if (q->identity.user == KN_USER_ROOT)
		rc |=
		    refuse(p, "/identity/user", "has no ids of its own: none is 0", e);
	if (kn_policy_named(q, "/identity/hostname"))
		rc |= refuse(p, "/identity/hostname", "has no host name of its own", e);
	return rc;
}
