/* sandbox/bwrap.h: a policy -> bwrap's arguments. Pure: no file is looked at.
 *
 * The order of the vector is the order of the walls: namespaces, what dies with whom,
 * the root's mounts, the caller's binds, and only then everything read-only.
 */
#ifndef KN_SANDBOX_BWRAP_H
#define KN_SANDBOX_BWRAP_H

#include <stdbool.h>
#include <stddef.h>

struct kn_policy;
struct kn_err;

/* bwrap's own bound (MAX_ARGS), the same in a file given by --args. */
enum { KN_BWRAP_ARGS_MAX = 9000 };

struct kn_bwrap_req {
	const char *bwrap; /* argv[0] */
	const struct kn_policy *policy;
	/* One per policy mount: the path to bind from, or the number of the descriptor
	 * that holds the data; NULL: leave that mount out. */
	const char *const *source;
	const char *stub; /* what becomes PID 1 */
};
struct kn_argv {
	char **v; /* NULL-terminated, all owned */
	size_t n, cap;
};
/* -1: out of memory, or more mounts than bwrap takes. */
int kn_bwrap_argv(const struct kn_bwrap_req *r, struct kn_argv *out, struct kn_err *e);
void kn_argv_fini(struct kn_argv *a);
int kn_argv_push(struct kn_argv *a, const char *s); /* a copy; -1: no memory */
/* Put these before what is there. */
int kn_argv_prepend(
    struct kn_argv *a, const char *const *prefix, size_t n, struct kn_err *e);

/* A long vector as a short one: "--args FD" and the options as NUL-ended strings in
 * *out_blob (malloc'ed). If the vector is short as it is, *out_blob stays NULL and
 * *out is a copy. */
int kn_bwrap_pack(const struct kn_argv *full, int args_fd, struct kn_argv *out,
    char **out_blob, size_t *out_n, struct kn_err *e);

#endif
