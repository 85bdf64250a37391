/* tests/sim/oracle_act.c: whether an action may be given now. */
#include <string.h>

#include "tests/sim/oracle.h"

static const struct kn_action *
check_worker(struct sim *s, const struct kn_action *a)
{
	if (a->worker >= s->worker_n)
		sim_fail(s, "no worker %u", a->worker);
	if (a->incarnation != s->b[a->worker].incarnation)
		sim_fail(s, "w%u: incarnation %u, is %u", a->worker, a->incarnation,
		    s->b[a->worker].incarnation);
	return a;
}

static struct book_task *
check_task(struct sim *s, const struct kn_action *a)
{
	if (a->task >= s->c.task_max || !s->t[a->task].open)
		sim_fail(s, "t%u is not open", a->task);
	return &s->t[a->task];
}

/* The task in the worker's lane under its gen. */
static struct book_task *
check_laned(struct sim *s, const struct kn_action *a)
{
	struct book_task *t = check_task(s, check_worker(s, a));

	if (t->worker != (int)a->worker || t->gen != a->gen)
		sim_fail(
		    s, "t%u.%u is not in the lane of w%u", a->task, a->gen, a->worker);
	return t;
}

static void
act_spawn(struct sim *s, const struct kn_action *a)
{
	struct book_worker *b = &s->b[a->worker];

	if (a->worker >= s->worker_n)
		sim_fail(s, "no worker %u", a->worker);
	if (b->told != DEAD || s->w[a->worker].alive)
		sim_fail(s, "w%u launched while it lives", a->worker);
	if (a->incarnation != b->incarnation + 1)
		sim_fail(s, "w%u: incarnation %u after %u", a->worker, a->incarnation,
		    b->incarnation);
	if (s->now_ns < s->spawn_after_ns && s->slow)
		sim_fail(s, "w%u launched in the back-off", a->worker);
	if (oracle_ending(s) || s->ended)
		sim_fail(s, "w%u launched at the end", a->worker);
	uint32_t launching = 1;
	for (uint32_t w = 0; w < s->worker_n; w++)
		launching += s->b[w].told == SPAWNING || s->b[w].told == STARTING;
	if ((!s->c.eager || s->draining) && launching > s->open_n)
		sim_fail(s, "%u launches for %u tasks", launching, s->open_n);
	if (s->slow && launching > 1)
		sim_fail(s, "%u launches after %u failures", launching, s->fails);
	uint32_t incarnation = a->incarnation;
	*b = (struct book_worker){ .told = SPAWNING, .incarnation = incarnation };
}

/* A deeper lane only when nobody is idle: exact where nothing hides a worker's place.
 */
static void
check_depth(struct sim *s, const struct book_worker *b)
{
	if (b->lane_n >= s->c.lane_depth)
		sim_fail(s, "a lane of %u", b->lane_n + 1);
	if (s->c.offer_max != 0 && oracle_unclaimed(s, b) >= s->c.offer_max)
		sim_fail(s, "%u on offer in a lane", oracle_unclaimed(s, b) + 1);
	if (oracle_unclaimed(s, b) >= 32)
		sim_fail(s, "more than there are slots");
	for (uint32_t w = 0; b->lane_n > 0 && !s->c.broker && w < s->worker_n; w++) {
		if (s->b[w].told == SPAWNING || s->b[w].told == STARTING)
			sim_fail(s, "published behind another while w%u comes", w);
	}
	for (uint32_t w = 0; b->lane_n > 0 && s->plain && w < s->worker_n; w++) {
		if (s->b[w].told == READY && s->b[w].lane_n == 0 &&
		    !oracle_refused(s, w))
			sim_fail(s, "published behind another while w%u is idle", w);
	}
}

static void
act_publish(struct sim *s, const struct kn_action *a)
{
	struct book_task *t = check_task(s, check_worker(s, a));
	struct book_worker *b = &s->b[a->worker];
	uint32_t busy = 0;

	if (t->worker >= 0)
		sim_fail(s, "t%u published twice: w%d has it", a->task, t->worker);
	if (a->gen <= t->gen)
		sim_fail(s, "t%u: gen %u after %u", a->task, a->gen, t->gen);
	if (b->told != READY)
		sim_fail(s, "published to w%u, which is not ready", a->worker);
	if (!oracle_stays(s, a->worker))
		sim_fail(s, "published to w%u, which is to be recycled", a->worker);
	if (oracle_ending(s))
		sim_fail(s, "published at the end");
	if (b->refused_ns != 0 && s->now_ns < b->refused_ns + MS)
		sim_fail(s, "published to w%u, which has just refused", a->worker);
	if (t->cancelled)
		sim_fail(s, "t%u published though cancelled", a->task);
	if (t->runs > t->retries)
		sim_fail(s, "t%u published again after %u runs", a->task, t->runs);
	if (!t->ever_claimed && t->queue_ms != 0 &&
	    s->now_ns >= t->submit_ns + t->queue_ms * MS)
		sim_fail(s, "t%u published after its queue time", a->task);
	if (a->attempt != t->runs + 1)
		sim_fail(s, "t%u: attempt %u, is %u", a->task, a->attempt, t->runs + 1);
	check_depth(s, b);
	for (uint32_t i = 0; i < s->c.task_max; i++) {
		if (s->t[i].open && s->t[i].worker < 0 && s->t[i].order < t->order)
			sim_fail(s, "t%u published before t%u", a->task, i);
	}
	t->worker = (int)a->worker;
	t->gen = a->gen;
	t->published = t->claimed = t->taking = t->killed = t->decided = false;
	t->begun_ns = t->look_step = t->ask_over_step = 0;
	t->over = t->moved = false;
	t->published_ns = s->now_ns;
	t->published = s->c.calls; /* taken for granted */
	b->lane[b->lane_n++] = a->task;
	for (uint32_t w = 0; w < s->worker_n; w++)
		busy += s->b[w].told == READY && s->b[w].lane_n > 0;
	if (busy > s->c.worker_n)
		sim_fail(s, "%u workers at work, %u places", busy, s->c.worker_n);
}

/* For an idle worker, where nothing is queued and the task is not about to run. */
static bool
may_steal(const struct sim *s, const struct kn_action *a)
{
	uint32_t idle = 0, steals = 0;

	for (uint32_t w = 0; w < s->worker_n; w++)
		idle +=
		    oracle_stays(s, w) && s->b[w].lane_n == 0 &&
		    (s->b[w].refused_ns == 0 || s->now_ns >= s->b[w].refused_ns + MS);
	for (uint32_t i = 0; i < s->c.task_max; i++) {
		if (s->t[i].open && s->t[i].worker < 0)
			return false;
		steals += s->t[i].open && s->t[i].taking && s->t[i].stealing;
	}
	const struct book_worker *b = &s->b[a->worker];
	bool next = b->told == READY && b->lane[0] == a->task;
	return s->c.broker && idle > steals && !next && !oracle_served(s, a->worker);
}

static bool
take_has_reason(struct sim *s, const struct kn_action *a)
{
	struct book_task *t = &s->t[a->task];
	const struct book_worker *b = &s->b[a->worker];
	uint64_t claim_ns = oracle_claim_ns(s, t);

	bool drop = t->cancelled || s->stopping;
	bool late = t->queue_ms != 0 && !t->ever_claimed &&
		    s->now_ns >= t->submit_ns + t->queue_ms * MS;
	t->may_probe = b->lane[0] == a->task && claim_ns != 0 &&
		       s->now_ns >= oracle_could(s, a->worker) + claim_ns;
	t->must_probe = t->may_probe && !drop && !late;
	t->stealing = false;
	if (drop || late || t->may_probe)
		return true;
	t->stealing = true;
	return may_steal(s, a);
}

static void
act_take_back(struct sim *s, const struct kn_action *a)
{
	struct book_task *t = check_laned(s, a);

	if (!t->published || t->claimed || t->taking)
		sim_fail(s, "t%u asked back though %s", a->task,
		    t->taking	 ? "asked already"
		    : t->claimed ? "claimed"
				 : "not published");
	if (!take_has_reason(s, a))
		sim_fail(s, "t%u asked back without a reason", a->task);
	t->taking = true;
}

static void
act_kill_task(struct sim *s, const struct kn_action *a)
{
	struct book_task *t = check_laned(s, a);
	bool cancel = a->arg == KN_CORE_CAUSE_CANCEL;

	if (!t->claimed || t->killed)
		sim_fail(s, "t%u killed though %s", a->task,
		    t->killed ? "killed already" : "not claimed");
	if (cancel && !t->cancelled)
		sim_fail(s, "t%u killed as cancelled", a->task);
	if (!cancel && a->arg != KN_CORE_CAUSE_STOP)
		sim_fail(s, "t%u killed with cause %u", a->task, a->arg);
	if (!cancel && (!s->stopping || s->now_ns < s->stop_ns + s->c.grace_ms * MS))
		sim_fail(s, "t%u killed before its grace is over", a->task);
	if (s->b[a->worker].told != READY &&
	    (s->c.bank_size < 2 || s->b[a->worker].told == DYING))
		sim_fail(s, "t%u killed on a worker that is not ready", a->task);
	oracle_decide(t, KN_HOW_CANCELLED);
	t->killed = true;
	t->kill_ns = s->now_ns;
}

static void
act_stop_worker(struct sim *s, const struct kn_action *a)
{
	struct book_worker *b = &s->b[check_worker(s, a)->worker];

	uint32_t unclaimed = b->lane_n;
	for (uint32_t i = 0; s->c.bank_size > 1 && i < b->lane_n; i++)
		unclaimed -= s->t[b->lane[i]].claimed;
	if (b->told != READY || unclaimed > 0)
		sim_fail(s, "w%u stopped: state %d, %u tasks", a->worker, b->told,
		    b->lane_n);
	bool all = oracle_ending(s) || (s->draining && s->open_n == 0);
	if (!all && oracle_stays(s, a->worker))
		sim_fail(s, "w%u stopped without a reason", a->worker);
	b->told = STOPPING;
	b->since_ns = s->now_ns;
}

static bool
some_kill_overdue(const struct sim *s, uint32_t w)
{
	const struct book_worker *b = &s->b[w];

	for (uint32_t i = 0; i < b->lane_n; i++) {
		const struct book_task *t = &s->t[b->lane[i]];
		if (t->killed && s->now_ns >= oracle_end_due(s, w, i) &&
		    oracle_asked_over(s, t))
			return true;
	}
	return false;
}

static bool
kill_has_reason(struct sim *s, const struct kn_action *a)
{
	struct book_worker *b = &s->b[a->worker];
	uint64_t waited_ns = s->now_ns - b->since_ns;
	uint64_t end_ns = oracle_ending_ns(s);
	const struct book_task *t;
	uint64_t hard_ns;

	if (b->told == DYING)
		return a->why == b->why && waited_ns >= 1000 * MS;
	switch (a->why) {
	case KN_WHY_NOT_READY:
		return b->told == STARTING && waited_ns >= s->c.start_ms * MS;
	case KN_WHY_NOT_CLAIMED:
		return b->may_step == s->steps ||
		       (s->fed->type == KN_EV_PUBLISH_FAILED && s->c.bank_size < 2);
	case KN_WHY_HARD:
		hard_ns = b->lane_n > 0 ? oracle_hard_due(s, a->worker) : 0;
		if (hard_ns == 0 || hard_ns > s->now_ns || !s->t[b->lane[0]].claimed)
			return false;
		oracle_decide(&s->t[b->lane[0]], KN_HOW_HARD);
		t = &s->t[b->lane[0]];
		if (!oracle_asked_over(s, t))
			return false;
		/* Looked at before, and the answer waited for. */
		return t->begun_ns != 0 ||
		       (t->look_step != 0 && t->look_step != s->steps);
	case KN_WHY_NO_STOP_ACK:
		return b->told == STOPPING && b->lane_n == 0 &&
		       waited_ns >= s->c.stop_ack_ms * MS;
	case KN_WHY_NO_END:
		return (b->told == ENDING && waited_ns >= end_ns) ||
		       ((b->told == READY || b->told == STOPPING) &&
			   some_kill_overdue(s, a->worker));
	case KN_WHY_VIOLATION:
		return b->lied;
	case KN_WHY_STOP_NOW:
		return s->stop_now ||
		       (b->told == STARTING &&
			   (oracle_ending(s) || (s->draining && s->open_n == 0)));
	case KN_WHY_CRASH_LOOP:
	case KN_WHY_LAUNCH_FATAL:
		return s->failed && b->told == STARTING;
	case KN_WHY_NONE:
	case KN_WHY_N:
		break;
	}
	return false;
}

static void
act_kill_worker(struct sim *s, const struct kn_action *a)
{
	struct book_worker *b = &s->b[check_worker(s, a)->worker];

	if (b->told == DEAD || b->told == SPAWNING)
		sim_fail(s, "w%u killed though there is none", a->worker);
	if (!kill_has_reason(s, a))
		sim_fail(s, "w%u killed: %s", a->worker, kn_why_name(a->why));
	if (s->honest && a->why != KN_WHY_STOP_NOW)
		sim_fail(
		    s, "w%u is honest and killed: %s", a->worker, kn_why_name(a->why));
	b->told = DYING;
	b->since_ns = s->now_ns;
	b->why = a->why;
	s->w[a->worker].kills++;
}

static void
act_look(struct sim *s, const struct kn_action *a)
{
	struct book_task *t = check_laned(s, a);

	if (t->look_step != 0 || t->begun_ns != 0 || t->hard_ms == 0)
		sim_fail(s, "no need to look at t%u", a->task);
	t->look_step = s->steps;
}

/* Only where a kill would follow, and once. */
static void
act_look_over(struct sim *s, const struct kn_action *a)
{
	struct book_task *t = check_laned(s, a);
	bool head = s->b[a->worker].lane[0] == a->task;
	uint64_t hard_ns = head ? oracle_hard_due(s, a->worker) : 0;

	if (s->c.teardown_ms == 0 || t->ask_over_step != 0 || t->over || !t->claimed)
		sim_fail(s, "no use in asking whether t%u is over", a->task);
	if ((hard_ns == 0 || s->now_ns < hard_ns) &&
	    (!t->killed || s->now_ns < oracle_kill_due(s, t)))
		sim_fail(s, "t%u is not late, and asked about", a->task);
	t->ask_over_step = s->steps;
}

/* How a claimed task whose worker is gone in this step is answered. */
static bool
loss_fits(const struct sim *s, const struct book_task *t, enum kn_how how)
{
	if (t->decided)
		return how == t->how;
	if (s->stop_now)
		return how == KN_HOW_CANCELLED;
	/* On a dying worker the end of the grace time is decided without an action. */
	if (s->stopping && s->now_ns >= s->stop_ns + s->c.grace_ms * MS &&
	    how == KN_HOW_CANCELLED)
		return true;
	return how == KN_HOW_WORKER_LOST && (t->runs > t->retries || oracle_ending(s));
}

/* An answer without a result that was fed in this very step needs a reason. */
static bool
answer_has_reason(struct sim *s, const struct kn_action *a, const struct book_task *t)
{
	bool end = s->stopping || s->draining;

	if (t->lost_step == s->steps)
		return loss_fits(s, t, a->how);
	switch (a->how) {
	case KN_HOW_RESULT:
		return t->result_step == s->steps;
	case KN_HOW_QUEUE_TIMEOUT:
		return t->queue_ms != 0 && !t->ever_claimed && t->world_runs == 0 &&
		       s->now_ns >= t->submit_ns + t->queue_ms * MS;
	case KN_HOW_CANCELLED:
		return t->cancelled || s->stopping ||
		       (end && s->fed->type == KN_EV_SUBMIT);
	case KN_HOW_LAUNCH_FAILED:
		return s->failed || (t->refused >= 16 && t->worker < 0);
	case KN_HOW_HARD:
	case KN_HOW_WORKER_LOST:
	case KN_HOW_VIOLATION:
	case KN_HOW_N:
		break;
	}
	return false;
}

static void
act_answer(struct sim *s, const struct kn_action *a)
{
	struct book_task *t = check_task(s, a);

	if (a->gen != 0 && a->gen != t->gen)
		sim_fail(s, "t%u answered with gen %u, is %u", a->task, a->gen, t->gen);
	if (!answer_has_reason(s, a, t))
		sim_fail(s, "t%u answered %s", a->task, kn_how_name(a->how));
	if (t->result_step == s->steps && a->how != KN_HOW_RESULT && !t->either)
		sim_fail(s, "t%u has a result and is answered %s", a->task,
		    kn_how_name(a->how));
	if (t->worker >= 0)
		sim_fail(s, "t%u answered while w%d has it", a->task, t->worker);
	if (a->attempt < 1 || a->attempt > t->runs + 1 || a->attempt < t->runs)
		sim_fail(s, "t%u answered as attempt %u of %u", a->task, a->attempt,
		    t->runs);
	t->open = false;
	s->open_n--;
	s->answered++;
}

static void
act_failed(struct sim *s, const struct kn_action *a)
{
	bool fatal = s->fed->type == KN_EV_SPAWN_FAILED && s->fed->fatal;

	if (s->failed)
		sim_fail(s, "the pool fails twice");
	if (a->why == KN_WHY_LAUNCH_FATAL
		? !fatal
		: a->why != KN_WHY_CRASH_LOOP || s->fails < oracle_crash_limit(s))
		sim_fail(
		    s, "the pool fails: %s after %u", kn_why_name(a->why), s->fails);
	for (uint32_t w = 0; w < s->worker_n; w++) {
		if (s->b[w].told == READY)
			sim_fail(s, "the pool fails though w%u is ready", w);
	}
	s->failed = true;
}

static void
act_ended(struct sim *s)
{
	if (s->ended)
		sim_fail(s, "ended twice");
	if (s->open_n > 0 || !(s->draining || s->stopping || s->failed))
		sim_fail(s, "ended with %u tasks open", s->open_n);
	for (uint32_t w = 0; w < s->worker_n; w++) {
		if (s->b[w].told != DEAD || s->w[w].alive)
			sim_fail(s, "ended while w%u lives", w);
	}
	s->ended = true;
}

void
oracle_action(struct sim *s, const struct kn_action *a)
{
	switch (a->type) {
	case KN_ACT_SPAWN:
		act_spawn(s, a);
		break;
	case KN_ACT_PUBLISH:
		act_publish(s, a);
		break;
	case KN_ACT_TAKE_BACK:
		act_take_back(s, a);
		break;
	case KN_ACT_KILL_TASK:
		act_kill_task(s, a);
		break;
	case KN_ACT_STOP_WORKER:
		act_stop_worker(s, a);
		break;
	case KN_ACT_KILL_WORKER:
		act_kill_worker(s, a);
		break;
	case KN_ACT_LOOK_BEGUN:
		act_look(s, a);
		break;
	case KN_ACT_LOOK_OVER:
		act_look_over(s, a);
		break;
	case KN_ACT_ANSWER:
		act_answer(s, a);
		break;
	case KN_ACT_POOL_FAILED:
		act_failed(s, a);
		break;
	case KN_ACT_ENDED:
		act_ended(s);
		break;
	case KN_ACT_N:
		sim_fail(s, "no such action");
	}
}
