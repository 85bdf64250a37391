/* cmd/serve_notify.c: sd_notify(3) to whoever started us, and the health file.
 *
 * The protocol is one datagram of lines to the socket named by NOTIFY_SOCKET, so
 * libsystemd is not needed for it.
 */
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "cmd/serve_int.h"
#include "ipc/clock.h"
#include "ipc/fd.h"

static struct sockaddr_un to; /* whom; the process has one starter */
static socklen_t to_n;
static int to_fd = -1;

static int
open_socket(const char *path, struct kn_err *e)
{
	const struct timeval wait = { .tv_sec = 1 };
	size_t n = strlen(path);

	if ((path[0] != '/' && path[0] != '@') || n >= sizeof to.sun_path)
		return kn_err_set(e, KN_EK_USAGE, "NOTIFY_SOCKET: no unix socket");
	to.sun_family = AF_UNIX;
	memcpy(to.sun_path, path, n);
	if (path[0] == '@')
		to.sun_path[0] = '\0';
	to_n = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n);
	to_fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (to_fd < 0)
		return kn_err_sys(e, KN_EK_HOST, "NOTIFY_SOCKET: socket");
	/* For what is said once: who reads it may have a full queue. */
	(void)setsockopt(to_fd, SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof wait);
	return 0;
}

int
kn_notify_open(struct kn_serve *s, struct kn_err *e)
{
	const char *path = getenv("NOTIFY_SOCKET"), *usec = getenv("WATCHDOG_USEC");
	const char *pid = getenv("WATCHDOG_PID");
	int rc = path && *path ? open_socket(path, e) : 0;

	if (rc == 0 && to_fd >= 0 && usec &&
	    (!pid || strtoul(pid, NULL, 10) == (unsigned long)getpid())) {
		unsigned long long us = strtoull(usec, NULL, 10);

		/* Half of what they would wait: as sd_watchdog_enabled(3) advises. */
		if (us >= 2000 && us < UINT64_MAX / 1000)
			s->watchdog_ns = us * 1000 / 2;
	}
	unsetenv("NOTIFY_SOCKET");
	unsetenv("WATCHDOG_USEC");
	unsetenv("WATCHDOG_PID");
	return rc;
}

static void
tell(const char *text, int flags)
{
	if (to_fd >= 0)
		(void)sendto(to_fd, text, strlen(text), MSG_NOSIGNAL | flags,
		    (const struct sockaddr *)&to, to_n);
}

void
kn_notify(const char *text)
{
	tell(text, 0);
}

uint64_t
kn_notify_watchdog(struct kn_serve *s)
{
	uint64_t now;

	if (!s->watchdog_ns)
		return 0;
	now = kn_clock_now();
	if (now >= s->watchdog_at) {
		tell("WATCHDOG=1", MSG_DONTWAIT); /* the next one comes soon */
		s->watchdog_at = now + s->watchdog_ns;
	}
	return s->watchdog_at;
}

/* ---- the health file ---- */

/* A new file under the name, so that nobody reads half of one. */
static void
write_health(struct kn_serve *s)
{
	const char *path = s->opt.health_file;
	char temp[4096];
	int fd, n = snprintf(temp, sizeof temp, "%s.new", path);

	if (n < 0 || n >= (int)sizeof temp) {
		kn_say(&s->voice, "--health-file: the path is too long");
		return;
	}
	(void)unlink(temp);
	fd = open(temp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0644);
	if (fd < 0 || kn_fd_write_all(fd, "serving\n", 8) < 0 || rename(temp, path) < 0)
		kn_say(&s->voice, "--health-file: write %s: %s", path, strerror(errno));
	else
		s->health_written = true;
	kn_fd_close(&fd);
}

void
kn_notify_state(struct kn_serve *s)
{
	char text[160];

	if (s->state == KN_SERVE_SERVING) {
		if (s->opt.health_file && !s->health_written)
			write_health(s);
		snprintf(text, sizeof text, "READY=1\nSTATUS=serving, policy %.80s",
		    knit_policy_hash(s->pools->policy));
		kn_notify(text);
	} else if (s->state >= KN_SERVE_DRAINING) {
		kn_notify("STOPPING=1\nSTATUS=answering what was taken");
		kn_notify_close(s);
	}
}

int
kn_notify_begin(const struct kn_serve *s, struct kn_err *e)
{
	const char *path = s->opt.health_file;
	char text[16];
	ssize_t n;
	int fd;

	if (!path)
		return 0;
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
	if (fd < 0 && errno == ENOENT)
		return 0;
	n = fd < 0 ? -1 : read(fd, text, sizeof text);
	kn_fd_close(&fd);
	/* (an empty one: somebody has made up a name for us) */
	if (n != 0 && (n != 8 || memcmp(text, "serving\n", 8) != 0))
		return kn_opt_refuse(e, "name a file that is not there yet",
		    "--health-file: %s exists and was not left by a server", path);
	if (unlink(path) < 0)
		return kn_err_sys(e, KN_EK_USAGE, "--health-file: remove %s", path);
	return 0;
}

void
kn_notify_close(struct kn_serve *s)
{
	if (s->health_written)
		(void)unlink(s->opt.health_file);
	s->health_written = false;
}
