/* sandbox/filter.c: the decisions of a policy as two classic BPF programs.
 *
 * Numbers with equal decisions side by side are one range; a binary tree over the
 * ranges finds the one of a call in at most nine comparisons.
 */
#include <endian.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/socket.h>

#include "ipc/control.h"
#include "ipc/err.h"
#include "sandbox/filter_int.h"

enum { KN_BPF_MAX = 4096 }; /* BPF_MAXINSNS */

#if __BYTE_ORDER == __LITTLE_ENDIAN
enum { LOW = 0, HIGH = 4 };
#else
enum { LOW = 4, HIGH = 0 };
#endif

struct program {
	const struct kn_ftable *t;
	const bool *stub;
	const struct kn_filter_how *how;
	bool cell;
	uint64_t exec_key;
	struct kn_bpf b;
	struct range {
		uint32_t from;
		const struct kn_fcall *call; /* whose decisions; NULL: ret */
		uint32_t ret;
		bool both; /* programs have it, each for other code */
	} ranges[2 * KN_NR_MAX + 2];
	size_t range_n;
};

/* One half of a comparison that takes both: op on the high word, then on the low. */
static uint32_t
compare(struct kn_bpf *b, const struct kn_farg *a, uint32_t yes, uint32_t no)
{
	uint32_t low_at =
	    (uint32_t)offsetof(struct seccomp_data, args) + 8 * a->index + LOW;
	uint32_t high_at = low_at - LOW + HIGH;
	uint32_t low = (uint32_t)a->value, high = (uint32_t)(a->value >> 32);
	bool greater = false, flip = false;
	uint16_t op = BPF_JEQ;
	switch (a->op) {
	case KN_CMP_MASKED_EQ: {
		uint32_t want = (uint32_t)a->value_two;
		uint32_t want_high = (uint32_t)(a->value_two >> 32);
		uint32_t next = kn_bpf_jump(b, BPF_JEQ, want, yes, no);
		next = kn_bpf_load(b, low_at, kn_bpf_and(b, low, next));
		if (a->narrow)
			return next;
		if (high == 0) /* nothing to look at; a wanted bit can never be there */
			return want_high ? no : next;
		next = kn_bpf_jump(b, BPF_JEQ, want_high, next, no);
		return kn_bpf_load(b, high_at, kn_bpf_and(b, high, next));
	}
	case KN_CMP_NE:
		flip = true;
		break;
	case KN_CMP_LT: /* not >= */
		flip = true;
		op = BPF_JGE;
		greater = true;
		break;
	case KN_CMP_GE:
		op = BPF_JGE;
		greater = true;
		break;
	case KN_CMP_LE: /* not > */
		flip = true;
		op = BPF_JGT;
		greater = true;
		break;
	case KN_CMP_GT:
		op = BPF_JGT;
		greater = true;
		break;
	case KN_CMP_EQ:
	default:
		break;
	}
	if (flip) {
		uint32_t was = yes;
		yes = no;
		no = was;
	}
	uint32_t next = kn_bpf_load(b, low_at, kn_bpf_jump(b, op, low, yes, no));
	if (a->narrow)
		return next;
	next = kn_bpf_jump(b, BPF_JEQ, high, next, no);
	if (greater)
		next = kn_bpf_jump(b, BPF_JGT, high, yes, next);
	return kn_bpf_load(b, high_at, next);
}

/* What the kernel is told to do: where refusals are told, to ask. */
static uint32_t
ret_of(const struct program *p, const struct kn_fentry *f)
{
	bool quiet = f->who == KN_FWHO_GUARD && kn_filter_guards[f->at].quiet;
	if (p->how->tell && !p->cell && !quiet &&
	    (f->ret & SECCOMP_RET_ACTION_FULL) == SECCOMP_RET_ERRNO)
		return SECCOMP_RET_USER_NOTIF;
	return f->ret;
}

/* The kernel has one listener among all filters of a process, and answers who asks for
 * another with EBUSY; but not any more when ours is closed, as by the end of a killed
 * supervisor. A task's own would then let through what ours was to be asked about. So
 * the filters say the same, in any case. */
static bool
may_listen(const struct program *p, const struct kn_fcall *c)
{
	return c->listens && p->how->tell;
}

static uint32_t
answer(struct program *p, const struct kn_fcall *c, const struct kn_fentry *f)
{
	static const struct kn_farg asks = { 1, KN_CMP_MASKED_EQ, true,
		SECCOMP_FILTER_FLAG_NEW_LISTENER, SECCOMP_FILTER_FLAG_NEW_LISTENER };
	uint32_t ret = ret_of(p, f), action = ret & SECCOMP_RET_ACTION_FULL;
	uint32_t node = kn_bpf_ret(&p->b, ret);
	if (!may_listen(p, c) ||
	    (action != SECCOMP_RET_ALLOW && action != SECCOMP_RET_LOG))
		return node;
	uint32_t busy = kn_bpf_ret(&p->b, SECCOMP_RET_ERRNO | EBUSY);
	return compare(&p->b, &asks, busy, node);
}

/* The decisions of one call, from the last to the first. */
static uint32_t
decisions(struct program *p, const struct kn_fcall *c)
{
	struct kn_bpf *b = &p->b;
	uint32_t node = answer(p, c, &c->v[c->n - 1]);
	for (size_t i = c->n - 1; i-- > 0;) {
		uint32_t yes = answer(p, c, &c->v[i]);
		for (size_t j = c->v[i].arg_n; j-- > 0;)
			yes = compare(b, &c->v[i].args[j], yes, node);
		node = yes;
	}
	return node;
}

/* Is the call made by the stub's code? */
static uint32_t
by_stub(struct program *p, uint32_t yes, uint32_t no)
{
	const uint32_t ip =
	    (uint32_t)offsetof(struct seccomp_data, instruction_pointer);
	struct kn_bpf *b = &p->b;
	uint32_t at = kn_bpf_jump(b, BPF_JGE, (uint32_t)p->how->stub_to, no, yes);
	at = kn_bpf_jump(b, BPF_JGE, (uint32_t)p->how->stub_from, at, no);
	at = kn_bpf_jump(b, BPF_JEQ, 0, kn_bpf_load(b, ip + LOW, at), no);
	return kn_bpf_load(b, ip + HIGH, at);
}

static uint32_t
leaf(struct program *p, const struct range *r)
{
	if (!r->call)
		return kn_bpf_ret(&p->b, r->ret);
	uint32_t node = decisions(p, r->call);
	if (!r->both)
		return node;
	uint32_t allow = kn_bpf_ret(&p->b, SECCOMP_RET_ALLOW);
	return p->cell ? by_stub(p, node, allow) : by_stub(p, allow, node);
}

static uint32_t
tree(struct program *p, size_t lo, size_t hi)
{
	if (lo == hi)
		return leaf(p, &p->ranges[lo]);
	size_t mid = (lo + hi + 1) / 2;
	uint32_t right = tree(p, mid, hi);
	uint32_t left = tree(p, lo, mid - 1);
	return kn_bpf_jump(&p->b, BPF_JGE, p->ranges[mid].from, right, left);
}

/* What this program says about a number; the other one has the rest to say. The stub
 * makes its calls by native numbers only. */
static struct range
range_of(const struct program *p, const struct kn_ftable *t, uint32_t nr)
{
	const struct kn_fcall *c = &t->calls[nr];
	uint32_t mark = t->abi == KN_ABI_X32 ? KN_NR_X32 : 0;
	struct range r = { nr | mark, NULL, SECCOMP_RET_ALLOW, false };
	bool stub = t->abi == KN_ABI_NATIVE && p->stub[nr];
	bool both = stub && p->how->tell;
	bool plain = !may_listen(p, c);
	if ((stub != p->cell && !both) || (plain && kn_fcall_is_plain_allow(c)))
		return r;
	r.both = both;
	if (c->n == 1 && plain && !both)
		r.ret = ret_of(p, &c->v[0]);
	else
		r.call = c;
	return r;
}

static void
add_range(struct program *p, struct range r)
{
	const struct range *last = p->range_n ? &p->ranges[p->range_n - 1] : NULL;
	if (last && !last->call && !r.call && last->ret == r.ret)
		return;
	p->ranges[p->range_n++] = r;
}

/* Before all rules of the cell's program: the question whether it is in force. start:
 * where a number that is loaded goes. */
static uint32_t
answer_probe(struct kn_bpf *b, uint32_t start)
{
	uint32_t nr = (uint32_t)kn_filter_nr("prctl");
	uint32_t again =
	    kn_bpf_load(b, (uint32_t)offsetof(struct seccomp_data, nr), start);
	uint32_t yes = kn_bpf_ret(b, SECCOMP_RET_ERRNO | KN_CELL_PROBE_ERRNO);
	uint32_t at = kn_bpf_jump(b, BPF_JEQ, KN_CELL_PROBE, yes, again);

	at = kn_bpf_load(b, (uint32_t)offsetof(struct seccomp_data, args) + LOW, at);
	return kn_bpf_jump(b, BPF_JEQ, nr, at, start);
}

/* The start of a task where nothing is executed after it. The number is made anew for
 * each filter, and neither in a task's memory, registers nor sight. */
static uint32_t
answer_start(struct kn_bpf *b, uint64_t key, uint32_t start)
{
	const struct kn_farg is_key = { 3, KN_CMP_EQ, false, key, 0 };
	uint32_t again =
	    kn_bpf_load(b, (uint32_t)offsetof(struct seccomp_data, nr), start);
	uint32_t yes = kn_bpf_ret(b, SECCOMP_RET_ALLOW);

	return kn_bpf_jump(b, BPF_JEQ, (uint32_t)kn_filter_nr("execve"),
	    compare(b, &is_key, yes, again), start);
}

static void
add_table(struct program *p, const struct kn_ftable *t)
{
	for (uint32_t nr = 0; nr < KN_NR_MAX; nr++)
		add_range(p, range_of(p, t, nr));
}

/* The tree over all numbers of one architecture; x32's are the native one's. */
static uint32_t
arch_tree(struct program *p, const struct kn_ftable *t)
{
	const struct kn_ftable *x32 = t->other[KN_ABI_X32];
	const struct kn_fentry none = { .ret = SECCOMP_RET_ERRNO | ENOSYS };
	const struct kn_fentry beyond = kn_ftable_beyond(t);
	const struct range no = { KN_NR_X32 + (x32 ? KN_NR_MAX : 0), NULL,
		ret_of(p, &none), false };
	p->range_n = 0;
	add_table(p, t);
	if (!p->cell) {
		add_range(
		    p, (struct range){ KN_NR_MAX, NULL, ret_of(p, &beyond), false });
		if (x32)
			add_table(p, x32);
		if (t->abi == KN_ABI_NATIVE)
			add_range(p, no);
	}
	uint32_t at = tree(p, 0, p->range_n - 1);
	if (p->cell && p->exec_key)
		at = answer_start(&p->b, p->exec_key, at);
	if (p->cell)
		at = answer_probe(&p->b, at);
	return kn_bpf_load(&p->b, (uint32_t)offsetof(struct seccomp_data, nr), at);
}

static int
compile(struct program *p, void **out, uint32_t *out_n, struct kn_err *e)
{
	const struct kn_ftable *i386 = p->t->other[KN_ABI_I386];
	uint32_t other = i386 && !p->cell ? arch_tree(p, i386) : 0, at;
	at = arch_tree(p, p->t);
	if (!p->cell || i386) {
		uint32_t no = p->cell ? kn_bpf_ret(&p->b, SECCOMP_RET_ALLOW)
				      : kn_bpf_ret(&p->b, SECCOMP_RET_KILL_PROCESS);
		if (i386 && !p->cell)
			no = kn_bpf_jump(&p->b, BPF_JEQ, i386->arch, other, no);
		at = kn_bpf_jump(&p->b, BPF_JEQ, p->t->arch, at, no);
		at = kn_bpf_load(
		    &p->b, (uint32_t)offsetof(struct seccomp_data, arch), at);
	}
	*out = kn_bpf_end(&p->b, at, out_n);
	if (!*out)
		return kn_err_set(e, KN_EK_HOST, "seccomp: out of memory");
	if (*out_n > KN_BPF_MAX)
		return kn_err_set(e, KN_EK_CONFIG,
		    "/seccomp: the rules make a program of %u instructions; the kernel "
		    "takes %d",
		    *out_n, KN_BPF_MAX);
	return 0;
}

/* A call of the stub's that only guards restrict, and not as the stub makes it: the
 * worker's program can say all of that, and the cell's, which each task loads anew,
 * gets by without. */
static void
leave_to_worker(const struct kn_ftable *t, bool stub[KN_NR_MAX])
{
	for (size_t i = 0; i < kn_filter_stub_form_n; i++) {
		const struct kn_stub_form *f = &kn_filter_stub_forms[i];
		int nr = kn_filter_nr(f->name);
		if (nr >= 0 && !t->calls[nr].ruled &&
		    kn_ftable_decide(t, t->arch, (uint32_t)nr, f->args) ==
			SECCOMP_RET_ALLOW)
			stub[nr] = false;
	}
}

/* Without execve nothing of kind exec can start; better said here than by each task. */
static int
check_starts(const struct kn_ftable *t, struct kn_err *e)
{
	int nr = kn_filter_nr("execve");
	const struct kn_fcall *c = &t->calls[nr];
	for (size_t i = 0; i < c->n; i++)
		if (c->v[i].ret == SECCOMP_RET_ALLOW || c->v[i].ret == SECCOMP_RET_LOG)
			return 0;
	return kn_err_set(e, KN_EK_CONFIG,
	    "/seccomp: no group or rule allows execve, so no command could start; the "
	    "group @default has it");
}

static int
make_key(uint64_t *out, struct kn_err *e)
{
	while (*out == 0)
		if (getrandom(out, sizeof *out, 0) != sizeof *out && errno != EINTR)
			return kn_err_sys(e, KN_EK_HOST, "a random number");
	return 0;
}

/* Hosts that no call can reach were allowed in vain. */
static int
check_network(const struct kn_ftable *t, const struct kn_policy *p, struct kn_err *e)
{
	static const char *const needs[] = { "socket", "connect" };
	const uint64_t args[6] = { AF_INET, SOCK_STREAM };

	for (size_t i = 0; p->network == KN_NET_ALLOW && i < 2; i++) {
		int nr = kn_filter_nr(needs[i]);
		uint32_t ret = kn_ftable_decide(t, t->arch, (uint32_t)nr, args);

		if (ret == SECCOMP_RET_ALLOW || ret == SECCOMP_RET_LOG)
			continue;
		kn_err_set(e, KN_EK_CONFIG,
		    "/network/mode: \"allow\", and /seccomp refuses the call %s, so "
		    "nothing could be reached",
		    needs[i]);
		kn_err_hint(e, "the group @network-io has it: --set "
			       "'/seccomp/groups/add=[\"@network-io\"]'");
		return -1;
	}
	return 0;
}

/* A module's process asks for it only where nothing is held against it. */
static bool
may_call(const struct kn_ftable *t, const char *name, uint64_t arg)
{
	const uint64_t args[6] = { arg };
	int nr = kn_filter_nr(name);

	return nr >= 0 &&
	       kn_ftable_decide(t, t->arch, (uint32_t)nr, args) == SECCOMP_RET_ALLOW;
}

static int
build(const struct kn_policy *policy, const struct kn_filter_how *how,
    struct kn_filter *out, struct kn_err *e)
{
	struct kn_ftable t;
	bool stub[KN_NR_MAX];
	struct kn_filter f = { 0 };
	if (kn_ftable_init(&t, policy, how->watched, e) < 0)
		return -1;
	kn_filter_stub_calls(stub);
	leave_to_worker(&t, stub);
	struct program *p = calloc(2, sizeof *p);
	int rc = p ? 0 : kn_err_set(e, KN_EK_HOST, "seccomp: out of memory");
	if (rc == 0)
		rc = policy->run.set && policy->run.n == 0 ? make_key(&f.exec_key, e)
							   : check_starts(&t, e);
	if (rc == 0)
		rc = check_network(&t, policy, e);
	if (rc == 0) {
		p[0].t = p[1].t = &t;
		p[0].stub = p[1].stub = stub;
		p[0].how = p[1].how = how;
		p[1].cell = true;
		p[1].exec_key = f.exec_key;
		rc = compile(&p[0], &f.worker_bpf, &f.worker_n, e);
	}
	if (rc == 0)
		rc = compile(&p[1], &f.cell_bpf, &f.cell_n, e);
	free(p);
	f.may_place = may_call(&t, "sched_setaffinity", 0) &&
		      may_call(&t, "sched_getaffinity", 0);
	f.may_name = may_call(&t, "prctl", PR_SET_NAME);
	f.tells = how->tell;
	kn_ftable_fini(&t);
	if (rc < 0) {
		kn_filter_fini(&f);
		return -1;
	}
	*out = f;
	return 0;
}

int
kn_filter_build(const struct kn_policy *p, struct kn_filter *out, struct kn_err *e)
{
	const struct kn_filter_how how = { 0 };

	return build(p, &how, out, e);
}

int
kn_filter_build_watched(
    const struct kn_policy *p, struct kn_filter *out, struct kn_err *e)
{
	const struct kn_filter_how how = { .watched = true };

	return build(p, &how, out, e);
}

int
kn_filter_build_how(const struct kn_policy *p, const struct kn_filter_how *how,
    struct kn_filter *out, struct kn_err *e)
{
	return build(p, how, out, e);
}

void
kn_filter_fini(struct kn_filter *f)
{
	free(f->worker_bpf);
	free(f->cell_bpf);
	memset(f, 0, sizeof *f);
}
