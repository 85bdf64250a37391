/* cmd/bench_proc.c: what /proc says about processes: theirs to do, ours to look at. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd/bench.h"
#include "ipc/fd.h"

enum { FILE_BYTES = 8192, PROCESSES_MAX = 32768 };

static int
read_file(int pid, const char *file, char buf[FILE_BYTES])
{
	char path[64];
	ssize_t n;

	snprintf(path, sizeof path, "/proc/%d/%s", pid, file);
	KN_OWN_FD int fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, buf, FILE_BYTES - 1);
	if (n < 0)
		return -1;
	buf[n] = '\0';
	return 0;
}

long
kn_bench_proc_number(int pid, const char *file, const char *key)
{
	char buf[FILE_BYTES];
	size_t key_n = strlen(key);

	if (read_file(pid, file, buf) < 0)
		return -1;
	for (const char *p = buf; *p; p += *p == '\n') {
		if (strncmp(p, key, key_n) == 0)
			return strtol(p + key_n, NULL, 10);
		p += strcspn(p, "\n");
	}
	return -1;
}

/* After the name, which ends in the last ')': state, parent. */
static int
parent_of(int pid)
{
	char buf[FILE_BYTES];
	const char *p;

	if (read_file(pid, "stat", buf) < 0)
		return -1;
	p = strrchr(buf, ')');
	return p && strlen(p) > 4 ? (int)strtol(p + 4, NULL, 10) : -1;
}

size_t
kn_bench_proc_tree(int pid, int *out, size_t max)
{
	static int pids[PROCESSES_MAX], parents[PROCESSES_MAX];
	size_t n = 0, found = 1;
	DIR *d = opendir("/proc");
	struct dirent *x;

	out[0] = pid;
	while (d && (x = readdir(d)) && n < PROCESSES_MAX) {
		int p = (int)strtol(x->d_name, NULL, 10);

		if (p <= 0)
			continue;
		pids[n] = p;
		parents[n++] = parent_of(p);
	}
	if (d)
		closedir(d);
	for (size_t at = 0; at < found; at++)
		for (size_t i = 0; i < n && found < max; i++)
			if (parents[i] == out[at])
				out[found++] = pids[i];
	return found;
}

bool
kn_bench_proc_ran(int pid, struct kn_bench_ran *out)
{
	char buf[FILE_BYTES];

	if (read_file(pid, "schedstat", buf) < 0)
		return false;
	out->cpu_ms = strtod(buf, NULL) / 1e6;
	out->switches_voluntary =
	    kn_bench_proc_number(pid, "status", "voluntary_ctxt_switches:");
	out->switches_other =
	    kn_bench_proc_number(pid, "status", "nonvoluntary_ctxt_switches:");
	return out->switches_voluntary >= 0 && out->switches_other >= 0;
}
