/* sandbox/policy_learn.c: see policy_learn.h.
 *
 * Calls that need no condition are names of two rules, one for those that were seen
 * once; any other call is a rule of its own. "why" says how often it was seen, which is
 * all that is known in its favour.
 */
#include "sandbox/policy_learn.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sandbox/policy_int.h"

static const char why_more[] = "Learned.", why_once[] = "Learned; seen once.";

/* A rule without conditions, for calls by name; added where it is needed. */
static json_t *
plain_rule(json_t *rules, const char *why)
{
	json_t *r;
	size_t i;

	json_array_foreach(rules, i, r)
	{
		const char *has = json_string_value(json_object_get(r, "why"));

		if (!json_object_get(r, "args") && has && strcmp(has, why) == 0)
			return r;
	}
	r = json_pack(
	    "{s:[],s:s,s:s}", "names", "action", "SCMP_ACT_ALLOW", "why", why);
	return json_array_insert_new(rules, 0, r) == 0 ? r : NULL;
}

static bool
is_in(const json_t *list, const json_t *v)
{
	for (size_t i = 0; i < json_array_size(list); i++)
		if (json_equal(json_array_get(list, i), v))
			return true;
	return false;
}

static int
add_plain(json_t *rules, json_t *names, bool once)
{
	json_t *r = plain_rule(rules, once ? why_once : why_more);
	json_t *list = r ? json_object_get(r, "names") : NULL, *name;
	int rc = r ? 0 : -1;
	size_t i;

	json_array_foreach(names, i, name)
	{
		if (!is_in(list, name))
			rc |= json_array_append(list, name);
	}
	return rc;
}

/* Takes the rule. */
static int
add_rule(json_t *rules, json_t *rule_own, bool once)
{
	int rc = -1;

	if (rule_own && !json_object_get(rule_own, "args"))
		rc = add_plain(rules, json_object_get(rule_own, "names"), once);
	else if (rule_own)
		rc = json_object_set_new(
			 rule_own, "why", json_string(once ? why_once : why_more)) |
		     json_array_append(rules, rule_own);
	json_decref(rule_own);
	return rc;
}

static char *
text_of(const char *base, const char *what, json_t *rules_own)
{
	json_t *o = json_pack("{s:i,s:s,s:s,s:{s:o}}", "version", 1, "description",
	    what, "extends", base, "seccomp", "rules", rules_own);
	char *text = o ? json_dumps(o, JSON_INDENT(2)) : NULL;

	json_decref(o);
	return text;
}

char *
kn_policy_learnt_text(
    const char *base, const char *what, const struct kn_learnt *v, size_t n)
{
	json_t *rules = json_array();
	int rc = rules ? 0 : -1;

	for (size_t i = 0; rc == 0 && i < n; i++)
		rc = add_rule(rules, json_loads(v[i].rule, 0, NULL), v[i].count == 1);
	if (rc == 0)
		return text_of(base, what, rules);
	json_decref(rules);
	return NULL;
}

/* ---- two as one ---- */

/* Its rules, if it is what kn_policy_learnt_text() makes; else NULL with e. */
static json_t *
rules_of(const struct kn_pdoc *d, struct kn_err *e)
{
	static const char *const known[] = { "$schema", "version", "description",
		"extends", "seccomp" };
	json_t *seccomp = json_object_get(d->root, "seccomp"), *v;
	const char *key;

	json_object_foreach(d->root, key, v)
	{
		bool ok = false;

		for (size_t i = 0; i < sizeof known / sizeof *known; i++)
			ok |= strcmp(known[i], key) == 0;
		if (!ok) {
			char pointer[64];

			snprintf(pointer, sizeof pointer, "/%.40s", key);
			kn_pdoc_fail(d, pointer, true, e,
			    "not of a learned policy: merge this yourself");
			return NULL;
		}
	}
	json_object_foreach(seccomp, key, v)
	{
		if (strcmp(key, "rules") != 0) {
			kn_pdoc_fail(d, "/seccomp", true, e,
			    "has more than rules: merge this yourself");
			return NULL;
		}
	}
	return json_object_get(seccomp, "rules");
}

static bool
same_call(json_t *a, json_t *b)
{
	return json_equal(json_object_get(a, "names"), json_object_get(b, "names")) &&
	       json_equal(json_object_get(a, "args"), json_object_get(b, "args"));
}

/* Rules of `from` that allow a call under conditions, and are not there yet; or were
 * seen once there, and now twice. */
static int
take_conditional(json_t *rules, json_t *r)
{
	json_t *have;
	size_t i;

	json_array_foreach(rules, i, have)
	{
		if (same_call(have, r))
			return json_object_set_new(have, "why", json_string(why_more));
	}
	return json_array_append_new(rules, json_deep_copy(r));
}

static int
take_name(json_t *rules, json_t *name, bool once)
{
	json_t *one = json_object_get(plain_rule(rules, why_once), "names");
	json_t *more = json_object_get(plain_rule(rules, why_more), "names");

	if (!one || !more)
		return -1;
	if (is_in(more, name))
		return 0;
	for (size_t i = 0; i < json_array_size(one); i++) {
		if (!json_equal(json_array_get(one, i), name))
			continue;
		return json_array_append(more, name) | json_array_remove(one, i);
	}
	return json_array_append(once ? one : more, name);
}

static int
take(json_t *rules, const struct kn_pdoc *d, json_t *from, struct kn_err *e)
{
	json_t *r, *name;
	size_t i, j;
	int rc = 0;

	json_array_foreach(from, i, r)
	{
		const char *action = json_string_value(json_object_get(r, "action"));
		const char *why = json_string_value(json_object_get(r, "why"));
		char pointer[64];

		snprintf(pointer, sizeof pointer, "/seccomp/rules/%zu", i);
		if (!action || strcmp(action, "SCMP_ACT_ALLOW") != 0)
			return kn_pdoc_fail(d, pointer, false, e,
			    "not of a learned policy: its rules allow");
		if (json_object_get(r, "args")) {
			rc |= take_conditional(rules, r);
			continue;
		}
		json_array_foreach(json_object_get(r, "names"), j, name)
		{
			rc |= take_name(rules, name, why && strcmp(why, why_once) == 0);
		}
	}
	return rc ? kn_err_set(e, KN_EK_HOST, "out of memory") : 0;
}

/* A rule that names nothing is none. */
static void
drop_empty(json_t *rules)
{
	for (size_t i = json_array_size(rules); i-- > 0;)
		if (json_array_size(
			json_object_get(json_array_get(rules, i), "names")) == 0)
			json_array_remove(rules, i);
}

static char *
merge(struct kn_pdoc d[2], struct kn_err *e)
{
	const char *base[2], *what[2];
	json_t *rules = json_array();
	char *text = NULL, both[256];

	for (int i = 0; i < 2; i++) {
		json_t *from = rules_of(&d[i], e);

		base[i] = json_string_value(json_object_get(d[i].root, "extends"));
		what[i] = json_string_value(json_object_get(d[i].root, "description"));
		if (!base[i]) {
			kn_pdoc_fail(&d[i], "", false, e,
			    "not of a learned policy: it extends nothing");
			goto out;
		}
		if (!from || take(rules, &d[i], from, e) < 0)
			goto out;
	}
	if (strcmp(base[0], base[1]) != 0) {
		kn_pdoc_fail(&d[1], "/extends", false, e,
		    "is \"%.60s\", and that of %.60s \"%.60s\": learn both on one base",
		    base[1], d[0].label, base[0]);
		goto out;
	}
	drop_empty(rules);
	snprintf(both, sizeof both, "%.120s | %.120s", what[0] ? what[0] : "",
	    what[1] ? what[1] : "");
	text = text_of(base[0], both, rules);
	rules = NULL;
	if (!text)
		kn_err_set(e, KN_EK_HOST, "out of memory");
out:
	json_decref(rules);
	return text;
}

char *
kn_policy_learnt_merge(const char *a, const char *b, struct kn_err *e)
{
	struct kn_pdoc d[2] = { 0 };
	char *text = NULL;

	if (kn_pdoc_open(&d[0], a, e) == 0 && kn_pdoc_open(&d[1], b, e) == 0 &&
	    kn_policy_check_doc(&d[0], e) == 0 && kn_policy_check_doc(&d[1], e) == 0)
		text = merge(d, e);
	kn_pdoc_fini(&d[0]);
	kn_pdoc_fini(&d[1]);
	return text;
}
