/* supervisor/hasty.c: see hasty.h. */
#include "supervisor/hasty.h"

#include <errno.h>
#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Ignored where nobody asked for it, and sent by the kernel for urgent data only. */
enum { WAKE = SIGURG, WAKE_MS = 10 };

#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

static void
nothing(int signo)
{
	(void)signo; /* that it came is all */
}

int
kn_hasty_open(struct kn_hasty *h)
{
	struct sigaction wake = { .sa_handler = nothing }; /* no SA_RESTART */
	struct sigevent ev = { .sigev_notify = SIGEV_THREAD_ID, .sigev_signo = WAKE };
	sigset_t set;

	if (h->open)
		return 0;
	ev.sigev_notify_thread_id = (pid_t)syscall(SYS_gettid);
	if (timer_create(CLOCK_MONOTONIC, &ev, &h->timer) < 0)
		return -1;
	sigemptyset(&set);
	sigaddset(&set, WAKE);
	sigaction(WAKE, &wake, &h->old_action);
	sigprocmask(SIG_UNBLOCK, &set, &h->old_mask);
	h->open = true;
	return 0;
}

void
kn_hasty_close(struct kn_hasty *h)
{
	sigset_t set;

	if (!h->open)
		return;
	timer_delete(h->timer);
	sigaction(WAKE, &h->old_action, NULL);
	if (sigismember(&h->old_mask, WAKE)) {
		sigemptyset(&set);
		sigaddset(&set, WAKE);
		sigprocmask(SIG_BLOCK, &set, NULL);
	}
	h->open = false;
}

/* Again and again until it is disarmed: the first may come before the call waits. */
static void
arm(struct kn_hasty *h, long ms)
{
	const struct timespec t = { 0, ms * 1000000 };
	const struct itimerspec its = { t, t };

	timer_settime(h->timer, 0, &its, NULL);
}

static bool
is_ready(int fd, short events)
{
	struct pollfd p = { .fd = fd, .events = events };

	return poll(&p, 1, 0) != 0;
}

static ssize_t
done(struct kn_hasty *h, ssize_t n)
{
	int err = errno;

	arm(h, 0);
	errno = n < 0 && err == EINTR ? EAGAIN : err;
	return n;
}

ssize_t
kn_hasty_read(struct kn_hasty *h, int fd, void *p, size_t n)
{
	if (!h->open || !is_ready(fd, POLLIN)) {
		errno = EAGAIN;
		return -1;
	}
	arm(h, WAKE_MS);
	return done(h, read(fd, p, n));
}

ssize_t
kn_hasty_write(struct kn_hasty *h, int fd, const void *p, size_t n)
{
	if (!h->open || !is_ready(fd, POLLOUT)) {
		errno = EAGAIN;
		return -1;
	}
	arm(h, WAKE_MS);
	return done(h, write(fd, p, n));
}
