/* supervisor/value.h: typed values of kind module as text. */
#ifndef KN_SUPERVISOR_VALUE_H
#define KN_SUPERVISOR_VALUE_H

#include <stdbool.h>

#include "supervisor/task.h"

/* A value of a text as a user types it: JSON where it parses as such, else the text
 * itself. 0, or -1 with *out_why (static text). */
int kn_value_from_text(const char *text, struct kn_value *out, const char **out_why);
/* As JSON (value_json.h), fresh; NULL for bytes, for an error, or without memory. */
char *kn_value_to_text(const struct kn_value *v);
/* Is this value of type JSON some? */
bool kn_value_is_json(const struct kn_value *v);

#endif
