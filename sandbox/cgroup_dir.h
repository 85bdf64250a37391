/* sandbox/cgroup_dir.h: the small file operations on cgroup directories, and the names
 * that tell whose a directory is.
 *
 * A directory of ours is called knit-<pool id>-<pid>-<start time>-<pid namespace>: the
 * last three say which supervisor owns it and in which PID namespace that pid counts,
 * so that another supervisor can tell a dead owner's leftovers from a live one's.
 */
#ifndef KN_SANDBOX_CGROUP_DIR_H
#define KN_SANDBOX_CGROUP_DIR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { KN_CGROUP_NAME_MAX = 128 };

/* Name for this process and pool. 0, or -1 if /proc does not tell. */
int kn_cgroup_dir_name(const uint8_t pool_id[16], char *buf, size_t n);
/* When a process began, in clock ticks since boot; 0: not known. */
unsigned long long kn_cgroup_dir_start_time(long pid);
/* Whether name is one of ours whose owner is dead. */
bool kn_cgroup_dir_orphan(const char *name);
/* Whether the first n bytes of name are a name of a pool of the process that own is of:
 * all but the pool's id is the same. */
bool kn_cgroup_dir_sibling(const char *name, size_t n, const char *own);

int kn_cgroup_dir_open(int parent_fd, const char *name); /* or -1, errno */
/* Make one that its owner may use, whatever the caller's umask is; 0, or -1 with errno.
 */
int kn_cgroup_dir_make(int parent_fd, const char *name);
/* Write text to a file; 0, or -1 with errno. */
int kn_cgroup_dir_write(int dir_fd, const char *file, const char *text);
int kn_cgroup_dir_write_u64(int dir_fd, const char *file, uint64_t v);
/* Read a small file as a string; bytes, or -1 with errno. */
int kn_cgroup_dir_read(int dir_fd, const char *file, char *buf, size_t n);
uint64_t kn_cgroup_dir_read_u64(int dir_fd, const char *file); /* 0 if unreadable */
/* Whether the file exists and may be opened with these flags. */
bool kn_cgroup_dir_can(int dir_fd, const char *file, int flags);

/* SIGKILL everything at and below the directory: cgroup.kill, else process by process.
 */
void kn_cgroup_dir_kill(int parent_fd, const char *name);
/* Remove the directory with those below it; waits until deadline_ns for the killed to
 * be gone. 0, or -1 with errno. */
int kn_cgroup_dir_remove(int parent_fd, const char *name, uint64_t deadline_ns);

#endif
