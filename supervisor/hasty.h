/* supervisor/hasty.h: reads and writes that come back, on a description that somebody
 * else may have made a blocking one.
 *
 * A terminal's master is shared with the worker that opened it: whoever holds it can
 * take O_NONBLOCK off, and read what poll() has just promised to us. The kernel knows
 * no read of a terminal that never waits; but a signal ends the wait.
 */
#ifndef KN_SUPERVISOR_HASTY_H
#define KN_SUPERVISOR_HASTY_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>
#include <time.h>

/* Zero value: closed. One at a time in a process: the signal is the process's. */
struct kn_hasty {
	bool open;
	timer_t timer;
	struct sigaction old_action;
	sigset_t old_mask;
};
int kn_hasty_open(struct kn_hasty *h); /* 0, or -1 with errno */
void kn_hasty_close(struct kn_hasty *h);
/* As read and write, for the thread that opened h; -1/EAGAIN instead of waiting for
 * more than some milliseconds. */
ssize_t kn_hasty_read(struct kn_hasty *h, int fd, void *p, size_t n);
ssize_t kn_hasty_write(struct kn_hasty *h, int fd, const void *p, size_t n);

#endif
