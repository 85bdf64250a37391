/* supervisor/batch.h: many tasks: JSON lines in, one result per accepted id out.
 *
 * Lines are taken only while there is room: for another task in what runs them, in the
 * set of tasks that wait for others, and in the caller's output. So a batch of any
 * length runs in constant memory. `after` may only name ids of earlier lines, so the
 * graph has no cycle and the oldest task can always go on.
 *
 * It knows no loop and no pool: who owns it feeds it lines, runs what it submits, and
 * tells it the answers; it goes on from inside of these calls.
 */
#ifndef KN_SUPERVISOR_BATCH_H
#define KN_SUPERVISOR_BATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "supervisor/task.h"

struct kn_batch;
struct kn_err;
struct kn_node;
struct kn_policy;

enum {
	KN_BATCH_LIVE_MAX = 4096,	/* tasks accepted and not answered */
	KN_BATCH_LIVE_BYTES = 64 << 20, /* what they may hold before reading pauses */
	/* What the results of the running ones may come to before no more are begun. */
	KN_BATCH_RESULT_BYTES = 512 << 20,
};

struct kn_batch_options {
	const struct kn_policy *policy; /* borrowed */
	const char *const *env;		/* borrowed: what every task gets */
	size_t env_n;
	const char *cwd;      /* of every task, NULL: /task */
	const char *keep_dir; /* NULL: private, removed at the end */
	bool swept;	      /* what killed ones left there was looked for already */
	uint32_t retries;
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
	/* May more be accepted, and begun? If not, kn_batch_wake() when that changes.
	 */
	bool (*room)(void *ctx);
	/* Run t; n names it, for kn_batch_answer(). 0: taken, and t is lent until the
	 * answer. 1: no room: again after the next answer, or kn_batch_wake(). -1: *v
	 * and e say why it cannot be run. */
	int (*submit)(void *ctx, struct kn_task *t, struct kn_node *n,
	    enum kn_verdict *v, struct kn_err *e);
	/* Have it end; the answer comes as any other. */
	void (*cancel)(void *ctx, struct kn_task *t);
	/* Nobody waits for the answer any more: t is the callee's, who ends it. */
	void (*drop)(void *ctx, struct kn_task *t);
	/* Others than ours run, which hold descriptors too, and when one has ended
	 * kn_batch_wake() comes. NULL: there are no others. */
	bool (*others)(void *ctx);
};

int kn_batch_open(const struct kn_batch_options *o, const struct kn_batch_ops *ops,
    struct kn_batch **out, struct kn_err *e);
/* Are more lines welcome? Whoever feeds it unasked only costs memory. */
bool kn_batch_wants(const struct kn_batch *b);
/* Take n bytes of lines, wherever they are cut. 0, or -1: kn_batch_error(). */
int kn_batch_feed(struct kn_batch *b, const void *bytes, size_t n);
/* The same by one read(). 1: some came; 0: none now; -1: none will, and if it is not
 * the end kn_batch_error() says why. */
int kn_batch_read(struct kn_batch *b, int fd);
void kn_batch_no_more(struct kn_batch *b); /* the last line may lack its newline */
/* How a submitted task ended; o as in struct kn_sup_callbacks. */
void kn_batch_answer(struct kn_batch *b, struct kn_node *n, struct kn_outcome *o);
void kn_batch_wake(struct kn_batch *b);
/* Accept nothing more, cancel what was not submitted. */
void kn_batch_stop(struct kn_batch *b);
/* The same, and as what: answer all that was not submitted. */
void kn_batch_finish(struct kn_batch *b, enum kn_verdict v, const char *why);
/* Why reading ended before the end of the input, NULL if it did not. */
const struct kn_err *kn_batch_error(const struct kn_batch *b);
void kn_batch_close(struct kn_batch *b); /* drops what runs */

struct kn_batch_counts {
	uint64_t accepted, answered, waiting, running;
	uint64_t held; /* bytes of lines: read, or accepted and not answered */
	bool eof;      /* every line has been read and used */
	bool over;     /* that or stopped, and all is answered */
};
void kn_batch_count(const struct kn_batch *b, struct kn_batch_counts *out);

#endif
