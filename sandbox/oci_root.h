/* sandbox/oci_root.h: the root that a runtime mounts on: one read-only skeleton for all
 * workers of a pool, made by us, so that a runtime has no directory to make, neither
 * here nor on the machine.
 */
#ifndef KN_SANDBOX_OCI_ROOT_H
#define KN_SANDBOX_OCI_ROOT_H

struct kn_bind;
struct kn_policy;
struct kn_err;

/* In place: "root" with directories, links and files by content, a point for each mount
 * with a source; and "mask-d", "mask-f", which nobody can open. source as in
 * oci_config.h, with NULL for all but binds and masks. */
int kn_oci_root_make(const char *place, const struct kn_policy *p,
    const struct kn_bind *binds, const char *const *source, struct kn_err *e);

#endif
