/* sandbox/oci_engine.h: podman and docker: what makes containers from options and not
 * from a bundle, and keeps them itself.
 *
 * The engine is run by the caller, as himself: it is he who may. In the container the
 * worker is the caller's user, or, where root calls, the worker's uid without any
 * capability; never the machine's root. The stub does there what it does under runc.
 * Of podman it inherits its descriptors. Of docker, whose daemon starts the container,
 * it gets its socket by a socket of the file system that is bound into this container
 * only (oci_bridge.h).
 */
#ifndef KN_SANDBOX_OCI_ENGINE_H
#define KN_SANDBOX_OCI_ENGINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>

#include "ipc/control.h"
#include "sandbox/policy.h"

struct kn_argv;
struct kn_err;

struct kn_engine_req {
	const struct kn_policy *policy;
	enum kn_runtime runtime; /* PODMAN or DOCKER */
	const char *program;
	const char *id, *pool, *worker; /* name and labels of the container */
	const char *const *source;	/* as in oci_config.h */
	const char *rootfs; /* the skeleton: podman's root without an image */
	const char *dir;    /* of the worker: docker finds stub and socket there */
	const char *image;  /* its id, where it is known; NULL: the policy's name */
	const char *secret; /* where the container is shown them: KN_STUB_BRIDGE and
			     * this word, which nobody who made the image could know */
	bool own_userns;    /* rootless: uid 0 inside is who calls */
	uint32_t uid, gid;  /* else who it is to be */
	struct rlimit nofile, nproc;
};
/* The command that runs the container. */
int kn_engine_argv(
    const struct kn_engine_req *r, struct kn_argv *out, struct kn_err *e);
/* What an engine needs of the caller's environment; NULL-terminated, owned by nobody.
 */
char *const *kn_engine_env(void);

#endif
