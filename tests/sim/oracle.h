/* tests/sim/oracle.h: the oracle's parts: oracle.c keeps the book, oracle_act.c judges
 * each action, oracle_due.c says what is due and what may not lie idle. */
#ifndef KN_SIM_ORACLE_H
#define KN_SIM_ORACLE_H

#include "tests/sim/sim.h"

static inline bool
oracle_ending(const struct sim *s)
{
	return s->stopping || s->failed;
}

/* Since when w could take the first task of its lane. */
static inline uint64_t
oracle_could(const struct sim *s, uint32_t w)
{
	const struct book_worker *b = &s->b[w];
	uint64_t published_ns = s->t[b->lane[0]].published_ns;

	return published_ns > b->head_since_ns ? published_ns : b->head_since_ns;
}

static inline uint64_t
oracle_claim_ns(const struct sim *s, const struct book_task *t)
{
	if (s->c.claim_ms != 0)
		return s->c.claim_ms * MS;
	return t->hard_ms != 0 ? (t->hard_ms + (uint64_t)s->c.hard_slack_ms) * MS : 0;
}

/* A publication to w failed not long ago: the core waits before the next. */
static inline bool
oracle_refused(const struct sim *s, uint32_t w)
{
	return s->b[w].refused_ns != 0;
}

/* So many failed launches in a row end the pool. */
static inline uint32_t
oracle_crash_limit(const struct sim *s)
{
	return s->ever_ready && s->c.crash_loop_later ? s->c.crash_loop_later
						      : s->c.crash_loop;
}

/* Ready, and gets tasks by right. */
static inline bool
oracle_stays(const struct sim *s, uint32_t w)
{
	const struct book_worker *b = &s->b[w];

	if (b->told != READY || b->retire)
		return false;
	uint32_t unclaimed = 0;
	for (uint32_t i = 0; i < b->lane_n; i++)
		unclaimed += !s->t[b->lane[i]].claimed;
	return s->c.recycle_tasks == 0 || b->given + unclaimed < s->c.recycle_tasks;
}

/* What a worker has more for a task of which, it says, nothing runs any more. */
static inline uint64_t
oracle_teardown(const struct sim *s, const struct book_task *t)
{
	return t->over ? s->c.teardown_ms * MS : 0;
}

/* By when KILL_TASK is followed by a result. */
static inline uint64_t
oracle_kill_due(const struct sim *s, const struct book_task *t)
{
	return t->kill_ns + (s->c.grace_ms + (uint64_t)s->c.hard_slack_ms) * MS +
	       oracle_teardown(s, t);
}

/* Of calls only the first can be at fault, and its grace begins when it is the first.
 */
static inline uint64_t
oracle_end_due(const struct sim *s, uint32_t w, uint32_t i)
{
	const struct book_worker *b = &s->b[w];
	uint64_t due_ns = oracle_kill_due(s, &s->t[b->lane[i]]);
	uint64_t turn_ns = b->head_since_ns + s->c.grace_ms * MS;

	if (!s->c.calls)
		return due_ns;
	if (i > 0)
		return NEVER;
	return due_ns > turn_ns ? due_ns : turn_ns;
}

/* From the acknowledgement of a stop to the end. */
static inline uint64_t
oracle_ending_ns(const struct sim *s)
{
	return (s->c.grace_ms + (uint64_t)s->c.hard_slack_ms +
		   (s->c.calls ? 1000 : 0)) *
	       MS;
}

/* Was w asked about a task of its lane in this very step? The answer comes before any
 * kill. */
static inline bool
oracle_looking(const struct sim *s, uint32_t w)
{
	const struct book_worker *b = &s->b[w];

	for (uint32_t i = 0; i < b->lane_n; i++) {
		const struct book_task *t = &s->t[b->lane[i]];
		if (t->look_step == s->steps || t->ask_over_step == s->steps)
			return true;
	}
	return false;
}

/* No kill for t before it was asked whether it is over. */
static inline bool
oracle_asked_over(const struct sim *s, const struct book_task *t)
{
	return s->c.teardown_ms == 0 || t->over ||
	       (t->ask_over_step != 0 && t->ask_over_step != s->steps);
}

/* Somebody of w's bank is idle, and takes what lies there. */
static inline bool
oracle_served(const struct sim *s, uint32_t w)
{
	for (uint32_t v = 0; s->c.bank_size > 1 && v < s->worker_n; v++)
		if (v != w && sim_same_bank(s, v, w) && s->b[v].told == READY &&
		    s->b[v].lane_n == 0)
			return true;
	return false;
}

static inline uint32_t
oracle_unclaimed(const struct sim *s, const struct book_worker *b)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < b->lane_n; i++)
		n += !s->t[b->lane[i]].claimed;
	return n;
}

/* How it is answered if no result comes: the first decision stands. */
void oracle_decide(struct book_task *t, enum kn_how how);
/* When the hard limit of w's first task is over, as far as can be known; 0: never. */
uint64_t oracle_hard_due(const struct sim *s, uint32_t w);

#endif
