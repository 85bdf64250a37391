/* supervisor/batch_int.h: what the parts of a batch share: batch.c reads and paces,
 * batch_graph.c knows who waits for whom and ends tasks, batch_files.c finds the
 * content of files that come by "path" and "from".
 */
#ifndef KN_SUPERVISOR_BATCH_INT_H
#define KN_SUPERVISOR_BATCH_INT_H

#include "ipc/err.h"
#include "supervisor/batch.h"
#include "supervisor/task_line.h"

enum kn_node_state {
	KN_NODE_WAITING, /* for tasks that it comes after */
	KN_NODE_READY,	 /* for room in the supervisor */
	KN_NODE_RUNNING, /* the supervisor has it */
	KN_NODE_DOOMED,	 /* something it comes after failed: about to be skipped */
	KN_NODE_ENDED	 /* answered; only kept while somebody points at it */
};

struct kn_node {
	enum kn_node_state state;
	uint64_t seq, line_no;
	struct kn_line line;   /* its task moved to: */
	struct kn_task *task;  /* the supervisor's while RUNNING */
	uint32_t pending;      /* predecessors that have not ended */
	uint32_t refs;	       /* live predecessors and queues that point here */
	struct kn_node **then; /* who comes after this one */
	size_t then_n, then_room;
	bool cancel_asked;
	uint64_t result_bytes; /* the most that its result can hold, while RUNNING */
	char *doom;	       /* why it is skipped */
	struct kn_node *hash_next;
	struct kn_node *queue_next;	       /* in ready or doomed */
	struct kn_node *live_prev, *live_next; /* in the order of the lines */
};

struct kn_node_queue {
	struct kn_node *head, **tail;
};

enum { KN_BATCH_BUCKETS = 4096, KN_BATCH_CHUNK = 65536 };

struct kn_batch {
	struct kn_batch_options o;
	struct kn_batch_ops ops;
	struct kn_line_rules rules;
	struct kn_ledger *ledger;
	struct kn_keep *keep;
	int *roots; /* of policy->fs.task_paths, -1: not opened yet */

	struct kn_node *buckets[KN_BATCH_BUCKETS];
	struct kn_node *live_first, *live_last;
	struct kn_node_queue ready, doomed;
	uint32_t live_n, waiting_n, running_n;
	uint64_t live_bytes, running_bytes, seq, answered;

	char *buf; /* bytes read and not yet used: buf[at..end) */
	size_t at, end, room, scanned;
	uint64_t line_no, line_discarded;
	bool discarding; /* the rest of an over-long line */
	bool eof, stopping, pumping, again, full;
	bool failed;
	struct kn_err error;
};

/* batch.c */
void kn_batch_fail(struct kn_batch *b, const struct kn_err *e);

/* batch_graph.c */
void kn_batch_accept(struct kn_batch *b, struct kn_line *l); /* takes the content */
void kn_batch_cancel(struct kn_batch *b, const char *id);
/* Answer for a line that is no task; id may be NULL. */
void kn_batch_invalid(struct kn_batch *b, const char *id, const char *why);
/* Answer n for good. o is the supervisor's, or NULL: verdict v because of why. */
void kn_batch_end(struct kn_batch *b, struct kn_node *n, struct kn_outcome *o,
    enum kn_verdict v, const char *why);
void kn_batch_skip_doomed(struct kn_batch *b);
void kn_batch_end_all(struct kn_batch *b, enum kn_verdict v, const char *why);
void kn_batch_drop_running(struct kn_batch *b); /* without an answer */
struct kn_node *kn_batch_pop_ready(struct kn_batch *b);
void kn_batch_unpop(struct kn_batch *b, struct kn_node *n); /* back to the front */
void kn_batch_running(struct kn_batch *b, struct kn_node *n);
void kn_batch_not_running(struct kn_batch *b, struct kn_node *n);

/* batch_files.c. 0; 1: out of descriptors, try again when a task has ended; -1: *out_v
 * and e say why the task cannot run. */
int kn_batch_files(
    struct kn_batch *b, struct kn_node *n, enum kn_verdict *out_v, struct kn_err *e);
/* Store what the outcome kept, forget what it did not; only collected files stay. */
void kn_batch_store(struct kn_batch *b, const struct kn_node *n, struct kn_outcome *o);
void kn_batch_files_close(struct kn_batch *b);

#endif
