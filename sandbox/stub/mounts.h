/* sandbox/stub/mounts.h: the mounts of a worker's template namespace and of each cell.
 *
 * The template is made once: a private copy of what the launcher built. A cell copies
 * it and covers /proc with its own and, where those that stand in the template were
 * touched (fresh.h), /tmp, /dev/shm and /task; these die with it. All
 * functions use raw calls and return 0 (or a descriptor) or a negative errno.
 */
#ifndef KN_STUB_MOUNTS_H
#define KN_STUB_MOUNTS_H

#include <stdbool.h>
#include <stdint.h>

#include "ipc/control.h"

/* Binds that stand below a folder which a cell covers: put back on top of it. */
enum { KN_COVERED_MAX = 256, KN_COVERED_BYTES = 32 * 1024 };
struct kn_covered {
	char text[KN_COVERED_BYTES];
	const char *at[KN_COVERED_MAX];
	int fd[KN_COVERED_MAX]; /* scratch of the cell's init */
	uint32_t n;
};

struct kn_overlays;
enum { KN_MOUNT_OPTS = 96 };
struct kn_cell_mounts {
	/* tmpfs options; empty: what stands in the template will do (fresh.h) */
	char tmp[KN_MOUNT_OPTS], shm[KN_MOUNT_OPTS];
	int task_fd; /* detached tmpfs for /task, or -1 likewise */
	struct kn_covered *covered;
	const struct kn_overlays *overlays;
};

/* A mount namespace of our own with nothing shared. *out_step: where it failed. */
int kn_mounts_template(enum kn_boot_step *out_step);
/* Every bind is the file that the supervisor resolved, and a cell's mount points exist.
 * *out_at names the one that is not. */
int kn_mounts_check(const struct kn_boot *b, const char **out_at);
/* In the template: links that stay as they are, each mounted upon itself. */
int kn_mounts_keep_links(const struct kn_boot *b, const char **out_at);
/* In the template, where memory is watched: for /dev/zero, of which a shared mapping is
 * memory that belongs to no process, the device /dev/full: zeros without end, which
 * cannot be mapped, and is full when written to. 0 where there is none. */
int kn_mounts_zeros(void);
/* Whether every bind is a regular file: a folder may hold the socket of somebody
 * outside, and who is sent a descriptor through it keeps that when the task is gone. */
bool kn_mounts_lead_nowhere(const struct kn_boot *b);
/* -E2BIG if there are too many. */
int kn_mounts_find_covered(const struct kn_boot *b, struct kn_covered *out);

/* Options of a tmpfs; 0 bytes means one page, 0 inodes as many as pages. */
void kn_mounts_opts(
    char out[KN_MOUNT_OPTS], uint64_t bytes, uint64_t inodes, const char *mode);
/* A detached tmpfs: its descriptor, close-on-exec. */
int kn_mounts_task_fs(uint64_t bytes, uint64_t inodes);
/* In a cell's init: all of its mounts. no_exec: nothing in them is executed. *out_at
 * names the one that failed. */
int kn_mounts_cell(struct kn_cell_mounts *m, bool no_exec, const char **out_at);
/* In the template: what is at `at`, and below, is not executed. */
int kn_mounts_no_exec(const char *at);

#endif
