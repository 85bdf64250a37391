/* lib/error.c: errors as the caller of libknit sees them. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "lib/lib.h"

static const char *const names[] = {
	[KNIT_E_NONE] = "none",
	[KNIT_E_USAGE] = "usage",
	[KNIT_E_CONFIG] = "config",
	[KNIT_E_HOST] = "host",
	[KNIT_E_LAUNCH] = "launch",
	[KNIT_E_FULL] = "full",
	[KNIT_E_CLOSED] = "closed",
	[KNIT_E_BUG] = "bug",
};

const char *
knit_error_kind_name(enum knit_error_kind kind)
{
	return (unsigned)kind < sizeof names / sizeof names[0] ? names[kind] : "?";
}

int
kn_lib_fail(struct knit_error *e, enum knit_error_kind kind, const char *fmt, ...)
{
	va_list ap;

	if (!e)
		return -1;
	e->kind = kind;
	e->sys = 0;
	e->hint[0] = '\0';
	va_start(ap, fmt);
	vsnprintf(e->text, sizeof e->text, fmt, ap);
	va_end(ap);
	return -1;
}

int
kn_lib_pass(struct knit_error *e, const struct kn_err *from)
{
	static const enum knit_error_kind kind[KN_EK_N] = {
		[KN_EK_NONE] = KNIT_E_BUG,
		[KN_EK_USAGE] = KNIT_E_USAGE,
		[KN_EK_CONFIG] = KNIT_E_CONFIG,
		[KN_EK_HOST] = KNIT_E_HOST,
		[KN_EK_LAUNCH] = KNIT_E_LAUNCH,
		[KN_EK_TASK] = KNIT_E_CONFIG,
		[KN_EK_TIMEOUT] = KNIT_E_LAUNCH,
		[KN_EK_PROTOCOL] = KNIT_E_LAUNCH,
		[KN_EK_BUG] = KNIT_E_BUG,
	};

	kn_lib_fail(e, kind[from->kind], "%s", from->msg);
	if (e) {
		e->sys = from->sys;
		_Static_assert(sizeof e->hint == sizeof from->hint, "the same room");
		memcpy(e->hint, from->hint, sizeof e->hint);
	}
	return -1;
}

int
kn_lib_nomem(struct knit_error *e)
{
	return kn_lib_fail(e, KNIT_E_HOST, "out of memory");
}
