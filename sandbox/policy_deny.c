/* sandbox/policy_deny.c: filesystem.deny: what is hidden of all that is shown.
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

struct deny {
	struct kn_pol *p;
	struct kn_mount_list *all, masks;
	char **real; /* per mount: canonical source of a bind that is there */
	bool *goes;  /* per mount: of the system root, and denied */
	char pointer[64];
	const char *text; /* the entry */
	const char *origin;
};

static const struct kn_mount *
mount_of(const struct deny *d, size_t i)
{
	return &d->all->v[i];
}

/* a + the part of path below dir; path lies within dir. */
static bool
join_rest(char out[KN_FPATH_MAX], const char *a, const char *path, const char *dir)
{
	const char *rest = path + (strcmp(dir, "/") == 0 ? 0 : strlen(dir));
	size_t n = strcmp(a, "/") == 0 && *rest ? 0 : strlen(a);

	if (n + strlen(rest) >= KN_FPATH_MAX)
		return false;
	memcpy(out, a, n);
	memcpy(out + n, rest, strlen(rest) + 1);
	return true;
}

static int
too_long(const struct deny *d, struct kn_err *e)
{
	return kn_pol_fail(
	    d->p, d->pointer, e, "\"%.80s\": a path is too long", d->text);
}

static int
refuse_free(const struct deny *d, size_t i, const char *what, struct kn_err *e)
{
	kn_pol_fail(d->p, d->pointer, e, "\"%.80s\" %s in %.80s, which it may write to",
	    d->text, what, mount_of(d, i)->at);
	kn_err_hint(e, "no mount keeps a name free, and nothing is made on the machine "
		       "for it: name what is there, or show that folder read-only and "
		       "let the task write to another");
	return -1;
}

/* ---- masks ---- */

static int
add_mask(struct deny *d, size_t i, const char *at, const char *real, bool dir,
    struct kn_err *e)
{
	struct kn_pmem *mem = &d->p->mem;
	struct kn_mount m = { .type = KN_MOUNT_MASK,
		.user = true,
		.dir = dir,
		.writable = mount_of(d, i)->writable,
		.origin = d->origin };

	for (size_t k = 0; k < d->masks.n; k++)
		if (strcmp(d->masks.v[k].at, at) == 0)
			return 0;
	m.at = kn_pmem_dup(mem, at, strlen(at), e);
	m.source = kn_pmem_dup(mem, real, strlen(real), e);
	return m.at && m.source ? kn_mount_add(&d->masks, m, mem, e) : -1;
}

/* Hide a file or folder, by its canonical path, wherever it is shown. */
static int
cover(struct deny *d, const char *real, struct kn_err *e)
{
	char at[KN_FPATH_MAX];
	struct stat st;

	for (size_t i = 0; i < d->all->n; i++) {
		const struct kn_mount *m = mount_of(d, i);
		const char *source = d->real[i];
		bool below;

		if (!source)
			continue;
		below = kn_fpath_within(real, source);
		if (!below && !kn_fpath_within(source, real))
			continue;
		if (!below && !m->user) {
			d->goes[i] = true; /* all of it is denied */
			continue;
		}
		if (!join_rest(at, m->at, below ? real : source, source))
			return too_long(d, e);
		if (kn_mount_top(d->all, at, NULL) != m)
			continue;
		if (lstat(below ? real : source, &st) < 0)
			return kn_pol_fail(d->p, d->pointer, e, "look at %.100s: %s",
			    below ? real : source, strerror(errno));
		if (add_mask(d, i, at, below ? real : source, S_ISDIR(st.st_mode), e) <
		    0)
			return -1;
	}
	return 0;
}

/* A name that a task could give to a file of its own: one below a writable bind. */
static int
check_free(const struct deny *d, const char *path, const char *what, struct kn_err *e)
{
	char at[KN_FPATH_MAX];

	for (size_t i = 0; i < d->all->n; i++) {
		const struct kn_mount *m = mount_of(d, i);

		if (!d->real[i] || !m->writable || !kn_fpath_within(path, d->real[i]))
			continue;
		if (!join_rest(at, m->at, path, d->real[i]))
			return too_long(d, e);
		if (kn_mount_top(d->all, at, NULL) == m)
			return refuse_free(d, i, what, e);
	}
	return 0;
}

/* A link in a writable bind is kept, or a task could put something else at its name. */
static int
keep_link(struct deny *d, const char *real, struct kn_err *e)
{
	struct kn_pmem *mem = &d->p->mem;
	char at[KN_FPATH_MAX];

	for (size_t i = 0; i < d->all->n; i++) {
		const struct kn_mount *m = mount_of(d, i);
		struct kn_mount link = {
			.type = KN_MOUNT_LINK, .user = true, .origin = d->origin
		};

		if (!d->real[i] || !m->writable || !kn_fpath_within(real, d->real[i]))
			continue;
		if (!join_rest(at, m->at, real, d->real[i]))
			return too_long(d, e);
		if (kn_mount_top(d->all, at, NULL) != m ||
		    kn_mount_top(&d->masks, at, NULL))
			continue;
		link.at = kn_pmem_dup(mem, at, strlen(at), e);
		link.source = kn_pmem_dup(mem, real, strlen(real), e);
		if (!link.at || !link.source ||
		    kn_mount_add(&d->masks, link, mem, e) < 0)
			return -1;
	}
	return 0;
}

/* Every link on the way, as the entry names it. */
static int
keep_links(struct deny *d, const char *path, struct kn_err *e)
{
	char part[KN_FPATH_MAX], real[KN_FPATH_MAX];
	struct stat st;

	for (size_t n = 1; n <= strlen(path); n++) {
		if (path[n] != '/' && path[n])
			continue;
		memcpy(part, path, n);
		part[n] = 0;
		if (!kn_fpath_real(part, real))
			return too_long(d, e);
		if (lstat(real, &st) == 0 && S_ISLNK(st.st_mode) &&
		    keep_link(d, real, e) < 0)
			return -1;
	}
	return 0;
}

/* What the caller cannot look at matters only where a bind may show it. */
static int
fail_unseen(const struct deny *d, const char *real, int err, struct kn_err *e)
{
	for (size_t i = 0; i < d->all->n; i++)
		if (d->real[i] && kn_fpath_within(real, d->real[i]))
			return kn_pol_fail(d->p, d->pointer, e, "look at %.100s: %s",
			    real, strerror(err));
	return 0;
}

/* A link that leads to nothing: what a task could make there would be what it means. */
static int
hide_dangling(struct deny *d, const char *link, struct kn_err *e)
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
		   ? check_free(d, real, "leads to a file that a task could make", e)
		   : too_long(d, e);
}

/* What stands at a path of the machine: itself, or what it leads to. */
static int
hide(struct deny *d, const char *path, struct kn_err *e)
{
	char real[KN_FPATH_MAX], target[PATH_MAX];
	struct stat st;

	if (keep_links(d, path, e) < 0)
		return -1;
	if (!kn_fpath_real(path, real))
		return too_long(d, e);
	if (lstat(real, &st) < 0) {
		if (errno == ENOENT || errno == ENOTDIR)
			return check_free(
			    d, real, "is not there, and a task could make it", e);
		return fail_unseen(d, real, errno, e);
	}
	if (!S_ISLNK(st.st_mode))
		return cover(d, real, e);
	if (realpath(real, target))
		return cover(d, target, e);
	return hide_dangling(d, real, e);
}

/* ---- an entry without wildcards ---- */

static int
deny_plain(struct deny *d, char *path, struct kn_err *e)
{
	char outside[KN_FPATH_MAX];

	if (hide(d, path, e) < 0)
		return -1;
	/* As a place inside, where that is another one than on the machine. */
	for (size_t i = 0; i < d->all->n; i++) {
		const struct kn_mount *m = mount_of(d, i);

		if (!m->user && kn_fpath_within(m->at, path))
			d->goes[i] = true;
		if (!d->real[i] || strcmp(d->real[i], m->at) == 0)
			continue;
		if (m->user && kn_fpath_within(m->at, path)) {
			if (cover(d, d->real[i], e) < 0)
				return -1;
		} else if (kn_fpath_within(path, m->at) &&
			   kn_mount_top(d->all, path, NULL) == m) {
			if (!join_rest(outside, d->real[i], path, m->at))
				return too_long(d, e);
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

/* Does the pattern mean path, or a folder that path lies in? */
static bool
means_or_holds(const char *pattern, const char *path)
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
deny_in(
    struct deny *d, size_t i, const char *pattern, const char *root, struct kn_err *e)
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
	if (means_or_holds(pattern, root))
		return cover(d, d->real[i], e);
	if (kn_fpath_within(base, root))
		from = base;
	else if (kn_fpath_match(pattern, root, true) == KN_FPATH_NO)
		return 0;
	if (!join_rest(real, d->real[i], from, root) ||
	    !join_rest(at, mount_of(d, i)->at, from, root))
		return too_long(d, e);
	if (kn_mount_top(d->all, at, NULL) != mount_of(d, i))
		return 0;
	if (mount_of(d, i)->writable)
		return refuse_free(d, i, "could mean a file that a task makes", e);
	return kn_fwalk(&w, from, real, e);
}

/* With the links on the way of its fixed part resolved; pmem, or NULL. */
static char *
canonical(struct deny *d, const char *pattern, struct kn_err *e)
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
deny_any(struct deny *d, const char *pattern, struct kn_err *e)
{
	for (size_t i = 0; i < d->all->n; i++) {
		const char *names[2] = { d->real[i], mount_of(d, i)->at };

		for (int k = 0; k < 2 && d->real[i] && mount_of(d, i)->user; k++)
			if (deny_in(d, i, pattern, strrchr(names[k], '/'), e) < 0)
				return -1;
	}
	return 0;
}

static int
deny_pattern(struct deny *d, const char *pattern, struct kn_err *e)
{
	const char *real = canonical(d, pattern, e);
	/* What would be looked for in all of the system root is not: nothing of its
	 * kind is there. */
	bool wide = kn_fpath_fixed(pattern) == 0 && strstr(pattern, "**");

	if (!real)
		return -1;
	for (size_t i = 0; i < d->all->n; i++) {
		const struct kn_mount *m = mount_of(d, i);

		if (!m->user && means_or_holds(pattern, m->at))
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

/* ---- all of it ---- */

static int
begin(struct deny *d, struct kn_err *e)
{
	size_t n = d->all->n + 1;

	d->real = kn_pmem_new(&d->p->mem, n * sizeof *d->real, e);
	d->goes = kn_pmem_new(&d->p->mem, n * sizeof *d->goes, e);
	if (!d->real || !d->goes)
		return -1;
	for (size_t i = 0; i < d->all->n; i++) {
		char real[PATH_MAX];

		/* One that is not there is named by who opens it. */
		if (mount_of(d, i)->type != KN_MOUNT_BIND ||
		    !realpath(mount_of(d, i)->source, real))
			continue;
		d->real[i] = kn_pmem_dup(&d->p->mem, real, strlen(real), e);
		if (!d->real[i])
			return -1;
	}
	return 0;
}

/* What stays of the system root, the caller's with the pins, then the masks. */
static int
end(struct deny *d, struct kn_err *e)
{
	struct kn_mount_list out = { 0 }, masks = { 0 };
	struct kn_pmem *mem = &d->p->mem;

	kn_mounts_sort(&d->masks);
	for (size_t i = 0; i < d->masks.n; i++) {
		const struct kn_mount *m = &d->masks.v[i];

		if (!kn_mount_top(&masks, m->at, NULL) &&
		    kn_mount_add(&masks, *m, mem, e) < 0)
			return -1;
	}
	for (size_t i = 0; i < d->all->n; i++)
		if (!d->goes[i] && kn_mount_add(&out, *mount_of(d, i), mem, e) < 0)
			return -1;
	if (kn_policy_pins(d->p, &out, &masks, e) < 0)
		return -1;
	for (size_t i = 0; i < masks.n; i++)
		if (kn_mount_add(&out, masks.v[i], mem, e) < 0)
			return -1;
	*d->all = out;
	return 0;
}

int
kn_policy_deny(struct kn_pol *p, struct kn_mount_list *all, struct kn_err *e)
{
	struct deny d = { .p = p, .all = all };
	json_t *a = kn_pointer_get(p->doc, "/filesystem/deny");
	char plain[KN_FPATH_MAX];
	int rc = 0;

	if (begin(&d, e) < 0)
		return -1;
	for (size_t i = 0; i < json_array_size(a); i++) {
		const char *origin;

		snprintf(d.pointer, sizeof d.pointer, "/filesystem/deny/%zu", i);
		origin = kn_pol_origin(p, d.pointer);
		d.origin = kn_pmem_dup(&p->mem, origin, strlen(origin), e);
		if (!d.origin)
			return -1;
		d.text = json_string_value(json_array_get(a, i));
		snprintf(plain, sizeof plain, "%s", d.text);
		kn_fpath_plain(plain);
		rc |= kn_fpath_is_any(d.text)	    ? deny_any(&d, d.text, e)
		      : kn_fpath_is_pattern(d.text) ? deny_pattern(&d, d.text, e)
						    : deny_plain(&d, plain, e);
	}
	return rc < 0 ? -1 : end(&d, e);
}
