/* lib/streams.c: a job whose streams are its caller's, signals to what a job runs, and
 * a job that no pool could be had for.
 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/lib.h"

int
knit_job_set_streams(struct knit_job *job, int in, int out, int err)
{
	if (!job || job->state != KN_JOB_NEW)
		return -1;
	if (job->is_call || out < 0 || err < 0)
		return kn_lib_job_refuse(job, "streams: %s",
		    job->is_call ? "of a command only" : "no descriptors");
	job->has_streams = true;
	job->task->streams[0] = in;
	job->task->streams[1] = out;
	job->task->streams[2] = err;
	return 0;
}

int
knit_job_set_terminal(struct knit_job *job)
{
	if (!job || job->state != KN_JOB_NEW)
		return -1;
	if (!job->has_streams || !isatty(job->task->streams[0]))
		return kn_lib_job_refuse(
		    job, "terminal: only with streams, the first of which is one");
	job->task->pty = true;
	return 0;
}

int
knit_job_lost(const struct knit_job *job)
{
	return job ? __atomic_load_n(&job->lost, __ATOMIC_ACQUIRE) : 0;
}

/* ---- to what runs ---- */

/* By us if nobody leads, else by the leader, whom we wait for. */
static int
ask(struct kn_lib_ask *a, struct knit_error *e)
{
	struct knit_pool *p = a->job ? a->job->pool : NULL;

	if (!p)
		return kn_lib_fail(e, KNIT_E_USAGE, "the job was not submitted");
	if (kn_lib_enter(p, NULL, e) < 0)
		return -1;
	if (p->leading && pthread_equal(p->leader, pthread_self())) {
		pthread_mutex_unlock(&p->lock);
		return kn_lib_fail(e, KNIT_E_USAGE, "not from inside of the pool");
	}
	pthread_cond_init(&a->cond, NULL);
	p->users++;
	a->next = p->asks;
	p->asks = a;
	while (!a->done) {
		if (p->leading) {
			kn_pool_ring(p);
			pthread_cond_wait(&a->cond, &p->lock);
		} else {
			kn_lib_answer_asks(p);
		}
	}
	kn_lib_hand_over(p);
	if (--p->users == 0)
		pthread_cond_broadcast(&p->left);
	pthread_mutex_unlock(&p->lock);
	pthread_cond_destroy(&a->cond);
	return a->sent;
}

int
knit_job_signal(struct knit_job *job, int signo, struct knit_error *e)
{
	struct kn_lib_ask a = { .job = job, .signo = signo };

	if (signo < 1 || signo >= NSIG)
		return kn_lib_fail(e, KNIT_E_USAGE, "%d is no signal", signo);
	return ask(&a, e);
}

int
knit_job_terminal(struct knit_job *job, enum knit_terminal what, struct knit_error *e)
{
	struct kn_lib_ask a = { .job = job };

	if (!job || !job->has_streams || (unsigned)what > KNIT_TERMINAL_TAKE)
		return kn_lib_fail(e, KNIT_E_USAGE, "terminal: the job has none");
	a.term = what == KNIT_TERMINAL_SIZE    ? KN_TERM_RESIZE
		 : what == KNIT_TERMINAL_YIELD ? KN_TERM_SUSPEND
					       : KN_TERM_RESUME;
	return ask(&a, e) < 0 ? -1 : 0;
}

/* ---- without a pool ---- */

int
knit_job_give_up(struct knit_job *job, enum knit_verdict verdict, const char *error)
{
	struct kn_outcome o = {
		.verdict = (enum kn_verdict)verdict, .exit_code = -1, .worker = -1
	};

	if (!job || job->state != KN_JOB_NEW || (unsigned)verdict >= KNIT_VERDICT_N)
		return -1;
	if (!job->outcome && !(job->outcome = kn_lib_outcome_new()))
		return -1;
	if (error)
		memccpy(o.error, error, '\0', sizeof o.error - 1);
	kn_lib_job_answered(job);
	kn_lib_outcome_fill(job->outcome, &o);
	job->state = KN_JOB_DONE;
	return 0;
}
