/* tests/unit/test_sandbox_dying.c: a worker that is killed and does not go, as a frozen
 * one, keeps nobody waiting: not the next launch in its place, not the release.
 */
#include "cgroup_test.h"

#include <poll.h>
#include <sys/socket.h>

#include "ipc/clock.h"
#include "sandbox/cgroup.h"
#include "sandbox/cgroup_tree.h"
#include "sandbox/launch_int.h"

static char freezer[64]; /* a v1 group of our own: what is frozen in it does not die */

static void
tell(const char *file, const char *text)
{
	char path[128];
	int fd;

	snprintf(path, sizeof path, "%s/%s", freezer, file);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
}

static bool
make_freezer(void)
{
	snprintf(freezer, sizeof freezer, "/sys/fs/cgroup/freezer/test-%d", getpid());
	return mkdir(freezer, 0700) == 0;
}

/* In the worker's groups, and frozen. */
static pid_t
start_frozen(struct kn_cgroup *g, uint32_t w)
{
	int fds[KN_CGROUP_TREES_MAX], go[2];
	size_t n = kn_cgroup_join_fds(g, w, fds, KN_CGROUP_TREES_MAX);
	char text[16], state[16] = "";
	pid_t pid;

	assert_int_equal(pipe(go), 0);
	pid = fork();
	if (pid == 0) {
		for (size_t i = 0; i < n; i++) {
			if (write(fds[i], "0", 1) != 1)
				_exit(90);
		}
		(void)!write(go[1], "", 1);
		for (;;)
			poll(NULL, 0, 1000);
	}
	assert_int_equal(read(go[0], text, 1), 1);
	close(go[0]);
	close(go[1]);
	snprintf(text, sizeof text, "%d", pid);
	tell("cgroup.procs", text);
	tell("freezer.state", "FROZEN");
	while (strncmp(state, "FROZEN", 6) != 0) {
		char path[128];
		int fd;

		snprintf(path, sizeof path, "%s/freezer.state", freezer);
		fd = open(path, O_RDONLY | O_CLOEXEC);
		assert_true(read(fd, state, sizeof state - 1) > 0);
		close(fd);
	}
	return pid;
}

static void
next_worker_does_not_wait_for_one_that_will_not_die(void **state)
{
	struct kn_cgroup *g = NULL;
	struct kn_err e = { 0 };
	int status, fds[KN_CGROUP_TREES_MAX];
	char name[KN_CGROUP_NAME_MAX];
	bool can;

	(void)state;
	OK(kn_cgroup_open(test_pool_id, 2, &g, &e), e);
	can = kn_cgroup_has_pids(g) && make_freezer();
	if (!can) {
		print_message("  not here: no v1 freezer, or no pids cgroup\n");
		kn_cgroup_close(g);
		return;
	}
	assert_int_equal(kn_cgroup_dir_name(test_pool_id, name, sizeof name), 0);
	assert_true(cgroup_is_there(name));
	OK(kn_cgroup_prepare(g, 0, 0, 5, &e), e);
	pid_t pid = start_frozen(g, 0);
	kn_cgroup_release(g, 0);
	OK(kn_cgroup_prepare(g, 0, 0, 5, &e), e);
	assert_int_equal(waitpid(pid, &status, WNOHANG), 0); /* it is there still */
	assert_int_equal(kn_cgroup_pids_now(g, 0), 0); /* and not in the new group */
	kn_cgroup_release(g, 0);
	OK(kn_cgroup_prepare(g, 0, 0, 5, &e), e);
	assert_true(kn_cgroup_join_fds(g, 0, fds, KN_CGROUP_TREES_MAX) > 0);
	kill(pid, SIGKILL);
	tell("freezer.state", "THAWED");
	assert_int_equal(waitpid(pid, &status, 0), pid);
	kn_cgroup_close(g); /* removes all of it: the parent's directory has gone */
	assert_int_equal(rmdir(freezer), 0);
	assert_false(cgroup_is_there(name));
}

static void
release_does_not_wait_for_the_socket_s_end(void **state)
{
	struct kn_launched lw = KN_LAUNCHED_NONE;
	struct kn_launcher l = { .ops = &kn_launch_bwrap };
	volatile pid_t groups[1] = { 0 };
	struct kn_err e = { 0 };
	uint64_t begun = kn_clock_now();
	int sock[2];

	(void)state;
	OK(kn_cgroup_open(NULL, 1, &l.cgroup, &e), e);
	l.guard.groups = groups;
	for (int i = 0; i < 20; i++) {
		assert_int_equal(
		    socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sock), 0);
		lw.sock = sock[0];
		kn_launch_release(&l, 0, &lw);
		assert_int_equal(lw.sock, -1);
		close(sock[1]); /* held open until here by what would not go */
	}
	/* twenty waits of a second each, where one is made */
	assert_true(kn_clock_now() - begun < 15ull * 1000000000);
	kn_cgroup_close(l.cgroup);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(next_worker_does_not_wait_for_one_that_will_not_die),
		cmocka_unit_test(release_does_not_wait_for_the_socket_s_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
