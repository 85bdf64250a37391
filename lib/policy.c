/* lib/policy.c: a policy: what it is merged from, then the merged one, counted by the
 * pools that use it.
 */
#include <stdlib.h>
#include <string.h>

#include "lib/lib.h"

struct source {
	enum kn_policy_src_type type;
	char *text, *pointer, *at, *label;
	bool writable;
};

struct knit_policy {
	pthread_mutex_t lock;
	unsigned refs;
	struct source *src;
	size_t src_n;
	bool checked;
	struct kn_policy *p; /* NULL after a check: wrong */
	struct kn_err wrong;
};

static void
source_fini(struct source *s)
{
	free(s->text);
	free(s->pointer);
	free(s->at);
	free(s->label);
}

/* Takes what s owns. */
static int
add(struct knit_policy *policy, struct source *s, struct knit_error *e)
{
	struct source *v = NULL;
	bool late;

	pthread_mutex_lock(&policy->lock);
	late = policy->checked;
	if (!late)
		v = realloc(policy->src, (policy->src_n + 1) * sizeof *v);
	if (v) {
		policy->src = v;
		v[policy->src_n++] = *s;
	}
	pthread_mutex_unlock(&policy->lock);
	if (v)
		return 0;
	source_fini(s);
	if (late)
		return kn_lib_fail(
		    e, KNIT_E_USAGE, "the policy has been checked: it is as it is");
	return kn_lib_nomem(e);
}

struct knit_policy *
knit_policy_new(const char *name)
{
	struct knit_policy *policy = calloc(1, sizeof *policy);

	if (!policy)
		return NULL;
	policy->refs = 1;
	pthread_mutex_init(&policy->lock, NULL);
	if (name && !*name)
		return policy;
	if (knit_policy_add(policy, name ? name : "default", NULL) == 0)
		return policy;
	knit_policy_free(policy);
	return NULL;
}

int
knit_policy_add(struct knit_policy *policy, const char *name, struct knit_error *e)
{
	struct source s = { .type = KN_SRC_NAMED };

	if (!policy || !name)
		return kn_lib_fail(e, KNIT_E_USAGE, "knit_policy_add: NULL");
	s.text = strdup(name);
	return s.text ? add(policy, &s, e) : kn_lib_nomem(e);
}

int
knit_policy_set(struct knit_policy *policy, const char *pointer, const char *value,
    struct knit_error *e)
{
	struct source s = { .type = KN_SRC_VALUE };

	if (!policy || !pointer || !value)
		return kn_lib_fail(e, KNIT_E_USAGE, "knit_policy_set: NULL");
	s.pointer = strdup(pointer);
	s.text = strdup(value);
	if (s.pointer && s.text)
		return add(policy, &s, e);
	source_fini(&s);
	return kn_lib_nomem(e);
}

int
knit_policy_bind(struct knit_policy *policy, const char *source, const char *at,
    int writable, struct knit_error *e)
{
	struct source s = { .type = KN_SRC_MOUNT, .writable = writable != 0 };

	if (!policy || !source)
		return kn_lib_fail(e, KNIT_E_USAGE, "knit_policy_bind: NULL");
	s.text = strdup(source);
	s.at = at ? strdup(at) : NULL;
	if (s.text && (!at || s.at))
		return add(policy, &s, e);
	source_fini(&s);
	return kn_lib_nomem(e);
}

int
knit_policy_assign(
    struct knit_policy *policy, const char *assignment, struct knit_error *e)
{
	struct source s = { .type = KN_SRC_SET };

	if (!policy || !assignment)
		return kn_lib_fail(e, KNIT_E_USAGE, "knit_policy_assign: NULL");
	s.text = strdup(assignment);
	return s.text ? add(policy, &s, e) : kn_lib_nomem(e);
}

int
knit_policy_label(struct knit_policy *policy, const char *label, struct knit_error *e)
{
	char *own = label ? strdup(label) : NULL;
	struct source *last = NULL;

	if (!policy || !label)
		return kn_lib_fail(e, KNIT_E_USAGE, "knit_policy_label: NULL");
	if (!own)
		return kn_lib_nomem(e);
	pthread_mutex_lock(&policy->lock);
	if (!policy->checked && policy->src_n > 0) {
		last = &policy->src[policy->src_n - 1];
		free(last->label);
		last->label = own;
	}
	pthread_mutex_unlock(&policy->lock);
	if (last)
		return 0;
	free(own);
	return kn_lib_fail(e, KNIT_E_USAGE, "no addition to the policy to name");
}

static void
load(struct knit_policy *policy)
{
	struct kn_policy_src *src = calloc(policy->src_n + 1, sizeof *src);

	policy->checked = true;
	if (!src) {
		kn_err_set(&policy->wrong, KN_EK_HOST, "out of memory");
		return;
	}
	for (size_t i = 0; i < policy->src_n; i++) {
		const struct source *s = &policy->src[i];

		src[i] = (struct kn_policy_src){ .type = s->type,
			.text = s->text,
			.pointer = s->pointer,
			.at = s->at,
			.writable = s->writable,
			.label = s->label		   ? s->label
				 : s->type == KN_SRC_VALUE ? "set"
				 : s->type == KN_SRC_MOUNT ? "bind"
							   : s->text };
	}
	if (kn_policy_load(src, policy->src_n, &policy->p, &policy->wrong) < 0)
		policy->p = NULL;
	free(src);
}

int
knit_policy_check(struct knit_policy *policy, struct knit_error *e)
{
	int rc = 0;

	if (!policy)
		return kn_lib_fail(e, KNIT_E_USAGE, "no policy");
	pthread_mutex_lock(&policy->lock);
	if (!policy->checked)
		load(policy);
	if (!policy->p)
		rc = kn_lib_pass(e, &policy->wrong);
	pthread_mutex_unlock(&policy->lock);
	return rc;
}

char *
knit_policy_text(struct knit_policy *policy)
{
	return knit_policy_check(policy, NULL) < 0 ? NULL : kn_policy_text(policy->p);
}

const char *
knit_policy_hash(struct knit_policy *policy)
{
	const char *hash;

	if (knit_policy_check(policy, NULL) < 0)
		return NULL;
	pthread_mutex_lock(&policy->lock); /* made when first asked for */
	hash = kn_policy_hash(policy->p);
	pthread_mutex_unlock(&policy->lock);
	return hash;
}

char *
knit_policy_get(struct knit_policy *policy, const char *pointer)
{
	if (!pointer || knit_policy_check(policy, NULL) < 0)
		return NULL;
	return kn_policy_value(policy->p, pointer);
}

char *
knit_policy_word(struct knit_policy *policy, const char *pointer)
{
	const char *word;

	if (!pointer || knit_policy_check(policy, NULL) < 0)
		return NULL;
	word = kn_policy_word(policy->p, pointer);
	return word ? strdup(word) : NULL;
}

int
knit_policy_number(struct knit_policy *policy, const char *pointer, uint64_t *out)
{
	char *text = knit_policy_get(policy, pointer);
	size_t n = text ? strlen(text) : 0;
	const char *number = text;
	struct kn_err e = { 0 };
	int rc = 0;

	if (n > 2 && text[0] == '"') {
		text[n - 1] = '\0';
		number++;
	}
	if (number && out)
		rc = kn_policy_size(number, out, &e) == 0 ||
		     kn_policy_duration_ms(number, out, &e) == 0;
	free(text);
	return rc;
}

int
knit_policy_named(struct knit_policy *policy, const char *pointer)
{
	if (!pointer || knit_policy_check(policy, NULL) < 0)
		return 0;
	return kn_policy_named(policy->p, pointer);
}

/* One piece: the pointers, then what they point to. */
static const char **
copy_argv(const char *const *argv)
{
	size_t n = 0, bytes = 0;
	const char **v;
	char *to;

	for (; argv[n]; n++)
		bytes += strlen(argv[n]) + 1;
	v = malloc((n + 1) * sizeof *v + bytes);
	if (!v)
		return NULL;
	to = (char *)(v + n + 1);
	for (size_t i = 0; i < n; i++) {
		size_t len = strlen(argv[i]) + 1;

		v[i] = memcpy(to, argv[i], len);
		to += len;
	}
	v[n] = NULL;
	return v;
}

const char **
knit_policy_command(struct knit_policy *policy, struct knit_error *e)
{
	const char *const *argv;
	const char **own;
	struct kn_err err = { 0 };
	struct kn_host host;
	struct kn_sup *sup;

	if (knit_policy_check(policy, e) < 0)
		return NULL;
	if (kn_host_probe(&host, &err) < 0 ||
	    kn_sup_dry_run(policy->p, &host, &argv, &sup, &err) < 0) {
		kn_lib_pass(e, &err);
		return NULL;
	}
	own = copy_argv(argv);
	kn_sup_close(sup);
	if (!own)
		kn_lib_nomem(e);
	return own;
}

struct knit_policy *
kn_lib_policy_hold(struct knit_policy *policy, struct knit_error *e)
{
	if (knit_policy_check(policy, e) < 0)
		return NULL;
	pthread_mutex_lock(&policy->lock);
	policy->refs++;
	pthread_mutex_unlock(&policy->lock);
	return policy;
}

const struct kn_policy *
kn_lib_policy(const struct knit_policy *policy)
{
	return policy->p;
}

void
knit_policy_free(struct knit_policy *policy)
{
	unsigned refs;

	if (!policy)
		return;
	pthread_mutex_lock(&policy->lock);
	refs = --policy->refs;
	pthread_mutex_unlock(&policy->lock);
	if (refs > 0)
		return;
	for (size_t i = 0; i < policy->src_n; i++)
		source_fini(&policy->src[i]);
	free(policy->src);
	kn_policy_free(policy->p);
	pthread_mutex_destroy(&policy->lock);
	free(policy);
}
