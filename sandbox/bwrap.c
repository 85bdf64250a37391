/* sandbox/bwrap.c: the argument vector of bubblewrap (0.8 or later), from a policy.
 *
 * Why each flag stands there:
 *   --unshare-*            a namespace of its own for everything; net unless shared
 *   --as-pid-1             the stub is PID 1: no init of bwrap's to take a status from
 *   --die-with-parent      nothing outlives the launcher, which dies with us
 *   --cap-add SYS_ADMIN    in the sandbox's own user namespace: cells need mounts
 *   --cap-add SETPCAP      the stub empties its bounding set with it, and drops it
 *   --cap-add DAC_OVERRIDE where cells put overlays: those work as who mounts them
 *   --disable-userns       no second user namespace in which a wall could be undone
 *   --uid, --gid           1000 inside, unless the policy says another
 *   --remount-ro /dev, /   what one task leaves there the next would see
 */
#include "sandbox/bwrap.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ipc/err.h"
#include "sandbox/policy.h"

enum {
	PACK_ABOVE =
	    64 * 1024, /* bytes of arguments; the kernel takes 128 KiB and up */
};

void
kn_argv_fini(struct kn_argv *a)
{
	for (size_t i = 0; i < a->n; i++)
		free(a->v[i]);
	free(a->v);
	memset(a, 0, sizeof(*a));
}

int
kn_argv_push(struct kn_argv *a, const char *s)
{
	if (a->n + 2 > a->cap) {
		size_t cap = a->cap ? 2 * a->cap : 128;
		char **v = realloc(a->v, cap * sizeof(*v));

		if (v == NULL)
			return -1;
		a->v = v;
		a->cap = cap;
	}
	if ((a->v[a->n] = strdup(s)) == NULL)
		return -1;
	a->v[++a->n] = NULL;
	return 0;
}

/* Up to three words; a NULL ends them. */
static int
push3(struct kn_argv *a, const char *x, const char *y, const char *z)
{
	if (kn_argv_push(a, x) < 0 || (y != NULL && kn_argv_push(a, y) < 0))
		return -1;
	return y != NULL && z != NULL ? kn_argv_push(a, z) : 0;
}

static int
push_mount(struct kn_argv *a, const struct kn_mount *m, const char *source)
{
	switch (m->type) {
	case KN_MOUNT_BIND:
		if (source == NULL)
			return 0;
		return push3(a, m->writable ? "--bind" : "--ro-bind", source, m->at);
	case KN_MOUNT_DIR:
		return push3(a, "--dir", m->at, NULL);
	case KN_MOUNT_SYMLINK:
		return push3(a, "--symlink", m->source, m->at);
	case KN_MOUNT_DATA:
		if (source == NULL)
			return 0;
		if (push3(a, "--perms", "0444", NULL) < 0)
			return -1;
		return push3(a, "--file", source, m->at);
	case KN_MOUNT_WHITE:
	case KN_MOUNT_LINK:
		return 0; /* the stub's: a path that is a link leads bwrap elsewhere */
	case KN_MOUNT_TMPFS:
		return 0; /* private to each task: the cells make them */
	case KN_MOUNT_MASK:
		if (push3(a, "--perms", "0000", NULL) < 0)
			return -1;
		if (!m->dir)
			return push3(a, "--ro-bind-data", source, m->at);
		/* Its owner is the task, who else could open it for everybody. */
		if (push3(a, "--tmpfs", m->at, NULL) < 0)
			return -1;
		return push3(a, "--remount-ro", m->at, NULL);
	}
	return 0;
}

static int
push_mounts(struct kn_argv *a, const struct kn_bwrap_req *r, bool user)
{
	for (size_t i = 0; i < r->policy->fs.mount_n; i++) {
		const struct kn_mount *m = &r->policy->fs.mounts[i];

		if (m->user == user && push_mount(a, m, r->source[i]) < 0)
			return -1;
	}
	return 0;
}

static bool
has_overlay(const struct kn_policy *p)
{
	for (size_t i = 0; i < p->fs.mount_n; i++)
		if (p->fs.mounts[i].overlay)
			return true;
	return false;
}

static int
push_all(struct kn_argv *a, const struct kn_bwrap_req *r)
{
	static const char *const first[] = { "--unshare-user", "--unshare-ipc",
		"--unshare-pid", "--unshare-uts", "--unshare-cgroup", "--as-pid-1",
		"--die-with-parent", "--cap-add", "CAP_SYS_ADMIN", "--cap-add",
		"CAP_SETPCAP", "--disable-userns" };
	static const char *const points[] = { "/tmp", "/dev/shm", "/task" };
	char uid[16], gid[16];
	int bad = 0;

	snprintf(uid, sizeof(uid), "%u", r->policy->identity.uid);
	snprintf(gid, sizeof(gid), "%u", r->policy->identity.gid);
	bad |= kn_argv_push(a, r->bwrap);
	for (size_t i = 0; i < sizeof(first) / sizeof(first[0]); i++)
		bad |= kn_argv_push(a, first[i]);
	if (has_overlay(r->policy))
		bad |= push3(a, "--cap-add", "CAP_DAC_OVERRIDE", NULL);
	if (r->policy->network != KN_NET_HOST)
		bad |= kn_argv_push(a, "--unshare-net");
	bad |= push3(a, "--uid", uid, NULL);
	bad |= push3(a, "--gid", gid, NULL);
	bad |= push3(a, "--hostname",
	    r->policy->identity.hostname ? r->policy->identity.hostname : "sandbox",
	    NULL);
	bad |= push3(a, "--dev", "/dev", NULL);
	bad |= push3(a, "--proc", "/proc", NULL);
	bad |= push_mounts(a, r, false);
	for (size_t i = 0; i < sizeof(points) / sizeof(points[0]); i++)
		bad |= push3(a, "--dir", points[i], NULL);
	bad |= push_mounts(a, r, true);
	bad |= push3(a, "--remount-ro", "/dev", NULL);
	bad |= push3(a, "--remount-ro", "/", NULL);
	bad |= push3(a, "--chdir", "/", NULL);
	bad |= push3(a, "--", r->stub, NULL);
	return bad;
}

int
kn_argv_prepend(
    struct kn_argv *a, const char *const *prefix, size_t n, struct kn_err *e)
{
	struct kn_argv b = { 0 };
	int bad = 0;

	for (size_t i = 0; i < n; i++)
		bad |= kn_argv_push(&b, prefix[i]);
	for (size_t i = 0; i < a->n; i++)
		bad |= kn_argv_push(&b, a->v[i]);
	if (bad) {
		kn_argv_fini(&b);
		return kn_err_sys(e, KN_EK_HOST, "build the launcher's arguments");
	}
	kn_argv_fini(a);
	*a = b;
	return 0;
}

int
kn_bwrap_argv(const struct kn_bwrap_req *r, struct kn_argv *out, struct kn_err *e)
{
	struct kn_argv a = { 0 };

	if (push_all(&a, r) < 0) {
		kn_argv_fini(&a);
		return kn_err_sys(e, KN_EK_HOST, "build bwrap's arguments");
	}
	if (a.n > KN_BWRAP_ARGS_MAX) {
		kn_err_set(e, KN_EK_CONFIG,
		    "/filesystem/mounts: %zu mounts need %zu arguments, and bwrap "
		    "takes "
		    "at most %d",
		    r->policy->fs.mount_n, a.n, KN_BWRAP_ARGS_MAX);
		kn_err_hint(
		    e, "bind a directory that holds them in place of each file");
		kn_argv_fini(&a);
		return -1;
	}
	*out = a;
	return 0;
}

static int
pack_long(const struct kn_argv *full, size_t options_end, int args_fd,
    struct kn_argv *a, char **out_blob, size_t *out_n)
{
	char number[16], *blob;
	size_t n = 0, at = 0;

	for (size_t i = 1; i < options_end; i++)
		n += strlen(full->v[i]) + 1;
	if ((blob = malloc(n)) == NULL)
		return -1;
	for (size_t i = 1; i < options_end; i++) {
		size_t len = strlen(full->v[i]) + 1;

		memcpy(blob + at, full->v[i], len);
		at += len;
	}
	snprintf(number, sizeof(number), "%d", args_fd);
	if (push3(a, full->v[0], "--args", number) < 0) {
		free(blob);
		return -1;
	}
	*out_blob = blob;
	*out_n = n;
	return 0;
}

int
kn_bwrap_pack(const struct kn_argv *full, int args_fd, struct kn_argv *out,
    char **out_blob, size_t *out_n, struct kn_err *e)
{
	struct kn_argv a = { 0 };
	size_t bytes = 0, from = 0, end = full->n - 2; /* "--" and the stub stay */
	char *blob = NULL;

	for (size_t i = 0; i < full->n; i++)
		bytes += strlen(full->v[i]) + 1 + sizeof(char *);
	if (bytes > PACK_ABOVE) {
		if (pack_long(full, end, args_fd, &a, &blob, out_n) < 0)
			goto fail;
		from = end;
	}
	for (size_t i = from; i < full->n; i++)
		if (kn_argv_push(&a, full->v[i]) < 0)
			goto fail;
	*out = a;
	*out_blob = blob;
	return 0;
fail:
	free(blob);
	kn_argv_fini(&a);
	return kn_err_sys(e, KN_EK_HOST, "build bwrap's arguments");
}
