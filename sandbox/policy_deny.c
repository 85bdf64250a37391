/* sandbox/policy_deny.c: filesystem.deny and its like: what is hidden of all that is
 * shown, or not written to.
 *
 * Deny wins whatever the order. It is about files, by all the names that binds give
 * them: a file that is denied is looked for where each bind shows it, and a mask goes
 * there. An entry that means a place inside counts as well. A mask needs a file to
 * stand upon, so a name that a task could make is refused here: no mount keeps it free.
 */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sandbox/policy_files.h"

/* Every link on the way, as the entry names it. */
static int
keep_links(struct kn_deny *d, const char *path, struct kn_err *e)
{
	char part[KN_FPATH_MAX], real[KN_FPATH_MAX];
	struct stat st;

	for (size_t n = 1; n <= strlen(path); n++) {
		if (path[n] != '/' && path[n])
			continue;
		memcpy(part, path, n);
		part[n] = 0;
		if (!kn_fpath_real(part, real))
			return kn_deny_too_long(d, e);
		if (lstat(real, &st) == 0 && S_ISLNK(st.st_mode) &&
		    kn_deny_keep_link(d, real, e) < 0)
			return -1;
	}
	return 0;
}

/* What the caller cannot look at matters only where a bind may show it. */
static int
fail_unseen(const struct kn_deny *d, const char *real, int err, struct kn_err *e)
{
	for (size_t i = 0; i < d->all->n; i++)
		if (d->real[i] && kn_fpath_within(real, d->real[i]))
			return kn_pol_fail(d->p, d->pointer, e, "look at %.100s: %s",
			    real, strerror(err));
	return 0;
}

/* A link that leads to nothing: what a task could make there would be what it means. */
static int
hide_dangling(struct kn_deny *d, const char *link, struct kn_err *e)
{
	char text[KN_FPATH_MAX], path[2 * KN_FPATH_MAX], real[KN_FPATH_MAX];
	ssize_t n = readlink(link, text, sizeof text - 1);
	char *slash;

	if (n <= 0)
		return fail_unseen(d, link, errno, e);
	text[n] = 0;
	snprintf(path, sizeof path, "%s", link);
	slash = strrchr(path, '/');
	snprintf(text[0] == '/' ? path : slash + 1,
	    sizeof path - (text[0] == '/' ? 0 : (size_t)(slash + 1 - path)), "%s",
	    text);
	return kn_fpath_real(path, real)
		   ? kn_deny_free(d, real, "leads to a file that a task could make", e)
		   : kn_deny_too_long(d, e);
}

/* What stands at a path of the machine: itself, or what it leads to. */
static int
hide(struct kn_deny *d, const char *path, struct kn_err *e)
{
	char real[KN_FPATH_MAX], target[PATH_MAX];
	struct stat st;

	if (keep_links(d, path, e) < 0)
		return -1;
	if (!kn_fpath_real(path, real))
		return kn_deny_too_long(d, e);
	if (lstat(real, &st) < 0) {
		if (errno == ENOENT || errno == ENOTDIR)
			return kn_deny_free(
			    d, real, "is not there, and a task could make it", e);
		return fail_unseen(d, real, errno, e);
	}
	if (!S_ISLNK(st.st_mode))
		return kn_deny_cover(d, real, e);
	if (realpath(real, target))
		return kn_deny_cover(d, target, e);
	return hide_dangling(d, real, e);
}

/* ---- an entry without wildcards ---- */

static int
deny_plain(struct kn_deny *d, char *path, struct kn_err *e)
{
	char outside[KN_FPATH_MAX];

	if (hide(d, path, e) < 0)
		return -1;
	/* As a place inside, where that is another one than on the machine. */
	for (size_t i = 0; i < d->all->n; i++) {
		const struct kn_mount *m = kn_deny_mount(d, i);

		if (!m->user && d->kind == KN_DENY_OPEN && kn_fpath_within(m->at, path))
			d->goes[i] = true;
		if (!d->real[i] || strcmp(d->real[i], m->at) == 0)
			continue;
		if (m->user && kn_fpath_within(m->at, path)) {
			if (kn_deny_cover(d, d->real[i], e) < 0)
				return -1;
		} else if (kn_fpath_within(path, m->at) &&
			   kn_mount_top(d->all, path, NULL) == m) {
			if (!kn_fpath_join(outside, d->real[i], path, m->at))
				return kn_deny_too_long(d, e);
			if (hide(d, outside, e) < 0)
				return -1;
		}
	}
	return 0;
}

/* ---- patterns ---- */

static int
found(void *arg, const char *name, const char *real, struct kn_err *e)
{
	(void)name;
	return hide(arg, real, e);
}

bool
kn_fpath_means_or_holds(const char *pattern, const char *path)
{
	char part[KN_FPATH_MAX];

	snprintf(part, sizeof part, "%s", path);
	for (size_t n = strlen(part); n > 1; n--) {
		if (part[n] != '/' && part[n])
			continue;
		part[n] = 0;
		if (kn_fpath_match(pattern, part, true) == KN_FPATH_THIS)
			return true;
	}
	return false;
}

/* The pattern in one bind, whose top the pattern takes for `root`. */
static int
deny_in(struct kn_deny *d, size_t i, const char *pattern, const char *root,
    struct kn_err *e)
{
	struct kn_fwalk w = { .pattern = pattern,
		.dots = true,
		.found = found,
		.arg = d,
		.origin = d->origin };
	char base[KN_FPATH_MAX], real[KN_FPATH_MAX], at[KN_FPATH_MAX];
	const char *from = root;

	snprintf(base, sizeof base, "%.*s", (int)kn_fpath_fixed(pattern), pattern);
	kn_fpath_plain(base);
	if (kn_fpath_means_or_holds(pattern, root))
		return kn_deny_cover(d, d->real[i], e);
	if (kn_fpath_within(base, root))
		from = base;
	else if (kn_fpath_match(pattern, root, true) == KN_FPATH_NO)
		return 0;
	if (!kn_fpath_join(real, d->real[i], from, root) ||
	    !kn_fpath_join(at, kn_deny_mount(d, i)->at, from, root))
		return kn_deny_too_long(d, e);
	if (kn_mount_top(d->all, at, NULL) != kn_deny_mount(d, i))
		return 0;
	if (kn_deny_mount(d, i)->writable)
		return kn_deny_refuse(d, i, "could mean a file that a task makes", e);
	if (d->kind == KN_DENY_WRITE)
		return 0; /* it is read-only as it is */
	return kn_fwalk(&w, from, real, e);
}

/* With the links on the way of its fixed part resolved; pmem, or NULL. */
static char *
canonical(struct kn_deny *d, const char *pattern, struct kn_err *e)
{
	size_t n = kn_fpath_fixed(pattern);
	char base[KN_FPATH_MAX], real[PATH_MAX], *escaped, *out;

	snprintf(base, sizeof base, "%.*s", (int)n, pattern);
	kn_fpath_plain(base);
	if (n == 0 || (!realpath(base, real) && !kn_fpath_real(base, real)))
		return kn_pmem_dup(&d->p->mem, pattern, strlen(pattern), e);
	escaped = kn_fpath_escape(strcmp(real, "/") == 0 ? "" : real);
	out = escaped ? kn_pmem_fmt(&d->p->mem, e, "%s%s", escaped, pattern + n) : NULL;
	free(escaped);
	return out;
}

static int
deny_any(struct kn_deny *d, const char *pattern, struct kn_err *e)
{
	for (size_t i = 0; i < d->all->n; i++) {
		const char *names[2] = { d->real[i], kn_deny_mount(d, i)->at };

		for (int k = 0; k < 2 && d->real[i] && kn_deny_mount(d, i)->user; k++)
			if (deny_in(d, i, pattern, strrchr(names[k], '/'), e) < 0)
				return -1;
	}
	return 0;
}

static int
deny_pattern(struct kn_deny *d, const char *pattern, struct kn_err *e)
{
	const char *real = canonical(d, pattern, e);
	/* What would be looked for in all of the system root is not: nothing of its
	 * kind is there. */
	bool wide = kn_fpath_is_wide(pattern);

	if (!real)
		return -1;
	for (size_t i = 0; i < d->all->n; i++) {
		const struct kn_mount *m = kn_deny_mount(d, i);

		if (!m->user && d->kind == KN_DENY_OPEN &&
		    kn_fpath_means_or_holds(pattern, m->at))
			d->goes[i] = true;
		if (!d->real[i] || (wide && !m->user))
			continue;
		if (deny_in(d, i, real, d->real[i], e) < 0)
			return -1;
		if (strcmp(m->at, d->real[i]) != 0 &&
		    deny_in(d, i, pattern, m->at, e) < 0)
			return -1;
	}
	return 0;
}

/* /proc and /dev inside are the sandbox's own, where no mask is put: an entry that
 * means something there would do nothing. */
static int
check_place(const struct kn_deny *d, const char *text, struct kn_err *e)
{
	static const char *const own[] = { "/proc", "/dev" };
	char base[KN_FPATH_MAX];

	snprintf(base, sizeof base, "%.*s", (int)kn_fpath_fixed(text), text);
	kn_fpath_plain(base);
	for (size_t k = 0; k < sizeof own / sizeof *own; k++) {
		bool shown = !kn_fpath_within(base, own[k]);

		for (size_t i = 0; !shown && i < d->all->n; i++)
			shown = d->real[i] && kn_fpath_within(d->real[i], own[k]) &&
				kn_fpath_within(base, d->real[i]);
		if (shown)
			continue;
		kn_pol_fail(d->p, d->pointer, e,
		    "\"%.80s\": what is in %s is the sandbox's own, and stays", d->text,
		    own[k]);
		kn_pol_hint(d->p, e,
		    "leave it out: of the machine's /proc and /dev nothing is shown");
		return -1;
	}
	return 0;
}

static int
deny_list(struct kn_deny *d, const char *list, struct kn_err *e)
{
	json_t *a = kn_pointer_get(d->p->doc, list);
	char plain[KN_FPATH_MAX];
	int rc = 0;

	for (size_t i = 0; i < json_array_size(a); i++) {
		const char *origin;

		snprintf(d->pointer, sizeof d->pointer, "%s/%zu", list, i);
		origin = kn_pol_origin(d->p, d->pointer);
		d->origin = kn_pmem_dup(&d->p->mem, origin, strlen(origin), e);
		if (!d->origin)
			return -1;
		d->text = json_string_value(json_array_get(a, i));
		snprintf(plain, sizeof plain, "%s", d->text);
		kn_fpath_plain(plain);
		if (check_place(d, d->text, e) < 0) {
			rc = -1;
			continue;
		}
		rc |= kn_fpath_is_any(d->text)	     ? deny_any(d, d->text, e)
		      : kn_fpath_is_pattern(d->text) ? deny_pattern(d, d->text, e)
						     : deny_plain(d, plain, e);
	}
	return rc;
}

/* What is known to be secret. What of it is not there is nobody's secret. */
static int
deny_secrets(struct kn_deny *d, struct kn_err *e)
{
	char path[KN_FPATH_MAX];
	int rc = 0;

	snprintf(d->pointer, sizeof d->pointer, "/permissions/mode");
	d->origin = "permissions.mode";
	d->soft = true;
	for (size_t i = 0; kn_permissions_secret(d->p, i, path); i++) {
		d->text = path;
		rc |= deny_plain(d, path, e);
	}
	d->soft = false;
	return rc;
}

/* A task that could write to its own policy would choose that of the next one. */
static int
keep_policy(struct kn_deny *d, struct kn_err *e)
{
	int rc = 0;

	d->pointer[0] = '\0';
	d->origin = "policy file";
	d->soft = true;
	for (size_t i = 0; i < d->p->read_n; i++) {
		d->text = d->p->read[i];
		if (d->text[0] == '/')
			rc |= hide(d, d->text, e);
	}
	d->soft = false;
	return rc;
}

static bool
keeps_policy(const struct kn_pol *p, const struct kn_mount_list *all)
{
	bool files = false, writes = false;

	for (size_t i = 0; i < p->read_n; i++)
		files = files || p->read[i][0] == '/';
	for (size_t i = 0; i < all->n; i++)
		writes = writes || all->v[i].writable;
	return files && writes;
}

static bool
denies_any(const struct kn_pol *p)
{
	size_t n = 0;

	for (const char *const *l = kn_files_deny_write; *l; l++)
		n += json_array_size(kn_pointer_get(p->doc, *l));
	for (const char *const *l = kn_files_deny; *l; l++)
		n += json_array_size(kn_pointer_get(p->doc, *l));
	return n > 0 || p->pub.permissions == KN_PERMISSIONS_PROJECT;
}

int
kn_policy_deny(struct kn_pol *p, struct kn_mount_list *all, struct kn_err *e)
{
	struct kn_deny d = { .p = p, .all = all, .kind = KN_DENY_WRITE };
	int rc = 0;

	/* Most policies: no file need be looked at. */
	if (!denies_any(p) && !keeps_policy(p, all))
		return kn_policy_pins(p, all, &d.masks, e);
	if (kn_deny_begin(&d, e) < 0)
		return -1;
	for (const char *const *l = kn_files_deny_write; *l; l++)
		rc |= deny_list(&d, *l, e);
	rc |= keep_policy(&d, e);
	d.kind = KN_DENY_OPEN;
	for (const char *const *l = kn_files_deny; *l; l++)
		rc |= deny_list(&d, *l, e);
	rc |= deny_secrets(&d, e);
	return rc < 0 ? -1 : kn_deny_end(&d, e);
}
