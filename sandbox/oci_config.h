/* sandbox/oci_config.h: a policy -> config.json of the bundle that a worker runs in
 * (OCI runtime specification 1.0.2). Pure: no file is looked at.
 *
 * The container is the worker's sandbox, not the task's: namespaces, the root and the
 * mounts. The stub is its one process; it drops what it can do, loads the filter and
 * makes the cells, as under bwrap. A policy as a bundle of its own, for one command and
 * without us, is export.h's.
 */
#ifndef KN_SANDBOX_OCI_CONFIG_H
#define KN_SANDBOX_OCI_CONFIG_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>

struct kn_policy;
struct kn_err;

struct kn_oci_req {
	const struct kn_policy *policy;
	/* One per policy mount: what to bind there; NULL: nothing. */
	const char *const *source;
	const char *rootfs; /* has the points of all mounts, but those below /dev */
	uint32_t uid, gid;  /* who runs the runtime: the only id mapped, as 0 */
	struct rlimit nofile;
	bool flat; /* the flags of a bind are of its top; the stub sees to the rest */
	const char *pool, *worker; /* labels */
};
/* malloc'ed text. */
char *kn_oci_config(const struct kn_oci_req *r, struct kn_err *e);

#endif
