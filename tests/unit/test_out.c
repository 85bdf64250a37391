/* tests/unit/test_out.c: result lines reach the reader whole and in order, a slow
 * reader stops the accepting and not the supervisor, a gone one is noticed.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "ipc/err.h"

/* cmd/ is no part of the library: the file itself. */
#include "cmd/out.c"

static void
open_on(struct kn_out *o, int fd, bool ordered)
{
	struct kn_err e;

	assert_int_equal(kn_out_open(o, fd, ordered, &e), 0);
}

static void
put(struct kn_out *o, uint64_t seq, size_t n)
{
	char *line = malloc(n + 32);
	int head = snprintf(line, n + 32, "%llu ", (unsigned long long)seq);

	memset(line + head, 'x', n);
	line[(size_t)head + n] = '\n';
	kn_out_put(o, seq, line, (size_t)head + n + 1);
}

/* As a loop would do. */
static bool
turn(struct kn_out *o)
{
	struct pollfd p = { .fd = o->fd };
	int events = kn_out_events(o);

	p.events = (short)events;
	if (events < 0 || poll(&p, 1, 0) <= 0)
		return false;
	kn_out_ready(o, p.revents);
	return true;
}

static void
make_pipe(int fds[2])
{
	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	assert_int_equal(fcntl(fds[0], F_SETFL, O_NONBLOCK), 0);
}

/* Reads all there is and checks that the numbers go up by one; returns the next. */
static uint64_t
read_lines(int fd, uint64_t next, char *rest, size_t *rest_n, size_t rest_max)
{
	for (;;) {
		ssize_t r = read(fd, rest + *rest_n, rest_max - *rest_n);
		char *nl;

		if (r <= 0)
			return next;
		*rest_n += (size_t)r;
		while ((nl = memchr(rest, '\n', *rest_n))) {
			assert_int_equal(strtoull(rest, NULL, 10), next);
			next++;
			*rest_n -= (size_t)(nl + 1 - rest);
			memmove(rest, nl + 1, *rest_n);
		}
	}
}

static void
a_slow_reader_stops_the_accepting_only(void **state)
{
	static char rest[1 << 17];
	size_t rest_n = 0;
	uint64_t put_n = 0, got = 0;
	struct kn_out o;
	int fds[2];

	(void)state;
	make_pipe(fds);
	open_on(&o, fds[1], false);
	while (kn_out_room(&o)) /* returns at all: no put waits for the reader */
		put(&o, put_n++, 5000);
	assert_true(put_n > 1000);
	assert_int_equal(kn_out_events(&o), POLLOUT);
	/* The caller's own description stays as it was. */
	assert_false(fcntl(fds[1], F_GETFL) & O_NONBLOCK);
	while (got < put_n) {
		got = read_lines(fds[0], got, rest, &rest_n, sizeof rest);
		if (got < put_n)
			assert_true(turn(&o));
	}
	assert_true(kn_out_room(&o));
	assert_int_equal(kn_out_events(&o), 0);
	assert_int_equal(kn_out_finish(&o), 0);
	kn_out_close(&o);
	close(fds[0]);
	close(fds[1]);
}

static void
lines_come_in_order_if_asked(void **state)
{
	enum { N = 3000 };
	static char rest[1 << 17];
	size_t rest_n = 0;
	uint64_t got = 0;
	struct kn_out o;
	int fds[2];

	(void)state;
	make_pipe(fds);
	open_on(&o, fds[1], true);
	for (uint64_t i = N - 1; i > 0; i--)
		put(&o, i, 10);
	assert_int_equal(read_lines(fds[0], 0, rest, &rest_n, sizeof rest), 0);
	put(&o, 0, 10);
	while (got < N) {
		got = read_lines(fds[0], got, rest, &rest_n, sizeof rest);
		if (got < N)
			assert_true(turn(&o));
	}
	put(&o, N, 10);
	assert_int_equal(read_lines(fds[0], got, rest, &rest_n, sizeof rest), N + 1);
	kn_out_close(&o);
	close(fds[0]);
	close(fds[1]);
}

static void
too_many_held_for_order_stop_the_accepting(void **state)
{
	struct kn_out o;
	int fds[2];

	(void)state;
	make_pipe(fds);
	open_on(&o, fds[1], true);
	for (uint64_t i = 1; i < KN_OUT_HELD_MAX; i++)
		put(&o, i, 1);
	assert_true(kn_out_room(&o));
	put(&o, KN_OUT_HELD_MAX, 1);
	assert_false(kn_out_room(&o));
	kn_out_close(&o);
	close(fds[0]);
	close(fds[1]);
}

static void
a_reader_that_goes_is_noticed_without_a_write(void **state)
{
	struct kn_out o;
	int fds[2];

	(void)state;
	make_pipe(fds);
	open_on(&o, fds[1], false);
	put(&o, 0, 1);
	assert_false(turn(&o));
	close(fds[0]);
	assert_true(turn(&o));
	assert_int_equal(o.broken, EPIPE);
	assert_false(kn_out_room(&o));
	assert_int_equal(kn_out_finish(&o), -1);
	kn_out_close(&o);
	close(fds[1]);
}

static void
corked_lines_are_written_together(void **state)
{
	static char rest[1 << 17];
	size_t rest_n = 0;
	struct kn_out o;
	int fds[2];

	(void)state;
	make_pipe(fds);
	open_on(&o, fds[1], false);
	kn_out_cork(&o, true);
	put(&o, 0, 10);
	put(&o, 1, 10);
	assert_int_equal(read_lines(fds[0], 0, rest, &rest_n, sizeof rest), 0);
	for (uint64_t i = 2; i < 40; i++) /* not without bound */
		put(&o, i, 2000);
	assert_true(read_lines(fds[0], 0, rest, &rest_n, sizeof rest) > 30);
	kn_out_cork(&o, false);
	assert_int_equal(kn_out_finish(&o), 0);
	kn_out_close(&o);
	close(fds[0]);
	close(fds[1]);
}

static void
a_full_disk_is_noticed(void **state)
{
	struct kn_out o;
	int fd = open("/dev/full", O_WRONLY | O_CLOEXEC);

	(void)state;
	assert_true(fd >= 0);
	open_on(&o, fd, false);
	put(&o, 0, 1);
	assert_int_equal(o.broken, ENOSPC);
	assert_int_equal(kn_out_finish(&o), -1);
	kn_out_close(&o);
	close(fd);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_slow_reader_stops_the_accepting_only),
		cmocka_unit_test(lines_come_in_order_if_asked),
		cmocka_unit_test(too_many_held_for_order_stop_the_accepting),
		cmocka_unit_test(a_reader_that_goes_is_noticed_without_a_write),
		cmocka_unit_test(corked_lines_are_written_together),
		cmocka_unit_test(a_full_disk_is_noticed),
	};
	const struct sigaction ignore = { .sa_handler = SIG_IGN };

	sigaction(SIGPIPE, &ignore, NULL);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
