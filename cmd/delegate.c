/* cmd/delegate.c: re-exec through `systemd-run --scope -p Delegate=yes`.
 *
 *   1 nothing of ours is open yet; systemd-run is looked for, and tried with a command
 *     that does nothing: after an exec it could only speak for itself
 *   2 exec: pid, parent, terminal, streams, signals and the exit status stay the
 *     caller's. A variable says that this was done, so it is done once
 *   3 the program starts again, in the scope; the variable is taken out of the
 *     environment, and the kernel is asked whether the group is really ours
 */
#include "cmd/delegate.h"

#include <errno.h>
#include <fcntl.h>
#include <knit/pool.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cmd/cmd.h"
#include "ipc/clock.h"
#include "ipc/err.h"
#include "ipc/fd.h"

extern char **environ;

static const char guard[] = "KNIT_DELEGATED";

enum { TRY_MS = 20000, SAID_MAX = 2048, HEAD_MAX = 8 };

static const char no_systemd[] =
    "it asks systemd for a cgroup; without systemd start as root, or accept less, as "
    "the last option: --set "
    "'/allow_degraded=[\"cgroup.memory\",\"cgroup.pids\",\"cgroup.cpu\"]'";
static const char as_root[] =
    "root needs no systemd to make cgroups: leave --delegate out";
static const char no_session[] =
    "log in as this user (ssh, machinectl shell), or loginctl enable-linger and "
    "export XDG_RUNTIME_DIR=/run/user/$(id -u)";

/* Only absolute folders of PATH: a caller may stand in a folder of somebody else. */
static int
find_systemd_run(char *out, size_t n, struct kn_err *e)
{
	const char *p = getenv("PATH");

	for (p = p ? p : "/usr/bin:/bin"; *p;) {
		size_t len = strcspn(p, ":");

		if (*p == '/' &&
		    (size_t)snprintf(out, n, "%.*s/systemd-run", (int)len, p) < n &&
		    access(out, X_OK) == 0)
			return 0;
		p += len + (p[len] == ':');
	}
	kn_err_set(e, KN_EK_HOST, "--delegate: no systemd-run in PATH");
	kn_err_hint(e, "%s", geteuid() == 0 ? as_root : no_systemd);
	return -1;
}

/* An ordinary user's systemd is spoken to through the user's bus. */
static int
check_user_bus(struct kn_err *e)
{
	const char *dir = getenv("XDG_RUNTIME_DIR");
	const char *bus = getenv("DBUS_SESSION_BUS_ADDRESS");
	char path[PATH_MAX];

	if (bus && *bus)
		return 0;
	if (!dir || !*dir) {
		kn_err_set(e, KN_EK_HOST,
		    "--delegate: no user bus: XDG_RUNTIME_DIR is not set");
		kn_err_hint(e, "%s", no_session);
		return -1;
	}
	snprintf(path, sizeof path, "%s/bus", dir);
	if (access(path, F_OK) == 0)
		return 0;
	kn_err_sys(e, KN_EK_HOST, "--delegate: no user bus: %.150s", path);
	kn_err_hint(e, "%s", no_session);
	return -1;
}

static int
find_self(char *out, size_t n, struct kn_err *e)
{
	ssize_t got = readlink("/proc/self/exe", out, n - 1);

	if (got < 0)
		return kn_err_sys(
		    e, KN_EK_HOST, "--delegate: find the program's own file");
	out[got] = '\0';
	if (access(out, X_OK) < 0)
		return kn_err_sys(
		    e, KN_EK_HOST, "--delegate: the program's own file %.150s", out);
	return 0;
}

/* systemd-run's own arguments, up to the program's name; returns how many. */
static int
fill_head(const char **v, const char *systemd_run, const char *self)
{
	int n = 0;

	v[n++] = systemd_run;
	if (geteuid() != 0)
		v[n++] = "--user";
	v[n++] = "--scope";
	v[n++] = "-p";
	v[n++] = "Delegate=yes";
	v[n++] = "-q";
	v[n++] = "--";
	v[n++] = self;
	return n;
}

/* execv() takes them as it may not change them. */
static void
exec_list(const char **v)
{
	execve(v[0], (char **)(uintptr_t)v, environ);
}

/* ---- the trial ---- */

static pid_t
start_trial(const char **v, int *out_said)
{
	int p[2];
	pid_t pid;

	if (pipe2(p, O_CLOEXEC) < 0)
		return -1;
	pid = fork();
	if (pid == 0) {
		int null = open("/dev/null", O_RDWR | O_CLOEXEC);

		if (null < 0 || dup2(null, 0) < 0 || dup2(null, 1) < 0 ||
		    dup2(p[1], 2) < 0)
			_exit(126);
		exec_list(v);
		_exit(127);
	}
	close(p[1]);
	*out_said = p[0];
	return pid;
}

/* What it says until its end. false: it does not end. */
static bool
hear(int fd, char *said, size_t cap)
{
	uint64_t by = kn_clock_after_ms(kn_clock_now(), TRY_MS);
	char rest[256];
	size_t n = 0;

	for (;;) {
		uint64_t now = kn_clock_now();
		struct pollfd p = { .fd = fd, .events = POLLIN };
		bool full = n + 1 >= cap;
		ssize_t got;

		if (now >= by)
			return false;
		if (poll(&p, 1, (int)((by - now) / 1000000) + 1) <= 0)
			continue;
		got =
		    read(fd, full ? rest : said + n, full ? sizeof rest : cap - 1 - n);
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			break;
		n += full ? 0 : (size_t)got;
	}
	said[n] = '\0';
	return true;
}

/* Its first line is the cause. */
static int
refused(int status, char *said, struct kn_err *e)
{
	char text[160];

	said[strcspn(said, "\n")] = '\0';
	kn_err_printable(text, sizeof text, said, (int)strnlen(said, 150));
	if (text[0])
		kn_err_set(e, KN_EK_HOST, "--delegate: systemd-run: %s", text);
	else if (WIFSIGNALED(status))
		kn_err_set(e, KN_EK_HOST, "--delegate: systemd-run: ended by signal %d",
		    WTERMSIG(status));
	else
		kn_err_set(e, KN_EK_HOST,
		    "--delegate: systemd-run: ended with status %d",
		    WEXITSTATUS(status));
	kn_err_hint(e, "%s", geteuid() == 0 ? as_root : no_session);
	return -1;
}

static int
try(const char **v, struct kn_err *e)
{
	char said[SAID_MAX] = "";
	KN_OWN_FD int fd = -1;
	pid_t pid = start_trial(v, &fd);
	int status = 0;
	bool ended;

	if (pid < 0)
		return kn_err_sys(e, KN_EK_HOST, "--delegate: start systemd-run");
	ended = hear(fd, said, sizeof said);
	if (!ended)
		kill(pid, SIGKILL);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (!ended) {
		kn_err_set(e, KN_EK_TIMEOUT,
		    "--delegate: systemd-run gives no answer for %d s", TRY_MS / 1000);
		kn_err_hint(e, "%s", geteuid() == 0 ? as_root : no_session);
		return -1;
	}
	return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0
							     : refused(status, said, e);
}

/* ---- */

static int
begin_anew(char **argv, unsigned closed, struct kn_err *e)
{
	char run[PATH_MAX], self[PATH_MAX];
	const char **v;
	int argc = 0, n;

	if (find_systemd_run(run, sizeof run, e) < 0 ||
	    (geteuid() != 0 && check_user_bus(e) < 0) ||
	    find_self(self, sizeof self, e) < 0)
		return -1;
	while (argv[argc])
		argc++;
	v = calloc((size_t)argc + HEAD_MAX + 2, sizeof *v);
	if (!v || setenv(guard, "1", 1) < 0) {
		free(v);
		return kn_err_set(e, KN_EK_HOST, "--delegate: out of memory");
	}
	n = fill_head(v, run, self);
	v[n] = "version";
	if (try(v, e) < 0) {
		free(v);
		return -1;
	}
	for (int i = 0; i < argc; i++)
		v[n + i] = argv[i];
	/* What stands for a closed stream is closed, so that it is found closed again.
	 */
	for (int fd = 0; fd <= 2; fd++) {
		if (closed & 1u << fd)
			fcntl(fd, F_SETFD, FD_CLOEXEC);
	}
	exec_list(v);
	free(v);
	return kn_err_sys(e, KN_EK_HOST, "--delegate: start %.150s", run);
}

int
kn_delegate(bool asked, char **argv, unsigned closed, struct kn_err *e)
{
	struct knit_error ke = KNIT_ERROR_NONE;
	bool begun = getenv(guard) != NULL;

	unsetenv(guard);
	if (!asked)
		return 0;
	if (!begun)
		return begin_anew(argv, closed, e);
	if (knit_host_delegated(&ke) == 0)
		return 0;
	kn_say_take(e, &ke);
	kn_err_wrap(e, "--delegate: what systemd-run gave is not delegated");
	kn_err_hint(e,
	    "a user's systemd must have these controllers itself: Delegate=yes in "
	    "user@.service (systemctl edit user@.service), and cgroup v2");
	return -1;
}
