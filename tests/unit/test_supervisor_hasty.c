/* tests/unit/test_supervisor_hasty.c: a terminal that another holder has made a
 * blocking one, and has emptied or filled, keeps nobody. Without that these tests do
 * not end.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include "supervisor/hasty.h"

static int master, slave;
static struct kn_hasty h;

static int
start(void **state)
{
	struct termios t;

	(void)state;
	alarm(60); /* the end of a test that hangs */
	master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC); /* blocking */
	assert_true(master >= 0);
	assert_int_equal(grantpt(master) | unlockpt(master), 0);
	slave = open(ptsname(master), O_RDWR | O_NOCTTY | O_CLOEXEC);
	assert_true(slave >= 0);
	assert_int_equal(tcgetattr(slave, &t), 0);
	cfmakeraw(&t);
	assert_int_equal(tcsetattr(slave, TCSANOW, &t), 0);
	assert_int_equal(kn_hasty_open(&h), 0);
	return 0;
}

static int
stop(void **state)
{
	(void)state;
	kn_hasty_close(&h);
	close(master);
	close(slave);
	alarm(0);
	return 0;
}

static void
what_is_there_is_read(void **state)
{
	char buf[16];

	(void)state;
	assert_int_equal(write(slave, "hello", 5), 5);
	assert_int_equal(kn_hasty_read(&h, master, buf, sizeof buf), 5);
	assert_memory_equal(buf, "hello", 5);
	assert_int_equal(kn_hasty_read(&h, master, buf, sizeof buf), -1);
	assert_int_equal(errno, EAGAIN);
}

/* Somebody else reads what poll() promised: he is quicker often enough, once he runs.
 * A machine that never lets him is the alarm's. */
static void
a_reader_who_is_robbed_comes_back(void **state)
{
	char buf[16];
	int robbed = 0, status;
	pid_t thief = fork();

	(void)state;
	if (thief == 0) {
		alarm(60); /* he has none of ours */
		for (;;) {
			if (read(master, buf, sizeof buf) < 0)
				_exit(1);
		}
	}
	for (int i = 0; i < 2000 || !robbed; i++) {
		assert_int_equal(write(slave, "x", 1), 1);
		if (kn_hasty_read(&h, master, buf, sizeof buf) < 0) {
			assert_int_equal(errno, EAGAIN);
			robbed++;
		}
	}
	kill(thief, SIGKILL);
	assert_int_equal(waitpid(thief, &status, 0), thief);
}

/* poll() says that there is room, and there is less than what is written. */
static void
a_writer_to_a_full_terminal_comes_back(void **state)
{
	static char much[256 * 1024];
	size_t written = 0;
	ssize_t n;

	(void)state;
	memset(much, 'x', sizeof much);
	while ((n = kn_hasty_write(&h, master, much, sizeof much)) > 0)
		written += (size_t)n;
	assert_int_equal(n, -1);
	assert_int_equal(errno, EAGAIN);
	assert_true(written > 0);
}

/* What the program had for that signal is there again. */
static void
the_signal_is_given_back(void **state)
{
	struct sigaction sa;
	sigset_t blocked, now;

	(void)state;
	kn_hasty_close(&h);
	sigemptyset(&blocked);
	sigaddset(&blocked, SIGURG);
	sigprocmask(SIG_BLOCK, &blocked, NULL);
	assert_int_equal(kn_hasty_open(&h), 0);
	sigprocmask(SIG_SETMASK, NULL, &now);
	assert_false(sigismember(&now, SIGURG));
	kn_hasty_close(&h);
	sigprocmask(SIG_SETMASK, NULL, &now);
	assert_true(sigismember(&now, SIGURG));
	sigaction(SIGURG, NULL, &sa);
	assert_ptr_equal(sa.sa_handler, SIG_DFL);
	sigprocmask(SIG_UNBLOCK, &blocked, NULL);
}

int
main(void)
{
#define PTY(t) cmocka_unit_test_setup_teardown(t, start, stop)
	const struct CMUnitTest tests[] = {
		PTY(what_is_there_is_read),
		PTY(a_reader_who_is_robbed_comes_back),
		PTY(a_writer_to_a_full_terminal_comes_back),
		PTY(the_signal_is_given_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
