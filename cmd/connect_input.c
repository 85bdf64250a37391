/* cmd/connect_input.c: run --connect: the standard input of a command, which goes to
 * the server within its task line, so all of it is read first.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "cmd/cmd.h"
#include "cmd/connect.h"
#include "ipc/err.h"
#include "ipc/fd.h"

enum {
	CHUNK = 64 << 10,
	INPUT_MAX = KNIT_LINE_BYTES_MAX / 4 * 3, /* more cannot fit as base64 */
	TELL_MS = 2000, /* without an end, after which we say what we wait for */
};

struct input {
	const struct kn_run *r;
	const char *name; /* for messages */
	int fd;
	char *p;
	size_t n, cap;
	long tell_ms; /* when; -1: no more */
};

static long
now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void
wait_more(struct input *in)
{
	struct pollfd p = { .fd = in->fd, .events = POLLIN };
	long left = in->tell_ms < 0 ? -1 : in->tell_ms - now_ms();

	if (poll(&p, 1, in->tell_ms >= 0 && left < 0 ? 0 : (int)left) != 0)
		return;
	in->tell_ms = -1;
	if (!in->r->voice.quiet)
		kn_say(&in->r->voice,
		    "waiting for the end of %s, which goes to the server with the "
		    "command (--stdin /dev/null: none)",
		    in->name);
	(void)poll(&p, 1, -1);
}

static int
grow(struct input *in, struct kn_err *e)
{
	char *p;

	if (in->n > INPUT_MAX) {
		kn_err_set(e, KN_EK_USAGE, "--connect: %s: more than %d bytes",
		    in->name, INPUT_MAX);
		kn_err_hint(e, "a task line has 16 MiB at most: see knit-tasks(5)");
		return -1;
	}
	if (in->cap - in->n >= CHUNK)
		return 0;
	in->cap = in->cap ? in->cap * 2 : 2 * CHUNK;
	p = realloc(in->p, in->cap);
	if (!p)
		return kn_err_set(e, KN_EK_HOST, "--connect: out of memory");
	in->p = p;
	return 0;
}

/* The caller may have made it non-blocking. */
static int
read_all(struct input *in, struct kn_err *e)
{
	in->tell_ms = now_ms() + TELL_MS;
	for (;;) {
		ssize_t n;

		if (grow(in, e) < 0)
			return -1;
		wait_more(in);
		n = read(in->fd, in->p + in->n, CHUNK);
		if (n == 0)
			return 0;
		if (n < 0 && errno != EINTR && errno != EAGAIN)
			return kn_err_sys(
			    e, KN_EK_USAGE, "--connect: read %s", in->name);
		in->n += n > 0 ? (size_t)n : 0;
	}
}

/* A command that reads nothing would wait for somebody to type ^D; and nohup leaves one
 * that can be written to only. */
static bool
has_none(const struct kn_run *r)
{
	return !r->opt.argv ||
	       (!r->opt.stdin_path &&
		   (isatty(STDIN_FILENO) ||
		       (fcntl(STDIN_FILENO, F_GETFL) & O_ACCMODE) == O_WRONLY));
}

int
kn_connect_input(const struct kn_run *r, char **out, size_t *out_n, struct kn_err *e)
{
	const char *path = r->opt.stdin_path;
	struct input in = { .r = r, .fd = STDIN_FILENO };
	KN_OWN_FD int file = -1;
	struct stat st;

	*out = NULL;
	*out_n = 0;
	if (has_none(r))
		return 0;
	if (path && (in.fd = file = kn_opt_open("--stdin", path, e)) < 0)
		return -1;
	in.name = path ? path : "standard input";
	if (fstat(in.fd, &st) == 0 && S_ISDIR(st.st_mode))
		return kn_opt_refuse(
		    e, "give it a file, or </dev/null", "%s is a directory", in.name);
	if (read_all(&in, e) < 0) {
		free(in.p);
		return -1;
	}
	*out = in.p;
	*out_n = in.n;
	return 0;
}
