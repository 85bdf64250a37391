/* cmd/opt_policy.c: options, and the environment that stands for some of them -> the
 * policy and the pool that they ask for.
 */
#include <errno.h>
#include <knit/pool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd/cmd.h"
#include "cmd/opt.h"
#include "ipc/err.h"

static int
add(struct knit_policy *p, const struct kn_opt_src *s, struct knit_error *e)
{
	switch (s->type) {
	case KN_OPT_NAMED:
		return knit_policy_add(p, s->text, e);
	case KN_OPT_SET:
		return knit_policy_assign(p, s->text, e);
	case KN_OPT_VALUE:
		return knit_policy_set(p, s->pointer, s->text, e);
	case KN_OPT_MOUNT:
		break;
	}
	return knit_policy_bind(p, s->text, s->at, s->writable, e);
}

/* errno says why access() did not find it. */
static void
hint_file(struct kn_err *e, const char *path)
{
	e->sys = errno;
	kn_opt_hint_file(e, path);
}

/* "judge.json", where "judge" is what there is. */
static bool
is_preset_file(const char *name)
{
	char bare[40];
	size_t n = strlen(name) - strlen(".json");
	struct knit_policy *p;
	bool is;

	if (strchr(name, '/') || n >= sizeof bare)
		return false;
	memcpy(bare, name, n);
	bare[n] = '\0';
	p = knit_policy_new(bare);
	is = p && knit_policy_check(p, NULL) == 0;
	knit_policy_free(p);
	return is;
}

void
kn_opt_hint_policy(struct kn_err *e, const char *name)
{
	size_t n = strlen(name);
	bool json = n > 5 && strcmp(name + n - 5, ".json") == 0;

	if (!json && !strchr(name, '/')) {
		if (e->kind == KN_EK_CONFIG && access(name, F_OK) == 0) {
			e->hint[0] = '\0';
			kn_err_hint(e,
			    "for the file of that name in this directory: --policy "
			    "./%s",
			    name);
		}
	} else if (access(name, R_OK) < 0) {
		int sys = errno;

		if (json && is_preset_file(name))
			kn_err_hint(e, "the preset's name is %.*s, without .json",
			    (int)n - 5, name);
		errno = sys;
		hint_file(e, name);
	}
}

void
kn_opt_hint_sources(const struct kn_run_opts *o, struct kn_err *e)
{
	for (size_t i = 0; i < o->src_n; i++) {
		if (o->src[i].type == KN_OPT_NAMED)
			kn_opt_hint_policy(e, o->src[i].text);
		else if (o->src[i].type == KN_OPT_MOUNT && e->sys &&
			 access(o->src[i].text, F_OK) < 0)
			hint_file(e, o->src[i].text);
	}
	if (e->sys && o->module && access(o->module, R_OK) < 0)
		hint_file(e, o->module);
}

struct knit_policy *
kn_opt_policy(const struct kn_run_opts *o, struct kn_err *e)
{
	struct knit_policy *p = knit_policy_new("");
	struct knit_error err = KNIT_ERROR_NONE;
	int rc = 0;

	if (!p) {
		kn_err_set(e, KN_EK_HOST, "out of memory");
		return NULL;
	}
	for (size_t i = 0; rc == 0 && i < o->src_n; i++) {
		const struct kn_opt_src *s = &o->src[i];

		rc = add(p, s, &err);
		if (rc == 0 && s->type != KN_OPT_NAMED)
			rc = knit_policy_label(p, s->label, &err);
	}
	if (rc == 0 && knit_policy_check(p, &err) == 0)
		return p;
	kn_say_take(e, &err);
	kn_opt_hint_sources(o, e);
	knit_policy_free(p);
	return NULL;
}

/* ---- the pool's ---- */

static int
set_debug(
    struct knit_pool_options *how, const char *list, const char *from, struct kn_err *e)
{
	struct knit_error err = KNIT_ERROR_NONE;

	if (knit_debug_check(list, &err) < 0) {
		kn_say_take(e, &err);
		return kn_err_wrap(e, "%s", from);
	}
	how->debug = list;
	how->debug_fd = STDERR_FILENO;
	return 0;
}

/* Debug lines asked for by KNIT_DEBUG must not make every run fail when it holds
 * something else: only the option is strict. */
int
kn_opt_debug(const struct kn_run_opts *o, const struct kn_voice *v,
    struct knit_pool_options *how, struct kn_err *e)
{
	const char *list = getenv("KNIT_DEBUG");
	struct kn_err ignored = { 0 };

	if (o->log_json)
		how->flags |= KNIT_POOL_DEBUG_JSON;
	if (o->debug)
		return set_debug(how, o->debug, "--debug", e);
	if (list && *list && set_debug(how, list, "KNIT_DEBUG", &ignored) < 0)
		kn_say_error(v, &ignored);
	return 0;
}

static bool
is_one_of(const char *word, const char *const *words)
{
	while (*words && strcmp(*words, word) != 0)
		words++;
	return *words != NULL;
}

int
kn_opt_steal(
    struct knit_policy *policy, struct knit_pool_options *how, struct kn_err *e)
{
	static const char *const steals[] = { "auto", "shared", "brokered", "off",
		NULL };
	static const char *const claims[] = { "auto", "dekker", "cas-mask", NULL };
	const char *steal = getenv("KNIT_STEAL"), *claim = getenv("KNIT_STEAL_CLAIM");

	if (steal && *steal && !knit_policy_named(policy, "/pool/steal")) {
		how->steal = steal;
		if (!is_one_of(steal, steals))
			return kn_opt_refuse(e, "one of auto, shared, brokered and off",
			    "KNIT_STEAL: \"%.40s\" is not supported", steal);
	}
	if (claim && *claim && !knit_policy_named(policy, "/pool/claim")) {
		how->claim = claim;
		if (!is_one_of(claim, claims))
			return kn_opt_refuse(e, "one of auto, dekker and cas-mask",
			    "KNIT_STEAL_CLAIM: \"%.40s\" is not supported", claim);
	}
	return 0;
}
