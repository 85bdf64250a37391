/* sandbox/launch_explain.c: why a worker ended before it was ready, in one line.
 *
 * The text comes from the launcher and whatever ran inside: untrusted, made printable,
 * and used for nothing but the message and a choice among fixed hints. There is no hint
 * that leads to running without walls.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "ipc/err.h"
#include "sandbox/launch_int.h"

enum { LINE_CAP = 224 };

static const struct {
	const char *sign; /* part of what bwrap prints */
	bool host;	  /* the machine's settings are to blame */
	const char *hint; /* NULL: ask kn_host_explain_launch() */
} causes[] = {
	/* Told before what was being done when the limit was met. */
	{ "Resource temporarily unavailable", true, KN_LAUNCH_PROCESSES_HINT },
	{ "No space left on device", true,
	    "a limit on the number of namespaces may be met: sysctl user "
	    "(max_user_namespaces, "
	    "max_pid_namespaces, ...), or what bwrap writes to is full" },
	/* (with or without an article: it changed from version to version) */
	{ "No permissions to creat", true, NULL },
	{ "reating new namespace failed", true, NULL },
	{ "setting up uid map", true, NULL },
	{ "setting up gid map", true, NULL },
	{ "max_user_namespaces", true, NULL },
	{ "unshare", true, NULL },
	{ "Can't mount proc", true,
	    "a fresh /proc is refused here: in a container, its own /proc must not be "
	    "masked (docker: --security-opt systempaths=unconfined)" },
	{ "loopback:", true,
	    "the loopback device of a new network namespace could not be set up; "
	    "a container's profile must allow it, or share the network: --network "
	    "host" },
	{ "Failed to make / slave", true,
	    "mount is refused here: a container's profile must allow it" },
	{ "pivot_root", true,
	    "pivot_root is refused here, as on an initramfs: start it from a real root "
	    "filesystem" },
	{ "Can't find source path", false,
	    "a bind source went away after it was checked, or bwrap may not enter a "
	    "folder above it" },
	{ "nknown option", true, "bubblewrap 0.8.0 or later is needed" },
	{ "/proc/self/fd/4", true,
	    "the worker is started from a memory file: /proc and the sysctl "
	    "vm.memfd_noexec must allow that" },
};

/* The first line that bwrap printed, else the first line at all. */
static const char *
pick_line(const char *text, size_t *out_n)
{
	const char *line = strstr(text, "bwrap: ");

	if (line == NULL)
		line = text + strspn(text, "\n\r \t");
	*out_n = strcspn(line, "\n");
	return line;
}

/* Nothing known went wrong: perhaps it is no bubblewrap at all. */
static void
hint_named(struct kn_err *e)
{
	const char *path = getenv("KNIT_BWRAP");

	if (path != NULL && *path != '\0')
		kn_err_hint(
		    e, "KNIT_BWRAP says %.200s: is that bubblewrap? Unset it", path);
}

void
kn_launch_explain(const struct kn_launcher *l, const char *stderr_text, int wait_status,
    struct kn_err *e)
{
	char shown[LINE_CAP];
	size_t n;
	const char *line = pick_line(stderr_text ? stderr_text : "", &n);

	kn_err_clear(e);
	kn_err_printable(shown, (int)sizeof(shown), line, (int)(n < 4096 ? n : 4096));
	if (shown[0] == '\0') {
		if (WIFSIGNALED(wait_status))
			kn_err_set(e, KN_EK_LAUNCH,
			    "bwrap %s: ended by signal %d before the worker was ready",
			    l->bwrap, WTERMSIG(wait_status));
		else
			kn_err_set(e, KN_EK_LAUNCH,
			    "bwrap %s: ended with status %d before the worker was "
			    "ready",
			    l->bwrap, WEXITSTATUS(wait_status));
		hint_named(e);
		return;
	}
	for (size_t i = 0; i < sizeof(causes) / sizeof(causes[0]); i++) {
		if (strstr(shown, causes[i].sign) == NULL)
			continue;
		kn_err_set(e, causes[i].host ? KN_EK_HOST : KN_EK_LAUNCH, "%s", shown);
		if (causes[i].hint != NULL)
			kn_err_hint(e, "%s", causes[i].hint);
		else
			kn_host_explain_launch(l->host, e);
		return;
	}
	kn_err_set(e, KN_EK_LAUNCH, "%s", shown);
	hint_named(e);
}
