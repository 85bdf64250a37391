/* ipc/glob.c: one component of a pattern against one name. */
#include "ipc/glob.h"

#include <string.h>

/* The class that starts at p[1] (p[0] is '['): its length with both brackets, or 0 if
 * it is not closed; then '[' means itself. *out_hit: whether c is in it. */
static size_t
class_at(const char *p, size_t n, unsigned char c, bool *out_hit)
{
	size_t i = 1;
	bool negated = n > 1 && (p[1] == '!' || p[1] == '^'), hit = false;

	if (negated)
		i++;
	for (size_t first = i; i < n && (p[i] != ']' || i == first); i++) {
		unsigned char low = (unsigned char)p[i], high = low;

		if (i + 2 < n && p[i + 1] == '-' && p[i + 2] != ']') {
			high = (unsigned char)p[i + 2];
			i += 2;
		}
		hit |= low <= c && c <= high;
	}
	if (i >= n)
		return 0;
	*out_hit = hit != negated;
	return i + 1;
}

/* Length of the element at p that matches c, or 0. */
static size_t
element(const char *p, size_t n, char c)
{
	bool hit = false;
	size_t len;

	if (p[0] == '?')
		return 1;
	if (p[0] == '[') {
		len = class_at(p, n, (unsigned char)c, &hit);
		if (len)
			return hit ? len : 0;
	}
	if (p[0] == '\\' && n > 1)
		return p[1] == c ? 2 : 0;
	return p[0] == c ? 1 : 0;
}

bool
kn_glob_match(const char *pattern, size_t n, const char *name)
{
	size_t p = 0, star = n; /* star: just behind the last one; n: none yet */
	const char *s = name, *star_s = NULL;

	if (name[0] == '.' && (n == 0 || pattern[0] != '.'))
		return false;
	while (*s) {
		size_t len = 0;

		if (p < n && pattern[p] == '*') {
			star = ++p;
			star_s = s;
			continue;
		}
		if (p < n)
			len = element(pattern + p, n - p, *s);
		if (len) {
			p += len;
			s++;
			continue;
		}
		if (!star_s)
			return false;
		/* The last star takes one byte more. */
		p = star;
		s = ++star_s;
	}
	while (p < n && pattern[p] == '*')
		p++;
	return p == n;
}

bool
kn_glob_is_pattern(const char *pattern, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (strchr("*?[\\", pattern[i]))
			return true;
	return false;
}
