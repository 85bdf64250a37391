/* sandbox/launch_guard.h: one small process per launcher that outlives the supervisor
 * just long enough to kill what it left.
 *
 * Death signals have a gap: bwrap's inner process, PID 1 of its namespace, waits for
 * the outer one before it asks for death with its parent. If the supervisor is killed
 * in that moment the outer bwrap dies of its death signal and the inner one waits for
 * ever. So all launchers are members of the guard's process group; when the supervisor
 * has ended, however it did, the guard kills the group, itself included. It is not a
 * child of the supervisor's: those are launchers and nothing else.
 */
#ifndef KN_SANDBOX_LAUNCH_GUARD_H
#define KN_SANDBOX_LAUNCH_GUARD_H

struct kn_proc;
struct kn_err;

/* Start it, or again if it is dead. self_pidfd: of the calling process. The group's id
 * is out->pid. */
int kn_guard_ensure(struct kn_proc *guard, int self_pidfd, struct kn_err *e);

#endif
