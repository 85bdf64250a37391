/* sandbox/policy_denied.c: is one path of the machine denied?
 *
 * Masks hide what is denied from a task. A file that a task line names by its path is
 * opened by the supervisor, which no mask stands in the way of: it asks here.
 */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "sandbox/policy_files.h"

struct list {
	const char **v;
	size_t n, cap;
};

static int
put(struct kn_pol *p, struct list *l, const char *pattern, struct kn_err *e)
{
	if (l->n == l->cap) {
		size_t cap = l->cap ? 2 * l->cap : 16;
		const char **v = kn_pmem_new(&p->mem, cap * sizeof *v, e);

		if (!v)
			return -1;
		if (l->n)
			memcpy(v, l->v, l->n * sizeof *v);
		l->v = v;
		l->cap = cap;
	}
	l->v[l->n] = kn_pmem_dup(&p->mem, pattern, strlen(pattern), e);
	return l->v[l->n++] ? 0 : -1;
}

/* As it is written, and with the links on the way resolved. */
static int
put_both(struct kn_pol *p, struct list *l, const char *pattern, struct kn_err *e)
{
	size_t n = kn_fpath_fixed(pattern);
	char base[KN_FPATH_MAX], real[PATH_MAX], *escaped, *whole = NULL;
	int rc = put(p, l, pattern, e);

	snprintf(base, sizeof base, "%.*s", (int)n, pattern);
	kn_fpath_plain(base);
	if (rc < 0 || n == 0 || (!realpath(base, real) && !kn_fpath_real(base, real)))
		return rc;
	escaped = kn_fpath_escape(strcmp(real, "/") == 0 ? "" : real);
	if (!escaped || asprintf(&whole, "%s%s", escaped, pattern + n) < 0)
		rc = kn_err_set(e, KN_EK_HOST, "policy: out of memory");
	else if (strcmp(whole, pattern) != 0)
		rc = put(p, l, whole, e);
	free(escaped);
	free(whole);
	return rc;
}

int
kn_policy_build_denied(struct kn_pol *p, struct kn_err *e)
{
	char path[KN_FPATH_MAX];
	struct list l = { 0 };
	int rc = 0;

	for (const char *const *at = kn_files_deny; *at; at++) {
		json_t *a = kn_pointer_get(p->doc, *at);

		for (size_t i = 0; rc == 0 && i < json_array_size(a); i++)
			rc =
			    put_both(p, &l, json_string_value(json_array_get(a, i)), e);
	}
	for (size_t i = 0; rc == 0 && kn_permissions_secret(p, i, path); i++) {
		char *escaped = kn_fpath_escape(path);

		rc = escaped ? put_both(p, &l, escaped, e)
			     : kn_err_set(e, KN_EK_HOST, "policy: out of memory");
		free(escaped);
	}
	p->pub.fs.denied = l.v;
	p->pub.fs.denied_n = l.n;
	return rc;
}

bool
kn_policy_denies(const struct kn_policy *p, const char *path)
{
	for (size_t i = 0; i < p->fs.denied_n; i++)
		if (strcmp(p->fs.denied[i], "/") == 0 ||
		    kn_fpath_means_or_holds(p->fs.denied[i], path))
			return true;
	/* What a link that is denied leads to. */
	for (size_t i = 0; i < p->fs.mount_n; i++) {
		const struct kn_mount *m = &p->fs.mounts[i];

		if ((m->type == KN_MOUNT_MASK || m->type == KN_MOUNT_WHITE) &&
		    kn_fpath_within(path, m->source))
			return true;
	}
	return false;
}
