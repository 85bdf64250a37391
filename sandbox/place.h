/* sandbox/place.h: a private directory of a pool for what a launcher has to find by
 * name: bundles, a root to mount on, a runtime's own state.
 *
 *   <base>/knit-<pool id>-<pid>-<start time>-<pid namespace>/...
 *
 * base is /run/knit-sandbox for root, knit-sandbox in $XDG_RUNTIME_DIR for others, or
 * else knit-sandbox-<uid> in $TMPDIR or /tmp; ours, and writable by nobody else, or it
 * is not used. It is gone when the last pool has gone. The name tells whose a
 * directory is (sandbox/cgroup_dir.h), so that what a dead supervisor left is known.
 *
 * A file in it whose name begins with KN_PLACE_NOTE is a note of something that is
 * elsewhere and still to be removed. A place that is closed or swept stays as long as
 * it has notes, with nothing else in it; who has done what a note says ends it.
 */
#ifndef KN_SANDBOX_PLACE_H
#define KN_SANDBOX_PLACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define KN_PLACE_NOTE "left-"

struct kn_err;

bool kn_place_is_note(const char *name);

/* Make it; path: absolute. */
int kn_place_open(const uint8_t pool_id[16], char *path, size_t n, struct kn_err *e);
/* Remove it with all that is in it, and the base if nothing else is there. "": nothing
 * is done. Notes stay. */
void kn_place_close(const char *path);
/* Empty a directory: no link is followed, no other file system entered. 0, or -1 with
 * errno and as much removed as could be. */
int kn_place_empty(const char *path);
/* For each directory beside `path` whose supervisor is dead: leave(its path), then it
 * is removed, but for notes. Returns how many are gone. */
unsigned kn_place_sweep(const char *path, void (*leave)(const char *dir));
/* Remove a note, and its place if that was the last of what was in it. */
void kn_place_done(const char *note);
enum kn_place_rest {
	KN_PLACE_REST_NONE,
	KN_PLACE_REST_NOTED,  /* there are notes */
	KN_PLACE_REST_SHARED, /* another pool of this process is at work */
};
/* How it stands in `path` and in the other places of this process, and, if `dead`, of
 * supervisors that are dead. */
enum kn_place_rest kn_place_rest(const char *path, bool dead);

#endif
