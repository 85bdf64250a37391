/* sandbox/oci_image.h: what docker says of an image, before anything of it is run. */
#ifndef KN_SANDBOX_OCI_IMAGE_H
#define KN_SANDBOX_OCI_IMAGE_H

struct kn_err;

enum { KN_IMAGE_ID_SIZE = 72 }; /* "sha256:", 64 digits, NUL */

/* The id of an image that is there, which names the same image whatever becomes of its
 * name. Refused is one with volumes: docker mounts them over what the policy shows,
 * where links of the image's lead to, and has no option against it. Waits for docker's
 * client, 30 s at most. 0, or -1. */
int kn_image_pin(const char *program, const char *name, char out_id[KN_IMAGE_ID_SIZE],
    struct kn_err *e);

#endif
