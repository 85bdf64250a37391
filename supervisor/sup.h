/* supervisor/sup.h: the supervisor: one thread, one loop, one pool.
 *
 * Life: kn_sup_open(), submit tasks (also from callbacks), kn_sup_run() until it
 * returns, kn_sup_close(). Callbacks run on the loop's thread, from inside
 * kn_sup_run().
 */
#ifndef KN_SUPERVISOR_SUP_H
#define KN_SUPERVISOR_SUP_H

#include <stdbool.h>
#include <stdint.h>

#include "supervisor/task.h"

struct kn_err;
struct kn_host;
struct kn_policy;
struct kn_sup;

struct kn_sup_callbacks {
	void *ctx;
	/* Exactly once per submitted task. Ownership of t returns to the callee; o is
	 * valid during the call only (the callee may move descriptors out, leaving -1).
	 */
	void (*answer)(void *ctx, struct kn_task *t, struct kn_outcome *o);
	/* There is room for another kn_sup_submit(). */
	void (*room)(void *ctx);
	/* Embedded, kind module: a line that a module printed, made printable; else it
	 * goes to stderr. NULL: dropped. */
	void (*say)(void *ctx, uint32_t worker, const char *line);
	/* The stdout that a RELAY task was given takes no more; sys: why. NULL allowed.
	 */
	void (*lost)(void *ctx, struct kn_task *t, int sys);
};
/* Learning: calls that nothing in the policy allows are let through and told with the
 * result; so are those of these names that something refuses. For one trusted task. */
struct kn_sup_learn {
	const char *const *grant;
	size_t grant_n;
};
struct kn_sup_options {
	uint32_t workers; /* 0: policy, else machine */
	uint32_t window;  /* tasks accepted at one time; 0: a default from workers */
	bool
	    handle_signals; /* SIGINT, SIGTERM, SIGHUP: stop, the second time at once */
	bool single; /* for one task: no spares, its worker is killed at the end */
	bool eager;  /* all workers at once, and again when one ends; else on demand */
	uint32_t debug; /* 1 << enum kn_log_ns (supervisor/log.h) */
	int debug_fd;	/* borrowed: where those lines go; 0: stderr */
	bool log_json;	/* they are JSON objects */
	bool trace_on;	/* Chrome trace events to trace_fd (borrowed) */
	int trace_fd;
	/* In place of the policy's words, where set: enum kn_steal, enum kn_claim_how.
	 */
	bool no_steal, steal_set, claim_set;
	int steal, claim;
	/* The process is somebody else's (kn_sup_turn()): its limits and what it does
	 * about signals stay as they are. Who turns has SIGPIPE and SIGXFSZ blocked. */
	bool embedded;
	uint32_t fds_beside; /* descriptors that the process will open for others */
	const struct kn_sup_learn *learn; /* NULL: nothing is let through */
	/* Kind module: the module's environment ("K=V"), borrowed until open returns;
	 * NULL: what the policy makes of the caller's. */
	const char *const *env;
	size_t env_n;
	const char
	    *cwd; /* its directory, borrowed for the life of the pool; NULL: /task */
};

/* policy and host are borrowed. Launches the first workers at once. */
int kn_sup_open(const struct kn_policy *p, const struct kn_host *h,
    const struct kn_sup_options *o, const struct kn_sup_callbacks *cb,
    struct kn_sup **out, struct kn_err *e);
/* 0: accepted, t is the supervisor's. 1: no room now (room() will be called; after a
 * stop it will not, and nothing more is taken). -1: e. A RELAY task takes the caller's
 * streams: one at a time; its limits.stdout_bytes and stderr_bytes cut what is handed
 * on, UINT64_MAX where nobody asked for a cap. */
int kn_sup_submit(struct kn_sup *s, struct kn_task *t, struct kn_err *e);
/* Kind module: the number of a task of the module in this pool, for kn_call.fn, so that
 * a call need not look it up. Whether the module has it is known when it is called. 0:
 * there are too many names, or no memory: it is called by its name then. */
uint32_t kn_sup_function(struct kn_sup *s, const char *name);
/* Cancel a submitted task that is not answered yet. */
void kn_sup_cancel(struct kn_sup *s, struct kn_task *t);
/* Send a signal to what a submitted task runs. False: it runs nothing now. */
bool kn_sup_signal(struct kn_sup *s, const struct kn_task *t, int signo);
/* A task with a terminal: its size is that of the caller's; the caller's is given back;
 * and taken again. */
enum kn_sup_term { KN_TERM_RESIZE, KN_TERM_SUSPEND, KN_TERM_RESUME };
void kn_sup_terminal(struct kn_sup *s, enum kn_sup_term what);
/* No more submissions; run() returns when all is answered. */
void kn_sup_drain(struct kn_sup *s);
/* As a first or second SIGTERM. */
void kn_sup_stop(struct kn_sup *s, bool now);
/* Watch a descriptor of the submitter (regular files are always ready). events: POLLIN
 * or POLLOUT, 0 to unwatch. */
int kn_sup_watch(struct kn_sup *s, int fd, short events,
    void (*ready)(void *ctx, int fd, short revents), void *ctx, struct kn_err *e);
/* A callback every ms milliseconds while the loop runs (progress line); 0 ends it. */
void kn_sup_every(struct kn_sup *s, uint32_t ms, void (*tick)(void *ctx), void *ctx);

/* Run until ended. 0; -1 with e when the pool could not go on (all tasks answered even
 * then). *out_signal: the signal that stopped it, 0 if none. */
int kn_sup_run(struct kn_sup *s, int *out_signal, struct kn_err *e);
void kn_sup_close(struct kn_sup *s); /* kills and reaps what is left */

/* In place of kn_sup_run(): one turn at a time, by whichever thread, one at a time.
 * News: there may be more at hand; turn again. Quiet: until_ns (0: never) has come and
 * there is nothing to do until kn_sup_poll_fd() is readable; so a turn with an until_ns
 * that has passed never waits. -1 with e: the pool could not go on, and all tasks were
 * answered. */
enum kn_sup_news { KN_SUP_NEWS, KN_SUP_QUIET, KN_SUP_ENDED };
int kn_sup_turn(
    struct kn_sup *s, uint64_t until_ns, enum kn_sup_news *out, struct kn_err *e);
int kn_sup_poll_fd(const struct kn_sup *s);
uint32_t kn_sup_window(const struct kn_sup *s); /* tasks that it takes at one time */

struct kn_sup_counts {
	uint32_t workers; /* the most that were ready at one time */
	uint32_t running, queued;
	uint64_t answered, worker_spawned, worker_lost, stolen, doorbell_missed;
	uint64_t fds_most;	  /* descriptors, see room.c */
	uint64_t failed_launches; /* not among the lost: they never got ready */
	uint64_t bugs;		  /* events that could not be: ours, must stay 0 */
};
void kn_sup_count(const struct kn_sup *s, struct kn_sup_counts *out);
/* Why the pool is smaller than asked for; "" if it is not. */
const char *kn_sup_remark(const struct kn_sup *s);
/* How tasks get to other workers, as decided; *out_why, if asked for: the reason. */
const char *kn_sup_steal(const struct kn_sup *s, const char **out_why);
/* How workers claim from it, why so, and how many slots together; NULL: they do not. */
const char *kn_sup_claim(
    const struct kn_sup *s, const char **out_why, uint32_t *out_region_lanes);
/* The path of the program that starts its workers. */
const char *kn_sup_launcher(const struct kn_sup *s);
bool kn_sup_shares(const struct kn_sup *s); /* workers claim from one lane */
/* A debug line of the submitter's. From any thread: it is one write. */
void kn_sup_note(const struct kn_sup *s, const char *ns, const char *text);
/* Its workers, as JSON (free() it), see knit-serve(8). NULL: no memory. */
char *kn_sup_shown(struct kn_sup *s);
const struct kn_layers *kn_sup_layers(const struct kn_sup *s);
/* What goes without a layer that does not hold, in words, or NULL. */
const char *kn_sup_lacks(const struct kn_sup *s, enum kn_layer layer);
/* --dry-run: the launch command, without starting anything. */
int kn_sup_dry_run(const struct kn_policy *p, const struct kn_host *h,
    const char *const **out_argv, struct kn_sup **out, struct kn_err *e);

#endif
