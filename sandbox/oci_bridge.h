/* sandbox/oci_bridge.h: a worker's private socket for a stub that inherits nothing from
 * us, because a daemon starts it: it comes and fetches it.
 *
 * A socket of the file system lies in a directory that only this container is shown.
 * One small process waits there, beside the engine's client: it looks who has come,
 * hands the descriptor over once, and ends; also when nobody comes, or the supervisor
 * has died.
 */
#ifndef KN_SANDBOX_OCI_BRIDGE_H
#define KN_SANDBOX_OCI_BRIDGE_H

#include <stddef.h>
#include <stdint.h>

struct kn_err;

/* In `dir`, made here: the program `stub` and the listening `socket`. The descriptor,
 * or -1. */
int kn_bridge_open(const char *dir, const void *stub, size_t stub_n, struct kn_err *e);
/* Between fork and exec: start the process that waits. System calls only. Of uid `uid`
 * has to be who comes. 0, or -1 with errno. */
int kn_bridge_start(int listen_fd, uint32_t uid, int sock_fd, int parent_pidfd);

#endif
