/* supervisor/report_refused.h: "refused" of a result line. */
#ifndef KN_SUPERVISOR_REPORT_REFUSED_H
#define KN_SUPERVISOR_REPORT_REFUSED_H

#include <jansson.h>

#include "supervisor/task.h"

/* Nothing is set where nothing was refused. 0, or not: out of memory. */
int kn_report_refused(json_t *root, const struct kn_outcome *o);

#endif
