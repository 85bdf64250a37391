/* sandbox/stub/spent.h: the processor time of a cell that no cgroup counts.
 *
 * A process knows what it used, and what the children used that it waited for. Of a
 * child whose parent ignores SIGCHLD the kernel keeps nothing. So what each process was
 * last seen to have used is kept when it is gone: never more than the truth, whoever
 * waits for whom. Children that come and go between two looks are in their parent's
 * account if it waits; if it does not, they are sampled. The looks are at random times,
 * so whoever runs in one that did not in the look before is taken to have run since
 * then: that is right on the whole and wrong for each. It counts only for a cell that
 * is caught: where children's time is missing from every account, and the samples say
 * more than twice what is known.
 */
#ifndef KN_STUB_SPENT_H
#define KN_STUB_SPENT_H

#include <stdint.h>

struct kn_spent {
	uint64_t known_ns; /* at least this */
	uint64_t found_ns; /* in the accounts of those who live */
	uint64_t guess_ns; /* by the samples */
	uint64_t told_ns;  /* what is said of it; never less than before */
	uint64_t last_ns, gap_ns, random;
	uint64_t beyond_ns; /* of those that the table has no room for */
	uint32_t n, n_before;
	int now; /* which of the tables is the present look's */
};

void kn_spent_begin(struct kn_spent *s, uint64_t now_ns);
/* A look: begin, each process of the cell in rising order, end. *init* is the cell's
 * own, with what it used before there was a task. Returns what the cell has used. */
void kn_spent_look(struct kn_spent *s);
void kn_spent_note(struct kn_spent *s, int proc_fd, const char *name, int pid);
struct kn_spent_init {
	int pid;
	uint64_t cpu_ns;
};
uint64_t kn_spent_sum(struct kn_spent *s, int proc_fd, const struct kn_spent_init *init,
    uint32_t cpus, uint64_t now_ns);
/* When to look again, at the latest. */
uint64_t kn_spent_next(struct kn_spent *s, uint64_t now_ns);

#endif
