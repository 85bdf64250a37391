/* tests/unit/test_sandbox_bind.c: what is bound is decided once, never through a link
 * that a task could have left, and nothing is made on the machine for it.
 */
#include "sandbox_test.h"

#include "sandbox/bind.h"

static char dir[64];

static int
setup(void **state)
{
	(void)state;
	scratch_make(dir);
	assert_int_equal(mkdir(join(dir, "work"), 0700), 0);
	assert_int_equal(mkdir(join(dir, "work/sub"), 0700), 0);
	write_file(join(dir, "work/file"), "x");
	assert_int_equal(symlink("/etc", join(dir, "work/cache")), 0);
	assert_int_equal(symlink("work", join(dir, "mine")), 0);
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	scratch_remove(dir);
	return 0;
}

/* 0 or -1, with the message. The table, if any, is freed. */
static int
resolve(const struct kn_mount *m, size_t n, struct kn_err *e)
{
	struct kn_policy p = { .fs = { .mounts = m, .mount_n = n } };
	struct kn_bind *b = NULL;
	int rc;

	kn_err_clear(e);
	rc = kn_bind_resolve(&p, &b, e);
	if (rc == 0)
		kn_bind_free(b, n);
	return rc;
}

static void
refused(const struct kn_mount *m, size_t n, const char *what)
{
	struct kn_err e;

	if (resolve(m, n, &e) == 0)
		fail_msg("accepted, expected \"%s\"", what);
	if (strstr(e.msg, what) == NULL)
		fail_msg("\"%s\" does not say \"%s\"", e.msg, what);
	assert_int_equal(e.kind, KN_EK_CONFIG);
}

static void
source_becomes_a_descriptor_once(void **state)
{
	struct kn_mount m = user_bind(join(dir, "work"), "/w", true);
	struct kn_policy p = { .fs = { .mounts = &m, .mount_n = 1 } };
	struct kn_bind *b = NULL;
	struct kn_err e = { 0 };
	struct stat st;

	(void)state;
	assert_int_equal(stat(m.source, &st), 0);
	OK(kn_bind_resolve(&p, &b, &e), e);
	assert_int_equal(b[0].ino, st.st_ino);
	assert_int_equal(b[0].dev, st.st_dev);
	assert_true(b[0].is_dir);
	assert_string_equal(b[0].path, m.source);
	assert_true(fcntl(b[0].fd, F_GETFD) & FD_CLOEXEC);
	kn_bind_free(b, 1);
}

static void
absent_source_names_the_flag(void **state)
{
	struct kn_mount m = user_bind(join(dir, "nosuch"), "/w", false);

	(void)state;
	refused(&m, 1, "--ro-bind: bind ");
	refused(&m, 1, "No such file");
}

static void
writable_bind_does_not_follow_a_planted_link(void **state)
{
	struct kn_mount last = user_bind(join(dir, "work/cache"), "/c", true);
	struct kn_mount inner = user_bind(join(dir, "work/cache/ssl"), "/c", true);
	struct kn_err e;

	(void)state;
	refused(&last, 1, "is a symbolic link");
	refused(&inner, 1, "is a symbolic link");
	assert_int_equal(resolve(&last, 1, &e), -1);
	assert_non_null(strstr(e.hint, "/etc"));
	/* Reading through one's own link is fine. */
	last.writable = false;
	assert_int_equal(resolve(&last, 1, &e), 0);
}

static void
links_of_the_system_are_followed(void **state)
{
	struct stat st;
	struct kn_mount m = user_bind("/bin/sh", "/sh", true);
	struct kn_err e = { 0 };

	(void)state;
	SKIP_UNLESS(lstat("/bin", &st) == 0 && S_ISLNK(st.st_mode),
	    "/bin is no link on this machine");
	/* /bin lies in /, which no task can write; sh in a directory of root's, which
	 * an ordinary user cannot either. */
	m.source = "/bin/env";
	OK(resolve(&m, 1, &e), e);
}

/* bwrap would make what is to be masked and is not there, on the machine. */
static void
what_is_to_be_masked_is_there_at_each_launch(void **state)
{
	struct kn_mount m[] = { user_bind(join(dir, "work"), "/w", true),
		{ .type = KN_MOUNT_MASK,
		    .at = "/w/secret",
		    .writable = true,
		    .user = true,
		    .origin = "deny" } };
	struct kn_policy p = { .fs = { .mounts = m, .mount_n = 2 } };
	struct kn_bind *b = NULL;
	struct kn_err e = { 0 };

	(void)state;
	m[1].source = join(dir, "work/secret");
	write_file(m[1].source, "x");
	OK(kn_bind_resolve(&p, &b, &e), e);
	OK(kn_bind_check_points(b, 2, &e), e);
	assert_int_equal(unlink(m[1].source), 0);
	assert_int_equal(kn_bind_check_points(b, 2, &e), -1);
	assert_non_null(strstr(e.msg, "not there any more"));
	/* Nor is a link to it, or a folder in its place, what was meant. */
	assert_int_equal(symlink("file", m[1].source), 0);
	assert_int_equal(kn_bind_check_points(b, 2, &e), -1);
	assert_int_equal(unlink(m[1].source), 0);
	assert_int_equal(mkdir(m[1].source, 0700), 0);
	assert_int_equal(kn_bind_check_points(b, 2, &e), -1);
	assert_int_equal(rmdir(m[1].source), 0);
	kn_bind_free(b, 2);
}

/* Nor would it be right to make what another bind is mounted upon. */
static void
what_is_mounted_upon_is_there_at_each_launch(void **state)
{
	struct kn_mount m[] = { user_bind(join(dir, "work"), "/w", true),
		user_bind(dir, "/w/sub", true) };
	struct kn_policy p = { .fs = { .mounts = m, .mount_n = 2 } };
	struct kn_bind *b = NULL;
	struct kn_err e = { 0 };

	(void)state;
	OK(kn_bind_resolve(&p, &b, &e), e);
	OK(kn_bind_check_points(b, 2, &e), e);
	assert_int_equal(rename(join(dir, "work/sub"), join(dir, "work/sub2")), 0);
	assert_int_equal(kn_bind_check_points(b, 2, &e), -1);
	assert_non_null(strstr(e.msg, "target /w/sub is not in the bind of"));
	assert_int_equal(symlink("sub2", join(dir, "work/sub")), 0);
	assert_int_equal(kn_bind_check_points(b, 2, &e), -1);
	assert_int_equal(unlink(join(dir, "work/sub")), 0);
	assert_int_equal(rename(join(dir, "work/sub2"), join(dir, "work/sub")), 0);
	OK(kn_bind_check_points(b, 2, &e), e);
	kn_bind_free(b, 2);
}

static void
an_empty_directory_lies_beside_binds(void **state)
{
	struct kn_mount m[] = { user_bind(join(dir, "work"), "/w", false),
		{ .type = KN_MOUNT_DIR, .at = "/w/sub", .user = true, .origin = "p" } };

	(void)state;
	refused(m, 2, "no empty directory can be shown");
	m[1].at = "/v/sub";
	struct kn_err e;
	OK(resolve(m, 2, &e), e);
}

static void
device_is_refused(void **state)
{
	struct kn_mount m = user_bind("/dev/null", "/n", false);

	(void)state;
	refused(&m, 1, "neither a directory nor a file");
}

static void
target_inside_another_bind_must_exist_there(void **state)
{
	struct kn_mount m[] = { user_bind(join(dir, "work"), "/w", true),
		user_bind("/etc/hostname", "/w/new", false) };
	struct kn_err e = { 0 };

	(void)state;
	refused(m, 2, "does not exist there");
	assert_int_equal(access(join(dir, "work/new"), F_OK), -1);
	m[1].at = "/w/file";
	OK(resolve(m, 2, &e), e);
	m[1].at = "/w/sub";
	refused(m, 2, "a directory and a file");
	m[1].at = "/w/cache/hostname";
	refused(m, 2, "goes through a symbolic link");
}

static void
target_inside_the_system_root_must_exist_there(void **state)
{
	struct kn_mount m[] = { { .type = KN_MOUNT_BIND,
				    .source = "/usr",
				    .at = "/usr",
				    .origin = "filesystem.root" },
		{ .type = KN_MOUNT_SYMLINK,
		    .source = "usr/bin",
		    .at = "/bin",
		    .origin = "filesystem.root" },
		user_bind("/etc/hostname", "/usr/knit-no-such", false) };

	(void)state;
	refused(m, 3, "does not exist there");
	m[2].at = "/bin/tool";
	refused(m, 3, "/bin is a symbolic link");
}

static void
places_of_the_sandbox_are_refused(void **state)
{
	const char *const bad[] = { "/", "/tmp", "/task", "/dev", "/dev/x", "/dev/shm",
		"/proc", "/proc/x" };
	struct kn_mount m = user_bind("/etc/hostname", NULL, false);
	struct kn_err e;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		m.at = bad[i];
		refused(&m, 1, "--ro-bind: ");
	}
	/* Below these it is put back on top of each task's own. */
	m.at = "/tmp/x";
	assert_int_equal(resolve(&m, 1, &e), 0);
	m.at = "/task/x";
	assert_int_equal(resolve(&m, 1, &e), 0);
}

static void
later_mount_must_not_hide_an_earlier_one(void **state)
{
	struct kn_mount m[] = { user_bind(join(dir, "work"), "/a/b", false),
		user_bind(join(dir, "work"), "/a", false) };

	(void)state;
	refused(m, 2, "would hide /a/b");
}

static void
too_many_is_refused_with_the_bound(void **state)
{
	enum { N = KN_BIND_MAX + 1 };
	struct kn_mount *m = calloc(N, sizeof(*m));
	char(*at)[16] = calloc(N, sizeof(*at));

	(void)state;
	for (int i = 0; i < N; i++) {
		snprintf(at[i], sizeof(at[i]), "/m/%d", i);
		m[i] = user_bind("/etc/hostname", at[i], false);
	}
	refused(m, N, "at most 1000");
	for (int i = 0; i < N; i++)
		m[i].writable = true;
	refused(m, KN_BIND_WRITABLE_MAX + 1, "writable binds, at most");
	free(m);
	free(at);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(source_becomes_a_descriptor_once),
		cmocka_unit_test(absent_source_names_the_flag),
		cmocka_unit_test(writable_bind_does_not_follow_a_planted_link),
		cmocka_unit_test(links_of_the_system_are_followed),
		cmocka_unit_test(what_is_to_be_masked_is_there_at_each_launch),
		cmocka_unit_test(what_is_mounted_upon_is_there_at_each_launch),
		cmocka_unit_test(an_empty_directory_lies_beside_binds),
		cmocka_unit_test(device_is_refused),
		cmocka_unit_test(target_inside_another_bind_must_exist_there),
		cmocka_unit_test(target_inside_the_system_root_must_exist_there),
		cmocka_unit_test(places_of_the_sandbox_are_refused),
		cmocka_unit_test(later_mount_must_not_hide_an_earlier_one),
		cmocka_unit_test(too_many_is_refused_with_the_bound),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
