/* supervisor/ledger.h: every id a batch has ever seen, and what became of it, in
 * constant resident memory.
 *
 * A duplicate id and an `after` that names nothing must be told over a batch of any
 * length, so every id is remembered: as a 128-bit fingerprint (SipHash under a random
 * key, so that nobody can prepare two ids that meet) and one state byte. The first few
 * thousand stay in a table; then all move to an unlinked temporary file that is read
 * and written a page at a time and never mapped.
 */
#ifndef KN_SUPERVISOR_LEDGER_H
#define KN_SUPERVISOR_LEDGER_H

#include <stddef.h>
#include <stdint.h>

struct kn_err;
struct kn_ledger;

enum { KN_LEDGER_UNKNOWN = 0 }; /* every other state is the caller's */

int kn_ledger_open(struct kn_ledger **out, struct kn_err *e);
void kn_ledger_close(struct kn_ledger *l);
/* What was put for this id last, KN_LEDGER_UNKNOWN if nothing was. */
int kn_ledger_get(struct kn_ledger *l, const char *id, size_t id_n, uint8_t *out_state,
    struct kn_err *e);
/* Remember or replace; state is not KN_LEDGER_UNKNOWN. */
int kn_ledger_put(
    struct kn_ledger *l, const char *id, size_t id_n, uint8_t state, struct kn_err *e);
uint64_t kn_ledger_count(const struct kn_ledger *l);

/* SipHash-2-4 with 128 bits of output: the fingerprint, also used for names. */
void kn_ledger_hash(
    const uint8_t key[16], const void *p, size_t n, uint64_t out_fingerprint[2]);

#endif
