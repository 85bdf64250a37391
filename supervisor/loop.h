/* supervisor/loop.h: one epoll set, one timerfd with an absolute deadline, and a list
 * of descriptors that epoll refuses because they are always ready (regular files).
 *
 * A watch is storage of the caller's, embedded in what it watches; adding, changing
 * and removing one allocates nothing. A watch may be removed, and its storage reused,
 * from inside any callback: events of the same round that still name it are dropped.
 * Removal is explicit and comes before the close: a launcher that is between fork and
 * exec shares our descriptions, so a close alone would leave the entry in the set.
 */
#ifndef KN_SUPERVISOR_LOOP_H
#define KN_SUPERVISOR_LOOP_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/epoll.h>

struct kn_err;
struct kn_watch;

typedef void (*kn_watch_fn)(struct kn_watch *w, uint32_t events);

struct kn_watch {
	kn_watch_fn fn;
	void *ctx;
	int fd; /* borrowed; -1: not in a loop */
	uint32_t events;
	bool always;		       /* a regular file: ready whenever asked for */
	struct kn_watch *next, **prev; /* list of the always ready */
};
#define KN_WATCH_NONE \
	{ \
		.fd = -1 \
	}

enum { KN_LOOP_BATCH = 64 };

struct kn_loop {
	int epoll_fd, timer_fd;
	uint64_t armed_ns; /* what the timerfd is set to, 0: off */
	struct kn_watch timer;
	struct kn_watch *always; /* those with events asked for */
	struct epoll_event batch[KN_LOOP_BATCH];
	int batch_n, batch_at; /* the round being dispatched */
};

int kn_loop_open(struct kn_loop *l, struct kn_err *e);
void kn_loop_close(struct kn_loop *l);
/* events: EPOLLIN, EPOLLOUT, EPOLLET; 0 keeps the watch for errors only. */
int kn_loop_add(struct kn_loop *l, struct kn_watch *w, int fd, uint32_t events,
    kn_watch_fn fn, void *ctx, struct kn_err *e);
void kn_loop_mod(struct kn_loop *l, struct kn_watch *w, uint32_t events);
void kn_loop_del(struct kn_loop *l, struct kn_watch *w); /* zero value: nothing */
/* Wait for events, or until deadline_ns (0: for ever; in the past: do not wait), and
 * dispatch them. */
int kn_loop_wait(
    struct kn_loop *l, uint64_t now_ns, uint64_t deadline_ns, struct kn_err *e);
/* Dispatch what is there, without waiting, and leave the timer such that the epoll
 * descriptor itself is readable at deadline_ns, for who watches it from outside. */
int kn_loop_poll(
    struct kn_loop *l, uint64_t deadline_ns, int *out_events, struct kn_err *e);

#endif
