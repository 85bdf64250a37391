/* cmd/doctor.c: knit-sandbox doctor: what this machine can and cannot do, and the fix.
 *
 * First each step by itself (sandbox/doctor.h), then all of them at once: a pool of one
 * worker is opened and asked to run a command that is not there. That it says so takes
 * everything a task needs, and no program of the machine.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include <knit/pool.h>

#include "cmd/cmd.h"
#include "cmd/opt.h"
#include "cmd/report_doctor.h"
#include "ipc/err.h"
#include "sandbox/doctor.h"

static const char help_text[] =
    "usage: knit-sandbox doctor [--json]\n\n"
    "Does each step that a run needs once, in a child, and says what is refused by\n"
    "which layer, what a run loses by it, and what to do. Changes nothing. Run it as\n"
    "whoever shall run tasks, where they shall run.\n\n"
    "  --json                 one JSON document (policies/schemas/doctor.schema.json)\n"
    "Exit: 0 tasks can be run (degraded: something weaker stands in, see what), 1 "
    "they\n"
    "cannot, 125 it could not be told.\n";

enum { WAIT_MS = 60000 };

/* "text" of an error is the detail, its hint the fix. */
static void
refused(struct kn_finding *f, const char *text, const char *hint)
{
	memset(f, 0, sizeof *f);
	f->health = KN_HEALTH_REFUSED;
	snprintf(f->detail, sizeof f->detail, "%s", text);
	snprintf(f->fix, sizeof f->fix, "%s", hint);
}

static void
run_one(struct knit_pool *pool, struct kn_finding *f)
{
	static const char *const argv[] = { "/task/no-such-command", NULL };
	struct knit_job *job = knit_job_command(argv);
	struct knit_error e = KNIT_ERROR_NONE;
	const struct knit_outcome *o;

	if (!job || knit_pool_submit(pool, job, &e) < 0 ||
	    knit_job_wait(job, WAIT_MS, &e) < 0) {
		refused(f, e.text, e.hint);
	} else if (!(o = knit_job_outcome(job))) {
		refused(f, "nothing within a minute", "");
	} else if (o->verdict != KNIT_NOT_FOUND) {
		refused(f, o->error, "");
	} else {
		memset(f, 0, sizeof *f);
		snprintf(f->detail, sizeof f->detail,
		    "a worker was started, and a cell in it");
	}
	knit_job_free(job);
}

/* out_lacks: NULL, or the launcher that the policy has not chosen is tried, and this is
 * what it goes without. */
static void
try_run(struct kn_finding *f, char *out_lacks, size_t n)
{
	struct knit_policy *policy = knit_policy_new("default");
	struct knit_pool_options o;
	struct knit_error e = KNIT_ERROR_NONE;
	struct knit_pool *pool = NULL;
	const char *lacks;

	knit_pool_options_init(&o, sizeof o);
	o.workers = 1;
	o.flags = KNIT_POOL_OWN_PROCESS;
	if (!policy ||
	    (out_lacks &&
		knit_policy_set(policy, "/launcher/type", "direct", &e) < 0) ||
	    knit_pool_open(policy, &o, &pool, &e) < 0)
		refused(f, e.text, e.hint);
	else
		run_one(pool, f);
	lacks = pool && out_lacks ? knit_pool_fact(pool, "lacks-namespaces") : NULL;
	if (lacks)
		snprintf(out_lacks, n, "%s", lacks);
	knit_pool_close(pool);
	knit_policy_free(policy);
}

/* Refused for a reason that a step has already told: told once, with the step's fix. */
static void
join_cause(struct kn_doctor *d)
{
	struct kn_finding *run = &d->f[KN_PROBE_RUN];

	for (int p = 0; run->health == KN_HEALTH_REFUSED && p < KN_PROBE_N; p++) {
		const struct kn_finding *f = &d->f[p];

		if (p == KN_PROBE_RUN || f->health != KN_HEALTH_REFUSED)
			continue;
		run->cause = f->cause;
		run->who = f->who;
		memcpy(run->fix, f->fix, sizeof run->fix);
		return;
	}
}

/* Where no sandbox can be had, is there at least what does without namespaces? */
static void
try_last_resort(struct kn_doctor *d)
{
	char lacks[sizeof d->last_resort] = "";
	struct kn_finding f;

	d->last_resort[0] = '\0';
	if (d->f[KN_PROBE_RUN].health != KN_HEALTH_REFUSED)
		return;
	try_run(&f, lacks, sizeof lacks);
	if (f.health == KN_HEALTH_OK)
		memcpy(d->last_resort, lacks, sizeof lacks);
}

/* What is degraded is told; it keeps no task from running. */
static int
exit_of(const struct kn_doctor *d)
{
	switch (kn_report_doctor_verdict(d)) {
	case KN_HEALTH_OK:
	case KN_HEALTH_DEGRADED:
		return KN_EXIT_OK;
	case KN_HEALTH_REFUSED:
		return KN_EXIT_NOT_ALL_OK;
	case KN_HEALTH_UNKNOWN:
		break;
	}
	return KN_EXIT_OURS;
}

static int
parse(int argc, char **argv, bool *json, bool *help, struct kn_err *e)
{
	static const char *const names[] = { "json", "help", NULL };

	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--json") == 0)
			*json = true;
		else if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0)
			*help = true;
		else
			return kn_opt_unknown(e, "doctor", argv[i], names);
	}
	return 0;
}

int
kn_cmd_doctor(int argc, char **argv, unsigned closed)
{
	static struct kn_doctor d;
	bool json = false, help = false;
	struct kn_err e = { 0 };
	size_t n = 0;
	char *text;
	int rc;

	(void)closed;
	if (parse(argc, argv, &json, &help, &e) < 0)
		return kn_say_error(NULL, &e);
	if (help)
		return kn_say_out(NULL, help_text, strlen(help_text)) < 0 ? KN_EXIT_OURS
									  : KN_EXIT_OK;
	kn_doctor_look(&d);
	try_run(&d.f[KN_PROBE_RUN], NULL, 0);
	join_cause(&d);
	try_last_resort(&d);
	text = json ? kn_report_doctor_json(&d, &n) : kn_report_doctor_text(&d, &n);
	if (!text) {
		kn_say(NULL, "doctor: out of memory");
		return KN_EXIT_OURS;
	}
	rc = kn_say_out(NULL, text, n) < 0 ? KN_EXIT_OURS : exit_of(&d);
	free(text);
	return rc;
}
