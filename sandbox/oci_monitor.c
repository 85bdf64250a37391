/* sandbox/oci_monitor.c: see oci_monitor.h.
 *
 * A process may call itself what it likes, and a task of a user's podman has that
 * user's uid: what is taken for a monitor is in our own PID namespace, where no task
 * is, and has our uid.
 */
#include "sandbox/oci_monitor.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "ipc/fd.h"
#include "sandbox/launch_tree.h"

enum { WORDS_MAX = 16384 };

static bool
is_ours(int dir)
{
	struct stat st, own, theirs;

	return fstat(dir, &st) == 0 && st.st_uid == geteuid() &&
	       stat("/proc/self/ns/pid", &own) == 0 &&
	       fstatat(dir, "ns/pid", &theirs, 0) == 0 && own.st_ino == theirs.st_ino &&
	       own.st_dev == theirs.st_dev;
}

/* PROGRAM/conmon ... -n NAME ... */
static bool
watches(int dir, const char *name)
{
	KN_OWN_FD int fd = openat(dir, "cmdline", O_RDONLY | O_CLOEXEC);
	char text[WORDS_MAX + 1];
	ssize_t n = fd >= 0 ? read(fd, text, WORDS_MAX) : -1;
	const char *base;

	if (n <= 0)
		return false;
	text[n] = '\0';
	base = strrchr(text, '/');
	if (strcmp(base != NULL ? base + 1 : text, "conmon") != 0)
		return false;
	for (const char *p = text; p < text + n; p += strlen(p) + 1)
		if (strcmp(p, "-n") == 0 && p + 3 < text + n)
			return strcmp(p + 3, name) == 0;
	return false;
}

unsigned
kn_monitor_end(const char *name)
{
	DIR *d = opendir("/proc");
	struct dirent *de;
	unsigned n = 0;

	while (d != NULL && (de = readdir(d)) != NULL) {
		pid_t pid = (pid_t)strtol(de->d_name, NULL, 10);
		KN_OWN_FD int dir = -1;
		KN_OWN_FD int pidfd = -1;

		if (pid <= 1)
			continue;
		/* First the descriptors: what is read after them is of that process. */
		pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
		dir = openat(dirfd(d), de->d_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (pidfd < 0 || dir < 0 || !is_ours(dir) || !watches(dir, name))
			continue;
		kn_tree_kill(pid);
		syscall(SYS_pidfd_send_signal, pidfd, SIGKILL, NULL, 0);
		n++;
	}
	if (d != NULL)
		closedir(d);
	return n;
}
