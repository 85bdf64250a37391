/* tests/fuzz/task_line.c: any bytes as a line of a batch: never a fault, and what is
 * accepted keeps its promises.
 *
 *   clang -fsanitize=fuzzer,address,undefined -DKN_LIBFUZZER ... tests/fuzz/task_line.c
 * Without KN_LIBFUZZER: a program that replays the files it is given.
 */
#include <assert.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ipc/err.h"
#include "sandbox/policy.h"
#include "supervisor/task.h"
#include "supervisor/task_line.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static const struct kn_policy policy = {
	.task = { .memory = 1 << 30,
	    .pids = 64,
	    .stdout_bytes = 1 << 20,
	    .stderr_bytes = 1 << 20 },
	.timeouts = { .hard_ms = 10000, .grace_ms = 100 },
};

static void
check_task(const struct kn_line *l)
{
	const struct kn_task *t = l->task;

	assert(t->argv_n > 0 && t->argv[0][0] && !t->argv[t->argv_n]);
	assert(t->env && !t->env[t->env_n]);
	assert(t->limits.memory > 0 && t->limits.memory <= policy.task.memory);
	assert(t->limits.pids > 0 && t->limits.pids <= policy.task.pids);
	assert(t->timeouts.hard_ms > 0 && t->timeouts.hard_ms <= 10000);
	for (size_t i = 0; i < t->file_n; i++) {
		assert(kn_line_path_ok(t->files[i].path, strlen(t->files[i].path)));
		assert(t->files[i].mode <= 0777 && t->files[i].fd == -1);
	}
	for (size_t i = 0; i < t->keep_n; i++)
		assert(kn_line_path_ok(t->keep[i], strlen(t->keep[i])));
	for (size_t i = 0; i < l->source_n; i++) {
		assert(l->sources[i].file < t->file_n);
		assert(!l->sources[i].path == (l->sources[i].from != NULL));
	}
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	static const char *const env[] = { "PATH=/usr/bin" };
	const struct kn_line_rules rules = {
		.policy = &policy, .env = env, .env_n = 1
	};
	struct kn_err e = { 0 };
	struct kn_line l;

	if (kn_line_parse(&rules, (const char *)data, n, 1, &l, &e) < 0) {
		assert(e.kind == KN_EK_TASK && e.msg[0] && !l.task);
		for (const char *s = e.msg; *s; s++)
			assert((unsigned char)*s >= 0x20);
	} else if (l.kind == KN_LINE_TASK) {
		check_task(&l);
	} else if (l.kind == KN_LINE_CANCEL) {
		assert(l.id && l.id[0]);
	}
	kn_line_fini(&l);
	return 0;
}

#include "tests/fuzz/replay.h"
