/* sandbox/stub/wall.h: the walls of the stub itself and of a task: capabilities,
 * no_new_privs, the two seccomp filters, Landlock.
 *
 * Raw calls only (sandbox/stub/sys.h): kn_wall_cell_caps() runs in a cell's init and
 * kn_wall_* of a task in its process before execve. All return 0 or a negative errno.
 *
 * Kernel keys have no wall of their own here: keyctl, add_key and request_key are
 * refused by the filters, and a fresh session keyring would not hide the per-user one.
 */
#ifndef KN_STUB_WALL_H
#define KN_STUB_WALL_H

#include <linux/filter.h>
#include <stdbool.h>
#include <stdint.h>

#include "ipc/control.h"
#include "sandbox/stub/program.h"

/* Keep CAP_SYS_ADMIN (of the sandbox's own user namespace) in permitted and effective,
 * for making cells, and nothing else anywhere: bounding, inheritable and ambient sets
 * are emptied. The launcher must leave us CAP_SETPCAP, which emptying the bounding set
 * takes; it goes here too. overlays: cells put
 * some, which takes CAP_DAC_OVERRIDE: over files of the one user that exists there. */
int kn_wall_stub_caps(bool overlays);
/* Ask the kernel: -EPERM if any bit but that is left in any set. */
int kn_wall_stub_caps_verify(bool overlays);
/* In a cell, once its mounts stand: drop the last one, and look. */
int kn_wall_cell_caps(void);

int kn_wall_no_new_privs(void); /* set it, and look */
/* The first filter of a process: and the kernel says that it has one. out_listener:
 * NULL, or its listener is wanted. */
int kn_wall_first_filter(const struct sock_filter *prog, uint32_t n, int *out_listener);
/* A cell's, upon the worker's: and it answers. */
int kn_wall_cell_filter(const struct sock_filter *prog, uint32_t n);

struct kn_overlays;
/* Without namespaces: what is allowed, where it stands on the machine. */
enum { KN_LAND_RULES_MAX = 1200 };
enum kn_land_what { KN_LAND_READ, KN_LAND_WRITE, KN_LAND_NODE /* of a device */ };
struct kn_land_rule {
	int fd;
	uint8_t what, is_dir;
};
/* What Landlock rules of a cell need, gathered once per worker. */
enum { KN_LAND_WRITABLE_MAX = 256 };
struct kn_land {
	uint32_t abi; /* 0: do not apply */
	int root_fd, dev_fd;
	int writable_fd[KN_LAND_WRITABLE_MAX]; /* writable binds */
	uint8_t writable_dir[KN_LAND_WRITABLE_MAX];
	uint32_t writable_n;
	const struct kn_overlays *overlays; /* written to: each task's own */
	/* Not everything that can be seen may be executed: only this, what a task is,
	 * and nothing that lies where a task can write. */
	bool run_only;
	struct kn_programs run;
	uint64_t exec_key; /* of the cell's filter, or 0 */
	int ready_fd;	   /* rules that are made already, or -1 */
	uint64_t ready_made;
	/* Without namespaces these stand in for root, /dev, /tmp and all. */
	bool direct, no_tcp;
	struct kn_land_rule rule[KN_LAND_RULES_MAX];
	uint32_t rule_n;
};
/* Open what is needed; binds are the boot record's. */
int kn_wall_land_open(
    struct kn_land *l, uint32_t abi, const struct kn_boot_bind *binds, uint32_t bind_n);
/* In the template: rules ahead for the cells that have its /tmp, /dev/shm and /task.
 * made: another number for others. Where it fails the cell makes its own. */
void kn_wall_land_prepare(struct kn_land *l, uint64_t made);
/* Restrict the calling process: reading and executing anywhere, writing below /task,
 * /tmp, /dev/shm and writable binds, and to devices; signals and abstract sockets of
 * others are out of reach. prepared: by the rules made ahead. own: with run_only, what
 * the task is. */
int kn_wall_land_restrict(
    const struct kn_land *l, bool prepared, const struct kn_programs *own);
/* Rules of nothing but the scopes of signals and abstract sockets: a descriptor, or
 * -EOPNOTSUPP where this kernel has none; and the calling process is held by them. */
int kn_wall_land_scopes(void);
int kn_wall_land_enter(int rules);

#endif
