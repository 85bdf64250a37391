/* cmd/connect_input.c: run --connect: the standard input of a command, which goes to
 * the server within its task line, so all of it is read first.
 */
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cmd/cmd.h"
#include "cmd/connect.h"
#include "ipc/err.h"
#include "ipc/fd.h"

enum {
	INPUT_MAX = KNIT_LINE_BYTES_MAX / 4 * 3, /* as base64 it fills a line */
	TELL_MS = 2000, /* of silence, after which we say what we wait for */
};

/* A command that reads nothing would wait for somebody to type ^D. */
static bool
has_none(const struct kn_run *r)
{
	return !r->opt.argv || (!r->opt.stdin_path && isatty(STDIN_FILENO));
}

int
kn_connect_input(const struct kn_run *r, char **out, size_t *out_n, struct kn_err *e)
{
	const char *name = r->opt.stdin_path ? r->opt.stdin_path : "standard input";
	struct pollfd p = { .fd = STDIN_FILENO, .events = POLLIN };
	KN_OWN_FD int file = -1;
	struct stat st;

	*out = NULL;
	*out_n = 0;
	if (has_none(r))
		return 0;
	if (r->opt.stdin_path && (file = kn_opt_open("--stdin", name, e)) < 0)
		return -1;
	if (file >= 0)
		p.fd = file;
	if (fstat(p.fd, &st) == 0 && S_ISDIR(st.st_mode))
		return kn_opt_refuse(
		    e, "give it a file, or </dev/null", "%s is a directory", name);
	if (poll(&p, 1, TELL_MS) == 0 && !r->voice.quiet)
		kn_say(&r->voice,
		    "waiting for the end of %s, which goes to the server with the "
		    "command; </dev/null is none",
		    name);
	if (kn_fd_read_all(p.fd, INPUT_MAX, out, out_n, e) == 0)
		return 0;
	if (!e->sys)
		kn_err_hint(e, "a task line has 16 MiB at most: see knit-tasks(5)");
	return kn_err_wrap(e, "--connect: %s", name);
}
