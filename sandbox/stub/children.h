/* sandbox/stub/children.h: the children of the calling thread, as the kernel lists
 * them. Raw calls: the stub and the supervisor's wardens have it.
 */
#ifndef KN_STUB_CHILDREN_H
#define KN_STUB_CHILDREN_H

#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "sandbox/stub/sys.h"

/* Each number of a list, which may be cut anywhere between two reads. */
static inline void
kn_children_each(int fd, void (*visit)(int pid))
{
	char buf[1024];
	uint64_t pid = 0;
	bool any = false;
	long n;

	while ((n = kn_sys_read(fd, buf, sizeof buf)) > 0)
		for (long i = 0; i < n; i++) {
			if (buf[i] >= '0' && buf[i] <= '9') {
				pid = pid * 10 + (uint64_t)(buf[i] - '0');
				any = true;
			} else if (any) {
				visit((int)pid);
				pid = 0;
				any = false;
			}
		}
	if (any)
		visit((int)pid);
}

static inline void
kn_children_end_one(int pid)
{
	if (pid > 1)
		(void)kn_sys_kill(pid, SIGKILL);
}

/* SIGKILL to every child of the calling thread, once. What those leave becomes a child
 * of a subreaper's: who calls again until there is none has ended all of them, unless
 * they are made faster than that. 0, or a negative errno: nobody tells. */
static inline int
kn_children_kill(void)
{
	int fd = kn_sys_openat(
	    AT_FDCWD, "/proc/thread-self/children", O_RDONLY | O_CLOEXEC, 0);

	if (fd < 0)
		return fd;
	kn_children_each(fd, kn_children_end_one);
	kn_sys_close(fd);
	return 0;
}

#endif
