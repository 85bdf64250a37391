/* sandbox/stub/egress.c: see egress.h. */
#include "sandbox/stub/egress.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "ipc/control.h"
#include "sandbox/stub/send.h"
#include "sandbox/stub/sys.h"

enum { BACKLOG = 128 };

int
kn_egress_hand_over(int sock)
{
	const struct sockaddr_in at = { .sin_family = AF_INET,
		.sin_port = htons(KN_EGRESS_PORT),
		.sin_addr = { htonl(INADDR_LOOPBACK) } };
	const struct kn_msg m = { .type = KN_MSG_EGRESS };
	int fd = (int)KN_SYS3(SYS_socket, AF_INET,
	    SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, IPPROTO_TCP);
	long r;

	if (fd < 0)
		return fd;
	r = KN_SYS3(SYS_bind, fd, &at, sizeof at);
	if (r == 0)
		r = KN_SYS2(SYS_listen, fd, BACKLOG);
	if (r == 0)
		r = kn_send_fds(sock, &m, sizeof m, &fd, 1);
	kn_sys_close(fd);
	return (int)r;
}
