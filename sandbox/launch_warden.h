/* sandbox/launch_warden.h: between a supervisor that is part of another program and a
 * launcher: one small process that starts it, waits for it, and dies with either.
 *
 * Three things of a program are not ours when we are embedded in it. Its threads: a
 * death signal (PR_SET_PDEATHSIG) comes when the thread that forked ends, and any
 * thread may start a worker and end. Its wait(): a launcher is a child like others
 * since its exec, and a wait(-1) of the program would take it from us. Its SIGCHLD: the
 * same. The warden is no such child: it was cloned without an exit signal and never
 * executes anything, so that only who asks for it by its pidfd and with __WALL can wait
 * for it. And it has one thread, which stays.
 *
 * It shares the program's memory rather than a copy, which would keep every page alive
 * that the program has changed since; its stack is its own, and it makes system calls
 * only. It watches the program by pidfd, and kills its process group, which is also its
 * launcher's and what is inside, when the program has ended: the guard is not needed.
 *
 * A kind of launcher whose processes leave that group has wardens always, and these
 * gather: what loses its parent becomes their child, and before they end all of it has.
 */
#ifndef KN_SANDBOX_LAUNCH_WARDEN_H
#define KN_SANDBOX_LAUNCH_WARDEN_H

#include <stdbool.h>

struct kn_child;
struct kn_err;
struct kn_proc;

struct kn_warden {  /* one per worker; zero: none yet */
	void *room; /* its stack, and what it was told */
	bool gathers;
};
/* Start *c in a cgroup (or -1) below a warden; *out is the warden. What c points to
 * must stay until the end of the launch is known. */
int kn_warden_start(struct kn_warden *w, const struct kn_child *c, int clone_fd,
    struct kn_proc *out, struct kn_err *e);
/* Its process must be reaped. */
void kn_warden_free(struct kn_warden *w);

#endif
