/* sandbox/stub/rlimits.c: the resource limits of one task, from its job and from what
 * its keepers were started with.
 */
#include <sys/resource.h>

#include "sandbox/stub/stub.h"

enum {
	INIT_AND_STUB = 2,   /* processes of ours in the sandbox's user namespace */
	OURS_PER_WORKER = 6, /* and all in all, with room */
};

static void
add(struct kn_cell *c, const struct kn_stub *s, int resource, uint64_t value)
{
	uint64_t hard = s->hard[resource];

	c->rlimits[c->rlimit_n++] =
	    (struct kn_cell_rlimit){ resource, value < hard ? value : hard };
}

/* Counted per user of the sandbox's own user namespace: only this worker. But without
 * root all workers are the caller's processes too, and his limit ends them all: a task
 * that takes more than its share would have the neighbours' calls of fork() fail. */
static uint64_t
processes(struct kn_stub *s, uint64_t pids)
{
	uint64_t all = s->hard[RLIMIT_NPROC];
	uint64_t share = all == RLIM_INFINITY ? all : all / s->worker_n;

	/* Of the machine's user: whoever else has it counts, as far as is known. */
	if (s->direct.place && !(s->flags & KN_BOOT_OWN_UID))
		return pids + kn_direct_others(&s->direct, s->watch.proc_fd);
	share = share > 2 * OURS_PER_WORKER ? share - OURS_PER_WORKER : share / 2 + 1;
	return pids + INIT_AND_STUB < share ? pids + INIT_AND_STUB : share;
}

void
kn_rlimits_plan(struct kn_cell *c, struct kn_stub *s, const struct kn_job_limits *l)
{
	/* 1 and not 0: it writes no file either, and unlike 0 it also keeps the kernel
	 * from starting the host's core handler (core(5), core_pattern with a pipe). */
	add(c, s, RLIMIT_CORE, l->core ? l->core : 1);
	add(c, s, RLIMIT_NOFILE, l->nofile ? l->nofile : s->nofile);
	if (l->fsize)
		add(c, s, RLIMIT_FSIZE, l->fsize);
	if (l->stack)
		add(c, s, RLIMIT_STACK, l->stack);
	if (l->pids && !kn_cg_holds_pids(&s->cg))
		add(c, s, RLIMIT_NPROC, processes(s, l->pids));
}
