/* cmd/delegate.h: --delegate: once more from the start, in a cgroup that systemd has
 * handed to us. */
#ifndef KN_CMD_DELEGATE_H
#define KN_CMD_DELEGATE_H

#include <stdbool.h>

struct kn_err;

/* argv: from the verb on. closed: bit per standard stream that was closed. Returns 0 to
 * go on in this process: not asked, or the group has come and is ours. -1: e and its
 * hint. Does not return where it begins anew. Call before anything is opened; takes the
 * guard out of the environment. */
int kn_delegate(bool asked, char **argv, unsigned closed, struct kn_err *e);

#endif
