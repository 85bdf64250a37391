/* cmd/say.c: lines for the user: plain or JSON, always printable. */
#include <errno.h>
#include <knit/pool.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "cmd/cmd.h"
#include "ipc/err.h"
#include "ipc/fd.h"

/* kn_err_printable() has taken control bytes away: only two need an escape. */
static void
json_escape(char *dst, size_t cap, const char *src)
{
	size_t n = 0;

	for (; *src && n + 3 < cap; src++) {
		if (*src == '"' || *src == '\\')
			dst[n++] = '\\';
		dst[n++] = *src;
	}
	dst[n] = '\0';
}

static void
line(const struct kn_voice *v, const char *prefix, const char *key, const char *text)
{
	char clean[1600], escaped[2000], out[2200];
	int n;

	kn_err_printable(clean, sizeof clean, text, (int)strlen(text));
	if (v && v->json) {
		json_escape(escaped, sizeof escaped, clean);
		n = snprintf(out, sizeof out,
		    "{\"who\":\"knit-sandbox\",\"%s\":\"%s\"}\n", key, escaped);
	} else {
		n = snprintf(out, sizeof out, "%s%s\n", prefix, clean);
	}
	if (n >= (int)sizeof out)
		n = (int)sizeof out - 1;
	if (n > 0)
		(void)kn_fd_write_all(STDERR_FILENO, out, (size_t)n);
}

void
kn_say(const struct kn_voice *v, const char *fmt, ...)
{
	char text[1200];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	line(v, "knit-sandbox: ", "msg", text);
}

void
kn_say_hint(const struct kn_voice *v, const char *text)
{
	line(v, "hint: ", "hint", text);
}

/* What to do about a limit of the caller's own that was met, wherever that was. */
static const char *
limit_hint(int sys)
{
	struct rlimit as;

	switch (sys) {
	case ENOMEM:
		return getrlimit(RLIMIT_AS, &as) == 0 && as.rlim_cur != RLIM_INFINITY
			   ? "raise the limit of address space (ulimit -v)"
			   : "";
	case EMFILE:
		return "raise the limit of open files (ulimit -n), or run fewer "
		       "workers side by side";
	case EFBIG:
		return "raise the limit of file sizes (ulimit -f)";
	default:
		return "";
	}
}

int
kn_say_error(const struct kn_voice *v, const struct kn_err *e)
{
	const char *hint = e->hint[0] ? e->hint : limit_hint(e->sys);

	line(v, "knit-sandbox: ", "error", e->msg);
	if (hint[0])
		kn_say_hint(v, hint);
	return KN_EXIT_OURS;
}

int
kn_say_take(struct kn_err *e, const struct knit_error *from)
{
	static const enum kn_ek kind[] = {
		[KNIT_E_NONE] = KN_EK_BUG,
		[KNIT_E_USAGE] = KN_EK_USAGE,
		[KNIT_E_CONFIG] = KN_EK_CONFIG,
		[KNIT_E_HOST] = KN_EK_HOST,
		[KNIT_E_LAUNCH] = KN_EK_LAUNCH,
		[KNIT_E_FULL] = KN_EK_BUG,
		[KNIT_E_CLOSED] = KN_EK_BUG,
		[KNIT_E_BUG] = KN_EK_BUG,
	};

	kn_err_set(e, kind[from->kind], "%s", from->text);
	e->sys = from->sys;
	memcpy(e->hint, from->hint, sizeof e->hint);
	return -1;
}

void
kn_say_layers(const struct kn_voice *v, const struct knit_pool *pool)
{
	const char *name, *lacks = knit_pool_fact(pool, "lacks-namespaces");
	char text[400];
	size_t n = 0;

	if (v->quiet)
		return;
	for (size_t i = 0; (name = knit_layer_name(i)); i++) {
		if (strcmp(knit_pool_layer(pool, name), "degraded") == 0 &&
		    n < sizeof text)
			n += (size_t)snprintf(
			    text + n, sizeof text - n, "%s%s", n ? ", " : "", name);
	}
	if (n > 0)
		kn_say(v,
		    "not enforced by the kernel here, something weaker stands in: %s "
		    "(%s)",
		    text,
		    lacks ? "by --launcher direct, or as knit-sandbox doctor says"
			  : "knit-sandbox doctor says why");
	if (lacks)
		kn_say(v, "without namespaces %s", lacks);
}

int
kn_say_out(const struct kn_voice *v, const char *text, size_t n)
{
	if (kn_fd_write_all(STDOUT_FILENO, text, n) == 0)
		return 0;
	kn_say(v, "write to stdout: %s", strerror(errno));
	return -1;
}

void
kn_say_word(FILE *f, const char *word)
{
	static const char plain[] =
	    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=./:,@%";

	if (*word && !word[strspn(word, plain)]) {
		fputs(word, f);
		return;
	}
	fputc('\'', f);
	for (; *word; word++) {
		if (*word == '\'')
			fputs("'\\''", f);
		else
			fputc(*word, f);
	}
	fputc('\'', f);
}
