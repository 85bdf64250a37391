/* sandbox/policy_pins.c: what is mounted below a writable folder stays where it is.
 *
 * A mount point cannot be renamed or removed, but a folder that it lies in can, and
 * then the task may put what it likes at the path that was read-only or denied, or a
 * link, which the launcher of the next worker follows on the machine before it mounts
 * there. So each folder between the top of a writable bind and such a mount is bound
 * upon itself: then it is a mount point too.
 *
 * The kernel asks that of the folder and not of its path. So it is done wherever a
 * writable bind shows the way to the mount, also if that is mounted by another path.
 */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "sandbox/policy_files.h"

struct pins {
	struct kn_pol *p;
	const struct kn_mount_list *all;
	struct kn_mount_list list;
	char **real; /* per mount: the canonical source of a bind, once it was asked */
};

static int
add_pin(struct pins *x, const struct kn_mount *under, const char *at, size_t n,
    struct kn_err *e)
{
	struct kn_mount m = { .type = KN_MOUNT_BIND,
		.user = true,
		.writable = true,
		.pin = true,
		.origin = under->origin };
	struct kn_pmem *mem = &x->p->mem;
	struct stat st;

	m.at = kn_pmem_dup(mem, at, n, e);
	if (!m.at)
		return -1;
	for (size_t i = 0; i < x->list.n; i++)
		if (strcmp(x->list.v[i].at, m.at) == 0)
			return 0;
	m.source = kn_pmem_fmt(mem, e, "%s%s", under->source, m.at + strlen(under->at));
	if (!m.source)
		return -1;
	/* What is not there, or a link, is refused by who opens it. */
	if (lstat(m.source, &st) < 0 || !S_ISDIR(st.st_mode))
		return 0;
	return kn_mount_add(&x->list, m, mem, e);
}

/* Pins for what is denied at `at`: it is so in each bind that shows it. */
static int
pin_mask(struct pins *x, const struct kn_mount *m, struct kn_err *e)
{
	const struct kn_mount *under = kn_mount_top(x->all, m->at, NULL);
	size_t n;

	if (!under || under->type != KN_MOUNT_BIND || !under->writable)
		return 0;
	for (n = strlen(under->at) + 1; n < strlen(m->at); n++)
		if (m->at[n] == '/' && add_pin(x, under, m->at, n, e) < 0)
			return -1;
	return 0;
}

/* The canonical source of mount i; "" if there is none, NULL without memory. */
static const char *
real_of(struct pins *x, size_t i, struct kn_err *e)
{
	const struct kn_mount *m = &x->all->v[i];
	char real[PATH_MAX] = "";

	if (!x->real)
		x->real = kn_pmem_new(&x->p->mem, x->all->n * sizeof *x->real, e);
	if (!x->real)
		return NULL;
	if (!x->real[i]) {
		/* One that is not there is named by who opens it. */
		if (m->type != KN_MOUNT_BIND || !realpath(m->source, real))
			real[0] = '\0';
		x->real[i] = kn_pmem_dup(&x->p->mem, real, strlen(real), e);
	}
	return x->real[i];
}

/* The mount that has the folder of m's mount point; NULL: none. */
static const struct kn_mount *
holder(const struct kn_mount_list *all, const struct kn_mount *m)
{
	const struct kn_mount *in = NULL;

	for (size_t i = 0; i < all->n; i++) {
		const struct kn_mount *o = &all->v[i];

		if (strcmp(o->at, m->at) != 0 && kn_fpath_within(m->at, o->at) &&
		    (!in || strlen(o->at) >= strlen(in->at)))
			in = o;
	}
	return in;
}

/* Pins in bind i for a mount point that is `point` on the machine. */
static int
pin_in(struct pins *x, size_t i, const char *point, struct kn_err *e)
{
	const struct kn_mount *under = &x->all->v[i];
	const char *real;
	char at[KN_FPATH_MAX];
	size_t n;

	if (under->type != KN_MOUNT_BIND || !under->user || !under->writable)
		return 0;
	real = real_of(x, i, e);
	if (!real)
		return -1;
	if (!*real || !kn_fpath_within(point, real))
		return 0;
	if (!kn_fpath_join(at, under->at, point, real))
		return kn_err_set(e, KN_EK_CONFIG, "%s: %.80s: a path is too long",
		    under->origin, point);
	for (n = strlen(under->at) + 1; n < strlen(at); n++) {
		if (at[n] != '/')
			continue;
		at[n] = '\0';
		/* Where another mount stands, the folder is not to be got at. */
		if (kn_mount_top(x->all, at, NULL) == under &&
		    add_pin(x, under, at, n, e) < 0)
			return -1;
		at[n] = '/';
	}
	return 0;
}

/* Pins for a mount of the caller's, wherever what it stands in can be written to. */
static int
pin_mount(struct pins *x, const struct kn_mount *m, struct kn_err *e)
{
	const struct kn_mount *in = holder(x->all, m);
	char point[KN_FPATH_MAX];
	const char *real;

	if (!in || in->type != KN_MOUNT_BIND || !in->user)
		return 0;
	real = real_of(x, (size_t)(in - x->all->v), e);
	if (!real)
		return -1;
	if (!*real)
		return 0;
	if (!kn_fpath_join(point, real, m->at, in->at))
		return kn_err_set(
		    e, KN_EK_CONFIG, "%s: %.80s: a path is too long", m->origin, m->at);
	for (size_t i = 0; i < x->all->n; i++)
		if (pin_in(x, i, point, e) < 0)
			return -1;
	return 0;
}

int
kn_policy_pins(struct kn_pol *p, struct kn_mount_list *all,
    const struct kn_mount_list *masks, struct kn_err *e)
{
	struct pins x = { .p = p, .all = all };

	/* The launcher direct mounts nothing. */
	for (size_t i = 0; i < all->n && p->pub.launcher != KN_LAUNCHER_DIRECT; i++)
		if (all->v[i].user && all->v[i].type == KN_MOUNT_BIND &&
		    pin_mount(&x, &all->v[i], e) < 0)
			return -1;
	for (size_t i = 0; i < masks->n; i++)
		if (pin_mask(&x, &masks->v[i], e) < 0)
			return -1;
	for (size_t i = 0; i < x.list.n; i++)
		if (kn_mount_add(all, x.list.v[i], &p->mem, e) < 0)
			return -1;
	kn_mounts_sort(all);
	return 0;
}
