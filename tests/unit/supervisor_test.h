/* tests/unit/supervisor_test.h: the shell of the supervisor around one worker whose
 * side is played by the test. The core is not asked: what would be fed to it stays in
 * the queues, where the test looks.
 */
#ifndef KN_TESTS_SUPERVISOR_TEST_H
#define KN_TESTS_SUPERVISOR_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "ipc/bell.h"
#include "ipc/blob.h"
#include "ipc/clock.h"
#include "ipc/fd.h"
#include "ipc/shm.h"
#include "supervisor/inner.h"

enum { TASKS = 4, QUEUE = 64 };

static struct kn_sup *s;
static struct kn_wk *w;
static struct kn_policy policy;
static struct kn_return_tx tx;
static struct kn_task task;
static char *argv_of_it[] = { NULL, NULL }, *keep_of_it[] = { NULL, NULL };
static int theirs; /* the worker's end of the socket */

__attribute__((unused)) static int
start(void **state)
{
	static const uint8_t id[16] = "the-pool-of-test";
	struct kn_layout l;
	struct kn_err e;
	int sv[2];

	(void)state;
	memset(&policy, 0, sizeof policy);
	memset(&tx, 0, sizeof tx);
	policy.fs.task_bytes = 1 << 20;
	s = calloc(1, sizeof *s);
	s->policy = &policy;
	s->trace.fd = -1;
	s->pumping = true; /* events are queued, and nobody steps */
	s->task_max = TASKS;
	s->worker_n = 2;
	s->events =
	    (struct kn_queue){ calloc(QUEUE, sizeof(struct kn_event)), QUEUE, 0, 0 };
	s->replies =
	    (struct kn_queue){ calloc(QUEUE, sizeof(struct kn_event)), QUEUE, 0, 0 };
	s->wk = calloc(2, sizeof *s->wk);
	s->entry = calloc(TASKS, sizeof *s->entry);
	for (uint32_t i = 0; i < TASKS; i++) {
		s->entry[i] = (struct kn_entry){ .sup = s, .index = i, .worker = -1 };
		s->entry[i].io.in_fd = s->entry[i].io.out_fd = s->entry[i].io.err_fd =
		    -1;
	}
	if (kn_loop_open(&s->loop, &e) < 0 || kn_layout_of(2, 1 << 20, 4096, &l) < 0 ||
	    kn_arena_open(&s->arena, &l, id, &e) < 0 ||
	    socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, sv) <
		0)
		return -1;
	w = &s->wk[1];
	*w = (struct kn_wk){ .sup = s, .index = 1, .incarnation = 7, .live = true };
	w->lw = (struct kn_launched)KN_LAUNCHED_NONE;
	w->lw.sock = sv[0];
	theirs = sv[1];
	kn_arena_slice(&s->arena, 1, &w->slice);
	kn_submit_init(&w->tx);
	kn_payload_init(&w->pay, w->slice.submit_area_bytes);
	argv_of_it[0] = strdup("true");
	keep_of_it[0] = strdup("kept");
	task = (struct kn_task){ .id = argv_of_it[0],
		.argv = argv_of_it,
		.argv_n = 1,
		.keep = keep_of_it,
		.keep_n = 1,
		.stdin_fd = -1 };
	return 0;
}

static int
stop(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < TASKS; i++) {
		kn_stream_reset(&s->entry[i]);
		kn_files_drop(&s->entry[i]);
	}
	kn_loop_close(&s->loop);
	kn_arena_close(&s->arena);
	kn_fd_close(&w->lw.sock);
	kn_fd_close(&theirs);
	free(argv_of_it[0]);
	free(keep_of_it[0]);
	free(s->events.v);
	free(s->replies.v);
	free(s->wk);
	free(s->entry);
	free(s->job_files);
	free(s);
	return 0;
}

/* ---- the supervisor hands out, the worker takes ---- */

/* Publish entry i as attempt gen. Its message waits in the socket. */
static struct kn_entry *
hand_out(uint32_t i, uint32_t gen)
{
	struct kn_entry *e = &s->entry[i];
	int fds[KN_TASK_FDS_MAX], fd_n;
	struct kn_job j;

	e->task = &task;
	e->state = KN_ENTRY_KNOWN;
	e->gen = gen;
	assert_int_equal(kn_publish_job(e, &j, fds, &fd_n), 0);
	e->job_bytes = kn_job_encode(&j, NULL, 0);
	assert_true(kn_publish(w, e));
	return e;
}

static void
claim(const struct kn_entry *e)
{
	uint8_t bytes[KN_INLINE_MAX];
	struct kn_slot_head h;

	assert_true(kn_submit_claim(&w->slice, e->slot, &h, bytes));
	assert_int_equal(h.task, e->index);
	assert_int_equal(h.gen, e->gen);
}

__attribute__((unused)) static void
prepare(void)
{
	w->ready = true;
	claim(hand_out(0, 5));
	kn_view_look(w);
	s->replies.n = 0; /* the claim */
}

#endif
