/* sandbox/launch_cpu.c: the processor time that a worker has used so far.
 *
 * Where there is no cgroup that counts it, it is summed up over the processes below the
 * launcher, each by its own clock, which is exact and which anybody may read; of those
 * that have ended, what their parents were told when they waited for them.
 */
#include <dirent.h>
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

enum {
	PROCESSES_MAX = 1 << 16,
	FIELD_WAITED_USER = 16, /* of /proc/PID/stat; the next one is system */
};

struct pids {
	pid_t *v;
	size_t n, room;
};

static int
add(struct pids *p, pid_t pid)
{
	if (p->n == p->room) {
		size_t room = p->room ? 2 * p->room : 64;
		pid_t *v =
		    room > PROCESSES_MAX ? NULL : realloc(p->v, room * sizeof *v);

		if (!v)
			return -1;
		p->v = v;
		p->room = room;
	}
	p->v[p->n++] = pid;
	return 0;
}

static void
add_children_of(struct pids *p, int tasks_fd, const char *thread)
{
	char path[64];
	KN_OWN_FD int fd = -1;
	FILE *f;
	long pid;

	if (snprintf(path, sizeof path, "%s/children", thread) >= (int)sizeof path)
		return;
	fd = openat(tasks_fd, path, O_RDONLY | O_CLOEXEC);
	f = fd >= 0 ? fdopen(fd, "re") : NULL;
	if (!f)
		return;
	fd = -1; /* the stream's */
	while (fscanf(f, "%ld", &pid) == 1 && add(p, (pid_t)pid) == 0)
		continue;
	fclose(f);
}

static void
add_children(struct pids *p, pid_t pid)
{
	char path[64];
	const struct dirent *d;
	DIR *dir;

	snprintf(path, sizeof path, "/proc/%ld/task", (long)pid);
	dir = opendir(path);
	while (dir && (d = readdir(dir)) != NULL)
		if (d->d_name[0] != '.')
			add_children_of(p, dirfd(dir), d->d_name);
	if (dir)
		closedir(dir);
}

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
	struct pids p = { NULL, 0, 0 };
	uint64_t sum = 0;

	if (kn_cgroup_cpu_now(l->cgroup, w, out_ns) == 0)
		return 0;
	if (lw->proc.pid <= 0 || add(&p, lw->proc.pid) < 0)
		return -1;
	for (size_t i = 0; i < p.n; i++) {
		sum += own_ns(p.v[i]) + waited_ns(p.v[i]);
		add_children(&p, p.v[i]);
	}
	free(p.v);
	*out_ns = sum;
	return 0;
}
