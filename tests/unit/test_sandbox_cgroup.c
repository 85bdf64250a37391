/* tests/unit/test_sandbox_cgroup.c: where we stand in v1, v2, hybrid and container
 * layouts, from text; and, as root, limits, kills and sweeps asked of the kernel.
 */
#include "cgroup_test.h"

#include <poll.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include "ipc/clock.h"
#include "ipc/fd.h"
#include "sandbox/cgroup.h"

static struct kn_cgroup_where
parse(const char *self, const char *mounts)
{
	struct kn_cgroup_where w;

	kn_cgroup_parse(self, mounts, &w);
	return w;
}

static void
v1_each_controller_alone(void **state)
{
	struct kn_cgroup_where w = parse("8:pids:/a\n4:memory:/job/7\n2:cpuacct:/\n",
	    "22 1 0:21 / /proc rw - proc proc rw\n"
	    "33 31 0:30 / /sys/fs/cgroup/cpuacct rw - cgroup cgroup rw,cpuacct\n"
	    "35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n"
	    "39 31 0:36 / /sys/fs/cgroup/pids rw shared:9 - cgroup cgroup rw,pids\n");

	(void)state;
	assert_string_equal(w.memory.dir, "/sys/fs/cgroup/memory/job/7");
	assert_int_equal(w.memory.mount_n, strlen("/sys/fs/cgroup/memory"));
	assert_string_equal(w.pids.dir, "/sys/fs/cgroup/pids/a");
	assert_string_equal(w.cpuacct.dir, "/sys/fs/cgroup/cpuacct");
	assert_string_equal(w.unified.dir, "");
}

static void
v1_controllers_mounted_together(void **state)
{
	struct kn_cgroup_where w = parse("3:cpu,cpuacct:/user.slice\n",
	    "33 31 0:30 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup "
	    "rw,cpu,cpuacct\n");

	(void)state;
	assert_string_equal(w.cpuacct.dir, "/sys/fs/cgroup/cpu,cpuacct/user.slice");
	assert_string_equal(w.memory.dir, "");
}

static void
v2_alone(void **state)
{
	struct kn_cgroup_where w = parse("0::/user.slice/user-1000.slice/run.scope\n",
	    "25 20 0:22 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n");

	(void)state;
	assert_string_equal(
	    w.unified.dir, "/sys/fs/cgroup/user.slice/user-1000.slice/run.scope");
	assert_string_equal(w.memory.dir, "");
}

static void
hybrid_has_both(void **state)
{
	struct kn_cgroup_where w = parse("4:memory:/x\n1:name=systemd:/y\n0::/y\n",
	    "35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
	    "40 31 0:37 / /sys/fs/cgroup/systemd rw - cgroup cgroup rw,name=systemd\n"
	    "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n");

	(void)state;
	assert_string_equal(w.memory.dir, "/sys/fs/cgroup/memory/x");
	assert_string_equal(w.unified.dir, "/sys/fs/cgroup/unified/y");
}

static void
container_mount_shows_a_subtree(void **state)
{
	struct kn_cgroup_where w = parse("4:memory:/docker/abc/in\n0::/docker/abcd\n",
	    "35 31 0:32 /docker/abc /sys/fs/cgroup/memory rw - cgroup c rw,memory\n"
	    "41 31 0:38 /docker/abc /sys/fs/cgroup/unified rw - cgroup2 c rw\n");

	(void)state;
	assert_string_equal(w.memory.dir, "/sys/fs/cgroup/memory/in");
	/* "/docker/abcd" is not below "/docker/abc". */
	assert_string_equal(w.unified.dir, "");
	w = parse(
	    "0::/\n", "41 31 0:38 /../.. /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
	assert_string_equal(w.unified.dir, "");
	w = parse(
	    "0::/../other\n", "41 31 0:38 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
	assert_string_equal(w.unified.dir, "");
}

static void
odd_text_is_survived(void **state)
{
	struct kn_cgroup_where w = parse(
	    "0::/a b\n", "41 31 0:38 / /sys/fs/my\\040cg rw - cgroup2 cgroup2 rw\n");
	char big[2048];

	(void)state;
	assert_string_equal(w.unified.dir, "/sys/fs/my cg/a b");
	memset(big, 'x', sizeof(big));
	memcpy(big, "0::/", 4);
	big[sizeof(big) - 1] = '\0';
	w = parse(big, "41 31 0:38 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
	assert_string_equal(w.unified.dir, "");
	w = parse("", "");
	assert_string_equal(w.memory.dir, "");
	w = parse("0", "41 31 0:38 / - cgroup2");
	assert_string_equal(w.unified.dir, "");
	w = parse("::::\n0::", " - cgroup2 \n - cgroup x\n41 - cgroup2 a");
	assert_string_equal(w.unified.dir, "");
}

static void
orphan_is_told_by_its_owner(void **state)
{
	char name[KN_CGROUP_NAME_MAX], sup[KN_CGROUP_NAME_MAX + 8];
	pid_t pid;
	int status;

	(void)state;
	assert_int_equal(kn_cgroup_dir_name(test_pool_id, name, sizeof(name)), 0);
	assert_non_null(strstr(name, "knit-abcd0102"));
	assert_false(kn_cgroup_dir_orphan(name)); /* we live */
	snprintf(sup, sizeof(sup), "%s-sup", name);
	assert_false(kn_cgroup_dir_orphan(sup));
	assert_false(kn_cgroup_dir_orphan("knit-test"));
	assert_false(kn_cgroup_dir_orphan("user.slice"));
	/* The same name, made by a process that has ended. */
	int p[2];
	assert_int_equal(pipe2(p, O_CLOEXEC), 0);
	pid = fork();
	if (pid == 0) {
		char mine[KN_CGROUP_NAME_MAX] = "";

		kn_cgroup_dir_name(test_pool_id, mine, sizeof(mine));
		_exit(write(p[1], mine, sizeof(mine)) == sizeof(mine) ? 0 : 1);
	}
	assert_int_equal(read(p[0], name, sizeof(name)), sizeof(name));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(kn_cgroup_dir_orphan(name));
	snprintf(sup, sizeof(sup), "%s-sup", name);
	assert_true(kn_cgroup_dir_orphan(sup));
	/* Another PID namespace: that number says nothing here. */
	*strrchr(name, '-') = '\0';
	snprintf(sup, sizeof(sup), "%s-1", name);
	assert_false(kn_cgroup_dir_orphan(sup));
	close(p[0]);
	close(p[1]);
}

static void
owner_that_cannot_be_looked_at_is_not_dead(void **state)
{
	char name[KN_CGROUP_NAME_MAX];
	struct rlimit old, none;
	bool orphan;

	(void)state;
	assert_int_equal(kn_cgroup_dir_name(test_pool_id, name, sizeof(name)), 0);
	/* No descriptor is left to open /proc/<pid>/stat with. */
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
	none = old;
	none.rlim_cur = 0;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	orphan = kn_cgroup_dir_orphan(name);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
	assert_false(orphan);
}

/* ---- the real thing ---- */

static struct kn_cgroup *
open_pool(void)
{
	struct kn_cgroup *g = NULL;
	struct kn_err e = { 0 };

	OK(kn_cgroup_open(test_pool_id, 2, &g, &e), e);
	return g;
}

static void
sleep_for_long(void)
{
	poll(NULL, 0, 60000);
}

static void
touch_64_mib(void)
{
	char *p = malloc(64 << 20);

	for (size_t i = 0; p != NULL && i < 64 << 20; i += 4096)
		((volatile char *)p)[i] = 1;
	_exit(7); /* reached: no limit held us */
}

static void
fork_until_refused(void)
{
	int n = 0;

	for (; n < 100; n++) {
		pid_t pid = fork();

		if (pid == 0) {
			poll(NULL, 0, 60000);
			_exit(0);
		}
		if (pid < 0)
			break;
	}
	_exit(n);
}

static void
memory_cap_kills_what_exceeds_it(void **state)
{
	struct kn_cgroup *g = open_pool();
	struct kn_err e = { 0 };
	int fds[KN_BOOT_FD_N], status;
	uint32_t has = 0, flags = 0;
	char text[512];
	bool can = kn_cgroup_has_memory(g);

	(void)state;
	if (!can)
		kn_cgroup_close(g);
	SKIP_UNLESS(can, "no memory cgroup is granted");
	OK(kn_cgroup_prepare(g, 0, 16 << 20, 0, &e), e);
	pid_t pid = start_inside(g, 0, touch_64_mib);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	OK(kn_cgroup_boot_fds(g, 0, fds, &has, &flags, &e), e);
	assert_true(has & 1u << KN_BOOT_FD_MEM_LIMIT);
	assert_true(has & 1u << KN_BOOT_FD_MEM_EVENTS);
	ssize_t n = pread(fds[KN_BOOT_FD_MEM_EVENTS], text, sizeof(text) - 1, 0);
	assert_true(n > 0);
	text[n] = '\0';
	assert_non_null(strstr(text, "oom_kill 1\n"));
	/* A task's limit, set through the descriptor, below the cap. */
	assert_true(pwrite(fds[KN_BOOT_FD_MEM_LIMIT], "8388608", 7, 0) == 7);
	for (int i = KN_BOOT_FD_MEM_LIMIT; i < KN_BOOT_FD_N; i++)
		kn_fd_close(&fds[i]);
	/* Made anew, the counters start from nothing and no limit is left. */
	OK(kn_cgroup_prepare(g, 0, 0, 0, &e), e);
	pid = start_inside(g, 0, touch_64_mib);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 7);
	kn_cgroup_close(g);
}

/* Its one directory is cap and pool; what a released worker left is not the next one's.
 */
static void
a_pool_of_one_is_capped_and_starts_afresh(void **state)
{
	struct kn_cgroup *g = NULL;
	struct kn_err e = { 0 };
	int status;
	bool can;

	(void)state;
	OK(kn_cgroup_open(test_pool_id, 1, &g, &e), e);
	can = kn_cgroup_has_memory(g) && kn_cgroup_has_pids(g) && kn_cgroup_has_kill(g);
	if (!can)
		kn_cgroup_close(g);
	SKIP_UNLESS(can, "no memory and pids cgroups, or no cgroup.kill");
	OK(kn_cgroup_prepare(g, 0, 16 << 20, 5, &e), e);
	pid_t pid = start_inside(g, 0, touch_64_mib);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	pid_t left = start_inside(g, 0, sleep_for_long);
	kn_cgroup_release(g, 0);
	OK(kn_cgroup_prepare(g, 0, 16 << 20, 5, &e), e);
	assert_int_equal(waitpid(left, &status, 0), left);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	pid = start_inside(g, 0, fork_until_refused);
	assert_true(waitpid(pid, &status, 0) == pid && WEXITSTATUS(status) == 4);
	kn_cgroup_close(g);
}

static void
pids_cap_refuses_the_fork(void **state)
{
	struct kn_cgroup *g = open_pool();
	struct kn_err e = { 0 };
	int status;
	bool can = kn_cgroup_has_pids(g) && kn_cgroup_has_kill(g);

	(void)state;
	if (!can)
		kn_cgroup_close(g);
	SKIP_UNLESS(can, "no pids cgroup, or no cgroup.kill");
	OK(kn_cgroup_prepare(g, 1, 0, 5, &e), e);
	pid_t pid = start_inside(g, 1, fork_until_refused);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 4); /* itself is the fifth */
	assert_int_equal(kn_cgroup_pids_now(g, 1), 4);
	/* All that it left goes at once, and the directories with it. */
	assert_int_equal(kn_cgroup_kill(g, 1), 0);
	kn_cgroup_close(g);
}

static void
kill_takes_everything_of_one_worker_only(void **state)
{
	struct kn_cgroup *g = open_pool();
	struct kn_err e = { 0 };
	int status;
	bool can = kn_cgroup_has_kill(g);

	(void)state;
	if (!can)
		kn_cgroup_close(g);
	SKIP_UNLESS(can, "no cgroup.kill is granted");
	OK(kn_cgroup_prepare(g, 0, 0, 0, &e), e);
	OK(kn_cgroup_prepare(g, 1, 0, 0, &e), e);
	pid_t a = start_inside(g, 0, sleep_for_long);
	pid_t b = start_inside(g, 1, sleep_for_long);
	assert_int_equal(kn_cgroup_kill(g, 0), 0);
	assert_int_equal(waitpid(a, &status, 0), a);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	assert_int_equal(waitpid(b, &status, WNOHANG), 0);
	kn_cgroup_close(g); /* kills what is left */
	assert_int_equal(waitpid(b, &status, 0), b);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

static int
clone_into(int cgroup_fd)
{
	struct {
		uint64_t flags, pidfd, child_tid, parent_tid, exit_signal, stack,
		    stack_size, tls, set_tid, set_tid_size, cgroup;
	} ca = { .flags = 0x200000000ull /* CLONE_INTO_CGROUP */,
		.exit_signal = SIGCHLD,
		.cgroup = (uint64_t)cgroup_fd };

	return (int)syscall(SYS_clone3, &ca, sizeof(ca));
}

static void
clone_goes_into_the_v2_leaf(void **state)
{
	struct kn_cgroup *g = open_pool();
	struct kn_err e = { 0 };
	char text[4096] = "";
	int status, fd, p[2];

	(void)state;
	OK(kn_cgroup_prepare(g, 0, 0, 0, &e), e);
	fd = kn_cgroup_clone_fd(g, 0);
	if (fd < 0)
		kn_cgroup_close(g);
	SKIP_UNLESS(fd >= 0, "no v2 hierarchy is granted");
	assert_int_equal(pipe2(p, O_CLOEXEC), 0);
	int pid = clone_into(fd);
	assert_true(pid >= 0);
	if (pid == 0) {
		int self = open("/proc/self/cgroup", O_RDONLY);
		ssize_t n = read(self, text, sizeof(text));

		_exit(write(p[1], text, (size_t)n) == n ? 0 : 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(read(p[0], text, sizeof(text) - 1) > 0);
	assert_non_null(strstr(text, "/w0"));
	close(p[0]);
	close(p[1]);
	kn_cgroup_close(g);
}

/* A kernel that remembers the kill of a group would kill what is cloned into it later.
 */
static void
worker_after_a_killed_one_is_not_killed_too(void **state)
{
	struct kn_cgroup *g = NULL;
	struct kn_err e = { 0 };
	int status;

	(void)state;
	OK(kn_cgroup_open(test_pool_id, 1, &g, &e), e);
	for (int i = 0; i < 2; i++) {
		OK(kn_cgroup_prepare(g, 0, 0, 0, &e), e);
		if (kn_cgroup_clone_fd(g, 0) < 0)
			break; /* no v2 hierarchy is granted */
		int pid = clone_into(kn_cgroup_clone_fd(g, 0));
		if (pid == 0)
			_exit(7);
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 7);
		kn_cgroup_release(g, 0);
	}
	kn_cgroup_close(g);
}

/* A supervisor that is SIGKILLed leaves directories and a process; the next start
 * removes both. */
static void
sweep_removes_what_a_dead_supervisor_left(void **state)
{
	struct kn_cgroup *probe = open_pool();
	bool can = kn_cgroup_has_kill(probe);
	struct {
		pid_t in;
		char name[KN_CGROUP_NAME_MAX];
	} left = { 0 };
	uint64_t until;
	int p[2], status;

	(void)state;
	kn_cgroup_close(probe);
	SKIP_UNLESS(can, "no cgroup.kill is granted");
	assert_int_equal(pipe2(p, O_CLOEXEC), 0);
	pid_t sup = fork();
	if (sup == 0) {
		struct kn_cgroup *g = NULL;

		if (kn_cgroup_open(test_pool_id, 2, &g, NULL) < 0 ||
		    kn_cgroup_prepare(g, 0, 0, 0, NULL) < 0)
			_exit(1);
		left.in = start_inside(g, 0, sleep_for_long);
		kn_cgroup_dir_name(test_pool_id, left.name, sizeof(left.name));
		if (write(p[1], &left, sizeof(left)) != sizeof(left))
			_exit(1);
		poll(NULL, 0, 60000);
		_exit(0);
	}
	assert_int_equal(read(p[0], &left, sizeof(left)), sizeof(left));
	/* Alive: nothing of it may be touched. */
	kn_cgroup_sweep();
	assert_int_equal(kill(left.in, 0), 0);
	assert_true(cgroup_is_there(left.name));
	KN_OWN_FD int pidfd = (int)syscall(SYS_pidfd_open, left.in, 0);
	struct pollfd gone = { .fd = pidfd, .events = POLLIN };
	kill(sup, SIGKILL);
	assert_int_equal(waitpid(sup, &status, 0), sup);
	/* A pool that begins beside us may be quicker: what was removed is not counted.
	 */
	until = kn_clock_after_ms(kn_clock_now(), 10000);
	do {
		assert_true(kn_clock_now() < until);
		kn_cgroup_sweep();
	} while (cgroup_is_there(left.name));
	assert_int_equal(poll(&gone, 1, 10000), 1);
	close(p[0]);
	close(p[1]);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(v1_each_controller_alone),
		cmocka_unit_test(v1_controllers_mounted_together),
		cmocka_unit_test(v2_alone),
		cmocka_unit_test(hybrid_has_both),
		cmocka_unit_test(container_mount_shows_a_subtree),
		cmocka_unit_test(odd_text_is_survived),
		cmocka_unit_test(orphan_is_told_by_its_owner),
		cmocka_unit_test(owner_that_cannot_be_looked_at_is_not_dead),
		cmocka_unit_test(memory_cap_kills_what_exceeds_it),
		cmocka_unit_test(a_pool_of_one_is_capped_and_starts_afresh),
		cmocka_unit_test(pids_cap_refuses_the_fork),
		cmocka_unit_test(kill_takes_everything_of_one_worker_only),
		cmocka_unit_test(clone_goes_into_the_v2_leaf),
		cmocka_unit_test(worker_after_a_killed_one_is_not_killed_too),
		cmocka_unit_test(sweep_removes_what_a_dead_supervisor_left),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
