/* supervisor/task.c: the life of a task and of an outcome, see task.h. */
#include "supervisor/task.h"

#include <stdlib.h>
#include <string.h>

#include "ipc/fd.h"

static const char *const verdict_names[] = {
	[KN_V_OK] = "ok",
	[KN_V_EXIT] = "exit",
	[KN_V_SIGNAL] = "signal",
	[KN_V_TIMEOUT] = "timeout",
	[KN_V_SOFT_TIMEOUT] = "soft-timeout",
	[KN_V_CPU_TIMEOUT] = "cpu-timeout",
	[KN_V_MEMORY] = "memory",
	[KN_V_OUTPUT_LIMIT] = "output-limit",
	[KN_V_DENIED] = "denied",
	[KN_V_TOO_LARGE] = "too-large",
	[KN_V_QUEUE_TIMEOUT] = "queue-timeout",
	[KN_V_CANCELLED] = "cancelled",
	[KN_V_SKIPPED] = "skipped",
	[KN_V_WORKER_LOST] = "worker-lost",
	[KN_V_LAUNCH_FAILED] = "launch-failed",
	[KN_V_INVALID] = "invalid",
	[KN_V_NOT_FOUND] = "not-found",
	[KN_V_NOT_EXECUTABLE] = "not-executable",
	[KN_V_PROTOCOL_VIOLATION] = "protocol-violation",
	[KN_V_INTERNAL] = "internal",
};
_Static_assert(sizeof verdict_names / sizeof verdict_names[0] == KN_V_N, "a name each");

const char *
kn_verdict_name(enum kn_verdict v)
{
	return (unsigned)v < KN_V_N ? verdict_names[v] : "?";
}

struct kn_task *
kn_task_new(void)
{
	struct kn_task *t = calloc(1, sizeof *t);

	if (!t)
		return NULL;
	t->stdin_fd = -1;
	for (int i = 0; i < 3; i++)
		t->streams[i] = i;
	return t;
}

static void
free_strings(char **v, size_t n)
{
	if (!v)
		return;
	for (size_t i = 0; i < n; i++)
		free(v[i]);
	free(v);
}

int
kn_value_take(struct kn_value *from, struct kn_value *to)
{
	*to = *from;
	if (from->borrowed && from->n > 0) {
		to->bytes = malloc(from->n);
		if (!to->bytes) {
			*to = (struct kn_value){ 0 };
			return -1;
		}
		memcpy(to->bytes, from->bytes, from->n);
	} else if (from->borrowed) {
		to->bytes = NULL;
	}
	to->borrowed = false;
	*from = (struct kn_value){ 0 };
	return 0;
}

void
kn_value_fini(struct kn_value *v)
{
	if (!v->borrowed)
		free(v->bytes);
	*v = (struct kn_value){ 0 };
}

void
kn_task_free(struct kn_task *t)
{
	if (!t)
		return;
	free(t->id);
	free_strings(t->argv, t->argv_n);
	free_strings(t->env, t->env_n);
	free(t->cwd);
	for (size_t i = 0; t->files && i < t->file_n; i++) {
		free(t->files[i].path);
		free(t->files[i].bytes);
		kn_fd_close(&t->files[i].fd);
	}
	free(t->files);
	free_strings(t->keep, t->keep_n);
	free_strings(t->collect, t->collect_n);
	free(t->stdin_bytes);
	free(t->call.name);
	kn_value_fini(&t->call.arg);
	kn_value_fini(&t->call.soft_default);
	kn_fd_close(&t->stdin_fd);
	free(t);
}

void
kn_outcome_fini(struct kn_outcome *o)
{
	free(o->out.bytes);
	free(o->err.bytes);
	o->out.bytes = o->err.bytes = NULL;
	o->out.n = o->err.n = 0;
	kn_value_fini(&o->value);
	kn_net_tally_fini(&o->net);
	for (size_t i = 0; o->files && i < o->file_n; i++) {
		free(o->files[i].name);
		kn_fd_close(&o->files[i].fd);
	}
	free(o->files);
	o->files = NULL;
	o->file_n = 0;
	free(o->out_dir);
	o->out_dir = NULL;
	for (size_t i = 0; o->refused && i < o->refused_n; i++) {
		free(o->refused[i].allow);
		free(o->refused[i].by);
	}
	free(o->refused);
	o->refused = NULL;
	o->refused_n = 0;
}
