/* sandbox/direct_place.h: where the tasks of launcher direct have their files.
 *
 *   <TMPDIR or /tmp>/knit-direct-PID-ID/     the pool's: it bears its lock, and who
 * finds one that nobody has locked removes it
 *   .../w<N>                                 a worker's, of its uid
 *   .../gone-<N>-<K>                         one of a worker that has ended
 */
#ifndef KN_SANDBOX_DIRECT_PLACE_H
#define KN_SANDBOX_DIRECT_PLACE_H

#include <stdint.h>

struct kn_err;
struct kn_launcher;

/* Make l->place, and l->place_fd, which locks it. */
int kn_direct_place_make(struct kn_launcher *l, struct kn_err *e);
/* What worker w has left there goes: at once if that is next to nothing, else by a
 * process beside us, as a task may leave more than we have time for. */
void kn_direct_place_drop(struct kn_launcher *l, uint32_t w);
void kn_direct_place_close(struct kn_launcher *l);
/* Remove those of others that are no more. */
void kn_direct_place_sweep(const struct kn_launcher *l);

#endif
