/* sandbox/cgroup_dir.c: names, reads, writes, kills and removal of cgroup directories.
 *
 * Everything is relative to a directory descriptor. A cgroup directory cannot be
 * removed while a process is in it, and a killed process leaves only when it has run:
 * hence the bounded wait.
 */
#include "sandbox/cgroup_dir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "ipc/clock.h"
#include "ipc/fd.h"

enum { TEXT_MAX = 4096, DEPTH_MAX = 8, PAUSE_FIRST_US = 50, PAUSE_MOST_US = 16000 };

static int
read_file(int dir_fd, const char *file, char *buf, size_t n)
{
	KN_OWN_FD int fd = openat(dir_fd, file, O_RDONLY | O_CLOEXEC);
	ssize_t got = fd >= 0 ? read(fd, buf, n - 1) : -1;

	if (got < 0)
		return -1;
	buf[got] = '\0';
	return (int)got;
}

/* Start time of a process in clock ticks since boot: field 22, counted after the
 * command name, which may contain anything. 0 if it cannot be told. */
unsigned long long
kn_cgroup_dir_start_time(long pid)
{
	char path[64], text[TEXT_MAX], *p;
	unsigned long long v = 0;

	snprintf(path, sizeof(path), "/proc/%ld/stat", pid);
	if (read_file(AT_FDCWD, path, text, sizeof(text)) < 0)
		return 0;
	p = strrchr(text, ')');
	for (int field = 2; p != NULL && field < 22; field++)
		p = strchr(p + 1, ' ');
	if (p == NULL || sscanf(p, " %llu", &v) != 1)
		return 0;
	return v;
}

/* Dead for certain: no such process, or another one under its number. Not being able to
 * look (no descriptor left, a /proc that hides others) is no proof. */
static bool
is_dead(long pid, unsigned long long start)
{
	unsigned long long now;

	if (kill((pid_t)pid, 0) < 0 && errno == ESRCH)
		return true;
	now = kn_cgroup_dir_start_time(pid);
	return now != 0 && now != start;
}

static unsigned long long
pid_namespace(void)
{
	struct stat st;

	return stat("/proc/self/ns/pid", &st) == 0 ? (unsigned long long)st.st_ino : 0;
}

int
kn_cgroup_dir_name(const uint8_t pool_id[16], char *buf, size_t n)
{
	char hex[33];
	unsigned long long start = kn_cgroup_dir_start_time((long)getpid());

	for (int i = 0; i < 16; i++)
		snprintf(hex + 2 * i, 3, "%02x", pool_id[i]);
	if (start == 0)
		return -1;
	return snprintf(buf, n, "knit-%s-%ld-%llu-%llu", hex, (long)getpid(), start,
		   pid_namespace()) < (int)n
		   ? 0
		   : -1;
}

bool
kn_cgroup_dir_orphan(const char *name)
{
	char hex[33];
	unsigned long long start, ns;
	long pid;
	int used = 0;

	/* most names there are the kernel's own */
	if (strncmp(name, "knit-", 5) != 0)
		return false;
	if (sscanf(name, "knit-%32[0-9a-f]-%ld-%llu-%llu%n", hex, &pid, &start, &ns,
		&used) != 4 ||
	    strlen(hex) != 32 || pid <= 0)
		return false;
	if (name[used] != '\0' && strcmp(name + used, "-sup") != 0)
		return false;
	/* A pid of another namespace says nothing here: that owner may well live. */
	if (ns != pid_namespace())
		return false;
	return is_dead(pid, start);
}

bool
kn_cgroup_dir_sibling(const char *name, size_t n, const char *own)
{
	const size_t id_end = sizeof "knit-" - 1 + 32;

	return n > id_end && strlen(own) == n && strncmp(name, "knit-", 5) == 0 &&
	       memcmp(name + id_end, own + id_end, n - id_end) == 0;
}

/* What somebody mounted below is not a group of ours, whatever files it has: neither
 * would the numbers in its "cgroup.procs" be of processes of ours. */
int
kn_cgroup_dir_open(int parent_fd, const char *name)
{
	struct open_how how = { .flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC,
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV };

	return (int)syscall(SYS_openat2, parent_fd, name, &how, sizeof how);
}

int
kn_cgroup_dir_make(int parent_fd, const char *name)
{
	int err;

	if (mkdirat(parent_fd, name, 0755) < 0)
		return -1;
	if (fchmodat(parent_fd, name, 0755, 0) == 0)
		return 0;
	err = errno;
	unlinkat(parent_fd, name, AT_REMOVEDIR);
	errno = err;
	return -1;
}

int
kn_cgroup_dir_write(int dir_fd, const char *file, const char *text)
{
	KN_OWN_FD int fd = openat(dir_fd, file, O_WRONLY | O_CLOEXEC);
	size_t n = strlen(text);

	if (fd < 0)
		return -1;
	return write(fd, text, n) == (ssize_t)n ? 0 : -1;
}

int
kn_cgroup_dir_write_u64(int dir_fd, const char *file, uint64_t v)
{
	char text[32];

	snprintf(text, sizeof(text), "%llu", (unsigned long long)v);
	return kn_cgroup_dir_write(dir_fd, file, text);
}

int
kn_cgroup_dir_read(int dir_fd, const char *file, char *buf, size_t n)
{
	return read_file(dir_fd, file, buf, n);
}

uint64_t
kn_cgroup_dir_read_u64(int dir_fd, const char *file)
{
	char text[32];

	if (read_file(dir_fd, file, text, sizeof(text)) <= 0 || text[0] < '0' ||
	    text[0] > '9')
		return 0;
	return strtoull(text, NULL, 10);
}

bool
kn_cgroup_dir_can(int dir_fd, const char *file, int flags)
{
	KN_OWN_FD int fd = openat(dir_fd, file, flags | O_CLOEXEC);

	return fd >= 0;
}

/* Without cgroup.kill: each process by pidfd. A number read from cgroup.procs may have
 * been reused by the time the pidfd exists, so the list is read again: if the number
 * still stands there, the pidfd is that process (or its successor in the same group).
 */
static void
kill_each(int dir_fd)
{
	char text[TEXT_MAX], again[TEXT_MAX], *save = NULL;

	if (read_file(dir_fd, "cgroup.procs", text, sizeof(text)) <= 0)
		return;
	for (char *s = strtok_r(text, "\n", &save); s != NULL;
	     s = strtok_r(NULL, "\n", &save)) {
		char line[32];
		long pid = strtol(s, NULL, 10);
		KN_OWN_FD int fd = pid > 0 ? (int)syscall(SYS_pidfd_open, pid, 0) : -1;

		if (fd < 0)
			continue;
		snprintf(line, sizeof(line), "\n%ld\n", pid);
		again[0] = '\n';
		if (read_file(dir_fd, "cgroup.procs", again + 1, sizeof(again) - 1) < 0)
			continue;
		if (strstr(again, line) != NULL)
			syscall(SYS_pidfd_send_signal, fd, SIGKILL, NULL, 0);
	}
}

/* Call fn for each directory below dir_fd. */
static void
each_child(int dir_fd, int depth, void (*fn)(int dir_fd, const char *name, int depth))
{
	int fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd >= 0 ? fdopendir(fd) : NULL;
	struct dirent *de;

	if (d == NULL) {
		kn_fd_close(&fd);
		return;
	}
	while ((de = readdir(d)) != NULL)
		if (de->d_type == DT_DIR && de->d_name[0] != '.')
			fn(dir_fd, de->d_name, depth);
	closedir(d);
}

static void
kill_tree(int parent_fd, const char *name, int depth)
{
	KN_OWN_FD int fd = kn_cgroup_dir_open(parent_fd, name);

	if (fd < 0 || depth > DEPTH_MAX)
		return;
	if (kn_cgroup_dir_write(fd, "cgroup.kill", "1") == 0)
		return;
	kill_each(fd);
	each_child(fd, depth + 1, kill_tree);
}

void
kn_cgroup_dir_kill(int parent_fd, const char *name)
{
	kill_tree(parent_fd, name, 0);
}

static void
remove_tree(int parent_fd, const char *name, int depth)
{
	KN_OWN_FD int fd = kn_cgroup_dir_open(parent_fd, name);

	if (fd >= 0 && depth <= DEPTH_MAX)
		each_child(fd, depth + 1, remove_tree);
	unlinkat(parent_fd, name, AT_REMOVEDIR);
}

int
kn_cgroup_dir_remove(int parent_fd, const char *name, uint64_t deadline_ns)
{
	/* Often it is only the last steps of a process that has ended. */
	for (long us = PAUSE_FIRST_US;; us = us < PAUSE_MOST_US ? 2 * us : us) {
		const struct timespec t = { 0, us * 1000 };
		int err;

		if (unlinkat(parent_fd, name, AT_REMOVEDIR) == 0 || errno == ENOENT)
			return 0;
		err = errno;
		remove_tree(parent_fd, name, 0);
		if (faccessat(parent_fd, name, F_OK, 0) < 0 && errno == ENOENT)
			return 0;
		if (err != EBUSY || kn_clock_now() >= deadline_ns) {
			errno = err;
			return -1;
		}
		(void)ppoll(NULL, 0, &t, NULL);
	}
}
