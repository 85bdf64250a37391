/* sandbox/policy_limits.c: sizes and durations as text, and a task's own limits, which
 * may tighten those of the policy and never loosen them.
 */
#include <string.h>

#include "sandbox/policy_int.h"

/* Digits only; false if there is none or it does not fit. */
static bool
digits(const char **p, uint64_t *out)
{
	uint64_t v = 0;
	const char *from = *p;
	for (; **p >= '0' && **p <= '9'; ++*p)
		if (__builtin_mul_overflow(v, 10, &v) ||
		    __builtin_add_overflow(v, (uint64_t)(**p - '0'), &v))
			return false;
	*out = v;
	return *p > from;
}

int
kn_policy_size(const char *text, uint64_t *out, struct kn_err *e)
{
	const char *p = text;
	uint64_t v = 0, unit = 1;
	if (digits(&p, &v)) {
		if (*p == 'K' || *p == 'k')
			unit = 1024;
		else if (*p == 'M' || *p == 'm')
			unit = 1024 * 1024;
		else if (*p == 'G' || *p == 'g')
			unit = 1024 * 1024 * 1024;
		if (unit > 1)
			p++;
		if (!*p && !__builtin_mul_overflow(v, unit, &v) && v <= INT64_MAX) {
			*out = v;
			return 0;
		}
	}
	char clean[64];
	kn_err_printable(clean, sizeof clean, text, (int)strnlen(text, 200));
	return kn_err_set(e, KN_EK_CONFIG,
	    "\"%s\" is not a size: use bytes, or a number with K, M or G", clean);
}

int
kn_policy_duration_ms(const char *text, uint64_t *out, struct kn_err *e)
{
	static const struct {
		const char *unit;
		uint64_t ms;
	} units[] = { { "ms", 1 }, { "s", 1000 }, { "m", 60000 }, { "h", 3600000 } };
	const char *p = text;
	uint64_t v = 0, part = 0, scale = 1;
	bool ok = digits(&p, &v);
	if (ok && *p == '.') { /* 1.5s: at most three digits, exact */
		const char *from = ++p;
		ok = digits(&p, &part) && p - from <= 3;
		for (; ok && from < p; from++)
			scale *= 10;
	}
	if (ok && v == 0 && part == 0 && !*p) {
		*out = 0;
		return 0;
	}
	for (size_t i = 0; ok && i < sizeof units / sizeof *units; i++) {
		uint64_t ms = units[i].ms, whole;
		if (strcmp(p, units[i].unit) != 0 || part * ms % scale)
			continue;
		if (__builtin_mul_overflow(v, ms, &whole) ||
		    __builtin_add_overflow(whole, part * ms / scale, &whole))
			break;
		*out = whole;
		return 0;
	}
	char clean[64];
	kn_err_printable(clean, sizeof clean, text, (int)strnlen(text, 200));
	return kn_err_set(e, KN_EK_CONFIG,
	    "\"%s\" is not a duration: use a number with ms, s, m or h, as 500ms or 2s",
	    clean);
}

struct ask {
	const char *pointer;
	bool has;
	uint64_t want, have;
	bool zero_is_none; /* 0 means unbounded, not the smallest */
};

static int
tighten_one(const struct ask *a, struct kn_err *e)
{
	bool none = a->zero_is_none && a->want == 0;
	if (!a->has)
		return 0;
	const struct kn_key *k = kn_policy_key(a->pointer);
	if (k && !none && (a->want > (uint64_t)k->max || (int64_t)a->want < k->min))
		return kn_err_set(e, KN_EK_CONFIG,
		    "%s: %llu is out of range (%lld to %lld)", a->pointer,
		    (unsigned long long)a->want, (long long)k->min, (long long)k->max);
	if (a->zero_is_none && a->have == 0)
		return 0;
	if (none)
		return kn_err_set(e, KN_EK_CONFIG,
		    "%s: 0 means no limit, and the policy has one: %llu", a->pointer,
		    (unsigned long long)a->have);
	if (a->want > a->have)
		return kn_err_set(e, KN_EK_CONFIG,
		    "%s: %llu is looser than the policy's %llu; a task may only "
		    "tighten",
		    a->pointer, (unsigned long long)a->want,
		    (unsigned long long)a->have);
	return 0;
}

int
kn_policy_tighten(const struct kn_policy *p, const struct kn_task_ask *want,
    struct kn_task_limits *out_limits, struct kn_timeouts *out_timeouts,
    struct kn_err *e)
{
	const struct kn_task_limits *l = &want->limits;
	const struct kn_timeouts *t = &want->timeouts;
#define LIMIT(name, member, none) \
	{ \
		"/limits/task/" #name, want->has_##name, l->member, p->task.member, \
		    none \
	}
#define TIMEOUT(name, none) \
	{ \
		"/timeouts/" #name, want->has_##name, t->name, p->timeouts.name, none \
	}
	const struct ask asks[] = {
		LIMIT(memory, memory, true),
		LIMIT(pids, pids, true),
		LIMIT(cpu_ms, cpu_ms, true),
		LIMIT(nofile, nofile, true),
		LIMIT(fsize, fsize, true),
		LIMIT(stack, stack, true),
		LIMIT(core, core, false),
		LIMIT(stdout, stdout_bytes, false),
		LIMIT(stderr, stderr_bytes, false),
		TIMEOUT(queue_ms, true),
		TIMEOUT(task_ms, true),
		TIMEOUT(hard_ms, true),
		TIMEOUT(grace_ms, false),
	};
	for (size_t i = 0; i < sizeof asks / sizeof *asks; i++)
		if (tighten_one(&asks[i], e) < 0)
			return -1;

	struct kn_task_limits nl = p->task;
	struct kn_timeouts nt = p->timeouts;
#define TAKE(has, to, from) \
	if (want->has) \
	to = from
	TAKE(has_memory, nl.memory, l->memory);
	TAKE(has_pids, nl.pids, l->pids);
	TAKE(has_cpu_ms, nl.cpu_ms, l->cpu_ms);
	TAKE(has_nofile, nl.nofile, l->nofile);
	TAKE(has_fsize, nl.fsize, l->fsize);
	TAKE(has_stack, nl.stack, l->stack);
	TAKE(has_core, nl.core, l->core);
	TAKE(has_stdout, nl.stdout_bytes, l->stdout_bytes);
	TAKE(has_stderr, nl.stderr_bytes, l->stderr_bytes);
	TAKE(has_queue_ms, nt.queue_ms, t->queue_ms);
	TAKE(has_task_ms, nt.task_ms, t->task_ms);
	TAKE(has_hard_ms, nt.hard_ms, t->hard_ms);
	TAKE(has_grace_ms, nt.grace_ms, t->grace_ms);
	if (!p->console)
		nl.stdout_bytes = nl.stderr_bytes = 0;
	*out_limits = nl;
	*out_timeouts = nt;
	return 0;
}
