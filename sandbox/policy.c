/* sandbox/policy.c: sources in order -> one immutable policy.
 *
 * Order: the base (preset "default", unless a document says extends: null), then named
 * documents with what they extend, then flags. A document that comes up a second time
 * through another extends chain is not applied again, so that naming two policies on
 * the same base does not reset what the first one set.
 */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ipc/near.h"
#include "sandbox/policy_files.h"

enum { KN_EXTENDS_MAX = 16, KN_SOURCES_MAX = 64 };

/* The JSON files of policies/, embedded by the Makefile. */
#define PRESET(name) \
	extern const char kn_preset_##name[]; \
	extern const char kn_preset_##name##_end[];
PRESET(default)
PRESET(strict)
PRESET(compute)
PRESET(python)
PRESET(node)
PRESET(judge)
PRESET(convert)
PRESET(build)
PRESET(container)
#undef PRESET

static const struct preset {
	const char *name, *from, *to;
} presets[] = {
#define PRESET(name) { #name, kn_preset_##name, kn_preset_##name##_end },
	PRESET(default) PRESET(strict) PRESET(compute) PRESET(python) PRESET(node)
	    PRESET(judge) PRESET(convert) PRESET(build) PRESET(container)
#undef PRESET
};
static const char *const preset_names[] = { "default", "strict", "compute", "python",
	"node", "judge", "convert", "build", "container", NULL };
_Static_assert(
    sizeof preset_names / sizeof *preset_names == sizeof presets / sizeof *presets + 1,
    "a name per preset");

const char *const *
kn_policy_presets(void)
{
	return preset_names;
}

int
kn_pdoc_preset(struct kn_pdoc *d, const char *name, struct kn_err *e)
{
	for (size_t i = 0; i < sizeof presets / sizeof *presets; i++) {
		const struct preset *s = &presets[i];
		if (strcmp(s->name, name) != 0)
			continue;
		d->preset = true;
		d->n = (size_t)(s->to - s->from);
		d->text = strndup(s->from, d->n);
		d->dir = strdup("/");
		if (asprintf(&d->label, "preset %s", name) < 0)
			d->label = NULL;
		if (!d->text || !d->dir || !d->label)
			return kn_err_set(e, KN_EK_HOST, "policy: out of memory");
		return kn_pdoc_parse(d, e);
	}
	char clean[64];
	kn_err_printable(clean, sizeof clean, name, (int)strnlen(name, 60));
	const char *near = kn_near_word(preset_names, name);
	if (near)
		kn_err_set(e, KN_EK_CONFIG,
		    "unknown policy \"%s\"; did you mean \"%s\"?", clean, near);
	else
		kn_err_set(e, KN_EK_CONFIG, "unknown policy \"%s\"", clean);
	kn_err_hint(e, "knit-sandbox policy list has the presets; a file's name has a "
		       "'/' or ends in .json");
	return -1;
}

/* ---- the load in progress ---- */

struct load {
	struct kn_pmerge merge;
	struct kn_policy_notes *notes;
	char *seen[KN_SOURCES_MAX]; /* identities of documents applied */
	size_t seen_n;
};

static bool
is_file_name(const char *name)
{
	size_t n = strlen(name);
	return strchr(name, '/') || (n > 5 && strcmp(name + n - 5, ".json") == 0);
}

static bool
was_seen(const struct load *l, const char *id)
{
	for (size_t i = 0; i < l->seen_n; i++)
		if (strcmp(l->seen[i], id) == 0)
			return true;
	return false;
}

/* What is wrong with a document that d names, at the place where d names it; of what is
 * wrong in it there is a note already. */
static void
blame(const struct kn_pdoc *d, const char *pointer, size_t noted, struct kn_err *e)
{
	const struct kn_err inner = *e;

	if (d->notes && d->notes->n > noted)
		return;

	kn_pdoc_fail(d, pointer, false, e, "%s", inner.msg);
	e->sys = inner.sys;
	memcpy(e->hint, inner.hint, sizeof e->hint);
}

/* Relative paths of a document, from the document's folder. Purely textual: links are
 * not followed here, and the launcher refuses them when it opens the source. */
static json_t *
absolute(const struct kn_pdoc *d, const char *path)
{
	char *whole = NULL, *out;
	size_t n = 0;
	if (*path == '/')
		whole = strdup(path);
	else if (!d->dir || asprintf(&whole, "%s/%s", d->dir, path) < 0)
		whole = NULL;
	out = whole ? malloc(strlen(whole) + 2) : NULL;
	for (const char *p = whole; out && *p;) {
		size_t len = strcspn(p += *p == '/', "/");
		if (len == 2 && memcmp(p, "..", 2) == 0) {
			while (n > 0 && out[--n] != '/')
				;
		} else if (len > 0 && !(len == 1 && *p == '.')) {
			out[n++] = '/';
			memcpy(out + n, p, len);
			n += len;
		}
		p += len;
	}
	if (out && n == 0)
		out[n++] = '/';
	json_t *s = out ? json_stringn(out, n) : NULL;
	free(whole);
	free(out);
	return s;
}

static int
make_absolute(const struct kn_pdoc *d, struct kn_err *e)
{
	json_t *mounts = kn_pointer_get(d->root, "/filesystem/mounts");
	json_t *paths = kn_pointer_get(d->root, "/filesystem/task_paths");
	json_t *pool = kn_pointer_get(d->root, "/pool");
	const char *module = json_string_value(json_object_get(pool, "module"));
	json_t *launcher = kn_pointer_get(d->root, "/launcher");
	const char *rootfs = json_string_value(json_object_get(launcher, "rootfs"));
	int rc = 0;
	if (module && *module)
		rc = json_object_set_new(pool, "module", absolute(d, module));
	if (rc == 0 && rootfs && *rootfs)
		rc = json_object_set_new(launcher, "rootfs", absolute(d, rootfs));
	for (size_t i = 0; i < json_array_size(mounts) && rc == 0; i++) {
		json_t *m = json_array_get(mounts, i);
		for (int k = 0; k < 4 && rc == 0; k++) {
			static const char *const key[] = { "bind", "overlay", "copy",
				"out" };
			const char *s = json_string_value(json_object_get(m, key[k]));
			if (s && *s)
				rc = json_object_set_new(m, key[k], absolute(d, s));
		}
	}
	for (size_t i = 0; i < json_array_size(paths) && rc == 0; i++) {
		const char *s = json_string_value(json_array_get(paths, i));
		rc = json_array_set_new(paths, i, absolute(d, s));
	}
	if (rc == 0 && kn_permissions_absolute(d, e) < 0)
		return -1;
	return rc < 0 ? kn_err_set(e, KN_EK_CONFIG,
			    "%s: a path cannot be made absolute", d->label)
		      : 0;
}

/* A profile in a file of its own: read it, and put it in its name's place. */
static int
read_profile(struct kn_pdoc *d, struct kn_err *e)
{
	json_t *seccomp = json_object_get(d->root, "seccomp");
	const char *name = json_string_value(json_object_get(seccomp, "profile"));
	struct kn_pdoc f = { .notes = d->notes, .ordinal = d->ordinal };
	size_t noted = d->notes ? d->notes->n : 0;
	if (!name)
		return 0;
	json_t *path = absolute(d, name);
	int rc = path ? kn_pdoc_open(&f, json_string_value(path), e)
		      : kn_err_set(e, KN_EK_CONFIG,
			    "%s: a path cannot be made absolute", d->label);
	if (rc < 0)
		blame(d, "/seccomp/profile", noted, e);
	if (rc == 0)
		rc = kn_profile_check(&f, "", f.root, e);
	if (rc == 0 && (json_object_set(seccomp, "profile", f.root) < 0 ||
			   !(d->profile = strdup(f.label))))
		rc = kn_err_set(e, KN_EK_HOST, "policy: out of memory");
	json_decref(path);
	kn_pdoc_fini(&f);
	return rc;
}

static int
apply(struct load *l, struct kn_pdoc *d, struct kn_err *e)
{
	char *profile;
	if (make_absolute(d, e) < 0 || read_profile(d, e) < 0)
		return -1;
	profile = d->profile ? realpath(d->profile, NULL) : NULL;
	if (profile && l->seen_n < KN_SOURCES_MAX)
		l->seen[l->seen_n++] = profile;
	else
		free(profile);
	return kn_pmerge_add(&l->merge, d, e);
}

/* Who a document is, however it was named. */
static char *
identity(const char *name, bool file)
{
	char *id = NULL;
	if (file)
		return realpath(name, NULL);
	return asprintf(&id, "preset %s", name) < 0 ? NULL : id;
}

/* What d says it extends, as a name to look up: NULL for nothing. Caller frees. */
static char *
base_of(const struct kn_pdoc *d, bool first)
{
	json_t *x = json_object_get(d->root, "extends");
	const char *name = json_string_value(x);
	char *path = NULL;
	if (json_is_null(x))
		return NULL;
	if (!name)
		return first ? strdup("default") : NULL;
	if (!is_file_name(name) || *name == '/' || d->preset)
		return strdup(name);
	/* Relative to the file it stands in, and named as the caller named that. */
	const char *slash = strrchr(d->label, '/');
	int dir = slash ? (int)(slash - d->label + 1) : 2;
	while (strncmp(name, "./", 2) == 0)
		name += 2;
	if (asprintf(&path, "%.*s%s", dir, slash ? d->label : "./", name) < 0)
		return NULL;
	return path;
}

/* What is wrong and was said of no document: a note of it, too. */
static void
note_rest(struct load *l, size_t noted, size_t ordinal, const struct kn_err *e)
{
	if (l->notes->n == noted)
		kn_policy_note_add(l->notes, e, e->msg, "", ordinal, 0, 0);
}

struct chain {
	struct kn_pdoc doc[KN_EXTENDS_MAX];
	char *ids[KN_EXTENDS_MAX];
	size_t n;
};

/* May the next document be `id`? 1: it is merged already, and all below it. */
static int
next_fits(const struct load *l, const struct chain *c, const char *id, struct kn_err *e)
{
	for (size_t i = 0; id && i < c->n; i++)
		if (c->ids[i] && strcmp(c->ids[i], id) == 0)
			return kn_pdoc_fail(&c->doc[c->n - 1], "/extends", false, e,
			    "cycle: %s is already being extended", c->doc[i].label);
	if (id && was_seen(l, id))
		return 1;
	if (c->n == KN_EXTENDS_MAX)
		return kn_pdoc_fail(&c->doc[c->n - 1], "/extends", false, e,
		    "more than %d documents in a chain", KN_EXTENDS_MAX);
	return 0;
}

/* Read one more document; a mistake in it does not keep from reading what it extends.
 * -1: there is no way on. */
static int
read_next(struct load *l, struct chain *c, const char *name, bool *out_wrong,
    struct kn_err *e)
{
	struct kn_pdoc *d = &c->doc[c->n++];
	size_t noted = l->notes->n;
	d->notes = l->notes;
	d->ordinal = l->notes->docs++;
	int rc =
	    is_file_name(name) ? kn_pdoc_open(d, name, e) : kn_pdoc_preset(d, name, e);
	if (rc < 0 && c->n > 1)
		blame(&c->doc[c->n - 2], "/extends", noted, e);
	if (rc < 0)
		note_rest(l, noted, d->ordinal, e);
	/* What ships is checked by a test instead. */
	else if (!d->preset && kn_policy_check_doc(d, e) < 0)
		*out_wrong = true;
	return rc;
}

/* Open the chain, deepest last, then apply it from the base up. */
static int
load_named(struct load *l, const char *name, struct kn_err *e)
{
	struct chain c = { 0 };
	bool wrong = false;
	int rc = 0;
	char *next = strdup(name);
	while (rc == 0 && next) {
		char *id = identity(next, is_file_name(next));
		int fits = next_fits(l, &c, id, e);
		if (fits != 0) {
			free(id);
			rc = fits < 0 ? -1 : 0;
			break;
		}
		c.ids[c.n] = id;
		rc = read_next(l, &c, next, &wrong, e);
		free(next);
		next = rc == 0 ? base_of(&c.doc[c.n - 1], l->seen_n == 0) : NULL;
	}
	free(next);
	for (size_t i = c.n; i-- > 0;) {
		if (rc == 0 && !wrong)
			rc = apply(l, &c.doc[i], e);
		if (rc == 0 && c.ids[i] && l->seen_n < KN_SOURCES_MAX)
			l->seen[l->seen_n++] = c.ids[i];
		else
			free(c.ids[i]);
		kn_pdoc_fini(&c.doc[i]);
	}
	return rc < 0 || wrong ? -1 : 0;
}

static int
load_flag(struct load *l, const struct kn_policy_src *s, struct kn_err *e)
{
	struct kn_pdoc d = { .notes = l->notes, .ordinal = l->notes->docs++ };
	size_t noted = l->notes->n;
	int rc = kn_pdoc_flag(&d, s, e);
	if (rc == 0)
		rc = kn_policy_check_doc(&d, e);
	if (rc == 0)
		rc = apply(l, &d, e);
	if (rc < 0)
		note_rest(l, noted, d.ordinal, e);
	kn_pdoc_fini(&d);
	return rc;
}

static int
load_all(
    struct load *l, const struct kn_policy_src *src, size_t src_n, struct kn_err *e)
{
	size_t named = 0;
	int rc = 0;
	for (size_t i = 0; i < src_n; i++)
		if (src[i].type == KN_SRC_NAMED) {
			named++;
			if (load_named(l, src[i].text, e) < 0)
				rc = -1;
		}
	if (named == 0 && load_named(l, "default", e) < 0)
		rc = -1;
	for (size_t i = 0; i < src_n; i++)
		if (src[i].type != KN_SRC_NAMED && load_flag(l, &src[i], e) < 0)
			rc = -1;
	return rc < 0 ? -1 : kn_pmerge_end(&l->merge, e);
}

int
kn_policy_load_noted(const struct kn_policy_src *src, size_t src_n,
    struct kn_policy **out, struct kn_policy_notes *notes, struct kn_err *e)
{
	struct load l = { .notes = notes };
	struct kn_pol *p = calloc(1, sizeof *p);
	*notes = (struct kn_policy_notes){ 0 };
	if (!p)
		return kn_err_set(e, KN_EK_HOST, "policy: out of memory");
	int rc = kn_pmerge_init(&l.merge, e);
	if (rc == 0)
		rc = load_all(&l, src, src_n, e);
	if (rc == 0) {
		p->doc = json_incref(l.merge.doc);
		p->origins = json_incref(l.merge.origins);
		p->texts = json_incref(l.merge.texts);
		p->notes = notes;
		p->read = l.seen;
		p->read_n = l.seen_n;
		p->turns = l.merge.turns;
		rc = kn_policy_build(p, e);
		p->notes = NULL;
		p->read = NULL;
		p->turns = NULL;
	}
	for (size_t i = 0; i < l.seen_n; i++)
		free(l.seen[i]);
	kn_pmerge_fini(&l.merge);
	if (rc == 0) {
		*out = &p->pub;
		return 0;
	}
	kn_policy_free(&p->pub);
	kn_policy_notes_sort(notes);
	if (notes->n > 0 && e)
		*e = *notes->v[0].err;
	return -1;
}

int
kn_policy_load(const struct kn_policy_src *src, size_t src_n, struct kn_policy **out,
    struct kn_err *e)
{
	struct kn_policy_notes notes;
	int rc = kn_policy_load_noted(src, src_n, out, &notes, e);

	kn_policy_notes_fini(&notes);
	return rc;
}
