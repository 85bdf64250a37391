/* sandbox/idmap.h: bring the caller's files into reach of a worker's own uid.
 *
 * As root a worker runs under an unprivileged uid that could not enter the caller's
 * 0700 directories, neither by path nor by descriptor. An idmapped mount shows the
 * caller's files as the worker's; what the worker makes there belongs to the caller.
 */
#ifndef KN_SANDBOX_IDMAP_H
#define KN_SANDBOX_IDMAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct kn_err;

/* The map text "on-disk id -> id as seen" that swaps id for worker. full: our namespace
 * maps everything, so other owners stay as they are (else they are nobody). */
void kn_idmap_text(char *buf, size_t n, uint32_t id, uint32_t worker, bool full);
/* A user namespace that maps uid and gid of the caller to `worker` (both), as a
 * descriptor for kn_idmap_mount(). */
int kn_idmap_open(
    uid_t uid, gid_t gid, uint32_t worker, bool full, int *out_fd, struct kn_err *e);
/* A detached recursive copy of the mount tree at fd; idmapped unless userns_fd is -1.
 * Raw calls only: also for use between fork and exec. The descriptor, or -1 and errno;
 * *out_idmap tells which of the two calls failed. */
int kn_idmap_clone(int fd, int userns_fd, bool *out_idmap);
/* Put the detached tree at path. 0, or -1 and errno. Raw call. */
int kn_idmap_attach(int tree_fd, const char *path);

#endif
