/* sandbox/caps.h: capabilities: drop them all, then ask the kernel whether any is left.
 *
 * Both calls are for the launching child between fork and exec: they allocate nothing
 * and take no lock. Dropping and verifying are separate on purpose: what is believed is
 * only what the kernel answers.
 */
#ifndef KN_SANDBOX_CAPS_H
#define KN_SANDBOX_CAPS_H

#include <stdbool.h>

/* Empty the bounding set as far as CAP_SETPCAP allows (call it while still root). */
void kn_caps_drop_bounding(void);
/* Empty ambient, inheritable, permitted and effective. 0, or -1 with errno. */
int kn_caps_drop(void);
/* 0 if permitted, effective, inheritable and ambient are all empty; -1 with errno
 * (EPERM if a bit is left). */
int kn_caps_verify(void);
/* Whether the calling process has `cap` (CAP_SETUID, ...) in its effective set. */
bool kn_caps_has(int cap);

#endif
