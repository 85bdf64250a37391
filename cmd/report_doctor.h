/* cmd/report_doctor.h: what the doctor found, as lines for people or as one JSON
 * document. */
#ifndef KN_CMD_REPORT_DOCTOR_H
#define KN_CMD_REPORT_DOCTOR_H

#include <stddef.h>

#include "sandbox/doctor.h"

/* Of all of it: of the run that was tried, and DEGRADED where it does but something
 * weaker stands in. */
enum kn_health kn_report_doctor_verdict(const struct kn_doctor *d);
/* Worst first, one screen. Malloced, or NULL: no memory. */
char *kn_report_doctor_text(const struct kn_doctor *d, size_t *out_n);
/* policies/schemas/doctor.schema.json. */
char *kn_report_doctor_json(const struct kn_doctor *d, size_t *out_n);

#endif
