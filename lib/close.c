/* lib/close.c: the end of a pool: all jobs answered, all workers reaped, all threads
 * out of it; and who may call at all.
 */
#include <stdlib.h>
#include <unistd.h>

#include "ipc/fd.h"
#include "lib/lib.h"

bool
kn_lib_is_ours(const struct knit_pool *p)
{
	return p->pid == getpid();
}

static int
may_enter(struct knit_pool *p, const char *what, struct knit_error *e)
{
	if (p->closed)
		return kn_lib_fail(e, KNIT_E_CLOSED, "the pool is closed");
	if (what && ((p->calling && pthread_equal(p->caller, pthread_self())) ||
			(p->leading && pthread_equal(p->leader, pthread_self()))))
		return kn_lib_fail(e, KNIT_E_USAGE, "%s: not from a callback", what);
	return 0;
}

int
kn_lib_enter(struct knit_pool *p, const char *what, struct knit_error *e)
{
	/* First: in the child the lock may be held for ever, by a thread that is not
	 * there. */
	if (!kn_lib_is_ours(p))
		return kn_lib_fail(e, KNIT_E_USAGE,
		    "the pool is another process's: that of before a fork");
	pthread_mutex_lock(&p->lock);
	if (may_enter(p, what, e) == 0)
		return 0;
	pthread_mutex_unlock(&p->lock);
	return -1;
}

static void
unref(struct knit_pool *p, bool of_batch)
{
	unsigned refs;

	pthread_mutex_lock(&p->lock);
	p->in_batches -= of_batch;
	refs = --p->refs;
	pthread_mutex_unlock(&p->lock);
	if (refs > 0)
		return;
	pthread_mutex_destroy(&p->lock);
	pthread_cond_destroy(&p->left);
	free(p);
}

void
kn_lib_unref(struct knit_pool *p)
{
	unref(p, false);
}

void
kn_lib_unref_of_batch(struct knit_pool *p)
{
	unref(p, true);
}

void
kn_lib_dismantle(struct knit_pool *p)
{
	struct kn_quiet q = { 0 };

	kn_quiet_begin(&q);
	kn_sup_close(p->sup);
	kn_quiet_end(&q);
	p->sup = NULL;
	kn_fd_close(&p->wake_fd);
	kn_ids_give_back(&p->ids);
	kn_env_fini(&p->env);
	free(p->cwd);
	p->cwd = NULL;
	knit_policy_free(p->policy);
	p->policy = NULL;
}

int
knit_pool_close(struct knit_pool *p)
{
	if (!p)
		return 0;
	if (kn_lib_enter(p, "close", NULL) < 0)
		return -1;
	p->drain = true;
	p->stop = 2;
	kn_pool_ring(p);
	pthread_mutex_unlock(&p->lock);
	(void)kn_lib_wait(p, KN_WAIT_END, NULL, -1, NULL, NULL);
	pthread_mutex_lock(&p->lock);
	while (p->users > 0 || p->calling)
		pthread_cond_wait(&p->left, &p->lock);
	p->closed = true;
	pthread_mutex_unlock(&p->lock);
	kn_lib_dismantle(p);
	kn_lib_unref(p);
	return 0;
}
