/* sandbox/launch_explain.c: why a worker ended before it was ready, in one line.
 *
 * The text comes from the launcher and whatever ran inside: untrusted, made printable,
 * and used for nothing but the message and a choice among the causes of lack.h.
 */
#include <errno.h>
#include <string.h>
#include <sys/wait.h>

#include "ipc/err.h"
#include "sandbox/lack.h"
#include "sandbox/launch_int.h"

enum { LINE_CAP = 224 };

/* Where the last line that says anything begins. */
static const char *
last_line(const char *text)
{
	const char *line = text, *end;

	for (const char *p = text; *p != '\0'; p = *end != '\0' ? end + 1 : end) {
		end = p + strcspn(p, "\n");
		if (p + strspn(p, "\r \t") < end)
			line = p;
	}
	return line;
}

/* The first line that the launcher printed, else the first line at all, or the last. */
static const char *
pick_line(const struct kn_launch_ops *ops, const char *text, size_t *out_n)
{
	const char *line = NULL;
	bool quoted = false;

	for (size_t i = 0; line == NULL && ops->lead[i] != NULL; i++) {
		size_t lead_n = strlen(ops->lead[i]);

		line = strstr(text, ops->lead[i]);
		if (line != NULL && ops->lead_skipped) {
			line += lead_n;
			quoted = lead_n > 0 && line[-1] == '"';
		}
	}
	if (line == NULL)
		line = ops->says_last ? last_line(text) : text;
	line += strspn(line, "\n\r \t");
	*out_n = strcspn(line, "\n");
	if (quoted && *out_n > 0 && line[*out_n - 1] == '"')
		--*out_n;
	return line;
}

static void
hint_cause(
    const struct kn_launcher *l, const struct kn_launch_sign *s, struct kn_err *e)
{
	bool eperm = strstr(e->msg, "No permissions") != NULL ||
		     strstr(e->msg, "peration not permitted") != NULL;
	bool root = l->host->uid == 0;
	struct kn_around a;

	if (s->cause == KN_LACK_NONE) {
		kn_err_hint(e,
		    "a bind source that is not there went away after it was checked, "
		    "or "
		    "%s may not enter a folder above it",
		    l->ops->name);
	} else if (s->userns) {
		kn_lack_hint_userns(eperm ? EPERM : 0, root, e);
	} else {
		kn_around_look(&a);
		kn_lack_hint(kn_lack_of_inner(s->cause, &a), root, e);
	}
}

static void
hint_kind(const struct kn_launcher *l, struct kn_err *e)
{
	if (l->ops->hint != NULL)
		l->ops->hint(l, e);
}

void
kn_launch_explain(const struct kn_launcher *l, const char *stderr_text, int wait_status,
    struct kn_err *e)
{
	char shown[LINE_CAP];
	size_t n;
	const char *line = pick_line(l->ops, stderr_text ? stderr_text : "", &n);

	kn_err_clear(e);
	kn_err_printable(shown, (int)sizeof(shown), line, (int)(n < 4096 ? n : 4096));
	if (shown[0] == '\0') {
		if (WIFSIGNALED(wait_status))
			kn_err_set(e, KN_EK_LAUNCH,
			    "%s %s: ended by signal %d before the worker was ready",
			    l->ops->name, l->program, WTERMSIG(wait_status));
		else
			kn_err_set(e, KN_EK_LAUNCH,
			    "%s %s: ended with status %d before the worker was "
			    "ready",
			    l->ops->name, l->program, WEXITSTATUS(wait_status));
		hint_kind(l, e);
		return;
	}
	for (size_t i = 0; i < l->ops->sign_n; i++) {
		const struct kn_launch_sign *s = &l->ops->signs[i];

		/* (the line may be too long to be shown whole) */
		if (memmem(line, n, s->sign, strlen(s->sign)) == NULL)
			continue;
		kn_err_set(e, s->host ? KN_EK_HOST : KN_EK_LAUNCH, "%s", shown);
		hint_cause(l, s, e);
		return;
	}
	kn_err_set(e, KN_EK_LAUNCH, "%s", shown);
	/* bubblewrap opens files by it too, from 0.11 on. */
	if (strstr(shown, strerror(ENOSYS)) != NULL && kn_lack_openat2(ENOSYS))
		kn_lack_hint(KN_LACK_OPENAT2, l->host->uid == 0, e);
	else
		hint_kind(l, e);
}
