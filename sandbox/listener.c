/* sandbox/listener.c: see listener.h. */
#include "sandbox/listener.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ipc/err.h"

/* A kernel to come may have longer records; ours stand at their start. */
enum { ROOM = 1024 };

union room {
	struct seccomp_notif n;
	struct seccomp_notif_resp r;
	unsigned char bytes[ROOM];
};

static const char link_text[] = "anon_inode:seccomp notify";

/* A filter has one listener among all that are in force: is there one already, above
 * us? Only trying tells. */
static bool
is_first(void)
{
	struct sock_filter allow = { BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW };
	struct sock_fprog p = { 1, &allow };
	int status = -1;
	pid_t pid = fork();

	if (pid == 0) {
		(void)prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
		_exit(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
			  SECCOMP_FILTER_FLAG_NEW_LISTENER, &p) < 0);
	}
	if (pid < 0)
		return true; /* then no worker starts either */
	while (waitpid(pid, &status, __WALL) < 0 && errno == EINTR)
		;
	return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

int
kn_listener_can(struct kn_err *e)
{
	uint32_t action = SECCOMP_RET_USER_NOTIF;
	struct seccomp_notif_sizes sizes = { 0 };

	if (syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action) < 0 ||
	    syscall(SYS_seccomp, SECCOMP_GET_NOTIF_SIZES, 0, &sizes) < 0 ||
	    sizes.seccomp_notif > ROOM || sizes.seccomp_notif_resp > ROOM ||
	    sizes.seccomp_notif < sizeof(struct seccomp_notif) ||
	    sizes.seccomp_notif_resp < sizeof(struct seccomp_notif_resp)) {
		kn_err_set(
		    e, KN_EK_HOST, "this kernel does not tell of refused system calls");
		kn_err_hint(e, "that came with Linux 5.0; without: "
			       "--set /seccomp/explain=false");
		return -1;
	}
	if (prctl(PR_GET_SECCOMP, 0, 0, 0, 0) == SECCOMP_MODE_FILTER && !is_first()) {
		kn_err_set(e, KN_EK_HOST,
		    "somebody else is told of the system calls that are refused here, "
		    "and the kernel tells one only");
		kn_err_hint(e, "do without: --set /seccomp/explain=false");
		return -1;
	}
	return 0;
}

bool
kn_listener_is(int fd)
{
	char path[40], text[sizeof link_text];
	uint64_t none = 0;
	ssize_t n;

	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	n = readlink(path, text, sizeof text);
	/* A file's name begins with a slash, so no file can be called that. */
	if (n >= 0 && ((size_t)n != sizeof link_text - 1 ||
			  memcmp(text, link_text, sizeof link_text - 1) != 0))
		return false;
	return ioctl(fd, SECCOMP_IOCTL_NOTIF_ID_VALID, &none) < 0 && errno == ENOENT;
}

int
kn_listener_take(int fd, struct kn_listened *out)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	union room room;

	/* Taking would wait for the next. */
	if (poll(&p, 1, 0) != 1 || !(p.revents & POLLIN))
		return 0;
	memset(&room, 0, sizeof room);
	if (ioctl(fd, SECCOMP_IOCTL_NOTIF_RECV, &room.n) < 0)
		return errno == ENOENT || errno == EINTR ? 0 : -1;
	*out = (struct kn_listened){ .id = room.n.id,
		.pid = room.n.pid,
		.call = { .arch = room.n.data.arch, .nr = (uint32_t)room.n.data.nr } };
	for (int i = 0; i < 6; i++)
		out->call.args[i] = room.n.data.args[i];
	return 1;
}

bool
kn_listener_waits(int fd, uint64_t id)
{
	return ioctl(fd, SECCOMP_IOCTL_NOTIF_ID_VALID, &id) == 0;
}

static void
answer(int fd, uint64_t id, int error, uint32_t flags)
{
	union room room;

	memset(&room, 0, sizeof room);
	room.r.id = id;
	room.r.error = error;
	room.r.flags = flags;
	/* ENOENT: its caller was killed meanwhile. */
	(void)ioctl(fd, SECCOMP_IOCTL_NOTIF_SEND, &room.r);
}

void
kn_listener_refuse(int fd, uint64_t id, unsigned errno_ret)
{
	answer(fd, id, errno_ret ? -(int)errno_ret : -ENOSYS, 0);
}

void
kn_listener_let(int fd, uint64_t id)
{
	answer(fd, id, 0, SECCOMP_USER_NOTIF_FLAG_CONTINUE);
}
