/* sandbox/oci_monitor.h: containers that podman has forgotten.
 *
 * A client that is killed in the midst of a start leaves its monitor (conmon) with a
 * container that waits to be begun; `podman rm` removes what was noted of it, not them.
 */
#ifndef KN_SANDBOX_OCI_MONITOR_H
#define KN_SANDBOX_OCI_MONITOR_H

/* SIGKILL to the monitors of the caller's for the container of that name, and to all
 * below them. For who may call fork and exec: not async-signal-safe. How many. */
unsigned kn_monitor_end(const char *name);

#endif
