/* sandbox/caps.h: capabilities: drop them all, then ask the kernel whether any is left.
 *
 * Both calls are for the launching child between fork and exec: they allocate nothing
 * and take no lock. Dropping and verifying are separate on purpose: what is believed is
 * only what the kernel answers.
 */
#ifndef KN_SANDBOX_CAPS_H
#define KN_SANDBOX_CAPS_H

#include <stdbool.h>
#include <stdint.h>

/* keep: bit mask (1 << CAP_...) of what may stay; 0 but for one case, see
 * launch_child.c. */

/* Empty the bounding set as far as CAP_SETPCAP allows (call it while still root). */
void kn_caps_drop_bounding(uint64_t keep);
/* Empty ambient and inheritable, and all but keep of permitted and effective. 0, or -1
 * with errno. */
int kn_caps_drop(uint64_t keep);
/* 0 if permitted, effective, inheritable and ambient hold nothing but keep, and for uid
 * 0, whom an exec would give all of it, the bounding set too; -1 with errno (EPERM if a
 * bit is left). */
int kn_caps_verify(uint64_t keep);
/* Whether the calling process has `cap` (CAP_SETUID, ...) in its effective set. */
bool kn_caps_has(int cap);

#endif
