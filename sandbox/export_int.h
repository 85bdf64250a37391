/* sandbox/export_int.h: what the export*.c files share; no one else includes it.
 *
 *   export.c          the API; what a back end lacks
 *   export_seccomp.c  the profile of system calls
 *   export_oci.c      config.json
 *   export_docker.c   docker run, and a Pod
 *   export_systemd.c  a unit
 *   export_around.c   what is put around this program, in each of these
 */
#ifndef KN_SANDBOX_EXPORT_INT_H
#define KN_SANDBOX_EXPORT_INT_H

#include <jansson.h>
#include <stdint.h>
#include <stdio.h>

#include "ipc/err.h"
#include "sandbox/export.h"
#include "sandbox/layer.h"
#include "sandbox/policy.h"

enum { KN_EXPORT_ID = 1000 }; /* who a task is inside */

struct kn_exporting {
	const struct kn_policy *p;
	const char *name, *backend; /* "docker" */
	bool preset;		    /* around: name is a preset's, not a file's */
	uint32_t workers;	    /* around */
	FILE *f;
	struct kn_export *out;
	struct kn_err *e;
};

/* Always 0, or -1 when out of memory. */
int kn_export_note(struct kn_exporting *x, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* The back end does not have this wall: a note if the policy allows that, else -1.
 * `instead` is what stands in, or "nothing". */
int kn_export_lacks(
    struct kn_exporting *x, enum kn_layer l, const char *what, const char *instead);
/* The limits that no back end of a container has. */
int kn_export_say_times(struct kn_exporting *x, bool has_hard);
/* A word for sh, for a unit file (quoted where needed), for YAML. */
void kn_export_sh(FILE *f, const char *s);

json_t *kn_export_profile(const struct kn_policy *p, struct kn_err *e);
int kn_export_oci(struct kn_exporting *x);
int kn_export_docker(struct kn_exporting *x);
int kn_export_k8s(struct kn_exporting *x);
int kn_export_systemd(struct kn_exporting *x);
int kn_export_around(struct kn_exporting *x, enum kn_export_format f);

#endif
