/* sandbox/policy_items.c: what the key table cannot say about a document: which members
 * of a mount or a rule belong together, what a path or a name may look like.
 */
#include <stdio.h>
#include <string.h>

#include "sandbox/policy_files.h"

static bool
below(const char *path, const char *dir)
{
	size_t n = strlen(dir);
	return strncmp(path, dir, n) == 0 && (path[n] == '/' || !path[n]);
}

const char *
kn_inside_path_fault(const char *p)
{
	static const char *const own[] = { "/tmp", "/dev/shm", "/task" };
	static const char *const taken[] = { "/proc", "/dev", "/sys" };
	if (*p != '/')
		return "a path inside is absolute";
	if (strlen(p) >= 4096)
		return "the path is too long";
	bool any = false;
	for (const char *c = p; *c;) {
		size_t n = strcspn(++c, "/");
		if (n == 2 && memcmp(c, "..", 2) == 0)
			return "\"..\" is not allowed in a path inside";
		any = any || (n > 0 && !(n == 1 && *c == '.'));
		c += n;
	}
	if (!any)
		return "the root itself cannot be replaced";
	for (size_t i = 0; i < sizeof own / sizeof *own; i++)
		if (strcmp(p, own[i]) == 0)
			return "each task has its own /tmp, /dev/shm and /task there";
	for (size_t i = 0; i < sizeof taken / sizeof *taken; i++)
		if (below(p, taken[i]) && !below(p, "/dev/shm"))
			return "/proc, /dev and /sys are not for mounts";
	return NULL;
}

static int
check_tmpfs(const struct kn_pdoc *d, const char *at, const char *path, struct kn_err *e)
{
	if (strcmp(path, "/tmp") == 0 || strcmp(path, "/dev/shm") == 0 ||
	    strcmp(path, "/task") == 0)
		return 0;
	/* Anywhere else it would be the worker's, and the next task would see what
	 * this one left. */
	return kn_pdoc_fail(d, at, false, e,
	    "a tmpfs is supported at /tmp, /dev/shm and /task, not at \"%.60s\"", path);
}

static int
check_mount(const struct kn_pdoc *d, json_t *m, const char *at, struct kn_err *e)
{
	static const char *const kinds[] = { "bind", "tmpfs", "dir", "symlink",
		"overlay", "copy" };
	static const struct {
		const char *member;
		unsigned kinds; /* bit per kinds[] that it goes with */
	} goes[] = { { "at", 1 | 8 | 16 | 32 }, { "mode", 1 }, { "size", 2 | 16 | 32 },
		{ "inodes", 2 | 16 | 32 }, { "out", 32 } };
	char where[KN_POLICY_POINTER_MAX];
	int kind = -1;
	for (int i = 0; i < 6; i++) {
		json_t *v = json_object_get(m, kinds[i]);
		if (!json_is_string(v))
			continue;
		if (kind >= 0)
			return kn_pdoc_fail(d, at, false, e, "both \"%s\" and \"%s\"",
			    kinds[kind], kinds[i]);
		kind = i;
	}
	if (kind < 0)
		return kn_pdoc_fail(d, at, false, e,
		    "needs one of bind, copy, overlay, tmpfs, dir, symlink");
	const char *path = json_string_value(json_object_get(m, kinds[kind]));
	snprintf(where, sizeof where, "%.200s/%s", at, kinds[kind]);
	if (!*path || strlen(path) >= 4096)
		return kn_pdoc_fail(
		    d, where, false, e, "the path is empty or too long");
	for (size_t i = 0; i < sizeof goes / sizeof *goes; i++) {
		json_t *v = json_object_get(m, goes[i].member);
		snprintf(where, sizeof where, "%.200s/%s", at, goes[i].member);
		if (v && !json_is_null(v) && !(goes[i].kinds & (1u << kind)))
			return kn_pdoc_fail(
			    d, where, true, e, "does not go with \"%s\"", kinds[kind]);
	}
	const char *out = json_string_value(json_object_get(m, "out"));
	snprintf(where, sizeof where, "%.200s/out", at);
	if (out && (!*out || strlen(out) >= 4096))
		return kn_pdoc_fail(
		    d, where, false, e, "the path is empty or too long");
	const char *inside = json_string_value(json_object_get(m, "at"));
	snprintf(where, sizeof where, "%.200s/%s", at, inside ? "at" : kinds[kind]);
	if (kind == 1)
		return check_tmpfs(d, where, path, e);
	if (kind == 3 && !inside)
		return kn_pdoc_fail(d, at, false, e, "a symlink needs \"at\"");
	if (kind == 2)
		inside = path;
	/* A bind without "at" is checked when its path is absolute. */
	const char *fault = inside ? kn_inside_path_fault(inside) : NULL;
	return fault ? kn_pdoc_fail(d, where, false, e, "%s", fault) : 0;
}

static int
check_arg(const struct kn_pdoc *d, json_t *a, const char *at, struct kn_err *e)
{
	static const char *const need[] = { "index", "value", "op" };
	for (size_t i = 0; i < sizeof need / sizeof *need; i++) {
		json_t *v = json_object_get(a, need[i]);
		if (!v || json_is_null(v))
			return kn_pdoc_fail(d, at, false, e, "needs \"%s\"", need[i]);
	}
	const char *op = json_string_value(json_object_get(a, "op"));
	json_t *two = json_object_get(a, "valueTwo");
	bool masked = strcmp(op, "SCMP_CMP_MASKED_EQ") == 0;
	bool has_two = two && !json_is_null(two);
	/* OCI profiles carry a valueTwo of 0 everywhere. */
	if (masked && !has_two)
		return kn_pdoc_fail(
		    d, at, false, e, "SCMP_CMP_MASKED_EQ needs \"valueTwo\"");
	if (!masked && has_two && json_integer_value(two) != 0)
		return kn_pdoc_fail(
		    d, at, false, e, "\"valueTwo\" goes with SCMP_CMP_MASKED_EQ only");
	return 0;
}

static int
check_rule(const struct kn_pdoc *d, json_t *r, const char *at, struct kn_err *e)
{
	char where[KN_POLICY_POINTER_MAX];
	const char *action = json_string_value(json_object_get(r, "action"));
	json_t *ret = json_object_get(r, "errnoRet");
	json_t *args = json_object_get(r, "args");
	int rc = 0;
	if (json_array_size(json_object_get(r, "names")) == 0)
		rc = kn_pdoc_fail(d, at, false, e, "a rule needs \"names\"");
	if (!action)
		rc = kn_pdoc_fail(d, at, false, e, "a rule needs \"action\"");
	else if (ret && !json_is_null(ret) && strcmp(action, "SCMP_ACT_ERRNO") != 0) {
		snprintf(where, sizeof where, "%.200s/errnoRet", at);
		rc = kn_pdoc_fail(d, where, true, e, "goes with SCMP_ACT_ERRNO only");
	}
	for (size_t i = 0; i < json_array_size(args); i++) {
		snprintf(where, sizeof where, "%.200s/args/%zu", at, i);
		if (json_is_object(json_array_get(args, i)) &&
		    check_arg(d, json_array_get(args, i), where, e) < 0)
			rc = -1;
	}
	return rc;
}

static bool
is_env_name(const char *s)
{
	if (!*s || (*s >= '0' && *s <= '9'))
		return false;
	for (; *s; s++)
		if (*s == '=' || *s <= ' ' || *s == 0x7f)
			return false;
	return true;
}

static int
check_environment(const struct kn_pdoc *d, struct kn_err *e)
{
	char at[KN_POLICY_POINTER_MAX];
	const char *name;
	json_t *v, *set = kn_pointer_get(d->root, "/environment/set");
	static const char *const lists[] = { "/environment/inherit",
		"/permissions/env" };
	int rc = 0;
	json_object_foreach(set, name, v)
	{
		if (!is_env_name(name) && kn_pointer_add(at, "/environment/set", name))
			rc = kn_pdoc_fail(d, at, true, e, "is not a variable's name");
	}
	for (size_t l = 0; l < 2; l++) {
		json_t *names = kn_pointer_get(d->root, lists[l]);
		for (size_t i = 0; i < json_array_size(names); i++) {
			snprintf(at, sizeof at, "%s/%zu", lists[l], i);
			const char *s = json_string_value(json_array_get(names, i));
			if (s && !is_env_name(s))
				rc = kn_pdoc_fail(
				    d, at, false, e, "is not a variable's name");
		}
	}
	return rc;
}

static int
check_hostname(const struct kn_pdoc *d, struct kn_err *e)
{
	const char *s =
	    json_string_value(kn_pointer_get(d->root, "/identity/hostname"));
	if (!s)
		return 0;
	size_t n = strspn(
	    s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-.");
	if (n == 0 || n > 63 || s[n] || *s == '-' || *s == '.')
		return kn_pdoc_fail(d, "/identity/hostname", false, e,
		    "a host name is 1 to 63 letters, digits, dashes and dots");
	return 0;
}

/* Each element of a list that is one; null stands for one that has been refused. */
static int
check_each(const struct kn_pdoc *d, const char *list,
    int (*judge)(const struct kn_pdoc *d, json_t *v, const char *at, struct kn_err *e),
    struct kn_err *e)
{
	char at[KN_POLICY_POINTER_MAX];
	json_t *a = kn_pointer_get(d->root, list);
	int rc = 0;
	for (size_t i = 0; i < json_array_size(a); i++) {
		snprintf(at, sizeof at, "%.200s/%zu", list, i);
		if (json_is_object(json_array_get(a, i)) &&
		    judge(d, json_array_get(a, i), at, e) < 0)
			rc = -1;
	}
	return rc;
}

static int
check_files(
    const struct kn_pdoc *d, const char *const *lists, bool deny, struct kn_err *e)
{
	char at[KN_POLICY_POINTER_MAX];
	int rc = 0;
	for (; *lists; lists++) {
		json_t *a = kn_pointer_get(d->root, *lists);
		for (size_t i = 0; i < json_array_size(a); i++) {
			const char *s = json_string_value(json_array_get(a, i));
			const char *fault = s ? kn_fpath_fault(s, deny) : NULL;
			snprintf(at, sizeof at, "%s/%zu", *lists, i);
			if (fault)
				rc = kn_pdoc_fail(d, at, false, e, "%s", fault);
		}
	}
	return rc;
}

/* All are asked: a writer wants every mistake. What is wrong by the table has been
 * taken out before: members are absent, elements of lists null. */
int
kn_policy_check_items(const struct kn_pdoc *d, struct kn_err *e)
{
	int rc = check_each(d, "/filesystem/mounts", check_mount, e);
	rc |= check_each(d, "/seccomp/rules", check_rule, e);
	rc |= check_files(d, kn_files_read, false, e);
	rc |= check_files(d, kn_files_write, false, e);
	rc |= check_files(d, kn_files_deny, true, e);
	rc |= check_files(d, kn_files_deny_write, true, e);
	rc |= check_environment(d, e);
	rc |= kn_policy_check_network(d, e);
	rc |= check_hostname(d, e);
	return rc;
}
