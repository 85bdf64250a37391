/* tests/unit/test_ipc_fdmsg.c: datagrams with descriptors: they arrive whole or not at
 * all, and whatever a hostile peer attaches, nothing stays open. */
#include "tests/unit/ipc_test.h"

#include <sys/resource.h>
#include <sys/socket.h>

#include "ipc/fd.h"

static int pair[2];

static int
make_pair(void **state)
{
	(void)state;
	return socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair);
}

static int
close_pair(void **state)
{
	(void)state;
	kn_fd_close(&pair[0]);
	kn_fd_close(&pair[1]);
	return 0;
}

static void
many_null_fds(int *fds, int n)
{
	for (int i = 0; i < n; i++)
		assert_true((fds[i] = open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0);
}

static void
close_all(int *fds, int n)
{
	for (int i = 0; i < n; i++)
		kn_fd_close(&fds[i]);
}

static void
bytes_and_descriptors_arrive_together_close_on_exec(void **state)
{
	int p[2], fds[KN_MSG_FDS_MAX], n = -1;
	char buf[16];

	(void)state;
	assert_int_equal(pipe2(p, O_CLOEXEC), 0);
	assert_int_equal(kn_fd_send(pair[0], "hello", 5, p, 2, 0), 0);
	close_all(p, 2);
	assert_int_equal(
	    kn_fd_recv(pair[1], buf, sizeof buf, fds, KN_MSG_FDS_MAX, &n, 0), 5);
	assert_memory_equal(buf, "hello", 5);
	assert_int_equal(n, 2);
	assert_int_equal(fcntl(fds[0], F_GETFD), FD_CLOEXEC);
	assert_int_equal(write(fds[1], "x", 1), 1);
	assert_int_equal(read(fds[0], buf, 1), 1); /* the very pipe */
	close_all(fds, n);
}

static void
the_most_descriptors_pass_and_one_more_is_refused(void **state)
{
	int sent[KN_MSG_FDS_MAX + 1], got[KN_MSG_FDS_MAX], n = 0;
	char c;

	(void)state;
	many_null_fds(sent, KN_MSG_FDS_MAX + 1);
	assert_int_equal(kn_fd_send(pair[0], "x", 1, sent, KN_MSG_FDS_MAX + 1, 0), -1);
	assert_int_equal(errno, EINVAL);
	assert_int_equal(kn_fd_send(pair[0], "x", 1, sent, KN_MSG_FDS_MAX, 0), 0);
	assert_int_equal(kn_fd_recv(pair[1], &c, 1, got, KN_MSG_FDS_MAX, &n, 0), 1);
	assert_int_equal(n, KN_MSG_FDS_MAX);
	close_all(got, n);
	close_all(sent, KN_MSG_FDS_MAX + 1);
}

static void
a_body_that_does_not_fit_is_refused_with_its_descriptors(void **state)
{
	int before = open_fds(), fds[4] = { -1, -1, -1, -1 }, n = 99, null;
	char buf[4];

	(void)state;
	null = open("/dev/null", O_RDONLY | O_CLOEXEC);
	assert_int_equal(kn_fd_send(pair[0], "12345", 5, &null, 1, 0), 0);
	close(null);
	assert_int_equal(kn_fd_recv(pair[1], buf, sizeof buf, fds, 4, &n, 0), -1);
	assert_int_equal(errno, EMSGSIZE);
	assert_int_equal(n, 99);
	assert_int_equal(fds[0], -1);
	assert_int_equal(open_fds(), before);
}

static void
more_descriptors_than_asked_for_are_all_closed(void **state)
{
	int before = open_fds(), sent[10], got[3], n;
	char c;

	(void)state;
	for (int max = 0; max <= 3; max++) {
		many_null_fds(sent, 10);
		assert_int_equal(kn_fd_send(pair[0], "x", 1, sent, 10, 0), 0);
		close_all(sent, 10);
		assert_int_equal(
		    kn_fd_recv(pair[1], &c, 1, max ? got : NULL, max, &n, 0), -1);
		assert_int_equal(errno, EMSGSIZE);
		assert_int_equal(open_fds(), before);
	}
}

static void
more_than_any_message_of_ours_holds_are_all_closed(void **state)
{
	/* As a hostile peer would: past KN_MSG_FDS_MAX, by hand. */
	enum { LOTS = 200 };
	int before = open_fds(), sent[LOTS], got[KN_MSG_FDS_MAX], n, cut;
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof sent)];
	} control;
	char c = 'x';
	struct iovec iov = { &c, 1 };
	struct msghdr msg = { .msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof control };

	(void)state;
	many_null_fds(sent, LOTS);
	memset(&control, 0, sizeof control);
	control.align.cmsg_level = SOL_SOCKET;
	control.align.cmsg_type = SCM_RIGHTS;
	control.align.cmsg_len = CMSG_LEN(sizeof sent);
	memcpy(CMSG_DATA(&control.align), sent, sizeof sent);
	assert_int_equal(sendmsg(pair[0], &msg, 0), 1);
	assert_int_equal(sendmsg(pair[0], &msg, 0), 1);
	close_all(sent, LOTS);
	assert_int_equal(kn_fd_recv(pair[1], &c, 1, got, KN_MSG_FDS_MAX, &n, 0), -1);
	assert_int_equal(errno, EMSGSIZE);
	assert_int_equal(open_fds(), before);
	assert_int_equal(
	    kn_fd_recv_some(pair[1], &c, 1, got, KN_MSG_FDS_MAX, &n, &cut), -1);
	assert_int_equal(errno, EMSGSIZE);
	assert_int_equal(open_fds(), before);
}

static void
an_empty_datagram_hides_no_descriptors(void **state)
{
	int before = open_fds(), null, got[4], n = -1;
	char c;

	(void)state;
	null = open("/dev/null", O_RDONLY | O_CLOEXEC);
	assert_int_equal(kn_fd_send(pair[0], "", 0, &null, 1, 0), 0);
	close(null);
	assert_int_equal(kn_fd_recv(pair[1], &c, 1, got, 4, &n, 0), 0);
	assert_int_equal(n, 0);
	assert_int_equal(open_fds(), before);
}

static void
nothing_there_is_eagain_and_a_closed_peer_is_end_of_file(void **state)
{
	int n;
	char c;

	(void)state;
	assert_int_equal(kn_fd_recv(pair[1], &c, 1, NULL, 0, &n, 1), -1);
	assert_int_equal(errno, EAGAIN);
	kn_fd_close(&pair[0]);
	assert_int_equal(kn_fd_recv(pair[1], &c, 1, NULL, 0, &n, 0), 0);
	/* Without MSG_NOSIGNAL this would end the test. */
	assert_int_equal(kn_fd_send(pair[1], "x", 1, NULL, 0, 0), -1);
	assert_int_equal(errno, EPIPE);
}

static void
a_full_socket_is_eagain_and_keeps_our_descriptors(void **state)
{
	static char big[4096];
	int null = open("/dev/null", O_RDONLY | O_CLOEXEC), r, sent = 0;

	(void)state;
	while ((r = kn_fd_send(pair[0], big, sizeof big, &null, 1, 1)) == 0)
		assert_true(++sent < 100000);
	assert_int_equal(errno, EAGAIN);
	assert_true(fcntl(null, F_GETFD) >= 0);
	close(null);
}

static void
who_can_open_no_more_gets_the_first_of_them_and_is_told(void **state)
{
	int before = open_fds(), sent[5], got[KN_MSG_FDS_MAX], n = -1, cut = -1;
	struct rlimit was, few;
	char c = 0;

	(void)state;
	many_null_fds(sent, 5);
	assert_int_equal(kn_fd_send(pair[0], "x", 1, sent, 5, 0), 0);
	assert_int_equal(kn_fd_send(pair[0], "y", 1, sent, 5, 0), 0);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &was), 0);
	few = was;
	few.rlim_cur = (rlim_t)sent[2];
	close_all(sent, 5);
	/* Below the first of ours all is in use, so two can be opened. */
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	assert_int_equal(
	    kn_fd_recv_some(pair[1], &c, 1, got, KN_MSG_FDS_MAX, &n, &cut), 1);
	assert_int_equal(c, 'x');
	assert_int_equal(n, 2);
	assert_true(cut);
	close_all(got, n);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &was), 0);
	assert_int_equal(
	    kn_fd_recv_some(pair[1], &c, 1, got, KN_MSG_FDS_MAX, &n, &cut), 1);
	assert_int_equal(n, 5);
	assert_false(cut);
	close_all(got, n);
	assert_int_equal(open_fds(), before);
}

int
main(void)
{
#define ON_PAIR(t) cmocka_unit_test_setup_teardown(t, make_pair, close_pair)
	const struct CMUnitTest tests[] = {
		ON_PAIR(bytes_and_descriptors_arrive_together_close_on_exec),
		ON_PAIR(the_most_descriptors_pass_and_one_more_is_refused),
		ON_PAIR(a_body_that_does_not_fit_is_refused_with_its_descriptors),
		ON_PAIR(more_descriptors_than_asked_for_are_all_closed),
		ON_PAIR(more_than_any_message_of_ours_holds_are_all_closed),
		ON_PAIR(who_can_open_no_more_gets_the_first_of_them_and_is_told),
		ON_PAIR(an_empty_datagram_hides_no_descriptors),
		ON_PAIR(nothing_there_is_eagain_and_a_closed_peer_is_end_of_file),
		ON_PAIR(a_full_socket_is_eagain_and_keeps_our_descriptors),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
