/* ipc/clock.h: monotonic nanoseconds. CLOCK_MONOTONIC means the same in every
 * process of the machine, which is why no launcher may unshare the time namespace.
 * A deadline is an absolute value on this clock; 0 means none.
 */
#ifndef KN_IPC_CLOCK_H
#define KN_IPC_CLOCK_H

#include <stdint.h>

#define KN_MS_NS 1000000ull
#define KN_S_NS 1000000000ull

uint64_t kn_clock_now(void);
/* now + ms, saturating; ms 0 gives 0 (no deadline). */
uint64_t kn_clock_after_ms(uint64_t now_ns, uint64_t ms);
/* Milliseconds until deadline for poll(): 0 if past, -1 if deadline is 0, rounded up.
 */
int kn_clock_poll_ms(uint64_t now_ns, uint64_t deadline_ns);

#endif
