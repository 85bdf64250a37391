/* sandbox/policy_path.c: the text of an entry of filesystem.read, write and deny: where
 * it leads from the policy's folder or the caller's home, and what a pattern means.
 */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "ipc/glob.h"
#include "sandbox/policy_files.h"

enum { DEEP_MAX = 3 }; /* each multiplies the steps that a name takes */

static bool
is_wild(char c)
{
	return c == '*' || c == '?' || c == '[';
}

/* n bytes of a component. */
static bool
component_is_pattern(const char *s, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (s[i] == '\\' && i + 1 < n)
			i++;
		else if (is_wild(s[i]))
			return true;
	}
	return false;
}

static bool
is_deep(const char *s, size_t n)
{
	return n == 2 && s[0] == '*' && s[1] == '*';
}

static const char *
component_fault(const char *s, size_t n, bool pattern)
{
	bool climbs = n == 2 && s[0] == '.' && s[1] == '.';

	if (n > 255)
		return "a name in it is longer than any file's";
	if (pattern && climbs)
		return "\"..\" after a wildcard leads nowhere in particular";
	for (size_t i = 0; i < n; i++) {
		if (s[i] == '\\' && i + 1 < n)
			i++;
		else if (s[i] == '{')
			return "braces are not expanded: write an entry for each, or "
			       "\\{ for the character";
		else if (s[i] == '*' && i + 1 < n && s[i + 1] == '*' && !is_deep(s, n))
			return "\"**\" stands for whole folders: write it between "
			       "slashes";
	}
	return NULL;
}

/* As a shell has it. The account's own is not asked for: libc would load code for it.
 */
static const char *
home(void)
{
	const char *dir = getenv("HOME");

	return dir && *dir == '/' ? dir : NULL;
}

const char *
kn_fpath_fault(const char *s, bool deny)
{
	bool pattern = false;
	size_t deep = 0;

	if (!*s || strlen(s) >= KN_FPATH_MAX / 2)
		return "the path is empty or too long";
	if (*s == '!')
		return "nothing is taken out of a list: what deny names is denied "
		       "(./! for a name that begins so)";
	if (*s == '~' && s[1] && s[1] != '/')
		return "\"~\" is the caller's home; another user's is named by its "
		       "path";
	if (*s == '~' && !home())
		return "\"~\" is the caller's home, and HOME does not say where that "
		       "is";
	if (!deny && kn_fpath_is_any(s))
		return "\"**\" at the front would be everything: name the folder";
	for (const char *c = s; *c;) {
		size_t n = strcspn(c += *c == '/', "/");
		const char *fault = component_fault(c, n, pattern);

		if (fault)
			return fault;
		pattern = pattern || component_is_pattern(c, n);
		deep += is_deep(c, n);
		c += n;
	}
	if (deep > DEEP_MAX)
		return "\"**\" stands in it more than three times";
	return NULL;
}

bool
kn_fpath_is_any(const char *s)
{
	return s[0] == '*' && s[1] == '*' && (s[2] == '/' || !s[2]);
}

bool
kn_fpath_is_wide(const char *s)
{
	return kn_fpath_is_any(s) ||
	       (kn_fpath_is_pattern(s) && kn_fpath_fixed(s) == 0 && strstr(s, "**"));
}

bool
kn_fpath_is_pattern(const char *s)
{
	return component_is_pattern(s, strlen(s));
}

void
kn_fpath_plain(char *s)
{
	char *to = s;

	for (; *s; s++) {
		if (*s == '\\' && s[1])
			s++;
		*to++ = *s;
	}
	*to = 0;
}

size_t
kn_fpath_fixed(const char *pattern)
{
	size_t at = 0;

	while (pattern[at]) {
		size_t n = strcspn(pattern + at + 1, "/");

		if (component_is_pattern(pattern + at + 1, n))
			break;
		at += 1 + n;
	}
	return at;
}

char *
kn_fpath_escape(const char *s)
{
	char *out = malloc(2 * strlen(s) + 1), *to = out;

	for (; out && *s; s++) {
		if (is_wild(*s) || *s == '\\')
			*to++ = '\\';
		*to++ = *s;
	}
	if (out)
		*to = 0;
	return out;
}

/* Without ".", ".." and double slashes, in place. */
static void
clean(char *s)
{
	char *to = s;

	for (const char *p = s; *p;) {
		size_t n = strcspn(p += *p == '/', "/");

		if (n == 2 && memcmp(p, "..", 2) == 0) {
			while (to > s && *--to != '/')
				;
		} else if (n > 0 && !(n == 1 && *p == '.')) {
			*to++ = '/';
			memmove(to, p, n);
			to += n;
		}
		p += n;
	}
	if (to == s)
		*to++ = '/';
	*to = 0;
}

char *
kn_fpath_absolute(const char *dir, const char *s, bool deny)
{
	bool any = deny && kn_fpath_is_any(s), tilde = *s == '~';
	char *from = NULL, *whole = NULL;

	if (any || (*s == '/' && !tilde))
		from = strdup("");
	else if (!tilde || (dir = home()) != NULL)
		from = dir ? kn_fpath_escape(dir) : NULL;
	if (from && asprintf(&whole, "%s/%s", from, s + tilde) < 0)
		whole = NULL;
	free(from);
	if (whole)
		clean(whole);
	if (whole && any)
		memmove(whole, whole + 1, strlen(whole));
	return whole;
}

/* ---- matching ---- */

/* A wildcard takes a leading dot where both begin with another character. */
static bool
name_matches(const char *pattern, size_t n, const char *name, size_t name_n, bool dots)
{
	char p[260] = "x", s[260] = "x";

	if (n > 255 || name_n > 255)
		return false;
	memcpy(p + 1, pattern, n);
	memcpy(s + 1, name, name_n);
	s[1 + name_n] = 0;
	return dots ? kn_glob_match(p, n + 1, s) : kn_glob_match(p + 1, n, s + 1);
}

static enum kn_fpath_hit
max_of(enum kn_fpath_hit a, enum kn_fpath_hit b)
{
	return a > b ? a : b;
}

/* Both without their leading slash. The number of "**" bounds the work. */
static enum kn_fpath_hit
match(const char *pattern, const char *path, bool dots)
{
	size_t n = strcspn(pattern, "/"), name_n = strcspn(path, "/");
	const char *next = pattern + n + (pattern[n] == '/');
	const char *rest = path + name_n + (path[name_n] == '/');

	if (!*pattern)
		return *path ? KN_FPATH_NO : KN_FPATH_THIS;
	if (is_deep(pattern, n)) {
		/* At the end it is all that lies below, and not the folder itself. */
		if (!*next)
			return *path ? KN_FPATH_THIS : KN_FPATH_BELOW;
		if (!*path)
			return KN_FPATH_BELOW;
		if (!dots && *path == '.')
			return match(next, path, dots);
		return max_of(match(next, path, dots), match(pattern, rest, dots));
	}
	if (!*path)
		return KN_FPATH_BELOW;
	if (!name_matches(pattern, n, path, name_n, dots))
		return KN_FPATH_NO;
	return match(next, rest, dots);
}

enum kn_fpath_hit
kn_fpath_match(const char *pattern, const char *path, bool dots)
{
	return match(pattern + (*pattern == '/'), path + (*path == '/'), dots);
}

bool
kn_fpath_within(const char *path, const char *dir)
{
	size_t n = strcmp(dir, "/") == 0 ? 0 : strlen(dir);

	return strncmp(path, dir, n) == 0 && (path[n] == '/' || !path[n]);
}

bool
kn_fpath_real(const char *path, char out[KN_FPATH_MAX])
{
	char part[KN_FPATH_MAX], real[PATH_MAX];
	size_t n = strlen(path), len;

	if (n == 0 || n >= sizeof part)
		return false;
	/* The last name is not looked at: it may be a link. */
	do {
		while (path[--n] != '/' && n > 0)
			;
		memcpy(part, path, n);
		part[n] = 0;
	} while (!realpath(n ? part : "/", real) && n > 0);
	len = strcmp(real, "/") == 0 ? 0 : strlen(real);
	if (len + strlen(path + n) >= KN_FPATH_MAX)
		return false;
	memcpy(out, real, len);
	memcpy(out + len, path + n, strlen(path + n) + 1);
	return true;
}
