/* cmd/opt_few.c: what the verbs share that have few options: a value, and what to say
 * of an argument that is none of theirs.
 */
#include <stdio.h>
#include <string.h>

#include "cmd/opt.h"
#include "ipc/err.h"
#include "ipc/near.h"

/* The name in "--name" or "--name=value". */
static size_t
name_of(const char *arg, const char **out)
{
	*out = arg + strspn(arg, "-");
	return strcspn(*out, "=");
}

/* A name that was left unfinished, or has the beginning of one: at least three letters.
 */
static const char *
begins_like(const char *const *names, const char *name, size_t n)
{
	const char *best = NULL;
	size_t most = 2;

	for (; *names; names++) {
		size_t k = 0;

		while (k < n && (*names)[k] == name[k])
			k++;
		if (k == n)
			return *names;
		if (k > most) {
			best = *names;
			most = k;
		}
	}
	return best;
}

const char *
kn_opt_near(const char *const *names, const char *arg)
{
	char name[48];
	const char *from, *near;
	size_t n = name_of(arg, &from);

	if (n == 0 || n >= sizeof name)
		return NULL;
	memcpy(name, from, n);
	name[n] = '\0';
	near = kn_near_word(names, name);
	return near ? near : begins_like(names, name, n);
}

int
kn_opt_unknown(
    struct kn_err *e, const char *verb, const char *arg, const char *const *names)
{
	const char *near = arg[0] == '-' ? kn_opt_near(names, arg) : NULL;
	size_t n = strcspn(arg, "=");
	char hint[120];

	if (near)
		snprintf(hint, sizeof hint, "did you mean --%s?", near);
	else
		snprintf(
		    hint, sizeof hint, "knit-sandbox %s --help has the options", verb);
	if (arg[0] == '-')
		return kn_opt_refuse(e, hint, "%s: unknown option %.*s", verb,
		    n < 100 ? (int)n : 100, arg);
	return kn_opt_refuse(e, hint, "%s: unexpected argument \"%.100s\"", verb, arg);
}

int
kn_opt_take(const char *verb, const char *name, int argc, char **argv, int *i,
    const char **out, struct kn_err *e)
{
	size_t n = strlen(name);
	const char *v = NULL;
	char hint[80];

	if (strncmp(argv[*i], name, n) != 0 || (argv[*i][n] && argv[*i][n] != '='))
		return 0;
	if (argv[*i][n] == '=')
		v = argv[*i] + n + 1;
	else if (*i + 1 < argc)
		v = argv[++*i];
	if (!v || !*v) {
		snprintf(
		    hint, sizeof hint, "knit-sandbox %s --help has the options", verb);
		return kn_opt_refuse(e, hint, "%s: needs a value", name);
	}
	*out = v;
	return 1;
}
