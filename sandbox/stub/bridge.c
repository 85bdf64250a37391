/* sandbox/stub/bridge.c: see bridge.h, and sandbox/oci_bridge.h for the other side. */
#include "sandbox/stub/bridge.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "ipc/control.h"
#include "ipc/fd.h"
#include "sandbox/stub/sys.h"

/* A local socket that keeps messages apart, and nothing else. */
static int
check(int fd)
{
	int domain = 0, type = 0;
	socklen_t n = sizeof domain;
	long r = KN_SYS5(SYS_getsockopt, fd, SOL_SOCKET, SO_DOMAIN, &domain, &n);

	n = sizeof type;
	if (r == 0)
		r = KN_SYS5(SYS_getsockopt, fd, SOL_SOCKET, SO_TYPE, &type, &n);
	if (r < 0)
		return (int)r;
	return domain == AF_UNIX && type == SOCK_SEQPACKET ? 0 : -EPROTOTYPE;
}

int
kn_bridge_fetch(const char *path, const char **out_what)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	int fd = (int)KN_SYS3(SYS_socket, AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	int got = -1, got_n = 0;
	size_t n = strlen(path);
	char byte;
	long r;

	*out_what = path;
	if (fd < 0)
		return fd;
	if (n >= sizeof at.sun_path)
		return -ENAMETOOLONG;
	memcpy(at.sun_path, path, n + 1);
	r = KN_SYS3(SYS_connect, fd, &at, sizeof at);
	if (r < 0)
		return (int)r;
	*out_what = "who waits at it takes us for somebody else: the daemon gives a "
		    "container's users other ids (rootless)";
	if (kn_fd_recv(fd, &byte, 1, &got, 1, &got_n, 0) != 1 || got_n != 1)
		return -EBADMSG;
	kn_sys_close(fd);
	*out_what = "what came is no socket of a worker's";
	r = check(got);
	if (r == 0 && got != KN_STUB_SOCK_FD) {
		r = KN_SYS3(SYS_dup3, got, KN_STUB_SOCK_FD, 0);
		kn_sys_close(got);
	}
	return r < 0 ? (int)r : 0;
}
