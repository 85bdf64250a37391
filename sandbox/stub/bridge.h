/* sandbox/stub/bridge.h: our end of the private socket, where it is not inherited. */
#ifndef KN_STUB_BRIDGE_H
#define KN_STUB_BRIDGE_H

/* Fetch it from the socket at `path`, check what it is, and put it where the stub looks
 * for it. 0, or a negative errno and what failed. */
int kn_bridge_fetch(const char *path, const char **out_what);

#endif
