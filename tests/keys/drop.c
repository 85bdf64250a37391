/* tests/keys/drop.c: linked into a program of its own, knit-sandbox-drop: one row of
 * the policy table, that of $KNIT_DROP, is read and checked, and then ignored wherever
 * it stands: in files, presets and flags. KNIT_DROP=list prints the rows.
 *
 * Some members cannot be absent from what they are in: a mount without its bind is no
 * mount, and goes with it; a rule without its action has the first word of those.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sandbox/policy_int.h"

int __real_kn_policy_check_doc(const struct kn_pdoc *d, struct kn_err *e);
int __wrap_kn_policy_check_doc(const struct kn_pdoc *d, struct kn_err *e);
int __real_kn_pmerge_add(
    struct kn_pmerge *m, const struct kn_pdoc *d, struct kn_err *e);
int __wrap_kn_pmerge_add(
    struct kn_pmerge *m, const struct kn_pdoc *d, struct kn_err *e);

__attribute__((constructor)) static void
list(void)
{
	const char *what = getenv("KNIT_DROP");

	if (!what || strcmp(what, "list") != 0)
		return;
	for (size_t i = 0; i < kn_policy_key_n; i++)
		if (kn_policy_keys[i].type != KN_KEY_LATER)
			puts(kn_policy_keys[i].path);
	exit(0);
}

/* What is in place of a member that must be there; NULL: nothing. */
static json_t *
substitute(const struct kn_key *k)
{
	static const char *const needed[] = { "/seccomp/rules/*/action",
		"/seccomp/rules/*/args/*/op", "/seccomp/rules/*/args/*/index",
		"/seccomp/rules/*/args/*/value", "/seccomp/rules/*/args/*/valueTwo" };

	for (size_t i = 0; i < sizeof needed / sizeof *needed; i++)
		if (strcmp(needed[i], k->path) == 0)
			return k->type == KN_KEY_WORD ? json_string(k->words[0])
						      : json_integer(0);
	return NULL;
}

static bool
takes_element(const char *member)
{
	static const char *const kinds[] = { "bind", "tmpfs", "dir", "symlink" };

	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
		if (strcmp(kinds[i], member) == 0)
			return true;
	return false;
}

static void drop(json_t *at, const char *rest, const struct kn_key *k);

static void
drop_in_list(json_t *list, const char *rest, const struct kn_key *k)
{
	for (size_t i = json_array_size(list); i-- > 0;) {
		json_t *v = json_array_get(list, i);

		if (!*rest)
			json_array_remove(list, i);
		else if (takes_element(rest + 1) && json_object_get(v, rest + 1))
			json_array_remove(list, i);
		else
			drop(v, rest, k);
	}
}

static void
drop(json_t *at, const char *rest, const struct kn_key *k)
{
	char name[64];
	size_t n = strcspn(rest + 1, "/");
	json_t *v, *other;

	snprintf(name, sizeof name, "%.*s", (int)n, rest + 1);
	rest += 1 + n;
	if (strcmp(name, "*") == 0 && json_is_array(at)) {
		drop_in_list(at, rest, k);
	} else if (strcmp(name, "*") == 0) {
		json_object_clear(at);
	} else if ((v = json_object_get(at, name)) && *rest) {
		drop(v, rest, k);
	} else if (v) {
		other = substitute(k);
		if (other)
			json_object_set_new(at, name, other);
		else
			json_object_del(at, name);
	}
}

static void
drop_row(json_t *root)
{
	const char *path = getenv("KNIT_DROP");
	const struct kn_key *k = path && *path ? kn_policy_key(path) : NULL;

	if (path && *path && !k) {
		fprintf(stderr, "KNIT_DROP: no row %s\n", path);
		exit(3);
	}
	if (k)
		drop(root, path, k);
}

int
__wrap_kn_policy_check_doc(const struct kn_pdoc *d, struct kn_err *e)
{
	const char *path = getenv("KNIT_DROP");
	int rc;

	/* It is looked at in the check and nowhere else. */
	if (path && strcmp(path, "/version") == 0)
		json_object_set_new(d->root, "version", json_integer(1));
	rc = __real_kn_policy_check_doc(d, e);
	if (rc == 0)
		drop_row(d->root);
	return rc;
}

int
__wrap_kn_pmerge_add(struct kn_pmerge *m, const struct kn_pdoc *d, struct kn_err *e)
{
	drop_row(d->root);
	return __real_kn_pmerge_add(m, d, e);
}
