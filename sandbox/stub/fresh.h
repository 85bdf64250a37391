/* sandbox/stub/fresh.h: /tmp, /dev/shm and /task that a task left as they were made.
 *
 * A task's file systems are made for it and die with it; making and ending the three is
 * a fifth of what a cell costs, and most short programs never touch them. So they stand
 * in the worker's template, each cell has copies of the mounts, and the next task gets
 * the same file systems only if nothing at all can be told from them: the kernel shows
 * the same of each root folder (mode, owner, times, size, names of attributes, flags)
 * and of the space, and the number that the next file will get says that no file was
 * made, not even a nameless one. Otherwise it is thrown away, with all that is in it,
 * and so is one that cannot be looked at. Nobody who is still there may hold a
 * descriptor of it: where a task could have sent one to somebody outside (a bound
 * folder, the host's network), each gets its own.
 */
#ifndef KN_STUB_FRESH_H
#define KN_STUB_FRESH_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/vfs.h>

enum kn_fresh_at { KN_FRESH_TMP, KN_FRESH_SHM, KN_FRESH_TASK, KN_FRESH_N };

/* All that can be told from an empty file system, but for the next number. */
struct kn_fresh_look {
	struct stat root;
	struct statfs space;
	long names, flags_ret;
	int flags;
};

struct kn_fresh {
	const char *at;
	int fd;	       /* its root, or -1: none stands in the template */
	uint32_t made; /* how often one was made */
	uint64_t next; /* what the next file would be numbered, less one */
	struct kn_fresh_look look;
	/* where tasks use theirs nothing is won: so many tasks get one of their own */
	uint32_t skip, skip_next;
};

/* Nothing stands there yet; the first task of a worker may be its only one. */
void kn_fresh_init(struct kn_fresh f[KN_FRESH_N]);
/* Before a cell is made: out_shared, for those that it may have, tells whether what
 * stands at f->at in the template is an untouched file system with these mount options.
 * It is made if need be. Returns 0, or where all are shared a number that is another
 * one once any of them is another file system. */
uint64_t kn_fresh_share(struct kn_fresh f[KN_FRESH_N], const bool may[KN_FRESH_N],
    const char *const opts[KN_FRESH_N], bool out_shared[KN_FRESH_N]);
/* When nothing of the cell runs or is held any more: of those that it shared, what is
 * not as it was made goes. */
void kn_fresh_check(struct kn_fresh f[KN_FRESH_N], const bool shared[KN_FRESH_N]);

#endif
