/* cmd/serve_listen.c: the sockets that clients come to: made here, or handed over by
 * whoever starts us (sd_listen_fds(3)).
 */
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "cmd/serve_int.h"
#include "ipc/fd.h"

enum {
	FIRST_GIVEN = 3, /* SD_LISTEN_FDS_START */
	LOCK_TRIES = 200,
	LOCK_MS = 50, /* between two */
};

/* What comes by the network would be anybody's. */
static bool
is_unix(int fd)
{
	int domain = 0;
	socklen_t n = sizeof domain;

	return getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &n) == 0 &&
	       domain == AF_UNIX;
}

static int
add(struct kn_serve *s, int fd, enum kn_serve_for what, const char *path,
    struct kn_err *e)
{
	struct kn_serve_listener *l = &s->listeners[s->listener_n];
	struct stat st;

	if (s->listener_n == KN_SERVE_LISTEN_MOST) {
		close(fd);
		return kn_err_set(e, KN_EK_USAGE, "more than %d sockets to listen on",
		    KN_SERVE_LISTEN_MOST);
	}
	*l = (struct kn_serve_listener){ .fd = fd, .what = what, .local = is_unix(fd) };
	if (path && lstat(path, &st) == 0) {
		snprintf(l->path, sizeof l->path, "%s", path);
		l->dev = st.st_dev;
		l->ino = st.st_ino;
	}
	s->listener_n++;
	return 0;
}

/* ---- unix sockets ---- */

/* One at a time takes a name in a directory: of two that start over what a killed one
 * left, the second would else take the first one's fresh name for that. -1: there is no
 * lock to be had. Whoever may read the directory could keep it, and must not keep us
 * from serving. */
static int
lock_directory(const char *path)
{
	const char *slash = strrchr(path, '/');
	char dir[KN_SERVE_PATH_MOST + 1] = ".";
	int fd;

	if (slash)
		snprintf(dir, sizeof dir, "%.*s",
		    slash == path ? 1 : (int)(slash - path), path);
	fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	for (int i = 0; fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) < 0; i++) {
		if (errno != EWOULDBLOCK || i == LOCK_TRIES)
			kn_fd_close(&fd);
		else
			(void)poll(NULL, 0, LOCK_MS);
	}
	return fd;
}

static bool
is_dead(const char *path)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int n = snprintf(at.sun_path, sizeof at.sun_path, "%s", path);
	bool dead = fd >= 0 && n < (int)sizeof at.sun_path &&
		    connect(fd, (const struct sockaddr *)&at, sizeof at) < 0 &&
		    errno == ECONNREFUSED;

	kn_fd_close(&fd);
	return dead;
}

/* PATH.PID of those that were killed before they had their name. With the lock. */
static void
sweep(int dir, const char *path)
{
	const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path;
	size_t n = strlen(base);
	int fd = dup(dir);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *de;

	while (d && (de = readdir(d))) {
		const char *rest = de->d_name + n;
		char full[2 * KN_SERVE_PATH_MOST];
		struct stat st;

		if (strncmp(de->d_name, base, n) != 0 || *rest != '.' || !rest[1] ||
		    rest[1 + strspn(rest + 1, "0123456789")] ||
		    fstatat(dir, de->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
		    !S_ISSOCK(st.st_mode) || st.st_uid != geteuid())
			continue;
		snprintf(
		    full, sizeof full, "%.*s%s", (int)(base - path), path, de->d_name);
		if (is_dead(full))
			(void)unlinkat(dir, de->d_name, 0);
	}
	if (d)
		closedir(d);
	else
		kn_fd_close(&fd);
}

/* A socket that nobody listens on is what a killed server left. 0: the name is free. */
static int
make_room(const char *option, const char *path, struct kn_err *e)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	struct stat st;
	int fd, rc;

	if (lstat(path, &st) < 0)
		return errno == ENOENT
			   ? 0
			   : kn_err_sys(e, KN_EK_USAGE, "%s: %s", option, path);
	if (!S_ISSOCK(st.st_mode))
		return kn_opt_refuse(e, "name a file that is not there yet",
		    "%s: %s exists and is no socket", option, path);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return kn_err_sys(e, KN_EK_HOST, "%s: socket", option);
	snprintf(at.sun_path, sizeof at.sun_path, "%s", path);
	rc = connect(fd, (const struct sockaddr *)&at, sizeof at);
	if (rc < 0 && errno == ECONNREFUSED)
		rc = unlink(path) < 0
			 ? kn_err_sys(e, KN_EK_USAGE, "%s: remove %s", option, path)
			 : 0;
	else
		rc = kn_opt_refuse(e, "stop that one first, or name another socket",
		    "%s: somebody listens on %s", option, path);
	close(fd);
	return rc;
}

/* Give the listening socket its name, which is never that of one that does not listen:
 * else another server that starts would take it for one that was left. */
static int
name_socket(const char *option, const char *temp, const char *path, struct kn_err *e)
{
	int rc = link(temp, path);

	if (rc < 0 && errno == EEXIST) {
		if (make_room(option, path, e) < 0)
			return -1;
		rc = link(temp, path);
	}
	return rc < 0 ? kn_err_sys(e, KN_EK_USAGE, "%s: make %s", option, path) : 0;
}

static int
listen_unix(struct kn_serve *s, const char *option, const char *path,
    enum kn_serve_for what, struct kn_err *e)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	KN_OWN_FD int dir = -1;
	int fd, rc, n;
	mode_t old;

	n = snprintf(at.sun_path, sizeof at.sun_path, "%s.%d", path, (int)getpid());
	if (n < 0 || n >= (int)sizeof at.sun_path)
		return kn_opt_refuse(e, "a socket's path has some 90 bytes at most",
		    "%s: the path is too long", option);
	dir = lock_directory(path);
	if (dir >= 0)
		sweep(dir, path);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return kn_err_sys(e, KN_EK_HOST, "%s: socket", option);
	/* Never more open than it is to be, not for a moment. */
	old = umask((mode_t)(~s->opt.socket_mode & 0777));
	rc = bind(fd, (const struct sockaddr *)&at, sizeof at);
	(void)umask(old);
	if (rc < 0) {
		kn_err_sys(e, KN_EK_USAGE, "%s: listen at %s", option, path);
		kn_opt_hint_file(e, path);
		close(fd);
		return -1;
	}
	rc = listen(fd, SOMAXCONN) < 0
		 ? kn_err_sys(e, KN_EK_HOST, "%s: listen at %s", option, path)
		 : name_socket(option, at.sun_path, path, e);
	(void)unlink(at.sun_path);
	if (rc < 0) {
		close(fd);
		return -1;
	}
	return add(s, fd, what, path, e);
}

/* ---- loopback ---- */

/* Health and numbers have no password: only this machine may ask. */
static int
listen_loopback(struct kn_serve *s, const char *address, struct kn_err *e)
{
	struct sockaddr_in v4 = { .sin_family = AF_INET };
	struct sockaddr_in6 v6 = { .sin6_family = AF_INET6 };
	const char *colon = strrchr(address, ':');
	size_t n = colon ? (size_t)(colon - address) : 0;
	const int on = 1;
	bool is6 = n == 5 && memcmp(address, "[::1]", 5) == 0;
	unsigned long port = 0;
	char *end = NULL;
	int fd, rc;

	if (colon)
		port = strtoul(colon + 1, &end, 10);
	if (!colon || end == colon + 1 || *end || port < 1 || port > 65535 ||
	    !(is6 || (n == 9 && (memcmp(address, "127.0.0.1", 9) == 0 ||
				    memcmp(address, "localhost", 9) == 0))))
		return kn_opt_refuse(e,
		    "a path with a slash, or 127.0.0.1:PORT, localhost:PORT, "
		    "[::1]:PORT",
		    "--http: \"%.60s\" is no address of this machine alone", address);
	fd = socket(
	    is6 ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return kn_err_sys(e, KN_EK_HOST, "--http: socket");
	(void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
	v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	v4.sin_port = v6.sin6_port = htons((uint16_t)port);
	v6.sin6_addr = in6addr_loopback;
	rc = is6 ? bind(fd, (struct sockaddr *)&v6, sizeof v6)
		 : bind(fd, (struct sockaddr *)&v4, sizeof v4);
	if (rc < 0 || listen(fd, KN_HTTP_MOST) < 0) {
		kn_err_sys(e, KN_EK_USAGE, "--http: listen on %s", address);
		if (e->sys == EACCES)
			kn_err_hint(
			    e, "ports below 1024 are root's: take a higher one");
		else if (e->sys == EADDRINUSE)
			kn_err_hint(e, "somebody listens there: take another one");
		close(fd);
		return -1;
	}
	return add(s, fd, KN_FOR_HTTP, NULL, e);
}

/* ---- handed over ---- */

static bool
is_listening(int fd)
{
	int yes = 0, type = 0;
	socklen_t n = sizeof yes, m = sizeof type;

	return getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &yes, &n) == 0 && yes &&
	       getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &m) == 0 &&
	       type == SOCK_STREAM;
}

static int
take_one(struct kn_serve *s, int fd, bool http, struct kn_err *e)
{
	if (!is_listening(fd))
		return kn_err_set(e, KN_EK_USAGE,
		    "descriptor %d was handed over and is no listening stream socket",
		    fd);
	if (!http && !is_unix(fd))
		return kn_err_set(e, KN_EK_USAGE,
		    "descriptor %d was handed over for tasks and is no unix socket",
		    fd);
	if (fcntl(fd, F_SETFD, FD_CLOEXEC) < 0 ||
	    fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK) < 0)
		return kn_err_sys(e, KN_EK_HOST, "descriptor %d", fd);
	return add(s, fd, http ? KN_FOR_HTTP : KN_FOR_TASKS, NULL, e);
}

/* LISTEN_FDNAMES calls the one for /health and /metrics "http". */
static int
take_given(struct kn_serve *s, struct kn_err *e)
{
	const char *pid = getenv("LISTEN_PID"), *count = getenv("LISTEN_FDS");
	const char *names = getenv("LISTEN_FDNAMES");
	unsigned long n;
	int rc = 0;

	if (!pid || !count || strtoul(pid, NULL, 10) != (unsigned long)getpid())
		return 0;
	n = strtoul(count, NULL, 10);
	if (n > KN_SERVE_LISTEN_MOST)
		return kn_err_set(e, KN_EK_USAGE, "LISTEN_FDS: more than %d sockets",
		    KN_SERVE_LISTEN_MOST);
	for (unsigned long i = 0; rc == 0 && i < n; i++) {
		size_t len = names ? strcspn(names, ":") : 0;
		bool http = len == 4 && memcmp(names, "http", 4) == 0;

		rc = take_one(s, FIRST_GIVEN + (int)i, http, e);
		names = names && names[len] == ':' ? names + len + 1 : NULL;
	}
	unsetenv("LISTEN_PID");
	unsetenv("LISTEN_FDS");
	unsetenv("LISTEN_FDNAMES");
	return rc;
}

/* ---- outside ---- */

int
kn_serve_listen(struct kn_serve *s, struct kn_err *e)
{
	bool tasks = false;

	if (take_given(s, e) < 0)
		return -1;
	if (s->opt.socket &&
	    listen_unix(s, "--socket", s->opt.socket, KN_FOR_TASKS, e) < 0)
		return -1;
	if (s->opt.http && strchr(s->opt.http, '/') &&
	    listen_unix(s, "--http", s->opt.http, KN_FOR_HTTP, e) < 0)
		return -1;
	if (s->opt.http && !strchr(s->opt.http, '/') &&
	    listen_loopback(s, s->opt.http, e) < 0)
		return -1;
	for (size_t i = 0; i < s->listener_n; i++)
		tasks |= s->listeners[i].what == KN_FOR_TASKS;
	if (!tasks)
		return kn_opt_refuse(
		    e, "add --socket PATH", "serve: no socket to take tasks from");
	return 0;
}

void
kn_serve_unlisten(struct kn_serve *s, enum kn_serve_for what)
{
	struct stat st;

	for (size_t i = 0; i < s->listener_n; i++) {
		struct kn_serve_listener *l = &s->listeners[i];

		if (l->what != what || l->fd < 0)
			continue;
		if (l->path[0] && lstat(l->path, &st) == 0 && st.st_dev == l->dev &&
		    st.st_ino == l->ino)
			(void)unlink(l->path);
		kn_fd_close(&l->fd);
	}
}

int
kn_serve_accept(const struct kn_serve_listener *l)
{
	return accept4(l->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
}
