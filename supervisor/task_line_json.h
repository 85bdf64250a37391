/* supervisor/task_line_json.h: what the parts of the task line reader share: the state
 * of reading one line, and small checks that fail with a JSON pointer.
 */
#ifndef KN_SUPERVISOR_TASK_LINE_JSON_H
#define KN_SUPERVISOR_TASK_LINE_JSON_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "sandbox/policy.h"
#include "supervisor/task_env.h"
#include "supervisor/task_line.h"

enum { KN_LINE_POINTER_MAX = 160 };

struct kn_line_ctx {
	const struct kn_line_rules *rules;
	struct kn_line *out;
	struct kn_err *e;
	json_t *root;
	struct kn_task_ask ask;
	struct kn_env env;
};

/* Always -1, so that `return kn_line_fail(...)` reads naturally. */
int kn_line_fail(struct kn_line_ctx *c, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* "<parent>/<key>" with the key escaped for a pointer and made printable. */
void kn_line_pointer(char *dst, size_t n, const char *parent, const char *key);
/* An object without keys outside the list; the nearest known one is named. */
int kn_line_object(
    struct kn_line_ctx *c, json_t *v, const char *at, const char *const *keys);
/* A fresh copy of a string. */
int kn_line_string(struct kn_line_ctx *c, json_t *v, const char *at, bool nul_ok,
    char **out, size_t *out_n);
int kn_line_base64(
    struct kn_line_ctx *c, json_t *v, const char *at, void **out, size_t *out_n);
/* The fields "files", "limits", "timeouts". */
int kn_line_files(struct kn_line_ctx *c, json_t *v);
int kn_line_limits(struct kn_line_ctx *c, json_t *v);
int kn_line_call_limits(struct kn_line_ctx *c, json_t *v);
int kn_line_timeouts(struct kn_line_ctx *c, json_t *v);

extern const char *const kn_line_file_keys[];
extern const char *const kn_line_limit_keys[];
extern const char *const kn_line_call_limit_keys[];
extern const char *const kn_line_timeout_keys[];
/* All keys of a line that is a call; and reading one. */
extern const char *const kn_line_call_keys[];
int kn_line_call(struct kn_line_ctx *c);

#endif
