/* lib/task.c: a job -> a task for the supervisor, and their ends. */
#include <stdlib.h>
#include <string.h>

#include "lib/lib.h"

static void
env_remove(struct kn_env *env, const char *name)
{
	size_t n = strlen(name), to = 0;

	for (size_t i = 0; i < env->n; i++) {
		if (strncmp(env->v[i], name, n) == 0 && env->v[i][n] == '=')
			free(env->v[i]);
		else
			env->v[to++] = env->v[i];
	}
	env->n = to;
	if (env->v)
		env->v[to] = NULL;
}

static int
fill_env(struct knit_job *job, const struct kn_env *from)
{
	struct kn_env env = { 0 };
	int rc = kn_env_copy(&env, (const char *const *)from->v, from->n);

	for (size_t i = 0; rc == 0 && i < job->env_n; i++) {
		const struct kn_job_env *one = &job->env[i];

		if (one->value)
			rc = kn_env_set(&env, one->name, strlen(one->name), one->value);
		else
			env_remove(&env, one->name);
	}
	if (rc < 0) {
		kn_env_fini(&env);
		return -1;
	}
	job->task->env = env.v;
	job->task->env_n = env.n;
	return 0;
}

int
kn_lib_job_ready(struct knit_job *job, const struct kn_policy *p,
    const struct kn_env *env, struct knit_error *e)
{
	bool of_module = p->pool.kind == KN_KIND_MODULE;
	struct kn_task *t = job->task;
	struct kn_err err = { 0 };

	if (job->bad)
		return kn_lib_pass(e, job->bad);
	if (job->is_call != of_module)
		return kn_lib_fail(e, KNIT_E_USAGE,
		    of_module ? "a command in a pool of a module (/pool/kind)"
			      : "a call, and the pool has no module (/pool/kind)");
	if (kn_policy_tighten(p, &job->ask, &t->limits, &t->timeouts, &err) < 0)
		return kn_lib_pass(e, &err);
	if (!job->has_retries)
		t->retries = p->pool.retries;
	if (!t->id && !(t->id = strdup("job")))
		return kn_lib_nomem(e);
	if (!job->is_call && !t->env && fill_env(job, env) < 0)
		return kn_lib_nomem(e);
	t->stdio = job->has_streams ? KN_STDIO_RELAY : KN_STDIO_CAPTURE;
	/* What is only handed on is cut where somebody asked for it. */
	if (job->has_streams && p->console && !job->ask.has_stdout &&
	    !kn_policy_named(p, "/limits/task/stdout"))
		t->limits.stdout_bytes = UINT64_MAX;
	if (job->has_streams && p->console && !job->ask.has_stderr &&
	    !kn_policy_named(p, "/limits/task/stderr"))
		t->limits.stderr_bytes = UINT64_MAX;
	t->user = job;
	return 0;
}

void
kn_lib_job_answered(struct knit_job *job)
{
	if (__atomic_load_n(&job->lent, __ATOMIC_ACQUIRE) || !job->task)
		return;
	free(job->id);
	job->id = job->task->id;
	job->task->id = NULL;
	kn_task_free(job->task);
	job->task = NULL;
}

void
kn_lib_job_end(struct knit_job *job)
{
	struct knit_batch *batch = job->batch;

	if (!__atomic_load_n(&job->lent, __ATOMIC_ACQUIRE))
		kn_task_free(job->task);
	if (job->bad != &kn_lib_no_room)
		free(job->bad);
	free(job->id);
	for (size_t i = 0; i < job->env_n; i++) {
		free(job->env[i].name);
		free(job->env[i].value);
	}
	free(job->env);
	kn_lib_outcome_free(job->outcome);
	free(job);
	if (batch)
		kn_lib_batch_unref(batch);
}
