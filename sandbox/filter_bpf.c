/* sandbox/filter_bpf.c: a small assembler for classic BPF, built from the end.
 *
 * Jumps of classic BPF go forward only, conditional ones at most 255 instructions. Made
 * backwards, every target is known when a jump is made; one too far away gets an
 * unconditional jump in between. Equal nodes are made once, so equal tails are shared.
 */
#include <linux/filter.h>
#include <stdlib.h>

#include "sandbox/filter_int.h"

struct kn_bpf_ins {
	uint16_t code;
	uint32_t k;
	uint32_t yes, no; /* nodes; for anything but a jump: yes is what follows */
};

enum { NEAR = 255, RET_NEAR = 200 };

static uint32_t
push(struct kn_bpf *b, struct kn_bpf_ins i)
{
	if (b->n == b->cap) {
		size_t cap = b->cap ? b->cap * 2 : 256;
		struct kn_bpf_ins *v = realloc(b->v, cap * sizeof *v);
		if (!v) {
			b->failed = true;
			return 0;
		}
		b->v = v;
		b->cap = cap;
	}
	b->v[b->n] = i;
	return (uint32_t)b->n++;
}

/* An equal node made before, not farther back than `within`; or a new one. */
static uint32_t
node(struct kn_bpf *b, struct kn_bpf_ins i, size_t within)
{
	size_t stop = b->n > within ? b->n - within : 0;
	for (size_t at = b->n; at-- > stop;) {
		const struct kn_bpf_ins *v = &b->v[at];
		if (v->code == i.code && v->k == i.k && v->yes == i.yes &&
		    v->no == i.no)
			return (uint32_t)at;
	}
	return push(b, i);
}

static bool
is_far(const struct kn_bpf *b, uint32_t target)
{
	return b->n - target - 1 > NEAR;
}

/* A jump to `target` right here. */
static uint32_t
hop(struct kn_bpf *b, uint32_t target)
{
	return push(b, (struct kn_bpf_ins){ BPF_JMP | BPF_JA, 0, target, target });
}

uint32_t
kn_bpf_ret(struct kn_bpf *b, uint32_t value)
{
	return node(b, (struct kn_bpf_ins){ BPF_RET | BPF_K, value, 0, 0 }, RET_NEAR);
}

/* An instruction that falls through: what follows must be the node made last. */
static uint32_t
straight(struct kn_bpf *b, uint16_t code, uint32_t k, uint32_t next)
{
	struct kn_bpf_ins i = { code, k, next, next };
	for (size_t at = b->n; at-- > 0;)
		if (b->v[at].code == code && b->v[at].k == k && b->v[at].yes == next)
			return (uint32_t)at;
	if (b->n == 0 || next != b->n - 1) {
		hop(b, next);
		i.yes = i.no = next;
	}
	return push(b, i);
}

uint32_t
kn_bpf_load(struct kn_bpf *b, uint32_t offset, uint32_t next)
{
	return straight(b, BPF_LD | BPF_W | BPF_ABS, offset, next);
}

uint32_t
kn_bpf_and(struct kn_bpf *b, uint32_t mask, uint32_t next)
{
	return straight(b, BPF_ALU | BPF_AND | BPF_K, mask, next);
}

uint32_t
kn_bpf_jump(struct kn_bpf *b, uint16_t op, uint32_t k, uint32_t yes, uint32_t no)
{
	if (yes == no)
		return yes;
	struct kn_bpf_ins i = { (uint16_t)(BPF_JMP | op | BPF_K), k, yes, no };
	for (size_t at = b->n; at-- > 0;)
		if (b->v[at].code == i.code && b->v[at].k == k && b->v[at].yes == yes &&
		    b->v[at].no == no)
			return (uint32_t)at;
	while (!b->failed && (is_far(b, i.yes) || is_far(b, i.no))) {
		if (is_far(b, i.yes))
			i.yes = hop(b, i.yes);
		else
			i.no = hop(b, i.no);
	}
	return push(b, i);
}

struct sock_filter *
kn_bpf_end(struct kn_bpf *b, uint32_t start, uint32_t *out_n)
{
	/* What was made after `start` is not reached from it: leave it out. */
	size_t n = b->failed ? 0 : (size_t)start + 1;
	struct sock_filter *out = n ? calloc(n, sizeof *out) : NULL;
	for (size_t at = 0; out && at < n; at++) {
		const struct kn_bpf_ins *i = &b->v[at];
		struct sock_filter *o = &out[n - 1 - at];
		o->code = i->code;
		o->k = i->k;
		if (i->code == (BPF_JMP | BPF_JA)) {
			o->k = (uint32_t)(at - i->yes - 1);
		} else if (BPF_CLASS(i->code) == BPF_JMP) {
			o->jt = (uint8_t)(at - i->yes - 1);
			o->jf = (uint8_t)(at - i->no - 1);
		}
	}
	free(b->v);
	*b = (struct kn_bpf){ 0 };
	*out_n = (uint32_t)n;
	return out;
}
