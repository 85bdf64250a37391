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
struct kn_sup;

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
	struct kn_sup *sup;
	short watching; /* POLLOUT, POLLERR, 0: not at all */
	char *buf;
	size_t at, end, cap;
	int broken;		  /* errno of the failed write, 0: none */
	struct kn_out_held *held; /* ring: [next_seq % held_cap] is the next one out */
	uint64_t next_seq;
	size_t held_cap, held_n, held_bytes;
	void *ctx;
	void (*changed)(void *ctx); /* there is room again, or broken was set */
};

/* fd is borrowed. */
int kn_out_open(struct kn_out *o, int fd, bool ordered, struct kn_err *e);
/* From here on the loop may call us. */
void kn_out_attach(
    struct kn_out *o, struct kn_sup *s, void (*changed)(void *ctx), void *ctx);
/* Takes line (malloc'ed). seq counts from 0 without gaps. */
void kn_out_put(struct kn_out *o, uint64_t seq, char *line, size_t n);
bool kn_out_room(const struct kn_out *o);
/* After the loop: write what is left, waiting for the reader. 0, or -1 if broken. */
int kn_out_finish(struct kn_out *o);
void kn_out_close(struct kn_out *o);

#endif
