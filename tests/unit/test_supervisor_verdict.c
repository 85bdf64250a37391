/* tests/unit/test_supervisor_verdict.c: one table: how a task ended -> what is said. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "ipc/clock.h"
#include "supervisor/verdict.h"

#define EXITED(n) ((n) << 8)
#define KILLED(n) (n)
#define MIB (1ull << 20)

struct row {
	const char *name;
	enum kn_how how;
	struct kn_job_result r;
	struct kn_task_limits limits;
	struct kn_timeouts timeouts;
	uint64_t wall_ms;
	const char *over;
	const char *broken;
	bool stopping;
	const char *note;
	const char *behind;
	/* expected */
	enum kn_verdict verdict;
	bool started;
	int exit_code, signal;
	const char *says; /* part of the error line; NULL: it is empty */
};

static const struct row rows[] = {
	{ .name = "exit 0",
	    .r = { .wait_status = EXITED(0) },
	    .verdict = KN_V_OK,
	    .started = true },
	{ .name = "exit 3",
	    .r = { .wait_status = EXITED(3) },
	    .verdict = KN_V_EXIT,
	    .started = true,
	    .exit_code = 3 },
	{ .name = "exit 0, but its output is not all there",
	    .r = { .wait_status = EXITED(0) },
	    .broken = "stdout",
	    .verdict = KN_V_INTERNAL,
	    .started = true,
	    .says = "its stdout could not be carried on: Input/output error (EIO)" },
	{ .name = "killed because its input is not all there",
	    .r = { .cause = KN_CAUSE_CANCEL, .wait_status = KILLED(SIGKILL) },
	    .broken = "stdin",
	    .verdict = KN_V_INTERNAL,
	    .started = true,
	    .exit_code = -1,
	    .signal = SIGKILL,
	    .says = "its stdin" },
	{ .name = "a limit before that stands",
	    .r = { .cause = KN_CAUSE_HARD, .wait_status = KILLED(SIGKILL) },
	    .timeouts = { .hard_ms = 5 },
	    .broken = "stdout",
	    .verdict = KN_V_TIMEOUT,
	    .started = true,
	    .exit_code = -1,
	    .signal = SIGKILL,
	    .says = "5 ms" },
	{ .name = "exit 137 is an exit",
	    .r = { .wait_status = EXITED(137) },
	    .verdict = KN_V_EXIT,
	    .started = true,
	    .exit_code = 137 },
	{ .name = "SIGTERM",
	    .r = { .wait_status = KILLED(SIGTERM) },
	    .verdict = KN_V_SIGNAL,
	    .started = true,
	    .exit_code = -1,
	    .signal = SIGTERM,
	    .says = "signal 15" },
	{ .name = "SIGKILL without a cause",
	    .r = { .wait_status = KILLED(SIGKILL) },
	    .verdict = KN_V_SIGNAL,
	    .started = true,
	    .exit_code = -1,
	    .signal = SIGKILL,
	    .says = "signal 9" },
	{ .name = "core bit",
	    .r = { .wait_status = KILLED(SIGABRT) | 0x80 },
	    .verdict = KN_V_SIGNAL,
	    .started = true,
	    .exit_code = -1,
	    .signal = SIGABRT,
	    .says = "signal 6" },
	{ .name = "SIGSYS",
	    .r = { .wait_status = KILLED(SIGSYS) },
	    .verdict = KN_V_DENIED,
	    .started = true,
	    .exit_code = -1,
	    .signal = SIGSYS,
	    .says = "/seccomp" },
	{ .name = "hard",
	    .r = { .cause = KN_CAUSE_HARD, .wait_status = KILLED(9) },
	    .timeouts = { .hard_ms = 500 },
	    .verdict = KN_V_TIMEOUT,
	    .started = true,
	    .exit_code = -1,
	    .signal = 9,
	    .says = "500 ms (/timeouts/hard_ms)" },
	{ .name = "hard, and it had just ended with 0",
	    .r = { .cause = KN_CAUSE_HARD, .wait_status = EXITED(0) },
	    .timeouts = { .hard_ms = 500 },
	    .verdict = KN_V_TIMEOUT,
	    .started = true,
	    .says = "hard_ms" },
	{ .name = "hard before the start",
	    .r = { .cause = KN_CAUSE_HARD, .step = KN_EXEC_FILES, .sys = ETIMEDOUT },
	    .timeouts = { .hard_ms = 500 },
	    .verdict = KN_V_TIMEOUT,
	    .exit_code = -1,
	    .says = "hard_ms" },
	{ .name = "ended by itself 20 ms late",
	    .r = { .wait_status = EXITED(0) },
	    .timeouts = { .hard_ms = 500 },
	    .wall_ms = 520,
	    .verdict = KN_V_TIMEOUT,
	    .started = true,
	    .says = "hard_ms" },
	{ .name = "ended by itself in time",
	    .r = { .wait_status = EXITED(0) },
	    .timeouts = { .hard_ms = 500 },
	    .wall_ms = 500,
	    .verdict = KN_V_OK,
	    .started = true },
	{ .name = "soft",
	    .r = { .cause = KN_CAUSE_SOFT, .wait_status = KILLED(15) },
	    .timeouts = { .task_ms = 100 },
	    .verdict = KN_V_SOFT_TIMEOUT,
	    .started = true,
	    .exit_code = -1,
	    .signal = 15,
	    .says = "task_ms" },
	{ .name = "soft, by itself",
	    .r = { .wait_status = EXITED(0) },
	    .timeouts = { .task_ms = 100, .hard_ms = 500 },
	    .wall_ms = 101,
	    .verdict = KN_V_SOFT_TIMEOUT,
	    .started = true,
	    .says = "task_ms" },
	{ .name = "cpu",
	    .r = { .cause = KN_CAUSE_CPU, .wait_status = KILLED(9) },
	    .limits = { .cpu_ms = 50 },
	    .verdict = KN_V_CPU_TIMEOUT,
	    .started = true,
	    .exit_code = -1,
	    .signal = 9,
	    .says = "50 ms of CPU" },
	{ .name = "cpu, by itself",
	    .r = { .wait_status = EXITED(0), .user_us = 40000, .system_us = 10001 },
	    .limits = { .cpu_ms = 50 },
	    .verdict = KN_V_CPU_TIMEOUT,
	    .started = true,
	    .says = "cpu_ms" },
	{ .name = "cpu just at the limit",
	    .r = { .wait_status = EXITED(0), .user_us = 40000, .system_us = 10000 },
	    .limits = { .cpu_ms = 50 },
	    .verdict = KN_V_OK,
	    .started = true },
	{ .name = "memory watched",
	    .r = { .cause = KN_CAUSE_MEMORY, .wait_status = KILLED(9) },
	    .limits = { .memory = 64 * MIB },
	    .verdict = KN_V_MEMORY,
	    .started = true,
	    .exit_code = -1,
	    .signal = 9,
	    .says = "limit of 64M" },
	{ .name = "out of memory, and the task shrugged",
	    .r = { .oom_kills = 1, .wait_status = EXITED(1) },
	    .limits = { .memory = 64 * MIB },
	    .verdict = KN_V_MEMORY,
	    .started = true,
	    .exit_code = 1,
	    .says = "/limits/task/memory" },
	{ .name = "out of memory before time ran out",
	    .r = { .oom_kills = 2, .cause = KN_CAUSE_HARD, .wait_status = KILLED(9) },
	    .limits = { .memory = MIB },
	    .timeouts = { .hard_ms = 1 },
	    .verdict = KN_V_MEMORY,
	    .started = true,
	    .exit_code = -1,
	    .signal = 9,
	    .says = "limit of 1M" },
	{ .name = "out of memory at exec",
	    .r = { .oom_kills = 1, .step = KN_EXEC_EXEC, .sys = ENOMEM },
	    .limits = { .memory = MIB },
	    .verdict = KN_V_MEMORY,
	    .exit_code = -1,
	    .says = "limit of 1M" },
	{ .name = "no memory at exec",
	    .r = { .step = KN_EXEC_EXEC, .sys = ENOMEM },
	    .limits = { .memory = MIB },
	    .verdict = KN_V_MEMORY,
	    .exit_code = -1,
	    .says = "ENOMEM" },
	{ .name = "the worker's own limit",
	    .r = { .oom_kills = 1, .wait_status = KILLED(9) },
	    .verdict = KN_V_MEMORY,
	    .started = true,
	    .exit_code = -1,
	    .signal = 9,
	    .says = "/limits/worker/memory" },
	{ .name = "the machine's memory",
	    .r = { .oom_kills = 1, .oom_outside = 1, .wait_status = KILLED(9) },
	    .limits = { .memory = MIB },
	    .verdict = KN_V_INTERNAL,
	    .started = true,
	    .exit_code = -1,
	    .signal = 9,
	    .says = "at no limit of its own" },
	{ .name = "the machine's memory, and then its time",
	    .r = { .oom_kills = 1,
		.oom_outside = 1,
		.cause = KN_CAUSE_HARD,
		.wait_status = KILLED(9) },
	    .timeouts = { .hard_ms = 1 },
	    .verdict = KN_V_TIMEOUT,
	    .started = true,
	    .exit_code = -1,
	    .signal = 9,
	    .says = "hard_ms" },
	{ .name = "the machine's memory, and it went on",
	    .r = { .oom_kills = 1, .oom_outside = 1, .wait_status = EXITED(0) },
	    .verdict = KN_V_INTERNAL,
	    .started = true,
	    .says = "a process of it" },
	{ .name = "output",
	    .r = { .cause = KN_CAUSE_OUTPUT, .wait_status = KILLED(9) },
	    .limits = { .stdout_bytes = 65536 },
	    .over = "stdout",
	    .verdict = KN_V_OUTPUT_LIMIT,
	    .started = true,
	    .exit_code = -1,
	    .signal = 9,
	    .says = "64K to stdout (/limits/task/stdout)" },
	{ .name = "output, and it ended by itself",
	    .r = { .wait_status = EXITED(0) },
	    .limits = { .stderr_bytes = 10 },
	    .over = "stderr",
	    .verdict = KN_V_OUTPUT_LIMIT,
	    .started = true,
	    .says = "10 bytes to stderr" },
	{ .name = "cancelled by the user",
	    .r = { .cause = KN_CAUSE_CANCEL, .wait_status = KILLED(9) },
	    .verdict = KN_V_CANCELLED,
	    .started = true,
	    .exit_code = -1,
	    .signal = 9,
	    .says = "by request" },
	{ .name = "cancelled by a stop",
	    .r = { .cause = KN_CAUSE_STOP, .wait_status = KILLED(15) },
	    .stopping = true,
	    .verdict = KN_V_CANCELLED,
	    .started = true,
	    .exit_code = -1,
	    .signal = 15,
	    .says = "stopped" },
	{ .name = "not found",
	    .r = { .step = KN_EXEC_LOOKUP, .sys = ENOENT },
	    .verdict = KN_V_NOT_FOUND,
	    .exit_code = -1,
	    .says = "prog: not found" },
	{ .name = "found in PATH, no x",
	    .r = { .step = KN_EXEC_LOOKUP, .sys = EACCES },
	    .verdict = KN_V_NOT_EXECUTABLE,
	    .exit_code = -1,
	    .says = "EACCES" },
	{ .name = "a directory",
	    .r = { .step = KN_EXEC_EXEC, .sys = EACCES },
	    .verdict = KN_V_NOT_EXECUTABLE,
	    .exit_code = -1,
	    .says = "EACCES" },
	{ .name = "wrong format",
	    .r = { .step = KN_EXEC_EXEC, .sys = ENOEXEC },
	    .verdict = KN_V_NOT_EXECUTABLE,
	    .exit_code = -1,
	    .says = "(ENOEXEC); neither a program of this machine nor a script" },
	{ .name = "no process left for the cell",
	    .r = { .step = KN_EXEC_CELL, .sys = EAGAIN },
	    .verdict = KN_V_INTERNAL,
	    .exit_code = -1,
	    .says = "ulimit -u" },
	{ .name = "no interpreter",
	    .r = { .step = KN_EXEC_EXEC, .sys = ENOENT },
	    .verdict = KN_V_NOT_EXECUTABLE,
	    .exit_code = -1,
	    .says = "interpreter" },
	{ .name = "too many arguments",
	    .r = { .step = KN_EXEC_EXEC, .sys = E2BIG },
	    .verdict = KN_V_NOT_EXECUTABLE,
	    .exit_code = -1,
	    .says = "E2BIG" },
	{ .name = "no such directory",
	    .r = { .step = KN_EXEC_CWD, .sys = ENOENT, .detail = "/nosuch" },
	    .verdict = KN_V_INVALID,
	    .exit_code = -1,
	    .says = "working directory /nosuch" },
	{ .name = "files too large",
	    .r = { .step = KN_EXEC_FILES, .sys = ENOSPC, .detail = "big" },
	    .verdict = KN_V_TOO_LARGE,
	    .exit_code = -1,
	    .says = "big does not fit" },
	{ .name = "a file where a directory should be",
	    .r = { .step = KN_EXEC_FILES, .sys = ENOTDIR, .detail = "a/b" },
	    .verdict = KN_V_INVALID,
	    .exit_code = -1,
	    .says = "a/b" },
	{ .name = "no file can be opened here",
	    .r = { .step = KN_EXEC_FILES, .sys = ENOSYS, .detail = "a" },
	    .behind = "; and why",
	    .verdict = KN_V_INTERNAL,
	    .exit_code = -1,
	    .says = "(ENOSYS); and why" },
	{ .name = "the cell",
	    .r = { .step = KN_EXEC_CELL, .sys = EINVAL },
	    .verdict = KN_V_INTERNAL,
	    .exit_code = -1,
	    .says = "EINVAL" },
	{ .name = "a wall",
	    .r = { .step = KN_EXEC_WALL, .sys = EPERM },
	    .verdict = KN_V_INTERNAL,
	    .exit_code = -1,
	    .says = "EPERM" },
	{ .name = "backstop",
	    .how = KN_HOW_HARD,
	    .timeouts = { .hard_ms = 700 },
	    .verdict = KN_V_TIMEOUT,
	    .exit_code = -1,
	    .says = "700 ms" },
	{ .name = "queue",
	    .how = KN_HOW_QUEUE_TIMEOUT,
	    .timeouts = { .queue_ms = 5 },
	    .verdict = KN_V_QUEUE_TIMEOUT,
	    .exit_code = -1,
	    .says = "queue_ms" },
	{ .name = "cancelled in the queue",
	    .how = KN_HOW_CANCELLED,
	    .verdict = KN_V_CANCELLED,
	    .exit_code = -1,
	    .says = "by request" },
	{ .name = "lost",
	    .how = KN_HOW_WORKER_LOST,
	    .verdict = KN_V_WORKER_LOST,
	    .exit_code = -1,
	    .says = "worker ended" },
	{ .name = "launch",
	    .how = KN_HOW_LAUNCH_FAILED,
	    .note = "bwrap: no",
	    .verdict = KN_V_LAUNCH_FAILED,
	    .exit_code = -1,
	    .says = "bwrap: no" },
	{ .name = "lie",
	    .how = KN_HOW_VIOLATION,
	    .note = "result.area",
	    .verdict = KN_V_PROTOCOL_VIOLATION,
	    .exit_code = -1,
	    .says = "result.area" },
};

static void
every_row_of_the_table(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		const struct row *w = &rows[i];
		struct kn_verdict_in in = { .how = w->how,
			.result = &w->r,
			.limits = &w->limits,
			.timeouts = &w->timeouts,
			.program = "prog",
			.wall_ns = w->wall_ms * KN_MS_NS,
			.over = w->over,
			.broken = w->broken,
			.broken_sys = EIO,
			.over_cap = w->over && strcmp(w->over, "stdout") == 0
					? w->limits.stdout_bytes
					: w->limits.stderr_bytes,
			.stopping = w->stopping,
			.behind = w->behind,
			.note = w->note };
		struct kn_outcome o;

		memset(&o, 0xa5, sizeof o);
		kn_verdict_of(&in, &o);
		if (o.verdict != w->verdict || o.started != w->started ||
		    o.exit_code != w->exit_code || o.signal != w->signal ||
		    (w->says ? !strstr(o.error, w->says) : o.error[0] != '\0'))
			fail_msg("%s: %s started=%d exit=%d signal=%d \"%s\"", w->name,
			    kn_verdict_name(o.verdict), o.started, o.exit_code,
			    o.signal, o.error);
		assert_null(strchr(o.error, '\n'));
	}
}

static void
every_verdict_has_its_name_once(void **state)
{
	(void)state;
	for (int i = 0; i < KN_V_N; i++) {
		assert_string_not_equal(kn_verdict_name((enum kn_verdict)i), "?");
		for (int k = 0; k < i; k++)
			assert_string_not_equal(kn_verdict_name((enum kn_verdict)i),
			    kn_verdict_name((enum kn_verdict)k));
	}
	assert_string_equal(kn_verdict_name(KN_V_SOFT_TIMEOUT), "soft-timeout");
	assert_string_equal(kn_verdict_name(KN_V_N), "?");
}

static void
an_unknown_errno_is_a_number(void **state)
{
	char buf[16];

	(void)state;
	assert_string_equal(kn_errno_name(ENOEXEC, buf), "ENOEXEC");
	assert_string_equal(kn_errno_name(4711, buf), "errno 4711");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_row_of_the_table),
		cmocka_unit_test(every_verdict_has_its_name_once),
		cmocka_unit_test(an_unknown_errno_is_a_number),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
