/* tests/unit/test_supervisor_loop.c: the loop against real descriptors and time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <fcntl.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cmocka.h>

#include "ipc/clock.h"
#include "ipc/err.h"
#include "ipc/fd.h"
#include "supervisor/loop.h"

static struct kn_loop loop;
static struct kn_watch a, b;
static int fd_a, fd_b;
static unsigned calls_a, calls_b;
static uint32_t last_events;

static int
start(void **state)
{
	struct kn_err e;

	(void)state;
	calls_a = calls_b = 0;
	fd_a = eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK);
	fd_b = eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK);
	return kn_loop_open(&loop, &e) < 0 || fd_a < 0 || fd_b < 0;
}

static int
stop(void **state)
{
	(void)state;
	kn_loop_del(&loop, &a);
	kn_loop_del(&loop, &b);
	kn_loop_close(&loop);
	kn_fd_close(&fd_a);
	kn_fd_close(&fd_b);
	return 0;
}

static void
count_a(struct kn_watch *w, uint32_t events)
{
	(void)w;
	last_events = events;
	calls_a++;
}

static void
count_b(struct kn_watch *w, uint32_t events)
{
	(void)w;
	(void)events;
	calls_b++;
}

/* Whichever comes first removes the other, as the end of a task removes its pipes. */
static void
remove_other(struct kn_watch *w, uint32_t events)
{
	(void)events;
	calls_a++;
	kn_loop_del(&loop, w == &a ? &b : &a);
}

static void
look(uint64_t deadline_ns)
{
	struct kn_err e;

	assert_int_equal(kn_loop_wait(&loop, kn_clock_now(), deadline_ns, &e), 0);
}

static void
a_watch_removed_in_the_same_round_is_not_called(void **state)
{
	struct kn_err e;

	(void)state;
	assert_int_equal(
	    kn_loop_add(&loop, &a, fd_a, EPOLLIN, remove_other, NULL, &e), 0);
	assert_int_equal(
	    kn_loop_add(&loop, &b, fd_b, EPOLLIN, remove_other, NULL, &e), 0);
	look(1);
	assert_int_equal(calls_a, 1);
}

static void
a_regular_file_is_always_ready_while_asked_for(void **state)
{
	char name[] = "/tmp/kn-loop-XXXXXX";
	struct kn_err e;
	int fd = mkstemp(name);

	(void)state;
	assert_true(fd >= 0);
	unlink(name);
	assert_int_equal(kn_loop_add(&loop, &a, fd, EPOLLIN, count_a, NULL, &e), 0);
	look(0); /* returns although nothing else would ever wake it */
	look(0);
	assert_int_equal(calls_a, 2);
	assert_int_equal(last_events, EPOLLIN);
	kn_loop_mod(&loop, &a, 0);
	look(1);
	assert_int_equal(calls_a, 2);
	kn_loop_mod(&loop, &a, EPOLLOUT);
	look(0);
	assert_int_equal(last_events, EPOLLOUT);
	kn_loop_del(&loop, &a);
	look(1);
	assert_int_equal(calls_a, 3);
	close(fd);
}

static void
always_ready_ones_do_not_starve_the_others(void **state)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	struct kn_err e;

	(void)state;
	assert_int_equal(kn_loop_add(&loop, &a, null, EPOLLIN, count_a, NULL, &e), 0);
	assert_int_equal(kn_loop_add(&loop, &b, fd_b, EPOLLIN, count_b, NULL, &e), 0);
	look(0);
	assert_int_equal(calls_a, 1);
	assert_int_equal(calls_b, 1);
	kn_loop_del(&loop, &a);
	close(null);
}

static void
a_deadline_ends_the_wait_and_not_before(void **state)
{
	uint64_t before = kn_clock_now(), deadline = before + 20 * KN_MS_NS;

	(void)state;
	while (kn_clock_now() < deadline)
		look(deadline);
	assert_true(kn_clock_now() >= deadline);
	assert_true(kn_clock_now() - before < 10 * KN_S_NS);
}

/* The timer is only moved nearer: a nearer one set later must still fire first. */
static void
a_nearer_deadline_replaces_a_farther_one(void **state)
{
	struct kn_err e;
	uint64_t now = kn_clock_now();

	(void)state;
	assert_int_equal(
	    kn_loop_add(&loop, &a, fd_a, EPOLLIN | EPOLLET, count_a, NULL, &e), 0);
	look(now + 3600 * KN_S_NS); /* woken by the descriptor; the timer stays armed */
	assert_int_equal(calls_a, 1);
	while (kn_clock_now() < now + 10 * KN_MS_NS)
		look(now + 10 * KN_MS_NS);
	assert_true(kn_clock_now() - now < 10 * KN_S_NS);
}

static void
an_edge_is_told_once_and_again_for_the_next(void **state)
{
	uint64_t one = 1;
	struct kn_err e;

	(void)state;
	assert_int_equal(
	    kn_loop_add(&loop, &a, fd_a, EPOLLIN | EPOLLET, count_a, NULL, &e), 0);
	look(1);
	look(1);
	assert_int_equal(calls_a, 1);
	assert_int_equal(write(fd_a, &one, sizeof one), sizeof one);
	look(1);
	assert_int_equal(calls_a, 2); /* though the counter was never read */
}

int
main(void)
{
#define LOOP(t) cmocka_unit_test_setup_teardown(t, start, stop)
	const struct CMUnitTest tests[] = {
		LOOP(a_watch_removed_in_the_same_round_is_not_called),
		LOOP(a_regular_file_is_always_ready_while_asked_for),
		LOOP(always_ready_ones_do_not_starve_the_others),
		LOOP(a_deadline_ends_the_wait_and_not_before),
		LOOP(a_nearer_deadline_replaces_a_farther_one),
		LOOP(an_edge_is_told_once_and_again_for_the_next),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
