/* ipc/glob.h: does a file name match one component of a pattern?
 *
 * `*` any run, `?` one byte, `[a-z]` `[!a-z]` a class, `\x` x itself. A leading dot is
 * matched only by a dot. Names come from the task and may be made to be slow on: this
 * matcher remembers only the last star, so it takes at most length times length steps.
 */
#ifndef KN_IPC_GLOB_H
#define KN_IPC_GLOB_H

#include <stdbool.h>
#include <stddef.h>

/* pattern: pattern_n bytes without '/'. */
bool kn_glob_match(const char *pattern, size_t pattern_n, const char *name);
/* Whether it has anything but plain characters. */
bool kn_glob_is_pattern(const char *pattern, size_t pattern_n);

#endif
