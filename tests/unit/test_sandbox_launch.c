/* tests/unit/test_sandbox_launch.c: the launcher with the real bwrap and the real stub:
 * ready by ping, binds under the worker's uid, a swapped source, no environment, no
 * stray descriptor, dead with its supervisor.
 */
#include "sandbox_test.h"

#include <dirent.h>
#include <poll.h>
#include <sys/syscall.h>

#include "ipc/arena.h"
#include "ipc/bell.h"
#include "ipc/control.h"
#include "ipc/lane.h"
#include "sandbox/filter.h"
#include "sandbox/launch_int.h"

enum { READY_MS = 30000 };

/* A pool of one worker, down to the launcher. */
struct pool {
	struct kn_policy *loaded, policy; /* policy: with the mounts of the test */
	struct kn_mount *mounts;
	struct kn_host host;
	struct kn_layout layout;
	struct kn_arena arena;
	struct kn_filter filter;
	struct kn_launcher *launcher;
	struct kn_launched worker;
};

static struct kn_policy *
load_policy(void)
{
	/* What this machine cannot give is not what these tests are about. */
	struct kn_policy_src src[] = { { .type = KN_SRC_NAMED, .text = "default" },
		{ .type = KN_SRC_SET,
		    .text = "/allow_degraded=[\"landlock\",\"cgroup.memory\","
			    "\"cgroup.pids\",\"cgroup.cpu\",\"mseal\"]" } };
	struct kn_policy *p = NULL;
	struct kn_err e = { 0 };

	OK(kn_policy_load(src, 2, &p, &e), e);
	return p;
}

static int
pool_open(
    struct pool *o, const struct kn_mount *extra, size_t extra_n, struct kn_err *e)
{
	size_t n;

	memset(o, 0, sizeof(*o));
	o->worker = (struct kn_launched)KN_LAUNCHED_NONE;
	o->loaded = load_policy();
	o->policy = *o->loaded;
	n = o->policy.fs.mount_n;
	o->mounts = calloc(n + extra_n, sizeof(o->mounts[0]));
	memcpy(o->mounts, o->policy.fs.mounts, n * sizeof(o->mounts[0]));
	if (extra_n > 0)
		memcpy(o->mounts + n, extra, extra_n * sizeof(o->mounts[0]));
	o->policy.fs.mounts = o->mounts;
	o->policy.fs.mount_n = n + extra_n;
	OK(kn_host_probe(&o->host, e), *e);
	assert_int_equal(kn_layout_of(1, 1 << 20, 1 << 20, &o->layout), 0);
	OK(kn_arena_open(&o->arena, &o->layout, test_pool_id, e), *e);
	OK(kn_filter_build(&o->policy, &o->filter, e), *e);
	return kn_launcher_new(
	    &o->policy, &o->host, test_pool_id, 1, &o->layout, &o->launcher, e);
}

static void
pool_close(struct pool *o)
{
	if (o->launcher != NULL) {
		kn_launch_kill(o->launcher, 0, &o->worker);
		kn_launch_release(o->launcher, 0, &o->worker);
	}
	kn_launcher_free(o->launcher);
	kn_filter_fini(&o->filter);
	kn_arena_close(&o->arena);
	kn_policy_free(o->loaded);
	free(o->mounts);
}

static void
start(struct pool *o, uint32_t incarnation)
{
	struct kn_err e = { 0 };

	OK(kn_arena_reset_slice(&o->arena, 0, &e), e);
	OK(kn_launch_start(o->launcher, 0, incarnation, &o->worker, &e), e);
	OK(kn_launch_boot(
	       o->launcher, 0, incarnation, &o->filter, o->arena.fd, &o->worker, &e),
	    e);
}

/* What came first: the bell (ready), a message, or the end of the socket. */
enum news { NEWS_READY, NEWS_MESSAGE, NEWS_END, NEWS_NOTHING };

static enum news
ping(struct pool *o)
{
	struct kn_slot_head head = { .kind = KN_REQ_PING,
		.task = 1,
		.gen = 1,
		.area = KN_AREA_INLINE,
		.payload_len = 4 };
	struct kn_msg m = { .type = KN_MSG_TASK, .task = 1, .gen = 1 };
	uint8_t bytes[KN_INLINE_MAX] = "ping";
	struct kn_submit tx;
	struct kn_slice s;
	int slot;

	kn_arena_slice(&o->arena, 0, &s);
	kn_submit_init(&tx);
	kn_bell_arm(s.control);
	slot = kn_submit_free(&tx, &s);
	kn_submit_publish(&tx, &s, slot, &head, bytes);
	m.arg = (uint32_t)slot;
	kn_fd_send(o->worker.sock, &m, sizeof(m), NULL, 0, 1);
	struct pollfd p[] = { { .fd = o->worker.bell_fd, .events = POLLIN },
		{ .fd = o->worker.sock, .events = POLLIN } };
	if (poll(p, 2, READY_MS) <= 0)
		return NEWS_NOTHING;
	if (p[0].revents & POLLIN)
		return NEWS_READY;
	return p[1].revents & POLLIN ? NEWS_MESSAGE : NEWS_END;
}

/* The first child of a process, or -1. */
static pid_t
child_of(pid_t pid)
{
	char path[96], text[64];
	int fd, child;
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/children", pid, pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -1;
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	if (n <= 0)
		return -1;
	text[n] = '\0';
	return sscanf(text, "%d", &child) == 1 ? child : -1;
}

static pid_t
stub_pid(const struct pool *o)
{
	return child_of(o->worker.proc.pid);
}

static void
require_bwrap(void)
{
	char path[256];
	struct kn_err e = { 0 };

	SKIP_UNLESS(kn_host_find_bwrap(path, sizeof(path), &e) == 0, "no bwrap here");
}

static void
worker_becomes_ready_and_goes_without_a_trace(void **state)
{
	struct pool o;
	struct kn_err e = { 0 };

	(void)state;
	require_bwrap();
	OK(pool_open(&o, NULL, 0, &e), e);
	for (uint32_t i = 1; i <= 3; i++) {
		start(&o, i);
		assert_int_equal(ping(&o), NEWS_READY);
		kn_launch_kill(o.launcher, 0, &o.worker);
		kn_launch_release(o.launcher, 0, &o.worker);
		assert_int_equal(o.worker.proc.pidfd, -1);
		assert_int_equal(o.worker.sock, -1);
	}
	pool_close(&o);
}

static void
launcher_and_stub_have_no_environment_and_no_stray_descriptor(void **state)
{
	struct pool o;
	struct kn_err e = { 0 };
	char path[64];
	pid_t pids[2];
	int canary;

	(void)state;
	require_bwrap();
	/* A descriptor of the caller that is not close-on-exec, as inherited ones are.
	 */
	canary = open("/etc/hostname", O_RDONLY);
	assert_true(canary >= 0);
	setenv("KNIT_CANARY", "in-the-coal-mine", 1);
	OK(pool_open(&o, NULL, 0, &e), e);
	start(&o, 1);
	assert_int_equal(ping(&o), NEWS_READY);
	pids[0] = o.worker.proc.pid;
	pids[1] = stub_pid(&o);
	assert_true(pids[1] > 0);
	for (int i = 0; i < 2; i++) {
		char text[4096];
		int fd;
		ssize_t n;
		DIR *d;

		snprintf(path, sizeof(path), "/proc/%d/environ", pids[i]);
		fd = open(path, O_RDONLY | O_CLOEXEC);
		if (fd < 0) /* not dumpable: only root may look */
			continue;
		n = read(fd, text, sizeof(text));
		close(fd);
		/* bwrap itself adds PWD=/ for what it starts. */
		assert_true(n <= 6);
		snprintf(path, sizeof(path), "/proc/%d/fd", pids[i]);
		d = opendir(path);
		assert_non_null(d);
		for (struct dirent *de; (de = readdir(d)) != NULL;) {
			char to[256] = "";

			if (readlinkat(dirfd(d), de->d_name, to, sizeof(to) - 1) > 0)
				assert_null(strstr(to, "hostname"));
		}
		closedir(d);
	}
	unsetenv("KNIT_CANARY");
	close(canary);
	pool_close(&o);
}

static void
as_root_a_worker_is_nobody_of_this_machine(void **state)
{
	struct pool o;
	struct kn_err e = { 0 };
	char path[64];

	(void)state;
	require_bwrap();
	OK(pool_open(&o, NULL, 0, &e), e);
	if (!o.host.root)
		pool_close(&o);
	SKIP_UNLESS(o.host.root, "only root gives workers a uid of their own");
	assert_int_equal(
	    kn_launcher_layers(o.launcher)->state[KN_LAYER_UID], KN_LAYER_ENFORCED);
	start(&o, 1);
	assert_int_equal(ping(&o), NEWS_READY);
	snprintf(path, sizeof(path), "/proc/%d/status", o.worker.proc.pid);
	FILE *f = fopen(path, "re");
	char line[256];
	unsigned ids[4] = { 0, 0, 0, 0 };

	assert_non_null(f);
	while (fgets(line, sizeof(line), f) != NULL) {
		if (strncmp(line, "Uid:", 4) == 0)
			assert_int_equal(sscanf(line, "Uid: %u %u %u %u", &ids[0],
					     &ids[1], &ids[2], &ids[3]),
			    4);
		if (strncmp(line, "Groups:", 7) == 0)
			assert_int_equal(strspn(line + 7, " \t\n"), strlen(line + 7));
	}
	fclose(f);
	for (int i = 0; i < 4; i++)
		assert_int_equal(ids[i], o.host.worker_uid_base);
	pool_close(&o);
}

static void
private_directory_binds_and_files_belong_to_the_caller(void **state)
{
	char dir[64];
	struct kn_err e = { 0 };
	struct stat st;

	(void)state;
	SKIP_UNLESS(geteuid() == 0, "idmapped mounts are for root");
	scratch_make(dir);		    /* 0700, of root */
	write_file(join(dir, "mine"), "x"); /* 0600 */
	struct kn_mount m = user_bind(dir, "/data", true);
	struct pool o;
	bool can = pool_open(&o, &m, 1, &e) == 0;
	if (!can || !o.host.root) {
		pool_close(&o);
		scratch_remove(dir);
	}
	SKIP_UNLESS(can || strstr(e.msg, "(idmapped mounts)") == NULL,
	    "/var/tmp has no idmapped mounts");
	assert_true(can);
	SKIP_UNLESS(o.host.root, "no ids for workers in this namespace");
	assert_true(o.launcher->child_binds[0].idmap);
	start(&o, 1);
	assert_int_equal(ping(&o), NEWS_READY);
	/* As the worker's uid, through the mount that the stub sees. */
	pid_t stub = stub_pid(&o);
	pid_t pid = fork();
	if (pid == 0) {
		char path[64];
		uint32_t uid = o.host.worker_uid_base;
		int got;

		snprintf(path, sizeof(path), "/proc/%d/root/data", stub);
		if (chdir(path) < 0 || syscall(SYS_setresgid, uid, uid, uid) < 0 ||
		    syscall(SYS_setresuid, uid, uid, uid) < 0)
			_exit(1);
		if ((got = open("mine", O_RDWR)) < 0)
			_exit(2);
		if ((got = open("made", O_WRONLY | O_CREAT | O_EXCL, 0644)) < 0)
			_exit(3);
		_exit(mkdir("made-dir", 0700) == 0 ? 0 : 4);
	}
	int status;
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
	pool_close(&o);
	assert_int_equal(stat(join(dir, "made"), &st), 0);
	assert_int_equal(st.st_uid, geteuid());
	assert_int_equal(st.st_gid, getegid());
	assert_int_equal(stat(join(dir, "made-dir"), &st), 0);
	assert_int_equal(st.st_uid, geteuid());
	scratch_remove(dir);
	assert_int_equal(access(dir, F_OK), -1);
}

static void
source_swapped_after_it_was_resolved_fails_the_launch(void **state)
{
	char dir[64];
	struct kn_err e = { 0 };
	struct pool o;
	struct kn_msg msg;
	char body[4096];
	int fds[4], fd_n = 0;

	(void)state;
	require_bwrap();
	scratch_make(dir);
	assert_int_equal(mkdir(join(dir, "work"), 0755), 0);
	assert_int_equal(mkdir(join(dir, "other"), 0755), 0);
	struct kn_mount m = user_bind(join(dir, "work"), "/data", false);
	OK(pool_open(&o, &m, 1, &e), e);
	assert_int_equal(rename(join(dir, "work"), join(dir, "moved")), 0);
	assert_int_equal(symlink("other", join(dir, "work")), 0);
	start(&o, 1);
	if (o.host.root) {
		/* The descriptor was bound: it is the directory that was meant. */
		assert_int_equal(ping(&o), NEWS_READY);
	} else {
		assert_int_equal(ping(&o), NEWS_MESSAGE);
		ssize_t n =
		    kn_fd_recv(o.worker.sock, body, sizeof(body), fds, 4, &fd_n, 1);
		/* It left our ping unread: that is told first, once. */
		if (n < 0 && errno == ECONNRESET)
			n = kn_fd_recv(
			    o.worker.sock, body, sizeof(body), fds, 4, &fd_n, 1);
		assert_true(n >= (ssize_t)sizeof(msg));
		memcpy(&msg, body, sizeof(msg));
		assert_int_equal(msg.type, KN_MSG_BOOT_FAIL);
		assert_int_equal(msg.arg, KN_BSTEP_BINDS);
	}
	pool_close(&o);
	scratch_remove(dir);
}

static void
worker_dies_with_its_supervisor(void **state)
{
	int p[2], status;
	pid_t pids[2] = { 0, 0 };

	(void)state;
	require_bwrap();
	assert_int_equal(pipe2(p, O_CLOEXEC), 0);
	pid_t sup = fork();
	if (sup == 0) {
		struct pool o;
		struct kn_err e = { 0 };

		if (pool_open(&o, NULL, 0, &e) < 0)
			_exit(1);
		start(&o, 1);
		if (ping(&o) != NEWS_READY)
			_exit(2);
		pids[0] = o.worker.proc.pid;
		pids[1] = stub_pid(&o);
		if (write(p[1], pids, sizeof(pids)) != sizeof(pids))
			_exit(3);
		poll(NULL, 0, READY_MS);
		_exit(4);
	}
	assert_int_equal(read(p[0], pids, sizeof(pids)), sizeof(pids));
	struct pollfd gone[2];
	for (int i = 0; i < 2; i++) {
		gone[i].fd = (int)syscall(SYS_pidfd_open, pids[i], 0);
		gone[i].events = POLLIN;
		assert_true(gone[i].fd >= 0);
	}
	kill(sup, SIGKILL);
	assert_int_equal(waitpid(sup, &status, 0), sup);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(poll(&gone[i], 1, 10000), 1);
		close(gone[i].fd);
	}
	close(p[0]);
	close(p[1]);
	kn_cgroup_sweep();
}

/* Anything that bwrap has started and that has not asked for death with it yet: here a
 * program in bwrap's place whose child never does. */
static void
what_a_launcher_started_dies_with_the_supervisor_too(void **state)
{
	char dir[64];
	struct kn_err e = { 0 };
	struct pool o;
	int p[2], status, child = 0;
	pid_t launcher = 0;

	(void)state;
	scratch_make(dir);
	assert_int_equal(chmod(dir, 0755), 0);
	write_file(join(dir, "bwrap"), "#!/bin/sh\nsleep 300 & wait\n");
	assert_int_equal(chmod(join(dir, "bwrap"), 0755), 0);
	assert_int_equal(pipe2(p, O_CLOEXEC), 0);
	setenv("KNIT_BWRAP", join(dir, "bwrap"), 1);
	pid_t sup = fork();
	if (sup == 0) {
		if (pool_open(&o, NULL, 0, &e) < 0 ||
		    kn_launch_start(o.launcher, 0, 1, &o.worker, &e) < 0)
			_exit(1);
		if (write(p[1], &o.worker.proc.pid, sizeof(pid_t)) != sizeof(pid_t))
			_exit(2);
		poll(NULL, 0, READY_MS);
		_exit(3);
	}
	unsetenv("KNIT_BWRAP");
	assert_int_equal(read(p[0], &launcher, sizeof(launcher)), sizeof(launcher));
	for (int i = 0; i < READY_MS && child <= 0; i++) {
		child = child_of(launcher);
		poll(NULL, 0, 1);
	}
	assert_true(child > 0);
	struct pollfd gone = { .fd = (int)syscall(SYS_pidfd_open, child, 0),
		.events = POLLIN };
	assert_true(gone.fd >= 0);
	kill(sup, SIGKILL);
	assert_int_equal(waitpid(sup, &status, 0), sup);
	assert_int_equal(poll(&gone, 1, 10000), 1);
	close(gone.fd);
	close(p[0]);
	close(p[1]);
	kn_cgroup_sweep();
	scratch_remove(dir);
}

static void
failing_launcher_is_reported_with_its_step(void **state)
{
	struct pool o;
	struct kn_err e = { 0 };

	(void)state;
	require_bwrap();
	OK(pool_open(&o, NULL, 0, &e), e);
	/* It went away between the probe and the launch. */
	snprintf(o.launcher->exec, sizeof(o.launcher->exec), "/nonexistent/bwrap");
	assert_int_equal(kn_launch_start(o.launcher, 0, 1, &o.worker, &e), -1);
	assert_int_equal(e.kind, KN_EK_LAUNCH);
	assert_string_equal(
	    e.msg, "execute /nonexistent/bwrap: No such file or directory");
	pool_close(&o);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(worker_becomes_ready_and_goes_without_a_trace),
		cmocka_unit_test(
		    launcher_and_stub_have_no_environment_and_no_stray_descriptor),
		cmocka_unit_test(as_root_a_worker_is_nobody_of_this_machine),
		cmocka_unit_test(
		    private_directory_binds_and_files_belong_to_the_caller),
		cmocka_unit_test(source_swapped_after_it_was_resolved_fails_the_launch),
		cmocka_unit_test(worker_dies_with_its_supervisor),
		cmocka_unit_test(what_a_launcher_started_dies_with_the_supervisor_too),
		cmocka_unit_test(failing_launcher_is_reported_with_its_step),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
