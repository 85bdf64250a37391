/* lib/job.c: a job as the caller describes it.
 *
 * Setters check what can be checked without a policy, and remember what they refused,
 * so that a caller may look at the answer of the submission only.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ipc/call.h"
#include "lib/lib.h"
#include "supervisor/task_ask.h"
#include "supervisor/task_line.h"
#include "supervisor/value.h"

/* ---- making one ---- */

struct kn_err kn_lib_no_room = { .kind = KN_EK_HOST, .msg = "out of memory" };

int
kn_lib_job_refuse(struct knit_job *job, const char *fmt, ...)
{
	va_list ap;

	if (!job || job->bad)
		return -1;
	job->bad = calloc(1, sizeof *job->bad);
	if (!job->bad)
		job->bad = &kn_lib_no_room;
	if (job->bad == &kn_lib_no_room)
		return -1;
	job->bad->kind = KN_EK_USAGE;
	va_start(ap, fmt);
	vsnprintf(job->bad->msg, sizeof job->bad->msg, fmt, ap);
	va_end(ap);
	return -1;
}

static int
no_memory(struct knit_job *job)
{
	if (job && !job->bad)
		job->bad = &kn_lib_no_room;
	return -1;
}

/* Whether it can be changed still; what only its submitter may ask. */
static bool
is_new(struct knit_job *job)
{
	return job && job->state == KN_JOB_NEW;
}

/* A call has nothing of what a process of its own has. Whether it is refused. */
static bool
is_no_command(struct knit_job *job, const char *what)
{
	if (job->is_call)
		kn_lib_job_refuse(job, "%s: of a command only", what);
	return job->is_call;
}

static void *
copy(const void *p, size_t n)
{
	char *q = malloc(n + 1);

	if (q && n > 0)
		memcpy(q, p, n);
	if (q)
		q[n] = '\0';
	return q;
}

static struct knit_job *
new_job(void)
{
	struct knit_job *job = calloc(1, sizeof *job);

	if (job)
		job->task = kn_task_new();
	if (job && job->task)
		return job;
	free(job);
	return NULL;
}

struct knit_job *
knit_job_command(const char *const *argv)
{
	struct knit_job *job = new_job();
	size_t n = 0;

	if (!job)
		return NULL;
	while (argv && argv[n])
		n++;
	if (n == 0) {
		kn_lib_job_refuse(
		    job, "a command without arguments: argv[0] is what is run");
		return job;
	}
	job->task->argv = calloc(n + 1, sizeof *job->task->argv);
	for (size_t i = 0; job->task->argv && i < n; i++) {
		job->task->argv[i] = strdup(argv[i]);
		job->task->argv_n = i + 1;
		if (!job->task->argv[i])
			break;
	}
	if (job->task->argv_n == n && job->task->argv[n - 1])
		return job;
	knit_job_free(job);
	return NULL;
}

struct knit_job *
knit_job_call(const char *name)
{
	struct knit_job *job = new_job();

	if (!job)
		return NULL;
	job->is_call = true;
	if (!name || !*name) {
		kn_lib_job_refuse(job, "a call without a name");
		return job;
	}
	job->task->call.name = strdup(name);
	job->task->call.arg.type = KN_TYPE_NULL;
	if (job->task->call.name)
		return job;
	knit_job_free(job);
	return NULL;
}

/* ---- setters ---- */

static int
set_text(struct knit_job *job, char **to, const char *text, const char *what)
{
	char *own;

	if (!is_new(job))
		return -1;
	if (!text)
		return kn_lib_job_refuse(job, "%s: NULL", what);
	own = strdup(text);
	if (!own)
		return no_memory(job);
	free(*to);
	*to = own;
	return 0;
}

int
knit_job_set_id(struct knit_job *job, const char *id)
{
	if (is_new(job) && id && (!*id || strlen(id) > KN_LINE_ID_MAX))
		return kn_lib_job_refuse(
		    job, "id: must have 1 to %d bytes", KN_LINE_ID_MAX);
	return is_new(job) ? set_text(job, &job->task->id, id, "id") : -1;
}

int
knit_job_set_cwd(struct knit_job *job, const char *path)
{
	if (!is_new(job) || is_no_command(job, "cwd"))
		return -1;
	if (path && *path != '/')
		return kn_lib_job_refuse(job, "cwd: must be absolute: %.100s", path);
	return set_text(job, &job->task->cwd, path, "cwd");
}

int
knit_job_set_env(struct knit_job *job, const char *name, const char *value)
{
	struct kn_job_env *v, one = { NULL, NULL };

	if (!is_new(job) || is_no_command(job, "environment"))
		return -1;
	if (!name || !kn_env_key_ok(name, strlen(name)))
		return kn_lib_job_refuse(
		    job, "environment: a name that is empty or has a '='");
	v = realloc(job->env, (job->env_n + 1) * sizeof *v);
	if (!v)
		return no_memory(job);
	job->env = v;
	one.name = strdup(name);
	one.value = value ? strdup(value) : NULL;
	if (!one.name || (value && !one.value)) {
		free(one.name);
		free(one.value);
		return no_memory(job);
	}
	v[job->env_n++] = one;
	return 0;
}

int
knit_job_set_stdin(struct knit_job *job, const void *bytes, size_t n)
{
	void *own;

	if (!is_new(job) || is_no_command(job, "stdin"))
		return -1;
	if (!bytes && n > 0)
		return kn_lib_job_refuse(job, "stdin: NULL");
	own = copy(bytes, n);
	if (!own)
		return no_memory(job);
	free(job->task->stdin_bytes);
	job->task->stdin_bytes = own;
	job->task->stdin_n = n;
	return 0;
}

int
knit_job_add_file(
    struct knit_job *job, const char *path, unsigned mode, const void *bytes, size_t n)
{
	struct kn_task_file *v, f = { .fd = -1, .mode = mode, .byte_n = n };

	if (!is_new(job) || is_no_command(job, "file"))
		return -1;
	if (!path || !kn_line_path_ok(path, strlen(path)))
		return kn_lib_job_refuse(
		    job, "file %.100s: " KN_LINE_PATH_RULE, path ? path : "NULL");
	if (mode > 0777 || (!bytes && n > 0) || job->task->file_n >= KN_LINE_FILES_MAX)
		return kn_lib_job_refuse(job, "file %.100s: %s", path,
		    mode > 0777	      ? "only permission bits in its mode"
		    : !bytes && n > 0 ? "content is NULL"
				      : "too many of them");
	if (job->task->file_n == job->file_room) {
		job->file_room = job->file_room ? 2 * job->file_room : 4;
		v = realloc(job->task->files, job->file_room * sizeof *v);
		if (!v)
			return no_memory(job);
		job->task->files = v;
	}
	f.path = strdup(path);
	f.bytes = copy(bytes, n);
	job->task->files[job->task->file_n++] = f;
	return f.path && f.bytes ? 0 : no_memory(job);
}

int
knit_job_collect(struct knit_job *job, const char *pattern)
{
	char **v, *own;

	if (!is_new(job) || is_no_command(job, "collect"))
		return -1;
	if (!pattern || !kn_line_path_ok(pattern, strlen(pattern)))
		return kn_lib_job_refuse(job, "collect %.100s: " KN_LINE_PATH_RULE,
		    pattern ? pattern : "NULL");
	if (job->task->collect_n >= KN_LINE_FILES_MAX)
		return kn_lib_job_refuse(job, "collect: too many patterns");
	if (job->task->collect_n == job->collect_room) {
		job->collect_room = job->collect_room ? 2 * job->collect_room : 4;
		v = realloc(job->task->collect, job->collect_room * sizeof *v);
		if (!v)
			return no_memory(job);
		job->task->collect = v;
	}
	own = strdup(pattern);
	if (!own)
		return no_memory(job);
	job->task->collect[job->task->collect_n++] = own;
	return 0;
}

#define SAME(k) _Static_assert((int)KNIT_LIMIT_##k == (int)KN_ASK_##k, "one order")
SAME(MEMORY);
SAME(PIDS);
SAME(CPU_MS);
SAME(NOFILE);
SAME(FSIZE);
SAME(STACK);
SAME(CORE);
SAME(STDOUT);
SAME(STDERR);
SAME(QUEUE_MS);
SAME(TASK_MS);
SAME(HARD_MS);
SAME(GRACE_MS);

int
knit_job_set_limit(struct knit_job *job, enum knit_limit which, uint64_t value)
{
	const struct kn_ask_field *f;

	if (!is_new(job))
		return -1;
	if ((unsigned)which >= KN_ASK_N)
		return kn_lib_job_refuse(job, "no limit has the number %d", (int)which);
	f = &kn_ask_fields[which];
	if (which < KNIT_LIMIT_QUEUE_MS && which != KNIT_LIMIT_CPU_MS &&
	    is_no_command(job, f->name))
		return -1;
	if (value < f->min || value > f->max)
		return kn_lib_job_refuse(job, "limit %s: %llu is not in %llu to %llu",
		    f->name, (unsigned long long)value, (unsigned long long)f->min,
		    (unsigned long long)f->max);
	kn_ask_set(&job->ask, (enum kn_ask)which, value);
	return 0;
}

int
knit_job_set_retries(struct knit_job *job, unsigned n)
{
	if (!is_new(job))
		return -1;
	if (n > 100)
		return kn_lib_job_refuse(job, "retries: at most 100");
	job->has_retries = true;
	job->task->retries = n;
	return 0;
}

static int
set_value(struct knit_job *job, struct kn_value *to, enum knit_type type,
    const void *bytes, size_t n, const char *what)
{
	void *own;

	_Static_assert((int)KNIT_F64S == (int)KN_TYPE_F64S, "the wire's numbers");
	if (!job->is_call)
		return kn_lib_job_refuse(job, "%s: of a call only", what);
	own = copy(bytes, bytes ? n : 0);
	if (!own)
		return no_memory(job);
	if ((unsigned)type >= KN_TYPE_ERROR || (!bytes && n > 0) ||
	    !kn_value_check(type, own, n)) {
		free(own);
		return kn_lib_job_refuse(
		    job, "%s: %zu bytes are no value of that type", what, n);
	}
	kn_value_fini(to);
	*to = (struct kn_value){ .type = type, .bytes = own, .n = n };
	return 0;
}

int
knit_job_set_arg(struct knit_job *job, enum knit_type type, const void *bytes, size_t n)
{
	return is_new(job)
		   ? set_value(job, &job->task->call.arg, type, bytes, n, "argument")
		   : -1;
}

int
knit_job_set_arg_text(struct knit_job *job, const char *text)
{
	struct kn_value v = { 0 };
	const char *why;

	if (!is_new(job))
		return -1;
	if (!text || !job->is_call)
		return kn_lib_job_refuse(
		    job, "argument: %s", text ? "of a call only" : "NULL");
	if (kn_value_from_text(text, &v, &why) < 0)
		return kn_lib_job_refuse(job, "%s", why);
	kn_value_fini(&job->task->call.arg);
	job->task->call.arg = v;
	return 0;
}

int
knit_job_set_default(
    struct knit_job *job, enum knit_type type, const void *bytes, size_t n)
{
	return is_new(job) ? set_value(job, &job->task->call.soft_default, type, bytes,
				 n, "default")
			   : -1;
}

const char *
knit_job_refusal(const struct knit_job *job)
{
	return job && job->bad ? job->bad->msg : "";
}

void
knit_job_set_user(struct knit_job *job, void *user)
{
	if (job)
		job->user = user;
}

void *
knit_job_user(const struct knit_job *job)
{
	return job ? job->user : NULL;
}

void
knit_job_set_done(
    struct knit_job *job, void (*done)(struct knit_job *job, void *ctx), void *ctx)
{
	if (!is_new(job))
		return;
	job->done = done;
	job->done_ctx = ctx;
}
