/* supervisor/report_net.h: counted connections -> their part of a report. */
#ifndef KN_SUPERVISOR_REPORT_NET_H
#define KN_SUPERVISOR_REPORT_NET_H

#include <jansson.h>

struct kn_net_tally;

/* NULL: out of memory. */
json_t *kn_report_net(const struct kn_net_tally *t);

#endif
