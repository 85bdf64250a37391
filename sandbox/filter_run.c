/* sandbox/filter_run.c: what a filter answers, read as the kernel reads it: the program
 * itself, instruction by instruction, and not the lists that it was made of. It knows
 * the instructions that filter_bpf.c makes; anything else is an error.
 */
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <string.h>

#include "ipc/err.h"
#include "sandbox/filter.h"

int
kn_filter_run(const void *program, uint32_t n, const struct seccomp_data *d,
    uint32_t *out_ret, struct kn_err *e)
{
	const struct sock_filter *f = program;
	uint32_t a = 0;
	/* Jumps go forward only: this ends. */
	for (uint64_t pc = 0; pc < n; pc++) {
		const struct sock_filter *i = &f[pc];
		switch (i->code) {
		case BPF_LD | BPF_W | BPF_ABS:
			if (i->k % 4 || i->k > sizeof *d - 4)
				return kn_err_set(e, KN_EK_BUG,
				    "seccomp: instruction %u loads from %u",
				    (unsigned)pc, i->k);
			memcpy(&a, (const char *)d + i->k, sizeof a);
			break;
		case BPF_ALU | BPF_AND | BPF_K:
			a &= i->k;
			break;
		case BPF_JMP | BPF_JA:
			pc += i->k;
			break;
		case BPF_JMP | BPF_JEQ | BPF_K:
			pc += a == i->k ? i->jt : i->jf;
			break;
		case BPF_JMP | BPF_JGT | BPF_K:
			pc += a > i->k ? i->jt : i->jf;
			break;
		case BPF_JMP | BPF_JGE | BPF_K:
			pc += a >= i->k ? i->jt : i->jf;
			break;
		case BPF_RET | BPF_K:
			*out_ret = i->k;
			return 0;
		default:
			return kn_err_set(e, KN_EK_BUG,
			    "seccomp: instruction %u has code %#x", (unsigned)pc,
			    i->code);
		}
	}
	return kn_err_set(e, KN_EK_BUG, "seccomp: the program has no end");
}

/* The strictest action wins; of equal ones the filter that was loaded last. */
int
kn_filter_ask(const struct kn_filter *f, const struct seccomp_data *d,
    uint32_t *out_ret, struct kn_err *e)
{
	uint32_t worker, cell;
	if (kn_filter_run(f->worker_bpf, f->worker_n, d, &worker, e) < 0 ||
	    kn_filter_run(f->cell_bpf, f->cell_n, d, &cell, e) < 0)
		return -1;
	*out_ret = (int32_t)(worker & SECCOMP_RET_ACTION_FULL) <
			   (int32_t)(cell & SECCOMP_RET_ACTION_FULL)
		       ? worker
		       : cell;
	return 0;
}
