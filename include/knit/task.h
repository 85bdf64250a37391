/* knit/task.h: tasks in C or C++ for knit-sandbox, kind module.
 *
 *   #include <knit/task.h>
 *
 *   KNIT_TASK(twice)
 *   {
 *           int64_t n;
 *
 *           if (knit_arg_i64(call, &n) < 0)
 *                   return -1;
 *           return knit_result_i64(call, 2 * n);
 *   }
 *
 *   cc -shared -fPIC -o tasks.so tasks.c
 *   knit-sandbox run --module ./tasks.so --call twice --input 21
 *
 * A module is a shared object. It is loaded only inside of sandboxes, by a process that
 * stays and answers one call after the other on one thread; the functions below are
 * exported by that process, so nothing is linked. Functions of type int return 0, or -1
 * after the call's error was set, so that `return -1;` is all a task has to do then.
 * See knit-task(3).
 */
#ifndef KNIT_TASK_H
#define KNIT_TASK_H

#include <knit/value.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#define KNIT_C_LINKAGE extern "C"
#else
#define KNIT_C_LINKAGE
#endif
#pragma GCC visibility push(default)

#define KNIT_TASK_API 1 /* rises when something is added; nothing is taken away */
#define KNIT_EXPORT __attribute__((visibility("default")))
#define KNIT_PRINTF(at, from) __attribute__((format(printf, at, from)))

struct knit_call; /* one call, valid until the task returns */

/* Define the task NAME. Its body sees `struct knit_call *call`, and returns 0 when the
 * result is set (none set: null), anything else when it failed. */
#define KNIT_TASK(NAME) \
	KNIT_C_LINKAGE KNIT_EXPORT int knit_task_##NAME(struct knit_call *call); \
	KNIT_C_LINKAGE int knit_task_##NAME( \
	    struct knit_call *call __attribute__((unused)))

/* ---- values ---- */

const char *knit_type_name(enum knit_type type); /* "i64", "text", ... */

/* ---- the argument: read where it lies, aligned to 64 bytes, gone after the call ----
 */

enum knit_type knit_arg_type(const struct knit_call *call);
/* The bytes of an argument of any type. Never NULL. */
const void *knit_arg_data(const struct knit_call *call, size_t *out_bytes);

/* Of the type asked for, or the call fails with TypeError. An i64 also passes for an
 * f64. */
int knit_arg_bool(struct knit_call *call, bool *out);
int knit_arg_i64(struct knit_call *call, int64_t *out);
int knit_arg_f64(struct knit_call *call, double *out);
/* Not terminated; knit_arg_str() copies and terminates (NULL also if there is a NUL in
 * it). n counts bytes, or elements. */
const char *knit_arg_text(struct knit_call *call, size_t *out_n);
const char *knit_arg_str(struct knit_call *call);
const char *knit_arg_json(struct knit_call *call, size_t *out_n);
const void *knit_arg_bytes(struct knit_call *call, size_t *out_n); /* or text, JSON */
const int32_t *knit_arg_i32s(struct knit_call *call, size_t *out_n);
const int64_t *knit_arg_i64s(struct knit_call *call, size_t *out_n);
const uint64_t *knit_arg_u64s(struct knit_call *call, size_t *out_n);
const double *knit_arg_f64s(struct knit_call *call, size_t *out_n);

/* ---- the result: the last one set counts; bytes are copied ---- */

int knit_result_null(struct knit_call *call);
int knit_result_bool(struct knit_call *call, bool value);
int knit_result_i64(struct knit_call *call, int64_t value);
int knit_result_f64(struct knit_call *call, double value);
int knit_result_text(struct knit_call *call, const char *text, size_t n);
int knit_result_str(struct knit_call *call, const char *text);
int knit_result_json(struct knit_call *call, const char *text, size_t n);
int knit_result_bytes(struct knit_call *call, const void *bytes, size_t n);
int knit_result_i32s(struct knit_call *call, const int32_t *v, size_t n);
int knit_result_i64s(struct knit_call *call, const int64_t *v, size_t n);
int knit_result_u64s(struct knit_call *call, const uint64_t *v, size_t n);
int knit_result_f64s(struct knit_call *call, const double *v, size_t n);
/* Write a result in place, without a copy: room for n bytes, aligned to 64, or NULL;
 * then say how many of them it is. The room is not cleared. */
void *knit_result_reserve(struct knit_call *call, enum knit_type type, size_t n);
int knit_result_commit(struct knit_call *call, size_t n);
/* The most bytes that a result may have. */
size_t knit_result_max(const struct knit_call *call);

/* ---- errors: name, message and detail reach the caller, and what caused them ---- */

/* These return -1. knit_fail() starts anew; knit_fail_cause() adds what was beneath the
 * error set last, at most seven times; knit_fail_detail() says more about that one. */
int knit_fail(struct knit_call *call, const char *name, const char *format, ...)
    KNIT_PRINTF(3, 4);
int knit_fail_cause(struct knit_call *call, const char *name, const char *format, ...)
    KNIT_PRINTF(3, 4);
int knit_fail_detail(struct knit_call *call, const char *format, ...) KNIT_PRINTF(2, 3);

/* ---- while it runs ---- */

/* Whether the present call should give up: it was cancelled, or its time (task_ms) has
 * passed; false between two calls. Cheap, and may be asked by any thread. What a task
 * returns then is up to it. */
bool knit_aborted(void);
/* CLOCK_MONOTONIC in nanoseconds: the same clock as the supervisor's. */
uint64_t knit_now_ns(void);
/* Memory that is gone after the call: 16-aligned, not cleared. NULL, with the error
 * set, if there is none. For the thread that runs the task only. */
void *knit_alloc(struct knit_call *call, size_t n);
/* Name of the task, as called. */
const char *knit_task_name(const struct knit_call *call);

/* ---- before the first call ---- */

struct knit_init {
	size_t size;  /* of this struct as the worker knows it: fields only get more */
	uint32_t api; /* KNIT_TASK_API of the worker */
	uint32_t worker;  /* its number, from 0 */
	const char *text; /* what the caller passed for the hook, "" if nothing */
	size_t text_n;
	uint64_t reserved[4];
};
/* A module may define this; it runs once in each worker, after its constructors. Not 0:
 * the worker does not start, and the caller is told why. */
int knit_worker_init(const struct knit_init *init);
/* Say why; returns -1. */
int knit_init_fail(const struct knit_init *init, const char *format, ...)
    KNIT_PRINTF(2, 3);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
