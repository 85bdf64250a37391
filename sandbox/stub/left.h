/* sandbox/stub/left.h: what outlives a task although all of its namespaces ended.
 *
 * A pair of local sockets that hold each other in their queues is held by nobody else
 * and yet not gone: with it live the files it was sent, their locks and their memory,
 * until the kernel next looks for such pairs, which it does when some local socket is
 * closed. So we close one, and wait until the worker's network namespace has none.
 */
#ifndef KN_STUB_LEFT_H
#define KN_STUB_LEFT_H

#include <stdbool.h>
#include <stddef.h>

struct kn_left {
	int list_fd; /* /proc/net/unix of the worker, or -1 */
	long none;   /* its length without any socket; 0: they are not only ours */
};

/* Only while nothing untrusted runs, in the namespaces of the worker. */
void kn_left_init(struct kn_left *l);
/* When nothing of a cell runs any more. False: something is still there after
 * KN_LEFT_MS. */
enum { KN_LEFT_MS = 200 };
bool kn_left_clear(const struct kn_left *l);

#endif
