/* supervisor/task_env.h: the environment of a task: what the policy inherits and sets,
 * then what the task itself sets. Nothing of the caller's environment passes unless
 * the policy names it.
 */
#ifndef KN_SUPERVISOR_TASK_ENV_H
#define KN_SUPERVISOR_TASK_ENV_H

#include <stdbool.h>
#include <stddef.h>

struct kn_err;
struct kn_policy;

/* A growing, owned list of "K=V", NULL-terminated. Zero value: empty. */
struct kn_env {
	char **v;
	size_t n, room;
};
/* Add or replace. 0, or -1 when out of memory. */
int kn_env_set(struct kn_env *env, const char *key, size_t key_n, const char *value);
/* From the policy and the caller's environment (a NULL-terminated list). */
int kn_env_build(struct kn_env *env, const struct kn_policy *p,
    const char *const *caller, struct kn_err *e);
int kn_env_copy(struct kn_env *env, const char *const *v, size_t n);
void kn_env_fini(struct kn_env *env);
/* A name that a program can read back: not empty, no '=', no NUL. */
bool kn_env_key_ok(const char *key, size_t n);

#endif
