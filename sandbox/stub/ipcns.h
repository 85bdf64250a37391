/* sandbox/stub/ipcns.h: an IPC namespace that a task left as it was made.
 *
 * An IPC namespace for each task is a tenth of what a cell costs, and few programs make
 * an object in theirs. So a cell lives in the stub's, and the next one does too only if
 * nothing was made there: each kind of System V object numbers its objects on and on,
 * also those that are gone again, and tells how many there are; the folder of the
 * message queues, which no task has mounted, shows those that are there by its size.
 * Otherwise the stub leaves it for a new one before the next task, and all that was in
 * it goes.
 */
#ifndef KN_STUB_IPCNS_H
#define KN_STUB_IPCNS_H

#include <stdbool.h>
#include <sys/stat.h>

enum { KN_IPCNS_KINDS = 3 }; /* messages, semaphores, shared memory */

struct kn_ipcns {
	bool known;		  /* what follows tells whether something was made */
	int last[KN_IPCNS_KINDS]; /* number of the last object, one of ours */
	int queues_fd;		  /* root of the message queues, or -1 */
	struct stat queues;
};

/* The one we were started in: it is new, and not looked at, as the first task of a
 * worker may be its only one. */
void kn_ipcns_init(struct kn_ipcns *n);
/* When nothing of a cell that lived in it runs any more: afterwards it is as new.
 * 0; or a negative errno if it cannot be made so: no task may follow. */
int kn_ipcns_renew(struct kn_ipcns *n);

#endif
