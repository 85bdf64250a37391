/* supervisor/beneath.h: files written and opened below a directory, never outside it.
 *
 * The names come from tasks or from task lines, so every step is taken from a
 * descriptor, with openat2(RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS): a link that a
 * stranger left, or swaps in while we work, is refused, not followed.
 */
#ifndef KN_SUPERVISOR_BENEATH_H
#define KN_SUPERVISOR_BENEATH_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

struct kn_err;

/* Open the regular file rel below root for reading. Never waits (a FIFO is refused). */
int kn_beneath_open(
    int root, const char *rel, int *out_fd, struct stat *out_st, struct kn_err *e);
/* Copy `from` (borrowed, from its start, at most max bytes: more is an error) to the
 * new file rel below root, making directories as needed. replace: by an atomic rename
 * over what is there; else what is there is an error. mode: permission bits. */
int kn_beneath_write(int root, const char *rel, int from, uint64_t max, uint32_t mode,
    bool replace, struct kn_err *e);
/* Remove the file rel below root if it is there. */
void kn_beneath_unlink(int root, const char *rel);
/* The directory called so, itself: no link and nothing that is mounted there. -1 with
 * errno. */
int kn_beneath_dir(int dir, const char *name);
/* Remove everything below the directory fd (borrowed); what is mounted there stays, a
 * bind of the same file system too. */
void kn_beneath_empty(int dir);

#endif
