/* tests/unit/supervisor_pool.h: a real pool on this machine for a test: real bwrap,
 * real tasks; after each test no descriptor and no child may be left.
 */
#ifndef KN_TESTS_SUPERVISOR_POOL_H
#define KN_TESTS_SUPERVISOR_POOL_H

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

__attribute__((unused)) static int
open_fds(void)
{
	DIR *d = opendir("/proc/self/fd");
	int n = 0;

	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

__attribute__((unused)) static struct kn_task *
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

__attribute__((unused)) static void
open_pool(uint32_t workers, uint32_t window)
{
	struct kn_sup_options o = { .workers = workers, .window = window };
	struct kn_sup_callbacks cb = { .answer = answer, .room = room };

	if (kn_sup_open(policy, &host, &o, &cb, &sup, &err) < 0)
		fail_msg("open: %s", err.msg);
}

__attribute__((unused)) static void
submit(struct kn_task *t)
{
	assert_int_equal(kn_sup_submit(sup, t, &err), 0);
}

__attribute__((unused)) static int
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

__attribute__((unused)) static void
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

__attribute__((unused)) static int
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
__attribute__((unused)) static int
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

#endif
