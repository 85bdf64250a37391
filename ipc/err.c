/* ipc/err.c: errors by value; text that is safe to print. */
#include "ipc/err.h"

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* End a line that did not fit with "...", so that nobody takes a part for the whole. */
static void
mark_cut(char *buf, size_t cap, int wanted)
{
	if (wanted < 0)
		buf[0] = '\0';
	else if ((size_t)wanted >= cap)
		memcpy(buf + cap - 4, "...", 4);
}

static void format(char *buf, size_t cap, const char *fmt, va_list ap)
    __attribute__((format(printf, 3, 0)));
static void
format(char *buf, size_t cap, const char *fmt, va_list ap)
{
	mark_cut(buf, cap, vsnprintf(buf, cap, fmt, ap));
}

int
kn_err_set(struct kn_err *e, enum kn_ek kind, const char *fmt, ...)
{
	va_list ap;

	if (!e)
		return -1;
	kn_err_clear(e);
	e->kind = kind;
	va_start(ap, fmt);
	format(e->msg, sizeof e->msg, fmt, ap);
	va_end(ap);
	return -1;
}

int
kn_err_sys(struct kn_err *e, enum kn_ek kind, const char *fmt, ...)
{
	int sys = errno;
	char what[sizeof e->msg];
	va_list ap;

	if (!e)
		return -1;
	va_start(ap, fmt);
	format(what, sizeof what, fmt, ap);
	va_end(ap);
	kn_err_clear(e);
	e->kind = kind;
	e->sys = sys;
	errno = sys; /* %m: strerror without its buffer, in glibc and musl alike */
	mark_cut(
	    e->msg, sizeof e->msg, snprintf(e->msg, sizeof e->msg, "%s: %m", what));
	errno = sys;
	return -1;
}

int
kn_err_wrap(struct kn_err *e, const char *fmt, ...)
{
	char old[sizeof e->msg];
	va_list ap;
	int n;

	if (!e)
		return -1;
	memcpy(old, e->msg, sizeof old);
	old[sizeof old - 1] = '\0';
	va_start(ap, fmt);
	n = vsnprintf(e->msg, sizeof e->msg, fmt, ap);
	va_end(ap);
	if (n >= 0 && (size_t)n < sizeof e->msg) {
		size_t at = (size_t)n, cap = sizeof e->msg - at;
		int more = snprintf(e->msg + at, cap, ": %s", old);
		n = more < 0 ? more : n + more;
	}
	mark_cut(e->msg, sizeof e->msg, n);
	return -1;
}

void
kn_err_hint(struct kn_err *e, const char *fmt, ...)
{
	va_list ap;

	if (!e || e->hint[0])
		return;
	va_start(ap, fmt);
	format(e->hint, sizeof e->hint, fmt, ap);
	va_end(ap);
}

void
kn_err_clear(struct kn_err *e)
{
	if (!e)
		return;
	e->kind = KN_EK_NONE;
	e->sys = 0;
	e->msg[0] = '\0';
	e->hint[0] = '\0';
}

/* Length of the printable character at s, 0 if the byte must be escaped. Strict UTF-8:
 * no overlong forms, surrogates or values above U+10FFFF; and no C1 controls, which a
 * terminal obeys as it does ESC. */
static int
printable_at(const unsigned char *s, int left)
{
	static const struct {
		unsigned char lo, hi, second_lo, second_hi, len;
	} forms[] = {
		{ 0x20, 0x7e, 0, 0, 1 },
		{ 0xc2, 0xc2, 0xa0, 0xbf, 2 }, /* above the C1 controls */
		{ 0xc3, 0xdf, 0x80, 0xbf, 2 },
		{ 0xe0, 0xe0, 0xa0, 0xbf, 3 },
		{ 0xe1, 0xec, 0x80, 0xbf, 3 },
		{ 0xed, 0xed, 0x80, 0x9f, 3 },
		{ 0xee, 0xef, 0x80, 0xbf, 3 },
		{ 0xf0, 0xf0, 0x90, 0xbf, 4 },
		{ 0xf1, 0xf3, 0x80, 0xbf, 4 },
		{ 0xf4, 0xf4, 0x80, 0x8f, 4 },
	};

	for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
		if (s[0] < forms[i].lo || s[0] > forms[i].hi)
			continue;
		if (forms[i].len > left)
			return 0;
		if (forms[i].len > 1 &&
		    (s[1] < forms[i].second_lo || s[1] > forms[i].second_hi))
			return 0;
		for (int k = 2; k < forms[i].len; k++)
			if ((s[k] & 0xc0) != 0x80)
				return 0;
		return forms[i].len;
	}
	return 0;
}

int
kn_err_printable(char *dst, int n, const char *src, int src_n)
{
	static const char hex[] = "0123456789abcdef";
	const unsigned char *s = (const unsigned char *)src;
	int out = 0;

	if (n <= 0)
		return 0;
	for (int i = 0; i < src_n;) {
		int len = printable_at(s + i, src_n - i);
		if (out + (len ? len : 4) > n - 1)
			break; /* never half a character */
		if (len) {
			memcpy(dst + out, s + i, (size_t)len);
			out += len;
			i += len;
			continue;
		}
		dst[out++] = '\\';
		dst[out++] = 'x';
		dst[out++] = hex[s[i] >> 4];
		dst[out++] = hex[s[i] & 15];
		i++;
	}
	dst[out] = '\0';
	return out;
}
