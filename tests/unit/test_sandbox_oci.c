/* tests/unit/test_sandbox_oci.c: what a runtime is told, what it is given to work in,
 * and what is taken away again. No container is started.
 */
#include "sandbox_test.h"

#include <jansson.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>

#include "ipc/fd.h"
#include "sandbox/bind.h"
#include "sandbox/bwrap.h"
#include "sandbox/cgroup_dir.h"
#include "sandbox/oci_bridge.h"
#include "sandbox/oci_config.h"
#include "sandbox/oci_engine.h"
#include "sandbox/oci_left.h"
#include "sandbox/oci_root.h"
#include "sandbox/place.h"

static struct kn_policy *
load(const char *set)
{
	const struct kn_policy_src src = {
		.type = KN_SRC_SET, .text = set, .label = "--set"
	};
	struct kn_policy *p = NULL;
	struct kn_err e = { 0 };

	OK(kn_policy_load(&src, 1, &p, &e), e);
	return p;
}

static json_t *
config_of(const struct kn_policy *p, const char *const *source, bool flat)
{
	const struct kn_oci_req r = { .policy = p,
		.source = source,
		.flat = flat,
		.rootfs = "/place/root",
		.uid = 1234,
		.gid = 5678,
		.nofile = { 100, 200 },
		.pool = "ab",
		.worker = "w3" };
	struct kn_err e = { 0 };
	char *text;
	json_t *o;

	text = kn_oci_config(&r, &e);
	o = text != NULL ? json_loads(text, 0, NULL) : NULL;
	assert_non_null(o);
	free(text);
	return o;
}

static bool
has_word(json_t *list, const char *word)
{
	for (size_t i = 0; i < json_array_size(list); i++)
		if (strcmp(json_string_value(json_array_get(list, i)), word) == 0)
			return true;
	return false;
}

static json_t *
mount_of(json_t *o, const char *at)
{
	json_t *list = json_object_get(o, "mounts"), *found = NULL;

	for (size_t i = 0; i < json_array_size(list); i++) {
		json_t *m = json_array_get(list, i);

		if (strcmp(json_string_value(json_object_get(m, "destination")), at) ==
		    0)
			found = m;
	}
	return found;
}

static bool
has_namespace(json_t *o, const char *type)
{
	json_t *list = json_object_get(json_object_get(o, "linux"), "namespaces");

	for (size_t i = 0; i < json_array_size(list); i++)
		if (strcmp(json_string_value(
			       json_object_get(json_array_get(list, i), "type")),
			type) == 0)
			return true;
	return false;
}

static void
a_policy_is_a_container_with_one_id_and_nothing_to_write_to(void **state)
{
	struct kn_policy *p = load("/filesystem/mounts=[{\"bind\":\"/r\",\"at\":\"/r\","
				   "\"mode\":\"ro\"},{\"bind\":\"/w\",\"at\":\"/w\","
				   "\"mode\":\"rw\"}]");
	const char **source = calloc(p->fs.mount_n, sizeof *source);
	json_t *o, *map, *caps;

	(void)state;
	for (size_t i = 0; i < p->fs.mount_n; i++)
		if (p->fs.mounts[i].type == KN_MOUNT_BIND)
			source[i] = p->fs.mounts[i].source;
	o = config_of(p, source, false);
	assert_true(
	    json_is_true(json_object_get(json_object_get(o, "root"), "readonly")));
	map = json_object_get(json_object_get(o, "linux"), "uidMappings");
	assert_int_equal(json_array_size(map), 1);
	map = json_array_get(map, 0);
	assert_int_equal(json_integer_value(json_object_get(map, "hostID")), 1234);
	assert_int_equal(json_integer_value(json_object_get(map, "size")), 1);
	caps = json_object_get(json_object_get(o, "process"), "capabilities");
	assert_int_equal(json_array_size(json_object_get(caps, "bounding")), 1);
	assert_true(has_word(json_object_get(caps, "bounding"), "CAP_SETFCAP"));
	assert_null(json_object_get(caps, "inheritable"));
	assert_true(json_is_true(
	    json_object_get(json_object_get(o, "process"), "noNewPrivileges")));
	assert_true(has_word(json_object_get(mount_of(o, "/r"), "options"), "rro"));
	assert_true(has_word(json_object_get(mount_of(o, "/usr"), "options"), "rro"));
	assert_false(has_word(json_object_get(mount_of(o, "/w"), "options"), "rro"));
	assert_true(has_word(json_object_get(mount_of(o, "/w"), "options"), "rnosuid"));
	assert_true(has_word(json_object_get(mount_of(o, "/dev"), "options"), "ro"));
	for (const char *const *ns = (const char *const[]){ "user", "pid", "ipc", "uts",
		 "mount", "cgroup", "network", NULL };
	     *ns; ns++)
		assert_true(has_namespace(o, *ns));
	/* Of the container's own /proc nothing is covered: cells could not mount one.
	 */
	assert_null(json_object_get(json_object_get(o, "linux"), "maskedPaths"));
	assert_string_equal(
	    json_string_value(json_object_get(
		json_object_get(o, "annotations"), "knit-sandbox.pool")),
	    "ab");
	json_decref(o);
	/* For a runtime that cannot go below. */
	o = config_of(p, source, true);
	assert_true(has_word(json_object_get(mount_of(o, "/r"), "options"), "ro"));
	assert_true(has_word(json_object_get(mount_of(o, "/w"), "options"), "nosuid"));
	assert_false(has_word(json_object_get(mount_of(o, "/r"), "options"), "rro"));
	json_decref(o);
	free(source);
	kn_policy_free(p);

	p = load("/network/mode=host");
	source = calloc(p->fs.mount_n, sizeof *source);
	o = config_of(p, source, false);
	assert_false(has_namespace(o, "network"));
	assert_null(mount_of(o, "/usr"));
	json_decref(o);
	free(source);
	kn_policy_free(p);
}

static void
the_skeleton_has_a_point_for_each_mount_and_follows_no_link(void **state)
{
	char place[] = "/tmp/knit-skeleton.XXXXXX", path[96];
	const struct kn_mount mounts[] = {
		{ .type = KN_MOUNT_SYMLINK, .source = "/tmp", .at = "/out" },
		{ .type = KN_MOUNT_DATA, .data = "text", .data_n = 4, .at = "/etc/f" },
		{ .type = KN_MOUNT_BIND, .source = "/", .at = "/a/b", .user = true },
		{ .type = KN_MOUNT_DIR, .at = "/a/b/in-the-bind", .user = true },
		{ .type = KN_MOUNT_DIR, .at = "/empty", .user = true },
		{ .type = KN_MOUNT_DIR, .at = "/out/through", .user = true },
	};
	struct kn_bind binds[6] = { 0 };
	const char *source[6] = { NULL, NULL, "/", NULL, NULL, NULL };
	struct kn_policy p = { 0 };
	struct kn_err e = { 0 };
	struct stat st;

	(void)state;
	assert_non_null(mkdtemp(place));
	for (size_t i = 0; i < 6; i++)
		binds[i] =
		    (struct kn_bind){ .mount = &mounts[i], .fd = 0, .is_dir = true };
	p.fs.mounts = mounts;
	p.fs.mount_n = 6;
	/* The last would be made in the machine's /tmp. */
	assert_int_equal(kn_oci_root_make(place, &p, binds, source, &e), -1);
	assert_non_null(strstr(e.msg, "/out/through"));
	assert_int_equal(lstat("/tmp/through", &st), -1);
	assert_int_equal(kn_place_empty(place), 0);
	p.fs.mount_n = 5;
	OK(kn_oci_root_make(place, &p, binds, source, &e), e);
	for (const char *const *d = (const char *const[]){ "a/b", "empty", "proc",
		 "dev", "tmp", "task", "etc", NULL };
	     *d; d++) {
		snprintf(path, sizeof path, "%s/root/%s", place, *d);
		assert_int_equal(lstat(path, &st), 0);
		assert_true(S_ISDIR(st.st_mode));
	}
	snprintf(path, sizeof path, "%s/root/a/b/in-the-bind", place);
	assert_int_equal(lstat(path, &st), -1);
	snprintf(path, sizeof path, "%s/root/etc/f", place);
	assert_int_equal(lstat(path, &st), 0);
	assert_int_equal(st.st_size, 4);
	assert_int_equal(st.st_mode & 07777, 0444);
	snprintf(path, sizeof path, "%s/mask-f", place);
	assert_int_equal(lstat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0);
	assert_int_equal(kn_place_empty(place), 0);
	assert_int_equal(rmdir(place), 0);
}

/* What dead supervisors left is found by its name; what lives, or is somebody else's,
 * stays; a noted process is killed only if it is the one that was noted. */
static void
what_a_dead_supervisor_left_is_removed_and_nothing_else(void **state)
{
	char dir[] = "/tmp/knit-places.XXXXXX", place[256], orphan[300], path[420];
	struct kn_err e = { 0 };
	struct stat st;
	pid_t pid[2];
	int status;

	(void)state;
	assert_non_null(mkdtemp(dir));
	setenv("XDG_RUNTIME_DIR", dir, 1);
	OK(kn_place_open(test_pool_id, place, sizeof place, &e), e);
	(void)kn_place_sweep(place, kn_oci_left_kill); /* of a test that was aborted */
	assert_int_equal(lstat(place, &st), 0);
	assert_int_equal(st.st_mode & 022, 0);
	assert_int_equal(stat("/proc/self/ns/pid", &st), 0);
	snprintf(orphan, sizeof orphan, "%.*s/knit-%032d-%d-1-%llu",
	    (int)(strrchr(place, '/') - place), place, 7, getpid(),
	    (unsigned long long)st.st_ino); /* began at 1: not this process */
	snprintf(path, sizeof path, "%s/w0/state/knit-%032d-w0", orphan, 7);
	for (char *slash = path + strlen(orphan); slash != NULL;
	     slash = strchr(slash + 1, '/')) {
		char part[420];

		snprintf(part, sizeof part, "%.*s", (int)(slash - path), path);
		assert_int_equal(mkdir(part, 0700), 0);
	}
	assert_int_equal(mkdir(path, 0700), 0);
	snprintf(path, sizeof path, "%s/w0/link", orphan);
	assert_int_equal(symlink("/", path), 0);
	for (int i = 0; i < 2; i++) {
		FILE *f;

		/* The first of a PID namespace, as a container's is. */
		pid[i] = (pid_t)syscall(
		    SYS_clone, CLONE_NEWUSER | CLONE_NEWPID | SIGCHLD, 0, 0, 0, 0);
		if (pid[i] < 0) {
			kn_place_empty(orphan);
			rmdir(orphan);
			kn_place_close(place);
			skip();
		}
		if (pid[i] == 0) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			pause();
			_exit(0);
		}
		snprintf(path, sizeof path, "%s/w0/state/knit-%032d-w0/%s", orphan, 7,
		    i == 0 ? "state.json" : "status");
		f = fopen(path, "we");
		assert_non_null(f);
		fprintf(f,
		    i == 0 ? "{\"init_process_pid\":%d,\"init_process_start\":%llu}"
			   : "{\n \"pid\" : %d,\n \"process-start-time\" : %llu\n}",
		    pid[i], kn_cgroup_dir_start_time(pid[i]) + (unsigned)i);
		fclose(f);
	}
	assert_int_equal(kn_place_sweep(place, kn_oci_left_kill), 1);
	assert_int_equal(lstat(orphan, &st), -1);
	assert_int_equal(lstat(place, &st), 0);
	assert_int_equal(waitpid(pid[0], &status, 0), pid[0]);
	assert_true(WIFSIGNALED(status));
	/* lives: it began at another time */
	assert_int_equal(waitpid(pid[1], &status, WNOHANG), 0);
	assert_int_equal(kill(pid[1], SIGKILL), 0);
	assert_int_equal(waitpid(pid[1], &status, 0), pid[1]);
	kn_place_close(place);
	assert_int_equal(lstat(place, &st), -1);
	rmdir(dir);
}

static void
a_base_that_others_can_write_to_is_not_used(void **state)
{
	char dir[] = "/tmp/knit-base.XXXXXX", base[64], place[256];
	struct kn_err e = { 0 };

	(void)state;
	if (geteuid() == 0)
		return; /* its base is in a folder that only it can write to */
	assert_non_null(mkdtemp(dir));
	setenv("XDG_RUNTIME_DIR", dir, 1);
	snprintf(base, sizeof base, "%s/knit-sandbox", dir);
	assert_int_equal(mkdir(base, 0700), 0);
	assert_int_equal(chmod(base, 0777), 0);
	assert_int_equal(kn_place_open(test_pool_id, place, sizeof place, &e), -1);
	assert_non_null(strstr(e.msg, "only we can write"));
	assert_string_equal(place, "");
	assert_int_equal(rmdir(base), 0);
	assert_int_equal(rmdir(dir), 0);
}

/* ---- engines ---- */

static bool
has_arg(const struct kn_argv *a, const char *arg)
{
	for (size_t i = 0; i < a->n; i++)
		if (strcmp(a->v[i], arg) == 0)
			return true;
	return false;
}

static void
an_engine_is_told_of_every_wall_and_of_no_privilege(void **state)
{
	struct kn_policy *p = load("/filesystem/mounts=[{\"bind\":\"/r\",\"at\":\"/r\","
				   "\"mode\":\"ro\"},{\"bind\":\"/w\",\"at\":\"/w\","
				   "\"mode\":\"rw\"}]");
	const char **source = calloc(p->fs.mount_n, sizeof *source);
	struct kn_engine_req r = { .policy = p,
		.runtime = KN_RUNTIME_PODMAN,
		.program = "/usr/bin/podman",
		.id = "knit-ab-w0-1",
		.pool = "knit-ab-1-2-3",
		.worker = "w0",
		.source = source,
		.rootfs = "/place/root",
		.dir = "/place/w0",
		.secret = "abc",
		.own_userns = true,
		.uid = 1234,
		.gid = 1234,
		.nofile = { 100, 200 },
		.nproc = { 300, 400 } };
	static const char *const always[] = { "--rm", "--pull=never", "--read-only",
		"--cap-drop=all", "--security-opt=no-new-privileges", "--network=none",
		"--name=knit-ab-w0-1", "--label=knit-sandbox.pool=knit-ab-1-2-3",
		"--ulimit=nofile=100:200" };
	struct kn_argv a = { 0 };
	struct kn_err e = { 0 };

	(void)state;
	for (size_t i = 0; i < p->fs.mount_n; i++)
		if (p->fs.mounts[i].user)
			source[i] = p->fs.mounts[i].source;
	for (int docker = 0; docker < 2; docker++) {
		if (docker) {
			p->image = "debian:12";
			r.runtime = KN_RUNTIME_DOCKER;
			r.own_userns = false;
		}
		OK(kn_engine_argv(&r, &a, &e), e);
		for (size_t i = 0; i < sizeof always / sizeof *always; i++)
			assert_true(has_arg(&a, always[i]));
		for (size_t i = 0; i < a.n; i++) {
			assert_null(strstr(a.v[i], "privileged=true"));
			assert_string_not_equal(a.v[i], "--privileged");
		}
		assert_true(has_arg(&a, docker ? "--user=1234:1234" : "--user=0:0"));
		assert_int_equal(has_arg(&a, "--cap-add=SETFCAP"), !docker);
		assert_int_equal(
		    has_arg(&a, "--security-opt=apparmor=unconfined"), docker);
		assert_int_equal(has_arg(&a, "--preserve-fds=2"), !docker);
		assert_int_equal(has_arg(&a, "--ulimit=nproc=300:400"), !docker);
		assert_true(has_arg(
		    &a, docker ? "--mount=type=bind,src=/r,dst=/r,readonly"
			       : "--mount=type=bind,src=/r,dst=/r,readonly,nosuid,"
				 "nodev,bind-propagation=rprivate"));
		assert_true(
		    has_arg(&a, docker ? "--mount=type=bind,src=/w,dst=/w"
				       : "--mount=type=bind,src=/w,dst=/w,nosuid,nodev,"
					 "bind-propagation=rprivate"));
		assert_string_equal(
		    a.v[a.n - 1], docker ? "/.knit-abc/socket" : "/proc/self/fd/4");
		assert_string_equal(
		    a.v[a.n - 7 - 2 * docker], docker ? "debian:12" : "/place/root");
		assert_int_equal(has_arg(&a, "--rootfs"), !docker);
		assert_int_equal(
		    has_arg(&a,
			"--mount=type=bind,src=/place/w0/knit,dst=/.knit-abc,readonly"),
		    docker);
		/* who the stub has to find itself to be */
		for (size_t i = 3; i < 5; i++)
			assert_string_equal(
			    a.v[a.n - i - 2 * docker + 1], docker ? "1234" : "0");
		kn_argv_fini(&a);
	}
	/* Root's podman confines as docker does; its profile refuses the stub. */
	r.runtime = KN_RUNTIME_PODMAN;
	OK(kn_engine_argv(&r, &a, &e), e);
	assert_true(has_arg(&a, "--security-opt=apparmor=unconfined"));
	assert_true(has_arg(&a, "--user=1234:1234"));
	kn_argv_fini(&a);
	r.runtime = KN_RUNTIME_DOCKER;
	p->image = "--privileged";
	assert_int_equal(kn_engine_argv(&r, &a, &e), -1);
	assert_non_null(strstr(e.msg, "/launcher/image"));
	p->image = "debian:12";
	for (int k = 0; k < 2; k++) {
		for (size_t i = 0; i < p->fs.mount_n; i++)
			if (p->fs.mounts[i].user)
				source[i] = k ? "/a\nb" : "/a,readonly=false";
		kn_err_clear(&e);
		assert_int_equal(kn_engine_argv(&r, &a, &e), -1);
		assert_non_null(strstr(e.msg, "comma"));
	}
	free(source);
	kn_policy_free(p);
}

/* Who comes to the socket; the byte and the descriptor that he gets, or nothing. */
static int
come(const char *dir, uid_t uid)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	int p[2], status, got = -1, n = 0;
	pid_t pid;

	snprintf(at.sun_path, sizeof at.sun_path, "%s/socket", dir);
	assert_int_equal(pipe(p), 0);
	pid = fork();
	assert_int_not_equal(pid, -1);
	if (pid == 0) {
		int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
		char byte;

		if (uid != geteuid() && setresuid(uid, uid, uid) < 0)
			_exit(9);
		if (connect(fd, (const struct sockaddr *)&at, sizeof at) < 0)
			_exit(8);
		if (kn_fd_recv(fd, &byte, 1, &got, 1, &n, 0) != 1 || n != 1)
			_exit(1);
		_exit(write(got, "here", 4) == 4 ? 0 : 7);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	close(p[0]);
	close(p[1]);
	return WEXITSTATUS(status);
}

static void
a_socket_is_handed_to_who_is_meant_and_once(void **state)
{
	char top[] = "/tmp/knit-bridge.XXXXXX", dir[64], text[8] = "";
	struct kn_err e = { 0 };
	int fd, sock[2], self = (int)syscall(SYS_pidfd_open, getpid(), 0);

	(void)state;
	assert_non_null(mkdtemp(top));
	assert_int_equal(chmod(top, 0755), 0);
	snprintf(dir, sizeof dir, "%s/knit", top);
	fd = kn_bridge_open(dir, "stub", 4, &e);
	if (fd < 0)
		fail_msg("%s", e.msg);
	assert_int_equal(
	    socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sock), 0);
	assert_int_equal(kn_bridge_start(fd, geteuid(), sock[1], self), 0);
	if (geteuid() == 0)
		assert_int_equal(come(dir, 65534), 1); /* a stranger */
	assert_int_equal(come(dir, geteuid()), 0);
	assert_int_equal(read(sock[0], text, sizeof text), 4);
	close(sock[1]);
	close(fd);
	/* It holds nothing: the other end is closed with ours. */
	assert_int_equal(read(sock[0], text, sizeof text), 0);
	close(sock[0]);
	close(self);
	assert_int_equal(kn_place_empty(top), 0);
	assert_int_equal(rmdir(top), 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
		    a_policy_is_a_container_with_one_id_and_nothing_to_write_to),
		cmocka_unit_test(
		    the_skeleton_has_a_point_for_each_mount_and_follows_no_link),
		cmocka_unit_test(
		    what_a_dead_supervisor_left_is_removed_and_nothing_else),
		cmocka_unit_test(an_engine_is_told_of_every_wall_and_of_no_privilege),
		cmocka_unit_test(a_socket_is_handed_to_who_is_meant_and_once),
		cmocka_unit_test(a_base_that_others_can_write_to_is_not_used),
	};

	have_own_run();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
