/* supervisor/task_line.h: one line of a batch -> one task or one cancellation.
 *
 * The line is hostile input: strict JSON (no duplicate keys, no unknown keys, valid
 * UTF-8), every string and number checked, every limit passed through
 * kn_policy_tighten(). An error names the JSON pointer of what is wrong. What needs the
 * file system ("path", "from") is only noted here and resolved when the task is handed
 * to the supervisor, so that a waiting task holds no descriptor.
 */
#ifndef KN_SUPERVISOR_TASK_LINE_H
#define KN_SUPERVISOR_TASK_LINE_H

#include <knit/pool.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct kn_err;
struct kn_policy;
struct kn_task;

enum {
	KN_LINE_ID_MAX = 255,	   /* bytes of an id */
	KN_LINE_FD_FILES_MAX = 60, /* files by "path" and "from" of one task */
	KN_LINE_BYTES_MAX = KNIT_LINE_BYTES_MAX,
	KN_LINE_AFTER_MAX = 4096,
	KN_LINE_FILES_MAX = 4096,
};

enum kn_line_kind {
	KN_LINE_NOTHING, /* only white space */
	KN_LINE_TASK,
	KN_LINE_CANCEL,
};

/* A file of the task whose content comes from elsewhere: task->files[file]. */
struct kn_line_source {
	size_t file;
	char *path; /* "path": of the caller, as written; or NULL and */
	char *from; /* "from": the id of the task that kept it, and */
	char *name; /* the name it was kept under */
	bool mode_given;
};

struct kn_line {
	enum kn_line_kind kind;
	char *id; /* TASK: given id or NULL; CANCEL: whom. Also set on failure if
		     legible */
	struct kn_task *task; /* TASK; limits and timeouts are filled in */
	char **after;
	size_t after_n;
	struct kn_line_source *sources;
	size_t source_n;
	size_t bytes; /* what the task holds in memory, roughly */
};

/* What lines are read against; borrowed. */
struct kn_line_rules {
	const struct kn_policy *policy;
	const char *const *env; /* "K=V": what every task gets, see kn_task_env.h */
	size_t env_n;
	const char *cwd; /* of every task, NULL: /task */
	uint32_t retries;
};

/* 0, or -1 with e (kind TASK, message "/pointer: what"), then *out has at most the id.
 * kn_line_fini() in both cases. */
int kn_line_parse(const struct kn_line_rules *rules, const char *text, size_t n,
    uint64_t line_no, struct kn_line *out, struct kn_err *e);
void kn_line_fini(struct kn_line *l);

/* All keys of a task object, of a file object, of limits.task and of timeouts, each
 * list NULL-terminated: the schema is checked against them. */
enum kn_line_keys {
	KN_LINE_KEYS_TASK,
	KN_LINE_KEYS_CALL,
	KN_LINE_KEYS_FILE,
	KN_LINE_KEYS_LIMITS,
	KN_LINE_KEYS_CALL_LIMITS,
	KN_LINE_KEYS_TIMEOUTS,
	KN_LINE_KEYS_N
};
const char *const *kn_line_keys(enum kn_line_keys which);

/* Is this a name below /task: relative, no empty, "." or ".." component, no NUL, and
 * within the kernel's limits? Also used for names that come back from a task. */
bool kn_line_path_ok(const char *path, size_t n);
#define KN_LINE_PATH_RULE \
	"must be relative to the task's directory, without \"..\", \".\" and empty " \
	"parts"

#endif
