/* fds - lists the descriptors a task was born with.
 * TRIES:    every number below the limit with fcntl, so that nothing in /proc can
 *           hide one; then /proc/self/fd for what the numbers are. Standard streams
 *           must be pipes, terminals or /dev/null: a file would show a host path.
 * SANDBOX:  BLOCKED: 0, 1, 2 and nothing else.
 * OUTSIDE:  nothing to check.
 */
#include <stdbool.h>

#include "tests/hostile/hostile.h"

static void
describe(int fd, char *out, size_t n)
{
	char link[64], to[200];
	ssize_t l;

	snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
	l = readlink(link, to, sizeof to - 1);
	to[l > 0 ? l : 0] = '\0';
	snprintf(out, n, " %d=%s", fd, l > 0 ? to : "?");
}

int
main(int c, char **v)
{
	char extra[800] = "", one[280];
	struct rlimit l = { 0, 0 };
	int bad = 0;

	h_init(c, v, 10, 10);
	getrlimit(RLIMIT_NOFILE, &l);
	for (int fd = 0; fd < (int)(l.rlim_max < 70000 ? l.rlim_max : 70000); fd++) {
		struct stat st;
		bool open_here = fcntl(fd, F_GETFD) >= 0;

		if (fd > 2 && open_here) {
			describe(fd, one, sizeof one);
			strncat(extra, one, sizeof extra - strlen(extra) - 1);
			bad++;
		} else if (fd <= 2 && open_here && fstat(fd, &st) == 0 &&
			   (S_ISREG(st.st_mode) || S_ISDIR(st.st_mode))) {
			describe(fd, one, sizeof one);
			strncat(extra, one, sizeof extra - strlen(extra) - 1);
			bad++;
		}
	}
	if (bad)
		escape("%d descriptors beyond the streams:%s", bad, extra);
	blocked("only the standard streams are open");
}
