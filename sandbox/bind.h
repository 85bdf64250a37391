/* sandbox/bind.h: bind sources of a policy, resolved once to descriptors.
 *
 * From kn_bind_resolve() on a source is a descriptor with a device and an inode, not a
 * name: a path that is swapped later fails the launch (the stub compares what stands at
 * `at` inside). Nothing is ever created on the machine: a target inside another bind
 * must exist there already.
 */
#ifndef KN_SANDBOX_BIND_H
#define KN_SANDBOX_BIND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct kn_policy;
struct kn_mount;
struct kn_err;

enum {
	KN_BIND_MAX = 1000, /* bwrap looks through all mounts for each: 1000 take 2 s
			       and more, 3000 half a minute */
	KN_BIND_WRITABLE_MAX = 256, /* Landlock rules of a cell */
	KN_BIND_COVERED_MAX = 256,  /* binds that each cell puts back on its own /tmp */
	KN_BIND_OVERLAY_MAX = 8,    /* the stub's table */
	KN_BIND_MASK_MAX = 500,	    /* each is a mount, copied for each task */
};

/* One per policy mount, in the policy's order; all but user binds have fd -1. */
struct kn_bind {
	const struct kn_mount *mount;
	int fd;	    /* O_PATH */
	int out_fd; /* O_PATH: where what a task changed in it goes, or -1 */
	char *path; /* canonical path behind fd, or the policy's for system binds */
	uint64_t dev, ino;
	bool is_dir;
	bool missing;  /* optional, and not there */
	bool shadowed; /* a later mount stands on the very same `at` */
	bool idmap;    /* root: to be shown under the worker's uid */
	/* the bind whose file or folder it is upon, and the way there from its top;
	 * NULL: none's */
	const struct kn_bind *in;
	const char *in_rest;
};
/* The source of a mount, followed as far as it may be. */
int kn_bind_open(const struct kn_mount *m, struct kn_err *e);
/* Take hold of the directories for what tasks change in their copies: no task may write
 * to one, or to what it is in. */
int kn_bind_check_out(struct kn_bind *b, size_t n, struct kn_err *e);
/* Resolve all. Errors name the mount's origin. *out: calloc'ed array of mount_n. */
int kn_bind_resolve(const struct kn_policy *p, struct kn_bind **out, struct kn_err *e);
/* Not a mount of the caller's, but what is denied of another. */
bool kn_bind_is_denial(const struct kn_mount *m);
/* Where it will stand: the innermost bind, and the way from its top; and who it is. */
int kn_bind_find_masked(
    struct kn_bind *all, size_t n, struct kn_bind *b, struct kn_err *e);
/* Before a launch: all that is to be masked or mounted upon in binds of the caller
 * still stands there, or the launcher would make it. */
int kn_bind_check_points(const struct kn_bind *b, size_t n, struct kn_err *e);
void kn_bind_free(struct kn_bind *b, size_t n);

/* As root, for each user bind: can it be shown under a worker's uid (userns_fd as from
 * kn_idmap_open)? Writable and not: refused. Read-only and not: plain, if uid can read
 * it, else refused. */
int kn_bind_plan_idmap(
    struct kn_bind *b, size_t n, int userns_fd, uint32_t uid, struct kn_err *e);

#endif
