/* sandbox/stub/send.c: see send.h. */
#include "sandbox/stub/send.h"

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>

#include "ipc/clock.h"
#include "ipc/fd.h"
#include "sandbox/stub/sys.h"

enum {
	SEND_MS = 30000, /* then it will not pass */
	AGAIN_FIRST_NS = 500 * 1000,
	AGAIN_MOST_NS = 20 * 1000 * 1000,
};

static bool
is_passing(int err)
{
	return err == ETOOMANYREFS || err == ENOBUFS || err == ENOMEM;
}

int
kn_send_fds(int sock, const void *p, size_t n, const int *fds, int fd_n)
{
	uint64_t until = kn_clock_after_ms(kn_clock_now(), SEND_MS);
	struct pollfd gone = { .fd = sock, .events = 0 };
	long ns = AGAIN_FIRST_NS;

	while (kn_fd_send(sock, p, n, fds, fd_n, 0) < 0) {
		struct timespec t = { 0, ns };
		int err = errno;

		if (!is_passing(err) || kn_clock_now() >= until ||
		    kn_sys_ppoll(&gone, 1, &t) > 0)
			return -err;
		ns = 2 * ns < AGAIN_MOST_NS ? 2 * ns : AGAIN_MOST_NS;
	}
	return 0;
}
