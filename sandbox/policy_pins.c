/* sandbox/policy_pins.c: what is mounted below a writable folder stays where it is.
 *
 * A mount point cannot be renamed or removed, but a folder that it lies in can, and
 * then the task may put what it likes at the path that was read-only or denied. So each
 * folder between the top of a writable bind and such a mount is bound upon itself:
 * then it is a mount point too.
 */
#include <string.h>

#include "sandbox/policy_files.h"

static int
add_pin(struct kn_pol *p, struct kn_mount_list *pins, const struct kn_mount *under,
    const char *at, size_t n, struct kn_err *e)
{
	struct kn_mount m = { .type = KN_MOUNT_BIND,
		.user = true,
		.writable = true,
		.pin = true,
		.origin = under->origin };
	struct stat st;

	m.at = kn_pmem_dup(&p->mem, at, n, e);
	if (!m.at)
		return -1;
	for (size_t i = 0; i < pins->n; i++)
		if (strcmp(pins->v[i].at, m.at) == 0)
			return 0;
	m.source =
	    kn_pmem_fmt(&p->mem, e, "%s%s", under->source, m.at + strlen(under->at));
	if (!m.source)
		return -1;
	/* What is not there, or a link, is refused by who opens it. */
	if (lstat(m.source, &st) < 0 || !S_ISDIR(st.st_mode))
		return 0;
	return kn_mount_add(pins, m, &p->mem, e);
}

/* Pins for a mount at `at`, if what it stands in can be written to. */
static int
pin(struct kn_pol *p, const struct kn_mount_list *all, struct kn_mount_list *pins,
    const struct kn_mount *m, struct kn_err *e)
{
	const struct kn_mount *under = kn_mount_top(all, m->at, m);
	size_t n;

	if (!under || under->type != KN_MOUNT_BIND || !under->writable)
		return 0;
	for (n = strlen(under->at) + 1; n < strlen(m->at); n++)
		if (m->at[n] == '/' && add_pin(p, pins, under, m->at, n, e) < 0)
			return -1;
	return 0;
}

int
kn_policy_pins(struct kn_pol *p, struct kn_mount_list *all,
    const struct kn_mount_list *masks, struct kn_err *e)
{
	struct kn_mount_list pins = { 0 };

	for (size_t i = 0; i < all->n; i++) {
		const struct kn_mount *m = &all->v[i];

		if (m->user && m->type == KN_MOUNT_BIND && !m->writable &&
		    pin(p, all, &pins, m, e) < 0)
			return -1;
	}
	for (size_t i = 0; i < masks->n; i++)
		if (pin(p, all, &pins, &masks->v[i], e) < 0)
			return -1;
	for (size_t i = 0; i < pins.n; i++)
		if (kn_mount_add(all, pins.v[i], &p->mem, e) < 0)
			return -1;
	kn_mounts_sort(all);
	return 0;
}
