/* sandbox/policy_schema.c: the key table as a JSON Schema (2020-12), for editors and
 * for checks without this program. What the table cannot say (which members of a mount
 * go together, cross limits) the schema leaves open; nothing it refuses is accepted
 * here.
 */
#include <string.h>

#include "sandbox/policy_int.h"

/* Takes v; nothing happens where o or v is missing: the whole is checked at the end. */
static void
put(json_t *o, const char *name, json_t *v)
{
	if (json_object_set_new(o, name, v) < 0)
		json_object_set_new(o, "out of memory", json_null());
}

/* Anything may be null: it removes what was there before. */
static json_t *
or_null(const char *type, bool element)
{
	return element ? json_string(type) : json_pack("[ss]", type, "null");
}

static json_t *
range(const struct kn_key *k)
{
	json_t *o = json_pack("{s:s}", "type", "integer");
	if (k->min != INT64_MIN)
		put(o, "minimum", json_integer(k->min));
	if (k->max != INT64_MAX)
		put(o, "maximum", json_integer(k->max));
	return o;
}

/* In the table in thousandths. */
static json_t *
fraction(const struct kn_key *k)
{
	return json_pack("{s:s,s:f,s:f}", "type", "number", "minimum",
	    (double)k->min / 1000, "maximum", (double)k->max / 1000);
}

static json_t *
number(const struct kn_key *k, bool element)
{
	json_t *any = json_array();
	json_array_append_new(any, k->type == KN_KEY_NUMBER ? fraction(k) : range(k));
	if (k->none && k->min > 0)
		json_array_append_new(any, json_pack("{s:i}", "const", 0));
	if (k->type == KN_KEY_SIZE)
		json_array_append_new(any, json_pack("{s:s,s:s}", "type", "string",
					       "pattern", "^[0-9]+[KkMmGg]?$"));
	if (!element)
		json_array_append_new(any, json_pack("{s:s}", "type", "null"));
	json_t *o = json_object();
	put(o, "anyOf", any);
	return o;
}

static json_t *
word(const struct kn_key *k, bool element)
{
	json_t *list = json_array(), *o = json_object();
	for (size_t i = 0; k->words[i]; i++)
		json_array_append_new(list, json_string(k->words[i]));
	if (!element)
		json_array_append_new(list, json_null());
	put(o, "enum", list);
	return o;
}

static json_t *
required(const char *path)
{
	if (!*path)
		return json_pack("[s]", "version");
	if (strcmp(path, "/seccomp/rules/*") == 0)
		return json_pack("[ss]", "names", "action");
	if (strcmp(path, "/seccomp/rules/*/args/*") == 0)
		return json_pack("[sss]", "index", "value", "op");
	return NULL;
}

static json_t *schema_of(const struct kn_key *k, bool element);

static json_t *
object(const struct kn_key *k, bool element)
{
	json_t *o = json_object(), *members = json_object();
	size_t n = strlen(k->path);
	put(o, "type", or_null("object", element));
	for (size_t i = 0; i < kn_policy_key_n; i++) {
		const char *p = kn_policy_keys[i].path;
		if (strncmp(p, k->path, n) == 0 && p[n] == '/' && p[n + 1] != '*' &&
		    !strchr(p + n + 1, '/'))
			put(members, p + n + 1, schema_of(&kn_policy_keys[i], false));
	}
	put(o, "properties", members);
	put(o, "additionalProperties", json_false());
	json_t *need = required(k->path);
	if (need)
		put(o, "required", need);
	return o;
}

static json_t *
schema_of(const struct kn_key *k, bool element)
{
	json_t *o = NULL;
	switch (k->type) {
	case KN_KEY_OBJECT:
		o = object(k, element);
		break;
	case KN_KEY_MAP:
		o = json_object();
		put(o, "type", or_null("object", element));
		put(o, "additionalProperties",
		    schema_of(kn_policy_key_child(k->path, "*"), false));
		break;
	case KN_KEY_LIST:
		o = json_object();
		put(o, "type", or_null("array", element));
		put(o, "items", schema_of(kn_policy_key_child(k->path, "*"), true));
		if (strcmp(k->path, "/capabilities") == 0) /* policy_caps.c */
			put(o, "maxItems", json_integer(0));
		break;
	case KN_KEY_WORD:
		o = word(k, element);
		break;
	case KN_KEY_BOOL:
		o = json_object();
		put(o, "type", or_null("boolean", element));
		break;
	case KN_KEY_TEXT:
		o = json_object();
		put(o, "type", or_null("string", element));
		break;
	case KN_KEY_INT:
	case KN_KEY_SIZE:
	case KN_KEY_NUMBER:
		o = number(k, element);
		break;
	case KN_KEY_PROFILE: /* its own format, told by its own check */
		o = json_pack("{s:[s,s,s]}", "type", "string", "object", "null");
		break;
	case KN_KEY_LATER: /* asks for nothing, or is refused */
		return json_pack("{s:[n[]]}", "enum");
	case KN_KEY_TYPE_N:
	default:
		return NULL;
	}
	put(o, "description", json_string(k->doc));
	return o;
}

char *
kn_policy_schema(void)
{
	json_t *all = json_pack("{s:s,s:s}", "$schema",
	    "https://json-schema.org/draft/2020-12/schema", "title",
	    "knit-sandbox policy");
	json_t *root = schema_of(kn_policy_key(""), true);
	char *text = NULL;
	if (all && root && json_object_update(all, root) == 0)
		text = json_dumps(all, JSON_INDENT(2) | JSON_REAL_PRECISION(12));
	json_decref(all);
	json_decref(root);
	return text;
}
