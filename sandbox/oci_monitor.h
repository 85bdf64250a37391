/* sandbox/oci_monitor.h: containers that podman has forgotten.
 *
 * A client that is killed in the midst of a start leaves its monitor (conmon) with a
 * container that waits to be begun; `podman rm` removes what was noted of it, not them.
 */
#ifndef KN_SANDBOX_OCI_MONITOR_H
#define KN_SANDBOX_OCI_MONITOR_H

#include <stdbool.h>

enum { KN_MONITOR_ID_SIZE = 65 }; /* 64 digits, NUL */

struct kn_monitored {
	char id[KN_MONITOR_ID_SIZE]; /* of the container; "": none that can be one */
	char runtime[8];	     /* the name of the program that keeps it */
};

/* SIGKILL to a monitor of the caller's for the container of that name, and to all below
 * it; the runtime still has its notes of that container. false: there is none. */
bool kn_monitor_end(const char *name, struct kn_monitored *out);

#endif
