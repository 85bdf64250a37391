/* lib/list.c: lists of jobs, in order; a job knows the one that it is in. */
#include "lib/lib.h"

void
kn_list_add(struct kn_job_list *l, struct knit_job *job)
{
	job->in = l;
	job->next = NULL;
	job->prev = l->last;
	if (l->last)
		l->last->next = job;
	else
		l->first = job;
	l->last = job;
	l->n++;
}

void
kn_list_leave(struct knit_job *job)
{
	struct kn_job_list *l = job->in;

	if (!l)
		return;
	if (job->prev)
		job->prev->next = job->next;
	else
		l->first = job->next;
	if (job->next)
		job->next->prev = job->prev;
	else
		l->last = job->prev;
	job->next = job->prev = NULL;
	job->in = NULL;
	l->n--;
}

struct knit_job *
kn_list_pop(struct kn_job_list *l)
{
	struct knit_job *job = l->first;

	if (job)
		kn_list_leave(job);
	return job;
}
