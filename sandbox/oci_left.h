/* sandbox/oci_left.h: containers that a dead supervisor left. */
#ifndef KN_SANDBOX_OCI_LEFT_H
#define KN_SANDBOX_OCI_LEFT_H

/* Kill what runs in the containers whose state is in the pool's directory `place`, if
 * it is what the runtime had noted there. */
void kn_oci_left_kill(const char *place);

#endif
