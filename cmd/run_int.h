/* cmd/run_int.h: what `run` has set up before it parts into one command, one call and
 * a batch. All of it goes through <knit/pool.h>.
 */
#ifndef KN_CMD_RUN_INT_H
#define KN_CMD_RUN_INT_H

#include <knit/pool.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>

#include "cmd/cmd.h"
#include "cmd/module_say.h"
#include "cmd/opt.h"
#include "ipc/err.h"

struct kn_run {
	struct kn_run_opts opt;
	struct kn_voice voice;
	unsigned closed; /* standard streams that were closed, a bit each */
	struct knit_policy *policy;
	struct knit_pool_options how;
	struct knit_pool *pool;
	int trace_fd, report_fd; /* -1: none; report_fd may be 1 */
	struct kn_module_voice module_voice;

	/* signals, see run_signals.c */
	sigset_t mask; /* of the caller, while signals are held */
	int sig_fd;
	struct knit_job *job; /* who gets them first; NULL: nobody */
	int signo;	      /* that stopped it; 0: none */
	int stop_level;	      /* 0, 1 asked to end, 2 killed */
	int hold_signal;      /* given to the job; the stop comes at stop_ns */
	uint64_t stop_ns;
};

/* Each returns the exit code. */
int kn_run_call(struct kn_run *r);
int kn_run_single(struct kn_run *r);
int kn_run_batch(struct kn_run *r);
int kn_run_connect(struct kn_run *r);

/* The exit status of a single command or call that ended like this. */
int kn_run_exit_of(const struct knit_outcome *o);
/* How one command ended, where that is not its own business, and what to do. */
void kn_run_tell(const struct kn_run *r, const struct knit_outcome *o, int exit_code);
/* The first workers are started, and what the caller should know of them is said. */
int kn_run_open(struct kn_run *r, struct kn_err *e);
void kn_run_close(struct kn_run *r);
/* Write and close the report. Frees text. -1 after saying why not. */
int kn_run_report(struct kn_run *r, char *text, size_t n);
/* The same of a single job, as its one line. */
int kn_run_report_job(struct kn_run *r, const struct knit_job *job);
/* What happened before there could be an answer stands in the report as well. */
int kn_run_failed(struct kn_run *r, struct knit_job *job, const struct kn_err *e);
/* Submit the one job and take no other. */
int kn_run_submit(struct kn_run *r, struct knit_job *job, struct kn_err *e);

/* ---- run_call.c: how a call's end is told, ours or a server's ---- */

/* Text and bytes as they are, other values (as JSON) with a newline. 0, or -1, said. */
int kn_run_call_value(
    const struct kn_run *r, enum knit_type type, const char *bytes, size_t n);
/* One of the causes of its error, the outermost being number 0. */
void kn_run_call_cause(const struct kn_run *r, size_t i, const struct knit_cause *e);
/* An end that is neither a value nor an error of its own. */
void kn_run_call_tell(const struct kn_run *r, const struct knit_outcome *o);
int kn_run_call_exit_of(const struct knit_outcome *o);

/* ---- run_signals.c ---- */

/* Hold the signals that stop a run from before the pool exists until nothing that it
 * made is left: one that comes while it tidies up must not end us halfway. Freeing
 * drops those that came. */
int kn_run_hold_signals(struct kn_run *r, struct kn_err *e);
void kn_run_free_signals(struct kn_run *r);
/* End the run; signo: because of that signal, or 0. */
void kn_run_stop(struct kn_run *r, bool now, int signo);
/* Wait for the pool, for signals, for others (their revents are set) or until by_ns (0:
 * for ever), and do what signals and time ask for. */
void kn_run_wait(struct kn_run *r, struct pollfd *others, int n, uint64_t by_ns);

#endif
