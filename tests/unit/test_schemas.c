/* tests/unit/test_schemas.c: the schemas of task and result lines say what the reader
 * and the writer do: same keys, and the same judgement on samples.
 *
 * A validator of the few words that our schemas use is here; a word it does not know
 * fails the test, so a schema cannot say something that nobody checks.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <fcntl.h>
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "ipc/err.h"
#include "ipc/fd.h"
#include "sandbox/policy.h"
#include "supervisor/report.h"
#include "supervisor/task.h"
#include "supervisor/task_line.h"

/* ---- the validator ---- */

static bool valid(json_t *root, json_t *s, json_t *v);

static bool
type_is(const char *type, json_t *v)
{
	if (strcmp(type, "object") == 0)
		return json_is_object(v);
	if (strcmp(type, "array") == 0)
		return json_is_array(v);
	if (strcmp(type, "string") == 0)
		return json_is_string(v);
	if (strcmp(type, "integer") == 0)
		return json_is_integer(v);
	if (strcmp(type, "number") == 0)
		return json_is_number(v);
	if (strcmp(type, "boolean") == 0)
		return json_is_boolean(v);
	if (strcmp(type, "null") == 0)
		return json_is_null(v);
	fail_msg("schema: unknown type %s", type);
	return false;
}

static bool
type_ok(json_t *want, json_t *v)
{
	json_t *one;
	size_t i;

	if (json_is_string(want))
		return type_is(json_string_value(want), v);
	json_array_foreach(want, i, one)
	{
		if (type_is(json_string_value(one), v))
			return true;
	}
	return false;
}

static unsigned
how_many(json_t *root, json_t *list, json_t *v)
{
	unsigned n = 0;
	json_t *one;
	size_t i;

	json_array_foreach(list, i, one) n += valid(root, one, v);
	return n;
}

static bool
properties_ok(json_t *root, json_t *s, json_t *v)
{
	json_t *known = json_object_get(s, "properties"), *value;
	json_t *rest = json_object_get(s, "additionalProperties");
	const char *key;

	json_object_foreach(v, key, value)
	{
		json_t *sub = json_object_get(known, key);

		if (!sub && json_is_false(rest))
			return false;
		if (!sub)
			sub = json_is_object(rest) ? rest : NULL;
		if (sub && !valid(root, sub, value))
			return false;
	}
	return true;
}

static bool
required_ok(json_t *list, json_t *v)
{
	json_t *one;
	size_t i;

	json_array_foreach(list, i, one)
	{
		if (!json_object_get(v, json_string_value(one)))
			return false;
	}
	return true;
}

static bool
matches(const char *pattern, const char *text)
{
	regex_t re;
	int r;

	assert_int_equal(regcomp(&re, pattern, REG_EXTENDED | REG_NOSUB), 0);
	r = regexec(&re, text, 0, NULL, 0);
	regfree(&re);
	return r == 0;
}

static bool
word_ok(json_t *root, json_t *s, const char *word, json_t *arg, json_t *v)
{
	static const char *const notes[] = { "$schema", "title", "description", "$defs",
		"additionalProperties", NULL };
	double n = json_number_value(v), limit = json_number_value(arg);
	json_t *one;
	size_t i;

	for (i = 0; notes[i]; i++) {
		if (strcmp(notes[i], word) == 0)
			return strcmp(word, "additionalProperties") != 0 ||
			       !json_is_object(v) || properties_ok(root, s, v);
	}
	if (strcmp(word, "$ref") == 0) {
		const char *name = json_string_value(arg) + strlen("#/$defs/");

		return valid(
		    root, json_object_get(json_object_get(root, "$defs"), name), v);
	}
	if (strcmp(word, "type") == 0)
		return type_ok(arg, v);
	if (strcmp(word, "properties") == 0)
		return !json_is_object(v) || properties_ok(root, s, v);
	if (strcmp(word, "required") == 0)
		return !json_is_object(v) || required_ok(arg, v);
	if (strcmp(word, "oneOf") == 0)
		return how_many(root, arg, v) == 1;
	if (strcmp(word, "anyOf") == 0)
		return how_many(root, arg, v) > 0;
	if (strcmp(word, "minimum") == 0)
		return !json_is_number(v) || n >= limit;
	if (strcmp(word, "minLength") == 0)
		return !json_is_string(v) || (double)json_string_length(v) >= limit;
	if (strcmp(word, "maxLength") == 0)
		return !json_is_string(v) || (double)json_string_length(v) <= limit;
	if (strcmp(word, "minItems") == 0)
		return !json_is_array(v) || (double)json_array_size(v) >= limit;
	if (strcmp(word, "maxItems") == 0)
		return !json_is_array(v) || (double)json_array_size(v) <= limit;
	if (strcmp(word, "pattern") == 0)
		return !json_is_string(v) ||
		       matches(json_string_value(arg), json_string_value(v));
	if (strcmp(word, "items") == 0) {
		json_array_foreach(v, i, one)
		{
			if (!valid(root, arg, one))
				return false;
		}
		return true;
	}
	if (strcmp(word, "enum") == 0) {
		json_array_foreach(arg, i, one)
		{
			if (json_equal(one, v))
				return true;
		}
		return false;
	}
	fail_msg("schema: unknown word %s", word);
	return false;
}

static bool
valid(json_t *root, json_t *s, json_t *v)
{
	const char *word;
	json_t *arg;

	assert_true(json_is_object(s));
	json_object_foreach(s, word, arg)
	{
		if (!word_ok(root, s, word, arg, v))
			return false;
	}
	return true;
}

static json_t *
schema(const char *name)
{
	char path[128];
	json_error_t e;
	json_t *s;

	snprintf(path, sizeof path, "policies/schemas/%s.schema.json", name);
	s = json_load_file(path, JSON_REJECT_DUPLICATES, &e);
	if (!s)
		fail_msg("%s:%d: %s (the test runs from the top of the tree)", path,
		    e.line, e.text);
	return s;
}

static json_t *
at(json_t *v, const char *path)
{
	char copy[128];

	snprintf(copy, sizeof copy, "%s", path);
	for (char *w = strtok(copy, " "); w; w = strtok(NULL, " "))
		v = json_object_get(v, w);
	if (!v)
		fail_msg("schema: nothing at %s", path);
	return v;
}

/* ---- tasks ---- */

static void
same_keys(json_t *properties, enum kn_line_keys which)
{
	const char *const *keys = kn_line_keys(which);
	size_t n = 0;

	for (; keys[n]; n++) {
		if (!json_object_get(properties, keys[n]))
			fail_msg("%s is read but not in the schema", keys[n]);
	}
	assert_int_equal(json_object_size(properties), n);
}

static void
schema_has_the_keys_of_the_reader(void **state)
{
	json_t *s = schema("task");

	(void)state;
	same_keys(at(s, "$defs task properties"), KN_LINE_KEYS_TASK);
	same_keys(at(s, "$defs call properties"), KN_LINE_KEYS_CALL);
	same_keys(
	    at(s, "$defs call properties timeouts properties"), KN_LINE_KEYS_TIMEOUTS);
	same_keys(at(s, "$defs call properties limits properties task properties"),
	    KN_LINE_KEYS_CALL_LIMITS);
	same_keys(at(s, "$defs file properties"), KN_LINE_KEYS_FILE);
	same_keys(at(s, "$defs task properties limits properties task properties"),
	    KN_LINE_KEYS_LIMITS);
	same_keys(
	    at(s, "$defs task properties timeouts properties"), KN_LINE_KEYS_TIMEOUTS);
	json_decref(s);
}

static bool
reader_accepts(const char *line)
{
	static const struct kn_policy policy = { .timeouts = { .hard_ms = 10000 } };
	const struct kn_line_rules rules = { .policy = &policy };
	struct kn_err e;
	struct kn_line l;
	bool ok = kn_line_parse(&rules, line, strlen(line), 1, &l, &e) == 0;

	kn_line_fini(&l);
	return ok;
}

static void
schema_and_reader_agree_on_samples(void **state)
{
	static const struct {
		const char *line;
		bool ok;
	} samples[] = {
		{ "{\"argv\":[\"x\"]}", true },
		{ "{\"cancel\":\"a\"}", true },
		{ "{\"id\":\"t\",\"after\":[\"c\"],\"argv\":[\"x\",\"\"],\"files\":{"
		  "\"a\":{\"content\":\"\"},\"b\":{\"content_b64\":\"\",\"mode\":"
		  "\"755\"},"
		  "\"c\":{\"path\":\"/x\"},\"d\":{\"from\":\"c/m\"}},\"keep\":[\"k\"],"
		  "\"collect\":[\"*\"],\"stdin\":\"\",\"env\":{\"A\":\"\"},\"limits\":{"
		  "\"task\":{\"memory\":\"1M\",\"pids\":3,\"core\":0}},"
		  "\"timeouts\":{\"hard_ms\":5}}",
		    true },
		{ "{}", false },
		{ "{\"argv\":[]}", false },
		{ "{\"argv\":\"x\"}", false },
		{ "{\"argv\":[\"x\"],\"cancel\":\"a\"}", false },
		{ "{\"argv\":[\"x\"],\"id\":\"\"}", false },
		{ "{\"argv\":[\"x\"],\"id\":5}", false },
		{ "{\"argv\":[\"x\"],\"nosuch\":5}", false },
		{ "{\"argv\":[\"x\"],\"files\":{\"a\":{}}}", false },
		{ "{\"argv\":[\"x\"],\"files\":{\"a\":{\"content\":\"\",\"path\":\"b\"}"
		  "}}",
		    false },
		{ "{\"argv\":[\"x\"],\"files\":{\"a\":{\"content\":\"\",\"mode\":\"9\"}"
		  "}}",
		    false },
		{ "{\"argv\":[\"x\"],\"env\":{\"A\":5}}", false },
		{ "{\"argv\":[\"x\"],\"limits\":{\"task\":{\"pids\":0}}}", false },
		{ "{\"argv\":[\"x\"],\"limits\":{\"task\":{\"pids\":1.5}}}", false },
		{ "{\"argv\":[\"x\"],\"limits\":{\"task\":{\"memory\":-1}}}", false },
		{ "{\"argv\":[\"x\"],\"limits\":{\"worker\":{}}}", false },
		{ "{\"argv\":[\"x\"],\"timeouts\":{\"claim_ms\":1}}", false },
	};
	json_t *s = schema("task");

	(void)state;
	for (size_t i = 0; i < sizeof samples / sizeof samples[0]; i++) {
		json_t *v = json_loads(samples[i].line, 0, NULL);

		assert_non_null(v);
		if (valid(s, s, v) != samples[i].ok)
			fail_msg("schema judges wrongly: %s", samples[i].line);
		if (reader_accepts(samples[i].line) != samples[i].ok)
			fail_msg("reader judges wrongly: %s", samples[i].line);
		json_decref(v);
	}
	json_decref(s);
}

/* ---- results ---- */

static void
check_result(json_t *s, const struct kn_report *rep, const struct kn_outcome *o)
{
	size_t n;
	char *text =
	    kn_report_result(rep, "t", o->verdict == KN_V_INVALID ? 3 : 0, o, &n);
	json_t *v = json_loads(text, JSON_ALLOW_NUL, NULL), *value;
	json_t *known = at(s, "properties");
	const char *key;

	assert_non_null(v);
	if (!valid(s, s, v))
		fail_msg("not by the schema: %s", text);
	json_object_foreach(v, key, value)
	{
		if (!json_object_get(known, key))
			fail_msg("%s is written but not in the schema", key);
	}
	json_decref(v);
	free(text);
}

static void
every_verdict_is_written_by_the_schema(void **state)
{
	const struct kn_report rep = {
		.policy = "sha256:0af", .streams = true, .contents = true
	};
	json_t *s = schema("result"), *verdicts = at(s, "properties verdict enum");
	struct kn_outcome o = { 0 };
	struct kn_err e;
	char name[] = "a", link[] = "l", by[] = "a rule", dir[] = "/d";
	struct kn_refused refused = { .name = "socket",
		.arg_n = 3,
		.args = { 2, -1, INT64_MIN },
		.count = 1,
		.errno_ret = 97,
		.by = by };
	struct kn_outcome_file files[] = {
		{ .name = name,
		    .what = KN_FILE_COLLECT,
		    .bytes = 1,
		    .mode = 07,
		    .fd = kn_fd_sealed("a", "x", 1, 0, &e) },
		{ .name = link,
		    .what = KN_FILE_KEEP,
		    .refusal = KN_FILE_SYMLINK,
		    .fd = -1 },
	};

	(void)state;
	assert_int_equal(json_array_size(verdicts), KN_V_N);
	for (unsigned v = 0; v < KN_V_N; v++) {
		assert_string_equal(json_string_value(json_array_get(verdicts, v)),
		    kn_verdict_name((enum kn_verdict)v));
		o = (struct kn_outcome){
			.verdict = (enum kn_verdict)v, .exit_code = -1, .worker = -1
		};
		check_result(s, &rep, &o);
		o.started = true;
		o.exit_code = (int)v;
		o.worker = 3;
		o.max_rss = o.memory_peak = o.pids_peak = 1;
		o.files = files;
		o.file_n = 2;
		o.out_dir = dir;
		o.out_files = o.out_bytes = v;
		o.refused = &refused;
		o.refused_n = 1;
		o.refused_more = v;
		o.out = (struct kn_capture){ .bytes = (char[]){ "\xff"
								"b" },
			.n = 2,
			.head_n = 1,
			.total = 9,
			.truncated = true };
		o.err = (struct kn_capture){ .bytes = (char[]){ "ab" },
			.n = 2,
			.head_n = 1,
			.total = 9,
			.truncated = true };
		check_result(s, &rep, &o);
	}
	kn_fd_close(&files[0].fd);
	json_decref(s);
}

static void
every_layer_is_in_the_schema(void **state)
{
	json_t *s = schema("result");
	json_t *layers = at(s, "properties layers properties");

	(void)state;
	assert_int_equal(json_object_size(layers), KN_LAYER_N);
	for (unsigned i = 0; i < KN_LAYER_N; i++)
		assert_non_null(
		    json_object_get(layers, kn_layer_name((enum kn_layer)i)));
	json_decref(s);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(schema_has_the_keys_of_the_reader),
		cmocka_unit_test(schema_and_reader_agree_on_samples),
		cmocka_unit_test(every_verdict_is_written_by_the_schema),
		cmocka_unit_test(every_layer_is_in_the_schema),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
