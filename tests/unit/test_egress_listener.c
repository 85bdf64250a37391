/* tests/unit/test_egress_listener.c: the socket that a stub hands over as its sandbox's
 * way out: only a listening TCP socket of another network, once, before it is ready.
 */
#include "tests/unit/supervisor_test.h"

#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/wait.h>

#include "supervisor/egress_int.h"

/* A network with a loopback and nothing else, for this process. */
static void
own_network(void)
{
	struct ifreq r = { .ifr_name = "lo" };
	int fd;

	if (unshare(CLONE_NEWNET) < 0)
		assert_int_equal(unshare(CLONE_NEWUSER | CLONE_NEWNET), 0);
	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	r.ifr_flags = IFF_UP;
	assert_int_equal(ioctl(fd, SIOCSIFFLAGS, &r), 0);
	close(fd);
}

static int
tcp(uint32_t at, uint16_t port, int backlog)
{
	const int on = 1;
	struct sockaddr_in a = { .sin_family = AF_INET,
		.sin_port = htons(port),
		.sin_addr = { htonl(at) } };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on), 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&a, sizeof a), 0);
	if (backlog)
		assert_int_equal(listen(fd, backlog), 0);
	return fd;
}

static void
hand_over(int fd, uint32_t body)
{
	uint8_t buf[sizeof(struct kn_msg) + 8] = { 0 };
	struct kn_msg m = { .type = KN_MSG_EGRESS, .bytes = body };

	memcpy(buf, &m, sizeof m);
	assert_int_equal(kn_fd_send(theirs, buf, sizeof m + body, &fd, fd >= 0, 1), 0);
	kn_fd_close(&fd);
	kn_view_socket(w);
}

static void
expect(const char *field)
{
	if (!w->bad || strcmp(w->bad, field) != 0)
		fail_msg("violation \"%s\", expected \"%s\"", w->bad ? w->bad : "none",
		    field);
	assert_null(w->egress);
	w->bad = NULL;
}

static int
begin(void **state)
{
	struct kn_err e;

	return start(state) < 0 || kn_egress_open(s, &e) < 0 ? -1 : 0;
}

static int
end(void **state)
{
	for (uint32_t i = 0; i < s->worker_n; i++)
		kn_egress_release(&s->wk[i]);
	kn_egress_close(s);
	return stop(state);
}

static void
what_is_no_way_out_is_refused(void **state)
{
	int sp[2], path = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct sockaddr_un_like {
		sa_family_t family;
		char name[16];
	} abstract = { AF_UNIX, "\0net-test" };

	(void)state;
	hand_over(-1, 0);
	expect("egress");
	hand_over(tcp(INADDR_LOOPBACK, KN_EGRESS_PORT, 1), 4);
	expect("egress");
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sp), 0);
	hand_over(sp[0], 0);
	expect("egress.type");
	close(sp[1]);
	assert_int_equal(bind(path, (struct sockaddr *)&abstract, 11), 0);
	assert_int_equal(listen(path, 1), 0);
	hand_over(path, 0);
	expect("egress.type");
	hand_over(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), 0);
	expect("egress.type");
	hand_over(open("/dev/null", O_RDWR | O_CLOEXEC), 0);
	expect("egress.type");
	hand_over(tcp(INADDR_LOOPBACK, KN_EGRESS_PORT, 0), 0);
	expect("egress.listening");
	hand_over(tcp(INADDR_ANY, KN_EGRESS_PORT, 1), 0);
	expect("egress.address");
	hand_over(tcp(INADDR_LOOPBACK, KN_EGRESS_PORT + 1, 1), 0);
	expect("egress.address");
	hand_over(tcp(INADDR_LOOPBACK, KN_EGRESS_PORT, 1), 0);
	expect("egress.network"); /* it is of our own */
}

/* From a child in a network of its own. With `connects` it has connected, too. */
static int
elsewhere(bool connects)
{
	int sv[2], fd = -1, n = 0, status;
	char byte = 0;
	pid_t pid;

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sv), 0);
	pid = fork();
	if (pid == 0) {
		struct sockaddr_in a = { .sin_family = AF_INET,
			.sin_port = htons(KN_EGRESS_PORT),
			.sin_addr = { htonl(INADDR_LOOPBACK) } };
		int c = -1;

		own_network();
		fd = tcp(INADDR_LOOPBACK, KN_EGRESS_PORT, 5);
		if (connects) {
			c = socket(AF_INET, SOCK_STREAM, 0);
			assert_int_equal(
			    connect(c, (struct sockaddr *)&a, sizeof a), 0);
		}
		assert_int_equal(kn_fd_send(sv[1], &byte, 1, &fd, 1, 0), 0);
		/* closed by the other side, which has to have done so before */
		if (connects && read(c, &byte, 1) != 0 && errno != ECONNRESET)
			_exit(1);
		_exit(0);
	}
	close(sv[1]);
	assert_int_equal(kn_fd_recv(sv[0], &byte, 1, &fd, 1, &n, 0), 1);
	assert_int_equal(n, 1);
	close(sv[0]);
	if (!connects)
		assert_int_equal(waitpid(pid, &status, 0), pid);
	return fd;
}

static void
one_of_another_network_is_taken_once(void **state)
{
	(void)state;
	hand_over(elsewhere(false), 0);
	assert_null(w->bad);
	assert_non_null(w->egress);
	/* whatever flags it came with, nobody waits in accept() */
	assert_true(fcntl(w->egress->listen_fd, F_GETFL) & O_NONBLOCK);
	hand_over(elsewhere(false), 0);
	assert_string_equal(w->bad, "egress.again");
	w->bad = NULL;
}

static void
nobody_asks_before_there_is_a_task(void **state)
{
	uint64_t until = kn_clock_after_ms(kn_clock_now(), 20000);
	struct kn_err e;
	int status = -1;

	(void)state;
	hand_over(elsewhere(true), 0);
	assert_null(w->bad);
	while (waitpid(-1, &status, WNOHANG) == 0 && kn_clock_now() < until)
		assert_int_equal(kn_loop_wait(&s->loop, kn_clock_now(),
				     kn_clock_after_ms(kn_clock_now(), 10), &e),
		    0);
	assert_int_equal(status, 0); /* it was closed */
	assert_int_equal(w->egress->conn_n, 0);
	assert_int_equal(s->egress->total.refused + s->egress->total.went, 0);
}

/* One that listens no more is readable for ever. Its worker goes, and nobody is woken
 * by it. */
static void
one_that_listens_no_more_ends_its_worker_and_wakes_nobody(void **state)
{
	struct kn_err e;
	int n = 0;

	(void)state;
	hand_over(elsewhere(false), 0);
	assert_null(w->bad);
	assert_int_equal(shutdown(w->egress->listen_fd, SHUT_RD), 0);
	assert_int_equal(kn_loop_poll(&s->loop, 0, &n, &e), 0);
	assert_true(n > 0);
	assert_string_equal(w->bad, "egress.listening");
	assert_int_equal(kn_loop_poll(&s->loop, 0, &n, &e), 0);
	assert_int_equal(n, 0);
	w->bad = NULL;
}

/* What waited there could be the next task's. */
static void
where_the_backlog_stays_the_worker_goes(void **state)
{
	struct kn_err e;
	int n = 0;

	(void)state;
	hand_over(elsewhere(false), 0);
	assert_null(w->bad);
	kn_egress_task(w, &s->entry[0]);
	assert_int_equal(shutdown(w->egress->listen_fd, SHUT_RD), 0);
	kn_egress_task_end(w, &s->entry[0]);
	assert_string_equal(w->bad, "egress.backlog");
	assert_int_equal(kn_loop_poll(&s->loop, 0, &n, &e), 0);
	assert_int_equal(n, 0);
	w->bad = NULL;
}

static void
not_once_it_is_ready_and_not_unasked(void **state)
{
	(void)state;
	prepare();
	hand_over(elsewhere(false), 0);
	expect("socket.type");
	w->ready = false;
	kn_egress_close(s);
	hand_over(elsewhere(false), 0);
	expect("egress");
}

int
main(void)
{
#define WITH(t) cmocka_unit_test_setup_teardown(t, begin, end)
	const struct CMUnitTest tests[] = {
		WITH(what_is_no_way_out_is_refused),
		WITH(one_of_another_network_is_taken_once),
		WITH(nobody_asks_before_there_is_a_task),
		WITH(one_that_listens_no_more_ends_its_worker_and_wakes_nobody),
		WITH(where_the_backlog_stays_the_worker_goes),
		WITH(not_once_it_is_ready_and_not_unasked),
	};

	own_network();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
