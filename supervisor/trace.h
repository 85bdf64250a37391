/* supervisor/trace.h: Chrome trace events: what each worker did when.
 *
 * A JSON array in the trace event format, readable by chrome://tracing and Perfetto:
 * one lane per worker with the tasks it ran, one async span per task while it waited,
 * instants for take-backs, kills and losses. Ids come from the user and are escaped.
 */
#ifndef KN_SUPERVISOR_TRACE_H
#define KN_SUPERVISOR_TRACE_H

#include <stdbool.h>
#include <stdint.h>

struct kn_trace {
	int fd; /* borrowed; -1: off */
	uint64_t start_ns;
	bool first, failed;
	unsigned n;
	char buf[8192];
};

void kn_trace_open(struct kn_trace *t, int fd, uint64_t start_ns, uint32_t worker_n);
/* Close the array, write what is left. 0, or -1 with errno if a write failed before. */
int kn_trace_close(struct kn_trace *t);
void kn_trace_queued(struct kn_trace *t, const char *id, uint64_t serial,
    uint64_t from_ns, uint64_t to_ns);
void kn_trace_ran(struct kn_trace *t, const char *id, int worker, uint64_t from_ns,
    uint64_t to_ns, const char *verdict);
/* A task that was taken back from one worker and given to another: an arrow. */
void kn_trace_moved(struct kn_trace *t, const char *id, uint64_t serial, int from,
    int to, uint64_t from_ns, uint64_t to_ns);
void kn_trace_instant(
    struct kn_trace *t, const char *what, const char *id, int worker, uint64_t at_ns);

struct kn_net_end;
/* A connection that a task asked for, made or refused. */
void kn_trace_net(struct kn_trace *t, int worker, uint64_t serial, uint64_t from_ns,
    uint64_t to_ns, const struct kn_net_end *end);

#endif
