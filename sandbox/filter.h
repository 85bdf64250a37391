/* sandbox/filter.h: policy -> two classic BPF programs, through libseccomp.
 *
 * worker: the policy plus the calls that only the stub needs; loaded once in the stub.
 * cell: short; takes back what only the stub needs, with the action the policy has for
 * each such call. A filter can only narrow, so the pair equals the policy exactly, but
 * for one prctl() that no kernel knows (KN_CELL_PROBE): the cell's filter answers it.
 * For kind module (of the policy) mremap and remap_file_pages are refused before any
 * rule, and what its process needs is allowed as a group is. i386 and x32 are refused
 * by an architecture check. Binary tree where libseccomp can.
 */
#ifndef KN_SANDBOX_FILTER_H
#define KN_SANDBOX_FILTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct kn_policy;
struct kn_err;
struct seccomp_data;

struct kn_filter {
	void *worker_bpf, *cell_bpf; /* struct sock_filter arrays, owned */
	uint32_t worker_n, cell_n;   /* instructions; checked <= 4096 */
	uint64_t exec_key; /* not 0: nothing is executed, but by an execve whose fourth
			    * argument, at which no kernel looks, is this */
	bool may_name;	   /* and what it is called: prctl(PR_SET_NAME) */
	bool tells;	/* the worker's has refusals that its listener is asked about */
	bool may_place; /* a task may choose its CPU: sched_setaffinity of itself */
};
int kn_filter_build(const struct kn_policy *p, struct kn_filter *out, struct kn_err *e);
/* As kn_filter_build, for a machine where no cgroup counts the task's memory and the
 * stub watches its processes instead: what lets memory lie outside of every process
 * (memfd_create, shmget) answers ENOSYS, unless a rule names the call. */
int kn_filter_build_watched(
    const struct kn_policy *p, struct kn_filter *out, struct kn_err *e);
/* How a filter is to be made. */
struct kn_filter_how {
	bool watched;
	/* Refused calls are told: where a program of ours would refuse a call it asks
	 * the listener of the worker's filter, who has to answer as the policy says
	 * (filter_told.h); and no task can have a listener. What only the stub needs is
	 * allowed by the worker's to code between these addresses, which is the stub's,
	 * and the cell's refuses it there, untold: so a task that has code at the same
	 * place gains nothing. */
	bool tell;
	uint64_t stub_from, stub_to; /* below 4G */
};
int kn_filter_build_how(const struct kn_policy *p, const struct kn_filter_how *how,
    struct kn_filter *out, struct kn_err *e);
void kn_filter_fini(struct kn_filter *f);
/* What a policy says about calls, as rules of which at most one matches: for who takes
 * rules without an order. `name` is valid during the call; an argument's bits under
 * `mask` are `value`. What no rule matches has the answer *out_unlisted. A negative
 * result of `each` ends it. */
struct kn_fcube {
	uint64_t mask, value;
};
struct kn_frule {
	const char *name;
	int nr;
	uint32_t ret; /* SECCOMP_RET_* */
	struct kn_fcube arg[6];
};
int kn_filter_rules(const struct kn_policy *p, uint32_t *out_unlisted,
    int (*each)(void *ctx, const struct kn_frule *r), void *ctx, struct kn_err *e);
/* Each call that this machine has, by its number; a negative result of `each` ends it.
 */
int kn_filter_names(int (*each)(void *ctx, const char *name, int nr), void *ctx);
/* Is it in this group, or in one that is in it? */
bool kn_filter_group_has(const char *group, const char *call);
/* What a program, or the two together as a task has them, answer about a call: a
 * SECCOMP_RET_* value. -1 with e: it is no program of ours. */
int kn_filter_run(const void *program, uint32_t n, const struct seccomp_data *d,
    uint32_t *out_ret, struct kn_err *e);
int kn_filter_ask(const struct kn_filter *f, const struct seccomp_data *d,
    uint32_t *out_ret, struct kn_err *e);
/* Called by the policy check: 0, or -1 with the unknown group or call named. */
int kn_filter_check_group(const char *group, struct kn_err *e);
int kn_filter_check_call(const char *name, struct kn_err *e);
/* The same for a group that is to be allowed: not one of which nothing can be. */
int kn_filter_check_group_allows(const char *group, struct kn_err *e);
/* This machine as libseccomp and as Docker name it: "SCMP_ARCH_X86_64", "amd64". */
void kn_filter_machine(const char **out_scmp, const char **out_docker);

#endif
