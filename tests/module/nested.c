/* tests/module/nested.c: a task that opens a pool of its own, in its sandbox, through
 * libknit (linked into this module by the makefile).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <knit/pool.h>
#include <knit/task.h>

/* What a command in a pool in here says; else an error that says why there is none. */
KNIT_TASK(nested)
{
	static const char *const argv[] = { "/bin/echo", "from within", NULL };
	struct knit_error e = KNIT_ERROR_NONE;
	struct knit_policy *policy = knit_policy_new("default");
	struct knit_pool_options o;
	struct knit_pool *pool = NULL;
	struct knit_job *job;

	knit_pool_options_init(&o, sizeof o);
	o.workers = 1;
	if (!policy)
		return knit_fail(call, "Error", "no policy");
	if (knit_pool_open(policy, &o, &pool, &e) < 0)
		return knit_fail(call, "NoPool", "%s", e.text);
	job = knit_job_command(argv);
	if (!job || knit_pool_submit(pool, job, &e) < 0)
		return knit_fail(call, "NoJob", "%s", e.text);
	if (knit_pool_next(pool, 20000, &job, &e) < 0)
		return knit_fail(call, "NoAnswer", "%s", e.text);
	if (knit_job_outcome(job)->verdict != KNIT_OK)
		return knit_fail(call, "NotOk", "%s: %s",
		    knit_verdict_name(knit_job_outcome(job)->verdict),
		    knit_job_outcome(job)->error);
	return knit_result_str(call, "it ran");
}
