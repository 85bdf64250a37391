/* sandbox/module/api_arg.c: of knit/task.h, the argument.
 *
 * The supervisor has checked that the bytes are a value of their type; a task is told
 * by name what it got where it wanted something else.
 */
#include <string.h>

#include "sandbox/module/module.h"

enum knit_type
knit_arg_type(const struct knit_call *call)
{
	return (enum knit_type)call->head->type;
}

const void *
knit_arg_data(const struct knit_call *call, size_t *out_bytes)
{
	if (out_bytes)
		*out_bytes = call->arg_n;
	return call->arg;
}

static int
mismatch(struct knit_call *call, const char *wanted)
{
	return knit_fail(call, "TypeError", "%s takes %s; the argument is %s",
	    call->fn->name, wanted, kn_type_name((enum kn_type)call->head->type));
}

static bool
is(const struct knit_call *call, uint32_t type)
{
	return call->head->type == type;
}

int
knit_arg_bool(struct knit_call *call, bool *out)
{
	if (!is(call, KN_TYPE_BOOL) || call->arg_n != 1)
		return mismatch(call, "a bool");
	*out = call->arg[0] != 0;
	return 0;
}

int
knit_arg_i64(struct knit_call *call, int64_t *out)
{
	if (!is(call, KN_TYPE_I64) || call->arg_n != sizeof *out)
		return mismatch(call, "an i64");
	memcpy(out, call->arg, sizeof *out);
	return 0;
}

int
knit_arg_f64(struct knit_call *call, double *out)
{
	int64_t whole;

	if (call->arg_n != sizeof *out ||
	    !(is(call, KN_TYPE_F64) || is(call, KN_TYPE_I64)))
		return mismatch(call, "an f64");
	if (is(call, KN_TYPE_I64)) {
		memcpy(&whole, call->arg, sizeof whole);
		*out = (double)whole;
	} else {
		memcpy(out, call->arg, sizeof *out);
	}
	return 0;
}

static const void *
bytes_if(struct knit_call *call, bool fits, const char *wanted, size_t element,
    size_t *out_n)
{
	if (!fits) {
		mismatch(call, wanted);
		return NULL;
	}
	if (out_n)
		*out_n = call->arg_n / element;
	return call->arg;
}

const char *
knit_arg_text(struct knit_call *call, size_t *out_n)
{
	return bytes_if(call, is(call, KN_TYPE_TEXT), "text", 1, out_n);
}

const char *
knit_arg_str(struct knit_call *call)
{
	size_t n;
	const char *text = knit_arg_text(call, &n);
	char *copy;

	if (!text)
		return NULL;
	if (memchr(text, '\0', n)) {
		knit_fail(call, "TypeError", "%s takes text without a NUL in it",
		    call->fn->name);
		return NULL;
	}
	copy = knit_alloc(call, n + 1);
	if (!copy)
		return NULL;
	memcpy(copy, text, n);
	copy[n] = '\0';
	return copy;
}

const char *
knit_arg_json(struct knit_call *call, size_t *out_n)
{
	return bytes_if(call, is(call, KN_TYPE_JSON), "JSON", 1, out_n);
}

const void *
knit_arg_bytes(struct knit_call *call, size_t *out_n)
{
	bool fits =
	    is(call, KN_TYPE_BYTES) || is(call, KN_TYPE_TEXT) || is(call, KN_TYPE_JSON);

	return bytes_if(call, fits, "bytes", 1, out_n);
}

const int32_t *
knit_arg_i32s(struct knit_call *call, size_t *out_n)
{
	return bytes_if(call, is(call, KN_TYPE_I32S), "an array of i32", 4, out_n);
}

const int64_t *
knit_arg_i64s(struct knit_call *call, size_t *out_n)
{
	return bytes_if(call, is(call, KN_TYPE_I64S), "an array of i64", 8, out_n);
}

const uint64_t *
knit_arg_u64s(struct knit_call *call, size_t *out_n)
{
	return bytes_if(call, is(call, KN_TYPE_U64S), "an array of u64", 8, out_n);
}

const double *
knit_arg_f64s(struct knit_call *call, size_t *out_n)
{
	return bytes_if(call, is(call, KN_TYPE_F64S), "an array of f64", 8, out_n);
}
