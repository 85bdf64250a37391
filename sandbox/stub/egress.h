/* sandbox/stub/egress.h: the one way out of a sandbox whose policy allows hosts by
 * name: a listening TCP socket on the loopback of the worker's own network, where the
 * supervisor accepts.
 *
 * It is made and handed over before anything untrusted runs here, and the stub keeps no
 * copy: a stub that is taken over later cannot change its flags, which would let it
 * block who accepts.
 */
#ifndef KN_STUB_EGRESS_H
#define KN_STUB_EGRESS_H

/* Make it, send it over the boot socket, close it. 0, or a negative errno. */
int kn_egress_hand_over(int sock);

#endif
