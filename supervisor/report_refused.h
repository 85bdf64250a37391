/* supervisor/report_refused.h: "refused" of a result line, and what it needs of
 * report.c. */
#ifndef KN_SUPERVISOR_REPORT_REFUSED_H
#define KN_SUPERVISOR_REPORT_REFUSED_H

#include <jansson.h>

#include "supervisor/task.h"

/* report.c: a string of ours or a name; what is not UTF-8 after all, as a cut in the
 * middle of a character or somebody's path, made printable. NULL: out of memory. */
json_t *kn_report_words(const char *text);
/* Nothing is set where nothing was refused. 0, or not: out of memory. */
int kn_report_refused(json_t *root, const struct kn_outcome *o);

#endif
