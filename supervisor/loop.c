/* supervisor/loop.c: epoll, timerfd and the always-ready list, see loop.h. */
#include "supervisor/loop.h"

#include <errno.h>
#include <string.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "ipc/clock.h"
#include "ipc/err.h"
#include "ipc/fd.h"

static void
timer_fired(struct kn_watch *w, uint32_t events)
{
	struct kn_loop *l = w->ctx;
	uint64_t n;

	(void)events;
	if (read(l->timer_fd, &n, sizeof n) < 0 && errno != EAGAIN)
		return;
	l->armed_ns = 0;
}

int
kn_loop_open(struct kn_loop *l, struct kn_err *e)
{
	memset(l, 0, sizeof *l);
	l->timer_fd = -1;
	l->timer.fd = -1;
	l->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (l->epoll_fd < 0)
		return kn_err_sys(e, KN_EK_HOST, "create an epoll set");
	l->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (l->timer_fd < 0) {
		kn_err_sys(e, KN_EK_HOST, "create a timer descriptor");
		kn_loop_close(l);
		return -1;
	}
	if (kn_loop_add(l, &l->timer, l->timer_fd, EPOLLIN, timer_fired, l, e) < 0) {
		kn_loop_close(l);
		return -1;
	}
	return 0;
}

void
kn_loop_close(struct kn_loop *l)
{
	kn_fd_close(&l->timer_fd);
	kn_fd_close(&l->epoll_fd);
	l->timer.fd = -1;
}

static void
always_unlink(struct kn_watch *w)
{
	if (!w->prev)
		return;
	*w->prev = w->next;
	if (w->next)
		w->next->prev = w->prev;
	w->next = NULL;
	w->prev = NULL;
}

static void
always_link(struct kn_loop *l, struct kn_watch *w)
{
	if (w->prev)
		return;
	w->next = l->always;
	w->prev = &l->always;
	if (w->next)
		w->next->prev = &w->next;
	l->always = w;
}

int
kn_loop_add(struct kn_loop *l, struct kn_watch *w, int fd, uint32_t events,
    kn_watch_fn fn, void *ctx, struct kn_err *e)
{
	struct epoll_event ev = { .events = events, .data.ptr = w };

	memset(w, 0, sizeof *w);
	w->fd = fd;
	w->fn = fn;
	w->ctx = ctx;
	w->events = events;
	if (epoll_ctl(l->epoll_fd, EPOLL_CTL_ADD, fd, &ev) == 0)
		return 0;
	if (errno == EPERM) { /* a regular file or /dev/null: never blocks */
		w->always = true;
		if (events & (EPOLLIN | EPOLLOUT))
			always_link(l, w);
		return 0;
	}
	w->fd = -1;
	return kn_err_sys(e, KN_EK_HOST, "watch descriptor %d", fd);
}

void
kn_loop_mod(struct kn_loop *l, struct kn_watch *w, uint32_t events)
{
	struct epoll_event ev = { .events = events, .data.ptr = w };

	if (w->fd < 0 || w->events == events)
		return;
	w->events = events;
	if (!w->always) {
		/* cannot fail: the entry exists and no memory is needed */
		(void)epoll_ctl(l->epoll_fd, EPOLL_CTL_MOD, w->fd, &ev);
		return;
	}
	if (events & (EPOLLIN | EPOLLOUT))
		always_link(l, w);
	else
		always_unlink(w);
}

void
kn_loop_del(struct kn_loop *l, struct kn_watch *w)
{
	if (w->fd < 0 || !w->fn)
		return;
	if (w->always)
		always_unlink(w);
	else
		(void)epoll_ctl(l->epoll_fd, EPOLL_CTL_DEL, w->fd, NULL);
	for (int i = l->batch_at; i < l->batch_n; i++) {
		if (l->batch[i].data.ptr == w)
			l->batch[i].data.ptr = NULL;
	}
	w->fd = -1;
	w->fn = NULL;
}

/* The timer is only ever moved nearer: one that fires too early costs a look at the
 * clock, one that is set anew for each task costs a system call a task. */
static void
arm(struct kn_loop *l, uint64_t deadline_ns)
{
	struct itimerspec its = { { 0, 0 }, { 0, 0 } };

	if (!deadline_ns || (l->armed_ns && l->armed_ns <= deadline_ns))
		return;
	its.it_value.tv_sec = (time_t)(deadline_ns / KN_S_NS);
	its.it_value.tv_nsec = (long)(deadline_ns % KN_S_NS);
	if (timerfd_settime(l->timer_fd, TFD_TIMER_ABSTIME, &its, NULL) == 0)
		l->armed_ns = deadline_ns;
}

static void
run_always(struct kn_loop *l)
{
	/* A callback may unlink any watch; one look at each that is there now. Those
	 * are few (the caller's own streams), so the walk restarts from a count. */
	unsigned n = 0;

	for (struct kn_watch *w = l->always; w; w = w->next)
		n++;
	for (unsigned i = 0; i < n; i++) {
		struct kn_watch *w = l->always;

		for (unsigned k = 0; w && k < i; k++)
			w = w->next;
		if (w)
			w->fn(w, w->events & (EPOLLIN | EPOLLOUT));
	}
}

static int
dispatch(struct kn_loop *l, int timeout, int *out_events, struct kn_err *e)
{
	int n;

	do /* a stop and continue of ours ends the wait with nothing in hand */
		n = epoll_wait(l->epoll_fd, l->batch, KN_LOOP_BATCH, timeout);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return kn_err_sys(e, KN_EK_BUG, "wait for events");
	l->batch_n = n;
	for (l->batch_at = 0; l->batch_at < l->batch_n;) {
		struct epoll_event *ev = &l->batch[l->batch_at++];
		struct kn_watch *w = ev->data.ptr;

		if (w && w->fn)
			w->fn(w, ev->events);
	}
	l->batch_n = l->batch_at = 0;
	if (l->always)
		run_always(l);
	*out_events = n;
	return 0;
}

int
kn_loop_wait(struct kn_loop *l, uint64_t now_ns, uint64_t deadline_ns, struct kn_err *e)
{
	int timeout = -1, n;

	if (l->always || (deadline_ns && deadline_ns <= now_ns))
		timeout = 0;
	else
		arm(l, deadline_ns);
	return dispatch(l, timeout, &n, e);
}

int
kn_loop_poll(struct kn_loop *l, uint64_t deadline_ns, int *out_events, struct kn_err *e)
{
	arm(l, deadline_ns);
	return dispatch(l, 0, out_events, e);
}
