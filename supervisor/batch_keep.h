/* supervisor/batch_keep.h: kept artefacts: what one task of a batch leaves for those
 * that come after it, one directory per task id.
 */
#ifndef KN_SUPERVISOR_BATCH_KEEP_H
#define KN_SUPERVISOR_BATCH_KEEP_H

#include <stddef.h>
#include <stdint.h>

struct kn_err;
struct kn_keep;

/* dir: of the caller, made if absent, stays; NULL: a private one below TMPDIR, made at
 * the first put and removed by close. */
int kn_keep_open(const char *dir, struct kn_keep **out, struct kn_err *e);
void kn_keep_close(struct kn_keep *k);
/* Remove the private ones of supervisors that were killed (a live one holds a lock). */
void kn_keep_sweep(void);
/* Copy fd (borrowed) as id/name, replacing atomically. */
int kn_keep_put(struct kn_keep *k, const char *id, const char *name, int fd,
    uint64_t max, uint32_t mode, struct kn_err *e);
/* A read-only descriptor of id/name. */
int kn_keep_get(struct kn_keep *k, const char *id, const char *name, int *out_fd,
    uint32_t *out_mode, struct kn_err *e);
/* id did not keep name this time: nothing of an earlier run may stand in for it. */
void kn_keep_forget(struct kn_keep *k, const char *id, const char *name);

/* The directory name of an id: letters, digits, '.', '_', '-' as they are (but no
 * leading '.'), the rest as %XX; a long one is cut and ends in a hash. Different ids
 * have different names. */
enum { KN_KEEP_NAME_MAX = 256 };
void kn_keep_name(const char *id, char out[KN_KEEP_NAME_MAX]);

#endif
