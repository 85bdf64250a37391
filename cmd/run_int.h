/* cmd/run_int.h: what `run` has set up before it parts into one command and a batch.
 */
#ifndef KN_CMD_RUN_INT_H
#define KN_CMD_RUN_INT_H

#include <signal.h>

#include "cmd/cmd.h"
#include "cmd/opt.h"
#include "ipc/err.h"
#include "sandbox/host.h"
#include "supervisor/sup.h"
#include "supervisor/task_env.h"

struct kn_policy;

struct kn_run {
	struct kn_run_opts opt;
	struct kn_voice voice;
	unsigned closed; /* standard streams that were closed, a bit each */
	struct kn_policy *policy;
	struct kn_host host;
	struct kn_env env;
	struct kn_sup_options sup;
	int trace_fd, report_fd; /* -1: none; report_fd may be 1 */
	sigset_t mask;		 /* of the caller, while signals are held */
};

/* Each returns the exit code. */
/* The exit status of a single command or call that ended like this. */
int kn_run_exit_of(const struct kn_outcome *o);
int kn_run_call(struct kn_run *r);
int kn_run_single(struct kn_run *r);
int kn_run_batch(struct kn_run *r);

/* Hold the signals that stop a run from before the supervisor exists until nothing that
 * it made is left: the supervisor takes its own share meanwhile, and one that comes
 * while it tidies up must not end us halfway. Freeing drops those that came. */
void kn_run_hold_signals(struct kn_run *r);
void kn_run_free_signals(const struct kn_run *r);
/* One line for each layer that something weaker stands in for. */
void kn_run_tell_layers(const struct kn_run *r, const struct kn_layers *l);
/* Write and close the report. Frees text. -1 after saying why not. */
int kn_run_report(struct kn_run *r, char *text, size_t n);

#endif
