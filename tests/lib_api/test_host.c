/* tests/lib_api/test_host.c: what a pool leaves alone of the program that it is in. */
#include "api.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>

extern char **environ;

static volatile sig_atomic_t chld_seen;

static void
on_chld(int signo)
{
	(void)signo;
	chld_seen++;
}

static void
use_a_pool(const char *script)
{
	struct knit_pool *p = pool_of(2, 0);
	struct knit_job *a = submit(p, sh(script)), *b = submit(p, sh(script));

	finish(a);
	finish(b);
	knit_job_free(a);
	knit_job_free(b);
	assert_int_equal(knit_pool_close(p), 0);
}

static void
its_sigchld_handler_hears_of_its_own_children_only(void **state)
{
	struct sigaction sa = { .sa_handler = on_chld }, old, now;
	pid_t pid;
	int status;

	(void)state;
	sigaction(SIGCHLD, &sa, &old);
	chld_seen = 0;
	use_a_pool(":");
	assert_int_equal(chld_seen, 0);
	pid = fork();
	if (pid == 0)
		_exit(9);
	use_a_pool("exit 1");
	while (waitpid(pid, &status, 0) < 0)
		assert_int_equal(errno, EINTR);
	assert_int_equal(WEXITSTATUS(status), 9);
	assert_int_equal(chld_seen, 1);
	sigaction(SIGCHLD, &old, &now);
	assert_true(now.sa_handler == on_chld);
}

static void
a_program_that_waits_for_any_child_takes_none_of_the_pools(void **state)
{
	struct knit_pool_counts c = { .size = sizeof c };
	struct knit_pool *p;

	(void)state;
	be_patient();
	p = pool_of(2, 0);
	for (int i = 0; i < 20; i++) {
		struct knit_job *job = submit(p, sh(i % 5 ? ":" : "kill -9 $$"));

		assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
		assert_int_equal(errno, ECHILD);
		finish(job);
		assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
		assert_int_equal(errno, ECHILD);
		knit_job_free(job);
	}
	OK(knit_pool_count(p, &c, &err));
	assert_int_equal(c.workers_lost, 0);
	assert_int_equal(knit_pool_close(p), 0);
}

static void
a_program_that_ignores_sigchld_is_served(void **state)
{
	struct sigaction sa = { .sa_handler = SIG_IGN }, old;

	(void)state;
	sigaction(SIGCHLD, &sa, &old);
	use_a_pool(":");
	sigaction(SIGCHLD, &old, NULL);
}

/* A job that does not read its stdin: our write to it fails with EPIPE. */
static void
no_signal_comes_from_a_broken_pipe(void **state)
{
	struct knit_pool *p = pool_of(1, 0);
	size_t n = 4 << 20;
	char *bytes = calloc(1, n);
	struct sigaction now;
	sigset_t mask, pending;

	(void)state;
	for (int i = 0; i < 5; i++) {
		struct knit_job *job = sh("exec <&-; sleep 0.02");

		knit_job_set_stdin(job, bytes, n);
		submit(p, job);
		is(finish(job), KNIT_OK);
		knit_job_free(job);
	}
	sigaction(SIGPIPE, NULL, &now);
	assert_true(now.sa_handler == SIG_DFL); /* and we are alive */
	pthread_sigmask(SIG_BLOCK, NULL, &mask);
	assert_int_equal(sigismember(&mask, SIGPIPE), 0);
	sigpending(&pending);
	assert_int_equal(sigismember(&pending, SIGPIPE), 0);
	assert_int_equal(knit_pool_close(p), 0);
	free(bytes);
}

static void
a_limit_of_file_sizes_is_an_error_and_no_signal(void **state)
{
	struct rlimit old, tight;
	struct knit_pool *p = NULL;

	(void)state;
	getrlimit(RLIMIT_FSIZE, &old);
	tight = old;
	tight.rlim_cur = 1000;
	setrlimit(RLIMIT_FSIZE, &tight);
	memset(&err, 0, sizeof err);
	if (knit_pool_open(policy, NULL, &p, &err) == 0)
		knit_pool_close(p);
	else
		assert_string_not_equal(err.text, "");
	setrlimit(RLIMIT_FSIZE, &old);
}

static void
read_cgroup(char *buf, size_t n)
{
	FILE *f = fopen("/proc/self/cgroup", "r");

	buf[0] = '\0';
	if (!f)
		return;
	buf[fread(buf, 1, n - 1, f)] = '\0';
	fclose(f);
}

static void
it_is_not_moved_to_another_cgroup(void **state)
{
	char before[4096], now[4096];
	struct knit_pool *p;
	struct knit_job *job;

	(void)state;
	read_cgroup(before, sizeof before);
	p = pool_of(2, 0);
	job = submit(p, sh(":"));
	finish(job);
	read_cgroup(now, sizeof now);
	assert_string_equal(before, now);
	knit_job_free(job);
	assert_int_equal(knit_pool_close(p), 0);
	read_cgroup(now, sizeof now);
	assert_string_equal(before, now);
}

struct signals {
	struct sigaction sa[32];
};

static void
look(struct signals *s)
{
	memset(s, 0, sizeof *s);
	for (int i = 1; i < 32; i++)
		sigaction(i, NULL, &s->sa[i]);
}

static void
dispositions_masks_limits_directory_and_environment_stay(void **state)
{
	struct signals before, now;
	sigset_t mask_before, mask;
	struct rlimit files, files_now;
	char cwd[512], cwd_now[512];
	char **env = environ;
	size_t env_n = 0, env_now = 0;
	mode_t m = umask(027);

	(void)state;
	getrlimit(RLIMIT_NOFILE, &files);
	files.rlim_cur = 512;
	setrlimit(RLIMIT_NOFILE, &files);
	look(&before);
	pthread_sigmask(SIG_BLOCK, NULL, &mask_before);
	assert_non_null(getcwd(cwd, sizeof cwd));
	while (environ[env_n])
		env_n++;
	use_a_pool("echo x");
	look(&now);
	pthread_sigmask(SIG_BLOCK, NULL, &mask);
	for (int i = 1; i < 32; i++) {
		assert_true(before.sa[i].sa_handler == now.sa[i].sa_handler);
		assert_int_equal(before.sa[i].sa_flags, now.sa[i].sa_flags);
		assert_int_equal(sigismember(&mask_before, i), sigismember(&mask, i));
	}
	getrlimit(RLIMIT_NOFILE, &files_now);
	assert_int_equal(files_now.rlim_cur, 512);
	assert_non_null(getcwd(cwd_now, sizeof cwd_now));
	assert_string_equal(cwd, cwd_now);
	assert_ptr_equal(environ, env);
	while (environ[env_now])
		env_now++;
	assert_int_equal(env_n, env_now);
	assert_int_equal(umask(m), 027);
}

/* stdin, stdout and stderr: pipes at whose other end nothing may come or go. */
static void
its_streams_are_not_touched(void **state)
{
	int saved[3], in[2], out[2];
	char c = 'x';

	(void)state;
	for (int i = 0; i < 3; i++)
		saved[i] = dup(i);
	assert_int_equal(pipe2(in, O_CLOEXEC | O_NONBLOCK), 0);
	assert_int_equal(pipe2(out, O_CLOEXEC | O_NONBLOCK), 0);
	assert_int_equal(write(in[1], &c, 1), 1);
	fflush(NULL);
	dup2(in[0], 0);
	dup2(out[1], 1);
	dup2(out[1], 2);
	use_a_pool("cat; echo out; echo err >&2; exit 3");
	for (int i = 0; i < 3; i++) {
		dup2(saved[i], i);
		close(saved[i]);
	}
	assert_int_equal(read(in[0], &c, 1), 1); /* still there */
	assert_int_equal(read(out[0], &c, 1), -1);
	assert_int_equal(errno, EAGAIN);
	for (int i = 0; i < 2; i++) {
		close(in[i]);
		close(out[i]);
	}
}

static void
descriptors_are_close_on_exec(void **state)
{
	enum { TOP = 1024 };
	bool before[TOP];
	struct knit_pool *p;
	struct knit_job *job;

	(void)state;
	for (int fd = 0; fd < TOP; fd++)
		before[fd] = fcntl(fd, F_GETFD) >= 0;
	p = pool_of(2, 0);
	job = submit(p, sh(":"));
	finish(job);
	for (int fd = 0; fd < TOP; fd++) {
		int flags = fcntl(fd, F_GETFD);

		if (!before[fd] && flags >= 0 && !(flags & FD_CLOEXEC))
			fail_msg("%d is inherited", fd);
	}
	knit_job_free(job);
	assert_int_equal(knit_pool_close(p), 0);
}

static void
after_a_fork_the_pool_is_the_parents(void **state)
{
	struct knit_pool *p = pool_of(1, 0);
	struct knit_job *job = submit(p, sh("exit 3"));
	pid_t pid;
	int status;

	(void)state;
	finish(job);
	pid = fork();
	if (pid == 0) {
		struct knit_error e = KNIT_ERROR_NONE;
		struct knit_job *other = sh(":");

		if (knit_pool_submit(p, other, &e) == 0 || !strstr(e.text, "fork") ||
		    knit_pool_dispatch(p, &e) >= 0 || knit_pool_close(p) == 0)
			_exit(1);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	knit_job_free(job);
	job = submit(p, sh("exit 4"));
	assert_int_equal(finish(job)->exit_code, 4);
	knit_job_free(job);
	assert_int_equal(knit_pool_close(p), 0);
}

struct counting {
	struct knit_pool *p;
	bool stop;
};

static void *
count_on(void *ctx)
{
	struct counting *c = ctx;
	struct knit_pool_counts n = { .size = sizeof n };

	while (!__atomic_load_n(&c->stop, __ATOMIC_RELAXED))
		(void)knit_pool_count(c->p, &n, NULL);
	return NULL;
}

/* Some of the children find the lock held, by a thread that they do not have. */
static void
a_child_forked_while_others_use_the_pool_is_refused_too(void **state)
{
	struct counting c = { pool_of(1, 0), false };
	struct knit_job *job = submit(c.p, sh(":"));
	pthread_t thread;

	(void)state;
	finish(job);
	assert_int_equal(pthread_create(&thread, NULL, count_on, &c), 0);
	for (int i = 0; i < 100; i++) {
		pid_t pid = fork();
		int status;

		if (pid == 0) {
			struct knit_pool_counts n = { .size = sizeof n };

			alarm(30); /* one that waits for ever ends by it */
			knit_job_free(job);
			_exit(knit_job_outcome(job) != NULL ||
			      knit_pool_count(c.p, &n, NULL) == 0 ||
			      knit_pool_drain(c.p, NULL) == 0 ||
			      knit_pool_dispatch(c.p, NULL) >= 0 ||
			      knit_pool_close(c.p) == 0);
		}
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_int_equal(status, 0);
	}
	__atomic_store_n(&c.stop, true, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
	knit_job_free(job);
	assert_int_equal(knit_pool_close(c.p), 0);
}

/* A program that is killed takes its sandboxes along: seen by a pipe that only a task
 * and its worker could hold open, and by the wardens, which are children of nobody
 * then. */
static void
nothing_outlives_a_program_that_is_killed(void **state)
{
	int told[2];
	struct pollfd worker[64]; /* pidfds: pids come again, and zombies may stay */
	pid_t pid;
	ssize_t n;
	char line[4096], path[128];
	int status, workers = 0;
	FILE *f;

	(void)state;
	assert_int_equal(pipe2(told, O_CLOEXEC), 0);
	pid = fork();
	if (pid == 0) {
		struct knit_pool *p = pool_of(2, 0);
		struct knit_job *job = submit(p, sh("echo; exec sleep 1000"));

		submit(p, sh("sleep 1000"));
		if (!comes(runs_now, p) || write(told[1], "x", 1) != 1)
			_exit(1);
		finish(job);
		_exit(1);
	}
	close(told[1]);
	assert_int_equal(read(told[0], line, 1), 1);
	close(told[0]);
	snprintf(path, sizeof path, "/proc/%d/task/%d/children", (int)pid, (int)pid);
	f = fopen(path, "r");
	assert_non_null(f);
	n = (ssize_t)fread(line, 1, sizeof line - 1, f);
	line[n > 0 ? n : 0] = '\0';
	fclose(f);
	for (char *at = line, *end; workers < 64; at = end) {
		long one = strtol(at, &end, 10);

		if (end == at)
			break;
		worker[workers].events = POLLIN;
		worker[workers].fd = (int)syscall(SYS_pidfd_open, (pid_t)one, 0);
		workers += worker[workers].fd >= 0; /* else it has ended already */
	}
	assert_true(workers >= 1);
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	for (int i = 0; i < workers; i++) {
		assert_int_equal(poll(&worker[i], 1, LONG_MS), 1);
		close(worker[i].fd);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(its_sigchld_handler_hears_of_its_own_children_only),
		TEST(a_program_that_waits_for_any_child_takes_none_of_the_pools),
		TEST(a_program_that_ignores_sigchld_is_served),
		TEST(no_signal_comes_from_a_broken_pipe),
		TEST(a_limit_of_file_sizes_is_an_error_and_no_signal),
		TEST(dispositions_masks_limits_directory_and_environment_stay),
		TEST(it_is_not_moved_to_another_cgroup),
		TEST(its_streams_are_not_touched),
		TEST(descriptors_are_close_on_exec),
		TEST(after_a_fork_the_pool_is_the_parents),
		TEST(a_child_forked_while_others_use_the_pool_is_refused_too),
		TEST(nothing_outlives_a_program_that_is_killed),
	};

	return cmocka_run_group_tests_name("lib_api host", tests, NULL, NULL);
}
