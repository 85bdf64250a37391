/* supervisor/inner.h: what the files of the supervisor share: the pool's state.
 *
 * Who does what: sup.c the public calls; count.c what can be asked; turn.c
 * the loop and the core's turns; act.c actions -> the world; view.c one worker's lane
 * and socket -> events; stream.c a task's pipes, captured; relay.c a single command's
 * streams (hasty.c: its terminal); files.c descriptors of kept files; out.c what was
 * changed in a copy; refused.c calls that are refused; outcome.c what is answered;
 * room.c how many workers there is room for; signals.c all that touches signals.
 */
#ifndef KN_SUPERVISOR_INNER_H
#define KN_SUPERVISOR_INNER_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>

#include "ipc/arena.h"
#include "ipc/control.h"
#include "ipc/err.h"
#include "ipc/lane.h"
#include "ipc/payload.h"
#include "sandbox/filter.h"
#include "sandbox/filter_told.h"
#include "sandbox/launch.h"
#include "supervisor/capture.h"
#include "supervisor/core/pool.h"
#include "supervisor/egress.h"
#include "supervisor/egress_tally.h"
#include "supervisor/log.h"
#include "supervisor/loop.h"
#include "supervisor/resident.h"
#include "supervisor/share.h"
#include "supervisor/sup.h"
#include "supervisor/trace.h"

enum {
	KN_LANE_DEPTH = 4, /* tasks published to one worker at a time */
	KN_SCRATCH_BYTES = 64 * 1024,
	KN_ERR_TEXT_MAX = 2048, /* of a launcher's stderr */
	KN_WATCH_MAX = 8,	/* descriptors of the submitter */
	KN_TASK_FDS_MAX = KN_MSG_FDS_MAX - 3,
	KN_DOORBELL_MS = 1000, /* look anyway after this long without a bell */
	KN_GONE_MS = 5000,    /* launcher reaped, but somebody still holds the socket */
	KN_IDLE_RINGS = 4096, /* rings without cause, beyond one per result */
	KN_UNTOLD_MAX = 2 * KN_SLOTS,
	KN_UNANSWERED_MAX = 32,
	KN_COLLECT_MAX = 1024, /* files a task may hand back, whatever the stub says */
};

/* One task's pipes, our ends. */
struct kn_io {
	struct kn_watch in, out, err;
	int in_fd, out_fd, err_fd; /* -1: none or ended; a pty's master is out_fd */
	uint64_t in_at;		   /* CAPTURE: bytes of stdin written so far */
	uint64_t relayed[2];	   /* RELAY: bytes that came on stdout, stderr */
	uint64_t handed[2];	   /* and those of them that the caller's took */
	struct kn_cap cap_out, cap_err;
};

enum kn_entry_state {
	KN_ENTRY_FREE,
	KN_ENTRY_REFUSED, /* never given to the core; answered at the next turn */
	KN_ENTRY_KNOWN,	  /* the core's, not in a lane */
	KN_ENTRY_PLACED,  /* in a worker's lane */
	KN_ENTRY_ENDING,  /* decided; the caller's streams are being flushed */
};

/* A task that was accepted and is not answered. Named to the core and to workers by
 * its index; everything a worker says about it is held against this record. */
struct kn_entry {
	/* what each call needs comes first: thousands of them may be under way */
	struct kn_sup *sup;
	struct kn_task *task;
	enum kn_entry_state state;
	uint32_t index, gen, attempt;
	uint32_t next; /* free list, or refused list */
	uint64_t serial;
	int worker; /* of the last publication, -1: none */
	uint32_t incarnation;
	int slot, area;
	uint32_t abort; /* of a call: its id in the worker's bitmap, or KN_NO_ABORT */
	bool aborted;	/* it was told to give up */
	bool died;	/* of a call: result says how the process ended under it */
	uint32_t flags; /* of a call's result: enum kn_call_flag */
	struct kn_value value; /* borrowed, while the result is fed */
	bool claimed, input_used, cancel_sent;
	bool told_to_end; /* this attempt, by request */
	bool taking;	  /* shared submit: it is asked back, and that is not decided */
	bool shelved;	  /* waits for a slot, or for room */
	bool waited;	  /* it was out of its worker's reach, since it was published */
	uint32_t shelf_next;
	size_t job_bytes;
	uint64_t accepted_ns, published_ns, begun_ns, ended_ns;
	uint64_t taken_ns; /* it was in the lane of taken_from until then; 0: it was not
			      moved */
	int taken_from;
	bool has_result;
	enum kn_how how;
	enum kn_verdict refusal; /* REFUSED */
	const char *why;    /* REFUSED, or lost with its worker: text or NULL; static */
	const char *over;   /* stream that went over its cap where that kills */
	const char *broken; /* stream that we could not carry on; broken_sys: why */
	int broken_sys;
	enum kn_cause end_for; /* it is to be ended; NONE: or was told so */
	struct kn_outcome_file *files;
	size_t file_n, file_room;
	struct kn_net_tally net; /* mode allow: what its attempts asked for */
	uint64_t file_bytes;	 /* of those that will be read */
	struct kn_io io;
	struct kn_heard *heard; /* refused calls; NULL: none */
	struct kn_job_result result;
	struct kn_entry *late_next, *late_prev; /* published, pipes not watched yet */
	uint64_t late_ns;			/* when they will be; 0: not listed */
};

struct kn_untold {
	uint32_t task, gen;
};

/* The listener of a worker's filter (refused.c). */
struct kn_refused_wk {
	struct kn_watch w;
	int fd;		  /* -1: none */
	uint64_t rest_ns; /* nobody is answered before; 0: no rest */
	uint64_t loose;	  /* calls of no task */
	unsigned held_n;  /* calls that were taken during a rest */
	struct {
		uint64_t id;
		unsigned errno_ret;
	} held[KN_UNANSWERED_MAX];
};

struct kn_wk {
	struct kn_sup *sup;
	uint32_t index, incarnation;
	bool live; /* between SPAWNED and GONE */
	bool ready, stopping, stop_acked;
	bool ready_untold; /* READY waits for older events: the core knows no claim yet
			    */
	bool reaped, sock_eof;
	bool unread; /* its socket could not be read: not all it said is known */
	uint64_t gone_by_ns; /* reaped: GONE at latest then; deaf: killed then; or 0 */
	const char *bad;     /* violated field, NULL: none */
	bool bad_fed, boot_failed, rang, exited;
	bool late; /* killed because it was not ready in time */
	bool
	    unborn; /* its boot record could not be sent: what it says counts nothing */
	int held_sock; /* something outlived its launcher with the slice mapped: no
			  reuse until this socket has ended; -1: nothing did */
	int wait_status;
	uint64_t spawned_ns, results, idle_rings;
	struct kn_launched lw;
	struct kn_watch w_sock, w_pid, w_err, w_bell;
	struct kn_slice slice;
	struct kn_submit tx;
	struct kn_return_rx rx;
	struct kn_payload pay;
	uint32_t slot_task[KN_SLOTS], slot_gen[KN_SLOTS];
	uint32_t unproved; /* slots of calls that were answered; that they were claimed
			      is seen at the next look at claims, or was a lie */
	uint32_t outstanding; /* published, neither answered nor taken back */
	int ping_slot;
	uint64_t ping_nonce;
	struct kn_entry *quiet;		  /* its claim is told with its result, */
	uint32_t quiet_moved, quiet_from; /* and that it came from another's lane */
	bool joined; /* shared submit: it may claim, and is not buried */
	struct kn_untold untold[KN_UNTOLD_MAX]; /* seen, and not told to the core; some
						  of them answered meanwhile */
	uint32_t untold_n;
	uint32_t staged;   /* calls in its lane that are not on offer yet */
	uint32_t host_cpu; /* that it was told: 1 + number */
	bool to_wake; /* something was published to a resident: look if it sleeps */
	struct kn_refused_wk listener;
	struct kn_resident_wk res;   /* kind module */
	struct kn_eg_worker *egress; /* mode allow: its way out, once it has one */
	struct kn_err boot_err;	     /* BOOT could not be sent, or BOOT_FAIL came */
	char err_text[KN_ERR_TEXT_MAX];
	size_t err_n, err_total;
};

/* Events wait in two queues: what the world and the submitter say, and the answers to
 * the actions of the present step, which the core must see first. */
struct kn_queue {
	struct kn_event *v;
	uint32_t cap, at, n;
};

struct kn_sup_watch {
	struct kn_watch w;
	struct kn_sup *sup;
	int fd;
	void (*ready)(void *ctx, int fd, short revents);
	void *ctx;
};

enum { KN_QUIET_N = 2 }; /* signals that mean a failed write, see signals.c */

struct kn_signals {
	bool mask_saved, quiet_saved[KN_QUIET_N];
	int fd;
	struct kn_watch w;
	sigset_t old_mask;
	struct sigaction old_quiet[KN_QUIET_N];
};

struct kn_relay;

struct kn_sup {
	const struct kn_policy *policy;
	const struct kn_host *host;
	struct kn_sup_options opt;
	struct kn_sup_callbacks cb;
	struct kn_loop loop;
	struct kn_log log;
	struct kn_trace trace;
	uint64_t start_ns;
	uint8_t pool_id[16];
	struct kn_arena arena;
	struct kn_launcher *launcher;
	struct kn_filter filter;
	bool filter_built, loop_open, arena_open;
	bool tell; /* of refused calls */
	struct kn_told *told;
	uint64_t listener_rests; /* workers whose listener rests */
	struct kn_pool *pool;
	struct kn_action *actions;
	struct kn_queue events, replies;
	bool pumping;
	bool broken;	   /* our own bug: the loop cannot go on */
	bool watchdog_hit; /* looking without a bell, see KN_DOORBELL_MS */
	uint32_t worker_n, task_max, most_ready;
	uint64_t fds_most; /* descriptors of the pool, see room.c */
	struct kn_wk *wk;
	struct kn_entry *entry;
	uint32_t free_head, used_n, refused_head;
	uint64_t serial, answered, doorbell_missed;
	struct kn_entry *late_first, *late_last;
	bool want_room, draining, ended, pool_failed;
	int stop_level;	 /* 0 none, 1 asked to end, 2 kill */
	int stop_signal; /* what run() reports */
	uint64_t
	    flush_by_ns; /* a stopped run waits no longer for the caller's streams */
	uint64_t watchdog_ns;
	char remark[160]; /* what the caller should know of a pool that came up */
	bool has_fail;
	struct kn_err fail; /* why the pool cannot go on */
	struct kn_sup_watch user_watch[KN_WATCH_MAX];
	uint64_t tick_ns, tick_every_ns;
	void (*tick)(void *ctx);
	void *tick_ctx;
	struct kn_signals sig;
	struct kn_relay *relay;
	struct rlimit old_nofile;
	bool nofile_saved;
	struct kn_module *module; /* NULL: kind exec */
	struct kn_egress *egress; /* NULL: no network of hosts by name */
	enum kn_steal steal;	  /* as decided; AUTO never */
	const char *steal_why;
	int claim;		/* enum kn_claim_how */
	struct kn_share *share; /* NULL: calls come in each worker's own lane */
	uint64_t step_ns;	/* time of the event that is being handled */
	uint64_t steps;		/* of the core, ever */
	uint64_t round_ns;	/* when the round of the loop began */
	bool round_begun;	/* by a spin that ended with news: the clock was read */
	bool lively;		/* the last round had news */
	uint64_t look_ns; /* when the lane was looked at whose results are taken */
	bool mute;  /* one worker, calls: nobody else can take what it has claimed */
	bool rests; /* idle residents do, see resident_rest.c */
	bool cpu_limits;	       /* some call has had a limit of processor time */
	bool full_look;		       /* claims too, although there are no results */
	uint64_t polled_ns;	       /* when descriptors were last looked at */
	uint64_t no_spin_ns;	       /* until then waiting is sleeping */
	uint32_t spin_fails;	       /* in a row */
	uint64_t long_bytes;	       /* of the argument last published */
	struct kn_job_file *job_files; /* scratch for the job being encoded */
	size_t job_file_room;
	char scratch[KN_SCRATCH_BYTES];
	uint8_t msg[sizeof(struct kn_msg) + KN_MSG_BODY_MAX];
};
#define KN_NO_ENTRY UINT32_MAX

/* Something may come back from w: its own tasks, or any of its bank, of which nobody
 * knows yet that w has claimed it. */
static inline bool
kn_wk_owes(const struct kn_wk *w)
{
	return w->outstanding > 0 ||
	       (w->sup->share && w->ready && kn_share_bank_of(w)->placed > 0);
}

/* It was ended because somebody asked for it, which stops a batch: a worker that says
 * so must have been told to. */
static inline bool
kn_cause_by_request(enum kn_cause c)
{
	return c == KN_CAUSE_CANCEL || c == KN_CAUSE_STOP;
}

/* turn.c */
/* Feed one event now, with all that follows from it; from inside a turn it is queued.
 */
void kn_turn_feed(struct kn_sup *s, const struct kn_event *ev);
/* Queue an event of the submitter; it is fed when the loop next turns. */
void kn_turn_queue(struct kn_sup *s, const struct kn_event *ev);
/* Answer to an action of the present step. */
void kn_turn_reply(struct kn_sup *s, const struct kn_event *ev);
void kn_turn_pump(struct kn_sup *s);
int kn_turn_run(struct kn_sup *s, struct kn_err *e);
/* What kn_sup_turn() does but for the end. */
int kn_turn_step(
    struct kn_sup *s, uint64_t until_ns, enum kn_sup_news *out, struct kn_err *e);
/* Remember the first reason why the pool cannot go on. */
void kn_turn_fail(struct kn_sup *s, const struct kn_err *e);
void kn_turn_stop(struct kn_sup *s, bool now, int signo);

/* act.c */
void kn_act_do(struct kn_sup *s, const struct kn_action *a);
/* Close what a worker had; it must be reaped. */
void kn_act_release(struct kn_wk *w);
/* It is out of w's lane, and nobody will run it. */
struct kn_event kn_act_taken_back(struct kn_wk *w, struct kn_entry *e);
int kn_act_message(struct kn_wk *w, enum kn_msg_type type, const struct kn_entry *e,
    uint32_t arg, const int *fds, int fd_n);
/* A placed one's worker has it in hand, by its own word: what is sent for one that
 * waits in its lane, or is over, it drops. */
bool kn_act_hears(const struct kn_entry *e);

/* publish.c */
/* Build the job of e; arrays point into s->job_files and the task. Descriptors of its
 * files go to fds (KN_TASK_FDS_MAX at most), their count to *out_fd_n. 0, or -1: more
 * descriptors than a message takes, or out of memory. */
int kn_publish_job(struct kn_entry *e, struct kn_job *out, int *fds, int *out_fd_n);
/* True: published, and its message sent. */
bool kn_publish(struct kn_wk *w, struct kn_entry *e);
int kn_publish_ping(struct kn_wk *w, struct kn_err *e);
/* The lane has it no more (answered, taken back): forget the publication. */
void kn_publish_forget(struct kn_entry *e);

/* call.c: kind module, one call. */
/* True: published; the worker is woken by kn_call_wake(). */
bool kn_call_publish(struct kn_wk *w, struct kn_entry *e);
static inline const char *
kn_call_name(const struct kn_entry *e)
{
	const struct kn_call *c = &e->task->call;

	return c->name ? c->name : e->sup->module->name[c->fn];
}

/* call_put.c: where the argument goes that does not fit its slot. */
struct kn_call_room {
	struct kn_offer *offer; /* a bank's, or NULL: */
	struct kn_payload *pay; /* a worker's own */
	const uint32_t *freed;
	uint8_t *area;
	uint64_t *backed; /* bytes from its start */
	uint32_t index;	  /* of the bank, or of the slice */
};
enum kn_put {
	KN_PUT_DONE,
	KN_PUT_NO_ROOM,	  /* others have it */
	KN_PUT_NO_MEMORY, /* the system gives none */
};
/* The argument, and behind it h->name_n bytes of the name. */
enum kn_put kn_call_put(struct kn_sup *s, const struct kn_call_room *r,
    const struct kn_entry *e, struct kn_slot_head *h, uint8_t buf[KN_INLINE_MAX]);
/* What was published lies there in bursts: now it is all on offer. */
void kn_call_flush(struct kn_wk *w);
/* Offer all, and wake those that were published to since the last time, if they sleep.
 */
void kn_call_wake(struct kn_sup *s);
/* Wait a little without sleeping for an answer. True: one is there. */
bool kn_call_spin(struct kn_sup *s);
/* Fewer than are worth waiting for together. */
bool kn_call_is_few(const struct kn_sup *s);
/* Let a few answers come together, where many are under way. */
void kn_call_gather(const struct kn_sup *s);
/* One slot of the return lane: a pong or a result. */
void kn_call_result(
    struct kn_wk *w, const struct kn_slot_head *h, const uint8_t *bytes);
/* An id in the bitmap that w's calls look at, or KN_NO_ABORT. */
uint32_t kn_call_take_abort(struct kn_wk *w);
/* Tell a call that it should give up. */
void kn_call_abort(struct kn_wk *w, struct kn_entry *e);
/* The lane has it no more. */
void kn_call_forget(struct kn_wk *w, struct kn_entry *e);

/* call_cpu.c: when to look at what w's call has used of the processors, 0: never; and
 * do it. */
uint64_t kn_call_cpu_due(struct kn_wk *w, uint64_t now_ns);
void kn_call_cpu_timer(struct kn_wk *w, uint64_t now_ns);

/* view.c */
/* It is ready: counted, logged, fed. */
void kn_view_ready(struct kn_wk *w);
/* Claims, results, stop words -> events. Returns how much news there was. */
unsigned kn_view_look(struct kn_wk *w);
/* Claims only; from inside a turn they are answers to the present step. */
void kn_view_look_claims(struct kn_wk *w);
/* Those that were kept for the result: the core is about to decide by them. */
void kn_view_tell_claims(struct kn_wk *w);
/* A result of e is there. */
bool kn_view_is_claimed(struct kn_wk *w, struct kn_entry *e);
bool kn_view_begun(struct kn_wk *w, struct kn_entry *e);
void kn_view_violation(struct kn_wk *w, const char *field);
/* The stub says that it is up: its listener is there, or it is in violation. */
void kn_view_listening(struct kn_wk *w);
struct kn_entry *kn_view_entry(struct kn_wk *w, uint32_t task, uint32_t gen);

/* sock.c */
/* Everything the worker left is read, its tasks are lost or answered, GONE is fed.
 * keep: what launched it lives on. */
void kn_view_finish(struct kn_wk *w, bool keep);
/* Is all that the launcher started gone? Reaps it when it has ended. */
bool kn_view_launcher_gone(struct kn_wk *w, uint64_t now_ns);
int kn_view_open(struct kn_wk *w, struct kn_err *e);
void kn_view_close(struct kn_wk *w);
void kn_view_socket(struct kn_wk *w);
void kn_view_tell_bad(struct kn_wk *w); /* VIOLATION, once */
/* If the worker is gone: everything it left is read, it is released, GONE is fed. */
void kn_view_gone(struct kn_wk *w, uint64_t now_ns);

/* stream.c */
int kn_stream_open(struct kn_entry *e, int child[3]);
void kn_stream_start(struct kn_entry *e);
void kn_stream_watch(struct kn_entry *e);
void kn_stream_watch_late(struct kn_sup *s, uint64_t now_ns);
/* The task wrote more than it may to stream name: the end of it, if the policy says so.
 */
void kn_stream_over(struct kn_entry *e, const char *name);
/* A stream of the task cannot be read or written by us: never "ok" with half of it. */
void kn_stream_broken(struct kn_entry *e, const char *name, int sys);
/* The cell is dead: take what is left in the pipes. */
void kn_stream_drain(struct kn_entry *e);
void kn_stream_close(struct kn_entry *e);
void kn_stream_reset(struct kn_entry *e);

/* relay.c */
int kn_relay_open(struct kn_sup *s, struct kn_entry *e, struct kn_err *err);
void kn_relay_start(struct kn_entry *e);
/* The pty's master has come. */
int kn_relay_master(struct kn_entry *e, int fd_own);
/* e has a terminal, and its master has not come in this attempt. */
bool kn_relay_lacks_master(const struct kn_entry *e);
/* The cell is dead. True: all of its output has been handed on. */
bool kn_relay_finish(struct kn_entry *e);
/* Handing on goes on after the end of the task. Abandon: answer it as it stands. */
bool kn_relay_flushing(const struct kn_sup *s);
void kn_relay_abandon(struct kn_sup *s);
void kn_relay_detach(struct kn_entry *e);
void kn_relay_resize(struct kn_sup *s);
void kn_relay_suspend(struct kn_sup *s); /* the caller's terminal as it was */
void kn_relay_resume(struct kn_sup *s);
void kn_relay_close(struct kn_sup *s);

/* files.c: one FILES message. Descriptors are consumed; cut: there were more, and we
 * could not open them. 0, or -1 and the bad field. */
int kn_files_take(struct kn_entry *e, const uint8_t *body, size_t n, int *fds_own,
    int fd_n, bool cut, const char **out_field);
void kn_files_drop(struct kn_entry *e);

/* out.c */
/* Of an outcome's files, those that come from a copy: into a new folder of their
 * directory. What could not be brought stays among the files, by an absolute name. */
void kn_out_bring(const struct kn_sup *s, const char *id, struct kn_outcome *o);

/* refused.c */
/* Are refused calls told of? -1: that was asked for and cannot be. */
int kn_refused_open(struct kn_sup *s, struct kn_err *e);
/* s->filter, and what explains its refusals. */
int kn_refused_filter(struct kn_sup *s, bool watched, struct kn_err *e);
void kn_refused_close(struct kn_sup *s); /* the filter too */
/* The stub's LISTENER message. Returns the bad field, or NULL. */
const char *kn_refused_take(struct kn_wk *w, int fd_own);
void kn_refused_timer(struct kn_wk *w, uint64_t now_ns);
void kn_refused_end(struct kn_wk *w);
void kn_refused_fill(struct kn_entry *e, struct kn_outcome *o);
void kn_refused_forget(struct kn_entry *e);
/* Verdict denied: the calls that kill, as the kernel does not tell which it was. */
void kn_refused_name_killers(const struct kn_sup *s, struct kn_outcome *o);

/* room.c: as many workers as the limit of open files has room for. -1: not even one. */
int kn_room_for_workers(struct kn_sup *s, uint32_t *workers, struct kn_err *e);

/* outcome.c: answer e and free its index. */
void kn_outcome_answer(struct kn_entry *e);
void kn_outcome_entry_free(struct kn_entry *e);

/* signals.c */
int kn_signals_open(struct kn_sup *s, struct kn_err *e);
void kn_signals_close(struct kn_sup *s);

#endif
