/* cmd/opt_reach.c: a connection to the server that an option names. */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "cmd/opt.h"
#include "ipc/err.h"

/* A probe asks the server that has that --http; the others want its --socket. */
static void
hint(struct kn_err *e, const char *option, const char *path)
{
	bool probe = strcmp(option, "--probe") == 0;
	struct stat st;

	if (e->sys == ECONNREFUSED && stat(path, &st) == 0 && !S_ISSOCK(st.st_mode))
		kn_err_hint(e,
		    "that is no socket; name the one of a server, %s of knit-sandbox "
		    "serve",
		    probe ? "--http" : "--socket");
	else if (e->sys == ECONNREFUSED ||
		 (e->sys == ENOENT && !kn_opt_hint_near(e, path)))
		kn_err_hint(e, "start a server: knit-sandbox serve --socket %s%s",
		    probe ? "PATH --http " : "", path);
	else
		kn_opt_hint_file(e, path);
}

int
kn_opt_reach(const char *option, const char *path, unsigned wait_s, struct kn_err *e)
{
	const struct timeval wait = { .tv_sec = wait_s };
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	int fd;

	if (strlen(path) >= sizeof at.sun_path)
		return kn_opt_refuse(e, "a socket's path has 107 bytes at most",
		    "%s: the path is too long", option);
	memcpy(at.sun_path, path, strlen(path));
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return kn_err_sys(e, KN_EK_HOST, "%s: socket", option);
	if (wait_s > 0) {
		(void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof wait);
		(void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof wait);
	}
	if (connect(fd, (const struct sockaddr *)&at, sizeof at) == 0)
		return fd;
	kn_err_sys(e, KN_EK_USAGE, "%s: %s", option, path);
	close(fd);
	hint(e, option, path);
	return -1;
}
