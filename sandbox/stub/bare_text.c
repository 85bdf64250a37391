/* sandbox/stub/bare_text.c: memory and strings for the stub, which has no libc
 * (bare.c), and as much of printf as ipc's error texts use.
 *
 * The compiler calls the first ones on its own; it is told not to make calls of them
 * out of their own loops, here and by -ffreestanding (Makefile).
 */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("no-tree-loop-distribute-patterns")
#endif

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* ---- memory ---- */

void *
memcpy(void *restrict to, const void *restrict from, size_t n)
{
	unsigned char *d = to;
	const unsigned char *s = from;

#if defined(__x86_64__)
	__asm__ volatile("rep movsb" : "+D"(d), "+S"(s), "+c"(n) : : "memory");
#else
	for (; n >= sizeof(uint64_t); n -= sizeof(uint64_t)) {
		uint64_t w;

		__builtin_memcpy(&w, s, sizeof w);
		__builtin_memcpy(d, &w, sizeof w);
		d += sizeof w;
		s += sizeof w;
	}
	while (n-- > 0)
		*d++ = *s++;
#endif
	return to;
}

void *
memmove(void *to, const void *from, size_t n)
{
	unsigned char *d = to;
	const unsigned char *s = from;

	if ((uintptr_t)d - (uintptr_t)s >= n)
		return memcpy(to, from, n);
	while (n-- > 0)
		d[n] = s[n];
	return to;
}

void *
memset(void *to, int c, size_t n)
{
	unsigned char *d = to;

#if defined(__x86_64__)
	__asm__ volatile("rep stosb" : "+D"(d), "+c"(n) : "a"(c) : "memory");
#else
	while (n-- > 0)
		*d++ = (unsigned char)c;
#endif
	return to;
}

int
memcmp(const void *a, const void *b, size_t n)
{
	const unsigned char *x = a, *y = b;

	for (; n > 0; n--, x++, y++)
		if (*x != *y)
			return *x - *y;
	return 0;
}

int bcmp(const void *a, const void *b, size_t n);
int
bcmp(const void *a, const void *b, size_t n)
{
	return memcmp(a, b, n); /* clang's name for it where the sign does not matter */
}

void *
memchr(const void *p, int c, size_t n)
{
	const unsigned char *s = p;

	for (; n > 0; n--, s++)
		if (*s == (unsigned char)c)
			return (void *)(uintptr_t)s;
	return NULL;
}

void *
memrchr(const void *p, int c, size_t n)
{
	const unsigned char *s = p;

	while (n-- > 0)
		if (s[n] == (unsigned char)c)
			return (void *)(uintptr_t)(s + n);
	return NULL;
}

void *
memmem(const void *hay, size_t hay_n, const void *needle, size_t n)
{
	const unsigned char *s = hay;

	for (; hay_n >= n; hay_n--, s++)
		if (memcmp(s, needle, n) == 0)
			return (void *)(uintptr_t)s;
	return NULL;
}

/* ---- strings ---- */

size_t
strlen(const char *s)
{
	size_t n = 0;

	while (s[n])
		n++;
	return n;
}

size_t
strnlen(const char *s, size_t max)
{
	size_t n = 0;

	while (n < max && s[n])
		n++;
	return n;
}

int
strncmp(const char *a, const char *b, size_t n)
{
	for (; n > 0; n--, a++, b++)
		if (*a != *b || !*a)
			return (unsigned char)*a - (unsigned char)*b;
	return 0;
}

int
strcmp(const char *a, const char *b)
{
	return strncmp(a, b, SIZE_MAX);
}

char *
strchr(const char *s, int c)
{
	for (; *s != (char)c; s++)
		if (!*s)
			return NULL;
	return (char *)(uintptr_t)s;
}

size_t
strcspn(const char *s, const char *stop)
{
	size_t n = 0;

	while (s[n] && !strchr(stop, s[n]))
		n++;
	return n;
}

/* ---- printf: %d %u %x %c %s %m %%, with 0, width, precision, l, ll and z ---- */

struct out {
	char *buf;
	size_t cap, n;
};

static void
put(struct out *o, char c)
{
	if (o->n + 1 < o->cap)
		o->buf[o->n] = c;
	o->n++;
}

static void
put_text(struct out *o, const char *s, size_t n, size_t width)
{
	for (size_t i = n; i < width; i++)
		put(o, ' ');
	for (size_t i = 0; i < n; i++)
		put(o, s[i]);
}

static void
put_number(
    struct out *o, uint64_t v, bool minus, unsigned base, size_t width, bool zero)
{
	char digits[24];
	size_t n = sizeof digits;

	do
		digits[--n] = "0123456789abcdef"[v % base];
	while ((v /= base) > 0);
	if (minus && !zero)
		digits[--n] = '-';
	else if (minus)
		put(o, '-');
	if (zero)
		for (size_t i = sizeof digits - n + minus; i < width; i++)
			put(o, '0');
	put_text(o, digits + n, sizeof digits - n, zero ? 0 : width);
}

/* Width or precision; -1 if there is none. */
static int
count(const char **f, va_list *ap)
{
	int n = -1;

	if (**f == '*') {
		(*f)++;
		return va_arg(*ap, int);
	}
	for (; **f >= '0' && **f <= '9'; (*f)++)
		n = (n < 0 ? 0 : n * 10) + **f - '0';
	return n;
}

/* One conversion, f behind its "%". */
static const char *
convert(struct out *o, const char *f, va_list *ap)
{
	bool zero = *f == '0', wide = false;
	int width = count(&f, ap), max = -1;
	const char *s;
	long long v;

	if (*f == '.') {
		f++;
		max = count(&f, ap);
	}
	for (; *f == 'l' || *f == 'z'; f++)
		wide = true;
	width = width < 0 ? 0 : width;
	switch (*f) {
	case 'd':
		v = wide ? va_arg(*ap, long long) : va_arg(*ap, int);
		put_number(o, v < 0 ? -(uint64_t)v : (uint64_t)v, v < 0, 10,
		    (size_t)width, zero);
		break;
	case 'u':
	case 'x':
		put_number(o,
		    wide ? va_arg(*ap, unsigned long long) : va_arg(*ap, unsigned),
		    false, *f == 'x' ? 16 : 10, (size_t)width, zero);
		break;
	case 'c':
		put(o, (char)va_arg(*ap, int));
		break;
	case 's':
		s = va_arg(*ap, const char *);
		put_text(
		    o, s, max < 0 ? strlen(s) : strnlen(s, (size_t)max), (size_t)width);
		break;
	case 'm': /* the supervisor has the words, and gets the number besides */
		put_text(o, "error ", 6, 0);
		put_number(o, (uint64_t)errno, false, 10, 0, false);
		break;
	case '%':
		put(o, '%');
		break;
	default: /* not of ours: shown as it stands */
		put(o, '%');
		return f;
	}
	return f + 1;
}

int
vsnprintf(char *restrict buf, size_t cap, const char *restrict fmt, va_list ap)
{
	struct out o = { buf, cap, 0 };
	va_list mine;

	va_copy(mine, ap);
	while (*fmt) {
		if (*fmt != '%')
			put(&o, *fmt++);
		else
			fmt = convert(&o, fmt + 1, &mine);
	}
	va_end(mine);
	if (cap > 0)
		buf[o.n < cap ? o.n : cap - 1] = '\0';
	return (int)o.n;
}

int
snprintf(char *restrict buf, size_t cap, const char *restrict fmt, ...)
{
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(buf, cap, fmt, ap);
	va_end(ap);
	return n;
}
