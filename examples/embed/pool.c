/* pool.c: run each argument as a shell command in a sandbox, at most two at one time, and
 * print how it ended.
 *
 *   ./pool 'echo hello' 'sleep 9' 'cat /etc/shadow'
 */
#include <knit/pool.h>
#include <stdio.h>
#include <stdlib.h>

static int
failed(const char *what, const struct knit_error *e)
{
	fprintf(stderr, "pool: %s: %s\n", what, e->text);
	if (e->hint[0])
		fprintf(stderr, "hint: %s\n", e->hint);
	return 1;
}

static void
print(struct knit_job *job)
{
	const struct knit_outcome *o = knit_job_outcome(job);

	printf("%s: %s", (const char *)knit_job_user(job), knit_verdict_name(o->verdict));
	if (o->exit_code > 0)
		printf(" %d", o->exit_code);
	if (o->error[0])
		printf(" (%s)", o->error);
	printf("\n%s%s", o->out.bytes, o->err.bytes);
}

static int
run(struct knit_pool *pool, int n, char **scripts)
{
	struct knit_error e = KNIT_ERROR_NONE;
	struct knit_job *job;

	for (int i = 0; i < n; i++) {
		const char *argv[] = { "/bin/sh", "-c", scripts[i], NULL };

		job = knit_job_command(argv);
		knit_job_set_user(job, scripts[i]);
		knit_job_set_limit(job, KNIT_LIMIT_HARD_MS, 2000);
		if (knit_pool_submit(pool, job, &e) < 0) {
			knit_job_free(job);
			return failed("submit", &e);
		}
	}
	while (knit_pool_next(pool, -1, &job, &e) > 0) {
		print(job);
		knit_job_free(job);
	}
	return 0;
}

int
main(int argc, char **argv)
{
	struct knit_error e = KNIT_ERROR_NONE;
	struct knit_policy *policy = knit_policy_new("default");
	struct knit_pool_options options;
	struct knit_pool *pool;
	int rc;

	knit_pool_options_init(&options, sizeof options);
	options.workers = 2;
	if (knit_pool_open(policy, &options, &pool, &e) < 0)
		return failed("open", &e);
	rc = run(pool, argc - 1, argv + 1);
	knit_pool_close(pool);
	knit_policy_free(policy);
	return rc;
}
