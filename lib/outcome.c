/* lib/outcome.c: an outcome as the supervisor answers it -> as a caller reads it. */
#include <stdlib.h>
#include <string.h>

#include "ipc/call.h"
#include "ipc/fd.h"
#include "lib/lib.h"
#include "supervisor/beneath.h"
#include "supervisor/report.h"
#include "supervisor/task_line.h"
#include "supervisor/value.h"

struct kn_lib_outcome {
	struct knit_outcome o; /* first: a caller's pointer is ours */
	struct kn_outcome own; /* what o points into */
	struct knit_file *files;
	struct knit_cause *causes; /* NULL: none */
	struct knit_refused *refused;
};

/* ---- names ---- */

#define SAME(k) _Static_assert((int)KNIT_##k == (int)KN_V_##k, "the same numbers")
SAME(OK);
SAME(EXIT);
SAME(SIGNAL);
SAME(TIMEOUT);
SAME(SOFT_TIMEOUT);
SAME(CPU_TIMEOUT);
SAME(MEMORY);
SAME(OUTPUT_LIMIT);
SAME(DENIED);
SAME(TOO_LARGE);
SAME(QUEUE_TIMEOUT);
SAME(CANCELLED);
SAME(SKIPPED);
SAME(WORKER_LOST);
SAME(LAUNCH_FAILED);
SAME(INVALID);
SAME(NOT_FOUND);
SAME(NOT_EXECUTABLE);
SAME(PROTOCOL_VIOLATION);
SAME(INTERNAL);
_Static_assert((int)KNIT_INTERNAL + 1 == (int)KN_V_N, "each of them");

const char *
knit_verdict_name(enum knit_verdict verdict)
{
	return kn_verdict_name((enum kn_verdict)verdict);
}

const char *
knit_layer_name(size_t at)
{
	return at < KN_LAYER_N ? kn_layer_name((enum kn_layer)at) : NULL;
}

/* NULL: it is there. The name is the task's. */
static const char *
refusal_text(const struct kn_outcome_file *f)
{
	if (f->refusal == KN_FILE_OK && f->fd >= 0)
		return kn_line_path_ok(f->name, strlen(f->name))
			   ? NULL
			   : kn_report_refusal(KN_FILE_BAD_NAME);
	return kn_report_refusal(f->refusal == KN_FILE_OK ? KN_FILE_IO : f->refusal);
}

/* ---- making one ---- */

static struct knit_stream
stream_of(const struct kn_capture *c)
{
	return (struct knit_stream){ .bytes = c->bytes ? c->bytes : "",
		.n = c->n,
		.head_n = c->head_n,
		.total = c->total,
		.truncated = c->truncated };
}

static int
add_files(struct kn_lib_outcome *l)
{
	struct kn_outcome *own = &l->own;

	if (own->file_n == 0)
		return 0;
	l->files = calloc(own->file_n, sizeof *l->files);
	if (!l->files)
		return -1;
	for (size_t i = 0; i < own->file_n; i++) {
		const struct kn_outcome_file *f = &own->files[i];

		l->files[i] = (struct knit_file){
			.name = f->name,
			.refused = refusal_text(f),
			.fd = f->fd,
			.mode = f->mode,
			.bytes = f->bytes,
		};
	}
	l->o.file_n = own->file_n;
	return 0;
}

/* The error of a call, as a value: name, message, detail, and what was beneath it. */
static int
add_causes(struct kn_lib_outcome *l)
{
	struct kn_call_error e;

	if (kn_call_error_decode(l->own.value.bytes, l->own.value.n, &e) < 0)
		return 0;
	l->causes = calloc(e.n, sizeof *l->causes);
	if (!l->causes)
		return -1;
	for (uint32_t i = 0; i < e.n; i++)
		l->causes[i] = (struct knit_cause){ .name = e.link[i].name,
			.message = e.link[i].message,
			.detail = e.link[i].detail };
	l->o.cause_n = e.n;
	return 0;
}

static int
add_value(struct kn_lib_outcome *l)
{
	const struct kn_value *v = &l->own.value;

	if (v->type == KN_TYPE_ERROR)
		return add_causes(l);
	l->o.value_type = (enum knit_type)v->type;
	l->o.value = v->bytes;
	l->o.value_n = v->n;
	return 0;
}

static int
add_refused(struct kn_lib_outcome *l)
{
	struct kn_outcome *own = &l->own;

	if (own->refused_n == 0)
		return 0;
	l->refused = calloc(own->refused_n, sizeof *l->refused);
	if (!l->refused)
		return -1;
	for (size_t i = 0; i < own->refused_n; i++) {
		const struct kn_refused *r = &own->refused[i];

		_Static_assert(sizeof l->refused->args == sizeof r->args, "all six");
		l->refused[i] = (struct knit_refused){ .call = r->name,
			.arg_n = r->arg_n,
			.count = r->count,
			.sys = (int)r->errno_ret,
			.by = r->by,
			.allow = r->allow };
		memcpy(l->refused[i].args, r->args, sizeof r->args);
	}
	l->o.refused_n = own->refused_n;
	return 0;
}

struct kn_lib_outcome *
kn_lib_outcome_new(void)
{
	return calloc(1, sizeof(struct kn_lib_outcome));
}

/* From what it owns; whole_one: all of that is there. */
static void
show(struct kn_lib_outcome *l, bool whole_one)
{
	struct kn_outcome *own = &l->own;

	l->o = (struct knit_outcome){
		.exit_code = own->exit_code,
		.signal = own->signal,
		.error = own->error,
		.out = stream_of(&own->out),
		.err = stream_of(&own->err),
		.wall_us = own->wall_us,
		.cpu_us = own->cpu_us,
		.user_us = own->user_us,
		.system_us = own->system_us,
		.queue_us = own->queue_us,
		.max_rss = own->max_rss,
		.memory_peak = own->memory_peak,
		.pids_peak = own->pids_peak,
		.worker = own->worker,
		.attempt = own->attempt,
		.started = own->started,
		.soft = own->soft,
		.refused_more = own->refused_more,
		.out_dir = own->out_dir,
		.out_files = own->out_files,
		.out_bytes = own->out_bytes,
	};
	if (add_value(l) < 0 || add_files(l) < 0 || add_refused(l) < 0)
		whole_one = false;
	if (!whole_one) { /* never "ok" with half of it */
		own->verdict = KN_V_INTERNAL;
		memccpy(own->error, "no memory for what it handed back", '\0',
		    sizeof own->error);
	}
	l->o.verdict = (enum knit_verdict)own->verdict;
}

void
kn_lib_outcome_fill(struct kn_lib_outcome *l, struct kn_outcome *from)
{
	struct kn_value value = { 0 };
	bool whole_one = kn_value_take(&from->value, &value) == 0;

	l->own = *from;
	l->own.value = value;
	from->out.bytes = from->err.bytes = NULL;
	from->files = NULL;
	from->file_n = 0;
	from->out_dir = NULL;
	from->net = (struct kn_net_tally){ 0 };
	from->refused = NULL;
	from->refused_n = 0;
	show(l, whole_one);
}

void
kn_lib_outcome_passed(struct kn_lib_outcome *l, const struct kn_task *t)
{
	if (t->stdio != KN_STDIO_RELAY)
		return;
	l->o.passed = l->own.out.passed;
	l->o.passed_err = l->own.err.passed;
}

struct kn_outcome *
kn_lib_outcome_own(struct kn_lib_outcome *l)
{
	return &l->own;
}

void
kn_lib_outcome_view(struct kn_lib_outcome *l, struct kn_outcome *o)
{
	l->own = *o;
	show(l, true);
}

void
kn_lib_outcome_view_end(struct kn_lib_outcome *l)
{
	free(l->files);
	free(l->causes);
	free(l->refused);
	memset(l, 0, sizeof *l);
}

void
kn_lib_outcome_wipe(struct kn_lib_outcome *l)
{
	kn_outcome_fini(&l->own);
	free(l->files);
	free(l->causes);
	free(l->refused);
	l->files = NULL;
	l->causes = NULL;
	l->refused = NULL;
}

void
kn_lib_outcome_free(struct kn_lib_outcome *l)
{
	if (!l)
		return;
	kn_lib_outcome_wipe(l);
	free(l);
}

/* ---- reading it ---- */

const struct knit_outcome *
kn_lib_outcome_of(const struct kn_lib_outcome *l)
{
	return l ? &l->o : NULL;
}

static const struct kn_lib_outcome *
whole(const struct knit_outcome *o)
{
	return (const struct kn_lib_outcome *)(const void *)o;
}

const struct knit_file *
knit_outcome_file(const struct knit_outcome *o, size_t at)
{
	return o && at < o->file_n ? &whole(o)->files[at] : NULL;
}

const struct knit_cause *
knit_outcome_cause(const struct knit_outcome *o, size_t at)
{
	return o && at < o->cause_n ? &whole(o)->causes[at] : NULL;
}

const struct knit_refused *
knit_outcome_refused(const struct knit_outcome *o, size_t at)
{
	return o && at < o->refused_n ? &whole(o)->refused[at] : NULL;
}

const char *
knit_outcome_layer(const struct knit_outcome *o, const char *layer)
{
	int at = o && layer ? kn_layer_by_name(layer) : -1;

	return at < 0 ? NULL : kn_layer_state_name(whole(o)->own.layers.state[at]);
}

char *
knit_outcome_value_text(const struct knit_outcome *o)
{
	return o && o->value_type ? kn_value_to_text(&whole(o)->own.value) : NULL;
}

int
knit_outcome_save(
    const struct knit_outcome *o, size_t at, int dir_fd, struct knit_error *e)
{
	const struct knit_file *f = knit_outcome_file(o, at);
	struct kn_err err = { 0 };

	if (!f)
		return kn_lib_fail(e, KNIT_E_USAGE, "no file has the number %zu", at);
	if (f->refused)
		return kn_lib_fail(e, KNIT_E_CONFIG, "%.100s: %s", f->name, f->refused);
	if (kn_beneath_write(dir_fd, f->name, f->fd, f->bytes, f->mode, false, &err) <
	    0)
		return kn_lib_pass(e, &err);
	return 0;
}

char *
kn_lib_outcome_json(const struct knit_outcome *o, const char *id, uint64_t line,
    const char *policy, bool is_call, unsigned flags, size_t *out_n)
{
	const struct kn_report how = {
		.policy = policy,
		.ascii = flags & KNIT_JSON_ASCII,
		.streams = flags & KNIT_JSON_STREAMS,
		.contents = flags & KNIT_JSON_FILES,
		.calls = is_call,
	};
	size_t n = 0;
	char *text = kn_report_result(&how, id, line, &whole(o)->own, &n);

	if (text && out_n)
		*out_n = n;
	return text;
}

char *
knit_job_json(const struct knit_job *job, struct knit_policy *policy, unsigned flags,
    size_t *out_n)
{
	const struct knit_outcome *o = knit_job_outcome(job);

	if (!o)
		return NULL;
	return kn_lib_outcome_json(o, job->id ? job->id : "job", 0,
	    policy ? knit_policy_hash(policy) : NULL, job->is_call, flags, out_n);
}
