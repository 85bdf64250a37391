/* cmd/bench_spawn.c: bare processes, as many at a time as we have workers.
 *
 * Each lane is a process of its own that starts one after the other and waits for it:
 * the cheapest loop there is, so that the floor is a floor. A lane is also where
 * privileges can be dropped for good. What is started says nothing unless it fails;
 * then its first line is the reason that we give.
 */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cmd/bench.h"
#include "ipc/clock.h"
#include "ipc/fd.h"

enum { LANES_MAX = 16, ARGS_MAX = 256, FAILED = 1, CANNOT = 2 };

extern char **environ;

struct lane {
	const struct kn_bench *b;
	const struct kn_bench_cmd *c;
	int index, gate, null_fd, err_fd;
	char name[64];
	char *argv[ARGS_MAX];
};

static int
fill_argv(struct lane *l)
{
	const char *const *from = l->c->argv;
	size_t n = 0;

	for (; from[n]; n++) {
		if (n + 1 >= ARGS_MAX)
			return -1;
		/* posix_spawn() changes nothing, whatever its prototype says */
		memcpy(&l->argv[n], &from[n], sizeof l->argv[n]);
	}
	l->argv[n] = NULL;
	if (!l->c->lane_prefix)
		return 0;
	snprintf(l->name, sizeof l->name, "%s%d", l->c->lane_prefix,
	    l->c->lane_first + l->index);
	l->argv[l->c->lane_arg] = l->name;
	return 0;
}

static int
prepare(struct lane *l)
{
	const struct sigaction dfl = { .sa_handler = SIG_DFL };

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	sigaction(SIGPIPE, &dfl, NULL);
	if (fill_argv(l) < 0 || dup2(l->null_fd, 0) < 0 || dup2(l->null_fd, 1) < 0 ||
	    dup2(l->err_fd, 2) < 0)
		return -1;
	for (size_t i = 0; i < l->c->rewind_n; i++)
		if (fcntl(l->c->rewind[i], F_SETFD, 0) < 0)
			return -1;
	if (l->c->uid &&
	    (setgroups(0, NULL) < 0 || setresgid(l->c->uid, l->c->uid, l->c->uid) < 0 ||
		setresuid(l->c->uid, l->c->uid, l->c->uid) < 0))
		return -1;
	return sigprocmask(SIG_SETMASK, &l->b->mask, NULL);
}

static int
one(struct lane *l)
{
	pid_t pid;
	int st;

	for (size_t i = 0; i < l->c->rewind_n; i++)
		lseek(l->c->rewind[i], 0, SEEK_SET);
	errno = posix_spawn(&pid, l->c->path, NULL, NULL, l->argv, environ);
	if (errno) {
		dprintf(2, "%s: %s\n", l->c->path, strerror(errno));
		return -1;
	}
	while (waitpid(pid, &st, 0) < 0)
		if (errno != EINTR)
			return -1;
	if (st == 0)
		return 0;
	if (WIFSIGNALED(st))
		dprintf(2, "ended by signal %d\n", WTERMSIG(st));
	else
		dprintf(2, "ended with status %d\n", WEXITSTATUS(st));
	return -1;
}

static _Noreturn void
run_lane(struct lane *l)
{
	int n = l->c->n / l->c->lanes + (l->index < l->c->n % l->c->lanes);
	char shot;

	if (prepare(l) < 0) {
		dprintf(l->err_fd, "set up: %s\n", strerror(errno));
		_exit(CANNOT);
	}
	while (read(l->gate, &shot, 1) < 0)
		if (errno != EINTR)
			_exit(CANNOT);
	for (int i = 0; i < n; i++)
		if (one(l) < 0)
			_exit(FAILED);
	_exit(0);
}

/* The first line that says something. */
static void
first_line(int fd, char *out, int n)
{
	char buf[1024];
	ssize_t got = pread(fd, buf, sizeof buf - 1, 0);
	const char *at = buf;

	buf[got > 0 ? got : 0] = '\0';
	at += strspn(at, " \t\r\n");
	kn_err_printable(out, n, at, (int)strcspn(at, "\n"));
}

/* Closing our end is the start shot. */
static int
shoot_and_wait(
    int gate, const pid_t *pids, int n, int err_fd, double *out_ms, struct kn_err *e)
{
	uint64_t t0 = kn_clock_now();
	char line[160];
	int st, bad = 0;

	close(gate);
	for (int i = 0; i < n; i++) {
		while (waitpid(pids[i], &st, 0) < 0 && errno == EINTR)
			;
		bad |= st;
	}
	*out_ms = (double)(kn_clock_now() - t0) / 1e6;
	if (!bad)
		return 0;
	first_line(err_fd, line, sizeof line);
	return kn_err_set(e, KN_EK_HOST, "%s", line[0] ? line : "it failed");
}

int
kn_bench_spawn(
    struct kn_bench *b, const struct kn_bench_cmd *c, double *out_ms, struct kn_err *e)
{
	KN_OWN_FD int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	KN_OWN_FD int err_fd = memfd_create("bench-stderr", MFD_CLOEXEC);
	int gate[2], n = 0;
	pid_t pids[LANES_MAX];
	double ms;

	if (null_fd < 0 || err_fd < 0 || pipe2(gate, O_CLOEXEC) < 0)
		return kn_err_sys(e, KN_EK_HOST, "prepare processes");
	for (; n < c->lanes && n < LANES_MAX; n++) {
		struct lane l = { b, c, n, gate[0], null_fd, err_fd, "", { 0 } };

		pids[n] = fork();
		if (pids[n] == 0) {
			close(gate[1]);
			run_lane(&l);
		}
		if (pids[n] < 0) {
			kn_err_sys(e, KN_EK_HOST, "fork");
			break;
		}
	}
	close(gate[0]);
	if (n < c->lanes) {
		(void)shoot_and_wait(gate[1], pids, n, err_fd, &ms, NULL);
		return -1;
	}
	return shoot_and_wait(gate[1], pids, n, err_fd, out_ms, e);
}

const char *
kn_bench_find(const char *name, char *out, size_t n)
{
	const char *dir = getenv("PATH");

	/* root's tools, which an ordinary user's PATH often lacks */
	static const char *const more[] = { "/usr/sbin", "/sbin" };

	for (; dir && *dir; dir += strcspn(dir, ":"), dir += *dir == ':') {
		int len = (int)strcspn(dir, ":");

		if (len > 0 && *dir == '/' &&
		    snprintf(out, n, "%.*s/%s", len, dir, name) < (int)n &&
		    access(out, X_OK) == 0)
			return out;
	}
	for (size_t i = 0; i < sizeof more / sizeof *more; i++)
		if (snprintf(out, n, "%s/%s", more[i], name) < (int)n &&
		    access(out, X_OK) == 0)
			return out;
	return NULL;
}
