/* sandbox/doctor_program.c: programs that a run needs or could use: bubblewrap, which
 * is asked for its version, and container runtimes.
 *
 * As root they are executed as a worker's uid without any capability: a program is not
 * trusted because it bears a name. A line of what it says is kept, made printable.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ipc/err.h"
#include "ipc/fd.h"
#include "sandbox/caps.h"
#include "sandbox/doctor_int.h"

enum { SAID_MAX = 160, PATH_CAP = 512, VERSION_MIN = 8 /* 0.8 */ };

struct say {
	char path[PATH_CAP];
	int exec_sys, status;
	char said[SAID_MAX];
};

/* The program's first line, read by its parent, which is a child of ours. */
static int
ask_version(const struct kn_doctor *d, void *shared)
{
	struct say *x = shared;
	char *const argv[] = { x->path, (char[]){ "--version" }, NULL };
	/* (podman says nothing without a home, and nobody can write to this one) */
	char *const env[] = { (char[]){ "PATH=/usr/bin:/bin" }, (char[]){ "HOME=/" },
		NULL };
	char text[SAID_MAX];
	int ends[2], null;
	size_t n = 0;
	ssize_t got;
	pid_t pid;

	null = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (null < 0 || pipe2(ends, O_CLOEXEC) < 0 || kn_doctor_become_worker(d) < 0)
		return 1;
	kn_caps_drop(0);
	pid = fork();
	if (pid == 0) {
		if (dup2(null, 0) < 0 || dup2(ends[1], 1) < 0 || dup2(null, 2) < 0 ||
		    chdir("/") < 0)
			_exit(1);
		execve(x->path, argv, env);
		x->exec_sys = errno;
		_exit(127);
	}
	close(ends[1]);
	while (n + 1 < sizeof(text) &&
	       (got = read(ends[0], text + n, sizeof(text) - 1 - n)) > 0)
		n += (size_t)got;
	text[n] = '\0';
	kn_err_printable(x->said, sizeof(x->said), text, (int)strcspn(text, "\n"));
	kill(pid, SIGKILL);
	return 0;
}

/* Whether it is bubblewrap at all, and whether new enough. */
static bool
version_of(const char *said, bool *out_enough)
{
	unsigned major, minor;

	if (sscanf(said, "bubblewrap %u.%u", &major, &minor) != 2)
		return false;
	*out_enough = major > 0 || minor >= VERSION_MIN;
	return true;
}

static void
say_bwrap(struct kn_doctor *d, struct say *x)
{
	const char *named = getenv("KNIT_BWRAP");
	bool by_name = named != NULL && named[0] != '\0', enough = false;
	struct stat st = { 0 };

	if (kn_doctor_child(d, ask_version, x) != 0) {
		kn_doctor_untried(d, KN_PROBE_BWRAP, "no child");
	} else if (x->exec_sys != 0) {
		kn_doctor_bad(d, KN_PROBE_BWRAP, KN_HEALTH_REFUSED,
		    x->exec_sys == EACCES && d->host.root ? KN_LACK_BWRAP_UNREACHABLE
		    : by_name				  ? KN_LACK_BWRAP_NAMED
							  : KN_LACK_BWRAP_BROKEN,
		    "execute %.150s: %s", x->path, strerror(x->exec_sys));
	} else if (!version_of(x->said, &enough)) {
		kn_doctor_bad(d, KN_PROBE_BWRAP, KN_HEALTH_REFUSED,
		    by_name ? KN_LACK_BWRAP_NAMED : KN_LACK_BWRAP_BROKEN,
		    "%.120s --version says \"%.60s\"", x->path, x->said);
	} else if (!enough) {
		kn_doctor_bad(d, KN_PROBE_BWRAP, KN_HEALTH_REFUSED, KN_LACK_BWRAP_OLD,
		    "%.120s is %.60s", x->path, x->said);
	} else if (stat(x->path, &st) == 0 && (st.st_mode & S_ISUID) != 0) {
		kn_doctor_bad(d, KN_PROBE_BWRAP, KN_HEALTH_REFUSED,
		    KN_LACK_BWRAP_SETUID, "%.120s is set-user-id", x->path);
	} else {
		kn_doctor_ok(d, KN_PROBE_BWRAP, "%.120s, %.60s", x->path, x->said + 11);
	}
}

static void
ask_bwrap(struct kn_doctor *d, struct say *x)
{
	struct kn_err e = { 0 };

	if (x == NULL) {
		kn_doctor_untried(d, KN_PROBE_BWRAP, "no memory");
	} else if (kn_host_find_bwrap(x->path, sizeof(x->path), &e) < 0) {
		kn_doctor_bad(d, KN_PROBE_BWRAP, KN_HEALTH_REFUSED,
		    e.kind == KN_EK_USAGE ? KN_LACK_BWRAP_NAMED : KN_LACK_BWRAP_MISSING,
		    "%s", e.msg);
	} else {
		say_bwrap(d, x);
	}
}

/* ---- container runtimes ---- */

/* In a directory of PATH that not everybody can write to. */
static bool
find_in_path(const char *name, char *out, size_t n)
{
	const char *path = getenv("PATH"), *end;
	struct stat st;

	for (const char *p = path ? path : ""; *p != '\0'; p = *end ? end + 1 : end) {
		end = p + strcspn(p, ":");
		if (*p == '/' &&
		    (size_t)snprintf(out, n, "%.*s/%s", (int)(end - p), p, name) < n &&
		    stat(out, &st) == 0 && S_ISREG(st.st_mode) &&
		    (st.st_mode & S_IWOTH) == 0 && access(out, X_OK) == 0)
			return true;
	}
	return false;
}

/* "runc version 1.1.5+ds1" -> "1.1.5+ds1" */
static const char *
first_number(const char *said)
{
	size_t at = strcspn(said, "0123456789");

	return said[at] != '\0' ? said + at : "";
}

static void
ask_runtimes(struct kn_doctor *d, struct say *x)
{
	static const char *const names[] = { "runc", "crun", "podman", "docker" };
	char text[200] = "";
	size_t n = 0;

	for (size_t i = 0; x != NULL && i < sizeof(names) / sizeof(names[0]); i++) {
		const char *number;

		memset(x, 0, sizeof(*x));
		if (!find_in_path(names[i], x->path, sizeof(x->path)))
			continue;
		kn_doctor_child(d, ask_version, x);
		number = first_number(x->said);
		if (n < sizeof(text))
			n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%s %.*s",
			    n ? ", " : "", names[i],
			    number[0] ? (int)strcspn(number, " ,") : 1,
			    number[0] ? number : "?");
	}
	kn_doctor_ok(d, KN_PROBE_RUNTIMES, "%s",
	    text[0] ? text : "none in PATH (the launcher oci needs one, bwrap none)");
}

void
kn_doctor_program(struct kn_doctor *d)
{
	struct say *x = kn_doctor_share(sizeof(*x));

	ask_bwrap(d, x);
	ask_runtimes(d, x);
	kn_doctor_unshare(x, sizeof(*x));
}
