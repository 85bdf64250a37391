/* cmd/out.h: the result lines of a batch on their way to stdout, without ever making
 * the supervisor wait for the reader.
 *
 * Lines queue up here; when too many do, kn_out_room() says no and the batch stops
 * accepting. With order, lines that come early are held until all before them are out.
 */
#ifndef KN_CMD_OUT_H
#define KN_CMD_OUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct kn_err;

enum {
	KN_OUT_BYTES_MAX = 8 << 20, /* queued, before accepting pauses */
	KN_OUT_HELD_MAX = 4096,	    /* lines held for order, likewise */
	KN_OUT_HELD_BYTES = 64 << 20,
};

struct kn_out_held {
	char *line;
	size_t n;
};

struct kn_out {
	int fd;
	bool own_fd; /* fd is a description of our own, made non-blocking */
	bool direct; /* a regular file: a write never waits for anybody */
	bool socket;
	bool ordered;
	bool waiting; /* it would not take more: kn_out_ready() goes on */
	bool corked;
	char *buf;
	size_t at, end, cap;
	uint64_t sent;		  /* bytes that the descriptor took */
	int broken;		  /* errno of the failed write, 0: none */
	struct kn_out_held *held; /* ring: [next_seq % held_cap] is the next one out */
	uint64_t next_seq;
	size_t held_cap, held_n, held_bytes;
};

/* fd is borrowed. */
int kn_out_open(struct kn_out *o, int fd, bool ordered, struct kn_err *e);
/* What to poll fd for: POLLOUT, 0 (only that the reader goes), -1: not at all. */
int kn_out_events(const struct kn_out *o);
/* The poll's answer. */
void kn_out_ready(struct kn_out *o, short revents);
/* Takes line (malloc'ed). seq counts from 0 without gaps. */
void kn_out_put(struct kn_out *o, uint64_t seq, char *line, size_t n);
/* While on, lines are put together before they are written, up to some 64 KiB. */
void kn_out_cork(struct kn_out *o, bool on);
bool kn_out_room(const struct kn_out *o);
/* There is none, but only for lines that are held for order. */
bool kn_out_only_held(const struct kn_out *o);
/* After the loop: write what is left, waiting for the reader. 0, or -1 if broken. */
int kn_out_finish(struct kn_out *o);
void kn_out_close(struct kn_out *o);

#endif
