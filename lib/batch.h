/* lib/batch.h: what batch.c and batch_jobs.c share. */
#ifndef KN_LIB_BATCH_H
#define KN_LIB_BATCH_H

#include "lib/lib.h"
#include "supervisor/batch.h"

struct knit_batch {
	pthread_mutex_t lock; /* of closed and done; under no other */
	unsigned refs;	      /* atomic: the owner's, and one for each job */
	bool closed;
	struct kn_job_list done;
	struct knit_pool *pool;
	struct knit_batch_options o;
	char *cwd, *keep_dir;
	struct kn_batch *lines;
	struct knit_job *current; /* whose result is told */
	struct knit_job *spare;	  /* by next: used ones, with their outcomes */
	unsigned spare_n;
	struct kn_lib_outcome *view; /* to show what is no job's, if not in use */
	const char *policy;	     /* its hash */
	bool paused, silent, is_module;
};

/* batch_jobs.c */
int kn_lib_batch_submit(void *ctx, struct kn_task *t, struct kn_node *n,
    enum kn_verdict *v, struct kn_err *err);
void kn_lib_batch_cancel(void *ctx, struct kn_task *t);
/* The job goes on without us, if it is not finished; see knit_batch_close(). */
void kn_lib_batch_drop(void *ctx, struct kn_task *t);
/* Its result was told. */
void kn_lib_batch_put_by(struct knit_batch *b, struct knit_job *job);
void kn_lib_batch_end_job(struct knit_job *job);

#endif
