/* sandbox/policy_mask.c: a file or folder that is denied, wherever it is shown: masks
 * upon it, or binds that make it read-only, and links that stay as they are.
 */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sandbox/policy_files.h"

const struct kn_mount *
kn_deny_mount(const struct kn_deny *d, size_t i)
{
	return &d->all->v[i];
}

bool
kn_fpath_join(char out[KN_FPATH_MAX], const char *a, const char *path, const char *dir)
{
	const char *rest = path + (strcmp(dir, "/") == 0 ? 0 : strlen(dir));
	size_t n = strcmp(a, "/") == 0 && *rest ? 0 : strlen(a);

	if (n + strlen(rest) >= KN_FPATH_MAX)
		return false;
	memcpy(out, a, n);
	memcpy(out + n, rest, strlen(rest) + 1);
	return true;
}

int
kn_deny_too_long(const struct kn_deny *d, struct kn_err *e)
{
	return kn_pol_fail(
	    d->p, d->pointer, e, "\"%.80s\": a path is too long", d->text);
}

int
kn_deny_refuse(const struct kn_deny *d, size_t i, const char *what, struct kn_err *e)
{
	kn_pol_fail(d->p, d->pointer, e, "\"%.80s\" %s in %.80s, which it may write to",
	    d->text, what, kn_deny_mount(d, i)->at);
	kn_pol_hint(d->p, e,
	    "no mount keeps a name free, and nothing is made on the machine "
	    "for it: name what is there, or show that folder read-only and "
	    "let the task write to another");
	return -1;
}

static int
add_mask(struct kn_deny *d, size_t i, const char *at, const char *real, bool dir,
    struct kn_err *e)
{
	struct kn_pmem *mem = &d->p->mem;
	bool open = d->kind == KN_DENY_OPEN;
	struct kn_mount_list *to = open ? &d->masks : &d->binds;
	bool top = strcmp(kn_deny_mount(d, i)->at, at) == 0;
	bool white = open && kn_deny_mount(d, i)->overlay && !top;
	struct kn_mount m = { .type = white  ? KN_MOUNT_WHITE
				      : open ? KN_MOUNT_MASK
					     : KN_MOUNT_BIND,
		.user = true,
		.dir = open && dir,
		.writable = open && kn_deny_mount(d, i)->writable,
		.origin = d->origin };

	if (top) {
		d->all->v[i].overlay = false;
		d->all->v[i].out = NULL;
	}
	if (!open && top) {
		d->all->v[i].writable = false;
		return 0;
	}

	for (size_t k = 0; k < to->n; k++)
		if (strcmp(to->v[k].at, at) == 0)
			return 0;
	m.at = kn_pmem_dup(mem, at, strlen(at), e);
	m.source = kn_pmem_dup(mem, real, strlen(real), e);
	return m.at && m.source ? kn_mount_add(to, m, mem, e) : -1;
}

int
kn_deny_cover(struct kn_deny *d, const char *real, struct kn_err *e)
{
	char at[KN_FPATH_MAX];
	struct stat st;

	for (size_t i = 0; i < d->all->n; i++) {
		const struct kn_mount *m = kn_deny_mount(d, i);
		const char *source = d->real[i];
		bool below;

		if (!source || (d->kind == KN_DENY_WRITE && !m->writable))
			continue;
		below = kn_fpath_within(real, source);
		if (!below && !kn_fpath_within(source, real))
			continue;
		if (!below && !m->user) {
			d->goes[i] = true; /* all of it is denied */
			continue;
		}
		if (!kn_fpath_join(at, m->at, below ? real : source, source))
			return kn_deny_too_long(d, e);
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

int
kn_deny_free(
    const struct kn_deny *d, const char *path, const char *what, struct kn_err *e)
{
	char at[KN_FPATH_MAX];

	for (size_t i = 0; i < d->all->n; i++) {
		const struct kn_mount *m = kn_deny_mount(d, i);

		if (!d->real[i] || !m->writable || !kn_fpath_within(path, d->real[i]))
			continue;
		if (!kn_fpath_join(at, m->at, path, d->real[i]))
			return kn_deny_too_long(d, e);
		if (kn_mount_top(d->all, at, NULL) == m && !d->soft)
			return kn_deny_refuse(d, i, what, e);
	}
	return 0;
}

int
kn_deny_keep_link(struct kn_deny *d, const char *real, struct kn_err *e)
{
	struct kn_pmem *mem = &d->p->mem;
	char at[KN_FPATH_MAX];

	for (size_t i = 0; i < d->all->n; i++) {
		const struct kn_mount *m = kn_deny_mount(d, i);
		struct kn_mount link = {
			.type = KN_MOUNT_LINK, .user = true, .origin = d->origin
		};

		if (!d->real[i] || !m->writable || !kn_fpath_within(real, d->real[i]))
			continue;
		if (!kn_fpath_join(at, m->at, real, d->real[i]))
			return kn_deny_too_long(d, e);
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

int
kn_deny_begin(struct kn_deny *d, struct kn_err *e)
{
	size_t n = d->all->n + 1;

	d->real = kn_pmem_new(&d->p->mem, n * sizeof *d->real, e);
	d->goes = kn_pmem_new(&d->p->mem, n * sizeof *d->goes, e);
	if (!d->real || !d->goes)
		return -1;
	for (size_t i = 0; i < d->all->n; i++) {
		char real[PATH_MAX];

		/* One that is not there is named by who opens it. */
		if (kn_deny_mount(d, i)->type != KN_MOUNT_BIND ||
		    !realpath(kn_deny_mount(d, i)->source, real))
			continue;
		d->real[i] = kn_pmem_dup(&d->p->mem, real, strlen(real), e);
		if (!d->real[i])
			return -1;
	}
	return 0;
}

/* What stays of the system root, the caller's with the pins, then the masks. */
int
kn_deny_end(struct kn_deny *d, struct kn_err *e)
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
		if (!d->goes[i] && kn_mount_add(&out, *kn_deny_mount(d, i), mem, e) < 0)
			return -1;
	for (size_t i = 0; i < d->binds.n; i++)
		if (kn_mount_add(&out, d->binds.v[i], mem, e) < 0)
			return -1;
	if (kn_policy_pins(d->p, &out, &masks, e) < 0)
		return -1;
	for (size_t i = 0; i < masks.n; i++)
		if (kn_mount_add(&out, masks.v[i], mem, e) < 0)
			return -1;
	*d->all = out;
	return 0;
}
