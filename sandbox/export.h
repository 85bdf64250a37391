/* sandbox/export.h: a policy as other programs want it: what each of them would
 * enforce.
 *
 * There is one task and no pool there: the limits are a task's, time limits where a
 * back end has them. What it has not is an error, unless allow_degraded names the
 * layer; what stands in is said in a note. What is no wall (streams that are cut) is
 * said, too.
 */
#ifndef KN_SANDBOX_EXPORT_H
#define KN_SANDBOX_EXPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct kn_err;
struct kn_policy;

enum kn_export_format {
	KN_EXPORT_SECCOMP, /* a profile as Docker, Podman, containerd and runc take it
			    */
	KN_EXPORT_OCI,	   /* config.json of a bundle */
	KN_EXPORT_DOCKER,  /* the command line of `docker run` */
	KN_EXPORT_K8S,	   /* a Pod */
	KN_EXPORT_SYSTEMD, /* the [Service] section of a unit */
	KN_EXPORT_N
};
/* -1: no such word. */
int kn_export_format(const char *name);

struct kn_export {
	char *text;
	char **notes; /* what the text does not enforce, or by other means */
	size_t note_n;
};
/* `name` is what files and units are called by. */
int kn_export_make(const struct kn_policy *p, enum kn_export_format f, const char *name,
    struct kn_export *out, struct kn_err *e);
/* The same for the program itself: a container, pod or service in which a pool of this
 * policy works, without privilege: the calls it needs, the amounts for so many workers,
 * what else must be granted. `preset`: name is one. Not in every format. */
int kn_export_make_around(const struct kn_policy *p, enum kn_export_format f,
    const char *name, bool preset, uint32_t workers, struct kn_export *out,
    struct kn_err *e);
void kn_export_fini(struct kn_export *x);

#endif
