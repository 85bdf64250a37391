/* supervisor/report.h: an outcome -> one result line of JSON. */
#ifndef KN_SUPERVISOR_REPORT_H
#define KN_SUPERVISOR_REPORT_H

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

/* "a symbolic link"; for KN_FILE_OK "". */
const char *kn_report_refusal(enum kn_file_refusal why);

#endif
