/* sandbox/launch_guard.h: one small process per launcher that outlives the supervisor
 * just long enough to kill what it left.
 *
 * Death signals have a gap: bwrap's inner process, PID 1 of its namespace, waits for
 * the outer one before it asks for death with its parent. If the supervisor is killed
 * in that moment the outer bwrap dies of its death signal and the inner one waits for
 * ever. So each launching child notes its process group in a page that it shares with
 * the guard; when the supervisor has ended, however it did, the guard kills the groups.
 */
#ifndef KN_SANDBOX_LAUNCH_GUARD_H
#define KN_SANDBOX_LAUNCH_GUARD_H

#include <stdbool.h>
#include <stdint.h>

#include "ipc/fd.h"

struct kn_err;

struct kn_guard {
	struct kn_proc proc;
	int self_pidfd; /* of the supervisor */
	/* One word per worker: the group of its launcher, 0: none. Shared mapping.
	 * writers: the launching child (before its exec), the supervisor (after the
	 * reap). reader: the guard, once the supervisor is dead. No order beyond that
	 * of the system calls in between: the child looks whether the supervisor lives
	 * after it has written, and ends if not. */
	volatile int32_t *groups;
	uint32_t group_n;
};

int kn_guard_open(struct kn_guard *g, uint32_t group_n, struct kn_err *e);
/* Have it end, without waiting; kn_guard_close() does. */
void kn_guard_dismiss(const struct kn_guard *g);
void kn_guard_close(struct kn_guard *g); /* also of a zeroed one with pidfds -1 */
bool kn_guard_alive(const struct kn_guard *g);
/* Start it, or again if it is dead. The first launching child is forked before it, so
 * that it is the elder, and held until the guard exists (launch_child.h, go). */
int kn_guard_ensure(struct kn_guard *g, struct kn_err *e);

#endif
