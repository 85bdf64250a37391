/* supervisor/core/event.h: the closed lists: what may happen, and what may follow.
 *
 * The core is pure: kn_pool_step() takes one event (time included) and appends actions
 * to a bounded list. No descriptor, no clock, no allocation after kn_pool_init(), no
 * knowledge of shared memory. The shell (supervisor/act.c) turns actions into the world
 * and the world into events. A task is named by (task, gen): an index the shell chose
 * below the pool's task_max, and the attempt stamp that the core raises at each
 * publication. gen is never 0 and goes on rising when an index is used again, so a
 * (task, gen) pair names one publication for the life of the pool.
 *
 * THE CONTRACT OF THE SHELL
 *
 * Turns. The shell performs the actions of one step in list order, and then, before it
 * feeds anything else, the events by which those actions are answered:
 *
 *   SPAWN       SPAWNED or SPAWN_FAILED, same incarnation. A failure after SPAWNED (the
 *               launcher exits, BOOT_FAIL) is GONE, after the reap.
 *   PUBLISH     PUBLISHED or PUBLISH_FAILED. FAILED: nothing of it is in the lane and
 * no descriptor was handed over. The core waits a little and tries again. TAKE_BACK
 * TAKEN_BACK: the exchange on the claim word was won, the worker will never run it;
 * undo its area. TAKE_FAILED: the worker won; counts as CLAIMED. LOOK_BEGUN  CLAIMED if
 * the claim was not reported yet, then BEGUN if the begun word names exactly (task,
 * gen); nothing otherwise. Asked once a task, when its backstop deadline depends on it.
 * BEGUN may also be sent unasked. LOOK_OVER   OVER if the over word names exactly
 * (task, gen); nothing otherwise. Asked once a task, before its worker is killed for
 * it; OVER may also be sent unasked. KILL_TASK   later: the RESULT, as for any task. No
 * event if sending fails (the worker is dead or dying then: GONE comes, or the core's
 * own deadline). STOP_WORKER later: STOP_ACKED, then GONE; or GONE alone. KILL_WORKER
 * later: GONE. Repeated each second until GONE: kill again, harmlessly. ANSWER,
 * POOL_FAILED, ENDED: none. After ANSWER the index is free: the shell may SUBMIT it
 * again, from inside the handling of ANSWER at the earliest.
 *
 * KILL_WORKER and the others may name a worker whose process is dead already but whose
 * GONE is not fed yet; then they have no effect and GONE answers all.
 *
 * Incarnation. SPAWN raises it, from 1. Worker events bear the incarnation of the SPAWN
 * they belong to. An event of an earlier incarnation is ignored; one after GONE of the
 * same incarnation, other than by mistake, does not exist. An index is spawned again
 * only after GONE (or SPAWN_FAILED): its slice may be reset at SPAWN.
 *
 * Order within a worker. CLAIMED of a (task, gen) comes before BEGUN and RESULT of it:
 * copy a result out of the lane first, then look at the claims once more, feed CLAIMED
 * of what is new, then RESULT. A RESULT of a task that the core has not seen claimed,
 * of an unknown (task, gen), of another worker's, or a second one, is a lie: the core
 * kills that worker (the shell may detect it earlier and send VIOLATION instead). GONE
 * comes last: after the reap drain the return lane (RESULT) and look at the claims
 * (CLAIMED) one last time, then GONE. What was never claimed is then the core's again,
 * without TAKE_BACK. No RESULT is fed after a VIOLATION of that incarnation (ignored).
 *
 * Time. now_ns never goes back (an earlier one is taken as the last one). Deadlines
 * fire on TIMER only: on waking, feed what the world shows of all workers (results,
 * claims, exits), then TIMER if kn_pool_deadline() has passed; do so in every round of
 * the loop. So a task that ended in time is not taken for late because the supervisor
 * was slow.
 *
 * HOW DEADLINES RUN
 *
 *   queue_ms   SUBMIT to CLAIMED of the first attempt. Queued: QUEUE_TIMEOUT.
 * Published: TAKE_BACK first; if that fails it runs and is not late. claim_ms   Only
 * the first task of a lane, from when the worker could take it: the later of PUBLISHED
 * and the RESULT of the task before. Then TAKE_BACK: won: the worker is killed
 * (NOT_CLAIMED), the task queued again, no attempt counted; lost: it is running.
 *   hard_ms    The stub enforces it. The core is the backstop, for the first task of a
 *              lane: hard_ms + hard_slack_ms after begun_ns (held within [PUBLISHED,
 *              could take it + claim_ms]). Not seen begun: when that time has passed
 *              since the worker could take it, LOOK_BEGUN; without a BEGUN the clock
 * runs from CLAIMED as seen, at latest from could-take-it + claim_ms. Then LOOK_OVER: a
 * worker that has ended all of the task, and is taking down what it left, has
 * teardown_ms more, whenever it said so. Then
 *              KILL_WORKER(HARD), and at GONE the task is answered HARD; a RESULT that
 * is fed before GONE wins (RESULT), and the shell compares its times. start_ms SPAWNED
 * to READY, else KILL_WORKER(NOT_READY). after KILL_TASK  grace_ms + hard_slack_ms to
 * the RESULT, and teardown_ms more as above, else KILL_WORKER(NO_END) and the task is
 * answered CANCELLED. stop STOP_WORKER to STOP_ACKED: stop_ack_ms, else
 * KILL_WORKER(NO_STOP_ACK); STOP_ACKED to GONE: grace_ms + hard_slack_ms, else
 * KILL_WORKER(NO_END). STOP_WORKER is only sent to a worker whose lane is empty,
 * but for what it claims from a bank until it sees that.
 *
 * Attempts. Claimed counts as run (it may have). GONE of a worker: its claimed tasks
 * are run again while retries are left, else WORKER_LOST, unless decided before (HARD,
 * CANCELLED, VIOLATION); its unclaimed ones go to the front of the queue, no attempt
 * counted. An infra_fail RESULT is tried again at most twice, elsewhere if there is an
 * elsewhere, no attempt counted; after that it is answered RESULT.
 *
 * Calls (config `calls`). There may be millions a second, so two events are left out:
 * PUBLISH is answered only if it failed, and a RESULT with `claimed` set stands for the
 * CLAIMED of that task too. Of an only worker the shell takes the claim for granted
 * when the result is there, and looks before it sleeps, and before it uses the slot
 * again: what was never claimed is a VIOLATION then. A worker claims several together
 * and runs them in the order of the lane. When it goes, the shell feeds a RESULT for
 * the one that it was at, if it knows how that ended, or else BEGUN: then it is lost
 * like any claimed task. The other claimed ones are queued again, no attempt counted,
 * unless three workers went with them that had answered nothing, or 32 at all: then
 * they may have run, and count. After KILL_TASK the grace of one that is not the first
 * begins when it is.
 *
 * Banks (config `bank_size` above 1). The lanes of the workers of one bank lie in one
 * place that all of them claim from: a lane is then a worker's share of what is on
 * offer there, and who takes a task is decided by the workers. So the core goes on
 * giving tasks to workers, idle ones first, and what it learns is the claim: CLAIMED,
 * or a RESULT with `claimed`, with `moved` set and `from` the worker in whose lane the
 * task was. It is in the claimant's lane from then on, behind what that one has claimed
 * before; a TAKE_BACK of it that was under way has failed. Those that are told together
 * are told in the order in which they are run. A worker that was told to stop may have
 * claimed until it saw that: it runs it to the end, and acknowledges then; the shell
 * does not feed STOP_ACKED before what was claimed until then. While somebody is at
 * work in its part of the bank a task can be neither taken back nor be known to be
 * claimed: then the answer to TAKE_BACK comes in a later turn (TAKEN_BACK, TAKE_FAILED,
 * or CLAIMED by another), and GONE of a worker waits until each task of its lane has
 * been taken back, or is known to be claimed. What there is no room for waits in front
 * of the bank, where no worker sees it, and a TAKEN_BACK of what has waited says so:
 * then its worker is not killed, as it may have had no time to claim it. If there is no
 * hope of room any more, of a call PUBLISH_FAILED comes then, late; and refusals are
 * the bank's, so that no worker is killed for them either.
 *
 * After DRAIN, STOP, STOP_NOW or POOL_FAILED a SUBMIT is answered in the same step
 * (CANCELLED; LAUNCH_FAILED after POOL_FAILED). ENDED comes once, when all is answered
 * and every worker is GONE; after POOL_FAILED also without a DRAIN.
 */
#ifndef KN_CORE_EVENT_H
#define KN_CORE_EVENT_H

#include <stdint.h>

enum kn_event_type {
	/* tasks */
	KN_EV_SUBMIT, /* task: a free index; params in ev.submit */
	KN_EV_CANCEL, /* task */
	/* one worker; `incarnation` must match the one of the last SPAWN */
	KN_EV_SPAWNED,	      /* the launcher process exists */
	KN_EV_SPAWN_FAILED,   /* it does not; fatal: trying again cannot help */
	KN_EV_READY,	      /* the ping came back */
	KN_EV_PUBLISHED,      /* task, gen: it is in the worker's lane */
	KN_EV_PUBLISH_FAILED, /* task, gen: no room or the socket refused; it is ours */
	KN_EV_CLAIMED,	   /* task, gen: the worker has taken it (seen in the lane) */
	KN_EV_BEGUN,	   /* task, gen: begun_ns, already bounded by the shell */
	KN_EV_OVER,	   /* task, gen: nothing of it runs any more, the worker says;
			      its result comes when all is taken down */
	KN_EV_TAKEN_BACK,  /* task, gen: answer to TAKE_BACK: it is ours again */
	KN_EV_TAKE_FAILED, /* task, gen: answer to TAKE_BACK: the worker has it */
	KN_EV_RESULT,	   /* task, gen: the worker's answer, decoded and checked */
	KN_EV_STOP_ACKED,
	KN_EV_VIOLATION, /* the worker lied; shell logged the field */
	KN_EV_GONE,	 /* reaped; all CLAIMED of its lane were reported before */
	/* pool */
	KN_EV_TIMER,	/* now only; deadlines fire on this event and no other */
	KN_EV_DRAIN,	/* accept nothing more; end when all is answered */
	KN_EV_STOP,	/* as DRAIN, but queued tasks are cancelled and running ones get
			   grace_ms */
	KN_EV_STOP_NOW, /* kill */
	KN_EV_N
};

struct kn_event {
	enum kn_event_type type;
	uint64_t now_ns;
	uint32_t worker, incarnation;
	uint32_t task, gen;
	uint64_t begun_ns;    /* BEGUN */
	uint32_t claimed;     /* RESULT, of calls: the claim was seen with it */
	uint32_t moved, from; /* CLAIMED, RESULT with claimed: it was in the lane of
				 worker `from`, of the same bank */
	uint32_t waited; /* TAKEN_BACK, from a bank: for some of the time it was not on
			    offer, but waited for room or was in another's hands */
	uint32_t fatal;	 /* SPAWN_FAILED */
	uint64_t memory; /* RESULT: what the worker holds when idle, for recycling; 0
			    unknown */
	uint32_t infra_fail; /* RESULT: the cell could not be built: retry elsewhere is
				allowed */
	struct {	     /* SUBMIT */
		uint32_t queue_ms, hard_ms; /* 0: none */
		uint32_t retries;
	} submit;
};

enum kn_action_type {
	KN_ACT_SPAWN,	/* worker, incarnation: launch it */
	KN_ACT_PUBLISH, /* worker, task, gen; answered by PUBLISHED or PUBLISH_FAILED */
	KN_ACT_TAKE_BACK,   /* worker, task, gen; answered at once by TAKEN_BACK /
			       TAKE_FAILED */
	KN_ACT_KILL_TASK,   /* worker, task, gen, cause: ask the stub to end the cell */
	KN_ACT_STOP_WORKER, /* store stop, wake it */
	KN_ACT_KILL_WORKER, /* cgroup.kill, SIGKILL to the launcher; why for the log */
	KN_ACT_LOOK_BEGUN,  /* worker, task, gen: read the begun word, send BEGUN if it
			       is this  task's; asked when a deadline depends on it */
	KN_ACT_LOOK_OVER, /* worker, task, gen: the same with the over word and OVER */
	KN_ACT_ANSWER,	  /* task, gen, how: final, exactly once per submitted task */
	KN_ACT_POOL_FAILED, /* why: launches fail again and again; answers follow */
	KN_ACT_ENDED,	    /* nothing runs, nothing is owed: the loop may return */
	KN_ACT_N
};

/* How a task ended, as far as the core decides it. */
enum kn_how {
	KN_HOW_RESULT, /* the stub's result decides the verdict */
	KN_HOW_HARD,   /* backstop: the worker was killed at the hard deadline */
	KN_HOW_QUEUE_TIMEOUT,
	KN_HOW_CANCELLED,
	KN_HOW_WORKER_LOST,
	KN_HOW_LAUNCH_FAILED,
	KN_HOW_VIOLATION,
	KN_HOW_N
};

/* KILL_TASK's arg. Numbers equal to enum kn_cause of ipc/control.h (which the core does
 * not see): the shell asserts it at compile time. */
enum kn_core_cause { KN_CORE_CAUSE_CANCEL = 6, KN_CORE_CAUSE_STOP = 7 };

/* Why a worker is killed or the pool failed. STOP_NOW is also the reason for workers
 * that are not ready when the pool ends. */
enum kn_why {
	KN_WHY_NONE,
	KN_WHY_NOT_READY,
	KN_WHY_NOT_CLAIMED,
	KN_WHY_HARD,
	KN_WHY_NO_STOP_ACK,
	KN_WHY_NO_END,
	KN_WHY_VIOLATION,
	KN_WHY_STOP_NOW,
	KN_WHY_CRASH_LOOP,
	KN_WHY_LAUNCH_FATAL,
	KN_WHY_N
};

struct kn_action {
	enum kn_action_type type;
	uint32_t worker, incarnation;
	uint32_t task, gen;
	uint32_t arg; /* KILL_TASK: enum kn_cause as in ipc/control.h (numbers equal) */
	enum kn_how how; /* ANSWER */
	enum kn_why why;
	uint32_t attempt; /* ANSWER, PUBLISH: 1 for the first. ANSWER's gen is the last
			     publication's, 0 if there was none */
};

const char *kn_event_name(enum kn_event_type t);
const char *kn_action_name(enum kn_action_type t);
const char *kn_how_name(enum kn_how h);
const char *kn_why_name(enum kn_why w);

#endif
