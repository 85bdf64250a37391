/* sandbox/stub/pty.c: a terminal for a task, from the devpts inside the sandbox: no
 * name or number of the caller's terminal is seen inside. Without namespaces from the
 * machine's, whose own ptmx is often closed to all. */
#include <fcntl.h>
#include <sys/ioctl.h>

#include "sandbox/stub/send.h"
#include "sandbox/stub/stub.h"
#include "sandbox/stub/sys.h"

#ifndef TIOCGPTPEER
#define TIOCGPTPEER _IO('T', 0x41)
#endif

static int
open_terminal(
    const char *at, uint16_t rows, uint16_t cols, int *out_master, int *out_slave)
{
	struct winsize size = { .ws_row = rows, .ws_col = cols };
	int locked = 0, slave;
	int master = kn_sys_openat(AT_FDCWD, at, O_RDWR | O_NOCTTY | O_CLOEXEC, 0);
	long r;

	if (master < 0)
		return master;
	r = KN_SYS3(SYS_ioctl, master, TIOCSPTLCK, &locked);
	if (r == 0 && rows && cols)
		r = KN_SYS3(SYS_ioctl, master, TIOCSWINSZ, &size);
	slave = r < 0 ? (int)r
		      : (int)KN_SYS3(SYS_ioctl, master, TIOCGPTPEER,
			    O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (slave < 0) {
		kn_sys_close(master);
		return slave;
	}
	*out_master = master;
	*out_slave = slave;
	return 0;
}

int
kn_pty_give(struct kn_stub *s, const struct kn_slot_head *head, uint16_t rows,
    uint16_t cols, int *out_slave)
{
	struct kn_msg m = { .type = KN_MSG_PTY, .task = head->task, .gen = head->gen };
	const char *at = s->direct.place ? "/dev/ptmx" : "/dev/pts/ptmx";
	int master, err = open_terminal(at, rows, cols, &master, out_slave);

	if (err < 0)
		return err;
	if (kn_send_fds(s->sock, &m, sizeof m, &master, 1) < 0)
		kn_serve_abandon(s);
	kn_sys_close(master);
	return 0;
}
