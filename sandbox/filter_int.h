/* sandbox/filter_int.h: what the filter*.c files share; no one else includes it.
 *
 *   filter.c         the API: a policy -> two programs
 *   filter_table.c   a policy -> one ordered list of decisions per system call
 *   filter_join.c    lists of decisions: to append to one, to make one of two
 *   filter_decide.c  what those lists say about one call
 *   filter_guard.c   calls that stay refused, whatever groups are allowed
 *   filter_module.c  what kind module always and never has
 *   filter_groups.c  the named groups
 *   filter_names.c   numbers of calls; which arguments the kernel reads as 32 bits
 *   filter_abi.c     the other ABIs of this machine: x32, i386
 *   filter_told.c    a call that was refused -> by what, and what would allow it
 *   filter_explain.c which rule, guard or group decides about one call
 *   filter_run.c     what a program answers, as the kernel reads it
 *   filter_export.c  the decisions as rules that need no order
 *   filter_bpf.c     a small assembler for classic BPF
 *
 * libseccomp resolves the names. It does not make the programs: its rules for one call
 * have no order, an argument may be compared once per rule, and its tree has a leaf for
 * each call where a range would do, so that neither "refuse unless" nor "the last rule
 * that matches decides" could be said. For the calls of preset default: 158
 * instructions made in 0.2 ms, where libseccomp 2.5.4 takes 3 ms for 456 as a tree, or
 * 20 ms for 365 in a row.
 */
#ifndef KN_SANDBOX_FILTER_INT_H
#define KN_SANDBOX_FILTER_INT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sandbox/filter.h"
#include "sandbox/policy.h"

struct sock_filter;

/* ---- names ---- */
enum {
	KN_NR_MAX = 576
}; /* every number of every ABI is below; x32's without its bit */
enum { KN_NR_X32 = 0x40000000 };
enum {
	KN_NR_UNKNOWN = -1, /* nobody knows the name */
	KN_NR_FOREIGN = -2  /* a call of another architecture */
};
int kn_filter_nr(const char *name);
/* The same by the numbers of one ABI; those of x32 without the bit that marks them. */
int kn_filter_nr_of(enum kn_abi abi, const char *name);
/* The name of a number, malloc'ed, or NULL. */
char *kn_filter_name_of(enum kn_abi abi, uint32_t nr);
/* Does this machine have it, so that a filter could cover it? */
bool kn_filter_abi_here(enum kn_abi abi);
/* A call about which newer kernels ask no filter. */
bool kn_filter_unasked(enum kn_abi abi, uint32_t nr);
/* AUDIT_ARCH_* that the kernel says of its calls. */
uint32_t kn_filter_abi_arch(enum kn_abi abi);
/* What else an i386 program may call it: names in order, NULL after the last. */
const char *kn_filter_other_name(
    enum kn_abi abi, const char *name, unsigned i, char room[64]);
/* The number and the name of calls that libseccomp is too old for, or KN_NR_UNKNOWN,
 * NULL. */
int kn_filter_newer(const char *name);
const char *kn_filter_newer_name(uint32_t nr);
/* The kernel reads argument `index` of this call as 32 bits: the upper half is free for
 * an attacker to fill, so it must not be compared. */
bool kn_filter_arg_is_32(const char *name, unsigned index);

struct kn_fgroup {
	const char *name;
	const char *const
	    *calls; /* NULL-terminated; "@..." is a group, "*" all calls */
};
extern const struct kn_fgroup kn_filter_groups[];
extern const size_t kn_filter_group_n;
const struct kn_fgroup *kn_filter_group(const char *name); /* NULL: none of that name */

/* ---- guards ---- */
enum kn_guard_when {
	KN_GUARD_ALWAYS,
	KN_GUARD_NET_NONE,
	KN_GUARD_NET_HOST,
	KN_GUARD_NET_ALLOW,
	KN_GUARD_WATCHED,   /* memory is watched, not counted by a cgroup */
	KN_GUARD_DIRECT,    /* launcher direct: the machine's own files and services */
	KN_GUARD_SAME_USER, /* and tasks are the caller's uid */
};
struct kn_guard {
	const char *const *names;
	unsigned errno_ret; /* 0: go on to what the groups say */
	enum kn_guard_when when;
	size_t arg_n;
	struct kn_seccomp_arg args[2]; /* all must hold */
	const char *why;
	bool quiet; /* refused at each start of a thread or so, and nobody minds: not
		       told of (filter_told.h) */
};
/* In order; the first row that matches decides. */
extern const struct kn_guard kn_filter_guards[];
extern const size_t kn_filter_guard_n;
/* Of launcher direct: refused also if a rule names it. */
extern const struct kn_guard kn_filter_direct_never[];
extern const size_t kn_filter_direct_never_n;
bool kn_guard_applies(
    const struct kn_guard *g, const struct kn_policy *p, bool watched);

/* ---- kind module (NULL-terminated names) ---- */
extern const char *const kn_filter_module_never[];
extern const char *const kn_filter_module_needs[];

/* ---- the decisions ---- */
struct kn_farg {
	unsigned index;
	enum kn_cmp_op op;
	bool narrow; /* 32 bits */
	uint64_t value, value_two;
};
/* Who says so; `at` is the index of it. */
enum kn_fwho {
	KN_FWHO_DEFAULT, /* nobody: what happens to the unlisted */
	KN_FWHO_NEVER,	 /* kind module, permissions.run, launcher direct; at: enum
			    kn_fnever */
	KN_FWHO_RULE,	 /* of the policy: seccomp.rules */
	KN_FWHO_GUARD,
	KN_FWHO_GROUP,	 /* in the policy's list */
	KN_FWHO_NEEDED,	 /* by a module's process */
	KN_FWHO_PROFILE, /* its entries */
	KN_FWHO_NEWER,	 /* than every call that the profile names */
	KN_FWHO_ABI,	 /* the check of the architecture */
	KN_FWHO_N
};
enum kn_fnever { KN_FNEVER_MODULE, KN_FNEVER_RUN, KN_FNEVER_DIRECT };
/* A sentence about it. */
const char *kn_filter_never_why(uint32_t at);
struct kn_fentry {
	struct kn_farg args[8];
	size_t arg_n; /* all must hold; none: always */
	uint32_t ret; /* SECCOMP_RET_* */
	enum kn_fwho who;
	uint32_t at;
	bool guarded; /* a rule that allows a group: not what a guard refuses. Gone once
			 the lists are joined. */
};
struct kn_fcall {
	struct kn_fentry *v; /* the first that matches decides; the last has no args */
	size_t n, cap;
	bool ruled;   /* a rule of the policy names it */
	bool listens; /* it is seccomp(), which can make a listener */
};
struct kn_ftable {
	struct kn_fcall calls[KN_NR_MAX];
	enum kn_abi abi;
	uint32_t arch;	   /* AUDIT_ARCH_* */
	uint32_t unlisted; /* SECCOMP_RET_* for numbers that nothing names */
	uint32_t newer;	   /* from this number on it is ENOSYS */
	struct kn_ftable *other[KN_ABI_N]; /* of the native one: those covered too */
};
int kn_ftable_init(
    struct kn_ftable *t, const struct kn_policy *p, bool watched, struct kn_err *e);
void kn_ftable_fini(struct kn_ftable *t);
/* What the policy says about a call: a SECCOMP_RET_* value. */
uint32_t kn_ftable_decide(
    const struct kn_ftable *t, uint32_t arch, uint32_t nr, const uint64_t args[6]);
/* The same, with who says so (and nothing of its conditions where nobody names it). */
struct kn_fentry kn_ftable_find(
    const struct kn_ftable *t, uint32_t arch, uint32_t nr, const uint64_t args[6]);
/* The list that decides; NULL: none has the number. */
const struct kn_fcall *kn_ftable_list(
    const struct kn_ftable *t, uint32_t arch, uint32_t nr);
bool kn_fentry_holds(const struct kn_fentry *f, const uint64_t args[6]);
bool kn_farg_holds(const struct kn_farg *a, uint64_t v);
/* What numbers above all lists get. */
struct kn_fentry kn_ftable_beyond(const struct kn_ftable *t);
/* An action as the kernel takes it. */
uint32_t kn_filter_ret(enum kn_seccomp_action action, unsigned errno_ret);
/* At the end of a list; nothing where it cannot be reached. */
int kn_fcall_push(struct kn_fcall *c, const struct kn_fentry *f, struct kn_err *e);
/* Under these conditions too: 1; 0: then it never holds. */
int kn_fentry_narrow(
    struct kn_fentry *f, const struct kn_fentry *under, struct kn_err *e);
/* What rules say of a call, and below that guards and base: one list, in *rules;
 * empties *below. */
int kn_fcall_join(struct kn_fcall *rules, struct kn_fcall *below, struct kn_err *e);
/* A call needed by the stub: always the same as its list says? */
bool kn_fcall_is_plain_allow(const struct kn_fcall *c);
/* Numbers of sandbox/stub/calls.h, as a flag per number. */
void kn_filter_stub_calls(bool out[KN_NR_MAX]);
/* Calls that the stub makes in no form that a guard minds, and the arguments of one. */
struct kn_stub_form {
	const char *name;
	uint64_t args[6];
};
extern const struct kn_stub_form kn_filter_stub_forms[];
extern const size_t kn_filter_stub_form_n;

/* ---- the assembler: programs are made from their end to their start, so that a jump's
 * target exists when the jump is made. A node is an instruction made earlier. ---- */
struct kn_bpf {
	struct kn_bpf_ins *v;
	size_t n, cap;
	bool failed; /* out of memory; checked once at the end */
};

uint32_t kn_bpf_ret(struct kn_bpf *b, uint32_t value);
uint32_t kn_bpf_load(struct kn_bpf *b, uint32_t offset, uint32_t next);
uint32_t kn_bpf_and(struct kn_bpf *b, uint32_t mask, uint32_t next);
/* op: BPF_JEQ, BPF_JGT, BPF_JGE */
uint32_t kn_bpf_jump(
    struct kn_bpf *b, uint16_t op, uint32_t k, uint32_t yes, uint32_t no);
/* The program that starts at `start`: malloc'ed; frees b's memory. NULL: no memory. */
struct sock_filter *kn_bpf_end(struct kn_bpf *b, uint32_t start, uint32_t *out_n);

#endif
