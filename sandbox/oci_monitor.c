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
#include "sandbox/cgroup_dir.h"
#include "sandbox/launch_tree.h"

enum { WORDS_MAX = 16384, STATUS_MAX = 8192 };

/* Of our uid, and of our PID namespace: one number has who is in none below it. */
static bool
is_ours(int dir)
{
	char text[STATUS_MAX];
	const char *at;
	struct stat st;

	if (fstat(dir, &st) < 0 || st.st_uid != geteuid() ||
	    kn_cgroup_dir_read(dir, "status", text, sizeof text) <= 0)
		return false;
	at = strstr(text, "\nNSpid:");
	if (at == NULL)
		return false;
	at += strlen("\nNSpid:");
	at += strspn(at, " \t");
	at += strspn(at, "0123456789");
	return *at == '\n';
}

static const char *
base_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash != NULL ? slash + 1 : path;
}

/* What follows an option among words that end with NUL; "": nothing does. */
static const char *
after(const char *words, size_t n, const char *option)
{
	for (const char *p = words; p < words + n; p += strlen(p) + 1)
		if (strcmp(p, option) == 0 && p + strlen(p) + 1 < words + n)
			return p + strlen(p) + 1;
	return "";
}

/* PROGRAM/conmon -c ID -r PROGRAM -n NAME ... */
static bool
watches(int dir, const char *name, struct kn_monitored *out)
{
	KN_OWN_FD int fd = openat(dir, "cmdline", O_RDONLY | O_CLOEXEC);
	char words[WORDS_MAX + 1];
	ssize_t n = fd >= 0 ? read(fd, words, WORDS_MAX) : -1;
	const char *id;

	if (n <= 0)
		return false;
	words[n] = '\0';
	if (strcmp(base_of(words), "conmon") != 0 ||
	    strcmp(after(words, (size_t)n, "-n"), name) != 0)
		return false;
	memset(out, 0, sizeof(*out));
	id = after(words, (size_t)n, "-c");
	if (strlen(id) == sizeof(out->id) - 1 &&
	    strspn(id, "0123456789abcdef") == sizeof(out->id) - 1)
		memcpy(out->id, id, sizeof(out->id));
	snprintf(out->runtime, sizeof(out->runtime), "%s",
	    base_of(after(words, (size_t)n, "-r")));
	return true;
}

bool
kn_monitor_end(const char *name, struct kn_monitored *out)
{
	DIR *d = opendir("/proc");
	struct dirent *de;
	bool found = false;

	while (d != NULL && !found && (de = readdir(d)) != NULL) {
		pid_t pid = (pid_t)strtol(de->d_name, NULL, 10);
		KN_OWN_FD int dir = -1;
		KN_OWN_FD int pidfd = -1;

		if (pid <= 1)
			continue;
		/* First the descriptors: what is read after them is of that process. */
		pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
		dir = openat(dirfd(d), de->d_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		found =
		    pidfd >= 0 && dir >= 0 && is_ours(dir) && watches(dir, name, out);
		if (!found)
			continue;
		kn_tree_kill(pid);
		syscall(SYS_pidfd_send_signal, pidfd, SIGKILL, NULL, 0);
	}
	if (d != NULL)
		closedir(d);
	return found;
}
