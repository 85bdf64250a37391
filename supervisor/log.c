/* supervisor/log.c: formats and writes debug lines, see log.h. */
#include "supervisor/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "ipc/clock.h"
#include "ipc/err.h"
#include "ipc/fd.h"

static const char *const ns_names[] = {
	[KN_NS_HOST] = "host",
	[KN_NS_LIFECYCLE] = "lifecycle",
	[KN_NS_SIGNALS] = "signals",
	[KN_NS_IMPORTS] = "imports",
	[KN_NS_SANDBOX] = "sandbox",
	[KN_NS_POLICY] = "policy",
};
_Static_assert(sizeof ns_names / sizeof ns_names[0] == KN_NS_N, "a name each");

const char *
kn_log_ns_name(enum kn_log_ns ns)
{
	return (unsigned)ns < KN_NS_N ? ns_names[ns] : "?";
}

int
kn_log_mask(const char *list, uint32_t *out_mask, const char **out_bad, int *out_bad_n)
{
	uint32_t mask = 0;

	while (*list) {
		size_t n = strcspn(list, ",");
		unsigned i;

		if (n == 1 && *list == '*') {
			mask |= (1u << KN_NS_N) - 1;
		} else if (n > 0) {
			for (i = 0; i < KN_NS_N; i++) {
				if (strlen(ns_names[i]) == n &&
				    memcmp(ns_names[i], list, n) == 0)
					break;
			}
			if (i == KN_NS_N) {
				*out_bad = list;
				*out_bad_n = n > 64 ? 64 : (int)n;
				return -1;
			}
			mask |= 1u << i;
		}
		list += n;
		list += *list == ',';
	}
	*out_mask = mask;
	return 0;
}

/* The message may hold names that a task chose: kn_err_printable() has taken control
 * bytes away, so a JSON string needs only these two escaped. */
static int
json_escape(char *dst, int cap, const char *src)
{
	int n = 0;

	for (; *src && n + 3 < cap; src++) {
		if (*src == '"' || *src == '\\')
			dst[n++] = '\\';
		dst[n++] = *src;
	}
	dst[n] = '\0';
	return n;
}

void
kn_log_line(const struct kn_log *l, enum kn_log_ns ns, int worker, const char *fmt, ...)
{
	char raw[512], text[1024], quoted[1100], line[1300], who[16];
	uint64_t us = (kn_clock_now() - l->start_ns) / 1000;
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(raw, sizeof raw, fmt, ap);
	va_end(ap);
	if (n < 0)
		return;
	if (n >= (int)sizeof raw)
		n = (int)sizeof raw - 1;
	kn_err_printable(text, sizeof text, raw, n);
	if (worker >= 0)
		snprintf(who, sizeof who, "w%d", worker);
	else
		snprintf(who, sizeof who, "pool");
	if (l->json) {
		json_escape(quoted, sizeof quoted, text);
		n = snprintf(line, sizeof line,
		    "{\"who\":\"%s\",\"ms\":%llu.%llu,\"ns\":\"%s\",\"msg\":\"%s\"}\n",
		    who, (unsigned long long)(us / 1000),
		    (unsigned long long)(us % 1000 / 100), kn_log_ns_name(ns), quoted);
	} else {
		n = snprintf(line, sizeof line, "[%s +%llu.%llums %s] %s\n", who,
		    (unsigned long long)(us / 1000),
		    (unsigned long long)(us % 1000 / 100), kn_log_ns_name(ns), text);
	}
	if (n > 0)
		(void)kn_fd_write_all(
		    l->fd, line, n < (int)sizeof line ? (size_t)n : sizeof line - 1);
}
