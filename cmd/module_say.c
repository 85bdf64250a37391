/* cmd/module_say.c: see module_say.h. */
#include "cmd/module_say.h"

#include <limits.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <unistd.h>

#include "ipc/fd.h"

/* A pipe that says it can be written takes PIPE_BUF bytes without waiting. */
static bool
show(unsigned worker, const char *text)
{
	struct pollfd p = { .fd = STDERR_FILENO, .events = POLLOUT };
	char line[PIPE_BUF];
	int n = snprintf(line, sizeof line, "w%u: %s\n", worker, text);

	if (n < 0 || poll(&p, 1, 0) != 1 || !(p.revents & POLLOUT))
		return false;
	(void)kn_fd_write_all(
	    STDERR_FILENO, line, n < (int)sizeof line ? (size_t)n : sizeof line - 1);
	return true;
}

void
kn_module_say(void *ctx, unsigned worker, const char *line)
{
	struct kn_module_voice *v = ctx;
	uint64_t *unread = &v->unread[worker % 256];
	char gap[64];

	if (*unread > 0) {
		snprintf(gap, sizeof gap, "(%llu lines are not shown)",
		    (unsigned long long)*unread);
		if (show(worker, gap))
			*unread = 0;
	}
	if (*unread > 0 || !show(worker, line))
		++*unread;
}
