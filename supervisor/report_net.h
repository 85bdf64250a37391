/* supervisor/report_net.h: counted connections -> their part of a report. */
#ifndef KN_SUPERVISOR_REPORT_NET_H
#define KN_SUPERVISOR_REPORT_NET_H

struct json_t;
struct kn_net_tally;

/* NULL: out of memory. */
struct json_t *kn_report_net(const struct kn_net_tally *t);
/* The same as text; free() it. */
char *kn_report_net_text(const struct kn_net_tally *t);

#endif
