/* supervisor/value_json.c: see value_json.h. */
#include "supervisor/value_json.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const kn_value_arrays[] = { "i32", "i64", "u64", "f64", NULL };
static const enum kn_type array_types[] = { KN_TYPE_I32S, KN_TYPE_I64S, KN_TYPE_U64S,
	KN_TYPE_F64S };
static const size_t array_sizes[] = { 4, 8, 8, 8 };

/* Significant digits: with the first, 0.1 is not 0.10000000000000001; with the last
 * every double is itself again. */
enum { DIGITS = 15, DIGITS_MAX = 17 };

static size_t
digits_of(json_t *v, size_t n)
{
	char text[40];
	const char *key;
	json_t *inner;

	for (; json_is_real(v) && n < DIGITS_MAX; n++) {
		snprintf(text, sizeof text, "%.*g", (int)n, json_real_value(v));
		if (strtod(text, NULL) == json_real_value(v))
			break;
	}
	for (size_t i = 0; i < json_array_size(v) && n < DIGITS_MAX; i++)
		n = digits_of(json_array_get(v, i), n);
	json_object_foreach(v, key, inner)
	{
		if (n >= DIGITS_MAX)
			break;
		n = digits_of(inner, n);
	}
	return n;
}

size_t
kn_value_digits(json_t *v)
{
	return digits_of(v, DIGITS);
}

char *
kn_value_dump(json_t *v)
{
	return json_dumps(v,
	    JSON_COMPACT | JSON_ENCODE_ANY | JSON_REAL_PRECISION(kn_value_digits(v)));
}

static int
take(struct kn_value *out, enum kn_type type, const void *bytes, size_t n)
{
	*out = (struct kn_value){ .type = type, .n = n };
	if (n == 0)
		return 0;
	out->bytes = malloc(n);
	if (!out->bytes)
		return -1;
	memcpy(out->bytes, bytes, n);
	return 0;
}

/* ---- from JSON ---- */

/* A string of digits stands for a number that JSON readers cannot hold. */
static bool
number_u64(json_t *v, uint64_t *out)
{
	const char *s = json_string_value(v);
	char *end;

	if (json_is_integer(v)) {
		*out = (uint64_t)json_integer_value(v);
		return json_integer_value(v) >= 0;
	}
	if (!s || *s < '0' || *s > '9')
		return false;
	errno = 0;
	*out = strtoull(s, &end, 10);
	return errno == 0 && *end == '\0';
}

static bool
number_f64(json_t *v, double *out)
{
	const char *s = json_string_value(v);

	*out = json_number_value(v);
	if (json_is_number(v))
		return true;
	if (!s)
		return false;
	if (strcmp(s, "NaN") == 0)
		*out = NAN;
	else if (strcmp(s, "Infinity") == 0)
		*out = INFINITY;
	else if (strcmp(s, "-Infinity") == 0)
		*out = -INFINITY;
	else
		return false;
	return true;
}

static bool
put_element(void *to, enum kn_type type, json_t *v)
{
	int64_t i = json_integer_value(v);
	int32_t i32 = (int32_t)i;
	uint64_t u;
	double d;

	if (type == KN_TYPE_F64S) {
		if (!number_f64(v, &d))
			return false;
		memcpy(to, &d, sizeof d);
	} else if (type == KN_TYPE_U64S) {
		if (!number_u64(v, &u))
			return false;
		memcpy(to, &u, sizeof u);
	} else if (!json_is_integer(v)) {
		return false;
	} else if (type == KN_TYPE_I64S) {
		memcpy(to, &i, sizeof i);
	} else {
		if (i32 != i)
			return false;
		memcpy(to, &i32, sizeof i32);
	}
	return true;
}

static int
from_array(json_t *v, const char *array, struct kn_value *out, const char **out_why)
{
	size_t n = json_array_size(v), k = 0, size;
	uint8_t *to;

	while (kn_value_arrays[k] && strcmp(kn_value_arrays[k], array) != 0)
		k++;
	if (!kn_value_arrays[k]) {
		*out_why = "one of \"i32\", \"i64\", \"u64\", \"f64\"";
		return -1;
	}
	if (!json_is_array(v)) {
		*out_why = "goes with a value that is an array of numbers";
		return -1;
	}
	size = array_sizes[k];
	*out = (struct kn_value){ .type = array_types[k], .n = n * size };
	if (n == 0)
		return 0;
	to = out->bytes = malloc(n * size);
	if (!to) {
		*out_why = "out of memory";
		return -1;
	}
	for (size_t i = 0; i < n; i++) {
		if (put_element(to + i * size, array_types[k], json_array_get(v, i)))
			continue;
		*out_why = "an element of the value is no number of that kind";
		return -1;
	}
	return 0;
}

int
kn_value_from_json(
    json_t *v, const char *array, struct kn_value *out, const char **out_why)
{
	uint8_t flag = json_is_true(v);
	int64_t i = json_integer_value(v);
	double d = json_real_value(v);
	char *text;
	int r;

	*out_why = "out of memory";
	if (array)
		return from_array(v, array, out, out_why);
	switch (json_typeof(v)) {
	case JSON_NULL:
		return take(out, KN_TYPE_NULL, NULL, 0);
	case JSON_TRUE:
	case JSON_FALSE:
		return take(out, KN_TYPE_BOOL, &flag, 1);
	case JSON_INTEGER:
		return take(out, KN_TYPE_I64, &i, sizeof i);
	case JSON_REAL:
		return take(out, KN_TYPE_F64, &d, sizeof d);
	case JSON_STRING:
		return take(
		    out, KN_TYPE_TEXT, json_string_value(v), json_string_length(v));
	case JSON_OBJECT:
	case JSON_ARRAY:
		break;
	}
	text = kn_value_dump(v);
	if (!text)
		return -1;
	r = take(out, KN_TYPE_JSON, text, strlen(text));
	free(text);
	return r;
}

int
kn_value_from_text(const char *text, struct kn_value *out, const char **out_why)
{
	json_error_t e;
	json_t *v = json_loads(text, JSON_DECODE_ANY | JSON_REJECT_DUPLICATES, &e);
	size_t n = strlen(text);
	int r;

	*out_why = "out of memory";
	if (v) {
		r = kn_value_from_json(v, NULL, out, out_why);
		json_decref(v);
		return r;
	}
	return take(out,
	    kn_value_check(KN_TYPE_TEXT, text, n) ? KN_TYPE_TEXT : KN_TYPE_BYTES, text,
	    n);
}

/* ---- to JSON ---- */

static json_t *
real(double d)
{
	if (isnan(d))
		return json_string("NaN");
	if (isinf(d))
		return json_string(d > 0 ? "Infinity" : "-Infinity");
	return json_real(d);
}

static json_t *
unsigned_number(uint64_t u)
{
	char text[24];

	if (u <= INT64_MAX)
		return json_integer((json_int_t)u);
	snprintf(text, sizeof text, "%" PRIu64, u);
	return json_string(text);
}

static json_t *
element(enum kn_type type, const uint8_t *from)
{
	int32_t i32;
	int64_t i64;
	uint64_t u64;
	double d;

	if (type == KN_TYPE_I32S) {
		memcpy(&i32, from, sizeof i32);
		return json_integer(i32);
	}
	if (type == KN_TYPE_I64S) {
		memcpy(&i64, from, sizeof i64);
		return json_integer(i64);
	}
	if (type == KN_TYPE_U64S) {
		memcpy(&u64, from, sizeof u64);
		return unsigned_number(u64);
	}
	memcpy(&d, from, sizeof d);
	return real(d);
}

static json_t *
to_array(const struct kn_value *v)
{
	size_t size = v->type == KN_TYPE_I32S ? 4 : 8;
	const uint8_t *from = v->bytes;
	json_t *a = json_array();

	for (size_t i = 0; a && i + size <= v->n; i += size) {
		if (json_array_append_new(a, element((enum kn_type)v->type, from + i)) <
		    0) {
			json_decref(a);
			return NULL;
		}
	}
	return a;
}

json_t *
kn_value_to_json(const struct kn_value *v)
{
	const char *bytes = v->n ? v->bytes : "";
	json_error_t e;
	int64_t i;
	double d;

	switch (v->type) {
	case KN_TYPE_NULL:
		return json_null();
	case KN_TYPE_BOOL:
		return json_boolean(*bytes);
	case KN_TYPE_I64:
		memcpy(&i, bytes, sizeof i);
		return json_integer(i);
	case KN_TYPE_F64:
		memcpy(&d, bytes, sizeof d);
		return real(d);
	case KN_TYPE_TEXT:
		return json_stringn(bytes, v->n);
	case KN_TYPE_JSON:
		return json_loadb(bytes, v->n, JSON_DECODE_ANY | JSON_ALLOW_NUL, &e);
	case KN_TYPE_I32S:
	case KN_TYPE_I64S:
	case KN_TYPE_U64S:
	case KN_TYPE_F64S:
		return to_array(v);
	default:
		return NULL;
	}
}

json_t *
kn_value_error_to_json(const struct kn_value *v)
{
	struct kn_call_error e;
	json_t *inner = NULL;

	if (kn_call_error_decode(v->bytes, v->n, &e) < 0)
		return NULL;
	for (uint32_t i = e.n; i-- > 0;) {
		json_t *o = json_pack(
		    "{s:s, s:s}", "name", e.link[i].name, "message", e.link[i].message);

		if (o && e.link[i].detail[0])
			json_object_set_new(o, "detail", json_string(e.link[i].detail));
		if (o && inner)
			json_object_set(o, "cause", inner);
		json_decref(inner);
		inner = o;
		if (!o)
			return NULL;
	}
	return inner;
}

char *
kn_value_to_text(const struct kn_value *v)
{
	json_t *j = kn_value_to_json(v);
	char *text = j ? kn_value_dump(j) : NULL;

	json_decref(j);
	return text;
}

bool
kn_value_is_json(const struct kn_value *v)
{
	json_t *j = kn_value_to_json(v);

	json_decref(j);
	return j != NULL;
}
