/* supervisor/caller.h: the caller's own streams: reads and writes that do not wait, on
 * descriptions whose flags are not ours to change (another process may share them),
 * and the caller's terminal.
 */
#ifndef KN_SUPERVISOR_CALLER_H
#define KN_SUPERVISOR_CALLER_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>
#include <termios.h>

struct kn_caller {
	int fd;
	bool plain;  /* regular file or block device: never waits for somebody */
	bool nowait; /* pipe or socket: the kernel takes RWF_NOWAIT */
};
void kn_caller_init(struct kn_caller *c, int fd);
/* As read and write; -1/EAGAIN instead of waiting. */
ssize_t kn_caller_read(struct kn_caller *c, void *p, size_t n);
ssize_t kn_caller_write(struct kn_caller *c, const void *p, size_t n);

/* The terminal behind fd. Raw while the task's own terminal does the editing; as it was
 * before on every way out. Only while we are its foreground process group. */
struct kn_term {
	int fd;
	bool raw;
	struct termios saved;
};
void kn_term_raw(struct kn_term *t, int fd);
void kn_term_restore(struct kn_term *t);

#endif
