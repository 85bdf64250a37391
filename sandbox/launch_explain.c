/* sandbox/launch_explain.c: why a worker ended before it was ready, in one line.
 *
 * The text comes from the launcher and whatever ran inside: untrusted, made printable,
 * and used for nothing but the message and a choice among the causes of lack.h.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "ipc/err.h"
#include "sandbox/lack.h"
#include "sandbox/launch_int.h"

enum { LINE_CAP = 224 };

static const struct {
	const char *sign; /* part of what bwrap prints */
	bool host;	  /* the machine's settings are to blame */
	bool userns;	  /* ask the settings; else, or if they allow it: */
	enum kn_lack cause;
} causes[] = {
	/* Told before what was being done when the limit was met. */
	{ "Resource temporarily unavailable", true, false, KN_LACK_PROCESSES },
	{ "No space left on device", true, false, KN_LACK_NS_LIMIT },
	/* (with or without an article: it changed from version to version) */
	{ "No permissions to creat", true, true, KN_LACK_USERNS_OTHER },
	{ "reating new namespace failed", true, true, KN_LACK_USERNS_OTHER },
	{ "setting up uid map", true, true, KN_LACK_USERNS_OTHER },
	{ "setting up gid map", true, true, KN_LACK_USERNS_OTHER },
	{ "max_user_namespaces", true, true, KN_LACK_USERNS_OTHER },
	{ "unshare", true, true, KN_LACK_USERNS_OTHER },
	{ "Can't mount proc", true, false, KN_LACK_PROC_MASKED },
	{ "loopback:", true, false, KN_LACK_LOOPBACK },
	{ "Failed to make / slave", true, false, KN_LACK_MOUNT },
	{ "pivot_root", true, false, KN_LACK_PIVOT_ROOT },
	{ "in setuid mode", true, false, KN_LACK_BWRAP_SETUID },
	{ "Can't find source path", false, false, KN_LACK_NONE },
	{ "nknown option", true, false, KN_LACK_BWRAP_OLD },
	{ "/proc/self/fd/4", true, false, KN_LACK_MEMFD },
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

/* Nothing known went wrong. With its set-user-id bit bwrap fails in ways of its own;
 * or it is no bubblewrap at all. */
static void
hint_bwrap(const struct kn_launcher *l, struct kn_err *e)
{
	const char *named = getenv("KNIT_BWRAP");
	struct stat st;

	if (stat(l->bwrap, &st) == 0 && (st.st_mode & S_ISUID) != 0)
		kn_lack_hint(KN_LACK_BWRAP_SETUID, l->host->uid == 0, e);
	else if (named != NULL && *named != '\0')
		kn_lack_hint(KN_LACK_BWRAP_NAMED, l->host->uid == 0, e);
}

static void
hint_cause(const struct kn_launcher *l, size_t i, struct kn_err *e)
{
	bool eperm = strstr(e->msg, "No permissions") != NULL ||
		     strstr(e->msg, "Operation not permitted") != NULL;
	bool root = l->host->uid == 0;
	struct kn_around a;

	if (causes[i].cause == KN_LACK_NONE) {
		kn_err_hint(e, "a bind source went away after it was checked, or bwrap "
			       "may not enter a folder above it");
	} else if (causes[i].userns) {
		kn_lack_hint_userns(eperm ? EPERM : 0, root, e);
	} else {
		kn_around_look(&a);
		kn_lack_hint(kn_lack_of_inner(causes[i].cause, &a), root, e);
	}
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
		hint_bwrap(l, e);
		return;
	}
	for (size_t i = 0; i < sizeof(causes) / sizeof(causes[0]); i++) {
		if (strstr(shown, causes[i].sign) == NULL)
			continue;
		kn_err_set(e, causes[i].host ? KN_EK_HOST : KN_EK_LAUNCH, "%s", shown);
		hint_cause(l, i, e);
		return;
	}
	kn_err_set(e, KN_EK_LAUNCH, "%s", shown);
	hint_bwrap(l, e);
}
