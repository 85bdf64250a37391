/* sandbox/oci_remove.c: see oci_remove.h. */
#include "sandbox/oci_remove.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "ipc/clock.h"
#include "ipc/fd.h"
#include "sandbox/host.h"
#include "sandbox/oci_engine.h"
#include "sandbox/oci_monitor.h"
#include "sandbox/place.h"

enum {
	CLIENT_FD = 3,
	CLIENT_MS = 5000, /* from a client's kill to its end */
	PAUSE_FIRST_MS = 100,
	PAUSE_MOST_MS = 1000,
	FORGOTTEN_MOST = 8, /* monitors of one name, of which there is one */
	DEAF_MOST = 2,	    /* times that an engine is asked which does not answer */
	/* So long after its client's end, as the note's time has it, a daemon makes
	 * nothing any more. Less than KN_OCI_REMOVE_MS. */
	MAKE_S = 30
};

/* Run it, and say whether it said anything. 0, or -1: it failed, or was not done in
 * time. All signals are blocked here: no wait is interrupted. */
static int
ask(const char *const argv[], uint64_t deadline, bool *out_said)
{
	int p[2], status = -1;
	struct pollfd said, ended;
	pid_t pid;
	char byte;

	if (pipe2(p, O_CLOEXEC) < 0)
		return -1;
	pid = fork();
	if (pid == 0) {
		sigset_t none;

		sigemptyset(&none);
		sigprocmask(SIG_SETMASK, &none, NULL);
		dup2(p[1], STDOUT_FILENO);
		execve(argv[0], (char *const *)(uintptr_t)argv, kn_engine_env());
		_exit(127);
	}
	close(p[1]);
	if (pid > 0) {
		ended = (struct pollfd){ .fd = (int)syscall(SYS_pidfd_open, pid, 0),
			.events = POLLIN };
		if (poll(&ended, 1, kn_clock_poll_ms(kn_clock_now(), deadline)) != 1)
			kill(pid, SIGKILL);
		waitpid(pid, &status, 0);
		kn_fd_close(&ended.fd);
	}
	said = (struct pollfd){ .fd = p[0], .events = POLLIN };
	*out_said = poll(&said, 1, 0) == 1 && read(p[0], &byte, 1) == 1;
	close(p[0]);
	return status == 0 ? 0 : -1;
}

void
kn_oci_remove_stamp(const char *note)
{
	uint64_t ns = kn_clock_now();
	struct timespec now = { (time_t)(ns / KN_S_NS), (long)(ns % KN_S_NS) };
	const struct timespec both[2] = { now, now };

	(void)utimensat(AT_FDCWD, note, both, 0);
}

/* Also where the note is gone: somebody else has seen to it. What was stamped later
 * than now was so before the machine began anew, and the daemon with it. */
static bool
is_late(const char *note)
{
	uint64_t now = kn_clock_now(), then;
	struct stat st;

	if (stat(note, &st) < 0)
		return true;
	then = (uint64_t)st.st_mtim.tv_sec * KN_S_NS + (uint64_t)st.st_mtim.tv_nsec;
	return then > now || now - then > MAKE_S * KN_S_NS;
}

/* Of which podman knows nothing (oci_monitor.h): with what its runtime noted. */
static void
end_forgotten(const char *name, uint64_t deadline)
{
	char program[256];
	struct kn_monitored m;
	const char *const delete[] = { program, "delete", "--force", m.id, NULL };
	bool said;

	for (int i = 0; i < FORGOTTEN_MOST && kn_monitor_end(name, &m); i++)
		if (m.id[0] != '\0' &&
		    (strcmp(m.runtime, "crun") == 0 ||
			strcmp(m.runtime, "runc") == 0) &&
		    kn_host_find_program(m.runtime, program, sizeof program))
			(void)ask(delete, deadline, &said);
}

/* A daemon that does not answer did not answer the client either which gave up by
 * itself, and what it had begun it removes when it starts (--rm). What was asked for
 * long ago is left to a start that finds the engine at work: its note stays. That there
 * is none is believed of a list only, of all but what was asked for: `rm` ends well
 * where it has found nothing, or not, depending on the engine's age. */
static void
remove_it(const struct kn_oci_removal *r, bool settled)
{
	bool podman = r->runtime == KN_RUNTIME_PODMAN;
	char filter[128];
	const char *const tell[] = { r->program, "rm", "--force", "--volumes",
		podman ? "--time=0" : r->id, podman ? r->id : NULL, NULL };
	const char *const list[] = { r->program, "ps", "--all", "--quiet", "--filter",
		filter, NULL };
	uint64_t deadline =
	    kn_clock_after_ms(kn_clock_now(), KN_OCI_REMOVE_MS - CLIENT_MS);
	bool never = r->refused && !podman;
	unsigned deaf = never || (!settled && is_late(r->note)) ? DEAF_MOST : UINT_MAX;

	if (snprintf(filter, sizeof filter, "name=%s$", r->id) >= (int)sizeof filter)
		return;
	for (int ms = PAUSE_FIRST_MS; kn_clock_now() < deadline;
	     ms = 2 * ms < PAUSE_MOST_MS ? 2 * ms : PAUSE_MOST_MS) {
		bool said, listed;

		if (ask(tell, deadline, &said) == 0 && said)
			settled = true; /* by its name: it was there */
		if (ask(list, deadline, &listed) == 0) {
			if (!listed && (settled || is_late(r->note))) {
				if (podman)
					end_forgotten(r->id, deadline);
				kn_place_done(r->note);
				return;
			}
			settled |= listed;
			deaf = UINT_MAX;
		} else if (deaf != UINT_MAX && --deaf == 0) {
			if (never)
				kn_place_done(r->note);
			return;
		}
		poll(NULL, 0, ms);
	}
}

/* It holds none of our descriptors: a worker ends by the end of its socket. Signals
 * stay blocked, as a service manager sends them to all of a service. */
static void __attribute__((noreturn)) run(const struct kn_oci_removal *r)
{
	const struct sigaction normal = { .sa_handler = SIG_DFL };
	struct pollfd client = { .fd = -1, .events = POLLIN };
	int null = fcntl(open("/dev/null", O_RDWR), F_DUPFD, CLIENT_FD + 1);
	sigset_t all;

	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	sigaction(SIGCHLD, &normal, NULL); /* a program that we are in may ignore it */
	prctl(PR_SET_NAME, "knit-remover", 0, 0, 0);
	setsid();
	/* First: a host may have 0 to 2 closed, and it be one of them. */
	if (r->client >= 0)
		client.fd = dup2(r->client, CLIENT_FD);
	for (int i = 0; i < CLIENT_FD; i++)
		dup2(null, i);
	if (chdir("/") < 0 ||
	    syscall(
		SYS_close_range, client.fd < 0 ? CLIENT_FD : CLIENT_FD + 1, ~0u, 0) < 0)
		_exit(1);
	if (client.fd >= 0) {
		poll(&client, 1, CLIENT_MS);
		/* Until now it may have asked for it. */
		kn_oci_remove_stamp(r->note);
	}
	kn_fd_close(&client.fd);
	/* podman's client makes it itself. */
	remove_it(r, r->settled || r->runtime == KN_RUNTIME_PODMAN);
	_exit(0);
}

int
kn_oci_remove(const struct kn_oci_removal *r)
{
	int status = 0;
	pid_t pid = fork();

	if (pid < 0)
		return -1;
	if (pid == 0) {
		pid = fork();
		if (pid == 0)
			run(r);
		_exit(pid < 0);
	}
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return status == 0 ? 0 : -1;
}
