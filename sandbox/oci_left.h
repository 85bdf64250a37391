/* sandbox/oci_left.h: containers that a dead supervisor left. */
#ifndef KN_SANDBOX_OCI_LEFT_H
#define KN_SANDBOX_OCI_LEFT_H

#include <stddef.h>

/* Kill what runs in the containers whose state is in the pool's directory `place`, if
 * it is what the runtime had noted there, and a left container by the kernel's word. */
void kn_oci_left_kill(const char *place);
/* How much of the name of such a directory, knit-<pool>-..., its containers' names
 * begin with: up to the pool's id. */
size_t kn_oci_left_pool(const char *name);

#endif
