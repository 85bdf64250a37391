/* lib/outcome.c: an outcome as the supervisor answers it -> as a caller reads it. */
#include <stdlib.h>
#include <string.h>

#include "ipc/call.h"
#include "ipc/fd.h"
#include "lib/lib.h"

struct kn_lib_outcome {
	struct knit_outcome o; /* first: a caller's pointer is ours */
	struct kn_outcome own; /* what o points into */
	struct knit_file *files;
	struct knit_cause causes[KN_CALL_CAUSES];
	struct kn_call_error error;
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

static const char *
refusal_text(enum kn_file_refusal r)
{
	static const char *const text[KN_FILE_REFUSAL_N] = {
		[KN_FILE_MISSING] = "no such file",
		[KN_FILE_NOT_REGULAR] = "not a regular file",
		[KN_FILE_SYMLINK] = "a symbolic link",
		[KN_FILE_TOO_LARGE] = "too large",
		[KN_FILE_TOO_MANY] = "too many files",
		[KN_FILE_BAD_NAME] = "not a name that can be handed back",
		[KN_FILE_IO] = "could not be read",
	};

	return (unsigned)r < KN_FILE_REFUSAL_N && text[r] ? text[r] : "refused";
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
			.refused = f->fd < 0 ? refusal_text(f->refusal) : NULL,
			.fd = f->fd,
			.mode = f->mode,
			.bytes = f->bytes,
		};
	}
	l->o.file_n = own->file_n;
	return 0;
}

/* The error of a call, as a value: name, message, detail, and what was beneath it. */
static void
add_causes(struct kn_lib_outcome *l)
{
	struct kn_call_error *e = &l->error;

	if (kn_call_error_decode(l->own.value.bytes, l->own.value.n, e) < 0)
		return;
	for (uint32_t i = 0; i < e->n; i++)
		l->causes[i] = (struct knit_cause){ .name = e->link[i].name,
			.message = e->link[i].message,
			.detail = e->link[i].detail };
	l->o.cause_n = e->n;
}

static void
add_value(struct kn_lib_outcome *l)
{
	const struct kn_value *v = &l->own.value;

	if (v->type == KN_TYPE_ERROR) {
		add_causes(l);
		return;
	}
	l->o.value_type = (enum knit_type)v->type;
	l->o.value = v->bytes;
	l->o.value_n = v->n;
}

struct kn_lib_outcome *
kn_lib_outcome_new(void)
{
	return calloc(1, sizeof(struct kn_lib_outcome));
}

void
kn_lib_outcome_fill(struct kn_lib_outcome *l, struct kn_outcome *from)
{
	struct kn_outcome *own = &l->own;
	struct kn_value value = { 0 };
	bool whole_one = kn_value_take(&from->value, &value) == 0;

	*own = *from;
	own->value = value;
	from->out.bytes = from->err.bytes = NULL;
	from->files = NULL;
	from->file_n = 0;
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
	};
	add_value(l);
	if (add_files(l) < 0)
		whole_one = false;
	if (!whole_one) { /* never "ok" with half of it */
		own->verdict = KN_V_INTERNAL;
		memccpy(own->error, "no memory for what it handed back", '\0',
		    sizeof own->error);
	}
	l->o.verdict = (enum knit_verdict)own->verdict;
}

void
kn_lib_outcome_free(struct kn_lib_outcome *l)
{
	if (!l)
		return;
	kn_outcome_fini(&l->own);
	free(l->files);
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

const char *
knit_outcome_layer(const struct knit_outcome *o, const char *layer)
{
	int at = o && layer ? kn_layer_by_name(layer) : -1;

	return at < 0 ? NULL : kn_layer_state_name(whole(o)->own.layers.state[at]);
}
