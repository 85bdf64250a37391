/* sandbox/listener.h: the kernel's messages about calls that a filter refers to us.
 *
 * The descriptor comes from a stub, before anything untrusted runs in its sandbox, and
 * is looked at before it is used. What is read from it was filled in by the kernel. No
 * call here waits, as long as nobody else reads from the same descriptor: the stub
 * closes its own before it serves, and no process in there can get another.
 */
#ifndef KN_SANDBOX_LISTENER_H
#define KN_SANDBOX_LISTENER_H

#include <stdbool.h>
#include <stdint.h>

#include "sandbox/filter_told.h"

struct kn_err;

/* Has this kernel got it, and may we (or those we start) have one? -1 with e. */
int kn_listener_can(struct kn_err *e);
/* Is it one? */
bool kn_listener_is(int fd);

struct kn_listened {
	uint64_t id;
	uint32_t pid; /* of the calling thread, as we see it */
	struct kn_told_call call;
};
/* 1: one was taken; its caller waits for the answer. 0: there is none. -1: errno. */
int kn_listener_take(int fd, struct kn_listened *out);
/* Does its caller still wait? */
bool kn_listener_waits(int fd, uint64_t id);
/* Its call fails with this error number. */
void kn_listener_refuse(int fd, uint64_t id, unsigned errno_ret);
/* It is made after all. Not for what is to be kept from a task: others of its threads
 * may change what the arguments point to. */
void kn_listener_let(int fd, uint64_t id);

#endif
