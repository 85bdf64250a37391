/* sandbox/stub/spent.c: see spent.h. */
#include "sandbox/stub/spent.h"

#include <stdbool.h>
#include <string.h>

#include "ipc/clock.h"
#include "sandbox/stub/look.h"

enum {
	TICK_HZ = 100, /* USER_HZ, the same on every machine we know */
	SEEN_MAX = 4096,
	LOOKS_SHARE = 16, /* looks take no more than that part of the time */
};
/* Between two looks: while processes come and go, while one works, while none does. */
#define GAP_MIN_NS (4 * KN_MS_NS)
#define GAP_WORK_NS (16 * KN_MS_NS)
#define GAP_IDLE_NS (64 * KN_MS_NS)
/* A sample of one that was idle is worth no more, or chance would have too much say. */
#define SAMPLE_MAX_NS (32 * KN_MS_NS)
/* A cell is caught when more is missing from the accounts than ticks can hide, which
 * are rounded down twice, in some, of those who live; and when the samples are above
 * what is known by more than chance, or a machine where all wait for a processor, would
 * explain. */
#define MISSING_NS (20 * KN_MS_NS)
#define MISSING_EACH_NS (2 * KN_MS_NS)
#define SLACK_NS (100 * KN_MS_NS)

struct seen {
	int pid;
	bool runs, many; /* threads */
	uint64_t waited_ns, own_ns;
};
/* Of this look and of the last one; pages that nobody touches cost nothing. */
static struct seen seen[2][SEEN_MAX];

void
kn_spent_begin(struct kn_spent *s, uint64_t now_ns)
{
	uint64_t random = s->random;

	memset(s, 0, sizeof *s);
	s->random = random ^ now_ns;
	s->last_ns = now_ns;
	s->gap_ns = GAP_MIN_NS;
}

void
kn_spent_look(struct kn_spent *s)
{
	s->now = !s->now;
	s->n_before = s->n;
	s->n = 0;
	s->beyond_ns = 0;
}

/* What was waited for is read of all of them before what they use themselves: a child
 * that ends meanwhile is missed once, and not counted twice. */
void
kn_spent_note(struct kn_spent *s, int proc_fd, const char *name, int pid)
{
	struct kn_look_stat st;
	uint64_t waited_ns;

	if (!kn_look_stat(proc_fd, name, &st))
		return;
	waited_ns = st.waited_ticks * (KN_S_NS / TICK_HZ);
	if (s->n == SEEN_MAX) {
		s->beyond_ns += waited_ns + kn_look_cpu_ns(pid);
		return;
	}
	seen[s->now][s->n++] = (struct seen){ .pid = pid,
		.runs = st.state == 'R',
		.many = st.threads > 1,
		.waited_ns = waited_ns };
}

static uint64_t
min_of(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* Both tables are in rising order. *i: where the last one was found. */
static const struct seen *
before(const struct kn_spent *s, int pid, uint32_t *i)
{
	const struct seen *v = seen[!s->now];

	while (*i < s->n_before && v[*i].pid < pid)
		++*i;
	return *i < s->n_before && v[*i].pid == pid ? &v[*i] : NULL;
}

/* Processes have come or gone, or what they did. */
struct change {
	uint64_t worked_ns, sampled_ns;
	uint32_t stayed;
};

static struct change
compare(const struct kn_spent *s, int init_pid, uint64_t since_ns)
{
	const struct seen *v = seen[s->now];
	struct change c = { 0, 0, 0 };
	uint32_t at = 0;

	for (uint32_t i = 0; i < s->n; i++) {
		const struct seen *old = before(s, v[i].pid, &at);
		uint64_t own_ns = v[i].own_ns;

		if (old && old->own_ns <= own_ns) {
			own_ns -= old->own_ns;
			c.stayed++;
		} else if (v[i].runs && own_ns > 0 && own_ns < since_ns) {
			c.sampled_ns += since_ns - own_ns;
		}
		if (v[i].pid != init_pid)
			c.worked_ns += own_ns;
	}
	return c;
}

static bool
is_caught(const struct kn_spent *s)
{
	uint64_t missing_ns = s->known_ns > s->found_ns ? s->known_ns - s->found_ns : 0;

	return missing_ns > MISSING_NS + MISSING_EACH_NS * s->n &&
	       s->guess_ns > 2 * s->known_ns + SLACK_NS;
}

/* The present table is full; apart from reading it, so that it can be tested. */
static uint64_t
settle(struct kn_spent *s, const struct kn_spent_init *init, uint32_t cpus,
    uint64_t now_ns)
{
	const struct seen *v = seen[s->now];
	uint64_t since_ns = now_ns - s->last_ns, found_ns = s->beyond_ns;
	struct change c = compare(s, init->pid, min_of(since_ns, SAMPLE_MAX_NS));

	for (uint32_t i = 0; i < s->n; i++)
		found_ns += v[i].own_ns + v[i].waited_ns;
	s->found_ns = found_ns > init->cpu_ns ? found_ns - init->cpu_ns : 0;
	s->known_ns += c.worked_ns;
	/* No more than there are processors for. */
	s->guess_ns += c.worked_ns;
	if (c.worked_ns < since_ns * cpus)
		s->guess_ns += min_of(c.sampled_ns, since_ns * cpus - c.worked_ns);
	if (s->known_ns < s->found_ns)
		s->known_ns = s->found_ns;
	if (s->told_ns < s->known_ns)
		s->told_ns = s->known_ns;
	if (s->told_ns < s->guess_ns && is_caught(s))
		s->told_ns = s->guess_ns;
	s->last_ns = now_ns;
	if (c.stayed != s->n || c.stayed != s->n_before)
		s->gap_ns = GAP_MIN_NS;
	else
		s->gap_ns =
		    min_of(s->gap_ns * 2, c.worked_ns > 0 ? GAP_WORK_NS : GAP_IDLE_NS);
	return s->told_ns;
}

uint64_t
kn_spent_sum(struct kn_spent *s, int proc_fd, const struct kn_spent_init *init,
    uint32_t cpus, uint64_t now_ns)
{
	struct seen *v = seen[s->now];

	for (uint32_t i = 0; i < s->n; i++) {
		v[i].own_ns = kn_look_cpu_ns(v[i].pid);
		if (v[i].own_ns == 0 && v[i].waited_ns == 0 && v[i].pid != init->pid)
			v[i].runs = false; /* it has not run yet, or is gone */
		else if (v[i].many && !v[i].runs)
			v[i].runs = kn_look_thread_runs(proc_fd, v[i].pid);
	}
	return settle(s, init, cpus, now_ns);
}

/* At random, as the samples must be. */
uint64_t
kn_spent_next(struct kn_spent *s, uint64_t now_ns)
{
	uint64_t took_ns = now_ns - s->last_ns;

	s->random =
	    (s->random ^ now_ns) * 6364136223846793005ull + 1442695040888963407ull;
	if (s->gap_ns < took_ns * LOOKS_SHARE)
		s->gap_ns = took_ns * LOOKS_SHARE;
	return now_ns + s->gap_ns / 2 + (s->random >> 33) % s->gap_ns;
}
