/* ipc/fd.h: owned descriptors, mappings and processes; messages with descriptors.
 *
 * Everything is born close-on-exec. A parameter named fd_own is consumed on success
 * and on failure; any other fd is borrowed. All enders accept the zero value of the
 * type (-1 for a descriptor) and leave it behind.
 */
#ifndef KN_IPC_FD_H
#define KN_IPC_FD_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct kn_err;

/* KN_OWN_FD int fd = -1;  closes on scope exit. */
#define KN_OWN_FD __attribute__((cleanup(kn_fd_close)))
void kn_fd_close(int *fd); /* close if >= 0, leave -1; keeps errno */
int kn_fd_take(int *fd);   /* move out: returns *fd, leaves -1 */
/* Put all of 0, 1, 2 in place (/dev/null for a closed one), so that no descriptor
 * of ours is ever 0 to 2. *out_closed gets a bit per stream that was closed. */
int kn_fd_reserve_stdio(unsigned *out_closed, struct kn_err *e);
int kn_fd_write_all(int fd, const void *p, size_t n); /* 0, or -1 with errno */
/* Whether the other end of a socket or pipe has gone. */
int kn_fd_hung_up(int fd);
/* Read the whole of fd, at most max bytes, into a fresh NUL-terminated buffer
 * (caller frees). Fails with KN_EK_CONFIG if there is more than max. */
int kn_fd_read_all(int fd, size_t max, char **out, size_t *out_n, struct kn_err *e);
/* A sealed (write, shrink, grow, seal) memfd with these bytes, reopened read-only;
 * exec: whether it may be executed. */
int kn_fd_sealed(const char *name, const void *p, size_t n, int exec, struct kn_err *e);

struct kn_map {
	void *p;
	size_t n;
};
void kn_map_close(struct kn_map *m);

/* A child. Signals and waits go through pidfd; pid is for printing. */
struct kn_proc {
	int pidfd; /* -1: none */
	pid_t pid;
};
int kn_proc_signal(const struct kn_proc *p, int signo); /* 0 or -1 with errno */
/* Non-blocking. 1: reaped, *out_status is a wait status, pidfd closed. 0: still
 * running. -1: errno. */
int kn_proc_reap(struct kn_proc *p, int *out_status);
void kn_proc_close(struct kn_proc *p); /* SIGKILL, wait, close */

/* One SOCK_SEQPACKET datagram with up to KN_MSG_FDS_MAX descriptors. */
enum { KN_MSG_FDS_MAX = 64 };
/* Returns 0, or -1 with errno (EAGAIN if dontwait and full). Never SIGPIPE. */
int kn_fd_send(
    int sock, const void *p, size_t n, const int *fds, int fd_n, int dontwait);
/* Returns bytes (0 = end of file) or -1 with errno. Descriptors arrive close-on-exec
 * in fds[0..*out_fd_n). A truncated body or control part gives -1/EMSGSIZE with all
 * received descriptors closed. */
ssize_t kn_fd_recv(
    int sock, void *p, size_t n, int *fds, int fd_max, int *out_fd_n, int dontwait);
/* The same without waiting, and a caller that can open no more descriptors gets the
 * first of them, and is told (*out_short): that says nothing about the peer. */
ssize_t kn_fd_recv_some(
    int sock, void *p, size_t n, int *fds, int fd_max, int *out_fd_n, int *out_short);

#endif
