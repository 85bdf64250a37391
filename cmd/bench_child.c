/* cmd/bench_child.c: this program as its users run it, fed and read through pipes. */
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cmd/bench.h"
#include "ipc/fd.h"

enum { AHEAD = 256 /* lines fed and not answered: fewer than fill a pipe */ };

extern char **environ;

/* fds: what becomes 0, 1 and 2. */
static int
start(struct kn_bench *b, const char *const *argv, const int fds[3], int *out_pid,
    struct kn_err *e)
{
	posix_spawn_file_actions_t fa;
	posix_spawnattr_t at;
	char *args[16] = { NULL };
	sigset_t dfl;
	pid_t pid;

	for (size_t i = 0; i < 15 && argv[i]; i++)
		memcpy(&args[i], &argv[i], sizeof args[i]);
	posix_spawn_file_actions_init(&fa);
	posix_spawnattr_init(&at);
	posix_spawnattr_setsigmask(&at, &b->mask);
	sigemptyset(&dfl);
	sigaddset(&dfl, SIGPIPE);
	posix_spawnattr_setsigdefault(&at, &dfl);
	posix_spawnattr_setflags(&at, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
	for (int i = 0; i < 3; i++)
		posix_spawn_file_actions_adddup2(&fa, fds[i], i);
	errno = posix_spawn(&pid, b->exe, &fa, &at, args, environ);
	posix_spawn_file_actions_destroy(&fa);
	posix_spawnattr_destroy(&at);
	if (errno)
		return kn_err_sys(e, KN_EK_HOST, "start this program again");
	*out_pid = (int)pid;
	return 0;
}

static int
reap(int pid, int *out_status)
{
	while (waitpid(pid, out_status, 0) < 0)
		if (errno != EINTR)
			return -1;
	return 0;
}

int
kn_bench_child_start(
    struct kn_bench *b, struct kn_bench_child *c, unsigned workers, struct kn_err *e)
{
	char n[16], bind[128];
	const char *const argv[] = { "knit-sandbox", "run", "--quiet", "--workers", n,
		c->module ? "--module" : "--ro-bind", bind, "--tasks", "-", NULL };
	int in[2] = { -1, -1 }, out[2] = { -1, -1 }, rc = -1;

	c->pid = 0;
	c->in = c->out = -1;
	c->at = c->end = 0;
	snprintf(n, sizeof n, "%u", workers);
	snprintf(bind, sizeof bind, "%s:" KN_BENCH_TASK, b->task);
	if (c->module && kn_bench_module_file(b, bind, sizeof bind, e) < 0)
		return -1;
	if (pipe2(in, O_CLOEXEC) < 0 || pipe2(out, O_CLOEXEC) < 0)
		kn_err_sys(e, KN_EK_HOST, "make pipes");
	else
		rc = start(b, argv, (const int[]){ in[0], out[1], 2 }, &c->pid, e);
	kn_fd_close(&in[0]);
	kn_fd_close(&out[1]);
	c->in = in[1];
	c->out = out[0];
	return rc;
}

/* One line, NUL-ended, in the buffer. */
static char *
next_line(struct kn_bench_child *c)
{
	for (;;) {
		char *line = c->buf + c->at;
		char *nl = memchr(line, '\n', c->end - c->at);
		ssize_t n;

		if (nl) {
			*nl = '\0';
			c->at = (size_t)(nl + 1 - c->buf);
			return line;
		}
		memmove(c->buf, line, c->end - c->at);
		c->end -= c->at;
		c->at = 0;
		if (c->end == sizeof c->buf)
			return NULL;
		n = read(c->out, c->buf + c->end, sizeof c->buf - c->end);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return NULL;
		c->end += (size_t)n;
	}
}

static int
take_result(struct kn_bench_child *c, uint32_t *workers, struct kn_err *e)
{
	static const char key[] = "\"worker\":\"w";
	const char *line = next_line(c), *w;
	unsigned long index;

	if (!line)
		return kn_err_set(e, KN_EK_TASK, "run --tasks: it ended too early");
	/* The task has no output: nothing in this line comes from it. */
	if (!strstr(line, "\"verdict\":\"ok\""))
		return kn_err_set(e, KN_EK_TASK, "a task was not ok: %.180s", line);
	w = strstr(line, key);
	index = w ? strtoul(w + sizeof key - 1, NULL, 10) : 32;
	if (workers && index < 32)
		*workers |= 1u << index;
	return 0;
}

int
kn_bench_child_tasks(struct kn_bench_child *c, const char *argv, unsigned from,
    unsigned n, uint32_t *out_workers, struct kn_err *e)
{
	unsigned fed = 0, got = 0;
	char text[256];

	if (out_workers)
		*out_workers = 0;
	while (got < n) {
		while (fed < n && fed - got < AHEAD) {
			int len =
			    snprintf(text, sizeof text, "{\"id\":\"t%u\",\"%s\":%s}\n",
				from + fed, c->module ? "call" : "argv", argv);

			if (kn_fd_write_all(c->in, text, (size_t)len) < 0)
				return kn_err_sys(e, KN_EK_TASK, "feed run --tasks");
			fed++;
		}
		if (take_result(c, out_workers, e) < 0)
			return -1;
		got++;
	}
	return 0;
}

int
kn_bench_child_end(struct kn_bench_child *c, struct kn_err *e)
{
	int st = 0, rc = 0;

	kn_fd_close(&c->in);
	while (c->out >= 0 && next_line(c))
		;
	kn_fd_close(&c->out);
	if (c->pid > 0 && reap(c->pid, &st) < 0)
		rc = kn_err_sys(e, KN_EK_HOST, "wait for run --tasks");
	else if (st != 0)
		rc = kn_err_set(e, KN_EK_TASK, "run --tasks ended with %s %d",
		    WIFSIGNALED(st) ? "signal" : "status",
		    WIFSIGNALED(st) ? WTERMSIG(st) : WEXITSTATUS(st));
	c->pid = 0;
	return rc;
}

/* With what it said of it, which is its last word but for a hint. */
static int
failed(const char *text, struct kn_err *e)
{
	static const char said[] = "knit-sandbox: ";
	const char *why = NULL;

	for (const char *p = text; p && (p = strstr(p, said)); p += sizeof said - 1)
		why = p + sizeof said - 1;
	return kn_err_set(e, KN_EK_TASK, "run -- /bin/true failed%s%.*s",
	    why ? ": " : "", why ? (int)strcspn(why, "\n") : 0, why ? why : "");
}

int
kn_bench_child_lifecycle(struct kn_bench *b, const char *launcher, const char *image,
    char *out, size_t n, struct kn_err *e)
{
	char set[300];
	const char *const plain[] = { "knit-sandbox", "run", "--launcher", launcher,
		"--debug", "lifecycle", "--", "/bin/true", NULL };
	const char *const in_image[] = { "knit-sandbox", "run", "--launcher", launcher,
		"--set", set, "--debug", "lifecycle", "--", "/bin/true", NULL };
	const char *const *argv = image ? in_image : plain;
	KN_OWN_FD int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	int p[2], pid, st, rc;
	char *text = NULL;
	size_t text_n = 0;

	if (snprintf(set, sizeof set, "/launcher/image=%s", image ? image : "") >=
	    (int)sizeof set)
		return kn_err_set(e, KN_EK_USAGE, "--image: too long a name");
	if (null_fd < 0 || pipe2(p, O_CLOEXEC) < 0)
		return kn_err_sys(e, KN_EK_HOST, "prepare a run");
	rc = start(b, argv, (const int[]){ null_fd, null_fd, p[1] }, &pid, e);
	kn_fd_close(&p[1]);
	if (rc == 0) {
		rc = kn_fd_read_all(p[0], 1 << 20, &text, &text_n, e);
		kn_fd_close(&p[0]);
		if (reap(pid, &st) < 0 || st != 0)
			rc = failed(text, e);
	}
	kn_fd_close(&p[0]);
	if (rc == 0)
		snprintf(out, n, "%s", text);
	free(text);
	return rc;
}
