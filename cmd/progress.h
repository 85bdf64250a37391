/* cmd/progress.h: how a batch is doing: one line that is rewritten on a terminal, and
 * a closing table.
 */
#ifndef KN_CMD_PROGRESS_H
#define KN_CMD_PROGRESS_H

#include <knit/pool.h>
#include <stdbool.h>
#include <stdint.h>

struct kn_progress {
	bool line;  /* stderr is a terminal, and nobody asked for quiet or for JSON */
	bool color; /* and NO_COLOR is not set */
	bool shown; /* the line stands there now */
	bool json;  /* the summary as one JSON object */
	bool calls; /* of a module, whose processor time nobody counts */
	uint64_t start_ns;
	uint64_t verdicts[KNIT_VERDICT_N];
	uint64_t cpu_us;
	uint64_t shown_ns, shown_done; /* for the rate */
	double rate;
};

void kn_progress_open(struct kn_progress *p, bool quiet, bool json, bool calls);
void kn_progress_count(struct kn_progress *p, const struct knit_outcome *o);
void kn_progress_show(struct kn_progress *p, uint64_t running, uint64_t waiting);
/* Take the line away, so that something else can be printed. */
void kn_progress_clear(struct kn_progress *p);
/* The table: verdicts, time, rate. */
void kn_progress_summary(struct kn_progress *p, const struct knit_pool_counts *c);
uint64_t kn_progress_total(const struct kn_progress *p);

#endif
