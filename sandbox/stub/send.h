/* sandbox/stub/send.h: descriptors for the supervisor, also when there are too many on
 * their way.
 *
 * The kernel counts the descriptors that are in flight in local sockets per user of the
 * host, and refuses more than a process of that user may have open. All workers of an
 * ordinary user are that user, and so is whatever else he runs: who meets the limit has
 * done nothing wrong, and it passes as soon as somebody reads.
 */
#ifndef KN_STUB_SEND_H
#define KN_STUB_SEND_H

#include <stddef.h>

/* Send a datagram with descriptors; while the kernel is short of something and the
 * other end is there, again. 0, or a negative errno. */
int kn_send_fds(int sock, const void *p, size_t n, const int *fds, int fd_n);

#endif
