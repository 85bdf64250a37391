/* tests/unit/test_supervisor_run.c: a real pool on this machine: real bwrap, real
 * tasks. What is asked: is each task answered once, with the truth, and is nothing
 * left.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <dirent.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "ipc/err.h"
#include "ipc/fd.h"
#include "sandbox/host.h"
#include "supervisor/sup.h"

enum { MAX = 2048 };

static struct kn_policy *policy;
static struct kn_host host;
static struct kn_sup *sup;
static struct kn_err err;
static struct answer {
	unsigned times;
	enum kn_verdict verdict;
	int exit_code, signal, worker;
	struct kn_capture out, err;
	char error[320];
} answers[MAX];
static unsigned answered, room_calls;
static void (*on_answer)(struct kn_task *t, struct kn_outcome *o);

static int
open_fds(void)
{
	DIR *d = opendir("/proc/self/fd");
	int n = 0;

	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

static struct kn_task *
make(unsigned id, ...)
{
	struct kn_task *t = kn_task_new();
	struct kn_task_ask ask = { 0 };
	va_list ap;
	char buf[16];
	const char *arg;

	snprintf(buf, sizeof buf, "%u", id);
	t->id = strdup(buf);
	t->argv = calloc(8, sizeof *t->argv);
	va_start(ap, id);
	while ((arg = va_arg(ap, const char *)))
		t->argv[t->argv_n++] = strdup(arg);
	va_end(ap);
	t->env = calloc(2, sizeof *t->env);
	t->env[t->env_n++] = strdup("PATH=/usr/bin:/bin");
	assert_int_equal(
	    kn_policy_tighten(policy, &ask, &t->limits, &t->timeouts, &err), 0);
	return t;
}

static void
answer(void *ctx, struct kn_task *t, struct kn_outcome *o)
{
	struct answer *a = &answers[atoi(t->id)];

	(void)ctx;
	a->times++;
	a->verdict = o->verdict;
	a->exit_code = o->exit_code;
	a->signal = o->signal;
	a->worker = o->worker;
	free(a->out.bytes);
	free(a->err.bytes);
	a->out = o->out;
	a->err = o->err;
	o->out.bytes = o->err.bytes = NULL;
	memcpy(a->error, o->error, sizeof a->error);
	answered++;
	if (on_answer)
		on_answer(t, o);
	kn_task_free(t);
}

static void
room(void *ctx)
{
	(void)ctx;
	room_calls++;
}

static void
open_pool(uint32_t workers, uint32_t window)
{
	struct kn_sup_options o = { .workers = workers, .window = window };
	struct kn_sup_callbacks cb = { .answer = answer, .room = room };

	if (kn_sup_open(policy, &host, &o, &cb, &sup, &err) < 0)
		fail_msg("open: %s", err.msg);
}

static void
submit(struct kn_task *t)
{
	assert_int_equal(kn_sup_submit(sup, t, &err), 0);
}

static int
run_pool(void)
{
	struct kn_sup_counts c;
	int rc, signo;

	rc = kn_sup_run(sup, &signo, &err);
	kn_sup_count(sup, &c);
	assert_int_equal(c.bugs, 0);
	assert_int_equal(c.doorbell_missed, 0);
	kn_sup_close(sup);
	sup = NULL;
	return rc;
}

static void
load(const char *set)
{
	struct kn_policy_src src = {
		.type = KN_SRC_SET, .text = set, .label = "--set"
	};

	kn_policy_free(policy);
	policy = NULL;
	if (kn_policy_load(&src, set ? 1 : 0, &policy, &err) < 0)
		fail_msg("policy: %s", err.msg);
}

static int fds_before;

static int
start(void **state)
{
	(void)state;
	memset(answers, 0, sizeof answers);
	answered = room_calls = 0;
	on_answer = NULL;
	kn_err_clear(&err);
	if (kn_host_probe(&host, &err) < 0)
		return -1;
	load(NULL);
	fds_before = open_fds();
	return 0;
}

/* After every test: no descriptor, no child. */
static int
stop(void **state)
{
	(void)state;
	kn_sup_close(sup);
	sup = NULL;
	kn_policy_free(policy);
	policy = NULL;
	for (unsigned i = 0; i < MAX; i++) {
		free(answers[i].out.bytes);
		free(answers[i].err.bytes);
	}
	assert_int_equal(open_fds(), fds_before);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
	return 0;
}

/* ---- tests ---- */

static void
streams_are_captured_apart_and_stdin_arrives(void **state)
{
	struct kn_task *t = make(1, "sh", "-c", "cat; echo e >&2; exit 3", NULL);

	(void)state;
	t->stdin_bytes = strdup("in\n");
	t->stdin_n = 3;
	open_pool(1, 0);
	submit(t);
	kn_sup_drain(sup);
	assert_int_equal(run_pool(), 0);
	assert_int_equal(answers[1].times, 1);
	assert_int_equal(answers[1].verdict, KN_V_EXIT);
	assert_int_equal(answers[1].exit_code, 3);
	assert_string_equal(answers[1].out.bytes, "in\n");
	assert_string_equal(answers[1].err.bytes, "e\n");
}

/* More than a pipe holds, both ways, at once; and from a file. */
static void
megabytes_go_through_both_ways(void **state)
{
	size_t n = 900000;
	struct kn_task *a = make(1, "cat", NULL), *b = make(2, "cat", NULL);
	char *bytes = malloc(n);

	(void)state;
	for (size_t i = 0; i < n; i++)
		bytes[i] = (char)(i * 7 + i / 1000);
	a->stdin_bytes = malloc(n);
	memcpy(a->stdin_bytes, bytes, n);
	a->stdin_n = n;
	b->stdin_fd = memfd_create("stdin", MFD_CLOEXEC);
	assert_int_equal(kn_fd_write_all(b->stdin_fd, bytes, n), 0);
	open_pool(1, 0);
	submit(a);
	submit(b);
	kn_sup_drain(sup);
	assert_int_equal(run_pool(), 0);
	for (int i = 1; i <= 2; i++) {
		assert_int_equal(answers[i].verdict, KN_V_OK);
		assert_int_equal(answers[i].out.n, n);
		assert_memory_equal(answers[i].out.bytes, bytes, n);
	}
	free(bytes);
}

static void
a_task_that_does_not_read_its_input_is_not_held_up(void **state)
{
	struct kn_task *t = make(1, "true", NULL);

	(void)state;
	t->stdin_bytes = calloc(1, 8 << 20);
	t->stdin_n = 8 << 20;
	open_pool(1, 0);
	submit(t);
	kn_sup_drain(sup);
	assert_int_equal(run_pool(), 0);
	assert_int_equal(answers[1].verdict, KN_V_OK);
}

static void
a_flood_is_cut_in_the_middle_and_counted(void **state)
{
	(void)state;
	load("/limits/task/stdout=64K");
	open_pool(1, 0);
	submit(make(1, "sh", "-c",
	    "echo first; head -c 5000000 /dev/zero | tr '\\0' x; echo last", NULL));
	kn_sup_drain(sup);
	assert_int_equal(run_pool(), 0);
	assert_int_equal(answers[1].verdict, KN_V_OK);
	assert_int_equal(answers[1].out.total, 5000000 + 6 + 5);
	assert_int_equal(answers[1].out.n, 65536);
	assert_true(answers[1].out.truncated);
	assert_memory_equal(answers[1].out.bytes, "first\nxx", 8);
	assert_memory_equal(answers[1].out.bytes + 65536 - 7, "xxlast\n", 7);
}

static void
a_flood_ends_the_task_where_the_policy_says_so(void **state)
{
	struct kn_policy_src src[] = {
		{ .type = KN_SRC_SET, .text = "/limits/task/stdout=64K", .label = "a" },
		{ .type = KN_SRC_SET, .text = "/on_output_limit=kill", .label = "b" },
	};

	(void)state;
	kn_policy_free(policy);
	if (kn_policy_load(src, 2, &policy, &err) < 0)
		fail_msg("policy: %s", err.msg);
	open_pool(1, 0);
	submit(make(1, "yes", NULL));
	kn_sup_drain(sup);
	assert_int_equal(run_pool(), 0);
	assert_int_equal(answers[1].verdict, KN_V_OUTPUT_LIMIT);
}

static void
too_large_is_said_before_a_worker_sees_it(void **state)
{
	struct kn_task *t = make(1, "true", NULL);

	(void)state;
	t->files = calloc(1, sizeof *t->files);
	t->file_n = 1;
	t->files[0] = (struct kn_task_file){ .path = strdup("big"),
		.mode = 0644,
		.bytes = calloc(1, 9 << 20),
		.byte_n = 9 << 20,
		.fd = -1 };
	open_pool(1, 0);
	submit(t);
	submit(make(2, "true", NULL));
	kn_sup_drain(sup);
	assert_int_equal(run_pool(), 0);
	assert_int_equal(answers[1].verdict, KN_V_TOO_LARGE);
	assert_int_equal(answers[1].worker, -1);
	assert_non_null(strstr(answers[1].error, "KNT_ERROR_3"));
	assert_int_equal(answers[2].verdict, KN_V_OK);
}

static void
a_full_window_says_no_and_then_that_there_is_room(void **state)
{
	struct kn_task *t;

	(void)state;
	open_pool(1, 2);
	submit(make(1, "true", NULL));
	submit(make(2, "true", NULL));
	t = make(3, "true", NULL);
	assert_int_equal(kn_sup_submit(sup, t, &err), 1);
	kn_task_free(t); /* still ours */
	kn_sup_drain(sup);
	assert_int_equal(run_pool(), 0);
	assert_true(room_calls > 0);
	assert_int_equal(answered, 2);
}

static struct kn_task *victim;

static void
cancel_victim(struct kn_task *t, struct kn_outcome *o)
{
	(void)o;
	if (strcmp(t->id, "1") == 0)
		kn_sup_cancel(sup, victim);
}

static void
a_running_and_a_waiting_task_can_be_cancelled(void **state)
{
	struct kn_task *waiting;

	(void)state;
	open_pool(2, 0);
	submit(make(1, "sleep", "0.2", NULL));
	victim = make(2, "sleep", "60", NULL);
	submit(victim);
	for (unsigned i = 3; i < 12; i++)
		submit(make(i, "true", NULL));
	waiting = make(12, "true", NULL);
	submit(waiting);
	kn_sup_cancel(sup, waiting);
	kn_sup_cancel(sup, waiting);
	on_answer = cancel_victim;
	kn_sup_drain(sup);
	assert_int_equal(run_pool(), 0);
	assert_int_equal(answers[2].verdict, KN_V_CANCELLED);
	assert_int_equal(answers[12].verdict, KN_V_CANCELLED);
	for (unsigned i = 1; i <= 12; i++)
		assert_int_equal(answers[i].times, 1);
}

/* Our only children are launchers. */
static void
kill_a_launcher(struct kn_task *t, struct kn_outcome *o)
{
	char path[64];
	int pid = 0;
	FILE *f;

	(void)o;
	if (strcmp(t->id, "1") != 0)
		return;
	snprintf(path, sizeof path, "/proc/self/task/%d/children", (int)gettid());
	f = fopen(path, "re");
	assert_non_null(f);
	assert_int_equal(fscanf(f, "%d", &pid), 1);
	fclose(f);
	assert_true(pid > 1);
	kill(pid, SIGKILL);
}

static void
a_worker_that_dies_costs_the_task_it_ran(void **state)
{
	unsigned lost = 0;

	(void)state;
	open_pool(1, 0);
	submit(make(1, "true", NULL));
	for (unsigned i = 2; i < 10; i++)
		submit(make(i, "sh", "-c", "sleep 0.05; echo done", NULL));
	on_answer = kill_a_launcher;
	kn_sup_drain(sup);
	assert_int_equal(run_pool(), 0);
	assert_int_equal(answered, 9);
	for (unsigned i = 1; i < 10; i++) {
		assert_int_equal(answers[i].times, 1);
		lost += answers[i].verdict == KN_V_WORKER_LOST;
		assert_true(answers[i].verdict == KN_V_OK ||
			    answers[i].verdict == KN_V_WORKER_LOST);
	}
	assert_true(lost <= 1); /* those that it had not begun ran elsewhere */
}

static struct kn_task *too_late;

static void
stop_pool(struct kn_task *t, struct kn_outcome *o)
{
	(void)t;
	(void)o;
	kn_sup_stop(sup, false);
	assert_int_equal(kn_sup_submit(sup, too_late, &err), 1);
}

static void
a_stop_answers_all_and_takes_no_more(void **state)
{
	unsigned cancelled = 0;

	(void)state;
	too_late = make(50, "true", NULL);
	open_pool(2, 0);
	submit(make(0, "true", NULL));
	for (unsigned i = 1; i < 30; i++)
		submit(make(i, "sleep", "30", NULL));
	on_answer = stop_pool;
	assert_int_equal(run_pool(), 0); /* no drain: a stop ends it too */
	assert_int_equal(answered, 30);
	for (unsigned i = 1; i < 30; i++)
		cancelled += answers[i].verdict == KN_V_CANCELLED;
	assert_int_equal(cancelled, 29);
	kn_task_free(too_late);
}

static void
a_launcher_that_fails_is_explained_and_every_task_answered(void **state)
{
	(void)state;
	snprintf(host.bwrap, sizeof host.bwrap, "/bin/false");
	open_pool(1, 0);
	for (unsigned i = 0; i < 5; i++)
		submit(make(i, "true", NULL));
	kn_sup_drain(sup);
	assert_int_equal(run_pool(), -1);
	assert_int_equal(err.kind, KN_EK_LAUNCH);
	assert_non_null(strstr(err.msg, "bwrap"));
	assert_int_equal(answered, 5);
	for (unsigned i = 0; i < 5; i++) {
		assert_int_equal(answers[i].verdict, KN_V_LAUNCH_FAILED);
		assert_non_null(strstr(answers[i].error, "bwrap"));
	}
}

static void
closed_without_a_run_nothing_is_left(void **state)
{
	(void)state;
	open_pool(1, 0); /* has launched already; stop() looks for what is left */
	kn_sup_close(sup);
	sup = NULL;
}

static size_t heap_early, heap_late;

static void
weigh(struct kn_task *t, struct kn_outcome *o)
{
	(void)t;
	(void)o;
	if (answered == 200)
		heap_early = mallinfo2().uordblks;
	if (answered == 1000)
		heap_late = mallinfo2().uordblks;
	if (answered < 1000)
		submit(make(1 + answered % 900, "/bin/true", NULL));
	else
		kn_sup_drain(sup);
}

static void
memory_is_flat_over_many_tasks(void **state)
{
	(void)state;
	open_pool(2, 0);
	on_answer = weigh;
	submit(make(0, "/bin/true", NULL));
	assert_int_equal(run_pool(), 0);
	assert_int_equal(answered, 1000);
	/* answers keep a byte or two each of 900 ids; nothing else may grow */
	assert_true(heap_late < heap_early + 900 * 96);
}

int
main(void)
{
#define RUN(t) cmocka_unit_test_setup_teardown(t, start, stop)
	const struct CMUnitTest tests[] = {
		RUN(streams_are_captured_apart_and_stdin_arrives),
		RUN(megabytes_go_through_both_ways),
		RUN(a_task_that_does_not_read_its_input_is_not_held_up),
		RUN(a_flood_is_cut_in_the_middle_and_counted),
		RUN(a_flood_ends_the_task_where_the_policy_says_so),
		RUN(too_large_is_said_before_a_worker_sees_it),
		RUN(a_full_window_says_no_and_then_that_there_is_room),
		RUN(a_running_and_a_waiting_task_can_be_cancelled),
		RUN(a_worker_that_dies_costs_the_task_it_ran),
		RUN(a_stop_answers_all_and_takes_no_more),
		RUN(a_launcher_that_fails_is_explained_and_every_task_answered),
		RUN(closed_without_a_run_nothing_is_left),
		RUN(memory_is_flat_over_many_tasks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
