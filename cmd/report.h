/* cmd/report.h: an outcome -> one JSON line, and a batch -> one JSON summary. */
#ifndef KN_CMD_REPORT_H
#define KN_CMD_REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "supervisor/task.h"

struct kn_report {
	const char *policy; /* hash; NULL if none was loaded */
	bool ascii;	    /* for a terminal: nothing in it can be an escape */
	bool streams;  /* with stdout and stderr (a relayed command has none here) */
	bool contents; /* with the content of collected files */
	bool calls; /* of a module: a value, and no streams, exit code only if it ended
		     */
};

/* Fresh text that ends in a newline, *out_n its length; NULL when out of memory. line:
 * of an invalid line of a batch, else 0. */
char *kn_report_result(const struct kn_report *r, const char *id, uint64_t line,
    const struct kn_outcome *o, size_t *out_n);

struct kn_report_batch {
	const uint64_t *verdicts; /* KN_V_N counts */
	uint64_t wall_ms, cpu_ms;
	uint32_t workers;
	uint64_t workers_lost, failed_launches, doorbell_missed;
	const struct kn_layers *layers; /* NULL: never known */
	int signal;			/* that stopped it, 0: none */
	const char *error;		/* "" or why it could not go on */
};
char *kn_report_summary(
    const struct kn_report *r, const struct kn_report_batch *b, size_t *out_n);

/* "a symbolic link"; for KN_FILE_OK "". */
const char *kn_report_refusal(enum kn_file_refusal why);

#endif
