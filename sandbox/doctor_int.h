/* sandbox/doctor_int.h: what the doctor*.c files share; no one else includes it.
 *
 *   doctor.c          the list, the children, facts that are only read
 *   doctor_ns.c       namespaces and what is done in them
 *   doctor_kernel.c   filters, Landlock, mseal, openat2, memory files, idmaps
 *   doctor_cgroup.c   a group made, limited, killed
 *   doctor_program.c  bwrap and container runtimes
 */
#ifndef KN_SANDBOX_DOCTOR_INT_H
#define KN_SANDBOX_DOCTOR_INT_H

#include <stddef.h>

#include "sandbox/doctor.h"

/* Run fn(d, shared) in a child that has ten seconds and dies with us; shared: memory
 * from kn_doctor_share(), which the child fills. Its exit status, or -1 if there was
 * none: no child could be had, or it was killed. */
int kn_doctor_child(const struct kn_doctor *d,
    int (*fn)(const struct kn_doctor *d, void *shared), void *shared);
void *kn_doctor_share(size_t n); /* zeroed, or NULL */
void kn_doctor_unshare(void *shared, size_t n);
/* In a child: what a worker is, before its launcher is executed. 0, or -1 with errno.
 */
int kn_doctor_become_worker(const struct kn_doctor *d);

/* Fill a finding in; the fix is the cause's. */
void kn_doctor_ok(struct kn_doctor *d, enum kn_probe p, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
void kn_doctor_bad(struct kn_doctor *d, enum kn_probe p, enum kn_health h,
    enum kn_lack c, const char *fmt, ...) __attribute__((format(printf, 5, 6)));
/* What comes before it failed, or there was no child. */
void kn_doctor_untried(struct kn_doctor *d, enum kn_probe p, const char *why);

void kn_doctor_ns(struct kn_doctor *d);
void kn_doctor_kernel(struct kn_doctor *d);
void kn_doctor_cgroup(struct kn_doctor *d);
void kn_doctor_program(struct kn_doctor *d);

#endif
