/* supervisor/batch.h: many tasks: JSON lines in, one result per accepted id out.
 *
 * Lines are read only while there is room: for another task in the supervisor, in the
 * set of tasks that wait for others, and in the caller's output. So a batch of any
 * length runs in constant memory. `after` may only name ids of earlier lines, so the
 * graph has no cycle and the oldest task can always go on.
 *
 * Life: kn_batch_open(), kn_batch_callbacks() into kn_sup_open(), kn_batch_start(),
 * kn_sup_run(), kn_batch_finish(), kn_batch_close().
 */
#ifndef KN_SUPERVISOR_BATCH_H
#define KN_SUPERVISOR_BATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "supervisor/task.h"

struct kn_batch;
struct kn_err;
struct kn_policy;
struct kn_sup;
struct kn_sup_callbacks;

enum {
	KN_BATCH_LIVE_MAX = 4096,	/* tasks accepted and not answered */
	KN_BATCH_LIVE_BYTES = 64 << 20, /* what they may hold before reading pauses */
	/* What the results of the running ones may come to before no more are begun. */
	KN_BATCH_RESULT_BYTES = 512 << 20,
};

struct kn_batch_options {
	int fd;				/* borrowed: the lines */
	const struct kn_policy *policy; /* borrowed */
	const char *const *env;		/* borrowed: what every task gets */
	size_t env_n;
	const char *cwd;      /* of every task, NULL: /task */
	const char *keep_dir; /* NULL: private, removed at the end */
	uint32_t retries;
	bool fail_fast;
};

struct kn_batch_result {
	const char *id;
	uint64_t seq;		    /* 0, 1, 2...: the order of the lines */
	uint64_t line;		    /* of an invalid line, else 0 */
	struct kn_outcome *outcome; /* collected files only; kept ones are stored */
};

struct kn_batch_ops {
	void *ctx;
	/* Exactly once per accepted id and per invalid line. */
	void (*result)(void *ctx, const struct kn_batch_result *r);
	/* May more be accepted? If not, kn_batch_wake() when that changes. */
	bool (*room)(void *ctx);
};

int kn_batch_open(const struct kn_batch_options *o, const struct kn_batch_ops *ops,
    struct kn_batch **out, struct kn_err *e);
void kn_batch_callbacks(struct kn_batch *b, struct kn_sup_callbacks *out);
int kn_batch_start(struct kn_batch *b, struct kn_sup *s, struct kn_err *e);
void kn_batch_wake(struct kn_batch *b);
/* Accept nothing more, let running tasks end as after a SIGTERM, cancel the rest. */
void kn_batch_stop(struct kn_batch *b);
/* After kn_sup_run(): answer what never reached the supervisor. */
void kn_batch_finish(struct kn_batch *b, enum kn_verdict v, const char *why);
/* Why reading ended before the end of the input, NULL if it did not. */
const struct kn_err *kn_batch_error(const struct kn_batch *b);
void kn_batch_close(struct kn_batch *b);

struct kn_batch_counts {
	uint64_t accepted, answered, waiting, running;
	bool eof; /* every line has been read and used */
};
void kn_batch_count(const struct kn_batch *b, struct kn_batch_counts *out);

#endif
