/* supervisor/task_env.c: see task_env.h. */
#include "supervisor/task_env.h"

#include <stdlib.h>
#include <string.h>

#include "ipc/control.h"
#include "ipc/err.h"
#include "sandbox/policy.h"

bool
kn_env_key_ok(const char *key, size_t n)
{
	return n > 0 && !memchr(key, '=', n) && !memchr(key, '\0', n);
}

static char **
find(struct kn_env *env, const char *key, size_t key_n)
{
	for (size_t i = 0; i < env->n; i++) {
		if (strncmp(env->v[i], key, key_n) == 0 && env->v[i][key_n] == '=')
			return &env->v[i];
	}
	return NULL;
}

static int
append(struct kn_env *env, char *owned)
{
	if (env->n + 1 >= env->room) {
		size_t room = env->room ? env->room * 2 : 16;
		char **v = realloc(env->v, room * sizeof *v);

		if (!v) {
			free(owned);
			return -1;
		}
		env->v = v;
		env->room = room;
	}
	env->v[env->n++] = owned;
	env->v[env->n] = NULL;
	return 0;
}

int
kn_env_set(struct kn_env *env, const char *key, size_t key_n, const char *value)
{
	size_t value_n = strlen(value);
	char **old, *kv = malloc(key_n + value_n + 2);

	if (!kv)
		return -1;
	memcpy(kv, key, key_n);
	kv[key_n] = '=';
	memcpy(kv + key_n + 1, value, value_n + 1);
	old = find(env, key, key_n);
	if (!old)
		return append(env, kv);
	free(*old);
	*old = kv;
	return 0;
}

static int
set_text(struct kn_env *env, const char *kv)
{
	const char *eq = strchr(kv, '=');

	return eq ? kn_env_set(env, kv, (size_t)(eq - kv), eq + 1) : 0;
}

int
kn_env_copy(struct kn_env *env, const char *const *v, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		char *kv = strdup(v[i]);

		if (!kv || append(env, kv) < 0)
			return -1;
	}
	return 0;
}

static const char *
caller_value(const char *const *caller, const char *key)
{
	size_t n = strlen(key);

	for (size_t i = 0; caller && caller[i]; i++) {
		if (strncmp(caller[i], key, n) == 0 && caller[i][n] == '=')
			return caller[i] + n + 1;
	}
	return NULL;
}

/* With hosts by name (/network/mode "allow") there is a proxy at a fixed place inside.
 * Programs differ in which of these they read; a proxy of the caller's is out of reach.
 */
static const char http_proxy[] = "http://127.0.0.1:3128";
static const char all_proxy[] = "socks5h://127.0.0.1:3128";
_Static_assert(KN_EGRESS_PORT == 3128, "the port above");
static const struct {
	const char *key, *value; /* NULL: not inherited */
} proxies[] = {
	{ "http_proxy", http_proxy },
	{ "HTTP_PROXY", http_proxy },
	{ "https_proxy", http_proxy },
	{ "HTTPS_PROXY", http_proxy },
	{ "all_proxy", all_proxy },
	{ "ALL_PROXY", all_proxy },
	{ "no_proxy", NULL },
	{ "NO_PROXY", NULL },
};
enum { PROXY_N = sizeof proxies / sizeof *proxies };

static bool
is_about_proxies(const struct kn_policy *p, const char *key)
{
	for (size_t i = 0; p->network == KN_NET_ALLOW && i < PROXY_N; i++)
		if (strcmp(proxies[i].key, key) == 0)
			return true;
	return false;
}

static int
set_proxies(struct kn_env *env, const struct kn_policy *p)
{
	for (size_t i = 0; p->network == KN_NET_ALLOW && i < PROXY_N; i++) {
		const char *key = proxies[i].key;

		if (proxies[i].value &&
		    kn_env_set(env, key, strlen(key), proxies[i].value) < 0)
			return -1;
	}
	return 0;
}

int
kn_env_build(struct kn_env *env, const struct kn_policy *p, const char *const *caller,
    struct kn_err *e)
{
	for (size_t i = 0; i < p->env.inherit_n; i++) {
		const char *key = p->env.inherit[i];
		const char *value =
		    is_about_proxies(p, key) ? NULL : caller_value(caller, key);

		if (value && kn_env_set(env, key, strlen(key), value) < 0)
			goto nomem;
	}
	if (set_proxies(env, p) < 0)
		goto nomem;
	for (size_t i = 0; i < p->env.set_n; i++) {
		if (set_text(env, p->env.set[i]) < 0)
			goto nomem;
	}
	return 0;
nomem:
	return kn_err_set(e, KN_EK_HOST, "environment: out of memory");
}

void
kn_env_fini(struct kn_env *env)
{
	for (size_t i = 0; i < env->n; i++)
		free(env->v[i]);
	free(env->v);
	*env = (struct kn_env){ 0 };
}
