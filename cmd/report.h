/* cmd/report.h: a batch -> one JSON summary. Result lines are libknit's. */
#ifndef KN_CMD_REPORT_H
#define KN_CMD_REPORT_H

#include <jansson.h>
#include <knit/pool.h>

struct kn_report_batch {
	const uint64_t *verdicts; /* KNIT_VERDICT_N counts */
	uint64_t wall_ms, cpu_ms;
	unsigned workers;
	uint64_t workers_lost, failed_launches, doorbell_missed;
	const struct knit_pool
	    *pool;	     /* whose steal and layers are told; NULL: never known */
	const char *network; /* knit_pool_network() */
	const char *policy;  /* hash */
	int signal;	     /* that stopped it, 0: none */
	const char *error;   /* "" or why it could not go on */
	int calls;	     /* of a module: nobody counts processor time */
	int ascii;	     /* for a terminal: nothing can be an escape */
};
/* Fresh text that ends in a newline, *out_n its length; NULL when out of memory. */
char *kn_report_summary(const struct kn_report_batch *b, size_t *out_n);
/* root as such a text, by flags of jansson's; takes root. */
char *kn_report_line(json_t *root, size_t flags, size_t *out_n);

#endif
