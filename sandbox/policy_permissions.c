/* sandbox/policy_permissions.c: /permissions: the words that the system before this one
 * had for what a task may reach. They say the same as other keys and are kept by the
 * same means; a word that is absent adds nothing.
 */
#include <stdlib.h>
#include <string.h>

#include "sandbox/policy_files.h"

const char *const kn_files_read[] = { "/filesystem/read", "/permissions/read", NULL };
const char *const kn_files_write[] = { "/filesystem/write", "/permissions/write",
	NULL };
const char *const kn_files_deny[] = { "/filesystem/deny", "/permissions/deny_read",
	NULL };
const char *const kn_files_deny_write[] = { "/permissions/deny_write", NULL };

/* What mode project keeps from a task: of the project, and of the caller's home. */
static const char *const secrets[] = { ".env", ".git", ".npmrc", ".docker", ".secrets",
	NULL };
static const char *const home_secrets[] = { "~/.ssh", "~/.gnupg", "~/.aws", "~/.azure",
	"~/.config/gcloud", "~/.kube", NULL };

static int
absolute_list(const struct kn_pdoc *d, const char *list, bool deny, struct kn_err *e)
{
	json_t *a = kn_pointer_get(d->root, list);

	for (size_t i = 0; i < json_array_size(a); i++) {
		const char *s = json_string_value(json_array_get(a, i));
		char *whole = kn_fpath_absolute(d->dir, s, deny);
		int rc = json_array_set_new(a, i, whole ? json_string(whole) : NULL);

		free(whole);
		if (rc < 0)
			return kn_err_set(e, KN_EK_CONFIG,
			    "%s: %s/%zu: a path cannot be made absolute", d->label,
			    list, i);
	}
	return 0;
}

/* A home that nobody knows is one whose secrets are not denied. */
static int
check_home(const struct kn_pdoc *d, struct kn_err *e)
{
	const char *fault = kn_fpath_fault(home_secrets[0], true);

	return fault ? kn_pdoc_fail(d, "/permissions/mode", false, e, "%s", fault) : 0;
}

int
kn_permissions_absolute(const struct kn_pdoc *d, struct kn_err *e)
{
	static const struct {
		const char *const *lists;
		bool deny;
	} all[] = { { kn_files_read, false }, { kn_files_write, false },
		{ kn_files_deny, true }, { kn_files_deny_write, true } };
	json_t *words = kn_pointer_get(d->root, "/permissions");
	json_t *project = json_object_get(words, "project");
	char *whole;

	for (size_t i = 0; i < sizeof all / sizeof *all; i++)
		for (const char *const *l = all[i].lists; *l; l++)
			if (absolute_list(d, *l, all[i].deny, e) < 0)
				return -1;
	if (json_is_string(json_object_get(words, "mode"))) {
		if (check_home(d, e) < 0)
			return -1;
		if (!project)
			project = json_string(".");
		else
			json_incref(project);
	} else {
		json_incref(project);
	}
	if (!json_is_string(project)) {
		json_decref(project);
		return 0;
	}
	whole = kn_fpath_absolute(d->dir, json_string_value(project), false);
	json_decref(project);
	if (whole)
		kn_fpath_plain(whole);
	if (json_object_set_new(words, "project", whole ? json_string(whole) : NULL) <
	    0)
		whole = NULL;
	free(whole);
	return whole ? 0
		     : kn_err_set(e, KN_EK_CONFIG,
			   "%s: /permissions/project: the path cannot be made absolute",
			   d->label);
}

static bool
has_list(const struct kn_pol *p, const char *pointer)
{
	return json_is_array(kn_pointer_get(p->doc, pointer));
}

static const char *
project_of(const struct kn_pol *p)
{
	if (p->pub.permissions != KN_PERMISSIONS_PROJECT)
		return NULL;
	return json_string_value(kn_pointer_get(p->doc, "/permissions/project"));
}

const char *
kn_permissions_project(const struct kn_pol *p, bool *out_writable)
{
	*out_writable = !has_list(p, "/permissions/write");
	/* Lists say all of it, an empty one that there is nothing. */
	if (has_list(p, "/permissions/read") && !*out_writable)
		return NULL;
	return project_of(p);
}

bool
kn_permissions_secret(const struct kn_pol *p, size_t i, char out[KN_FPATH_MAX])
{
	const size_t n = sizeof secrets / sizeof *secrets - 1;
	const char *project = project_of(p);
	char *home;

	if (!project)
		return false;
	if (i < n) {
		snprintf(out, KN_FPATH_MAX, "%s/%s", project, secrets[i]);
		return true;
	}
	if (!home_secrets[i - n])
		return false;
	home = kn_fpath_absolute("/", home_secrets[i - n], true);
	if (!home)
		return false;
	kn_fpath_plain(home);
	snprintf(out, KN_FPATH_MAX, "%s", home);
	free(home);
	return true;
}

/* One entry, as it was written. */
static int
check_run(struct kn_pol *p, size_t i, struct kn_err *e)
{
	const char *s = p->pub.run.v[i];
	char pointer[64];

	if (*s && (*s == '/' || !strchr(s, '/')))
		return 0;
	snprintf(pointer, sizeof pointer, "/permissions/run/%zu", i);
	return kn_pol_fail(p, pointer, e,
	    "is neither an absolute path nor a name to look for in PATH");
}

static int
build_run(struct kn_pol *p, struct kn_err *e)
{
	struct kn_policy *q = &p->pub;
	int rc = 0;

	q->run.set = has_list(p, "/permissions/run");
	q->run.path = "/usr/local/bin:/usr/bin:/bin";
	for (size_t i = 0; i < q->env.set_n; i++)
		if (strncmp(q->env.set[i], "PATH=", 5) == 0)
			q->run.path = q->env.set[i] + 5;
	if (kn_policy_build_strings(p, "/permissions/run", &q->run.v, &q->run.n, e) < 0)
		return -1;
	for (size_t i = 0; i < q->run.n; i++)
		rc |= check_run(p, i, e);
	if (q->run.n > 0 && q->landlock == KN_LANDLOCK_OFF)
		rc = kn_pol_fail(p, "/permissions/run", e,
		    "is kept by Landlock, which is switched off (/landlock)");
	return rc;
}

int
kn_permissions_rest(struct kn_pol *p, struct kn_err *e)
{
	const char *const *more;
	const char **both;
	size_t n = p->pub.env.inherit_n, more_n;

	if (!p->pub.console)
		p->pub.output_kill = false; /* nothing is kept of it that could grow */
	if (build_run(p, e) < 0 ||
	    kn_policy_build_strings(p, "/permissions/env", &more, &more_n, e) < 0)
		return -1;
	both = kn_pmem_new(&p->mem, (n + more_n + 1) * sizeof *both, e);
	if (!both)
		return -1;
	if (n)
		memcpy(both, p->pub.env.inherit, n * sizeof *both);
	for (size_t i = 0; i < more_n; i++)
		both[n++] = more[i];
	p->pub.env.inherit = both;
	p->pub.env.inherit_n = n;
	return 0;
}
