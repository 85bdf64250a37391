/* ipc/fd.c: owned descriptors, mappings and processes. */
#include "ipc/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ipc/err.h"

/* Newer than the C libraries we build with. */
#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U
#endif
#ifndef MFD_EXEC
#define MFD_EXEC 0x0010U
#endif
#ifndef P_PIDFD
#define P_PIDFD 3
#endif

/* How long a process may take to go after SIGKILL before it is left as a zombie. */
enum { KILLED_MS = 10000 };

void
kn_fd_close(int *fd)
{
	int saved = errno;

	if (*fd >= 0)
		close(*fd); /* never retried: Linux frees the number even on EINTR */
	*fd = -1;
	errno = saved;
}

int
kn_fd_take(int *fd)
{
	int taken = *fd;

	*fd = -1;
	return taken;
}

int
kn_fd_reserve_stdio(unsigned *out_closed, struct kn_err *e)
{
	unsigned closed = 0;

	for (int fd = 0; fd <= 2; fd++) {
		int got;

		if (fcntl(fd, F_GETFD) >= 0 || errno != EBADF)
			continue;
		/* The lowest free number is fd itself. Not close-on-exec: this stands
		 * for a stream, and programs we start expect one there. */
		got = open("/dev/null", fd == 0 ? O_RDONLY : O_WRONLY);
		if (got < 0)
			return kn_err_sys(e, KN_EK_HOST, "open /dev/null");
		if (got != fd) {
			close(got);
			return kn_err_set(
			    e, KN_EK_BUG, "descriptor %d came as %d", fd, got);
		}
		closed |= 1u << fd;
	}
	*out_closed = closed;
	return 0;
}

int
kn_fd_write_all(int fd, const void *p, size_t n)
{
	const char *at = p;

	while (n > 0) {
		ssize_t w = write(fd, at, n);

		if (w < 0 && errno == EINTR)
			continue;
		if (w < 0)
			return -1;
		at += w;
		n -= (size_t)w;
	}
	return 0;
}

/* Fill buf (cap bytes) from fd until end of file or full. Bytes read, or -1. */
static ssize_t
read_until(int fd, char *buf, size_t cap)
{
	size_t at = 0;

	while (at < cap) {
		ssize_t r = read(fd, buf + at, cap - at);

		if (r < 0 && errno == EINTR)
			continue;
		if (r < 0)
			return -1;
		if (r == 0)
			break;
		at += (size_t)r;
	}
	return (ssize_t)at;
}

int
kn_fd_hung_up(int fd)
{
	struct pollfd p = { .fd = fd, .events = 0 };

	return poll(&p, 1, 0) == 1 && (p.revents & (POLLHUP | POLLERR)) != 0;
}

int
kn_fd_read_all(int fd, size_t max, char **out, size_t *out_n, struct kn_err *e)
{
	char *buf = NULL;
	size_t n = 0, cap = 0;

	/* Reads one byte past max, which tells "just fits" from "more". */
	if (max > SSIZE_MAX - 2)
		max = SSIZE_MAX - 2;
	for (;;) {
		size_t want = cap ? cap * 2 : 8192;
		char *bigger;
		ssize_t r;

		if (want > max + 1)
			want = max + 1;
		bigger = realloc(buf, want + 1);
		if (!bigger) {
			free(buf);
			return kn_err_sys(e, KN_EK_HOST, "memory for %zu bytes", want);
		}
		buf = bigger;
		cap = want;
		r = read_until(fd, buf + n, cap - n);
		if (r < 0) {
			kn_err_sys(e, KN_EK_CONFIG, "read");
			free(buf);
			return -1;
		}
		n += (size_t)r;
		if (n > max) {
			free(buf);
			return kn_err_set(e, KN_EK_CONFIG, "more than %zu bytes", max);
		}
		if (n < cap)
			break;
	}
	buf[n] = '\0';
	*out = buf;
	*out_n = n;
	return 0;
}

/* ---- sealed memory files ---- */

static int
make_memfd(const char *name, unsigned wish)
{
	int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING | wish);

	/* Before Linux 6.3 there is no such wish: memory files can always be executed.
	 * Only the wish is given up, never the sealing. */
	if (fd < 0 && errno == EINVAL)
		fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	return fd;
}

int
kn_fd_sealed(const char *name, const void *p, size_t n, int exec, struct kn_err *e)
{
	const int seals = F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
	KN_OWN_FD int fd = make_memfd(name, exec ? MFD_EXEC : MFD_NOEXEC_SEAL);
	char path[32];
	int ro, got;

	if (fd < 0) {
		kn_err_sys(e, KN_EK_HOST, "create memory file %s", name);
		if (exec && errno == EACCES)
			kn_err_hint(e, "the sysctl vm.memfd_noexec is 2: executable "
				       "memory files are refused");
		return -1;
	}
	if (kn_fd_write_all(fd, p, n) < 0)
		return kn_err_sys(e, KN_EK_HOST, "write memory file %s", name);
	if (fcntl(fd, F_ADD_SEALS, seals) < 0)
		return kn_err_sys(e, KN_EK_HOST, "seal memory file %s", name);
	got = fcntl(fd, F_GET_SEALS);
	if (got < 0 || (got & seals) != seals)
		return kn_err_set(e, KN_EK_HOST, "memory file %s is not sealed", name);
	/* A second, read-only description: execve refuses a file that is open for
	 * writing anywhere (ETXTBSY), and a reader needs no more. */
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	ro = open(path, O_RDONLY | O_CLOEXEC);
	if (ro < 0)
		return kn_err_sys(
		    e, KN_EK_HOST, "reopen memory file %s by %s", name, path);
	return ro;
}

void
kn_map_close(struct kn_map *m)
{
	int saved = errno;

	if (m->p)
		munmap(m->p, m->n);
	m->p = NULL;
	m->n = 0;
	errno = saved;
}

/* ---- processes ---- */

int
kn_proc_signal(const struct kn_proc *p, int signo)
{
	if (p->pidfd < 0) {
		errno = ESRCH;
		return -1;
	}
	return (int)syscall(SYS_pidfd_send_signal, p->pidfd, signo, NULL, 0);
}

/* As wait() would have told it: one form everywhere. */
static int
wait_status_of(const siginfo_t *si)
{
	if (si->si_code == CLD_EXITED)
		return (si->si_status & 0xff) << 8;
	return (si->si_status & 0x7f) | (si->si_code == CLD_DUMPED ? 0x80 : 0);
}

int
kn_proc_reap(struct kn_proc *p, int *out_status)
{
	siginfo_t si;

	if (p->pidfd < 0) {
		errno = ECHILD;
		return -1;
	}
	memset(&si, 0, sizeof si);
	while (waitid(P_PIDFD, (id_t)p->pidfd, &si, WEXITED | WNOHANG | __WALL) < 0)
		if (errno != EINTR)
			return -1;
	if (si.si_pid == 0)
		return 0;
	*out_status = wait_status_of(&si);
	kn_fd_close(&p->pidfd);
	return 1;
}

void
kn_proc_close(struct kn_proc *p)
{
	struct pollfd ended = { .fd = p->pidfd, .events = POLLIN };
	int status;

	if (p->pidfd >= 0) {
		kn_proc_signal(p, SIGKILL);
		while (poll(&ended, 1, KILLED_MS) < 0 && errno == EINTR)
			;
		kn_proc_reap(p, &status);
		kn_fd_close(&p->pidfd);
	}
	p->pid = 0;
}
