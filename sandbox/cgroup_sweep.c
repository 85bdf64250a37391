/* sandbox/cgroup_sweep.c: remove what supervisors left that were killed outright.
 *
 * Starting is recovering: nothing of an earlier run is needed, so its directories are
 * emptied by SIGKILL and removed. Only names of our form, in our own group and (v2)
 * those above it, whose owner (pid with that start time, in this PID namespace) is
 * dead.
 */
#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "ipc/clock.h"
#include "ipc/fd.h"
#include "sandbox/cgroup.h"
#include "sandbox/cgroup_dir.h"
#include "sandbox/cgroup_find.h"

enum { SWEEP_WAIT_MS = 1000 };

static unsigned
sweep_dir(const char *path)
{
	uint64_t deadline = kn_clock_after_ms(kn_clock_now(), SWEEP_WAIT_MS);
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd >= 0 ? fdopendir(fd) : NULL;
	struct dirent *de;
	unsigned n = 0;

	if (d == NULL) {
		kn_fd_close(&fd);
		return 0;
	}
	while ((de = readdir(d)) != NULL) {
		if (!kn_cgroup_dir_orphan(de->d_name))
			continue;
		kn_cgroup_dir_kill(fd, de->d_name);
		if (kn_cgroup_dir_remove(fd, de->d_name, deadline) == 0)
			n++;
	}
	closedir(d);
	return n;
}

unsigned
kn_cgroup_sweep(void)
{
	struct kn_cgroup_where w;
	unsigned n = 0;

	if (kn_cgroup_where(&w, NULL) < 0)
		return 0;
	/* The v2 tree first: its cgroup.kill empties the others too. */
	for (size_t i = strlen(w.unified.dir); i > 0;) {
		w.unified.dir[i] = '\0';
		n += sweep_dir(w.unified.dir);
		if (i <= w.unified.mount_n)
			break;
		while (i > w.unified.mount_n && w.unified.dir[i - 1] != '/')
			i--;
		i -= i > w.unified.mount_n; /* the slash */
	}
	if (w.memory.dir[0] != '\0')
		n += sweep_dir(w.memory.dir);
	if (w.pids.dir[0] != '\0' && strcmp(w.pids.dir, w.memory.dir) != 0)
		n += sweep_dir(w.pids.dir);
	if (w.cpuacct.dir[0] != '\0' && strcmp(w.cpuacct.dir, w.pids.dir) != 0)
		n += sweep_dir(w.cpuacct.dir);
	if (w.cpu.dir[0] != '\0' && strcmp(w.cpu.dir, w.cpuacct.dir) != 0)
		n += sweep_dir(w.cpu.dir);
	return n;
}
