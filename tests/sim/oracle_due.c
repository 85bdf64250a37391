/* tests/sim/oracle_due.c: after each step: nothing overdue, the core's deadline early
 * enough, nothing that could be done left lying, and no timer where nothing waits. */
#include "tests/sim/oracle.h"

struct watch {
	struct sim *s;
	uint64_t first_ns;
	const char *first;
};

static void
due(struct watch *k, const char *what, uint32_t who, uint64_t due_ns)
{
	/* Deadlines fire on TIMER; until then the core must ask for one. */
	if (due_ns <= k->s->now_ns && k->s->fed->type == KN_EV_TIMER)
		sim_fail(k->s, "%s of %u is overdue by %.1f ms", what, who,
		    (double)(k->s->now_ns - due_ns) / 1e6);
	if (due_ns < k->first_ns) {
		k->first_ns = due_ns;
		k->first = what;
	}
}

uint64_t
oracle_hard_due(const struct sim *s, uint32_t w)
{
	const struct book_task *t = &s->t[s->b[w].lane[0]];

	if (!t->published || t->hard_ms == 0)
		return 0;
	uint64_t could = oracle_could(s, w);
	uint64_t seen = t->moved && t->claimed_ns > could ? t->claimed_ns : could;
	uint64_t latest = seen + oracle_claim_ns(s, t);
	uint64_t from = t->claimed_ns > could ? t->claimed_ns : could;

	if (!t->claimed)
		return 0; /* whether it is claimed is asked first */
	if (t->begun_ns != 0)
		from = t->begun_ns > t->published_ns ? t->begun_ns : t->published_ns;
	if (from > latest)
		from = latest;
	return from + (t->hard_ms + (uint64_t)s->c.hard_slack_ms) * MS +
	       oracle_teardown(s, t);
}

static void
due_of_ready(struct watch *k, uint32_t w)
{
	struct sim *s = k->s;
	const struct book_worker *b = &s->b[w];

	uint64_t recycle_ns = b->ready_ns + s->c.recycle_s * 1000 * MS;
	if (s->c.recycle_s != 0 && !b->retire &&
	    (b->lane_n == 0 || recycle_ns > s->now_ns))
		due(k, "recycle_s", w, recycle_ns);
	if (b->lane_n == 0)
		return;
	const struct book_task *t = &s->t[b->lane[0]];
	if (t->published && !t->claimed && !t->taking && oracle_claim_ns(s, t) != 0)
		due(k, "claim_ms", w, oracle_could(s, w) + oracle_claim_ns(s, t));
	uint64_t hard_ns = oracle_hard_due(s, w);
	bool asked = oracle_looking(s, w); /* the answer comes first */
	if (hard_ns != 0 && !asked)
		due(k, "hard_ms", w, hard_ns);
	for (uint32_t i = 0; i < b->lane_n; i++) {
		t = &s->t[b->lane[i]];
		if (t->killed && !asked)
			due(k, "end after KILL_TASK", w, oracle_end_due(s, w, i));
		if (t->claimed && !t->killed && s->stopping)
			due(k, "grace", w, s->stop_ns + s->c.grace_ms * MS);
	}
}

static void
due_of_worker(struct watch *k, uint32_t w)
{
	struct sim *s = k->s;
	const struct book_worker *b = &s->b[w];
	uint64_t end_ns = oracle_ending_ns(s);

	switch (b->told) {
	case DEAD:
	case SPAWNING:
		break;
	case STARTING:
		due(k, "start_ms", w, b->since_ns + s->c.start_ms * MS);
		break;
	case READY:
		due_of_ready(k, w);
		break;
	case STOPPING:
		if (b->lane_n > 0)
			due_of_ready(k, w); /* what it has claimed from a bank */
		else
			due(k, "stop_ack_ms", w, b->since_ns + s->c.stop_ack_ms * MS);
		break;
	case ENDING:
		due(k, "end after STOP_ACKED", w, b->since_ns + end_ns);
		break;
	case DYING:
		due(k, "second kill", w, b->since_ns + 1000 * MS);
		break;
	}
}

static void
check_tasks(struct watch *k)
{
	struct sim *s = k->s;

	for (uint32_t i = 0; i < s->c.task_max; i++) {
		const struct book_task *t = &s->t[i];
		bool lies =
		    t->worker < 0 || (t->published && !t->claimed && !t->taking);
		if (!t->open)
			continue;
		if (t->result_step == s->steps)
			sim_fail(s, "t%u has a result and no answer", i);
		if (t->lost_step == s->steps &&
		    (t->runs > t->retries || oracle_ending(s) || t->decided))
			sim_fail(s, "t%u is lost and not answered", i);
		if (lies && !t->ever_claimed && t->queue_ms != 0)
			due(k, "queue_ms", i, t->submit_ns + t->queue_ms * MS);
		/* After STOP_NOW what lies in a lane comes back with GONE. */
		if (lies && (t->cancelled || s->stopping) &&
		    (t->worker < 0 || !s->stop_now))
			sim_fail(s, "t%u is cancelled and lies about", i);
		if (t->worker < 0 && t->refused >= 16)
			sim_fail(s, "t%u is refused for ever", i);
		if (t->worker < 0 && s->failed)
			sim_fail(s, "t%u is queued in a failed pool", i);
		if (t->cancelled && t->claimed && !t->killed &&
		    s->b[t->worker].told == READY)
			sim_fail(s, "t%u is cancelled and runs on", i);
	}
}

static void
check_workers(struct watch *k)
{
	struct sim *s = k->s;
	bool all = oracle_ending(s) || (s->draining && s->open_n == 0);

	for (uint32_t w = 0; w < s->worker_n; w++) {
		const struct book_worker *b = &s->b[w];
		if (b->told == READY && b->lane_n == 0 && (all || !oracle_stays(s, w)))
			sim_fail(s, "w%u is ready and should be stopped", w);
		/* From a bank it would go on claiming. */
		if (b->told == READY && s->c.bank_size > 1 && !oracle_stays(s, w) &&
		    oracle_unclaimed(s, b) == 0)
			sim_fail(s, "w%u goes on claiming and should be stopped", w);
		if (b->told == STARTING && all)
			sim_fail(s, "w%u starts though all is over", w);
		if (b->told > SPAWNING && b->told != DYING && (s->stop_now || b->lied))
			sim_fail(s, "w%u should be killed", w);
		if (b->must_step == s->steps && b->told == READY)
			sim_fail(s, "w%u did not claim in time and lives", w);
		due_of_worker(k, w);
	}
	if (s->fail_step == s->steps && s->c.crash_loop != 0 &&
	    s->fails >= oracle_crash_limit(s) && !oracle_ending(s))
		sim_fail(s, "%u launches failed and the pool goes on", s->fails);
	if (s->fed->type == KN_EV_SPAWN_FAILED && s->fed->fatal && !s->ever_ready &&
	    !oracle_ending(s))
		sim_fail(s, "no launch can succeed and the pool goes on");
}

struct scene {
	uint32_t queued, taking, idle, usable, room, starting, ready, busy, dead,
	    dying_unclaimed;
	uint32_t takeable, laned, refused;
};

static struct scene
look_around(const struct sim *s)
{
	struct scene z = { 0 };

	for (uint32_t i = 0; i < s->c.task_max; i++) {
		const struct book_task *t = &s->t[i];
		z.queued += t->open && t->worker < 0;
		z.taking += t->open && t->taking;
	}
	for (uint32_t w = 0; w < s->worker_n; w++) {
		const struct book_worker *b = &s->b[w];
		z.dead += b->told == DEAD;
		z.starting += b->told == SPAWNING || b->told == STARTING;
		if (b->told == READY) {
			z.ready++;
			z.idle += b->lane_n == 0 && !oracle_refused(s, w);
			z.usable += b->lane_n == 0 && oracle_stays(s, w) &&
				    !oracle_refused(s, w);
			z.busy += b->lane_n > 0;
			z.laned += b->lane_n;
			z.refused += b->lane_n == 0 && oracle_refused(s, w);
			z.room += b->lane_n < s->c.lane_depth &&
				  !oracle_refused(s, w) &&
				  oracle_unclaimed(s, b) < 32 &&
				  (s->c.offer_max == 0 ||
				      oracle_unclaimed(s, b) < s->c.offer_max);
		}
		for (uint32_t i = 0; i < b->lane_n; i++) {
			const struct book_task *t = &s->t[b->lane[i]];
			z.dying_unclaimed += b->told == DYING && !t->claimed;
			z.takeable += t->published && !t->claimed && !t->taking &&
				      (i > 0 || b->told == DYING) &&
				      !oracle_served(s, w);
		}
	}
	return z;
}

/* Nothing that could be done is left lying. Exact only where no place, back-off or
 * preference of the core's own decides. */
static void
check_work(struct sim *s)
{
	struct scene z = look_around(s);

	if (oracle_ending(s))
		return;
	/* Of those that are ready and idle, one has a place if not all are at work. */
	if (z.queued > 0 && z.usable > 0 && z.busy + z.refused < s->c.worker_n &&
	    (s->infra == 0 || s->c.broker))
		sim_fail(s, "%u queued and %u idle", z.queued, z.usable);
	if (!s->plain)
		return;
	if (z.queued > 0 && z.room > 0 && (s->c.broker || z.starting == 0))
		sim_fail(s, "%u queued and room in %u lanes", z.queued, z.room);
	if (s->c.broker && z.queued == 0 && z.idle > z.taking && z.takeable > 0)
		sim_fail(s, "%u idle and %u to be taken", z.idle, z.takeable);
	uint32_t have = z.starting + z.ready;
	uint32_t want = z.queued + z.dying_unclaimed + (s->c.broker ? z.laned : z.busy);
	if (s->c.eager && !s->draining)
		want = s->worker_n;
	want = want < s->worker_n ? want : s->worker_n;
	if (!s->slow && have < want && z.dead > 0)
		sim_fail(s, "%u workers, %u wanted, none launched", have, want);
	if (s->fed->type != KN_EV_SPAWNED && s->fed->type != KN_EV_SPAWN_FAILED &&
	    have == 0 && want > 0 && z.dead == s->worker_n &&
	    kn_pool_deadline(s->pool) > s->spawn_after_ns)
		sim_fail(s, "nobody is launched, not even after the back-off");
}

static void
check_deadline(const struct watch *k)
{
	struct sim *s = k->s;
	uint64_t core_ns = kn_pool_deadline(s->pool);
	bool quiet = s->open_n == 0 && s->c.recycle_s == 0 && s->refuse == 0;

	if (k->first_ns != NEVER && (core_ns == 0 || core_ns > k->first_ns))
		sim_fail(s, "%s is due in %.1f ms, the core's deadline is later",
		    k->first, (double)(k->first_ns - s->now_ns) / 1e6);
	for (uint32_t w = 0; quiet && w < s->worker_n; w++) {
		const struct book_worker *b = &s->b[w];
		quiet = b->told == READY || (b->told == DEAD && !s->c.eager);
	}
	bool looked = false;
	for (uint32_t i = 0; i < s->c.task_max; i++)
		looked = looked || s->t[i].look_step == s->steps ||
			 s->t[i].ask_over_step == s->steps;
	if (s->fed->type == KN_EV_TIMER && core_ns != 0 && core_ns <= s->now_ns &&
	    !looked)
		sim_fail(s, "a timer changes nothing, and the core asks for another");
	if ((quiet || s->ended) && core_ns != 0)
		sim_fail(s, "nothing waits, and the core has a deadline");
}

static void
check_counts(struct sim *s)
{
	struct kn_pool_counts c;
	struct scene z = look_around(s);
	uint32_t in_lanes = 0, running = 0;

	kn_pool_count(s->pool, &c);
	for (uint32_t i = 0; i < s->c.task_max; i++) {
		in_lanes += s->t[i].open && s->t[i].worker >= 0;
		running += s->t[i].open && s->t[i].claimed;
	}
	if (c.queued != z.queued || c.running != running ||
	    c.published != in_lanes - running || c.ready != z.ready ||
	    c.launching != z.starting || c.dead != z.dead || c.answered != s->answered)
		sim_fail(s, "the counts are wrong");
	s->stolen = c.stolen;
}

void
oracle_after(struct sim *s)
{
	struct watch k = { .s = s, .first_ns = NEVER };
	bool over = s->open_n == 0 && (s->draining || s->stopping || s->failed);

	if (kn_pool_bugs(s->pool) != 0)
		sim_fail(s, "the core counts a bug of a correct shell");
	check_tasks(&k);
	check_workers(&k);
	check_deadline(&k);
	check_work(s);
	if (s->steps % 16 == 0)
		check_counts(s);
	for (uint32_t w = 0; w < s->worker_n; w++)
		over = over && s->b[w].told == DEAD;
	if (over && !s->ended)
		sim_fail(s, "all is over and the pool has not ended");
}
