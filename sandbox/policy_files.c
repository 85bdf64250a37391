/* sandbox/policy_files.c: filesystem.read and filesystem.write: paths of the machine
 * that are shown inside at the same place.
 *
 * What is read may be named through links, as in a shell; the links are made again
 * inside, so that both names work there: on most machines /bin is one. What is written
 * is left as it is named: the launcher opens it, and follows no link that a task could
 * have left.
 */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sandbox/policy_files.h"

enum { LINKS_MAX = 40, MATCHES_MAX = 1000 };

/* One entry of a list. */
struct entry {
	struct kn_pol *p;
	struct kn_mount_list *list;
	char pointer[64];
	const char *origin;
	bool writable;
	size_t matches;
};

/* Does m show what had does, as far as a task can tell? */
static bool
is_same(const struct kn_mount *had, const struct kn_mount *m)
{
	const char *a = had->source ? had->source : "", *b = m->source ? m->source : "";

	if (had->writable != m->writable || had->overlay != m->overlay)
		return false;
	if (m->type == KN_MOUNT_SYMLINK && had->type == KN_MOUNT_BIND)
		return m->implied && !had->overlay && strcmp(had->at, a) == 0;
	return had->type == m->type && strcmp(a, b) == 0;
}

/* The lists are gone through one after the other, so that what is written comes last,
 * and a document that is merged onto another has no other order to say that it is
 * later. It would not hold, and the task write to what --ro-bind shows. */
static int
refuse_earlier(const struct kn_pol *p, const struct kn_mount *had,
    const struct kn_mount *m, const char *pointer, struct kn_err *e)
{
	kn_pol_fail(p, pointer, e,
	    "shows %.80s %s, and %.80s, which is later, does not", m->at,
	    m->type == KN_MOUNT_SYMLINK ? "as a link"
	    : m->writable		? "writable"
					: "read-only",
	    had->origin);
	kn_pol_hint(p, e,
	    strcmp(pointer, "/permissions/project") == 0
		? "--set '/permissions/write=[]' shows a project read-only"
		: "name the place in one of them only: a list that is set to null "
		  "(--set "
		  "/filesystem/write=null) is empty for what comes after it");
	return -1;
}

int
kn_mount_put(struct kn_pol *p, struct kn_mount_list *l, const struct kn_mount *m,
    const char *pointer, struct kn_err *e)
{
	for (size_t i = 0; i < l->n; i++) {
		if (strcmp(l->v[i].at, m->at) != 0)
			continue;
		unsigned turn = l->v[i].turn;
		if (m->turn < turn && !is_same(&l->v[i], m))
			return refuse_earlier(p, &l->v[i], m, pointer, e);
		l->v[i] = *m;
		l->v[i].turn = turn > m->turn ? turn : m->turn;
		return 0;
	}
	return kn_mount_add(l, *m, &p->mem, e);
}

static int
put(struct entry *x, struct kn_mount m, const char *source, const char *at,
    struct kn_err *e)
{
	const char *fault = kn_inside_path_fault(at);

	if (fault)
		return kn_pol_fail(x->p, x->pointer, e, "%.80s: %s", at, fault);
	m.source = kn_pmem_dup(&x->p->mem, source, strlen(source), e);
	m.at = kn_pmem_dup(&x->p->mem, at, strlen(at), e);
	m.origin = x->origin;
	m.user = true;
	m.turn = kn_pol_turn(x->p, x->pointer);
	return m.source && m.at ? kn_mount_put(x->p, x->list, &m, x->pointer, e) : -1;
}

static int
put_bind(struct entry *x, const char *path, struct kn_err *e)
{
	struct kn_mount m = {
		.type = KN_MOUNT_BIND, .writable = x->writable, .implied = !x->writable
	};

	return put(x, m, path, path, e);
}

/* The way so far, without links; the names still to go; and how many links were met. */
struct way {
	char done[KN_FPATH_MAX], rest[2 * KN_FPATH_MAX];
	int links;
};

/* `done` ends in a link: it is made inside, and the way goes on where it leads. tail:
 * of rest. */
static int
follow(struct entry *x, struct way *w, size_t used, const char *tail, struct kn_err *e)
{
	struct kn_mount m = { .type = KN_MOUNT_SYMLINK, .implied = true };
	char text[KN_FPATH_MAX], rest[2 * KN_FPATH_MAX];
	ssize_t n = readlink(w->done, text, sizeof text - 1);

	if (n <= 0 || ++w->links > LINKS_MAX) {
		errno = n < 0 ? errno : ELOOP;
		return kn_pol_fail(x->p, x->pointer, e, "%.80s: follow the link: %s",
		    w->done, strerror(errno));
	}
	text[n] = 0;
	if (put(x, m, text, w->done, e) < 0)
		return -1;
	if ((size_t)n + strlen(tail) + 2 > KN_FPATH_MAX)
		return kn_pol_fail(
		    x->p, x->pointer, e, "%.80s: a path is too long", w->done);
	snprintf(rest, sizeof rest, "%s/%s", text, tail);
	memcpy(w->rest, rest, strlen(rest) + 1);
	w->done[text[0] == '/' ? 0 : used] = 0;
	return 0;
}

static bool
is_covered(const char *at)
{
	return kn_fpath_within(at, "/tmp") || kn_fpath_within(at, "/dev/shm") ||
	       kn_fpath_within(at, "/task");
}

/* A path to be read, with the links on its way. */
static int
put_read(struct entry *x, const char *path, struct kn_err *e)
{
	struct way w = { .links = 0 };
	const char *name = w.rest;
	struct stat st;

	snprintf(w.rest, sizeof w.rest, "%s", path);
	while (*(name += strspn(name, "/"))) {
		size_t n = strcspn(name, "/"), used = strlen(w.done);
		char *slash = strrchr(w.done, '/');

		if (n == 1 && *name == '.') {
			name += n;
			continue;
		}
		if (n == 2 && memcmp(name, "..", 2) == 0) {
			if (slash)
				*slash = 0;
			name += n;
			continue;
		}
		if (used + n + 2 > sizeof w.done)
			return kn_pol_fail(
			    x->p, x->pointer, e, "%.80s: a path is too long", path);
		snprintf(w.done + used, sizeof w.done - used, "/%.*s", (int)n, name);
		/* What is not there is said by who opens it. */
		if (lstat(w.done, &st) < 0)
			return put_bind(x, path, e);
		name += n;
		if (!S_ISLNK(st.st_mode))
			continue;
		/* A cell puts binds back upon its own /tmp, and no links. */
		if (is_covered(w.done))
			return put_bind(x, path, e);
		if (follow(x, &w, used, name, e) < 0)
			return -1;
		name = w.rest;
	}
	return put_bind(x, w.done[0] ? w.done : "/", e);
}

static int
found(void *arg, const char *name, const char *real, struct kn_err *e)
{
	struct entry *x = arg;

	(void)real; /* what is written is opened by its name */
	if (++x->matches > MATCHES_MAX)
		return kn_pol_fail(x->p, x->pointer, e,
		    "the pattern means more than %d files: name the folder that holds "
		    "them",
		    MATCHES_MAX);
	return x->writable ? put_bind(x, name, e) : put_read(x, name, e);
}

static int
put_pattern(struct entry *x, const char *pattern, struct kn_err *e)
{
	struct kn_fwalk w = {
		.pattern = pattern, .found = found, .arg = x, .origin = x->origin
	};
	char base[KN_FPATH_MAX], real[PATH_MAX];
	size_t n = kn_fpath_fixed(pattern);

	snprintf(base, sizeof base, "%.*s", n ? (int)n : 1, n ? pattern : "/");
	kn_fpath_plain(base);
	if (realpath(base, real) && kn_fwalk(&w, base, real, e) < 0)
		return -1;
	if (x->matches == 0)
		return kn_pol_fail(x->p, x->pointer, e,
		    "\"%.100s\" means no file of this machine", pattern);
	return 0;
}

static int
put_list(struct kn_pol *p, struct kn_mount_list *l, const char *list, bool writable,
    struct kn_err *e)
{
	json_t *a = kn_pointer_get(p->doc, list);
	int all = 0;

	for (size_t i = 0; i < json_array_size(a); i++) {
		struct entry x = { .p = p, .list = l, .writable = writable };
		const char *s = json_string_value(json_array_get(a, i)), *origin;
		char plain[KN_FPATH_MAX];
		int rc;

		snprintf(x.pointer, sizeof x.pointer, "%s/%zu", list, i);
		origin = kn_pol_origin(p, x.pointer);
		x.origin = kn_pmem_dup(&p->mem, origin, strlen(origin), e);
		if (!x.origin)
			return -1;
		snprintf(plain, sizeof plain, "%s", s);
		kn_fpath_plain(plain);
		if (kn_fpath_is_pattern(s))
			rc = put_pattern(&x, s, e);
		else
			rc = writable ? put_bind(&x, plain, e) : put_read(&x, plain, e);
		all |= rc;
	}
	return all;
}

static int
put_project(struct kn_pol *p, struct kn_mount_list *l, struct kn_err *e)
{
	struct entry x = { .p = p,
		.list = l,
		.pointer = "/permissions/project",
		.origin = "permissions.project" };
	const char *path = kn_permissions_project(p, &x.writable);

	if (!path)
		return 0;
	return x.writable ? put_bind(&x, path, e) : put_read(&x, path, e);
}

int
kn_policy_files(struct kn_pol *p, struct kn_mount_list *l, struct kn_err *e)
{
	int rc = put_project(p, l, e);

	for (const char *const *list = kn_files_read; *list; list++)
		rc |= put_list(p, l, *list, false, e);
	for (const char *const *list = kn_files_write; *list; list++)
		rc |= put_list(p, l, *list, true, e);
	return rc;
}
