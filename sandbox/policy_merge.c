/* sandbox/policy_merge.c: documents onto one another, in order: objects merge, arrays
 * append, null removes, anything else replaces. Two things have rules of their own
 * because their lists act on one another: the seccomp groups, and the layers that must
 * hold or may be degraded.
 */
#include <stdio.h>
#include <string.h>

#include "sandbox/policy_int.h"

int
kn_pmerge_init(struct kn_pmerge *m, struct kn_err *e)
{
	memset(m, 0, sizeof *m);
	m->doc = json_object();
	m->origins = json_object();
	m->groups = json_array();
	m->texts = json_object();
	m->from = json_object();
	m->turns = json_object();
	if (m->doc && m->origins && m->groups && m->texts && m->from && m->turns)
		return 0;
	kn_pmerge_fini(m);
	return kn_err_set(e, KN_EK_HOST, "merge policies: out of memory");
}

void
kn_pmerge_fini(struct kn_pmerge *m)
{
	json_decref(m->doc);
	json_decref(m->origins);
	json_decref(m->groups);
	json_decref(m->texts);
	json_decref(m->from);
	json_decref(m->turns);
	memset(m, 0, sizeof *m);
}

static int
no_memory(struct kn_err *e)
{
	return kn_err_set(e, KN_EK_HOST, "merge policies: out of memory");
}

/* Whose the value at `from` in d is. */
static json_t *
origin_of(const struct kn_pdoc *d, const char *from)
{
	bool profile = d->profile && strcmp(from, "/seccomp/profile") == 0;
	json_t *s = profile		    ? json_string(d->profile)
		    : d->text && !d->preset ? json_sprintf("%s:%s", d->label, from)
					    : json_string(d->label);
	/* A label may not be UTF-8. */
	return s ? s : json_string("a policy file");
}

/* `at` is where the value lands, `from` where it stood in d. */
static int
set_origin(struct kn_pmerge *m, const struct kn_pdoc *d, const char *at,
    const char *from, struct kn_err *e)
{
	return json_object_set_new(m->origins, at, origin_of(d, from)) < 0 ||
		       json_object_set_new(m->turns, at, json_integer(m->turn)) < 0
		   ? no_memory(e)
		   : 0;
}

static void
drop_origins(struct kn_pmerge *m, const char *at)
{
	size_t n = strlen(at);
	const char *name;
	json_t *v;
	void *tmp;
	json_object_foreach_safe(m->origins, tmp, name, v)
	{
		if (strncmp(name, at, n) == 0 && (name[n] == '/' || !name[n]))
			json_object_del(m->origins, name);
	}
}

/* Handled elsewhere, or about the document and not about the policy. */
static bool
is_special(const char *pointer)
{
	static const char *const special[] = { "/$schema", "/description", "/version",
		"/extends", "/require", "/allow_degraded", "/seccomp/groups" };
	for (size_t i = 0; i < sizeof special / sizeof *special; i++)
		if (strcmp(special[i], pointer) == 0)
			return true;
	return false;
}

static int
append(struct kn_pmerge *m, const struct kn_pdoc *d, json_t *dst, const json_t *src,
    const char *pointer, struct kn_err *e)
{
	char at[KN_POLICY_POINTER_MAX + 24], from[KN_POLICY_POINTER_MAX + 24];
	for (size_t i = 0; i < json_array_size(src); i++) {
		snprintf(at, sizeof at, "%s/%zu", pointer, json_array_size(dst));
		snprintf(from, sizeof from, "%s/%zu", pointer, i);
		if (json_array_append_new(dst, json_deep_copy(json_array_get(src, i))) <
		    0)
			return no_memory(e);
		if (set_origin(m, d, at, from, e) < 0)
			return -1;
	}
	return 0;
}

static int
merge(struct kn_pmerge *m, const struct kn_pdoc *d, json_t *dst, json_t *src,
    const char *pointer, struct kn_err *e)
{
	const char *name;
	json_t *v;
	char at[KN_POLICY_POINTER_MAX];
	json_object_foreach(src, name, v)
	{
		if (!kn_pointer_add(at, pointer, name))
			return kn_pdoc_fail(d, pointer, false, e, "a key is too long");
		if (is_special(at))
			continue;
		if (json_is_null(v)) {
			json_object_del(dst, name);
			drop_origins(m, at);
			continue;
		}
		json_t *have = json_object_get(dst, name);
		bool whole = strcmp(at, "/seccomp/profile") == 0;
		if (!whole && (json_is_object(v) || json_is_array(v))) {
			bool object = json_is_object(v);
			if (!have) {
				have = object ? json_object() : json_array();
				if (json_object_set_new(dst, name, have) < 0)
					return no_memory(e);
			}
			if (object ? merge(m, d, have, v, at, e) < 0
				   : append(m, d, have, v, at, e) < 0)
				return -1;
		} else if (json_object_set_new(dst, name, json_deep_copy(v)) < 0) {
			return no_memory(e);
		} else if (set_origin(m, d, at, at, e) < 0) {
			return -1;
		}
	}
	return 0;
}

/* ---- seccomp groups: replace, then add, then remove, document by document ---- */

static size_t
group_index(const json_t *groups, const char *name)
{
	size_t i = 0;
	while (i < json_array_size(groups) &&
	       strcmp(json_string_value(json_array_get(groups, i)), name) != 0)
		i++;
	return i;
}

static int
merge_groups(struct kn_pmerge *m, const struct kn_pdoc *d, struct kn_err *e)
{
	json_t *seccomp = json_object_get(d->root, "seccomp");
	json_t *g = json_object_get(seccomp, "groups");
	json_t *replace = json_object_get(g, "replace");
	json_t *add = json_object_get(g, "add");
	json_t *remove = json_object_get(g, "remove");
	if (json_is_null(seccomp) || json_is_null(g) || json_is_array(replace))
		json_array_clear(m->groups);
	for (int pass = 0; pass < 2; pass++) {
		json_t *from = pass == 0 ? replace : add;
		for (size_t i = 0; i < json_array_size(from); i++) {
			json_t *v = json_array_get(from, i);
			const char *name = json_string_value(v);
			if (group_index(m->groups, name) < json_array_size(m->groups))
				continue;
			if (json_array_append(m->groups, v) < 0)
				return no_memory(e);
			char at[64];
			snprintf(at, sizeof at, "/seccomp/groups/%s/%zu",
			    pass == 0 ? "replace" : "add", i);
			json_object_set_new(m->from, name, origin_of(d, at));
		}
	}
	for (size_t i = 0; i < json_array_size(remove); i++) {
		const char *name = json_string_value(json_array_get(remove, i));
		size_t at = group_index(m->groups, name);
		if (at < json_array_size(m->groups))
			json_array_remove(m->groups, at);
	}
	return 0;
}

/* ---- layers ---- */

static uint32_t
layer_bits(const json_t *list)
{
	uint32_t bits = 0;
	for (size_t i = 0; i < json_array_size(list); i++) {
		int l = kn_layer_by_name(json_string_value(json_array_get(list, i)));
		if (l >= 0)
			bits |= 1u << l;
	}
	return bits;
}

/* A memory limit that somebody asked for is enforced or refused: watching it from
 * outside lets a task overshoot, and only a cgroup counts what it shares. Processes and
 * CPU time need no cgroup to be exact. */
static bool
names_memory(const json_t *root)
{
	static const char *const keys[] = { "/limits/task/memory",
		"/limits/worker/memory" };
	for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
		json_t *v = kn_pointer_get((json_t *)(uintptr_t)root, keys[i]);
		if (v && !json_is_null(v) && kn_policy_size_of(v) > 0)
			return true;
	}
	return false;
}

/* A share of the processors is the cgroup's alone to give. */
static bool
names_cpus(const json_t *root)
{
	json_t *v = kn_pointer_get((json_t *)(uintptr_t)root, "/limits/task/cpus");
	return json_is_number(v) && kn_policy_thousandths(v) > 0;
}

/* A list of programs is kept by Landlock; an empty one is not (sandbox/filter_table.c).
 */
static bool
names_programs(const json_t *root)
{
	return json_array_size(
		   kn_pointer_get((json_t *)(uintptr_t)root, "/permissions/run")) > 0;
}

/* Who names the launcher without namespaces accepts that there are none, and relies on
 * the wall that is left around files; unless d itself says otherwise. */
static bool
names_direct(const json_t *root)
{
	const char *type = json_string_value(
	    kn_pointer_get((json_t *)(uintptr_t)root, "/launcher/type"));
	return type && strcmp(type, "direct") == 0;
}

/* Where d names a layer: in a list, or by asking for what needs it. */
static json_t *
layer_origin(const struct kn_pdoc *d, enum kn_layer l, uint32_t listed)
{
	static const char *const lists[] = { "require", "allow_degraded" };
	static const char *const memory[] = { "/limits/task/memory",
		"/limits/worker/memory" };
	for (int i = 0; i < 2 && (listed & (1u << l)); i++) {
		json_t *a = json_object_get(d->root, lists[i]);
		for (size_t at = 0; at < json_array_size(a); at++) {
			const char *s = json_string_value(json_array_get(a, at));
			if (kn_layer_by_name(s) == (int)l) {
				char from[40];
				snprintf(from, sizeof from, "/%s/%zu", lists[i], at);
				return origin_of(d, from);
			}
		}
	}
	if (l == KN_LAYER_NAMESPACES ||
	    (l == KN_LAYER_LANDLOCK && names_direct(d->root)))
		return origin_of(d, "/launcher/type");
	if (l == KN_LAYER_CG_CPU)
		return origin_of(d, "/limits/task/cpus");
	if (l != KN_LAYER_CG_MEMORY)
		return origin_of(
		    d, names_programs(d->root) ? "/permissions/run" : "/landlock");
	return origin_of(d, memory[!kn_pointer_get(d->root, memory[0])]);
}

static int
merge_layers(struct kn_pmerge *m, const struct kn_pdoc *d, struct kn_err *e)
{
	json_t *require = json_object_get(d->root, "require");
	json_t *allow = json_object_get(d->root, "allow_degraded");
	json_t *landlock = json_object_get(d->root, "landlock");
	uint32_t req = layer_bits(require), may = layer_bits(allow);
	if (req & may)
		return kn_pdoc_fail(d, "/allow_degraded", false, e,
		    "%s is also in \"require\"",
		    kn_layer_name((enum kn_layer)__builtin_ctz(req & may)));
	if (json_is_null(require))
		m->require = 0;
	if (json_is_null(allow))
		m->allow = 0;
	uint32_t named = req;
	if (names_memory(d->root))
		named |= 1u << KN_LAYER_CG_MEMORY;
	if (names_cpus(d->root))
		named |= 1u << KN_LAYER_CG_CPU;
	if (json_is_string(landlock) && strcmp(json_string_value(landlock), "on") == 0)
		named |= 1u << KN_LAYER_LANDLOCK;
	if (names_programs(d->root))
		named |= 1u << KN_LAYER_LANDLOCK;
	if (names_direct(d->root)) {
		named |= (1u << KN_LAYER_LANDLOCK) & ~may;
		may |= (1u << KN_LAYER_NAMESPACES) & ~req;
	}
	for (uint32_t l = 0; l < KN_LAYER_N; l++)
		if ((named | may) & (1u << l))
			json_object_set_new(m->from, kn_layer_name((enum kn_layer)l),
			    layer_origin(d, (enum kn_layer)l, req | may));
	m->require = (m->require | named) & ~may;
	m->allow = (m->allow & ~named) | may;
	return 0;
}

int
kn_pmerge_add(struct kn_pmerge *m, const struct kn_pdoc *d, struct kn_err *e)
{
	m->turn++;
	if (merge_groups(m, d, e) < 0 || merge_layers(m, d, e) < 0)
		return -1;
	/* For places in it; a label that is not UTF-8 goes without. */
	if (d->text && !d->preset)
		json_object_set_new(m->texts, d->label, json_stringn(d->text, d->n));
	return merge(m, d, m->doc, d->root, "", e);
}

static json_t *
layer_list(uint32_t bits)
{
	json_t *a = json_array();
	for (int l = 0; l < KN_LAYER_N; l++)
		if (bits & (1u << l))
			json_array_append_new(
			    a, json_string(kn_layer_name((enum kn_layer)l)));
	return a;
}

/* The origins of a list whose elements are named in `from`. */
static void
list_origins(struct kn_pmerge *m, const char *pointer)
{
	json_t *a = kn_pointer_get(m->doc, pointer);
	char at[64];
	for (size_t i = 0; i < json_array_size(a); i++) {
		json_t *s =
		    json_object_get(m->from, json_string_value(json_array_get(a, i)));
		snprintf(at, sizeof at, "%s/%zu", pointer, i);
		if (s)
			json_object_set(m->origins, at, s);
	}
}

int
kn_pmerge_end(struct kn_pmerge *m, struct kn_err *e)
{
	json_t *seccomp = json_object_get(m->doc, "seccomp");
	if (!seccomp) {
		seccomp = json_object();
		if (json_object_set_new(m->doc, "seccomp", seccomp) < 0)
			return no_memory(e);
	}
	if (json_object_set_new(
		seccomp, "groups", json_pack("{s:O}", "replace", m->groups)) < 0 ||
	    json_object_set_new(m->doc, "version", json_integer(1)) < 0 ||
	    json_object_set_new(m->doc, "extends", json_null()) < 0 ||
	    json_object_set_new(m->doc, "require", layer_list(m->require)) < 0 ||
	    json_object_set_new(m->doc, "allow_degraded", layer_list(m->allow)) < 0)
		return no_memory(e);
	list_origins(m, "/require");
	list_origins(m, "/allow_degraded");
	list_origins(m, "/seccomp/groups/replace");
	return 0;
}
