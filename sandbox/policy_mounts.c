/* sandbox/policy_mounts.c: the mounts of a merged document: the system root first, then
 * what policy files and flags ask for, parents before what lies in them.
 */
#include <stdlib.h>
#include <string.h>

#include "sandbox/policy_files.h"

enum { OVERLAY_AT_MAX = 200, OVERLAY_BYTES = 64 << 20, OVERLAY_INODES = 10000 };

int
kn_mount_add(
    struct kn_mount_list *l, struct kn_mount m, struct kn_pmem *mem, struct kn_err *e)
{
	if (l->n == l->cap) {
		size_t cap = l->cap ? l->cap * 2 : 32;
		struct kn_mount *v = kn_pmem_new(mem, cap * sizeof *v, e);
		if (!v)
			return -1;
		if (l->n)
			memcpy(v, l->v, l->n * sizeof *v);
		l->v = v;
		l->cap = cap;
	}
	l->v[l->n++] = m;
	return 0;
}

/* Without empty and "." components. */
static char *
clean_path(struct kn_pmem *mem, const char *p, struct kn_err *e)
{
	char *out = kn_pmem_new(mem, strlen(p) + 2, e);
	size_t n = 0;
	if (!out)
		return NULL;
	while (*p) {
		size_t len = strcspn(p += *p == '/', "/");
		if (len > 0 && !(len == 1 && *p == '.')) {
			out[n++] = '/';
			memcpy(out + n, p, len);
			n += len;
		}
		p += len;
	}
	if (n == 0)
		out[n] = '/';
	return out;
}

static size_t
depth(const char *p)
{
	size_t n = 0;
	for (; *p; p++)
		n += *p == '/';
	return n;
}

static bool
covers(const char *dir, const char *path)
{
	size_t n = strlen(dir);
	return strncmp(path, dir, n) == 0 && (path[n] == '/' || !path[n]);
}

static const char *
text(json_t *m, const char *name)
{
	return json_string_value(json_object_get(m, name));
}

static void
build_tmpfs(struct kn_pol *p, json_t *m)
{
	const char *at = text(m, "tmpfs");
	json_t *size = json_object_get(m, "size"),
	       *files = json_object_get(m, "inodes");
	uint64_t bytes = json_is_null(size) ? 0 : kn_policy_size_of(size);
	uint64_t inodes = (uint64_t)json_integer_value(files);
	bool tmp = strcmp(at, "/tmp") == 0, task = strcmp(at, "/task") == 0;
	uint64_t *b = tmp    ? &p->pub.fs.tmp_bytes
		      : task ? &p->pub.fs.task_bytes
			     : &p->pub.fs.shm_bytes;
	if (bytes)
		*b = bytes;
	if (inodes && !tmp && !task)
		p->pub.fs.shm_inodes = inodes;
	if (inodes && tmp)
		p->pub.fs.tmp_inodes = inodes;
	if (inodes && task)
		p->pub.fs.task_inodes = inodes;
}

/* What cannot be said to overlayfs, or would be hidden by a task's own. */
static const char *
overlay_fault(const char *at)
{
	static const char *const own[] = { "/tmp", "/dev/shm", "/task" };
	for (size_t i = 0; i < sizeof own / sizeof *own; i++)
		if (covers(own[i], at))
			return "an overlay lies beside /tmp, /dev/shm and /task";
	if (strlen(at) >= OVERLAY_AT_MAX)
		return "the path of an overlay is at most 200 bytes long";
	return strpbrk(at, ":,\\") ? "the path of an overlay has no ':', ',' or '\\'"
				   : NULL;
}

static void
plan_overlay(json_t *j, struct kn_mount *m, const char **source)
{
	json_t *size = json_object_get(j, "size"), *n = json_object_get(j, "inodes");
	bool sized = size && !json_is_null(size);
	*source = text(j, "overlay") ? text(j, "overlay") : text(j, "copy");
	m->out = text(j, "out");
	m->overlay = true;
	m->bytes = sized ? kn_policy_size_of(size) : OVERLAY_BYTES;
	m->inodes =
	    json_is_integer(n) ? (uint64_t)json_integer_value(n) : OVERLAY_INODES;
}

/* Why what a task changed cannot be brought out of it. */
static const char *
out_fault(const struct kn_pol *p, const struct kn_mount_list *l)
{
	if (p->pub.pool.kind == KN_KIND_MODULE)
		return "goes with /pool/kind \"exec\" only";
	for (size_t i = 0; i < l->n; i++)
		if (l->v[i].out)
			return "one copy of a policy has \"out\", and there is one "
			       "already; have the others' files collected";
	return NULL;
}

/* One bind, overlay, copy, dir or symlink of the document. */
static int
build_mount(struct kn_pol *p, json_t *j, const char *pointer, struct kn_mount_list *l,
    struct kn_err *e)
{
	const char *source = text(j, "bind"), *at = text(j, "at");
	const char *mode = text(j, "mode"), *origin = kn_pol_origin(p, pointer);
	struct kn_mount m = { .type = KN_MOUNT_BIND, .user = true };
	if (text(j, "dir")) {
		m.type = KN_MOUNT_DIR;
		at = text(j, "dir");
	} else if (text(j, "symlink")) {
		m.type = KN_MOUNT_SYMLINK;
		source = text(j, "symlink");
	} else {
		if (text(j, "overlay") || text(j, "copy"))
			plan_overlay(j, &m, &source);
		m.writable = mode && strcmp(mode, "rw") == 0;
		if (!at)
			at = source;
	}
	const char *fault = kn_inside_path_fault(at);
	if (!fault && m.overlay)
		fault = overlay_fault(at);
	if (fault)
		return kn_pol_fail(p, pointer, e,
		    "\"%.80s\": %s; name another path inside", at, fault);
	fault = m.out ? out_fault(p, l) : NULL;
	if (fault)
		return kn_pol_fail(p, pointer, e, "out: %s", fault);
	if (m.out && !(m.out = kn_pmem_dup(&p->mem, m.out, strlen(m.out), e)))
		return -1;
	m.at = clean_path(&p->mem, at, e);
	m.origin = kn_pmem_dup(&p->mem, origin, strlen(origin), e);
	if (source)
		m.source = kn_pmem_dup(&p->mem, source, strlen(source), e);
	if (!m.at || !m.origin || (source && !m.source))
		return -1;
	m.turn = kn_pol_turn(p, pointer);
	return kn_mount_put(p, l, &m, pointer, e);
}

/* The file of kind module: a bind like the caller's own. */
static int
add_module(struct kn_pol *p, struct kn_mount_list *l, struct kn_err *e)
{
	const char *origin = kn_pol_origin(p, "/pool/module");
	struct kn_mount m = { .type = KN_MOUNT_BIND,
		.source = p->pub.pool.module,
		.at = p->pub.pool.module_at,
		.user = true };
	if (!m.source)
		return 0;
	for (size_t i = 0; i < l->n; i++)
		if (covers(l->v[i].at, m.at))
			return kn_pol_fail(p, "/filesystem/mounts", e,
			    "%.80s would hide the module at %.80s", l->v[i].at, m.at);
	m.origin = kn_pmem_dup(&p->mem, origin, strlen(origin), e);
	return m.origin ? kn_mount_add(l, m, &p->mem, e) : -1;
}

static size_t
rank(const struct kn_mount *m)
{
	return m->user ? 1 + depth(m->at) : 0;
}

void
kn_mounts_sort(struct kn_mount_list *l)
{
	for (size_t i = 1; i < l->n; i++) {
		struct kn_mount m = l->v[i];
		size_t j = i;
		for (; j > 0 && rank(&l->v[j - 1]) > rank(&m); j--)
			l->v[j] = l->v[j - 1];
		l->v[j] = m;
	}
}

/* The mount whose files are at `at`, but for l->v[but]; or NULL. Of two at one place it
 * is the later. */
const struct kn_mount *
kn_mount_top(const struct kn_mount_list *l, const char *at, const struct kn_mount *but)
{
	const struct kn_mount *top = NULL;
	for (size_t i = 0; i < l->n; i++) {
		const struct kn_mount *m = &l->v[i];
		if (m == but || !covers(m->at, at))
			continue;
		if (!top || strlen(m->at) >= strlen(top->at))
			top = m;
	}
	return top;
}

/* Does another mount show the same there already? */
static bool
is_there_already(const struct kn_mount_list *l, const struct kn_mount *m)
{
	const struct kn_mount *top = kn_mount_top(l, m->at, m);
	if (!top || top->type == KN_MOUNT_DIR)
		return false;
	if (m->type == KN_MOUNT_SYMLINK)
		return top->type == KN_MOUNT_BIND || strcmp(top->at, m->at) == 0;
	return top->type == KN_MOUNT_BIND && !top->writable && !top->overlay &&
	       strcmp(top->source, top->at) == 0;
}

/* What is looked for in all that the caller's show is not looked for in the root's:
 * then what the caller names in the root is his, too. */
static bool
denies_in_all(const struct kn_pol *p)
{
	for (const char *const *l = kn_files_deny; *l; l++) {
		json_t *list = kn_pointer_get(p->doc, *l);

		for (size_t i = 0; i < json_array_size(list); i++)
			if (kn_fpath_is_wide(
				json_string_value(json_array_get(list, i))))
				return true;
	}
	return false;
}

/* The root's first, but for what the caller's hide; then the caller's. */
static int
join(struct kn_pol *p, const struct kn_mount_list *root, struct kn_mount_list *user,
    struct kn_mount_list *out, struct kn_err *e)
{
	struct kn_mount_list all = { 0 };
	bool keep = denies_in_all(p);
	for (size_t i = 0; i < root->n; i++) {
		bool hidden = false;
		for (size_t j = 0; j < user->n; j++)
			hidden = hidden || covers(user->v[j].at, root->v[i].at);
		if (!hidden && kn_mount_add(&all, root->v[i], &p->mem, e) < 0)
			return -1;
	}
	for (size_t i = 0; i < user->n; i++)
		if (kn_mount_add(&all, user->v[i], &p->mem, e) < 0)
			return -1;
	for (size_t i = 0; i < all.n; i++) {
		bool kept = keep && all.v[i].type == KN_MOUNT_BIND;
		if (all.v[i].implied && !kept && is_there_already(&all, &all.v[i]))
			continue;
		if (kn_mount_add(out, all.v[i], &p->mem, e) < 0)
			return -1;
	}
	return 0;
}

int
kn_policy_build_mounts(struct kn_pol *p, struct kn_err *e)
{
	struct kn_mount_list root = { 0 }, user = { 0 }, all = { 0 };
	json_t *list = kn_pointer_get(p->doc, "/filesystem/mounts");
	int rc = 0;
	p->pub.fs.tmp_bytes = p->pub.fs.shm_bytes = 64ull << 20;
	p->pub.fs.task_bytes = 256ull << 20;
	p->pub.fs.tmp_inodes = 10000;
	p->pub.fs.task_inodes = 50000;
	for (size_t i = 0; i < json_array_size(list); i++) {
		char pointer[48];
		json_t *m = json_array_get(list, i);
		snprintf(pointer, sizeof pointer, "/filesystem/mounts/%zu", i);
		if (text(m, "tmpfs"))
			build_tmpfs(p, m);
		else if (build_mount(p, m, pointer, &user, e) < 0)
			rc = -1;
	}
	if (kn_policy_files(p, &user, e) < 0)
		rc = -1;
	if (rc < 0 || add_module(p, &user, e) < 0)
		return -1;
	kn_mounts_sort(&user);
	if (p->pub.fs.root == KN_ROOT_SYSTEM && kn_policy_root(p, &root, e) < 0)
		return -1;
	if (join(p, &root, &user, &all, e) < 0 || kn_policy_deny(p, &all, e) < 0)
		return -1;
	p->pub.fs.mounts = all.v;
	p->pub.fs.mount_n = all.n;
	return 0;
}
