/* cmd/collect.h: the files that a single command leaves, into a directory of the
 * caller. Their names come from the task: nothing is followed, nothing overwritten.
 */
#ifndef KN_CMD_COLLECT_H
#define KN_CMD_COLLECT_H

#include <stddef.h>

#include <knit/pool.h>

struct kn_err;
struct kn_voice;

/* Open dir, made if absent, for what these globs match. Returns a descriptor, or -1
 * with e: also if it cannot be written to, or has one of those names already. */
int kn_collect_open(
    const char *dir, const char *const *globs, size_t n, struct kn_err *e);
/* Copy all; says a line for each file that was refused or could not be written.
 * Returns how many could not be written for a reason of ours. */
unsigned kn_collect(int dir, const struct knit_outcome *o, const struct kn_voice *v);
/* Where what it changed in a copy was brought, and what of it could not be. */
void kn_collect_tell(const struct knit_outcome *o, const struct kn_voice *v);

#endif
