/* supervisor/value_json.h: typed values of kind module from and to JSON, as task and
 * result lines have them (knit-tasks(5)).
 */
#ifndef KN_SUPERVISOR_VALUE_JSON_H
#define KN_SUPERVISOR_VALUE_JSON_H

#include <jansson.h>

#include "supervisor/value.h"

/* Words for "array", NULL-terminated: i32, i64, u64, f64. */
extern const char *const kn_value_arrays[];

/* null, true and false, whole numbers, other numbers and strings are values of those
 * types; objects and arrays are JSON, or with `array` (one of kn_value_arrays) an array
 * is one of numbers of that kind. 0, or -1 with *out_why (static text). */
int kn_value_from_json(
    json_t *v, const char *array, struct kn_value *out, const char **out_why);
/* Fresh; NULL for bytes, for an error, or when out of memory. Numbers that JSON has not
 * (NaN, infinities, whole ones above 2^63) are strings. */
json_t *kn_value_to_json(const struct kn_value *v);
/* How many digits of its numbers keep each of them as it is (JSON_REAL_PRECISION). */
size_t kn_value_digits(json_t *v);
/* As text on one line, numbers as they are; fresh, or NULL. */
char *kn_value_dump(json_t *v);
/* {"name","message","detail","cause":{...}}. */
json_t *kn_value_error_to_json(const struct kn_value *v);

#endif
