/* supervisor/verdict_call.c: how a call of a module ended; see verdict.h. Pure.
 *
 * An error that a task returns is `exit` without an exit code: it ended by itself and
 * was not ok. A task that ends the process it runs in is `exit` with the code, whatever
 * the code is: there is no value.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "ipc/clock.h"
#include "ipc/err.h"
#include "supervisor/value.h"
#include "supervisor/verdict.h"

static void __attribute__((format(printf, 3, 4)))
say(struct kn_outcome *o, enum kn_verdict v, const char *fmt, ...)
{
	va_list ap;

	o->verdict = v;
	va_start(ap, fmt);
	vsnprintf(o->error, sizeof o->error, fmt, ap);
	va_end(ap);
}

static void
borrow(struct kn_outcome *o, const struct kn_value *v)
{
	o->value = *v;
	o->value.borrowed = true;
}

/* The error of a task in one line; the whole of it is the value. */
static void
failed(const struct kn_call_in *c, struct kn_outcome *o)
{
	struct kn_call_error err;
	char name[80], message[200];
	enum kn_verdict v = KN_V_EXIT;

	borrow(o, c->value);
	if (kn_call_error_decode(c->value->bytes, c->value->n, &err) < 0) {
		say(o, KN_V_INTERNAL, "an error that cannot be read"); /* cannot be */
		return;
	}
	if (c->flags & KN_CALL_NOT_FOUND)
		v = KN_V_NOT_FOUND;
	else if (strcmp(err.link[0].name, "KNT_ERROR_3") == 0)
		v = KN_V_TOO_LARGE;
	kn_err_printable(
	    name, sizeof name, err.link[0].name, (int)strnlen(err.link[0].name, 70));
	kn_err_printable(message, sizeof message, err.link[0].message,
	    (int)strnlen(err.link[0].message, 190));
	say(o, v, "%s%s%s", name, name[0] && message[0] ? ": " : "", message);
}

static void
by_value(
    const struct kn_verdict_in *in, const struct kn_call_in *c, struct kn_outcome *o)
{
	uint32_t soft_ms = in->timeouts->task_ms;
	bool late = soft_ms && (in->wall_ns > (uint64_t)soft_ms * KN_MS_NS ||
				   (c->flags & KN_CALL_GAVE_UP));

	if (c->aborted) {
		say(o, KN_V_CANCELLED, "%s",
		    in->stopping ? "the run was stopped" : "by request");
	} else if (in->broken) {
		say(o, KN_V_INTERNAL, "its %s could not be carried on: %s", in->broken,
		    strerror(in->broken_sys));
	} else if (in->timeouts->hard_ms &&
		   in->wall_ns > (uint64_t)in->timeouts->hard_ms * KN_MS_NS) {
		say(o, KN_V_TIMEOUT, "ran longer than %u ms (/timeouts/hard_ms)",
		    in->timeouts->hard_ms);
	} else if (late && c->soft_default->type) {
		borrow(o, c->soft_default);
		o->soft = true;
		o->verdict = KN_V_OK;
	} else if (late) {
		say(o, KN_V_SOFT_TIMEOUT, "ran longer than %u ms (/timeouts/task_ms)",
		    soft_ms);
	} else if (c->flags & KN_CALL_FAILED) {
		failed(c, o);
	} else if (c->value->type == KN_TYPE_JSON && !kn_value_is_json(c->value)) {
		say(o, KN_V_EXIT, "%s returned text that is not JSON as JSON",
		    in->program);
	} else {
		borrow(o, c->value);
		o->verdict = KN_V_OK;
	}
}

static void
by_death(const struct kn_verdict_in *in, struct kn_outcome *o)
{
	int st = in->result->wait_status;

	kn_verdict_of(in, o);
	if (o->verdict != KN_V_OK && o->verdict != KN_V_EXIT)
		return;
	say(o, KN_V_EXIT, "%s ended its process with status %d instead of returning",
	    in->program, WEXITSTATUS(st));
}

void
kn_verdict_of_call(
    const struct kn_verdict_in *in, const struct kn_call_in *c, struct kn_outcome *o)
{
	o->value = (struct kn_value){ 0 };
	o->soft = false;
	if (in->how != KN_HOW_RESULT) {
		kn_verdict_of(in, o);
		return;
	}
	o->started = false;
	o->exit_code = -1;
	o->signal = 0;
	o->error[0] = '\0';
	if (c->died)
		by_death(in, o);
	else
		by_value(in, c, o);
}
