/* sandbox/oci_left.c: what the runtimes note of a container: its first process and when
 * that began, runc in state.json, crun in status. A container whose stub was taken over
 * may outlive its supervisor; its first process takes all of it along.
 *
 * The runtime is the worker's user, and so is whoever got out of a container: a note
 * may name any process of the machine. It says where to look and no more: what is
 * killed is, by the kernel's word, the first process of a PID namespace below ours, has
 * the worker's uid and no other, and, where that uid is not our own, nobody of that uid
 * for a parent, as a container that runs has its runtime.
 */
#include "sandbox/oci_left.h"

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

enum {
	NOTE_MAX = 256 * 1024,
	STATUS_MAX = 8192,
	NAME_ROOM = 128,
	IDS = 4,    /* real, effective, saved, of files */
	LEVELS = 33 /* of PID namespaces, as many as the kernel has */
};

static const struct {
	const char *file, *pid, *start;
} notes[] = {
	{ "state.json", "\"init_process_pid\"", "\"init_process_start\"" },
	{ "status", "\"pid\"", "\"process-start-time\"" },
};

/* ---- what the kernel says ---- */

/* The numbers after a key, at its line's beginning. */
static size_t
numbers(const char *status, const char *key, unsigned long *v, size_t max)
{
	const char *at = strstr(status, key);
	size_t n = 0;

	if (at == NULL)
		return 0;
	for (at += strlen(key); n < max; n++) {
		char *end;

		at += strspn(at, " \t");
		v[n] = strtoul(at, &end, 10);
		if (end == at)
			break;
		at = end;
	}
	return n;
}

static bool
status_of(unsigned long pid, char text[STATUS_MAX])
{
	char path[64];

	snprintf(path, sizeof path, "/proc/%lu/status", pid);
	return kn_cgroup_dir_read(AT_FDCWD, path, text, STATUS_MAX) > 0;
}

static bool
is_left(unsigned long pid, uid_t uid)
{
	char text[STATUS_MAX];
	unsigned long id[IDS], level[LEVELS];
	size_t n;

	if (!status_of(pid, text) || numbers(text, "\nUid:", id, IDS) != IDS)
		return false;
	for (size_t i = 0; i < IDS; i++)
		if (id[i] != uid)
			return false;
	n = numbers(text, "\nNSpid:", level, LEVELS);
	return n >= 2 && level[n - 1] == 1;
}

/* ---- what is noted ---- */

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
kill_noted(int dir, size_t i, uid_t uid)
{
	KN_OWN_FD int fd =
	    openat(dir, notes[i].file, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	KN_OWN_FD int pidfd = -1;
	char *text = fd >= 0 ? malloc(NOTE_MAX) : NULL;
	ssize_t n = text != NULL ? read(fd, text, NOTE_MAX - 1) : -1;
	unsigned long long pid, start;

	if (n > 0) {
		text[n] = '\0';
		pid = number(text, notes[i].pid);
		start = number(text, notes[i].start);
		/* First the descriptor: what is asked by number after it is of the same
		 * process, or that one has ended and gets no signal. */
		pidfd = pid > 1 && pid <= INT32_MAX
			    ? (int)syscall(SYS_pidfd_open, (pid_t)pid, 0)
			    : -1;
		if (pidfd >= 0 && start != 0 &&
		    kn_cgroup_dir_start_time((long)pid) == start &&
		    is_left((unsigned long)pid, uid))
			syscall(SYS_pidfd_send_signal, pidfd, SIGKILL, NULL, 0);
	}
	free(text);
}

static int
open_dir(int at, const char *name)
{
	return openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

/* A worker's directory is ours and the runtime's below it the worker's. */
static void
in_worker(int place, const char *worker, const char *pool, size_t pool_n)
{
	KN_OWN_FD int own = open_dir(place, worker);
	KN_OWN_FD int state = own >= 0 ? open_dir(own, "state") : -1;
	KN_OWN_FD int container = -1;
	char name[NAME_ROOM];
	struct stat st;

	if (state < 0 || fstat(own, &st) < 0 || st.st_uid != geteuid() ||
	    fstat(state, &st) < 0 ||
	    snprintf(name, sizeof name, "%.*s-%s", (int)pool_n, pool, worker) >=
		(int)sizeof name)
		return;
	container = open_dir(state, name);
	for (size_t i = 0; container >= 0 && i < sizeof notes / sizeof *notes; i++)
		kill_noted(container, i, st.st_uid);
}

void
kn_oci_left_kill(const char *place)
{
	const char *pool = strrchr(place, '/');
	struct dirent *de;
	DIR *d = opendir(place);

	pool = pool != NULL ? pool + 1 : place;
	while (d != NULL && (de = readdir(d)) != NULL)
		if (de->d_name[0] == 'w')
			in_worker(dirfd(d), de->d_name, pool, kn_oci_left_pool(pool));
	if (d != NULL)
		closedir(d);
}

size_t
kn_oci_left_pool(const char *name)
{
	static const char lead[] = "knit-";

	return sizeof lead - 1 + strspn(name + sizeof lead - 1, "0123456789abcdef");
}
