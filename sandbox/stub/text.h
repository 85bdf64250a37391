/* sandbox/stub/text.h: short texts and numbers, written and read without libc's stdio
 * (which locks, allocates and asks the locale). Always terminated; what does not fit is
 * cut. */
#ifndef KN_STUB_TEXT_H
#define KN_STUB_TEXT_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct kn_text {
	char *p;
	size_t cap, n;
};

static inline void
kn_text_str(struct kn_text *t, const char *s)
{
	for (; *s && t->n + 1 < t->cap; s++)
		t->p[t->n++] = *s;
	t->p[t->n] = '\0';
}

static inline void
kn_text_u64(struct kn_text *t, uint64_t v)
{
	char digits[24];
	size_t at = sizeof digits;

	digits[--at] = '\0';
	do
		digits[--at] = (char)('0' + v % 10);
	while (v /= 10);
	kn_text_str(t, digits + at);
}

/* The number at the start of s (n bytes), saturating; *out_used: digits read. */
static inline uint64_t
kn_text_number(const char *s, size_t n, size_t *out_used)
{
	uint64_t v = 0;
	size_t i = 0;

	for (; i < n && s[i] >= '0' && s[i] <= '9'; i++) {
		uint64_t digit = (uint64_t)(s[i] - '0');

		v = v > (UINT64_MAX - digit) / 10 ? UINT64_MAX : v * 10 + digit;
	}
	if (out_used)
		*out_used = i;
	return v;
}

#endif
