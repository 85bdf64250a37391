/* sandbox/oci_left.c: what the runtimes note of a container: its first process and when
 * that began, runc in state.json, crun in status. A container whose stub was taken over
 * may outlive its supervisor; its first process takes all of it along.
 */
#include "sandbox/oci_left.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "ipc/fd.h"
#include "sandbox/cgroup_dir.h"

enum { STATE_MAX = 256 * 1024, PATH_ROOM = 1024 };

static const struct {
	const char *file, *pid, *start;
} notes[] = {
	{ "state.json", "\"init_process_pid\"", "\"init_process_start\"" },
	{ "status", "\"pid\"", "\"process-start-time\"" },
};

/* The number after a key; 0: none. */
static unsigned long long
number(const char *text, const char *key)
{
	const char *at = strstr(text, key);

	if (at == NULL)
		return 0;
	at += strlen(key);
	at += strspn(at, " \t\n:");
	return strtoull(at, NULL, 10);
}

static void
kill_noted(const char *path, const char *pid_key, const char *start_key)
{
	KN_OWN_FD int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	KN_OWN_FD int pidfd = -1;
	char *text = fd >= 0 ? malloc(STATE_MAX) : NULL;
	ssize_t n = text != NULL ? read(fd, text, STATE_MAX - 1) : -1;
	unsigned long long pid, start;

	if (n > 0) {
		text[n] = '\0';
		pid = number(text, pid_key);
		start = number(text, start_key);
		pidfd = pid > 1 && pid <= INT32_MAX
			    ? (int)syscall(SYS_pidfd_open, (pid_t)pid, 0)
			    : -1;
		if (pidfd >= 0 && start != 0 &&
		    kn_cgroup_dir_start_time((long)pid) == start)
			syscall(SYS_pidfd_send_signal, pidfd, SIGKILL, NULL, 0);
	}
	free(text);
}

static void
in_state(const char *state)
{
	char path[PATH_ROOM];
	struct dirent *de;
	DIR *d = opendir(state);

	while (d != NULL && (de = readdir(d)) != NULL)
		for (size_t i = 0; i < sizeof notes / sizeof *notes; i++)
			if (de->d_name[0] != '.' &&
			    snprintf(path, sizeof path, "%s/%s/%s", state, de->d_name,
				notes[i].file) < (int)sizeof path)
				kill_noted(path, notes[i].pid, notes[i].start);
	if (d != NULL)
		closedir(d);
}

void
kn_oci_left_kill(const char *place)
{
	char state[PATH_ROOM];
	struct dirent *de;
	DIR *d = opendir(place);

	while (d != NULL && (de = readdir(d)) != NULL)
		if (de->d_name[0] == 'w' && snprintf(state, sizeof state, "%s/%s/state",
						place, de->d_name) < (int)sizeof state)
			in_state(state);
	if (d != NULL)
		closedir(d);
}
