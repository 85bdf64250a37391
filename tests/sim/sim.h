/* tests/sim/sim.h: a simulated world around the core: virtual time, one seed.
 *
 *   world.c   workers as they may be: slow, dead, stopped, lying
 *   world_lie.c  what those that lie say
 *   shell.c   the supervisor's shell as the contract in event.h wants it
 *   oracle.c  what must hold, kept apart from the core's own book
 *   driver.c  submissions, cancels, stops; episodes of a seed
 *   trace.c   the last lines before a failure, or all of them
 *   script.c  transcripts: files of inputs and expected actions
 *
 * A seed is a chain of episodes (one pool each) of 10,000 steps together. All choices
 * come from one generator, so a seed replays exactly.
 */
#ifndef KN_SIM_H
#define KN_SIM_H

#include <setjmp.h>
#include <stdbool.h>
#include <stdint.h>

#include "supervisor/core/pool.h"

#define MS 1000000ull
#define NEVER UINT64_MAX

enum { WORKERS = 12, TASKS = 48, SLOTS = 64, RETURNS = 80, QUEUE = 512, RING = 160 };

/* ---- the world ---- */

enum slot_state { SLOT_PENDING, SLOT_CLAIMED };
struct slot { /* of the lane; free again once the shell has seen the claim */
	uint32_t task, gen;
	enum slot_state state;
	uint32_t by;	/* CLAIMED: whose claim it is; another's in a bank only */
	uint64_t order; /* of the claim */
	bool asked;	/* back, and that was not decided at once */
	bool waits;	/* in front of its bank, where no worker sees it */
	bool waited;	/* it did, for a while */
	bool aborted;	/* of a claimed call: KILL_TASK came for it */
};
struct ret {
	uint32_t task, gen;
	uint64_t memory;
	bool infra;
};

enum boot { BOOT_OK, BOOT_NEVER, BOOT_DIES, BOOT_LATE };
enum stop_way { STOP_OK, STOP_NO_ACK, STOP_ACK_STAYS, STOP_EXITS, STOP_WAYS };
enum lie {
	LIE_UNKNOWN, /* a result of a task nobody has */
	LIE_STALE,   /* of an earlier attempt */
	LIE_TWICE,
	LIE_UNCLAIMED, /* of a pending slot */
	LIE_FOREIGN,   /* of another worker's task */
	LIE_FIELD,     /* the shell finds a bad field: VIOLATION */
	LIE_ACK,       /* acknowledges a stop nobody asked for */
	LIE_BEGUN,     /* the begun word names what it has not claimed */
	LIE_OVER,      /* the over word names what runs on, or what is not its own */
	LIES
};
enum phase {
	PHASE_NONE,
	PHASE_BOOT,
	PHASE_IDLE,
	PHASE_CLAIMED,
	PHASE_RUN,
	PHASE_TEARDOWN
};

struct world_worker {
	bool alive;	 /* a process exists */
	bool reap;	 /* it ended, not fed yet */
	bool frozen;	 /* SIGSTOP */
	bool pong;	 /* answered the ping, not fed yet */
	bool told_ready; /* and fed */
	bool ack;	 /* acknowledged, not fed yet */
	bool bad;	 /* wrote garbage that the shell will find */
	bool stop_asked; /* sees the stop word */
	bool obeyed;	 /* has seen it, and lives */
	enum phase phase;
	uint32_t incarnation;
	uint64_t next_ns, exit_ns, pong_ns;
	uint64_t steps;
	/* what it is like */
	enum boot boot;
	enum stop_way stop_way;
	enum lie lie;
	uint64_t crash_at, freeze_at, lie_at; /* step numbers */
	bool lax;			      /* lets tasks run over hard_ms */
	bool deaf;			      /* ignores KILL_TASK */
	bool greedy;			      /* claims several at once */
	bool hoarder;			      /* claims and does nothing */
	bool picky;			      /* claims the last first */
	bool lazy;			      /* never claims */
	bool mute;			      /* never says that a task is over */
	bool amnesic; /* calls: its begun word never names what it is at */
	uint32_t kills_needed, kills;
	uint64_t claim_ns; /* how long it takes to claim */
	/* its memory */
	struct slot slot[SLOTS];
	uint32_t slot_n;
	struct ret ret[RETURNS];
	uint32_t ret_n;
	struct slot todo[SLOTS]; /* what it has claimed, oldest first */
	uint32_t todo_n;
	uint32_t run_task, run_gen;   /* while PHASE_CLAIMED, PHASE_RUN */
	uint32_t word_task, word_gen; /* the begun word */
	uint64_t begun_ns;	      /* the begun word's time, as it says; 0 idle */
	uint64_t true_begun_ns;
	uint32_t over_task, over_gen; /* the over word; gen 0: none yet */
	bool kill_asked;
};

/* ---- the oracle's own book ---- */

enum told { DEAD, SPAWNING, STARTING, READY, STOPPING, ENDING, DYING };
struct book_task {
	bool open, cancelled, claimed, published, taking, stealing, may_probe,
	    must_probe, killed, decided, either;
	enum kn_how how; /* as decided before the end of its worker */
	bool ever_claimed;
	uint32_t gen, runs, retries, queue_ms, hard_ms, refused, infra_n;
	uint32_t world_runs; /* truth: claims in this life, infra failures not counted;
				of calls: begun by one whose begun word says so */
	uint32_t lied_runs;  /* truth, of calls: begun by one whose word is false */
	bool moved; /* claimed by another of its bank than the one it was given to */
	uint32_t unrun, unrun_all; /* calls: came back claimed and not begun */
	int worker;		   /* -1: queued */
	int64_t order;		   /* in the queue, first is lowest */
	uint64_t submit_ns, published_ns, claimed_ns, begun_ns, kill_ns;
	uint64_t result_step, lost_step, look_step,
	    ask_over_step; /* numbers of the steps they came in */
	bool over;	   /* its worker says: nothing of it runs any more */
	uint64_t work_ns;  /* what it would take */
	bool crashy;
};
struct book_worker {
	enum told told;
	enum kn_why why;
	uint32_t incarnation;
	uint32_t lane[SLOTS], lane_n;
	uint32_t given, fails_before, infra_row;
	uint64_t refused_ns; /* the last publication was; 0: no, or a result since */
	bool useful, was_ready, lied, retire, answered, stopped;
	uint64_t since_ns, ready_ns, head_since_ns;
	uint64_t may_step, must_step; /* it failed to claim: may, must be killed */
};

struct entry { /* of the trace ring */
	bool action;
	uint64_t now_ns;
	struct kn_event ev;
	struct kn_action act;
};

enum end_kind { END_DRAIN, END_STOP, END_STOP_NOW, END_NONE };

struct sim {
	uint64_t seed, rng;
	uint64_t now_ns, epoch_ns;
	struct kn_pool_config c;
	uint32_t worker_n;
	struct kn_pool *pool;
	void *storage;
	size_t storage_n;
	struct kn_action *out;
	size_t out_max;

	/* the temper of this episode */
	bool honest;	 /* nobody lies, dies or stalls: nobody may be killed */
	bool plain;	 /* no spares, recycling, refusals, infra failures */
	bool secretive;	 /* calls: all workers hide what they are at, and soon die */
	uint32_t evil;	 /* chance in 1000 that a worker has a fault, per fault */
	uint32_t refuse; /* chance in 1000 that a publication fails */
	uint32_t full;	 /* chance in 1000 that a bank has no room for a publication */
	uint32_t infra;	 /* chance in 1000 that a cell cannot be built */
	uint32_t tough;	 /* chance in 1000 that taking a cell down takes long */
	uint32_t spawn_fail, spawn_fatal, crashy;
	uint32_t stale;	     /* chance in 1000 of an event of an earlier incarnation */
	uint64_t gap_ns;     /* between submissions */
	uint64_t read_us;    /* how late the shell reads what it is told */
	uint64_t stall_left; /* stalls of the supervisor that may still come */
	uint64_t claims;     /* ever, in this episode */

	struct world_worker w[WORKERS];
	struct book_task t[TASKS];
	struct book_worker b[WORKERS];

	struct kn_event queue[QUEUE]; /* answers to actions, fed before anything else */
	uint32_t queue_head, queue_n;
	uint64_t wake_ns;   /* the shell looks at the world */
	uint64_t driver_ns; /* the next submission or cancel */
	uint64_t awake_ns;  /* stalled until then */

	/* the life of the pool as the oracle sees it */
	bool draining, stopping, stop_now, failed, ended;
	bool ever_ready, slow;
	bool stalled; /* the supervisor was, in this episode */
	uint64_t stop_ns, end_limit_ns;
	enum end_kind end_next;
	uint64_t end_next_ns;
	uint32_t open_n;
	int64_t front, back; /* of the queue */
	uint64_t fed_ns;     /* the last time fed */
	uint32_t fails;	     /* launches in a row that came to nothing */
	uint64_t spawn_after_ns, fail_step;
	const struct kn_event *fed; /* the event of the step under way */
	uint64_t step_limit, steps, episode, episode_steps, episode_len;
	uint64_t answered, stolen;

	struct entry ring[RING];
	uint64_t ring_n;
	bool transcript;
	jmp_buf failed_at;
	char message[256];
};

/* rng: splitmix64 */
static inline uint64_t
rnd(struct sim *s)
{
	uint64_t z = (s->rng += 0x9e3779b97f4a7c15ull);

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
	return z ^ (z >> 31);
}
static inline uint64_t
rnd_in(struct sim *s, uint64_t min, uint64_t max)
{
	return max <= min ? min : min + rnd(s) % (max - min + 1);
}
static inline bool
chance(struct sim *s, uint32_t in_1000)
{
	return rnd(s) % 1000 < in_1000;
}

/* The shell looks at what waits for room. */
static inline void
sim_look_soon(struct sim *s)
{
	uint64_t at = s->now_ns + rnd_in(s, 0, 50) * MS;

	if (s->wake_ns > at)
		s->wake_ns = at;
}

/* sim_fail: does not return. */
void sim_fail(struct sim *s, const char *fmt, ...)
    __attribute__((format(printf, 2, 3), noreturn));

/* world.c */
void world_spawn(struct sim *s, uint32_t w, uint32_t incarnation);
void world_step(struct sim *s, uint32_t w);
/* Something for the shell to see; it looks a little later. */
void world_ring(struct sim *s);
/* What it would claim next of its own lane. */
struct slot *world_pending(struct world_worker *k);
void world_lie(struct sim *s, uint32_t w);
/* A result into w's return lane. */
void world_give(
    struct sim *s, struct world_worker *k, uint32_t task, uint32_t gen, bool infra);
void world_wake(struct sim *s, uint32_t w);
void world_kill(struct sim *s, uint32_t w);
void world_die(struct sim *s, uint32_t w);
void world_stop(struct sim *s, uint32_t w);
void world_kill_task(struct sim *s, uint32_t w, uint32_t task, uint32_t gen);
struct slot *world_slot(struct sim *s, uint32_t w, uint32_t task, uint32_t gen);
void world_drop(struct sim *s, uint32_t w, struct slot *slot);

/* shell.c */
void shell_feed(struct sim *s, struct kn_event ev);
void shell_wake(struct sim *s);

/* One of its bank, or itself. */
static inline bool
sim_same_bank(const struct sim *s, uint32_t a, uint32_t b)
{
	uint32_t n = s->c.bank_size > 1 ? s->c.bank_size : 1;

	return a / n == b / n;
}

/* oracle.c */
void oracle_before(struct sim *s, const struct kn_event *ev);
void oracle_action(struct sim *s, const struct kn_action *a);
void oracle_after(struct sim *s);
void oracle_claims(struct sim *s, uint32_t w, uint32_t task, uint32_t gen);
void oracle_begins(struct sim *s, uint32_t w, uint32_t task, uint32_t gen);
void oracle_ran(struct sim *s, uint32_t w, uint32_t task, uint64_t ns);

/* driver.c */
void driver_seed(struct sim *s, uint64_t seed, uint64_t steps);
void driver_fini(struct sim *s);
void driver_act(struct sim *s);

/* trace.c */
void trace_event(struct sim *s, const struct kn_event *ev);
void trace_action(struct sim *s, const struct kn_action *a);
void trace_dump(const struct sim *s);
void trace_line_event(char *buf, size_t n, const struct kn_event *ev);
void trace_line_action(char *buf, size_t n, const struct kn_action *a);

/* script.c: 0 if the file's actions are what the core does. */
int script_run(const char *path, bool update);

#endif
