/* tests/module/basic.c: the tasks that the tests of the resident process call. */
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <knit/task.h>

static char init_text[64];
static uint32_t init_worker;

int
knit_worker_init(const struct knit_init *init)
{
	if (init->size < sizeof *init || init->api < 1)
		return 7;
	if (!strcmp(init->text, "refuse"))
		return knit_init_fail(init, "worker %u may not start", init->worker);
	if (!strcmp(init->text, "refuse-silently"))
		return 3;
	if (!strcmp(init->text, "crash"))
		raise(SIGSEGV);
	snprintf(init_text, sizeof init_text, "%s", init->text);
	init_worker = init->worker;
	return 0;
}

KNIT_TASK(nothing)
{
	return 0;
}

/* The argument as the result, of whatever type. */
KNIT_TASK(echo)
{
	size_t n;
	const void *p = knit_arg_data(call, &n);
	void *room = knit_result_reserve(call, knit_arg_type(call), n);

	if (!room)
		return -1;
	memcpy(room, p, n);
	return knit_result_commit(call, n);
}

KNIT_TASK(init_text)
{
	return knit_result_str(call, init_text);
}

KNIT_TASK(worker)
{
	return knit_result_i64(call, init_worker);
}

/* Through the typed getters and setters. */
KNIT_TASK(typed)
{
	bool b;
	int64_t i;
	double d;
	size_t n;

	switch (knit_arg_type(call)) {
	case KNIT_NULL:
		return knit_result_null(call);
	case KNIT_BOOL:
		return knit_arg_bool(call, &b) || knit_result_bool(call, !b);
	case KNIT_I64:
		return knit_arg_i64(call, &i) || knit_result_i64(call, -i);
	case KNIT_F64:
		return knit_arg_f64(call, &d) || knit_result_f64(call, -d);
	case KNIT_TEXT: {
		const char *s = knit_arg_str(call);
		return s ? knit_result_str(call, s) : -1;
	}
	case KNIT_BYTES: {
		const void *p = knit_arg_bytes(call, &n);
		return p ? knit_result_bytes(call, p, n) : -1;
	}
	case KNIT_JSON: {
		const char *s = knit_arg_json(call, &n);
		return s ? knit_result_json(call, s, n) : -1;
	}
	case KNIT_I32S: {
		const int32_t *v = knit_arg_i32s(call, &n);
		return v ? knit_result_i32s(call, v, n) : -1;
	}
	case KNIT_I64S: {
		const int64_t *v = knit_arg_i64s(call, &n);
		return v ? knit_result_i64s(call, v, n) : -1;
	}
	case KNIT_U64S: {
		const uint64_t *v = knit_arg_u64s(call, &n);
		return v ? knit_result_u64s(call, v, n) : -1;
	}
	case KNIT_F64S: {
		const double *v = knit_arg_f64s(call, &n);
		return v ? knit_result_f64s(call, v, n) : -1;
	}
	}
	return knit_fail(call, "TypeError", "what is that");
}

/* n bytes, each 'x'. */
KNIT_TASK(make)
{
	int64_t n;
	void *p;

	if (knit_arg_i64(call, &n) < 0)
		return -1;
	p = knit_result_reserve(call, KNIT_BYTES, (size_t)n);
	if (!p)
		return -1;
	memset(p, 'x', (size_t)n);
	return knit_result_commit(call, (size_t)n);
}

/* Sets a result that is too large, does not mind, and says that all went well. */
KNIT_TASK(careless)
{
	int64_t n;

	if (knit_arg_i64(call, &n) < 0)
		return -1;
	(void)knit_result_reserve(call, KNIT_BYTES, (size_t)n);
	return 0;
}

/* The second result counts, also when it was copied from the first. */
KNIT_TASK(twice)
{
	int64_t n;
	char *p;

	if (knit_arg_i64(call, &n) < 0)
		return -1;
	p = knit_result_reserve(call, KNIT_TEXT, (size_t)n);
	if (!p)
		return -1;
	memset(p, 'y', (size_t)n);
	knit_result_commit(call, (size_t)n);
	return knit_result_text(call, p, (size_t)n);
}

KNIT_TASK(not_text)
{
	return knit_result_text(call, "bad \xff", 5);
}

KNIT_TASK(not_json)
{
	knit_result_json(call, "\"\xc0\xaf\"", 4);
	return 0;
}

/* As many links as asked. */
KNIT_TASK(fail)
{
	int64_t n;

	if (knit_arg_i64(call, &n) < 0)
		return -1;
	knit_fail(call, "OuterError", "outer of %d", (int)n);
	knit_fail_detail(call, "the detail");
	for (int64_t i = 1; i < n; i++)
		knit_fail_cause(call, "InnerError", "cause %d", (int)i);
	return -1;
}

KNIT_TASK(fail_silently)
{
	return 42;
}

/* An error that was dealt with is none. */
KNIT_TASK(recover)
{
	double d;

	if (knit_arg_f64(call, &d) < 0)
		return knit_result_str(call, "no number");
	return knit_result_f64(call, d);
}

KNIT_TASK(long_error)
{
	static char text[10000];

	memset(text, 'e', sizeof text - 1);
	knit_fail(call, text, "%s", text);
	knit_fail_detail(call, "%s", text);
	for (int i = 0; i < 20; i++)
		knit_fail_cause(call, text, "%s", text);
	return -1;
}

/* Until told to give up; says after how many looks, and whether a value was returned.
 */
KNIT_TASK(until_aborted)
{
	int64_t looks = 0;

	while (!knit_aborted())
		looks++;
	return knit_result_i64(call, looks);
}

static void *
ask_for_ever(void *none)
{
	for (;;)
		(void)knit_aborted();
	return none;
}

/* A child that takes all the memory there is, and dies of it, as the largest. The
 * signal that it was ended by, or 0. */
KNIT_TASK(child_eats)
{
	int status = 0;
	pid_t pid = fork();

	if (pid < 0)
		return knit_fail(call, "Error", "no process");
	if (pid == 0) {
		for (;;) {
			char *p = malloc(1 << 20);

			if (!p)
				_exit(2);
			memset(p, 1, 1 << 20);
		}
	}
	waitpid(pid, &status, 0);
	return knit_result_i64(call, WIFSIGNALED(status) ? WTERMSIG(status) : 0);
}

/* A thread that goes on when the call is over. */
KNIT_TASK(keeps_asking)
{
	pthread_t t;

	return pthread_create(&t, NULL, ask_for_ever, NULL) == 0
		   ? 0
		   : knit_fail(call, "Error", "no thread");
}

KNIT_TASK(scratch)
{
	char *p[100];
	int64_t n;

	if (knit_arg_i64(call, &n) < 0)
		return -1;
	for (int i = 0; i < 100; i++) {
		p[i] = knit_alloc(call, (size_t)n);
		if (!p[i])
			return -1;
		if ((uintptr_t)p[i] % 16)
			return knit_fail(call, "Error", "not aligned");
		memset(p[i], i, (size_t)n);
	}
	for (int i = 0; i < 100; i++)
		for (int64_t at = 0; at < n; at++)
			if (p[i][at] != i)
				return knit_fail(call, "Error", "they overlap");
	return knit_result_i64(call, 100);
}

KNIT_TASK(sleep_ms)
{
	struct timespec t;
	int64_t ms;

	if (knit_arg_i64(call, &ms) < 0)
		return -1;
	t.tv_sec = ms / 1000;
	t.tv_nsec = ms % 1000 * 1000000;
	nanosleep(&t, NULL);
	return knit_result_i64(call, (int64_t)(knit_now_ns() / 1000000));
}

/* As sleep_ms, with a value of any length: "300 xxx..." */
KNIT_TASK(hold_ms)
{
	const char *text = knit_arg_str(call);
	struct timespec t;
	long ms;

	if (!text)
		return -1;
	ms = strtol(text, NULL, 10);
	t.tv_sec = ms / 1000;
	t.tv_nsec = ms % 1000 * 1000000;
	nanosleep(&t, NULL);
	return knit_result_i64(call, (int64_t)strlen(text));
}

KNIT_TASK(segv)
{
	(void)call;
	raise(SIGSEGV);
	return 0;
}

KNIT_TASK(abort)
{
	(void)call;
	abort();
}

KNIT_TASK(exit)
{
	int64_t n;

	if (knit_arg_i64(call, &n) < 0)
		return -1;
	exit((int)n);
}

KNIT_TASK(exit_at_once)
{
	(void)call;
	_exit(9);
}

KNIT_TASK(exec)
{
	(void)call;
	execl("/bin/true", "true", (char *)NULL);
	return -1;
}

static int
deeper(volatile char *from, int n)
{
	volatile char here[4096];

	here[0] = from[0];
	return n < 0 ? here[0] : deeper(here, n + 1) + here[0];
}

KNIT_TASK(overflow)
{
	char c = 1;

	return knit_result_i64(call, deeper(&c, 0));
}

KNIT_TASK(close_all)
{
	for (int fd = 3; fd < 64; fd++)
		close(fd);
	return 0;
}

KNIT_TASK(forgets)
{
	return knit_result_reserve(call, KNIT_BYTES, 8) ? 0 : -1;
}

KNIT_TASK(overcommits)
{
	if (!knit_result_reserve(call, KNIT_BYTES, 8))
		return -1;
	(void)knit_result_commit(call, 9);
	return 0;
}
