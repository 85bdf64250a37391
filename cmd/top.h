/* cmd/top.h: what the files of `top` share.
 *
 *   top.c        the verb: options, the loop, signals
 *   top_fetch.c  one document of a server
 *   top_draw.c   it as text
 */
#ifndef KN_CMD_TOP_H
#define KN_CMD_TOP_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct kn_err;

/* What the server at that unix socket does, NULL with e. */
json_t *kn_top_fetch(const char *path, struct kn_err *e);

/* Rates are of the time between two documents. */
struct kn_top_last {
	bool known;
	uint64_t uptime_ms, answered;
	struct {
		int64_t pid;
		uint64_t cpu_ms;
	} worker[512];
};
struct kn_top_look {
	bool color;
	int columns, rows; /* 0: as many as there are */
};
/* Lines, each with its newline, nothing in them that a terminal would obey but our own
 * colours; fresh, NULL: no memory. */
char *kn_top_draw(json_t *doc, struct kn_top_last *last, const struct kn_top_look *look,
    size_t *out_n);

#endif
