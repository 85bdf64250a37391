/* sandbox/launch_oci_int.h: what launch_oci.c and launch_engine.c share. */
#ifndef KN_SANDBOX_LAUNCH_OCI_INT_H
#define KN_SANDBOX_LAUNCH_OCI_INT_H

#include "sandbox/launch_int.h"
#include "sandbox/oci_image.h"

struct kn_oci_worker {
	bool made; /* its directory is there */
	char dir[320];
	struct kn_argv argv;
	/* of an engine: */
	char id[96];
	unsigned starts;
	bool noted; /* the last start's container is; its removal was not begun */
	int bridge; /* docker: where the stub comes for its socket; -1: none */
};
struct kn_oci {
	enum kn_runtime runtime;
	bool engine; /* podman or docker */
	char pool[33];
	const char **source;	      /* one per mount */
	char image[KN_IMAGE_ID_SIZE]; /* docker: what the policy's name stands for */
	char masks[2][320];
	struct kn_oci_worker *w;
};

/* A worker's directory below the place; what a start that failed left in it is removed.
 * 0, or -1 with errno. */
int kn_oci_make_dir(const char *dir);

/* The parts of an engine (sandbox/oci_engine.h) in the kind's table. */
int kn_engine_check(const struct kn_launcher *l, struct kn_err *e);
int kn_engine_command(struct kn_launcher *l, uint32_t w, struct kn_err *e);
int kn_engine_plan(
    struct kn_launcher *l, uint32_t w, struct kn_child *c, struct kn_err *e);
void kn_engine_kill(
    const struct kn_launcher *l, uint32_t w, const struct kn_launched *lw);
void kn_engine_release(const struct kn_launcher *l, uint32_t w);
void kn_engine_settle(const struct kn_launcher *l);
/* Containers of an engine that a dead supervisor left, by what it noted in its place.
 */
void kn_engine_left(const char *place);

#endif
