/* sandbox/launch_cpu.c: the processor time that a worker has used so far.
 *
 * Where there is no cgroup that counts it, it is summed up over the processes below the
 * launcher, each by its own clock, which is exact and which anybody may read; of those
 * that have ended, what their parents were told when they waited for them.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "ipc/clock.h"
#include "ipc/err.h"
#include "ipc/fd.h"
#include "sandbox/launch_int.h"
#include "sandbox/launch_tree.h"

enum {
	FIELD_WAITED_USER = 16, /* of /proc/PID/stat; the next one is system */
};

/* The fields follow the last ')': a command's name may hold anything. */
static uint64_t
waited_ns(pid_t pid)
{
	char path[64], buf[1024], *at, *end;
	unsigned long long ticks = 0;
	KN_OWN_FD int fd = -1;
	ssize_t n;

	snprintf(path, sizeof path, "/proc/%ld/stat", (long)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, buf, sizeof buf - 1);
	if (n <= 0)
		return 0;
	buf[n] = '\0';
	at = strrchr(buf, ')');
	for (int field = 2; at && field < FIELD_WAITED_USER; field++)
		at = strchr(at + 1, ' ');
	if (!at)
		return 0;
	ticks = strtoull(at, &end, 10);
	ticks += strtoull(end, NULL, 10);
	return ticks * (KN_S_NS / (uint64_t)sysconf(_SC_CLK_TCK));
}

static uint64_t
own_ns(pid_t pid)
{
	struct timespec t;
	clockid_t clock;

	if (clock_getcpuclockid(pid, &clock) != 0 || clock_gettime(clock, &t) < 0)
		return 0;
	return (uint64_t)t.tv_sec * KN_S_NS + (uint64_t)t.tv_nsec;
}

int
kn_launch_cpu_now(
    struct kn_launcher *l, uint32_t w, const struct kn_launched *lw, uint64_t *out_ns)
{
	struct kn_tree t;
	uint64_t sum = 0;

	if (kn_cgroup_cpu_now(l->cgroup, w, out_ns) == 0)
		return 0;
	kn_tree_look(&t, lw->proc.pid);
	for (size_t i = 0; i < t.n; i++)
		sum += own_ns(t.v[i]) + waited_ns(t.v[i]);
	*out_ns = sum;
	kn_tree_fini(&t);
	return sum > 0 || lw->proc.pid > 0 ? 0 : -1;
}

uint64_t
kn_launch_memory_now(struct kn_launcher *l, uint32_t w)
{
	return kn_cgroup_memory_now(l->cgroup, w);
}
